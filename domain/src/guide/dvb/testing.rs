//! Sections for tests.

use super::ServiceId;

/// Returns bytes with their length in front.
pub(super) fn short(text: &[u8]) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text].concat()
}

/// Returns a section without a valid checksum.
pub(super) fn section(table: u8, extension: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(5 + body.len() + 4).unwrap() | 0xF000;
    [&[table], &length.to_be_bytes()[..], &extension.to_be_bytes(), &[0xC1, 0, 0], body, &[0; 4]].concat()
}

/// Returns hours, minutes and seconds in binary-coded decimals.
fn decimals(seconds: i64) -> [u8; 3] {
    [seconds / 3_600, seconds / 60 % 60, seconds % 60].map(|it| u8::try_from(it / 10 * 16 + it % 10).unwrap())
}

/// Returns a section with events: start in Unix seconds, length in seconds, and title.
pub(super) fn event_section(table: u8, service: ServiceId, events: &[(i64, i64, &str)]) -> Vec<u8> {
    let mut body = [service.stream.to_be_bytes(), service.network.to_be_bytes(), [0, table]].concat();
    for (n, (start, length, title)) in events.iter().enumerate() {
        let day = u16::try_from(start.div_euclid(86_400) + 40_587).unwrap();
        let text = [&b"eng"[..], &short(title.as_bytes()), &[0]].concat();
        let descriptor = [&[0x4D], &short(&text)[..]].concat();
        body.extend(u16::try_from(n).unwrap().to_be_bytes());
        body.extend(day.to_be_bytes());
        body.extend(decimals(start.rem_euclid(86_400)));
        body.extend(decimals(*length));
        body.extend(u16::try_from(descriptor.len()).unwrap().to_be_bytes());
        body.extend(descriptor);
    }
    section(table, service.service, &body)
}

/// Returns a section with names of services of one stream.
pub(super) fn names_section(names: &[(ServiceId, &str)]) -> Vec<u8> {
    let first = names[0].0;
    let mut body = [&first.network.to_be_bytes()[..], &[0xFF]].concat();
    for (service, name) in names {
        let data = [&[1], &short(b"Provider")[..], &short(name.as_bytes())].concat();
        let descriptor = [&[0x48], &short(&data)[..]].concat();
        body.extend(service.service.to_be_bytes());
        body.push(0xFC);
        body.extend((u16::try_from(descriptor.len()).unwrap() | 0x8000).to_be_bytes());
        body.extend(descriptor);
    }
    section(0x42, first.stream, &body)
}
