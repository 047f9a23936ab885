//! Guides that broke other readers.

use encoding_rs::{BIG5, Encoding, GBK, ISO_2022_JP, SHIFT_JIS, UTF_8, WINDOWS_1251, WINDOWS_1252};

use super::*;

fn guide(declared: &str, title: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"{declared}\"?>\n<tv>\n{}\n</tv>\n", element(title))
}

fn utf_16(text: &str, is_big_endian: bool) -> Vec<u8> {
    let bytes = |it: u16| if is_big_endian { it.to_be_bytes() } else { it.to_le_bytes() };
    text.encode_utf16().flat_map(bytes).collect()
}

#[test]
fn a_byte_order_mark_decides_the_encoding() {
    let text = guide("utf-8", "Größe 😀 你");
    assert_eq!(titles(&text), ["Größe 😀 你"]);
    assert_eq!(titles(format!("\u{FEFF}{text}")), ["Größe 😀 你"]);
    assert_eq!(titles(format!("\u{FEFF}\u{FEFF}\r\n{text}")), ["Größe 😀 你"]);
    for is_big_endian in [true, false] {
        for text in [text.clone(), format!("\u{FEFF}{text}")] {
            assert_eq!(titles(utf_16(&text, is_big_endian)), ["Größe 😀 你"]);
        }
    }
    assert_eq!(titles(format!("\u{FEFF}{}", guide("utf-16", "Größe"))), ["Größe"]);
}

#[test]
fn the_xml_declaration_names_the_encoding() {
    for (label, encoding, title) in [
        ("iso-8859-1", WINDOWS_1252, "Größe"),
        ("windows-1252", WINDOWS_1252, "“Größe” – 5 €"),
        ("windows-1251", WINDOWS_1251, "Новости дня"),
        ("gbk", GBK, "新闻联播"),
        ("big5", BIG5, "新聞"),
        ("shift_jis", SHIFT_JIS, "テレビ・ソ"),
        ("iso-2022-jp", ISO_2022_JP, "テレビ"),
    ] {
        let text = guide(label, title);
        let (bytes, _, has_errors) = encoding.encode(&text);
        assert!(!has_errors);
        assert_eq!(titles(&bytes), [title], "{label}");
    }
}

#[test]
fn a_wrong_declaration_costs_no_letter() {
    let encoded = |declared: &str, encoding: &'static Encoding, title: &str| {
        encoding.encode(&guide(declared, title)).0.into_owned()
    };
    for bytes in [
        encoded("iso-8859-1", UTF_8, "Größe"),
        encoded("windows-1251", UTF_8, "Größe"),
        encoded("utf-8", WINDOWS_1252, "Größe"),
        encoded("utf-16", UTF_8, "Größe"),
        encoded("utf-16", WINDOWS_1252, "Größe"),
        encoded("klingon", UTF_8, "Größe"),
        encoded("", WINDOWS_1252, "Größe"),
    ] {
        assert_eq!(titles(&bytes), ["Größe"], "{}", bytes.escape_ascii());
    }
    // Two encodings in one guide.
    let mixed = [
        b"<tv>".to_vec(),
        element("Größe").into_bytes(),
        WINDOWS_1252.encode(&element("Größe")).0.into_owned(),
    ];
    assert_eq!(titles([mixed.concat(), b"</tv>".to_vec()].concat()), ["Größe", "Größe"]);
}

#[test]
fn entities_of_html_keep_their_letters_and_unknown_ones_stay_text() {
    for (written, title) in [
        ("R&eacute;gion &amp; &lt;Caf&#233;&gt; &#x263A;", "Région & <Café> ☺"),
        ("A &unknown; B & C &", "A &unknown; B & C &"),
        ("It&#146;s &hellip;", "It’s …"),
        ("<![CDATA[A & B <i>&eacute;</i>]]>", "A & B <i>&eacute;</i>"),
        ("a<![CDATA[ b ]]>c<!-- d -- e -->f & g", "a b cf & g"),
        ("1 < 2 <3", "1 < 2 <3"),
        ("a\u{0}b\u{8}c&#0;d&#x1F;e", "a b c d e"),
        ("<b>Bold</b><br>title", "Bold title"),
    ] {
        assert_eq!(titles(format!("<tv>{}</tv>", element(written))), [title], "{written}");
    }
}

#[test]
fn a_document_type_declares_nothing_and_loads_nothing() {
    let laughs: String = (1..10)
        .map(|n| {
            format!("<!ENTITY l{n} \"&l{0};&l{0};&l{0};&l{0};&l{0};&l{0};&l{0};&l{0};&l{0};&l{0};\">", n - 1)
        })
        .collect();
    let external = "<!ENTITY secret SYSTEM \"file:///etc/passwd\">";
    for (doctype, title) in [
        ("<!DOCTYPE tv SYSTEM \"xmltv.dtd\">".to_owned(), "News"),
        (format!("<!DOCTYPE tv [<!ENTITY l0 \"lol\">{laughs}]>"), "&l9;"),
        (format!("<!DOCTYPE tv [<!ENTITY % x SYSTEM 'http://h/x'> %x; {external}]>"), "&secret;"),
        ("<!DOCTYPE tv [<!ENTITY x '<tv><programme>'>".to_owned() + "]>", "News"),
        // It never ends.
        ("<!DOCTYPE tv [<!-- ".to_owned() + &" ".repeat(100_000) + "-->", "News"),
    ] {
        let guide = format!("<?xml version='1.0'?>\n{doctype}\n<tv>{}</tv>", element(title));
        assert_eq!(titles(&guide), [title], "{}", &doctype[..20]);
    }
}

#[test]
fn junk_around_a_guide_and_between_its_elements_is_ignored() {
    let whole = |text: &str| titles(text);
    let news = element("News");
    for guide in [
        format!("\r\n \u{0}<tv>{news}</tv>\u{0}\r\n"),
        format!("Warning: mysql_connect() <b>failed</b><br />\n<?xml version='1.0'?><tv>{news}</tv>"),
        format!("<tv>{news}</tv><script src='x'>if (a < b) {{}}</script><div></div>"),
        format!("<root><tv>{news}</tv></root>"),
        format!("<tv> text {news} <unknown><a/></unknown> & </tv>"),
        format!("<tv></tv><tv>{news}</tv>"),
        format!("<tv/>{news}"),
        news.clone(),
        format!("<tv><!-- {news} -->{news}<!-- > --><?php {news} ?></tv>"),
        format!("<tv><![CDATA[{news}]]>{news}</tv>"),
        format!("<tv><channel-group/><programmes>{news}</programmes></tv>"),
    ] {
        assert_eq!(whole(&guide), ["News"], "{guide}");
    }
    assert_eq!(whole(&format!("<tv>{news}</tv>\n<?xml version='1.0'?>\n<tv>{news}</tv>")), ["News", "News"]);
}

#[test]
fn a_document_other_than_a_guide_is_named() {
    let large = "x".repeat(2_000_000);
    for (bytes, error) in [
        (&b""[..], "the guide is empty"),
        (b" \r\n\t", "the guide is empty"),
        (b"\xEF\xBB\xBF", "the guide is empty"),
        (
            b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
            "this is a web page, not a guide in XMLTV",
        ),
        (b"\n<HTML><head/></HTML>", "this is a web page, not a guide in XMLTV"),
        (b"{\"error\":\"expired\"}", "this is not a guide in XMLTV"),
        (b"\x1F\x8B\x08\x00<tvx", "this is not a guide in XMLTV"),
        (b"PK\x03\x04", "this is not a guide in XMLTV"),
        (b"#EXTM3U\nhttp://h/<a>", "this is not a guide in XMLTV"),
        (b"<?xml version='1.0'?><rss/>", "this is not a guide in XMLTV"),
        (large.as_bytes(), "this is not a guide in XMLTV"),
    ] {
        let (items, fault, _) = read(bytes);
        assert_eq!((items, fault.as_deref()), (Vec::new(), Some(error)));
    }
    let (items, error, _) =
        read_parts(format!("{large}<tv>{}</tv>", element("News")).as_bytes(), XmltvLimits::default());
    assert_eq!((items.len(), error.as_deref()), (0, Some("this is not a guide in XMLTV")), "too much junk");
    assert_eq!(read("<tv></tv>").1, None, "a guide can have no elements");
    assert_eq!(read("<tv/>").1, None);
}

#[test]
fn a_guide_that_is_cut_anywhere_gives_its_whole_elements_and_an_error() {
    let guide = format!("<tv><channel id='a'/>{}<!-- x -->{}</tv>", element("One"), element("Two & <3"));
    let (all, error, _) = read(&guide);
    assert_eq!((all.len(), error), (3, None));
    for cut in "<tv>".len()..guide.len() {
        let (items, error, summary) = read(&guide[..cut]);
        assert_eq!(items, all[..items.len()], "cut to {cut}");
        assert_eq!(error.as_deref(), Some("the guide is truncated: it ends without </tv>"), "cut to {cut}");
        assert_eq!(summary.n_skipped(), 0, "cut to {cut}");
    }
}

#[test]
fn long_texts_and_unusual_fields_cost_nothing_else() {
    let text = "a".repeat(20_000);
    let guide = format!(
        "<tv xmlns:xsi='http://h'><channel id='a'><display-name>{text}</display-name></channel>\
         <programme start='20240506180000 +0000' stop='20240506190000 +0000' channel='a' xsi:x='1'>\n\
         \n<title>{text}</title>\n  <desc>{text}</desc><episode-num>S01E02</episode-num>\
         <dc:creator>x</dc:creator><category/>\n \n</programme></tv>"
    );
    let (items, error, summary) = read(&guide);
    assert_eq!((error, summary.n_skipped()), (None, 0));
    let [Item::Channel { names, .. }, Item::Programme { programme, .. }] = &items[..] else {
        panic!("{items:?}");
    };
    assert_eq!((names[0].len(), programme.title().len()), (1_000, 1_000));
    assert_eq!(programme.description().map(str::len), Some(16_000));
    assert_eq!(programme.season_episode(), (Some(1), Some(2)));
}
