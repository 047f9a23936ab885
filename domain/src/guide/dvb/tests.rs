//! Sections of guide data, as a multiplexer sends them.

use super::testing::{section, short};
use super::*;

/// A descriptor.
fn tagged(tag: u8, data: &[&[u8]]) -> Vec<u8> {
    let data = data.concat();
    [&[tag, u8::try_from(data.len()).unwrap()], &data[..]].concat()
}

/// An event at 2026-01-15 with this time and length in binary-coded decimals.
fn event(time: [u8; 6], descriptors: &[Vec<u8>]) -> Vec<u8> {
    let descriptors = descriptors.concat();
    let length = u16::try_from(descriptors.len()).unwrap().to_be_bytes();
    // Day 61,055 of the modified Julian calendar.
    [&[0, 7, 0xEE, 0x7F], &time[..], &length, &descriptors].concat()
}

const SERVICE: ServiceId = ServiceId { network: 1, stream: 1_019, service: 10_301 };

/// Transport stream, network, last section and last table of a section with events.
const EVENTS_HEAD: [u8; 6] = [0x03, 0xFB, 0, 1, 0, 0x4E];

const EVENING: [u8; 6] = [0x19, 0x15, 0x00, 0x01, 0x30, 0x00];
const EVENING_START: i64 = 1_768_504_500;

fn events(table: u8, events: &[Vec<u8>]) -> Option<GuideSection> {
    read_section(&section(table, SERVICE.service, &[&EVENTS_HEAD[..], &events.concat()].concat()))
}

fn programmes(all: &[Vec<u8>]) -> Vec<Programme> {
    match events(0x4E, all) {
        Some(GuideSection::Events { programmes, .. }) => programmes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_becomes_a_programme_with_its_texts_in_every_language() {
    let all = event(
        EVENING,
        &[
            tagged(0x4D, &[b"deu", &short(b"\x05Die Tagessch\xE4u"), &short(b"Nachrichten")]),
            tagged(0x4D, &[b"eng", &short(b"The  News"), &short(b"")]),
            tagged(
                0x4E,
                &[&[0x01], b"deu", &short(&[short(b"Regie"), short(b"A. B.")].concat()), &short(b"Langer ")],
            ),
            tagged(0x4E, &[&[0x11], b"deu", &short(b""), &short(b"Text")]),
            tagged(0x54, &[&[0x21, 0], &[0x22, 0], &[0xF0, 0]]),
            tagged(0x55, &[b"DEU", &[9], b"FRA", &[0]]),
            tagged(0x50, &[&[0xF5, 0x0B, 1], b"deu"]),
            tagged(0x76, &[&[0x01 << 2], &short(b"tv.example/1"), &[0x02 << 2], &short(b"tv.example/s")]),
            tagged(0x99, &[b"private"]),
        ],
    );
    let found = programmes(&[all]);
    let [programme] = &found[..] else { panic!("{found:?}") };
    assert_eq!((programme.start, programme.stop - programme.start), (EVENING_START, 5_400));
    let titles: Vec<_> = programme.titles.iter().map(|it| (it.lang.as_deref(), it.text.as_str())).collect();
    assert_eq!(titles, [(Some("de"), "Die Tagesschäu"), (Some("en"), "The News")]);
    assert_eq!(programme.sub_title(), Some("Nachrichten"));
    assert_eq!(programme.description(), Some("Regie: A. B.\nLanger Text"));
    assert_eq!(programme.categories().collect::<Vec<_>>(), ["News / Weather", "News magazine"]);
    let ratings: Vec<_> =
        programme.ratings.iter().map(|it| (it.system.as_deref(), it.value.as_str())).collect();
    assert_eq!(ratings, [(Some("DEU"), "12")]);
    let video = programme.video.as_ref().unwrap();
    assert_eq!((video.aspect.as_deref(), video.quality.as_deref()), (Some("16:9"), Some("HDTV")));
    assert_eq!(programme.episode_numbers.len(), 2);
}

#[test]
fn a_short_text_alone_is_the_description() {
    let text = |short_text: &[u8], long: &[u8]| {
        let mut all = vec![tagged(0x4D, &[b"eng", &short(b"News"), &short(short_text)])];
        all.extend((!long.is_empty()).then(|| tagged(0x4E, &[&[0], b"eng", &short(b""), &short(long)])));
        let programme = programmes(&[event(EVENING, &all)]).remove(0);
        (programme.sub_title().map(str::to_owned), programme.description().map(str::to_owned))
    };
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(text(b"About it", b""), (None, of("About it")));
    assert_eq!(text(b"Part 2", b"About it"), (of("Part 2"), of("About it")));
    assert_eq!(text(b"About", b"About it and more"), (None, of("About it and more")));
    assert_eq!(text(b"", b""), (None, None));
}

#[test]
fn events_without_a_time_or_a_title_are_left_out() {
    let title = tagged(0x4D, &[b"eng", &short(b"News"), &short(b"")]);
    let all = [
        event([0xFF; 6], std::slice::from_ref(&title)),
        event([0x19, 0x15, 0, 0, 0, 0], std::slice::from_ref(&title)),
        event([0x1A, 0x15, 0, 1, 0, 0], std::slice::from_ref(&title)),
        event([0x25, 0x15, 0, 1, 0, 0], std::slice::from_ref(&title)),
        event([0x19, 0x60, 0, 1, 0, 0], std::slice::from_ref(&title)),
        event([0x19, 0x15, 0, 0x30, 0, 0], std::slice::from_ref(&title)),
        event(EVENING, &[]),
        event(EVENING, &[tagged(0x4D, &[b"eng", &[200]])]),
        event(EVENING, &[title]),
    ];
    assert_eq!(programmes(&all).len(), 1);
}

#[test]
fn tables_of_this_stream_and_of_others_are_told_apart() {
    for (table, expected) in [
        (0x4E, Some(true)),
        (0x4F, Some(false)),
        (0x50, Some(true)),
        (0x5F, Some(true)),
        (0x60, Some(false)),
        (0x6F, Some(false)),
        (0x70, None),
        (0x4D, None),
    ] {
        let found = match events(table, &[]) {
            Some(GuideSection::Events { service, is_of_this_stream, .. }) => {
                assert_eq!(service, SERVICE);
                Some(is_of_this_stream)
            }
            _ => None,
        };
        assert_eq!(found, expected, "{table:#x}");
    }
}

#[test]
fn names_of_services_are_read() {
    let service = |id: u16, descriptors: &[u8]| {
        let length = (u16::try_from(descriptors.len()).unwrap() | 0x8000).to_be_bytes();
        [&id.to_be_bytes()[..], &[0xFC], &length, descriptors].concat()
    };
    let name = |text: &[u8]| tagged(0x48, &[&[1], &short(b"Provider"), &short(text)]);
    let services = [
        service(10_301, &name(b"\x05Das Erste \x86HD\x87")),
        service(10_302, &name(b"")),
        service(10_303, &tagged(0x48, &[&[1]])),
        service(10_304, &[]),
    ];
    let body = [&[0, 1, 0xFF][..], &services.concat()].concat();
    for table in [0x42, 0x46] {
        let expected = GuideSection::Names(vec![(SERVICE, "Das Erste HD".to_owned())]);
        assert_eq!(read_section(&section(table, 1_019, &body)), Some(expected));
    }
    assert_eq!(SERVICE.key(), "dvb-1-1019-10301");
}

#[test]
fn a_section_that_is_not_in_force_or_cut_off_is_not_read() {
    let title = tagged(0x4D, &[b"eng", &short(b"News"), &short(b"")]);
    let whole = section(0x4E, 1, &[&EVENTS_HEAD[..], &event(EVENING, &[title])].concat());
    let mut next = whole.clone();
    next[5] &= !1;
    assert_eq!(read_section(&next), None);
    for end in 0..whole.len() {
        if let Some(GuideSection::Events { programmes, .. }) = read_section(&whole[..end]) {
            assert!(programmes.is_empty(), "{end}");
        }
    }
}
