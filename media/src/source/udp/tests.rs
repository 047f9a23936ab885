//! Tests of sources with real sockets on the loopback interface.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::dial::{DialSettings, TcpDial};
use crate::launcher::Launcher;
use crate::rtp::write_header;
use crate::source::{OpenRequest, Source, Upstream, open};
use crate::testing::{PermitCount, TsSource, labels_in};
use crate::ts::packet::PACKET;

const SECOND: Duration = Duration::from_secs(1);
const DATAGRAM: usize = 7 * PACKET;

struct Setup {
    upstream: Upstream,
    permits: PermitCount,
}

impl Setup {
    fn new() -> Self {
        let closer = Closer::new(Handle::current());
        let dial = Arc::new(TcpDial::new(DialSettings::default()).unwrap());
        let settings = SourceSettings { first_packet_timeout: 3 * SECOND, ..SourceSettings::default() };
        let upstream = Upstream { dial, closer, launcher: Launcher::default(), settings };
        Self { upstream, permits: PermitCount::default() }
    }

    async fn open(&self, url: String) -> Result<Source, UpstreamError> {
        let request = OpenRequest { url, ..OpenRequest::default() };
        open(request, self.permits.permit(|| {}), self.upstream.clone()).await
    }
}

/// Returns a port that was free a moment ago.
fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns a stream of some seconds as datagrams.
fn datagrams(label: &str) -> Vec<Vec<u8>> {
    let bytes = TsSource::new(label).bytes(Duration::ZERO, 10 * SECOND);
    bytes.chunks(DATAGRAM).map(<[u8]>::to_vec).collect()
}

/// Returns a packet of RTP.
fn rtp(sequence: u16, sender: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    write_header(&RtpHeader { payload_type: 33, sequence, timestamp: 0, sender }, &mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// Sends datagrams every millisecond, again and again, until it is dropped.
struct Sending(AbortHandle);

impl Sending {
    async fn start(datagrams: Vec<Vec<u8>>, to: String) -> Self {
        let from = if to.starts_with('[') { "[::1]:0" } else { "127.0.0.1:0" };
        Self::from(UdpSocket::bind(from).await.unwrap(), datagrams, to)
    }

    fn from(socket: UdpSocket, datagrams: Vec<Vec<u8>>, to: String) -> Self {
        let task = tokio::spawn(async move {
            for datagram in datagrams.iter().cycle() {
                socket.send_to(datagram, to.as_str()).await.unwrap();
                sleep(Duration::from_millis(1)).await;
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn read(source: &mut Source) -> Bytes {
    timeout(3 * SECOND, source.read()).await.expect("the source delivers").unwrap()
}

/// Reads this many bytes.
async fn read_bytes(source: &mut Source, n_bytes: usize) -> Vec<u8> {
    let mut found = Vec::new();
    while found.len() < n_bytes {
        found.extend_from_slice(&read(source).await);
    }
    found
}

#[tokio::test]
async fn a_stream_to_a_port_of_this_machine_is_read_in_every_form() {
    let setup = Setup::new();
    for (host, to) in
        [("127.0.0.1", "127.0.0.1"), ("@", "127.0.0.1"), ("[::1]", "[::1]"), ("localhost", "127.0.0.1")]
    {
        for is_rtp in [false, true] {
            let port = free_port();
            let plain = datagrams("one");
            let sent = match is_rtp {
                false => plain,
                true => plain.iter().enumerate().map(|(n, it)| rtp(n as u16, 7, it)).collect(),
            };
            let _sending = Sending::start(sent, format!("{to}:{port}")).await;
            // The scheme does not matter: many lists name RTP as UDP, and the other way round.
            for scheme in ["udp", "rtp"] {
                let mut source = setup.open(format!("{scheme}://{host}:{port}")).await.unwrap();
                assert!(source.info().place.ends_with(&format!(":{port}")), "{:?}", source.info());
                let bytes = read_bytes(&mut source, 50_000).await;
                assert_eq!(labels_in(&bytes), ["one"], "{scheme}://{host} {is_rtp}");
                assert!(bytes.len().is_multiple_of(PACKET) && bytes.chunks(PACKET).all(|it| it[0] == 0x47));
                drop(source);
            }
        }
    }
    assert_eq!((setup.permits.n_out(), setup.upstream.closer.n_sockets()), (0, 0));
}

#[tokio::test]
async fn rtp_arrives_in_order_and_once_and_losses_are_counted() {
    let setup = Setup::new();
    let port = free_port();
    let plain = datagrams("one");
    let mut packets: Vec<_> = plain.iter().enumerate().map(|(n, it)| rtp(n as u16, 7, it)).collect();
    let opening = setup.open(format!("rtp://127.0.0.1:{port}"));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    packets.swap(10, 12);
    packets.insert(20, packets[19].clone());
    // Reports, error correction and garbage between them.
    packets.insert(30, rtp(9, 7, b"correction"));
    packets.insert(31, vec![0x80]);
    let lost = packets.remove(40);
    let sending = async {
        sleep(Duration::from_millis(100)).await;
        for packet in &packets[..80] {
            socket.send_to(packet, ("127.0.0.1", port)).await.unwrap();
        }
        // It has been given up by now.
        sleep(Duration::from_millis(300)).await;
        socket.send_to(&lost, ("127.0.0.1", port)).await.unwrap();
    };
    let (source, ()) = tokio::join!(opening, sending);
    let mut source = source.unwrap();
    let bytes = read_bytes(&mut source, 70 * DATAGRAM).await;
    let n_lost = packets[..80].iter().filter(|it| it.len() > DATAGRAM).count();
    assert_eq!(n_lost, 78, "two of them carry no payload");
    // One was a copy, and one was lost: it is number 37 of the stream.
    let missing = u16::from_be_bytes([lost[2], lost[3]]);
    let expected: Vec<_> = plain[..78].iter().enumerate().filter(|it| it.0 != usize::from(missing)).collect();
    let expected: Vec<u8> = expected.into_iter().flat_map(|it| it.1.clone()).collect();
    assert!(bytes == expected[..bytes.len()], "in order and once");
    assert_eq!(source.take_counts().lost_datagrams, 1);
    assert_eq!(source.take_counts().lost_datagrams, 0);
}

#[tokio::test]
async fn a_sender_that_starts_again_is_followed() {
    let setup = Setup::new();
    let port = free_port();
    let as_rtp = |label: &str, sender: u32, first: u16| -> Vec<_> {
        let number = |n: usize| first.wrapping_add(n as u16);
        datagrams(label).iter().enumerate().map(|(n, it)| rtp(number(n), sender, it)).collect()
    };
    let to = format!("127.0.0.1:{port}");
    let first = Sending::start(as_rtp("one", 1, 65_530), to.clone()).await;
    let mut source = setup.open(format!("rtp://127.0.0.1:{port}")).await.unwrap();
    assert_eq!(labels_in(&read_bytes(&mut source, 30_000).await), ["one"]);
    drop(first);
    let _second = Sending::start(as_rtp("two", 2, 30_000), to).await;
    timeout(3 * SECOND, async { while !labels_in(&read(&mut source).await).contains(&"two".to_owned()) {} })
        .await
        .expect("the second sender is followed");
    assert_eq!(source.take_counts().lost_datagrams, 0, "a new start does not count as a loss");
}

#[tokio::test]
async fn only_the_named_sender_is_heard() {
    let setup = Setup::new();
    let port = free_port();
    let to = format!("127.0.0.1:{port}");
    let other = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let _other = Sending::from(other, datagrams("other"), to.clone());
    let _named = Sending::start(datagrams("named"), to).await;
    let mut source = setup.open(format!("udp://127.0.0.1@127.0.0.1:{port}")).await.unwrap();
    assert_eq!(labels_in(&read_bytes(&mut source, 50_000).await), ["named"]);
    drop(source);
    // An address of another machine is that of the sender.
    let failed = setup.open(format!("udp://192.0.2.1:{port}")).await.unwrap_err();
    assert_eq!(failed.cause(), &Cause::FirstPacketTimeout, "datagrams of others do not count");
}

#[tokio::test]
async fn a_group_is_received_by_several_sources_and_left_by_each() {
    let setup = Setup::new();
    let port = free_port();
    let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket2::SockRef::from(&sender).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    let group = "239.255.77.1";
    let _sending = Sending::from(sender, datagrams("one"), format!("{group}:{port}"));
    let url = format!("udp://@{group}:{port}?localaddr=127.0.0.1");
    let (mut first, mut second) = (setup.open(url.clone()).await.unwrap(), setup.open(url).await.unwrap());
    assert_eq!(labels_in(&read_bytes(&mut first, 30_000).await), ["one"]);
    drop(first);
    assert_eq!(labels_in(&read_bytes(&mut second, 30_000).await), ["one"]);
    let mut of_source =
        setup.open(format!("udp://127.0.0.1@{group}:{port}?localaddr=127.0.0.1")).await.unwrap();
    assert_eq!(labels_in(&read_bytes(&mut of_source, 30_000).await), ["one"]);
    let failed = setup.open(format!("udp://127.0.0.3@{group}:{port}?iface=lo")).await.unwrap_err();
    assert!(matches!(failed.cause(), Cause::FirstPacketTimeout | Cause::Connect(_)), "{failed}");
    assert!(joined().contains("014DFFEF"), "{}", joined());
    drop((second, of_source));
    assert!(!joined().contains("014DFFEF"), "{}", joined());
}

/// Returns the groups that the machine has joined.
fn joined() -> String {
    std::fs::read_to_string("/proc/net/igmp").unwrap()
}

#[tokio::test]
async fn a_source_that_cannot_be_opened_says_why() {
    let setup = Setup::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let check = async |url: String, expected: &str| {
        let error = setup.open(url.clone()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{url}: {error}");
    };
    check(format!("udp://127.0.0.1:{port}"), "the UDP port is in use").await;
    check("udp://@239.255.77.2:1?iface=no-such".to_owned(), "interface does not exist").await;
    check("udp://@239.255.77.2:0".to_owned(), "invalid address: its port is 0").await;
    let port = free_port();
    let _sending =
        Sending::start(vec![b"<html>no stream</html>".to_vec()], format!("127.0.0.1:{port}")).await;
    let error = setup.open(format!("udp://127.0.0.1:{port}")).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotTs(_) | Cause::FirstPacketTimeout), "{error}");
    drop(_sending);
    let port = free_port();
    let h264: Vec<_> = (0..9).map(|n| rtp(n, 1, b"\x67picture")).collect();
    let _sending = Sending::start(h264, format!("127.0.0.1:{port}")).await;
    check(format!("rtp://127.0.0.1:{port}"), "RTP with another payload").await;
    assert_eq!(setup.permits.n_out(), 0);
}

#[tokio::test]
async fn a_list_of_another_network_opens_no_port_of_this_machine_but_may_name_groups() {
    /// Allows what is not of this machine.
    struct NotHere;

    impl AddressPolicy for NotHere {
        fn trusts_request(&self) -> bool {
            false
        }

        fn check(&self, to: SocketAddr, _: Option<SocketAddr>) -> Result<(), String> {
            let is_here = to.ip().is_loopback() || to.ip().is_unspecified();
            if is_here { Err("not here".to_owned()) } else { Ok(()) }
        }
    }

    let setup = Setup::new();
    for (url, is_allowed) in [
        ("udp://@:1", false),
        ("udp://127.0.0.1:1", false),
        ("udp://192.0.2.7:1", false),
        ("udp://192.0.2.7@:1", false),
        ("rtp://[::1]:1", false),
        ("udp://@239.255.77.3:1?localaddr=127.0.0.1", true),
        ("udp://@[ff15::77]:1?iface=lo", true),
    ] {
        let request =
            OpenRequest { url: url.to_owned(), policy: Some(Arc::new(NotHere)), ..OpenRequest::default() };
        let mut upstream = setup.upstream.clone();
        upstream.settings.first_packet_timeout = Duration::from_millis(50);
        let error = open(request, setup.permits.permit(|| {}), upstream).await.unwrap_err();
        let is_refused = matches!(error.cause(), Cause::Forbidden(_));
        assert_eq!(is_refused, !is_allowed, "{url}: {error}");
    }
}

#[tokio::test]
async fn a_group_of_ipv6_is_joined_and_left() {
    let joined = || std::fs::read_to_string("/proc/net/igmp6").unwrap();
    let settings = SourceSettings::default().udp;
    for url in
        ["udp://@[ff15::77:1]:1?iface=lo", "rtp://[ff15::77:1%25lo]:1", "udp://[ff15::77:1]?localaddr=::1"]
    {
        let address = UdpAddress::parse(url).unwrap().unwrap();
        let UdpHost::Address(group) = address.host else { panic!("{url}") };
        let receiver = socket::open(&address, Some(group), &settings).unwrap();
        assert!(joined().contains("ff150000000000000000000000770001"), "{url}: {}", joined());
        drop(receiver);
        assert!(!joined().contains("ff150000000000000000000000770001"), "{url}");
    }
    // Of two senders only, as the kernel lists them: interface, group, sender.
    let filters = || std::fs::read_to_string("/proc/net/mcfilter6").unwrap();
    let address =
        UdpAddress::parse("udp://[::1]@[ff35::77:2]:1?iface=lo&sources=2001:db8::1").unwrap().unwrap();
    let UdpHost::Address(group) = address.host else { panic!("{address:?}") };
    let receiver = socket::open(&address, Some(group), &settings).unwrap();
    for sender in ["00000000000000000000000000000001", "20010db8000000000000000000000001"] {
        let is_it = |it: &str| it.contains("ff350000000000000000000000770002") && it.contains(sender);
        assert!(filters().lines().any(is_it), "{}", filters());
    }
    drop(receiver);
    assert!(!filters().contains("ff350000000000000000000000770002"));
}

#[tokio::test]
async fn a_source_beside_silence_ends_when_its_reading_is_dropped() {
    let setup = Setup::new();
    let port = free_port();
    let sending = Sending::start(datagrams("one"), format!("127.0.0.1:{port}")).await;
    let mut source = setup.open(format!("udp://127.0.0.1:{port}")).await.unwrap();
    drop(sending);
    while timeout(Duration::from_millis(200), source.read()).await.is_ok() {}
    drop(source);
    assert_eq!((setup.permits.n_out(), setup.upstream.closer.n_sockets()), (0, 0));
    // The port is free again.
    UdpSocket::bind(("127.0.0.1", port)).await.unwrap();
}
