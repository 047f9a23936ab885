//! The text of playlists, as the standard and as providers write it.

use proptest::prelude::*;

use crate::hls::*;

fn parse(text: &str) -> HlsPlaylist {
    HlsPlaylist::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn media(text: &str) -> MediaPlaylist {
    match parse(text) {
        HlsPlaylist::Media(it) => it,
        HlsPlaylist::Master(_) => panic!("a master playlist: {text}"),
    }
}

fn master(text: &str) -> MasterPlaylist {
    match parse(text) {
        HlsPlaylist::Master(it) => it,
        HlsPlaylist::Media(_) => panic!("a media playlist: {text}"),
    }
}

/// Describes a playlist in one line: sequence, target duration, segments, and the end.
fn described(list: &MediaPlaylist) -> String {
    let segments = list.segments.iter().map(|it| {
        let range = it.range.map(|it| format!("[{}+{}]", it.start, it.length)).unwrap_or_default();
        let key = match it.key.as_deref() {
            None => String::new(),
            Some(KeyMethod::Aes128 { address, iv: None }) => format!("!{address}"),
            Some(KeyMethod::Aes128 { address, iv: Some(iv) }) => {
                format!("!{address}:{:x}", u128::from_be_bytes(*iv))
            }
            Some(KeyMethod::Other(name)) => format!("!({name})"),
        };
        let flags = [("|", it.is_discontinuity), ("m", it.has_map), ("-", it.is_gap)];
        let flags: String = flags.iter().filter(|it| it.1).map(|it| it.0).collect();
        format!("{flags}{}:{}{range}{key}", it.address, it.duration.as_millis())
    });
    let segments = segments.collect::<Vec<_>>().join(" ");
    let end = if list.is_ended { " end" } else { "" };
    format!("{}/{} {segments}{end}", list.sequence, list.target.as_secs_f64())
}

#[test]
fn media_playlists_are_read_as_the_standard_and_as_providers_write_them() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(described(&media(text)), expected, "{text}");
    }
    let plain = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:5.5,\na.ts\n#EXTINF:6,News\nb.ts\n";
    check(plain, "7/6 a.ts:5500 b.ts:6000");
    check(&plain.replace('\n', "\r\n"), "7/6 a.ts:5500 b.ts:6000");
    check(&plain.replace('\n', "\r"), "7/6 a.ts:5500 b.ts:6000");
    check(&format!("\u{feff}{plain}"), "7/6 a.ts:5500 b.ts:6000");
    check(&format!("\n \n{plain}#EXT-X-ENDLIST"), "7/6 a.ts:5500 b.ts:6000 end");
    check(&plain.to_lowercase(), "7/6 a.ts:5500 b.ts:6000");
    // Without a first line, a target duration or a sequence.
    check("#EXTINF:5.5,\na.ts\n", "0/6 a.ts:5500");
    check("#EXTM3U\n#EXTINF:-1,x\nhttp://h/live.ts\n", "0/6 http://h/live.ts:0");
    check("#EXTM3U\na.ts\n", "0/6 a.ts:0");
    check("#EXTM3U\n#EXT-X-TARGETDURATION:0\n#EXTINF:2\na.ts\n", "0/2 a.ts:2000");
    check("#EXTM3U\n#EXT-X-TARGETDURATION:99999\n#EXTINF:2\na.ts\n", "0/60 a.ts:2000");
    check("#EXTM3U\n#EXT-X-TARGETDURATION:4.8\n#EXTINF:nan,\na.ts\n", "0/4.8 a.ts:0");
    check("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:12.0\n#EXTINF:1,\na.ts", "12/1 a.ts:1000");
    check("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:x\n#EXTINF:1,\na.ts", "0/1 a.ts:1000");
    check("#EXTM3U\n# a comment\n#EXT-X-NEW:1\n#EXTINF:1,\na.ts", "0/1 a.ts:1000");
    // Discontinuities, gaps and sections of fMP4.
    check(
        "#EXTM3U\n#EXTINF:1,\na\n#EXT-X-DISCONTINUITY\n#EXTINF:1,\nb\n#EXTINF:1,\nc",
        "0/1 a:1000 |b:1000 c:1000",
    );
    check("#EXTM3U\n#EXT-X-GAP\n#EXTINF:1,\na\n#EXTINF:1,\nb", "0/1 -a:1000 b:1000");
    check("#EXTM3U\n#EXT-X-MAP:URI=\"i.mp4\"\n#EXTINF:1,\na", "0/1 ma:1000");
    // Ranges continue the one before them in the same file.
    check(
        "#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:100@50\na\n#EXTINF:1,\n#EXT-X-BYTERANGE:30\na\n#EXTINF:1,\n#EXT-X-BYTERANGE:9\nb\n#EXTINF:1,\nb",
        "0/1 a:1000[50+100] a:1000[150+30] b:1000[0+9] b:1000",
    );
    check("#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:0@5\na\n", "0/1 a:1000");
    check("#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:18446744073709551615@5\na\n", "0/1 a:1000");
}

#[test]
fn keys_apply_to_the_segments_after_them() {
    #[track_caller]
    fn check(keys: &str, expected: &str) {
        let text = format!("#EXTM3U\n{keys}\n#EXTINF:1,\na\n");
        assert_eq!(described(&media(&text)), format!("0/1 a:1000{expected}"), "{text}");
    }
    check("#EXT-X-KEY:METHOD=AES-128,URI=\"k?t=1,2\"", "!k?t=1,2");
    check("#EXT-X-KEY:METHOD=AES-128,URI=k,IV=0x1F", "!k:1f");
    check(
        "#EXT-X-KEY:METHOD=aes-128,URI=\"k\",IV=0X000102030405060708090a0b0c0d0e0f",
        "!k:102030405060708090a0b0c0d0e0f",
    );
    check("#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0xzz", "!k");
    check("#EXT-X-KEY:METHOD=NONE", "");
    check("#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"", "!(SAMPLE-AES)");
    check("#EXT-X-KEY:METHOD=AES-128", "!(AES-128)");
    check(
        "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
        "!(com.apple.streamingkeydelivery)",
    );
    check("#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"s\"", "!k");
    check("#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"s\"\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"", "!k");
    let changed = "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"1\"\n#EXTINF:1,\na\n#EXTINF:1,\nb\n\
                   #EXT-X-KEY:METHOD=SAMPLE-AES\n#EXTINF:1,\nc\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:1,\nd\n";
    let list = media(changed);
    assert_eq!(described(&list), "0/1 a:1000!1 b:1000!1 c:1000!(SAMPLE-AES) d:1000");
    assert_eq!(list.needs_program(), None, "the newest one counts");
    let reason = |text: &str| media(text).needs_program();
    let encrypted = "#EXTM3U\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXTINF:1,\na\n";
    assert_eq!(reason(encrypted).as_deref(), Some("an HLS playlist with encryption SAMPLE-AES"));
    let fmp4 = "#EXTM3U\n#EXT-X-MAP:URI=\"i\"\n#EXTINF:1,\na\n";
    assert_eq!(reason(fmp4).as_deref(), Some("an HLS playlist with fMP4 segments"));
}

#[test]
fn the_best_variant_within_the_limits_comes_first() {
    let text = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",URI=\"a.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",NAME=\"x\",URI=\"b.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",NAME=\"y\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",URI=\"s.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=1000000,RESOLUTION=640x360\nlow\n\
        #EXT-X-STREAM-INF:BANDWIDTH=9000000,RESOLUTION=3840x2160,AUDIO=\"b\"\nhigh\n\
        #EXT-X-STREAM-INF:BANDWIDTH=99000000,RESOLUTION=3840x2160,AUDIO=\"a\"\nseparate\n\
        #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\nradio\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=99,URI=\"frames\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH = 4000000 , RESOLUTION=1280X720\n\nmiddle\n";
    #[track_caller]
    fn check(text: &str, height_max: Option<u32>, bits_per_second_max: Option<u64>, expected: &[&str]) {
        let mut variants = Variants::new(master(text), VariantLimits { height_max, bits_per_second_max });
        let order: Vec<_> = std::iter::from_fn(|| variants.take_next()).map(|it| it.address).collect();
        assert_eq!(order, expected);
        assert!(variants.is_empty());
    }
    check(text, None, None, &["high", "middle", "low"]);
    check(text, Some(720), None, &["middle", "low", "high"]);
    check(text, Some(100), None, &["low", "middle", "high"]);
    check(text, None, Some(2_000_000), &["low", "middle", "high"]);
    check(text, Some(720), Some(100), &["low", "middle", "high"]);
    let separate = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nx\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",URI=\"y\"\n";
    check(separate, None, None, &[]);
    check("#EXTM3U\n#EXT-X-STREAM-INF:\nx\n#EXT-X-STREAM-INF:BANDWIDTH=1e3\ny\n", None, None, &["y", "x"]);
}

/// A group of sound in a playlist of its own.
const SOUND_APART: &str = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",URI=\"a.m3u8\"\n";

#[test]
fn a_master_never_leads_to_sound_alone_while_a_picture_is_offered() {
    /// The attributes of variants, whose addresses are their positions; and the order in which they are tried.
    #[track_caller]
    fn check(variants: &[&str], expected: &[&str]) {
        let sound = SOUND_APART;
        let lines = variants.iter().enumerate();
        let lines: String = lines.map(|(at, it)| format!("#EXT-X-STREAM-INF:{it}\n{at}\n")).collect();
        // The sound may be listed before and after the variants.
        for text in [format!("#EXTM3U\n{sound}{lines}"), format!("#EXTM3U\n{lines}{sound}")] {
            let mut variants = Variants::new(master(&text), VariantLimits::default());
            let order: Vec<_> = std::iter::from_fn(|| variants.take_next()).map(|it| it.address).collect();
            assert_eq!(order, expected, "{text}");
        }
    }
    let radio = "BANDWIDTH=64000,CODECS=\"mp4a.40.2\"";
    let radio_apart = "BANDWIDTH=64000,CODECS=\"mp4a.40.2\",AUDIO=\"a\"";
    let apart = "BANDWIDTH=3000000,RESOLUTION=1280x720,CODECS=\"avc1.64001f,mp4a.40.2\",AUDIO=\"a\"";
    let whole = "BANDWIDTH=2000000,RESOLUTION=640x360,CODECS=\"avc1.64001f,mp4a.40.2\"";
    let mute = "BANDWIDTH=9000000,RESOLUTION=640x360,CODECS=\"avc1.64001f\"";
    let unknown = "BANDWIDTH=5000000";
    // Nothing that the gateway reads has picture and sound: a program does it.
    for radio in [radio, radio_apart] {
        check(&[radio, apart], &[]);
        check(&[apart, radio], &[]);
    }
    let of_program = |variants: &[&str], height_max| {
        let lines: String = variants.iter().map(|it| format!("#EXT-X-STREAM-INF:{it}\nx\n")).collect();
        let limits = VariantLimits { height_max, bits_per_second_max: None };
        variant_for_program(&master(&format!("#EXTM3U\n{SOUND_APART}{lines}")), limits)
    };
    let low = "BANDWIDTH=800000,RESOLUTION=640x360,AUDIO=\"a\"";
    assert_eq!(of_program(&[radio, apart], None), Some(1));
    assert_eq!(of_program(&[low, radio_apart, apart, unknown], None), Some(2));
    assert_eq!(of_program(&[low, radio_apart, apart, unknown], Some(400)), Some(0));
    assert_eq!(of_program(&[radio, mute], None), Some(1));
    check(&[unknown, apart, radio], &[]);
    check(&[apart, unknown], &[]);
    // The picture shows in any of these attributes.
    for picture in
        ["RESOLUTION=1x1", "FRAME-RATE=25", "VIDEO=\"v\"", "HDCP-LEVEL=NONE", "CODECS=\"hvc1.1.6,ec-3\""]
    {
        check(&[radio, &format!("{picture},AUDIO=\"a\"")], &[]);
        check(&[radio, picture], &["1"]);
    }
    check(&[radio, apart, whole], &["2"]);
    check(&[mute, whole, radio], &["1", "0"]);
    check(&[mute, radio], &["0"]);
    check(&[unknown, whole], &["1", "0"]);
    // Without attributes that show the picture, the sound apart shows it.
    let unknown_apart = "BANDWIDTH=900000,AUDIO=\"a\"";
    check(&[unknown, unknown_apart], &[]);
    check(&[radio, unknown_apart], &[]);
    assert_eq!(of_program(&["BANDWIDTH=990000", unknown_apart], None), Some(1));
    // Without a picture it is radio, or may be anything.
    check(&[radio, "BANDWIDTH=96000,CODECS=\"mp4a.40.2\""], &["1", "0"]);
    check(&[radio, unknown], &["1", "0"]);
    check(&[radio_apart], &[]);
}

#[test]
fn a_variant_at_the_address_of_a_playlist_of_sound_is_sound() {
    let sound = "#EXT-X-STREAM-INF:BANDWIDTH=64000\na.m3u8\n";
    let picture = "#EXT-X-STREAM-INF:BANDWIDTH=900000,AUDIO=\"a\"\nv.m3u8\n";
    let whole = "#EXT-X-STREAM-INF:BANDWIDTH=32000\nw.m3u8\n";
    for (variants, expected) in [
        ([sound, picture], &[][..]),
        ([picture, sound], &[]),
        // A low rate may be that of a picture.
        ([sound, whole], &["w.m3u8", "a.m3u8"]),
    ] {
        let text = format!("#EXTM3U\n{SOUND_APART}{}", variants.concat());
        let mut variants = Variants::new(master(&text), VariantLimits::default());
        let order: Vec<_> = std::iter::from_fn(|| variants.take_next()).map(|it| it.address).collect();
        assert_eq!(order, expected, "{text}");
    }
}

#[test]
fn other_texts_and_endless_ones_are_refused() {
    let refusal = |text: &str| HlsPlaylist::parse(text.as_bytes()).err();
    for text in ["", "<html>", "{\"error\":1}", "Account expired\n", "# only a comment\n", "http://h/1.ts\n"]
    {
        assert_eq!(refusal(text), Some(HlsError::NotAPlaylist), "{text}");
    }
    let long = "x".repeat(ADDRESS_BYTES_MAX + 1);
    for text in [
        format!("#EXTM3U\n#EXTINF:1,\n{long}\n"),
        format!("#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"{long}\"\n"),
        format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{long}\n"),
    ] {
        assert_eq!(refusal(&text), Some(HlsError::AddressTooLong));
    }
    let many = format!("#EXTM3U\n{}", "a\n".repeat(SEGMENTS_MAX + 1));
    assert_eq!(refusal(&many), Some(HlsError::TooManySegments));
    assert_eq!(refusal(&"#EXTM3U\n".repeat(PLAYLIST_BYTES_MAX / 8 + 1)), Some(HlsError::TooLong));
    let variants = format!("#EXTM3U\n{}", "#EXT-X-STREAM-INF:BANDWIDTH=1\na\n".repeat(VARIANTS_MAX + 9));
    assert_eq!(master(&variants).variants.len(), VARIANTS_MAX);
}

#[test]
fn playlists_are_not_printed() {
    let text = "#EXTM3U\n#EXTINF:1,\nhttp://u:secret@h/a?token=secret\n";
    assert_eq!(format!("{:?}", parse(text)), "media playlist with segments 0 to 1");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(#EXTM3U\n)?((#EXT-X-KEY:|#EXTINF:|#EXT-X-BYTERANGE:|#EXT-X-MEDIA-SEQUENCE:|#EXT-X-STREAM-INF:|#EXT-X-MEDIA:|)[-A-Z=,.@\"0-9x ]{0,20}[\r\n])*") {
        if let Ok(HlsPlaylist::Media(list)) = HlsPlaylist::parse(text.as_bytes()) {
            for number in [0, list.sequence, list.end(), u64::MAX] {
                let _ = list.segment(number);
            }
            prop_assert!(!list.target.is_zero());
        }
    }
}
