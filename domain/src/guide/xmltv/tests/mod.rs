//! The reader, and guides that the writer writes.

use std::io::{BufReader, Read};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::guide::programme::{Programme, from_xml, to_xml};

mod corpus;
mod damage;

/// 2024-05-06 18:00:00 UTC.
const AT: i64 = 1_715_018_400;
const HOUR: i64 = 3_600;

/// The items of a guide, the error at its end, and the counts.
type Outcome = (Vec<Item>, Option<String>, XmltvSummary);

/// Reads a guide, and again with parts of another size.
fn read_with(bytes: &[u8], limits: XmltvLimits) -> Outcome {
    let whole = read_parts(bytes, limits);
    assert_eq!(read_parts(BufReader::with_capacity(1, bytes), limits), whole, "parts of one byte");
    whole
}

fn read_parts(input: impl std::io::BufRead, limits: XmltvLimits) -> Outcome {
    let mut reader = XmltvReader::new(input, limits);
    let (mut items, mut error) = (Vec::new(), None);
    for item in &mut reader {
        assert!(error.is_none(), "an item after an error");
        match item {
            Ok(item) => items.push(item),
            Err(fault) => error = Some(fault.to_string()),
        }
    }
    let summary = *reader.summary();
    assert_eq!(items.len() as u64, summary.channels + summary.programmes);
    (items, error, summary)
}

fn read(bytes: impl AsRef<[u8]>) -> Outcome {
    read_with(bytes.as_ref(), XmltvLimits::default())
}

/// Returns the programmes of a guide without errors: channel, start and stop after [`AT`], and title.
fn programmes(guide: impl AsRef<[u8]>) -> Vec<(String, i64, i64, String)> {
    let (items, error, _) = read(guide);
    assert_eq!(error, None);
    let of_programme = |it| match it {
        Item::Programme { channel, programme } => {
            Some((channel, programme.start - AT, programme.stop - AT, programme.title().to_owned()))
        }
        Item::Channel { .. } => None,
    };
    items.into_iter().filter_map(of_programme).collect()
}

/// Returns the titles of the programmes of a guide without errors.
fn titles(guide: impl AsRef<[u8]>) -> Vec<String> {
    programmes(guide).into_iter().map(|it| it.3).collect()
}

/// Returns the title of a programme.
fn title_of(item: &Item) -> &str {
    match item {
        Item::Programme { programme, .. } => programme.title(),
        Item::Channel { .. } => panic!("{item:?} is a channel"),
    }
}

/// Returns a programme of an hour, as guides write it.
fn element(title: &str) -> String {
    format!(
        "<programme start='20240506180000' stop='20240506190000' channel='a'><title>{title}</title></programme>"
    )
}

#[test]
fn channels_and_programmes_come_in_the_order_of_the_guide() {
    let guide = "<tv generator-info-name='x'>\
        <channel id=' a.1 '><display-name lang='en'>A &amp; B</display-name><display-name> </display-name>\
        <display-name>Two</display-name><display-name>Two</display-name><icon/><icon src='http://h/a'/></channel>\
        <programme start='20240506200000 +0200' stop='20240506190000 +0000' channel='a.1' clumpidx='0/2'>\
        <title>News</title></programme><channel id='b'/></tv>";
    let (items, error, summary) = read(guide);
    assert_eq!(error, None);
    let programme = from_xml(AT, AT + HOUR, " clumpidx=\"0/2\"><title>News</title>").unwrap();
    let names = vec!["A & B".to_owned(), "Two".to_owned()];
    assert_eq!(
        items,
        [
            Item::Channel { key: "a.1".into(), names, icon: Some("http://h/a".into()) },
            Item::Programme { channel: "a.1".into(), programme },
            Item::Channel { key: "b".into(), names: Vec::new(), icon: None },
        ]
    );
    assert_eq!((summary.channels, summary.programmes, summary.n_skipped()), (2, 1, 0));
    assert_eq!((summary.repaired, summary.first_skip), (0, None));
}

#[test]
fn a_programme_without_a_stop_after_its_start_lasts_as_long_as_it_says_or_until_the_next_one() {
    let at = |time: &str, rest: &str| {
        format!("<programme start='20240506{time}' channel='a'{rest}<title>{time}</title></programme>")
    };
    let guide = [
        "<tv>".to_owned(),
        at("1800", ">"),
        at("1810", " stop=''>"),
        at("1820", " stop='20240506182000'>"),
        at("1830", " stop='20240506180000'>"),
        at("1840", " stop='later'>"),
        at("1850", " stop='202405061800'><length units='minutes'>5</length>"),
        at("1900", "><length units='hours'>999999</length>"),
        at("1910", " stop='20240531'>"),
        at("1920", " stop='202405061930'>"),
        "</tv>".to_owned(),
    ]
    .concat();
    let minutes: Vec<_> = programmes(&guide).into_iter().map(|it| (it.2 - it.1) / 60).collect();
    assert_eq!(minutes, [0, 0, 0, 0, 0, 5, 7 * 24 * 60, 7 * 24 * 60, 10]);
    let summary = read(&guide).2;
    assert_eq!((summary.stops_added, summary.stops_wrong), (7, 4));
}

#[test]
fn an_element_without_channel_or_start_is_skipped_alone_and_counted_by_its_reason() {
    for (broken, reason) in [
        ("<programme start='20240506180000'><title>A</title></programme>", XmltvSkip::NoChannel),
        ("<programme start='20240506180000' channel=' '><title>A</title></programme>", XmltvSkip::NoChannel),
        ("<programme channel='a'><title>A</title></programme>", XmltvSkip::NoStart),
        ("<programme start='soon' channel='a'><title>A</title></programme>", XmltvSkip::NoStart),
        ("<programme start='19991231235959' channel='a'><title>A</title></programme>", XmltvSkip::OutOfRange),
        ("<programme start='22000101000000' channel='a'><title>A</title></programme>", XmltvSkip::OutOfRange),
        ("<channel><display-name>A</display-name></channel>", XmltvSkip::NoChannel),
    ] {
        let guide = format!("<tv>{}\n ä{broken}{}{broken}</tv>", element("before"), element("after"));
        assert_eq!(titles(&guide), ["before", "after"], "{broken}");
        let summary = read(&guide).2;
        assert_eq!((summary.skipped(reason), summary.n_skipped()), (2, 2), "{broken}");
        assert_eq!(summary.first_skip, Some((XmltvPlace { line: 2, column: 3 }, reason)));
    }
}

#[test]
fn every_limit_costs_what_is_beyond_it_only() {
    let small = XmltvLimits {
        element_bytes_max: 300,
        depth_max: 3,
        attributes_max: 4,
        key_bytes_max: 4,
        names_max: 2,
        ..XmltvLimits::default()
    };
    let large = "x".repeat(300);
    let with = |text: &str| element(&format!("beyond</title>{text}<title>B"));
    for beyond in [
        with(&large),
        with(&large.repeat(1_000)),
        // The next element begins before its end, which is far beyond the limit.
        with(&large).replace("</programme>", ""),
        with("<desc><a><a><a></a></a></a></desc>"),
        with("<desc a='' b='' c='' d='' e=''/>"),
    ] {
        let guide = format!("<tv>{}{beyond}{}</tv>", element("before"), element("after"));
        let (items, error, summary) = read_with(guide.as_bytes(), small);
        let titles: Vec<_> = items.iter().map(title_of).collect();
        assert_eq!((titles, error), (vec!["before", "beyond", "after"], None), "{}", &beyond[..80]);
        assert_eq!((summary.repaired, summary.n_skipped()), (1, 0), "{}", &beyond[..80]);
    }
    for beyond in [element("A").replace("'a'", "'abcde'"), "<channel id='abcde'/>".to_owned()] {
        let guide = format!("<tv>{}{beyond}{}</tv>", element("before"), element("after"));
        let (items, error, summary) = read_with(guide.as_bytes(), small);
        assert_eq!((items.len(), error, summary.skipped(XmltvSkip::NoChannel)), (2, None, 1));
    }
    let names = "<display-name>a</display-name><display-name>b</display-name><display-name>c</display-name>";
    let channel = format!("<tv><channel id='a'>{names}</channel></tv>");
    let (items, ..) = read_with(channel.as_bytes(), small);
    assert!(matches!(&items[..], [Item::Channel { names, .. }] if names.len() == 2));

    let guide = format!("<tv>{}{}</tv>", "<channel id='a'/>".repeat(3), element("A").repeat(3));
    let few = XmltvLimits { channels_max: 2, programmes_max: 1, ..XmltvLimits::default() };
    let (items, error, summary) = read_with(guide.as_bytes(), few);
    assert_eq!((items.len(), error, summary.skipped(XmltvSkip::TooMany)), (3, None, 3));
}

#[test]
fn a_large_guide_takes_no_more_memory_than_a_small_one() {
    /// Repeats a text.
    struct Repeated<'a> {
        text: &'a [u8],
        n_left: usize,
        unread: &'a [u8],
    }

    impl Read for Repeated<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            if self.unread.is_empty() && self.n_left > 0 {
                self.n_left -= 1;
                self.unread = self.text;
            }
            self.unread.read(out)
        }
    }

    let long = "x".repeat(1_000_000);
    for part in [
        element("A").repeat(10_000),
        format!("{}<!-- {long} -->{long}<?{long}?>", element("A")),
        format!("{}<programme start='20240506180000' channel='a'><title>{long}", element("A")),
        format!("{}{}", element("A"), element(&long)),
        format!("<programme channel='a' start='2024'/><programme channel='b' start='20240506'><!--{long}"),
        format!("<tv>{}", "<!--<?<![CDATA[<!DOCTYPE <title a='<a b=\"".repeat(10_000)),
    ] {
        let input = BufReader::new(Repeated { text: part.as_bytes(), n_left: 8, unread: b"" });
        let mut reader = XmltvReader::new(input, XmltvLimits::default());
        let mut n_kept_max = 0;
        while reader.next().is_some() {
            n_kept_max = n_kept_max.max(reader.n_bytes_kept());
        }
        assert!(n_kept_max <= XmltvLimits::default().element_bytes_max + 256 * 1024, "{n_kept_max} bytes");
    }
}

#[test]
fn an_error_of_the_source_ends_the_guide_after_its_last_whole_element() {
    struct Failing<'a>(&'a [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() { Err(std::io::Error::other("the disk is gone")) } else { self.0.read(out) }
        }
    }

    let guide = format!("<tv>{}{}<programme", element("A").repeat(1_000), "<channel id='b'/>");
    let (items, error, _) = read_parts(BufReader::new(Failing(guide.as_bytes())), XmltvLimits::default());
    assert!(items.len() <= 1_001);
    assert_eq!(error.as_deref(), Some("the disk is gone"));
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9&<>\"'ä€😀;]{1,10}"
}

proptest! {
    #[test]
    fn the_guide_that_is_written_is_read_as_the_same(
        channels in vec((word(), word()), 0..4),
        programmes in vec((word(), 0..1_000_000_i64, 1..100_000_i64, word(), word()), 0..6),
    ) {
        let mut out = String::new();
        let mut expected = Vec::new();
        write_start(&mut out, "1");
        for (key, name) in channels {
            write_channel(&mut out, &XmltvChannel { id: &key, names: &[&name], icon: Some(&name) });
            let icon = Some(name.clone());
            expected.push(Item::Channel { key, names: vec![name], icon });
        }
        for (channel, start, seconds, title, inner) in programmes {
            let (start, stop) = (AT + start, AT + start + seconds);
            let element = format!("<title>{}</title><new/>", title.replace(['&', '<', '>'], ""));
            let mut programme = from_xml(start, stop, &element).unwrap();
            programme.clump_index = Some(inner);
            let mut inner = String::new();
            to_xml(&programme, &mut inner);
            write_programme(&mut out, &channel, start, stop, &inner);
            expected.push(Item::Programme { channel, programme });
        }
        write_end(&mut out);
        let (items, error, summary) = read(&out);
        prop_assert_eq!((items, error), (expected, None));
        prop_assert_eq!(summary.n_skipped() + summary.stops_added + summary.repaired, 0);
    }

    #[test]
    fn no_guide_makes_a_panic(
        parts in vec(prop_oneof![
            "\\PC{0,8}",
            Just("<tv>".to_owned()), Just("</tv>".to_owned()), Just("<!--".to_owned()), Just("-->".to_owned()),
            Just("<![CDATA[".to_owned()), Just("]]>".to_owned()), Just("<!DOCTYPE tv [".to_owned()),
            Just("<programme start='20240506180000' channel='a'>".to_owned()), Just("</programme>".to_owned()),
            Just("<title>".to_owned()), Just("</title>".to_owned()), Just("<channel id=\"".to_owned()),
            Just("\"/>".to_owned()), Just("&eacute;&#0;&".to_owned()), Just("\0\u{1}<".to_owned()),
        ], 0..20),
    ) {
        let limits = XmltvLimits { element_bytes_max: 100, ..XmltvLimits::default() };
        for item in read_with(parts.concat().as_bytes(), limits).0 {
            let Item::Programme { programme, .. } = item else { continue };
            let mut inner = String::new();
            to_xml(&programme, &mut inner);
            prop_assert_eq!(from_xml(programme.start, programme.stop, &inner).unwrap(), programme);
        }
    }
}

#[test]
fn an_empty_programme_is_a_programme() {
    assert_eq!(titles("<tv><programme start='2024' stop='2025' channel='a'/></tv>"), [""]);
    assert_eq!(Programme::default().title(), "");
}
