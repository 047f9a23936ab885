//! Guides of any kind: nothing panics, every item is within its limits, the sizes of the parts make no difference,
//! stored forms are canonical, and the guide that is written from the items is read as the same. Damage in one programme of a
//! valid guide costs no other.
#![no_main]

use std::io::{BufRead, BufReader};

use domain::guide::marks::with_marks;
use domain::guide::programme::{ProgrammeId, from_xml, to_xml};
use domain::guide::xmltv::time::{parse_time, push_time};
use domain::guide::xmltv::{
    Item, XmltvChannel, XmltvLimits, XmltvReader, XmltvSummary, write_channel, write_end, write_programme,
    write_start,
};
use libfuzzer_sys::fuzz_target;

/// Small limits, so that small inputs reach them.
const LIMITS: XmltvLimits = XmltvLimits {
    element_bytes_max: 512,
    depth_max: 4,
    attributes_max: 6,
    junk_bytes_max: 256,
    doctype_bytes_max: 64,
    channels_max: 4,
    programmes_max: 8,
    key_bytes_max: 16,
    names_max: 2,
};

fuzz_target!(|data: &[u8]| {
    // The first byte determines the size of the parts.
    let Some((part, guide)) = data.split_first() else { return };
    let whole = read(guide, LIMITS);
    let input = BufReader::with_capacity(usize::from(*part).max(1), guide);
    assert_eq!(read(input, LIMITS), whole);

    let (items, _, summary) = whole;
    assert!(summary.channels <= LIMITS.channels_max && summary.programmes <= LIMITS.programmes_max);
    let mut out = String::new();
    write_start(&mut out, "fuzz");
    let mut expected = Vec::new();
    for item in items {
        match &item {
            Item::Channel { key, names, icon } => {
                assert!(!key.is_empty() && key.len() <= LIMITS.key_bytes_max);
                assert!(names.len() <= LIMITS.names_max);
                let written: Vec<_> = names.iter().map(String::as_str).collect();
                write_channel(&mut out, &XmltvChannel { id: key, names: &written, icon: icon.as_deref() });
                let names = if names.is_empty() { vec![key.clone()] } else { names.clone() };
                expected.push(Item::Channel { key: key.clone(), names, icon: icon.clone() });
            }
            Item::Programme { channel, programme } => {
                assert!(!channel.is_empty() && channel.len() <= LIMITS.key_bytes_max);
                assert!(programme.start <= programme.stop);
                assert!((ProgrammeId::START_MIN..=ProgrammeId::START_MAX).contains(&programme.start));
                let _ = with_marks(programme);
                let _ =
                    (programme.season_episode(), programme.year(), programme.imdb_id(), programme.tmdb_id());
                let mut inner = String::new();
                to_xml(programme, &mut inner);
                assert_eq!(
                    from_xml(programme.start, programme.stop, &inner).as_ref(),
                    Ok(programme),
                    "{inner}"
                );
                write_programme(&mut out, channel, programme.start, programme.stop, &inner);
                expected.push(item);
            }
        }
    }
    write_end(&mut out);
    let (items, error, summary) = read(out.as_bytes(), XmltvLimits::default());
    assert_eq!((items, error), (expected, None), "{out}");
    assert_eq!(summary.n_skipped() + summary.repaired, 0);
    damage_one(*part, guide);

    if let Some(time) = std::str::from_utf8(guide).ok().and_then(parse_time) {
        let mut out = String::new();
        push_time(&mut out, time);
        assert_eq!(parse_time(&out), Some(time));
    }
});

/// Replaces a part of the second of three programmes: the first and the third one stay.
fn damage_one(at: u8, damage: &[u8]) {
    let programme = |n: u32| {
        format!(
            "<programme start=\"2026010{n}180000 +0000\" stop=\"2026010{n}190000 +0000\" channel=\"a\"><title lang=\"en\">T{n}\
             </title><desc><![CDATA[D]]></desc><!-- c --><icon src=\"http://h/{n}\"/></programme>\n"
        )
    };
    let damaged = programme(2);
    let at = usize::from(at) % damaged.len();
    let guide = [
        &b"<tv>\n"[..],
        programme(1).as_bytes(),
        &damaged.as_bytes()[..at],
        damage,
        &damaged.as_bytes()[(at + damage.len()).min(damaged.len() - 1).max(at)..],
        programme(3).as_bytes(),
        b"</tv>",
    ]
    .concat();
    // Whole programmes, comments and documents can be in the damage.
    let is_whole = [&b"-->"[..], b"]]>", b"?>", b"programme", b"channel", b"tv"]
        .iter()
        .any(|it| damage.windows(it.len()).any(|part| part.eq_ignore_ascii_case(it)));
    let (items, error, _) = read(guide.as_slice(), XmltvLimits::default());
    if !is_whole {
        let titles = items.iter().filter_map(|it| match it {
            Item::Programme { programme, .. } => Some(programme.title()),
            Item::Channel { .. } => None,
        });
        let titles: Vec<_> = titles.collect();
        assert_eq!((titles.first(), titles.last()), (Some(&"T1"), Some(&"T3")), "{}", guide.escape_ascii());
        assert_eq!(error, None);
    }
}

fn read(input: impl BufRead, limits: XmltvLimits) -> (Vec<Item>, Option<String>, XmltvSummary) {
    let mut reader = XmltvReader::new(input, limits);
    let (mut items, mut error) = (Vec::new(), None);
    for item in &mut reader {
        match item {
            Ok(item) => items.push(item),
            Err(fault) => error = Some(fault.to_string()),
        }
    }
    let summary = *reader.summary();
    (items, error, summary)
}
