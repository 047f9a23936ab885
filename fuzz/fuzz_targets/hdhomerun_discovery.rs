//! Packets of the HDHomeRun discovery: nothing panics, a packet is read only with a valid checksum, and every answer is
//! shorter than a packet may be. The description of a device is read from the same bytes, and the addresses of descriptions
//! are made from them.
#![no_main]

use domain::discovery::AnnouncedDevice;
use domain::discovery::device::{DESCRIPTION_PORT, STATED_TUNERS_MAX, description_urls, stated_tuners};
use domain::discovery::hdhomerun::{DiscoverRequest, PACKET_BYTES_MAX, device_number, reply, request};
use domain::source_url::SourceUrl;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = DiscoverRequest::parse(data);
    // With a valid head and a valid checksum, so that the tags are read.
    let template = request(None);
    let mut packet = template[..2].to_vec();
    packet.extend_from_slice(&(data.len() as u16).to_be_bytes());
    packet.extend_from_slice(data);
    let crc = !packet.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    });
    packet.extend_from_slice(&crc.to_le_bytes());
    let parsed = DiscoverRequest::parse(&packet);
    assert!(parsed.is_none() || packet.len() <= PACKET_BYTES_MAX);

    assert!(stated_tuners(data).is_none_or(|it| (1..=STATED_TUNERS_MAX).contains(&it)));

    let text = String::from_utf8_lossy(data).into_owned();
    for url in description_urls(&SourceUrl::new(text.as_str()), DESCRIPTION_PORT) {
        assert!(url.is_http() && url.path() == "/discover.json", "{}", url.expose());
    }
    let number = device_number(&text);
    assert_eq!(device_number(&format!("{number:08x}")), number);
    let device = AnnouncedDevice { device_id: text.clone(), tuner_count: u32::MAX, base_url: text };
    assert!(reply(&device).is_none_or(|it| it.len() <= PACKET_BYTES_MAX));
    let own = DiscoverRequest::parse(&request(Some(number))).expect("a request of our own");
    assert!(own.is_for(&device));
});
