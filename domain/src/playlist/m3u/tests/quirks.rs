//! Quirks of real playlists, and the resulting items. Add a row for a new quirk.

use std::fmt::Write;
use std::iter::repeat_n;

use crate::entry_details::PlayerOption;
use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, PlaylistSummary, parse};

/// Formats entries as `line "name" address key=value…`, problems as `! line kind`, headers as `# guides`.
fn describe(item: &PlaylistItem) -> String {
    let mut text = String::new();
    match item {
        PlaylistItem::Header(it) => {
            text.push('#');
            it.guide_urls.iter().for_each(|url| write!(text, " {}", url.expose()).unwrap());
            it.attributes.iter().for_each(|(key, value)| write!(text, " {key}={value}").unwrap());
        }
        PlaylistItem::Problem(it) => write!(text, "! {} {:?}", it.line, it.kind).unwrap(),
        PlaylistItem::Entry(it) => {
            write!(text, "{} {:?} {}", it.line, it.name, it.url.expose()).unwrap();
            let fields = [
                ("id", it.tvg_id.clone()),
                ("tvg-name", it.tvg_name.clone()),
                ("logo", it.tvg_logo.clone()),
                ("no", it.tvg_chno.map(|it| it.to_string())),
                ("group", it.group.clone()),
                ("agent", it.headers.user_agent.clone()),
                ("referrer", it.headers.referrer.clone()),
            ];
            for (key, value) in fields {
                value.iter().for_each(|value| write!(text, " {key}={value}").unwrap());
            }
            it.headers.extra.iter().for_each(|(key, value)| write!(text, " {key}: {value}").unwrap());
            it.attributes.iter().for_each(|(key, value)| write!(text, " {key}={value}").unwrap());
            for PlayerOption { form, name, value } in &it.options {
                write!(text, " [{form:?} {name}={value}]").unwrap();
            }
        }
    }
    text
}

#[track_caller]
fn check(quirk: &str, input: impl AsRef<[u8]>, expected: &[&str]) {
    let (items, _) = parse(input.as_ref(), PlaylistLimits::default());
    assert_eq!(items.iter().map(describe).collect::<Vec<_>>(), expected, "{quirk}");
}

/// Checks one `#EXTINF` line, followed by an address.
#[track_caller]
fn extinf(quirk: &str, line: &str, expected: &[&str]) {
    check(quirk, format!("#EXTINF{line}\nhttp://h/1\n"), expected);
}

// Holds T-pl.1.
#[test]
fn attributes_are_parsed_as_intended() {
    extinf(
        "plain",
        r#":-1 tvg-id="cnn" group-title="News",CNN"#,
        &[r#"1 "CNN" http://h/1 id=cnn group=News"#],
    );
    extinf(
        "equals sign",
        r#":-1 tvg-logo="http://l/a?x==" tvg-id="a",A"#,
        &[r#"1 "A" http://h/1 id=a logo=http://l/a?x=="#],
    );
    extinf(
        "comma",
        r#":-1 group-title="News, World" tvg-id="a",A"#,
        &[r#"1 "A" http://h/1 id=a group=News, World"#],
    );
    extinf("comma in the name", r#":-1 tvg-id="a",Pay, or Play"#, &[r#"1 "Pay, or Play" http://h/1 id=a"#]);
    extinf(
        "apostrophe",
        r#":-1 tvg-name="Bob's" tvg-id="a",Bob's TV"#,
        &[r#"1 "Bob's TV" http://h/1 id=a tvg-name=Bob's"#],
    );
    extinf(
        "quote in a value",
        r#":-1 tvg-name="The "Best" TV" tvg-id="a",A"#,
        &[r#"1 "A" http://h/1 id=a tvg-name=The "Best" TV"#],
    );
    extinf(
        "quote in the name",
        r#":-1 tvg-id="a",A "quoted" name"#,
        &[r#"1 "A \"quoted\" name" http://h/1 id=a"#],
    );
    extinf("no space between", r#":-1 tvg-id="a"tvg-name="b",A"#, &[r#"1 "A" http://h/1 id=a tvg-name=b"#]);
    extinf(
        "characters after a value",
        r#":-1 tvg-id="a"!! tvg-name="b",A"#,
        &[r#"1 "A" http://h/1 id=a tvg-name=b"#],
    );
    extinf(
        "single quotes",
        r#":-1 tvg-id='a' tvg-name='Bob's TV',A"#,
        &[r#"1 "A" http://h/1 id=a tvg-name=Bob's TV"#],
    );
    extinf("no quotes", r#":-1 tvg-id=a group-title=News,A"#, &[r#"1 "A" http://h/1 id=a group=News"#]);
    extinf("no value", r#":-1 tvg-id= tvg-name="b",A"#, &[r#"1 "A" http://h/1 tvg-name=b"#]);
    extinf("empty value", r#":-1 tvg-id="" tvg-name="",A"#, &[r#"1 "A" http://h/1"#]);
    extinf("spaces around the equals sign", r#":-1 tvg-id = "a",A"#, &[r#"1 "A" http://h/1 id=a"#]);
    extinf("repeated", r#":-1 tvg-id="" tvg-id="a" tvg-id="b",A"#, &[r#"1 "A" http://h/1 id=a"#]);
    extinf("case", r#":-1 TVG-ID="a" Group-Title="News",A"#, &[r#"1 "A" http://h/1 id=a group=News"#]);
    extinf(
        "tabs",
        ":-1\ttvg-id=\"a\"\tgroup-title=\"A\tB\",A\tname",
        &[r#"1 "A name" http://h/1 id=a group=A B"#],
    );
    extinf(
        "others",
        r#":-1 catchup="default" Tvg-Shift="+1",A"#,
        &[r#"1 "A" http://h/1 catchup=default tvg-shift=+1"#],
    );
    extinf("words between attributes", r#":-1 junk tvg-id="a" junk,A"#, &[r#"1 "A" http://h/1 id=a"#]);
    extinf(
        "commas between attributes",
        r#":-1,tvg-id="a",tvg-name="b",A"#,
        &[r#"1 "A" http://h/1 id=a tvg-name=b"#],
    );
    extinf("a name like an attribute", r#":-1,a="b""#, &[r#"1 "a=\"b\"" http://h/1"#]);
}

#[test]
fn an_unclosed_quote_affects_one_value_and_is_reported() {
    let reported = "! 1 UnterminatedQuote";
    extinf(
        "last",
        r#":-1 tvg-id="a" group-title="News,CNN"#,
        &[reported, r#"1 "CNN" http://h/1 id=a group=News"#],
    );
    extinf(
        "before another",
        r#":-1 tvg-name="CNN tvg-id="a",A"#,
        &[reported, r#"1 "A" http://h/1 id=a tvg-name=CNN"#],
    );
    extinf("no comma", r#":-1 tvg-name="CNN"#, &[reported, r#"1 "CNN" http://h/1 tvg-name=CNN"#]);
    extinf("at the end", r#":-1 tvg-name=""#, &[reported, r#"1 "1" http://h/1"#]);
}

#[test]
fn the_name_follows_the_comma() {
    extinf("not in tvg-name", r#":-1 tvg-name="other",CNN"#, &[r#"1 "CNN" http://h/1 tvg-name=other"#]);
    extinf("empty: tvg-name", r#":-1 tvg-name="CNN","#, &[r#"1 "CNN" http://h/1 tvg-name=CNN"#]);
    extinf("empty: end of the address", ":-1,  ", &[r#"1 "1" http://h/1"#]);
    extinf("missing comma", r#":-1 tvg-id="a" CNN HD"#, &[r#"1 "CNN HD" http://h/1 id=a"#]);
    extinf("missing comma and name", r#":-1 tvg-id="a""#, &[r#"1 "1" http://h/1 id=a"#]);
    extinf("no attributes", ":-1,CNN", &[r#"1 "CNN" http://h/1"#]);
    extinf("no duration", ":,CNN", &[r#"1 "CNN" http://h/1"#]);
    extinf("no duration, a name with a number", ":3sat", &[r#"1 "3sat" http://h/1"#]);
    extinf("no duration but attributes", r#":tvg-id="a",CNN"#, &[r#"1 "CNN" http://h/1 id=a"#]);
    extinf("no space after the duration", r#":-1tvg-id="a",CNN"#, &[r#"1 "CNN" http://h/1 id=a"#]);
    extinf("no colon", " -1,CNN", &[r#"1 "CNN" http://h/1"#]);
    extinf("nothing", "", &[r#"1 "1" http://h/1"#]);
    extinf("emoji", ":-1,📺 Kanal ⚽", &[r#"1 "📺 Kanal ⚽" http://h/1"#]);
    extinf("right to left", ":-1,الجزيرة", &[r#"1 "الجزيرة" http://h/1"#]);
    check(
        "host, where the address has no path",
        "udp://@239.0.0.1:1234",
        &[r#"1 "239.0.0.1" udp://@239.0.0.1:1234"#],
    );
    check("percent codes", "http://h/My%20TV.ts?x", &[r#"1 "My TV.ts" http://h/My%20TV.ts?x"#]);
    check("nothing at all", "file:///", &[r#"1 "line 1" file:///"#]);
}

#[test]
fn a_duration_is_a_number_or_missing() {
    let duration =
        |line: &str| match parse(format!("#EXTINF:{line}\nhttp://h/1").as_bytes(), PlaylistLimits::default())
            .0
            .pop()
        {
            Some(PlaylistItem::Entry(entry)) => entry.duration,
            other => panic!("no entry: {other:?}"),
        };
    assert_eq!(duration("-1,A"), Some(-1.0));
    assert_eq!(duration("0 ,A"), Some(0.0));
    assert_eq!(duration("12.5 tvg-id=\"a\",A"), Some(12.5));
    assert_eq!(duration("NaN,A"), None);
    assert_eq!(duration("1.2.3,A"), None);
    assert_eq!(duration(",A"), None);
}

#[test]
fn invalid_channel_numbers_are_dropped_and_reported() {
    let numbered = |value: &str| format!("#EXTINF:-1 tvg-chno=\"{value}\",A\nhttp://h/1");
    for (value, kept) in [("4", "4"), ("4.0", "4"), (" 4.1 ", "4.1"), ("007", "7"), ("99999999", "99999999")]
    {
        check(value, numbered(value), &[&format!(r#"1 "A" http://h/1 no={kept}"#)]);
    }
    for none in ["", "0", "0.0", "-1"] {
        check(none, numbered(none), &[r#"1 "A" http://h/1"#]);
    }
    for odd in
        ["-5", "abc", "99999999999999999999", "100000000", "NaN", "1e3", "1.2345", "4.", ".5", "4,1", "+4"]
    {
        check(odd, numbered(odd), &["! 1 BadNumber", r#"1 "A" http://h/1"#]);
    }
    extinf("misspelled", r#":-1 tv-chno="7",A"#, &[r#"1 "A" http://h/1 no=7"#]);
    extinf(
        "the first valid one",
        r#":-1 tvg-chno="x" tvg-chno="7",A"#,
        &["! 1 BadNumber", r#"1 "A" http://h/1 no=7"#],
    );
}

#[test]
fn bytes_of_any_encoding_are_decoded() {
    let named = |name: &[u8]| [b"#EXTINF:-1,".as_slice(), name, b"\nhttp://h/1\n"].concat();
    check("Latin-1", named(b"Caf\xE9"), &[r#"1 "Café" http://h/1"#]);
    check("Windows-1252", named(b"Sport \x96 Live\x99 \x80"), &[r#"1 "Sport – Live™ €" http://h/1"#]);
    check("both", named(b"Caf\xC3\xA9 \xE9"), &[r#"1 "Café é" http://h/1"#]);
    check("truncated", named(b"Caf\xC3"), &[r#"1 "CafÃ" http://h/1"#]);
    check("NUL", named(b"C\0NN\0"), &[r#"1 "CNN" http://h/1"#]);
    check("control characters", named(b"C\x1BN\x07N\x7F"), &[r#"1 "CNN" http://h/1"#]);
    check("Latin-1 in an address", b"http://h/caf\xE9.ts", &["1 \"café.ts\" http://h/caf%E9.ts"]);
    check("NUL in an address", b"http://h/a\0b\0", &[r#"1 "ab" http://h/ab"#]);
    check("byte-order mark", b"\xEF\xBB\xBF#EXTM3U\n#EXTINF:-1,A\nhttp://h/1", &["#", r#"2 "A" http://h/1"#]);
    check(
        "byte-order marks within",
        b"#EXTM3U\n\xEF\xBB\xBF#EXTM3U\n\xEF\xBB\xBFhttp://h/1",
        &["#", "#", r#"3 "1" http://h/1"#],
    );
    let utf16 = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let text = utf16("\u{FEFF}#EXTM3U\r\n#EXTINF:-1,Ä 📺\r\nhttp://h/1\r\n");
    let expected = ["#", r#"2 "Ä 📺" http://h/1"#];
    check("UTF-16 LE", text.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>(), &expected);
    check("UTF-16 BE", text.iter().flat_map(|it| it.to_be_bytes()).collect::<Vec<_>>(), &expected);
    let halves = [0xFEFF, 0xD83D, 0x41, 0xDCFA, 0xD83D, 0xD83D, 0xDCFA];
    let line: Vec<u16> = halves[..1]
        .iter()
        .copied()
        .chain(utf16("#EXTINF:-1,"))
        .chain(halves[1..].iter().copied())
        .chain(utf16("\nhttp://h/1"))
        .collect();
    check(
        "halves of a surrogate pair",
        line.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>(),
        &["1 \"\u{FFFD}A\u{FFFD}\u{FFFD}📺\" http://h/1"],
    );
}

#[test]
fn every_kind_of_line_end_is_accepted() {
    let expected = ["#", r#"2 "A" http://h/1"#, r#"4 "B" http://h/2"#];
    for end in ["\n", "\r\n", "\r"] {
        let lines = ["#EXTM3U", "#EXTINF:-1,A", "http://h/1", "#EXTINF:-1,B", "http://h/2"];
        check("with a final line end", lines.map(|it| format!("{it}{end}")).concat(), &expected);
        check("without", lines.join(end), &expected);
    }
    check("empty lines count", "\n\r\n  \n\r\r\nhttp://h/1", &[r#"6 "1" http://h/1"#]);
    check("spaces around", "  #EXTINF:-1,A  \n\thttp://h/1 \n", &[r#"1 "A" http://h/1"#]);
    check("nothing", "", &[]);
    check("one byte", "#", &[]);
    check("one line end", "\r", &[]);
}

#[test]
fn an_entry_has_a_name_an_address_and_the_directives_between_them() {
    let entry = r#"1 "A" http://h/1 group=News"#;
    check("group directive", "#EXTINF:-1,A\n#EXTGRP:News\nhttp://h/1", &[entry]);
    check("in quotes", "#EXTINF:-1,A\n#EXTGRP:\"News\"\nhttp://h/1", &[entry]);
    check("before", "#EXTGRP: News\n#EXTINF:-1,A\nhttp://h/1", &[r#"2 "A" http://h/1 group=News"#]);
    check(
        "for all entries until the next one",
        "#EXTINF:-1,A\n#EXTGRP:News\nhttp://h/1\n#EXTINF:-1,B\nhttp://h/2\n#EXTINF:-1 group-title=\"Own\",C\nhttp://h/3\n\
         #EXTGRP:Other\n#EXTINF:-1,D\nhttp://h/4\n#EXTGRP:\n#EXTINF:-1,E\nhttp://h/5",
        &[
            entry,
            r#"4 "B" http://h/2 group=News"#,
            r#"6 "C" http://h/3 group=Own"#,
            r#"9 "D" http://h/4 group=Other"#,
            r#"12 "E" http://h/5"#,
        ],
    );
    check(
        "not in the next playlist of one file",
        "#EXTM3U\n#EXTGRP:News\n#EXTINF:-1,A\nhttp://h/1\n#EXTM3U\n#EXTINF:-1,B\nhttp://h/2",
        &["#", r#"3 "A" http://h/1 group=News"#, "#", r#"6 "B" http://h/2"#],
    );
    check("group-title wins", "#EXTINF:-1 group-title=\"News\",A\n#EXTGRP:Other\nhttp://h/1", &[entry]);
    check(
        "comments between",
        "#EXTINF:-1 group-title=\"News\",A\n# hello\n\n#X\n#EXTGRP\nhttp://h/1",
        &[entry],
    );
    check("no address", "#EXTINF:-1,A\n#EXTINF:-1,B\nhttp://h/1", &["! 1 NoAddress", r#"2 "B" http://h/1"#]);
    check("no address at the end", "#EXTM3U\n#EXTINF:-1,A\n", &["#", "! 2 NoAddress"]);
    check(
        "directives between are dropped with it, except the group",
        "#EXTINF:-1,A\n#EXTGRP:News\n#EXTVLCOPT:http-user-agent=X\n#EXTINF:-1,B\nhttp://h/1",
        &["! 1 NoAddress", r#"4 "B" http://h/1 group=News"#],
    );
    check(
        "no #EXTINF",
        "#EXTM3U\nhttp://h/one\nhttp://h/two/",
        &["#", r#"2 "one" http://h/one"#, r#"3 "two" http://h/two/"#],
    );
    check("no #EXTM3U", "#EXTINF:-1,A\nhttp://h/1", &[r#"1 "A" http://h/1"#]);
    check(
        "lower case",
        "#extm3u\n#extinf:-1,A\n#extgrp:News\nHTTP://h/1",
        &["#", r#"2 "A" HTTP://h/1 group=News"#],
    );
    check(
        "text instead of an address",
        "#EXTINF:-1,A\nnothing here\nhttp://h/1",
        &["! 2 NotAnAddress", r#"3 "1" http://h/1"#],
    );
    check("multicast", "#EXTINF:-1,A\nudp://@239.1.1.1:5000", &[r#"1 "A" udp://@239.1.1.1:5000"#]);
    check("underscore in the host", "#EXTINF:-1,A\nhttp://my_box:80/1", &[r#"1 "A" http://my_box:80/1"#]);
}

#[test]
fn request_headers_are_found_in_every_notation() {
    let check = |quirk: &str, line: &str, expected: &str| {
        check(quirk, format!("#EXTINF:-1,A\n{line}"), &[&format!(r#"1 "A" http://h/1{expected}"#)]);
    };
    check("VLC", "#EXTVLCOPT:http-user-agent=My Box/1.0 (x=y)\nhttp://h/1", " agent=My Box/1.0 (x=y)");
    check("VLC, quoted", "#EXTVLCOPT:http-user-agent=\"Box\"\nhttp://h/1", " agent=Box");
    check("VLC, referrer", "#EXTVLCOPT: http-referrer=http://r/\nhttp://h/1", " referrer=http://r/");
    check("VLC, spelled as in HTTP", "#EXTVLCOPT:http-referer=http://r/\nhttp://h/1", " referrer=http://r/");
    for line in
        [":http-user-agent=X", "--http-user-agent=X", ":--http-user-agent=X", " : http-user-agent = 'X'"]
    {
        check("VLC, as on its command line", &format!("#EXTVLCOPT{line}\nhttp://h/1"), " agent=X");
        check("VLC, two colons", &format!("#EXTVLCOPT:{line}\nhttp://h/1"), " agent=X");
    }
    check(
        "VLC, another option",
        "#EXTVLCOPT:network-caching=1000\n#EXTVLCOPT:x\nhttp://h/1",
        " [Vlc network-caching=1000]",
    );
    check(
        "JSON",
        r#"#EXTHTTP:{"User-Agent":"Box","cookie":"a=b","X-N":7}
http://h/1"#,
        " agent=Box X-N: 7 Cookie: a=b",
    );
    check(
        "JSON, in an object of its own",
        "#EXTHTTP:{\"headers\":{\"User-Agent\":\"Box\"},\"X-N\":7}\nhttp://h/1",
        " agent=Box X-N: 7",
    );
    check("JSON, with the quotes of Python", "#EXTHTTP:{'User-Agent': 'Box'}\nhttp://h/1", " agent=Box");
    check(
        "Kodi, a property for its own transfers",
        "#KODIPROP:http-user-agent=Box\nhttp://h/1",
        " agent=Box [Kodi http-user-agent=Box]",
    );
    check(
        "Kodi",
        "#KODIPROP:inputstream.adaptive.stream_headers=User-Agent=My%20Box&Referer=http%3A%2F%2Fr\nhttp://h/1",
        " agent=My Box referrer=http://r [Kodi inputstream.adaptive.stream_headers=User-Agent=My%20Box&Referer=http%3A%2F%2Fr]",
    );
    check(
        "Kodi, another property",
        "#KODIPROP:inputstream.adaptive.license_key=a=b\nhttp://h/1",
        " [Kodi inputstream.adaptive.license_key=a=b]",
    );
    check(
        "Kodi, headers for a licence server",
        "#KODIPROP:inputstream.adaptive.license_headers=X-A=1\nhttp://h/1",
        " [Kodi inputstream.adaptive.license_headers=X-A=1]",
    );
    check(
        "ffmpeg",
        "http://h/1|user_agent=Box&headers=X-A: 1%0D%0AReferer: http://r/",
        " agent=Box referrer=http://r/ X-A: 1",
    );
    check(
        "pipe",
        "http://h/1|User-Agent=My%20Box&Referer=http://r/?a%3Db&X-A=1&seekable=0",
        " agent=My Box referrer=http://r/?a=b X-A: 1 [Pipe seekable=0]",
    );
    check("the pipe takes precedence", "#EXTVLCOPT:http-user-agent=X\nhttp://h/1|user-agent=Y", " agent=Y");
    check("in Latin-1", "http://h/1|X-A=%E9", " X-A: é");
    check("a pipe of the address", "http://h/1|a", "|a");
}

#[test]
fn invalid_request_headers_are_reported() {
    let reported = |line: &str| {
        check(line, format!("#EXTINF:-1,A\n{line}\nhttp://h/1"), &["! 2 BadHeader", r#"1 "A" http://h/1"#]);
    };
    reported(r#"#EXTHTTP:{"Host":"other"}"#);
    reported(r#"#EXTHTTP:{"a b":"c"}"#);
    reported(r#"#EXTHTTP:{"a":{}}"#);
    reported(r#"#EXTHTTP:{"headers":[]}"#);
    reported("#EXTHTTP:[]");
    reported("#EXTHTTP:{");
    reported(&format!("#EXTVLCOPT:http-user-agent={}", "x".repeat(5000)));
    check(
        "no second header in a value",
        "http://h/1|X-A=1%0D%0AHost:+x",
        &[r#"1 "1" http://h/1 X-A: 1Host:+x"#],
    );
    extinf(
        "as an attribute",
        r#":-1 user-agent="Box" http-referrer="http://r",A"#,
        &[r#"1 "A" http://h/1 agent=Box referrer=http://r"#],
    );
}

#[test]
fn the_header_of_a_playlist_contains_its_guides() {
    check("one", r#"#EXTM3U x-tvg-url="http://g/1""#, &["# http://g/1"]);
    check(
        "same address in both attributes",
        r#"#EXTM3U x-tvg-url="http://g/1" url-tvg="http://g/1""#,
        &["# http://g/1"],
    );
    check(
        "several",
        r#"#EXTM3U url-tvg="http://g/1, http://g/2,x" catchup="xc""#,
        &["# http://g/1 http://g/2 catchup=xc"],
    );
    check(
        "two playlists in one",
        "#EXTM3U\nhttp://h/1\n#EXTM3U url-tvg=http://g/1\n",
        &["#", r#"2 "1" http://h/1"#, "# http://g/1"],
    );
}

#[test]
fn a_first_line_may_name_two_hundred_guides_and_tells_how_many_more_it_names() {
    for (n_named, n_kept, n_problems) in [(40, 40, 0), (200, 200, 0), (203, 200, 1)] {
        let urls: Vec<_> = (0..n_named).map(|n| format!("http://guides.example/{n}.xml.gz")).collect();
        let text = format!("#EXTM3U url-tvg=\"{}\" x-tvg-url=\"{}\"\n", urls.join(","), urls[0]);
        let (items, _) = parse(text.as_bytes(), PlaylistLimits::default());
        let header = items.iter().find_map(|it| match it {
            PlaylistItem::Header(header) => Some(header),
            _ => None,
        });
        assert_eq!(header.unwrap().guide_urls.len(), n_kept);
        let problems: Vec<_> = items
            .iter()
            .filter_map(|it| match it {
                PlaylistItem::Problem(problem) => Some(problem.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(problems.len(), n_problems);
        assert!(
            problems.iter().all(|it| it.starts_with("3 addresses of guides were left out")),
            "{problems:?}"
        );
    }
}

#[test]
fn an_overlong_item_is_dropped_alone_and_reported_with_its_line() {
    let long = |n| repeat_n('x', n).collect::<String>();
    let next_entry = "\n#EXTINF:-1,B\nhttp://h/2";
    check(
        "line of 1 MB",
        format!("#EXTINF:-1,{}\nhttp://h/1{next_entry}", long(1 << 20)),
        &["! 1 LineTooLong", r#"3 "B" http://h/2"#],
    );
    check(
        "its group stays",
        format!("#EXTINF:-1,{}\n#EXTGRP:G\nhttp://h/1{next_entry}", long(1 << 20)),
        &["! 1 LineTooLong", r#"4 "B" http://h/2 group=G"#],
    );
    check(
        "address of 1 MB",
        format!("#EXTINF:-1,A\nhttp://{}{next_entry}", long(1 << 20)),
        &["! 2 LineTooLong", r#"3 "B" http://h/2"#],
    );
    check(
        "comment of 1 MB",
        format!("#EXTINF:-1,A\n#{}\nhttp://h/1", long(1 << 20)),
        &["! 2 LineTooLong", r#"1 "A" http://h/1"#],
    );
    check(
        "dropped twice",
        format!("#EXTINF{0}\n#EXTINF{0}{next_entry}", long(1 << 17)),
        &["! 1 LineTooLong", "! 2 LineTooLong", r#"3 "B" http://h/2"#],
    );
    check(
        "address",
        format!("#EXTINF:-1,A\nhttp://{}{next_entry}", long(4090)),
        &["! 2 AddressTooLong", r#"3 "B" http://h/2"#],
    );
    let name = "é".repeat(512);
    check(
        "name",
        format!("#EXTINF:-1,{name}é\nhttp://h/1"),
        &["! 1 NameTooLong", &format!("1 {name:?} http://h/1")],
    );
    check(
        "name of maximum length",
        format!("#EXTINF:-1,{name}\nhttp://h/1"),
        &[&format!("1 {name:?} http://h/1")],
    );
    check(
        "logo",
        format!("#EXTINF:-1 tvg-logo=\"data:{}\",A\nhttp://h/1", long(5000)),
        &["! 1 ValueTooLong", r#"1 "A" http://h/1"#],
    );
    check(
        "id",
        format!("#EXTINF:-1 tvg-id=\"{}\",A\nhttp://h/1", long(600)),
        &["! 1 ValueTooLong", r#"1 "A" http://h/1"#],
    );
    let many: String = (0..70).map(|it| format!(" a{it}=b")).collect();
    let kept: String = (0..64).map(|it| format!(" a{it}=b")).collect();
    check(
        "attributes",
        format!("#EXTINF:-1{many},A\nhttp://h/1"),
        &["! 1 TooManyAttributes", &format!(r#"1 "A" http://h/1{kept}"#)],
    );
}

#[test]
fn entries_above_the_limit_are_reported_once() {
    let limits = PlaylistLimits { entries_max: 2, ..PlaylistLimits::default() };
    let (items, summary) = parse(b"http://h/1\nhttp://h/2\nhttp://h/3\nhttp://h/4\n", limits);
    assert_eq!(
        items.iter().map(describe).collect::<Vec<_>>(),
        [r#"1 "1" http://h/1"#, r#"2 "2" http://h/2"#, "! 3 TooManyEntries"]
    );
    assert_eq!(summary, PlaylistSummary { lines: 4, entries: 2, problems: 1, has_header: false });
}

#[test]
fn a_text_that_is_not_a_playlist_is_reported_and_has_no_entries() {
    check("a web page", "\n<!DOCTYPE html>\n<a href=\"x\">\nhttp://h/1", &["! 2 NotAPlaylist"]);
    check("an answer of a panel", "{\"user_info\":{\"auth\":0}}", &["! 1 NotAPlaylist"]);
    check(
        "segments of one stream",
        "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nhttp://h/1.ts",
        &["#", "! 2 MediaPlaylist"],
    );
    check(
        "variants of one stream",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://h/1.m3u8",
        &["#", "! 2 MediaPlaylist"],
    );
}

#[test]
fn no_printed_item_contains_a_credential() {
    let list =
        b"#EXTM3U url-tvg=\"http://g/?p=secret\" catchup-source=\"secret\"\n#EXTINF:-1 catchup-source=\"http://u:secret@h/\",A\n\
        #EXTHTTP:{\"Cookie\":\"secret\"}\n#EXTVLCOPT:http-referrer=http://secret\nhttp://h/u/secret/1\n\
        #EXTINF:-1,A\nhttp//u:secret@h\n#EXTHTTP:{\"Host\":\"secret\"}\n#EXTHTTP:secret";
    let (items, _) = parse(list, PlaylistLimits::default());
    assert_eq!(items.len(), 5);
    for item in &items {
        assert!(!format!("{item:?}").contains("secret"), "{item:?}");
    }
}
