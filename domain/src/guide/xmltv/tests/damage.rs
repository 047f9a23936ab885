//! Guides in which something is damaged.

use super::*;

/// Returns a programme of half an hour with every kind of child, the `n`th of its channel.
fn rich(n: usize) -> String {
    let (start, stop) = (100_000 + n * 10_000, 103_000 + n * 10_000);
    format!(
        "<programme start=\"20240506{start} +0000\" stop=\"20240506{stop} +0000\" channel=\"c{}\">\n  \
         <title lang=\"en\">Title {n}</title>\n  <sub-title>Größe &amp; {n}</sub-title>\n  \
         <desc><![CDATA[Long <b>text</b> {n}]]></desc>\n  <!-- made by hand -->\n  \
         <credits><actor role=\"x\">A</actor><director>B</director></credits>\n  <category>News</category>\n  \
         <icon src=\"http://h/{n}.jpg?a=1&amp;b=2\" />\n  <episode-num system=\"onscreen\">S1E{n}</episode-num>\n  \
         <rating system=\"x\"><value>6</value></rating>\n  <new />\n</programme>\n",
        n % 2
    )
}

fn guide_of(programmes: &[String]) -> String {
    let channels = "<channel id=\"c0\"><display-name>Zero</display-name></channel>\n\
                    <channel id=\"c1\"><display-name>One</display-name></channel>\n";
    let head =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE tv SYSTEM \"xmltv.dtd\">\n<!-- a guide -->\n";
    format!("{head}<tv generator-info-name=\"x\">\n{channels}{}<!-- the end --></tv>\n", programmes.concat())
}

/// Reads a guide with one damaged programme, and checks that all other items are read whole. Returns what was read besides
/// them: the damaged programme, if it was read.
fn others_stay(guide: &str, whole: &[Item], damaged: usize) -> Vec<Item> {
    let (items, error, _) = read(guide);
    assert_eq!(error, None, "{guide}");
    let mut expected: Vec<_> = whole.to_vec();
    expected.remove(damaged);
    let mut left = expected.into_iter().peekable();
    let rest: Vec<_> = items.into_iter().filter(|it| left.next_if(|next| next == it).is_none()).collect();
    assert_eq!(left.next(), None, "an undamaged element is lost: {guide}");
    rest
}

#[test]
fn a_damaged_child_costs_neither_start_nor_stop_nor_title() {
    for inside in [
        "<title>K</title><desc>text",
        "<title>K<desc>d</desc>",
        "<title>K</titel><desc>d</desc>",
        "<title>K</title></desc>",
        "<title>K</title><icon src=\"http://x/a\"b.jpg\"/>",
        "<title lang=en>K</title>",
        "<title lang=\"en>K</title>",
        "<title lang=\"en\" lang=\"de\">K</title>",
        "<title>K</title><icon src/>",
        "<title>K</title><category>News",
        "<title>K</title><credits><actor>A</credits></actor>",
        "<title>K</title><desc>a<br>b</desc>",
        "<title>K</title><desc>a <3 & b</desc>",
        "<title>K</title><desc/></desc>",
        "<title>K</title><desc>&nbsp;&unknown;&#0;</desc>",
        "<title>K</title><desc>\u{0}\u{1}\u{FEFF}\u{FFFF}</desc>",
        "<title>K</title><desc><![CDATA[d</desc>",
        "<title>K</title><desc><!-- d</desc>",
        "<title>K</title><desc><?d</desc>",
        "<title>K</title><desc <category>News</category>",
        "<title>K</title><desc a=\"b <category>News</category>",
        "<title>K</title></tv><desc>d</desc>",
        "</programme><title>K</title>",
        "<desc>d<title>K</desc></title>",
        "<title>K</title><programme>",
        "<title><desc>d</desc>K</title>",
        "<TITLE>K</TITLE>",
        "<b><title>K</title></b>",
        "<titel>K</title>",
        "title>K</title>",
        "<title>K</titl",
        "\u{FEFF}<?xml version='1.0'?><title>K</title>",
        "<!DOCTYPE tv [<!ENTITY a 'b'><title>K</title>",
        "<title>K</title><url>http://h/1\" />",
        "<title>K</title><desc>The <1> and <二></desc>",
        "<title>K</title><display-",
    ] {
        let broken = format!(
            "<programme start='20240506180000' stop='20240506183000' channel='a'>{inside}</programme>"
        );
        let guide = format!("<tv>{}{broken}{}</tv>", element("before"), element("after"));
        let titled = programmes(&guide);
        assert!(titled[0].3 == "before" && titled.last().is_some_and(|it| it.3 == "after"), "{inside}");
        assert!(titled.contains(&("a".into(), 0, 1800, "K".into())), "{inside}: {titled:?}");
        let cut = guide.replacen(&format!("{inside}</programme>"), inside, 1);
        assert!(programmes(&cut).contains(&("a".into(), 0, 1800, "K".into())), "without its end: {inside}");
    }
}

#[test]
fn a_damaged_start_tag_costs_nothing_as_far_as_its_values_can_be_read() {
    for tag in [
        "<programme start=20240506180000 +0000 stop=20240506183000 +0000 channel=a>",
        "<programme start=\"20240506180000 stop='20240506183000' channel='a'>",
        "<programme start='20240506180000' start='2025' stop='20240506183000' channel='a' channel='b'>",
        "<programme start='20240506180000'stop='20240506183000'channel='a'>",
        "<programme start='20240506180000' stop='20240506183000' channel='a'",
        "<programme start='20240506180000' stop='20240506183000' channel='a'/>",
        "<programme start='20240506180000' stop='20240506183000' channel='a>",
        "<programme start='\u{FEFF}20240506180000' stop=' 20240506183000 ' channel='a\u{0}'>",
        "<programme showview=\"A \"B\" C\" start='20240506180000' stop='20240506183000' channel='a' new>",
        "<PROGRAMME START='20240506180000' STOP='20240506183000' CHANNEL='a'>",
        "<programme\u{0} start='20240506180000' stop='20240506183000' channel='a'>",
    ] {
        for next in [element("after"), "</tv>".to_owned() + &element("after")] {
            let guide = format!("<tv>{tag}<title>K</title></programme>{next}</tv>");
            let expected = [("a".into(), 0, 1800, "K".into()), ("a".into(), 0, 3600, "after".into())];
            assert_eq!(programmes(&guide), expected, "{guide}");
        }
    }
}

#[test]
fn a_damaged_channel_keeps_its_id_and_its_names() {
    for damaged in [
        "<channel id=\"a\"><display-name>One</display-name>",
        "<channel id=\"a\"><display-name>One</channel>",
        "<channel id=a><display-name>One</display-name></channel>",
        "<channel id=\"a><display-name>One</display-name></channel>",
        "<channel id=\"a\" id=\"b\"><display-name lang=>One</display-nam></channel>",
        "<channel id=\"a\"/><display-name>One</display-name></channel>",
        "<channel id=\"a\"><display-name>One</display-name><icon src=\"http://x/\"a\"></channel>",
        "<channel id=\"a\"><display-name><![CDATA[One</display-name></channel>",
    ] {
        for next in ["<channel id='z'/>".to_owned(), element("after")] {
            let (items, error, summary) = read(format!("<tv>{damaged}{next}</tv>"));
            assert!(
                matches!(&items[0], Item::Channel { key, names, .. } if key == "a" && names == &["One"]),
                "{damaged}: {items:?}"
            );
            assert_eq!((items.len(), error, summary.repaired), (2, None, 1), "{damaged}");
        }
    }
}

#[test]
fn a_description_of_any_length_is_cut_and_the_programme_stays() {
    for n_bytes in [1 << 20, 5 << 20] {
        let long = "word ".repeat(n_bytes / 5);
        for inside in [
            format!("<title>K</title><desc>{long}</desc><new/>"),
            format!("<title>K</title><desc>{long}"),
            format!("<title>K</title><desc><![CDATA[{long}</desc>"),
        ] {
            let guide =
                format!("<tv>{}{}</tv>", element("A").replace("<title>A</title>", &inside), element("after"));
            let (items, error, _) = read_parts(guide.as_bytes(), XmltvLimits::default());
            let [Item::Programme { programme, .. }, after] = &items[..] else {
                panic!("{} items", items.len())
            };
            assert_eq!((programme.title(), title_of(after), error), ("K", "after", None));
            assert!(programme.description().is_some_and(|it| it.len() <= 16_000));
        }
        let before = element("A").replace("<title>", &format!("<desc>{}</desc><title>", &long[..1_000_000]));
        assert_eq!(titles(format!("<tv>{before}</tv>")), ["A"], "a title after the description");
    }
}

#[test]
fn a_guide_in_which_everything_is_damaged_is_an_error_with_the_first_place() {
    let channel = "<channel id='a'><display-name>A</display-name></channel>";
    let no_time = "<programme start='tomorrow 8 pm' channel='a'><title>A</title></programme>";
    for (guide, error) in [
        (
            format!("<tv>\n{channel}\n {no_time}\n{no_time}</tv>"),
            Some(
                "all 2 elements of the guide are damaged; the first one is at line 3, column 2: no valid start time",
            ),
        ),
        (
            "<tv><channel/><channel/></tv>".to_owned(),
            Some(
                "all 2 elements of the guide are damaged; the first one is at line 1, column 5: no channel id, or one that is \
                 too long",
            ),
        ),
        (format!("<tv>{channel}</tv>"), None),
        (format!("<tv>{channel}<channel/></tv>"), None),
        (format!("<tv>{no_time}{}</tv>", element("A")), None),
        (format!("<tv>{channel}{no_time}"), Some("the guide is truncated: it ends without </tv>")),
    ] {
        assert_eq!(read(&guide).1.as_deref(), error, "{guide}");
    }
    let unclosed = element("K").replace("</programme>", "").repeat(50);
    assert_eq!(titles(format!("<tv>{unclosed}</tv>")), ["K"; 50], "repaired programmes count as read");
}

#[test]
fn what_is_never_closed_between_elements_hides_none() {
    let (one, two) = (element("One"), element("Two"));
    for guide in [
        format!("<?xml version='1.0'><tv>{one}{two}</tv>"),
        format!("<tv><!-- {one}{two}</tv>"),
        format!("<tv><!-- {one}<!-- x -->{two}</tv>"),
        format!("<tv><![CDATA[ {one}{two}</tv>"),
        format!("<tv><? {one}<?x ?>{two}</tv>"),
        format!("<tv><!DOCTYPE {one}{two}</tv>"),
        format!("<!DOCTYPE tv SYSTEM \"xmltv.dtd>\n<tv>{one}{two}</tv>"),
        format!("<tv>{one}\u{FEFF}<?xml version='1.0' encoding='utf-8'?><!DOCTYPE tv><tv>{two}</tv>"),
        format!("<tv>{}<?xml version='1.0'?><tv>{two}</tv>", one.replace("</title></programme>", "")),
        format!("<tv><tv \"{one}{two}</tv>"),
        format!("<tv>{one}<?xml {two}</tv>"),
    ] {
        assert_eq!(titles(&guide), ["One", "Two"], "{guide}");
    }
    let mut joined = b"<?xml version='1.0' encoding='utf-8'?><tv></tv>".to_vec();
    joined.extend(b"<?xml version='1.0' encoding='windows-1251'?><tv>");
    joined.extend(encoding_rs::WINDOWS_1251.encode(&element("\u{41C}\u{438}\u{440}")).0.iter());
    joined.extend(b"</tv>");
    assert_eq!(titles(&joined), ["\u{41C}\u{438}\u{440}"], "each part has its own encoding");
}

/// Texts that damage elements.
const FRAGMENTS: [&str; 30] = [
    "<",
    ">",
    "&",
    "\"",
    "'",
    "/",
    "=",
    "</",
    "/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<!DOCTYPE tv [",
    "<!DOCTYPE \"",
    "</tv>",
    "<tv>",
    "<title>",
    "</title>",
    "<desc lang=\"",
    "<credits>",
    "</programme>",
    "<programme>",
    "<programme start=\"",
    "<channel id=\"",
    "&nbsp;",
    "\u{FEFF}",
    "\u{0}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damage_in_one_programme_costs_no_other(
        which in 0..5_usize,
        from in 0.0..1.0_f64,
        length in 0..60_usize,
        inserted in vec(prop_oneof![
            proptest::sample::select(FRAGMENTS.to_vec()).prop_map(str::to_owned),
            "\\PC{0,5}",
        ], 0..4),
    ) {
        let mut all: Vec<_> = (0..5).map(rich).collect();
        let whole = read(guide_of(&all)).0;
        prop_assert_eq!(whole.len(), 7);
        let damaged = &mut all[which];
        let char_at = |at: usize| (0..=at).rev().find(|it| damaged.is_char_boundary(*it)).unwrap_or(0);
        // The line break at the end belongs to the guide.
        let end = damaged.len() - 1;
        let start = char_at((from * end as f64) as usize);
        let stop = char_at((start + length).min(end)).max(start);
        damaged.replace_range(start..stop, &inserted.concat());
        let guide = guide_of(&all);
        others_stay(&guide, &whole, 2 + which);
    }

    #[test]
    fn damage_in_the_children_of_a_programme_keeps_its_start_and_stop(
        at in 0.0..1.0_f64,
        inserted in vec(proptest::sample::select(FRAGMENTS.to_vec()), 1..4),
    ) {
        let mut all: Vec<_> = (0..3).map(rich).collect();
        let whole = read(guide_of(&all)).0;
        let first = all[1].find("</title>").unwrap() + "</title>".len();
        let end = all[1].find("</programme>").unwrap();
        let place = (first..=first + (at * (end - first) as f64) as usize).rev().find(|it| all[1].is_char_boundary(*it));
        all[1].insert_str(place.unwrap(), &inserted.concat());
        let rest = others_stay(&guide_of(&all), &whole, 3);
        let Item::Programme { channel, programme: expected } = &whole[3] else { panic!() };
        let is_it = |it: &Item| matches!(it, Item::Programme { channel: key, programme }
            if key == channel && programme.start == expected.start && programme.stop == expected.stop
                && programme.title() == expected.title());
        prop_assert!(rest.iter().any(is_it), "{:?}", rest);
    }
}
