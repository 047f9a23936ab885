//! Programs for guides in XMLTV, run on what the gateway writes: xmllint with the DTD, and the tools of the XMLTV project.

mod slow {
    use domain::guide::programme::{Programme, from_xml, to_xml};
    use domain::guide::xmltv::{
        Item, XmltvChannel, XmltvLimits, XmltvReader, write_channel, write_end, write_programme, write_start,
    };

    use crate::guide::readers::ReaderStory;
    use crate::support::tools::{run, saved, text_of};

    /// Where the package `xmltv-util` of Debian installs the document type.
    const DTD: &str = "/usr/share/xmltv/xmltv.dtd";

    /// 2024-05-06 18:00:00 UTC.
    const AT: i64 = 1_715_018_400;

    /// The inside of a programme that has every element and attribute of the document type.
    const FULL: &str = " pdc-start=\"20240506175900 +0000\" vps-start=\"20240506175900 +0000\" showview=\"1234\" \
        videoplus=\"5678\" clumpidx=\"0/2\"><title lang=\"de\">Nachrichten &amp; &lt;mehr&gt;</title>\
        <title lang=\"en\">News</title><sub-title>Part 1</sub-title><desc>One.\n\nTwo 😀.</desc>\
        <credits><director>A</director><actor role=\"Hero\" guest=\"yes\">B<image type=\"person\">http://h/b</image>\
        <url system=\"imdb\">http://h/b</url></actor><writer>C</writer><adapter>D</adapter><producer>E</producer>\
        <composer>F</composer><editor>G</editor><presenter>H</presenter><commentator>I</commentator><guest>J</guest>\
        </credits><date>20240506</date><category lang=\"en\">News</category><keyword>politics</keyword>\
        <keyword>live</keyword><language>German</language><orig-language>English</orig-language>\
        <length units=\"minutes\">30</length><icon src=\"http://h/i?a=1&amp;b=2\" width=\"10\" height=\"20\"/>\
        <url system=\"imdb\">http://h/u</url><country>DE</country><episode-num system=\"xmltv_ns\">1.2.0/1</episode-num>\
        <episode-num>S02E03</episode-num><video><present>yes</present><colour>yes</colour><aspect>16:9</aspect>\
        <quality>HDTV</quality></video><audio><present>yes</present><stereo>stereo</stereo></audio>\
        <previously-shown start=\"20200101\" channel=\"b\"/><premiere lang=\"en\">First</premiere>\
        <last-chance>Last</last-chance><new/><subtitles type=\"teletext\"><language>German</language></subtitles>\
        <subtitles></subtitles><rating system=\"FSK\"><value>12</value><icon src=\"http://h/12\"/></rating>\
        <star-rating><value>7/10</value></star-rating>\
        <review type=\"text\" source=\"S\" reviewer=\"R\" lang=\"en\">Fine.</review>\
        <review type=\"url\">http://h/r</review>\
        <image type=\"poster\" size=\"3\" orient=\"P\" system=\"x\">http://h/p</image>";

    /// Returns a guide with two channels, and the programmes in the wrong order.
    fn guide() -> String {
        let full = from_xml(AT, AT + 1_800, FULL).unwrap();
        let mut inner = String::new();
        to_xml(&full, &mut inner);
        assert_eq!(inner, FULL, "the inside is canonical");
        let mut out = String::new();
        write_start(&mut out, "1");
        for id in ["a.1", "b-2.c"] {
            write_channel(
                &mut out,
                &XmltvChannel { id, names: &["Name", ""], icon: Some("http://h/?a=1&b=2") },
            );
        }
        write_programme(&mut out, "b-2.c", AT + 3_600, AT + 7_200, &inner);
        write_programme(&mut out, "a.1", AT + 1_800, AT + 3_600, "<title>Sports</title>");
        write_programme(&mut out, "a.1", AT, AT + 1_800, "<title>Weather</title>");
        write_end(&mut out);
        out
    }

    /// Panics unless a guide is valid against the document type. Returns its file.
    async fn valid(guide: &str) -> tempfile::NamedTempFile {
        let file = saved(guide.as_bytes());
        text_of("xmllint", &["--noout", "--nonet", "--dtdvalid", DTD, path(&file)]).await;
        file
    }

    fn path(file: &tempfile::NamedTempFile) -> &str {
        file.path().to_str().unwrap()
    }

    /// Panics unless the validator of the XMLTV project accepts a guide. Beyond the document type, it asks for programmes
    /// on every channel, for titles, and for ids with a dot. Without the file of the document type it would download it.
    async fn accepted(guide: &tempfile::NamedTempFile) {
        let output = run("tv_validate_file", &["--dtd-file", DTD, path(guide)]).await;
        let texts = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        assert!(output.status.success(), "tv_validate_file: {texts:?}");
    }

    fn items(guide: &str) -> Vec<Item> {
        XmltvReader::new(guide.as_bytes(), XmltvLimits::default()).collect::<Result<_, _>>().unwrap()
    }

    fn starts(guide: &str) -> Vec<i64> {
        let start = |it: &Item| match it {
            Item::Programme { programme, .. } => Some(programme.start - AT),
            Item::Channel { .. } => None,
        };
        items(guide).iter().filter_map(start).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_guide_with_every_field_passes_the_tools_of_xmltv() {
        let guide = guide();
        let file = valid(&guide).await;
        accepted(&file).await;
        let path = path(&file);

        let sorted = text_of("tv_sort", &["--by-channel", path]).await;
        assert_eq!(starts(&sorted), [0, 1_800, 3_600]);
        let found = text_of("tv_grep", &["--title", "Nachrichten", path]).await;
        assert_eq!(starts(&found), [3_600]);
        let found = text_of("tv_grep", &["--channel-id", "a.1", path]).await;
        assert_eq!(starts(&found), [1_800, 0]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_guide_with_unusual_ids_and_without_titles_is_valid() {
        let mut out = String::new();
        let mut inner = String::new();
        to_xml(&Programme::default(), &mut inner);
        write_start(&mut out, "1 & <2>");
        for id in ["b & <c>", "7", "\u{1}"] {
            write_channel(&mut out, &XmltvChannel { id, names: &[], icon: None });
        }
        write_programme(&mut out, "b & <c>", i64::MIN, i64::MAX, &inner);
        write_end(&mut out);
        valid(&out).await;
    }

    /// Holds T-epg.4. The channels have numbers such as `2.1`, which are ids with a dot.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_guide_of_the_gateway_is_valid_at_every_address() {
        let story = ReaderStory::new().await;
        story.number_with_a_dot().await;
        for request in story.outputs() {
            let guide = story.fetch(request).await.text();
            assert!(
                guide.contains("Linked &amp; &lt;more&gt;") && guide.contains("<title>Film</title>"),
                "{guide}"
            );
            let file = valid(&guide).await;
            accepted(&file).await;
            let sorted = text_of("tv_sort", &["--by-channel", path(&file)]).await;
            assert_eq!(items(&sorted).len(), items(&guide).len());
            let found = text_of("tv_grep", &["--title", "^Film$", path(&file)]).await;
            assert_eq!(items(&found).iter().filter(|it| matches!(it, Item::Programme { .. })).count(), 1);
        }
    }
}
