//! Headers of proxies with arbitrary bytes from the client: nothing panics, and the address that a trusted proxy appended
//! is found whatever the client sent.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use domain::forwarded::ForwardedHeader;
use libfuzzer_sys::fuzz_target;

/// Appended by the proxy; not trusted.
const CLIENT: [u8; 4] = [203, 0, 113, 9];

fn is_trusted(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.octets()[0] == 10)
}

fuzz_target!(|data: &[u8]| {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    for (header, mark) in [(ForwardedHeader::XForwardedFor, ""), (ForwardedHeader::Forwarded, "for=")] {
        let found = header.client(lines.iter().copied(), is_trusted);
        let again = found.map(|it| {
            let is_v6 = it.is_ipv6() && header == ForwardedHeader::Forwarded;
            if is_v6 { format!("{mark}\"[{it}]:1\"") } else { format!("{mark}{it}") }
        });
        // What was found is found again.
        if let Some(again) = again {
            assert_eq!(header.client([again.as_bytes()].into_iter(), is_trusted), found);
        }
        let client = IpAddr::V4(Ipv4Addr::from(CLIENT));
        let appended = format!("{mark}{client};by=10.0.0.1");
        let appended = if mark.is_empty() { client.to_string() } else { appended };
        // On a line of its own.
        let with_line = lines.iter().copied().chain([appended.as_bytes()]);
        assert_eq!(header.client(with_line, is_trusted), Some(client));
        // On the line of the client, through a second proxy that is trusted too.
        let (last, before) = lines.split_last().expect("a split has a part");
        let joined =
            [&last[..], &b", "[..], appended.as_bytes(), &b", "[..], mark.as_bytes(), &b"10.0.0.2"[..]]
                .concat();
        let is_visible = joined.iter().all(|it| it.is_ascii_graphic() || matches!(it, b' ' | b'\t'));
        let found = header.client(before.iter().copied().chain([&*joined]), is_trusted);
        assert_eq!(found, is_visible.then_some(client));
    }
});
