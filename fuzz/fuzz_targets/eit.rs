//! Guide data inside of a transport stream: any section is read without a panic, within bounds, and the result can be
//! written as a guide and read again. The same bytes go through the assembly of sections from packets.
#![no_main]

use domain::guide::dvb::{GuideSection, decode_text, read_section};
use domain::guide::programme::{from_xml, to_xml};
use libfuzzer_sys::fuzz_target;
use media::ts::packet::{Packet, packets};
use media::ts::service_info::ServiceInfoReader;

fuzz_target!(|data: &[u8]| {
    check(data);
    let text = decode_text(data);
    assert!(text.len() <= data.len() * 4 && !text.contains('\0'));
    let mut reader = ServiceInfoReader::default();
    for packet in packets(&data[..data.len() / 188 * 188]) {
        reader.packet(Packet::new(packet), |section| {
            assert!(section.len() <= 4_098);
            check(section);
            true
        });
    }
});

fn check(section: &[u8]) {
    match read_section(section) {
        Some(GuideSection::Events { programmes, .. }) => {
            for programme in programmes {
                assert!(!programme.title().is_empty() && programme.start < programme.stop);
                let mut xml = String::new();
                to_xml(&programme, &mut xml);
                from_xml(programme.start, programme.stop, &xml).expect("our own XML");
            }
        }
        Some(GuideSection::Names(names)) => assert!(names.iter().all(|(_, name)| !name.is_empty())),
        None => {}
    }
}
