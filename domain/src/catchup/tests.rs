//! What archives say about themselves, and the addresses that follow.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(' ').filter_map(|it| it.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[track_caller]
fn archive(entry: &str) -> Archive {
    Archive::from_attributes(&pairs(entry)).unwrap_or_else(|| panic!("{entry} has an archive"))
}

/// 2026-03-29 00:30 UTC, half an hour before the clocks of Europe go forward.
const START: i64 = 1_774_744_200;

fn times(start: i64) -> ArchiveTimes {
    ArchiveTimes { start, duration: 3_600, now: START + 86_400 }
}

#[track_caller]
fn address(entry: &str, live: &str, zone: &str, expected: Option<&str>) {
    let archive = archive(entry);
    let zone = ProviderZone::named(zone).expect("a zone");
    let address = archive.address(&SourceUrl::new(live), archive.source.as_ref(), times(START), &zone);
    assert_eq!(address.as_ref().map(SourceUrl::expose), expected, "{entry} {live}");
}

#[test]
fn what_an_entry_says_under_any_name_comes_before_the_first_line() {
    let header = "catchup=append catchup-days=5 catchup-source=?utc=${start}";
    for (entry, expected) in [
        ("", Some((ArchiveKind::Append, 5))),
        ("catchup-type=flussonic-ts timeshift=7", Some((ArchiveKind::FlussonicTs, 7))),
        ("catchup=shift", Some((ArchiveKind::Shift, 5))),
        ("catchup-type=default catchup-source=http://h/{utc}", Some((ArchiveKind::Whole, 5))),
        ("tvg-rec=3", Some((ArchiveKind::Append, 3))),
        ("timeshift=3", Some((ArchiveKind::Append, 3))),
        ("catchup-days=3", Some((ArchiveKind::Append, 3))),
        ("catchup-correction=1", Some((ArchiveKind::Append, 5))),
        ("catchup=none", None),
        ("tvg-rec=0", None),
        ("timeshift=0", None),
        ("catchup-days=0", None),
    ] {
        let mut attributes = pairs(entry);
        add_defaults(&mut attributes, &pairs(header));
        let found = Archive::from_attributes(&attributes).map(|it| (it.kind, it.days));
        assert_eq!(found, expected, "{entry}");
    }
}

#[test]
fn an_entry_without_an_archive_still_has_the_other_values_of_the_first_line() {
    let header = "catchup=append catchup-days=5 tvg-shift=2";
    for entry in ["tvg-rec=0", "timeshift=0", "catchup-days=0", "tvg-rec=0 timeshift=0"] {
        let mut attributes = pairs(entry);
        add_defaults(&mut attributes, &pairs(header));
        assert_eq!(attributes, pairs(&format!("{entry} tvg-shift=2")));
        assert_eq!(Archive::from_attributes(&attributes), None, "{entry}");
    }
}

#[test]
fn the_archive_of_an_entry_is_read_from_its_attributes() {
    for (entry, kind, days, correction) in [
        ("catchup=default catchup-source=http://h/{utc} catchup-days=3", ArchiveKind::Whole, 3, 0),
        ("catchup=default catchup-source=?utc={utc}", ArchiveKind::Append, 7, 0),
        ("catchup-source=http://h/{utc}", ArchiveKind::Whole, 7, 0),
        ("catchup-type=append catchup-source=?a={utc}", ArchiveKind::Append, 7, 0),
        ("catchup=shift catchup-days=-1", ArchiveKind::Shift, 7, 0),
        ("catchup=Timeshift catchup-days=900", ArchiveKind::Shift, 365, 0),
        ("timeshift=5", ArchiveKind::Shift, 5, 0),
        ("tvg-rec=2 catchup-correction=-1.5", ArchiveKind::Shift, 2, -5_400),
        ("catchup=fs", ArchiveKind::Flussonic, 7, 0),
        ("catchup=flussonic-ts tvg-rec=2", ArchiveKind::FlussonicTs, 2, 0),
        ("catchup=flussonic-hls", ArchiveKind::FlussonicHls, 7, 0),
        ("catchup=xc catchup-correction=99", ArchiveKind::Xtream, 7, 0),
        ("catchup=vod catchup-source=http://h/{utc}.mp4", ArchiveKind::Vod, 7, 0),
        ("catchup=vod", ArchiveKind::Vod, 7, 0),
        ("catchup=shift catchup-days=2.5", ArchiveKind::Shift, 3, 0),
        ("catchup=shift catchup-days=3days", ArchiveKind::Shift, 3, 0),
        ("catchup=shift catchup-days=3h", ArchiveKind::Shift, 7, 0),
    ] {
        let archive = archive(entry);
        assert_eq!((archive.kind, archive.days, archive.correction_s), (kind, days, correction), "{entry}");
    }
    for none in [
        "",
        "catchup=disabled tvg-rec=3",
        "catchup=default",
        "catchup=append",
        "catchup=shift catchup-days=0",
        "timeshift=0",
        "tvg-rec=x",
    ] {
        assert_eq!(Archive::from_attributes(&pairs(none)), None, "{none}");
    }
}

#[test]
fn the_archive_of_a_panel_has_a_depth_in_days() {
    assert_eq!(Archive::from_panel(false, Some(7)), None);
    for (days, expected) in [(Some(7), 7), (Some(0), 1), (None, 1), (Some(i64::MAX), 365)] {
        assert_eq!(Archive::from_panel(true, days).map(|it| it.days), Some(expected));
    }
}

#[test]
fn each_kind_of_archive_has_its_addresses() {
    let live = "http://h.example/live/u/p/7.ts";
    address(
        "catchup=shift",
        live,
        "UTC",
        Some("http://h.example/live/u/p/7.ts?utc=1774744200&lutc=1774830600"),
    );
    address("catchup=shift", "http://h/1?a=b", "UTC", Some("http://h/1?a=b&utc=1774744200&lutc=1774830600"));
    address(
        "catchup=append catchup-source=&t=${start}",
        "http://h/1?a=b",
        "UTC",
        Some("http://h/1?a=b&t=1774744200"),
    );
    for (live, end, expected) in [
        ("http://h/1", "?t={utc}", "http://h/1?t=1774744200"),
        ("http://h/1", "&t={utc}", "http://h/1?t=1774744200"),
        ("http://h/1?a=b", "?t={utc}", "http://h/1?a=b&t=1774744200"),
        ("http://h/1", "/{utc}.ts", "http://h/1/1774744200.ts"),
    ] {
        address(&format!("catchup=append catchup-source={end}"), live, "UTC", Some(expected));
    }
    for (live, expected) in [
        ("http://h.example/live/u/p/7.ts", "http://h.example/timeshift/u/p/60/2026-03-29:00-30/7.ts"),
        ("http://h.example/u/p/7", "http://h.example/timeshift/u/p/60/2026-03-29:00-30/7.ts"),
        ("https://h:8/sub/live/u/p/7.m3u8?x=1", "https://h:8/sub/timeshift/u/p/60/2026-03-29:00-30/7.m3u8"),
        ("http://h/live/{utc}/p/7.ts", "http://h/timeshift/%7Butc%7D/p/60/2026-03-29:00-30/7.ts"),
    ] {
        address("catchup=xc", live, "UTC", Some(expected));
    }
    address("catchup=xc", "http://h/7.ts", "UTC", None);
    address("catchup=xc", "http://h/u/p/list", "UTC", None);
    for (kind, live, expected) in [
        ("flussonic", "http://h/151/mpegts?token=t", "http://h/151/timeshift_abs-1774744200.ts?token=t"),
        ("fs", "http://h/325/index.m3u8?token=t", "http://h/325/timeshift_rel-86400.m3u8?token=t"),
        ("fs", "http://h/325/mono.m3u8", "http://h/325/mono-timeshift_rel-86400.m3u8"),
        ("flussonic-ts", "http://h/a/325/live", "http://h/a/325/timeshift_abs-1774744200.ts"),
        ("flussonic-hls", "http://h/325/mpegts", "http://h/325/timeshift_rel-86400.m3u8"),
    ] {
        address(&format!("catchup={kind}"), live, "UTC", Some(expected));
    }
    address("catchup=vod catchup-source=http://h/{utc}.mp4", live, "UTC", Some("http://h/1774744200.mp4"));
    address("catchup=default catchup-source=file:///{utc}", live, "UTC", None);
}

#[test]
fn every_placeholder_is_replaced_and_other_braces_stay() {
    for (placeholder, expected) in [
        ("{utc}", "1774744200"),
        ("${start}", "1774744200"),
        ("{utcend}", "1774747800"),
        ("${end}", "1774747800"),
        ("{lutc}", "1774830600"),
        ("${now}", "1774830600"),
        ("${timestamp}", "1774830600"),
        ("{duration}", "3600"),
        ("${duration}", "3600"),
        ("{duration:60}", "60"),
        ("{duration:7}", "515"),
        ("{offset:1}", "86400"),
        ("${offset}", "86400"),
        ("{offset:3600}", "24"),
        ("{Y}{m}{d}{H}{M}{S}", "20260329013000"),
        ("{utc:Y-m-d}_{utc:H:M:S}", "2026-03-29_01:30:00"),
        ("${start:YmdHMS}", "20260329013000"),
        ("{utcend:H:M}", "03:30"),
        ("{lutc:d}", "30"),
        ("?a=$utc&b=$utcend", "?a=1774744200&b=1774747800"),
        ("$start-$duration.ts", "1774744200-3600.ts"),
        ("${(b)yyyyMMddHHmmss}-${(e)yyyyMMddHHmmss}", "20260329013000-20260329033000"),
        ("${(b)timestamp}-${(e)timestamp}", "1774744200-1774747800"),
        ("{start:yyyy-MM-dd'T'HH:mm}", "2026-03-29'T'01:30"),
        ("{{start}}-{{end}}", "1774744200-1774747800"),
        ("{utc:}", "1774744200"),
        ("{}{{utc}", "{}{1774744200"),
        ("a$bc-{utc}?key=$1", "a$bc-1774744200?key=$1"),
    ] {
        let expected = format!("http://h/1774744200/{expected}");
        address(
            &format!("catchup-source=http://h/{{utc}}/{placeholder}"),
            "http://h/1",
            "Europe/Paris",
            Some(&expected),
        );
    }
    address(
        "catchup-source=http://h/{utc} catchup-correction=1",
        "http://h/1",
        "UTC",
        Some("http://h/1774740600"),
    );
}

#[test]
fn an_archive_whose_address_has_an_unknown_placeholder_has_no_addresses() {
    for placeholder in [
        "{unknown}",
        "${unknown}",
        "$unknown",
        "?utc=$utcstart",
        "{offset:0}",
        "{duration:x}",
        "{utc}/$TIME.ts",
        "{Q}",
        "{(x)yyyy}",
        // None of these names the start, so that the live programme would come.
        "fixed",
        "?lutc={lutc}&duration={duration}",
        "?start=%start%",
        "?start=[start]",
        "?start=$(start)",
        "?start=:start",
    ] {
        let live = "http://h/1";
        address(&format!("catchup-source=http://h/{placeholder}"), live, "UTC", None);
        let appended = archive(&format!("catchup=append catchup-source=/{placeholder}"));
        assert!(!appended.has_addresses(&SourceUrl::new(live)), "{placeholder}");
    }
}

/// Holds T-time.2.
#[test]
fn the_provider_gets_its_own_time_on_the_days_when_clocks_change() {
    let archive = archive("catchup=xc");
    let live = SourceUrl::new("http://h/live/u/p/7.ts");
    for (zone, start, expected) in [
        ("Europe/Paris", START, "2026-03-29:01-30"),
        ("Europe/Paris", START + 3_600, "2026-03-29:03-30"),
        // 2026-10-25 00:30 and 01:30 UTC, both of which are half past two in Paris.
        ("Europe/Paris", 1_792_888_200, "2026-10-25:02-30"),
        ("Europe/Paris", 1_792_891_800, "2026-10-25:02-30"),
        ("America/New_York", START, "2026-03-28:20-30"),
        ("Asia/Kolkata", START, "2026-03-29:06-00"),
        ("Australia/Lord_Howe", START, "2026-03-29:11-30"),
    ] {
        let zone = ProviderZone::named(zone).unwrap();
        let address = archive.address(&live, None, times(start), &zone).unwrap();
        assert!(address.expose().contains(expected), "{zone:?} {start}: {}", address.expose());
    }
}

#[test]
fn the_zone_of_a_panel_is_the_one_that_it_names_or_that_of_its_clocks() {
    let clock = |info: Value| {
        let Value::Object(info) = info else { panic!("an object") };
        ProviderZone::from_panel(&info).and_then(|it| it.clock(START)).map(|it| it.to_string())
    };
    let paris = Some("2026-03-29T01:30:00".to_owned());
    assert_eq!(clock(json!({ "timezone": " Europe/Paris" })), paris);
    let clocks = |local: &str, timestamp: Value| {
        clock(json!({ "timezone": "Nowhere", "time_now": local, "timestamp_now": timestamp }))
    };
    assert_eq!(clocks("2026-01-01 13:00:03", json!(1_767_268_800)), paris);
    assert_eq!(clocks("2026-01-01 12:59:58", json!("1767268800")), paris);
    assert_eq!(clocks("2026-01-03 13:00:00", json!(1_767_268_800)), None, "a wrong clock");
    assert_eq!(clock(json!({ "time_now": "now", "timestamp_now": 1 })), None);
    assert_eq!(clock(json!({})), None);
}

#[test]
fn every_form_of_a_start_is_read() {
    let expected = 1_769_884_200;
    for text in [
        "2026-01-31:18-30",
        "2026-01-31:18-30-00",
        "2026-01-31:18:30",
        "2026-01-31_18-30",
        "2026-01-31_18-30-00",
        "2026-01-31_18:30:00",
        "2026-01-31-18-30",
        "2026-01-31 18:30:00",
        "2026-01-31+18:30:00",
        "2026-01-31T18:30",
        "2026-01-31T18:30:00",
        "2026-01-31T18:30:00Z",
        "2026-01-31t18:30:00.123z",
        "2026-01-31T20:30:00+02:00",
        "2026-01-31T13:30:00-0500",
        "2026-01-31T13:30:00-05:00",
        "20260131T183000Z",
        "20260131183000",
        "202601311830",
        "20260131:1830",
        "20260131203000 +0200",
        "1769884200",
        "1769884200123",
        " 1769884200 ",
    ] {
        // A date of digits with an offset has no separator before its time.
        let text = text.replace("20260131203000 +", "20260131T203000 +");
        assert_eq!(parse_start(&text), Ok(expected), "{text}");
    }
    for text in [
        "",
        "zzz",
        "0",
        "-1",
        "2026",
        "20260131",
        "2026-01-31",
        "2026-02-30:10-00",
        "2026-01-31:25-00",
        "2026-01-31:18",
        "2026-01-31:18-30-00-00",
        "2026-01-31T18:30:00+99:99",
        "2026-01-31T18:30:00.x",
        "0001-01-01:00-00",
        "99999999999",
        "2026-01-31:+8-30",
        "２０２６-01-31:18-30",
        "2026-13-01T00:00:00Z",
    ] {
        assert_eq!(parse_start(text), Err(StartError), "{text}");
    }
}

proptest! {
    #[test]
    fn a_start_is_read_as_it_was_written(at in 700_000_000_i64..4_000_000_000) {
        let minute = at / 60 * 60;
        let clock = ProviderZone::utc().clock(minute).unwrap();
        for format in ["%Y-%m-%d:%H-%M", "%Y-%m-%d_%H-%M-%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y%m%d%H%M%S"] {
            let text = clock.strftime(format).to_string();
            prop_assert_eq!(parse_start(&text), Ok(minute), "{}", text);
        }
        prop_assert_eq!(parse_start(&at.to_string()), Ok(at));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,50}", template in "[{}$:a-zA-Z0-9]{0,60}", start in any::<i64>(), duration in any::<i64>()) {
        let _ = parse_start(&text);
        let archive = archive("catchup=default catchup-source=http://h/");
        let (live, source) = (SourceUrl::new(text), SourceUrl::new(format!("http://h/{template}")));
        let times = ArchiveTimes { start, duration, now: START };
        let _ = archive.address(&live, Some(&source), times, &ProviderZone::utc());
        for kind in ["xc", "fs", "flussonic-ts", "flussonic-hls", "shift"] {
            let archive = Archive { kind: ArchiveKind::from_name(kind).unwrap(), ..archive.clone() };
            let _ = archive.address(&live, None, times, &ProviderZone::utc());
        }
    }

    #[test]
    fn the_minute_of_a_start_survives_every_zone(at in 700_000_000_i64..4_000_000_000, zone in prop::sample::select(vec!["Europe/Paris", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])) {
        let local = ProviderZone::named(zone).unwrap().clock(at).unwrap();
        let zone = jiff::tz::TimeZone::get(zone).unwrap();
        let read = || zone.to_ambiguous_timestamp(local);
        let candidates = [read().earlier().unwrap().as_second(), read().later().unwrap().as_second()];
        prop_assert!(candidates.contains(&at), "{local}");
    }
}

#[test]
fn the_guide_names_a_programme_in_the_archive_on_the_servers_of_the_playlist_only() {
    let live = SourceUrl::new("http://h:80/live/1.ts");
    let check = |entry: &str, id: Option<&str>, expected: Option<&str>| {
        let archive = archive(entry);
        assert!(archive.needs_programme() && archive.has_addresses(&live), "{entry}");
        let (source, zone) = (archive.source.as_ref(), ProviderZone::utc());
        let address = archive.address_of(id, &live, source, times(START), &zone);
        assert_eq!(address.as_ref().map(SourceUrl::expose), expected, "{entry} {id:?}");
    };
    let of_time = "catchup=default catchup-source=http://h/a/${catchup-id}?u={utc}";
    check(of_time, Some("7:x"), Some("http://h/a/7:x?u=1774744200"));
    check(of_time, None, None);
    check("catchup=vod catchup-source=http://v/{catchup-id}", Some("7.mp4"), Some("http://v/7.mp4"));
    check("catchup=append catchup-source=&id={catchup-id}", Some("7"), Some("http://h:80/live/1.ts?id=7"));
    // The whole address.
    check("catchup=vod", Some("http://h:80/vod/7.ts"), Some("http://h:80/vod/7.ts"));
    for elsewhere in
        ["http://h/vod/7.ts", "http://192.168.0.1/", "http://h:80@192.168.0.1/", "file:///etc/passwd", "7"]
    {
        check("catchup=vod", Some(elsewhere), None);
    }
    // A name that would become a part of the server.
    let archive = archive("catchup=default catchup-source=http://h{catchup-id}/a");
    let address =
        archive.address_of(Some(".x"), &live, archive.source.as_ref(), times(START), &ProviderZone::utc());
    assert_eq!(address, None);
    assert!(!archive.has_addresses(&live));
}

#[test]
fn a_part_that_only_the_guide_names_begins_with_its_programme() {
    let begins = |entry: &str| archive(entry).begins_within(START - 600, START + 7);
    assert_eq!(begins("catchup=vod"), START - 600);
    assert_eq!(begins("catchup=default catchup-source=http://h/{catchup-id}/{utc}"), START + 7);
    assert_eq!(begins("catchup=shift"), START + 7);
}
