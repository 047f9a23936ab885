use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    // Words as the reader leaves them: no outer or double white space.
    "[a-zA-Z0-9&<>\"'äß€😀\\]\\[;#-]{1,12}( [a-z&;]{1,8}){0,3}"
}

fn lang() -> impl Strategy<Value = Option<String>> {
    option::of("[a-z]{2}(-[A-Z]{2})?")
}

fn local_text() -> impl Strategy<Value = LocalText> {
    (lang(), text()).prop_map(|(lang, text)| LocalText { lang, text })
}

fn texts() -> impl Strategy<Value = Vec<LocalText>> {
    vec(local_text(), 0..3)
}

fn paragraphs() -> impl Strategy<Value = LocalText> {
    let text = vec(text(), 1..4).prop_flat_map(|lines| {
        prop_oneof![Just("\n"), Just("\n\n")].prop_map(move |separator| lines.join(separator))
    });
    (lang(), text).prop_map(|(lang, text)| LocalText { lang, text })
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    option::of(text())
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(all)
}

fn url() -> impl Strategy<Value = ProgrammeUrl> {
    (maybe(), "http://[a-z]{1,5}/[a-z?&=\"']{0,9}").prop_map(|(system, url)| ProgrammeUrl { system, url })
}

fn icon() -> impl Strategy<Value = ProgrammeIcon> {
    ("http://[a-z]{1,5}/[a-z?&=\"']{0,9}", option::of(any::<u32>()), option::of(any::<u32>()))
        .prop_map(|(src, width, height)| ProgrammeIcon { src, width, height })
}

fn image() -> impl Strategy<Value = ProgrammeImage> {
    let parts = (url(), option::of(one_of(ImageKind::ALL)), option::of(1..=3_u8), any::<Option<bool>>());
    parts.prop_map(|(url, kind, size, is_portrait)| ProgrammeImage {
        url: url.url,
        kind,
        size,
        is_portrait,
        system: url.system,
    })
}

fn credit() -> impl Strategy<Value = Credit> {
    let parts = (
        one_of(CreditRole::ALL),
        text(),
        maybe(),
        any::<Option<bool>>(),
        vec(image(), 0..2),
        vec(url(), 0..2),
    );
    parts.prop_map(|(role, name, character, is_guest, images, urls)| Credit {
        role,
        name,
        character: character.filter(|_| role == CreditRole::Actor),
        is_guest: is_guest.filter(|_| role == CreditRole::Actor),
        images,
        urls,
    })
}

fn rating() -> impl Strategy<Value = ProgrammeRating> {
    (maybe(), text(), vec(icon(), 0..2)).prop_map(|(system, value, icons)| ProgrammeRating {
        system,
        value,
        icons,
    })
}

fn review() -> impl Strategy<Value = ProgrammeReview> {
    let parts = (any::<bool>(), maybe(), maybe(), paragraphs(), url());
    parts.prop_map(|(is_text, source, reviewer, text, url)| {
        let (kind, content) =
            if is_text { (ReviewKind::Text, text.text) } else { (ReviewKind::Url, url.url) };
        ProgrammeReview { kind, source, reviewer, lang: text.lang, text: content }
    })
}

prop_compose! {
    fn texts_of_a_programme()(
        titles in vec(local_text(), 0..3), sub_titles in texts(), descriptions in vec(paragraphs(), 0..3),
        categories in texts(), keywords in texts(), countries in texts(),
        language in option::of(local_text()), orig_language in option::of(local_text()),
        premiere in option::of(local_text()), last_chance in option::of(local_text()),
    ) -> Programme {
        Programme {
            titles, sub_titles, descriptions, categories, keywords, countries, language, orig_language, premiere,
            last_chance, ..Programme::default()
        }
    }
}

prop_compose! {
    fn programme()(
        texts in texts_of_a_programme(),
        times in (0..4_000_000_000_i64, 0..4_000_000_000_i64),
        attributes in (option::of(0..4_000_000_000_i64), option::of(0..4_000_000_000_i64), maybe(), maybe(), maybe()),
        mut credits in vec(credit(), 0..4),
        date in option::of("(19|20)[0-9]{2}([01][0-9])?"),
        length in option::of((any::<u32>(), one_of(LengthUnit::ALL))),
        pictures in (vec(icon(), 0..2), vec(url(), 0..2), vec(image(), 0..2)),
        episode_numbers in vec((maybe(), text()), 0..3),
        video in option::of((any::<Option<bool>>(), any::<bool>(), maybe(), maybe())),
        audio in option::of((any::<bool>(), maybe())),
        previously_shown in option::of((maybe(), maybe())),
        flags in any::<(bool, bool)>(),
        subtitles in vec((option::of(one_of(SubtitlesKind::ALL)), option::of(local_text())), 0..3),
        ratings in (vec(rating(), 0..2), vec(rating(), 0..2)),
        reviews in vec(review(), 0..2),
    ) -> Programme {
        credits.sort_by_key(|it| it.role);
        let (icons, urls, images) = pictures;
        let (pdc_start, vps_start, showview, videoplus, clump_index) = attributes;
        Programme {
            start: times.0,
            stop: times.1,
            pdc_start, vps_start, showview, videoplus, clump_index, credits, date,
            length: length.map(|(value, unit)| ProgrammeLength { value, unit }),
            icons, urls, images,
            episode_numbers: episode_numbers.into_iter().map(|(system, value)| EpisodeNumber { system, value }).collect(),
            video: video.map(|(present, colour, aspect, quality)| ProgrammeVideo {
                present, colour: Some(colour), aspect, quality,
            }),
            audio: audio.map(|(present, stereo)| ProgrammeAudio { present: Some(present), stereo }),
            previously_shown: previously_shown.map(|(start, channel)| PreviouslyShown { start, channel }),
            is_new: flags.0,
            is_live: flags.1,
            subtitles: subtitles.into_iter().map(|(kind, language)| ProgrammeSubtitles { kind, language }).collect(),
            ratings: ratings.0,
            star_ratings: ratings.1,
            reviews,
            ..texts
        }
    }
}

/// Returns the fields that [`brief_from_xml`] reads.
fn brief(it: &Programme) -> Programme {
    let texts = |list: &[LocalText]| list.iter().map(|it| LocalText::new(&it.text)).collect();
    Programme {
        start: it.start,
        stop: it.stop,
        titles: texts(&it.titles),
        sub_titles: texts(&it.sub_titles),
        descriptions: texts(&it.descriptions),
        date: it.date.clone(),
        categories: texts(&it.categories),
        episode_numbers: it.episode_numbers.clone(),
        previously_shown: it.previously_shown.as_ref().map(|_| PreviouslyShown::default()),
        is_new: it.is_new,
        ..Programme::default()
    }
}

fn xml(programme: &Programme) -> String {
    let mut out = String::new();
    to_xml(programme, &mut out);
    out
}

proptest! {
    #[test]
    fn every_field_is_written_and_read_again(programme in programme()) {
        let xml = xml(&programme);
        prop_assert_eq!(from_xml(programme.start, programme.stop, &xml).unwrap(), programme, "{}", xml);
    }

    #[test]
    fn a_few_fields_are_the_same_as_of_a_whole_programme(programme in programme()) {
        let xml = xml(&programme);
        let read = brief_from_xml(programme.start, programme.stop, &xml).unwrap();
        prop_assert_eq!(brief(&read), brief(&programme), "{}", xml);
    }

    #[test]
    fn a_few_fields_are_the_same_of_any_text(text in "[\\PC\\n\\r\\x{0}-\\x{20}]*") {
        let texts = || vec![LocalText::new(&text)];
        let programme = Programme {
            titles: texts(),
            sub_titles: texts(),
            descriptions: texts(),
            keywords: texts(),
            categories: texts(),
            episode_numbers: vec![EpisodeNumber { system: Some(text.clone()), value: text.clone() }],
            ..Programme::default()
        };
        let xml = xml(&programme);
        prop_assert_eq!(brief(&brief_from_xml(0, 0, &xml).unwrap()), brief(&from_xml(0, 0, &xml).unwrap()), "{}", xml);
    }

    #[test]
    fn any_text_becomes_canonical_with_one_reading(title in "\\PC*|[ -\\x{A0}\\n\\r\\t]*", block in "[\\PC\\n\\r\\x{0}-\\x{20}]*") {
        let programme = Programme {
            titles: vec![LocalText::new(title)],
            descriptions: vec![LocalText::new(block)],
            ..Programme::default()
        };
        let read = from_xml(0, 0, &xml(&programme)).unwrap();
        prop_assert_eq!(from_xml(0, 0, &xml(&read)).unwrap(), read);
    }

    #[test]
    fn no_inside_makes_a_panic(inner in "\\PC*|( clumpidx=\"1\")?(<(title|credits|actor|length|new)( lang=\"a\")?/?>|</title>|&amp;|&#0;|a){0,9}") {
        let _ = from_xml(0, 0, &inner);
        let _ = brief_from_xml(0, 0, &inner);
    }
}

#[test]
fn children_are_in_the_order_of_the_dtd() {
    let programme = Programme {
        clump_index: Some("0/2".into()),
        vps_start: Some(0),
        titles: vec![LocalText::with_lang("de", "Tatort & mehr")],
        descriptions: vec![LocalText::new("Eins.\n\nZwei.")],
        credits: vec![
            Credit::new(CreditRole::Guest, "Guest"),
            Credit {
                character: Some("Hero".into()),
                is_guest: Some(true),
                ..Credit::new(CreditRole::Actor, "Actor")
            },
            Credit::new(CreditRole::Director, "Director"),
        ],
        is_live: true,
        is_new: true,
        video: Some(ProgrammeVideo { quality: Some("HDTV".into()), ..ProgrammeVideo::default() }),
        ..Programme::default()
    };
    assert_eq!(
        xml(&programme),
        " vps-start=\"19700101000000 +0000\" clumpidx=\"0/2\">\
         <title lang=\"de\">Tatort &amp; mehr</title><desc>Eins.\n\nZwei.</desc>\
         <credits><director>Director</director><actor role=\"Hero\" guest=\"yes\">Actor</actor>\
         <guest>Guest</guest></credits><keyword>live</keyword>\
         <video><quality>HDTV</quality></video><new/>"
    );
    assert_eq!(xml(&Programme::default()), "<title></title>", "the DTD requires a title");
}

#[test]
fn a_programme_of_another_program_is_read_with_its_habits() {
    let inner = "
        <title lang='en'>  The <b>Title</b> </title><title></title>
        <sub-title/>
        <desc>One<br/>two</desc>
        <credits><voice>Nobody</voice><actor role=''>A<image type='person' size='9' orient='P'>http://h/a</image></actor>
          <director> </director></credits>
        <length>90</length><length units='hours'>1.5</length>
        <icon/><icon src=' http://h/i '/>
        <video><colour>maybe</colour></video>
        <live/><new>0</new><unknown>1</unknown>
        <rating system='FSK'>12</rating><rating system='X'><value/></rating>
        <star-rating><value>7/10</value></star-rating>
        <review>Fine</review>";
    let programme = from_xml(1, 2, inner).unwrap();
    let expected = Programme {
        start: 1,
        stop: 2,
        titles: vec![LocalText::with_lang("en", "The Title")],
        descriptions: vec![LocalText::new("One\ntwo")],
        credits: vec![Credit {
            images: vec![ProgrammeImage {
                url: "http://h/a".into(),
                kind: Some(ImageKind::Person),
                is_portrait: Some(true),
                ..ProgrammeImage::default()
            }],
            ..Credit::new(CreditRole::Actor, "A")
        }],
        length: Some(ProgrammeLength { value: 90, unit: LengthUnit::Minutes }),
        icons: vec![ProgrammeIcon { src: "http://h/i".into(), ..ProgrammeIcon::default() }],
        is_live: true,
        ratings: vec![ProgrammeRating { system: Some("FSK".into()), value: "12".into(), icons: Vec::new() }],
        star_ratings: vec![ProgrammeRating { value: "7/10".into(), ..ProgrammeRating::default() }],
        reviews: vec![ProgrammeReview {
            kind: ReviewKind::Text,
            source: None,
            reviewer: None,
            lang: None,
            text: "Fine".into(),
        }],
        ..Programme::default()
    };
    assert_eq!(programme, expected);
}

#[test]
fn lists_and_texts_of_a_programme_are_bounded() {
    let credits = "<guest>G</guest>".repeat(ENTRIES_MAX + 1);
    let inner = format!("<title>{}</title><credits>{credits}</credits>", "a ".repeat(2 * TEXT_CHARS_MAX));
    let programme = from_xml(0, 0, &inner).unwrap();
    assert_eq!((programme.credits.len(), programme.title().len()), (ENTRIES_MAX, TEXT_CHARS_MAX - 1));
    assert!(from_xml(0, 0, &"<a/>".repeat(50_000)).is_err(), "more nodes than allowed");
    assert!(from_xml(0, 0, "</programme><programme>").is_err(), "a second element");
}

#[test]
fn notes_of_a_programme_answer_questions_about_it() {
    let with = |inner: &str| from_xml(0, 0, inner).unwrap();
    let plain = with("<title>A</title>");
    assert!(!plain.is_new() && !plain.is_live() && !plain.is_premiere() && !plain.is_finale());
    assert!(!plain.is_previously_shown());
    assert_eq!((plain.year(), plain.icon(), plain.poster(), plain.imdb_id()), (None, None, None, None));
    assert!(with("<premiere/>").is_premiere());
    let finale = with("<premiere>Series Finale</premiere>");
    assert!(finale.is_finale() && !finale.is_premiere());
    assert!(with("<last-chance>Season finale</last-chance>").is_finale());
    assert!(with("<keyword>finale</keyword>").is_finale());
    let film = with(
        "<title>Heat</title><date>19951215</date><category lang='en'>Film</category><category>Crime</category>\
         <icon src='http://h/i'/><url system='imdb'>https://imdb.example/title/tt0113277/</url>\
         <episode-num system='themoviedb.org'>movie/949</episode-num>\
         <episode-num system='thetvdb.com'>series/7</episode-num>\
         <previously-shown/><image type='still'>http://h/s</image><image type='poster'>http://h/p</image>",
    );
    assert_eq!(film.year(), Some(1995));
    assert_eq!(film.categories().collect::<Vec<_>>(), ["Film", "Crime"]);
    assert_eq!((film.icon(), film.poster()), (Some("http://h/i"), Some("http://h/p")));
    assert_eq!((film.imdb_id(), film.tmdb_id(), film.tvdb_id()), (Some("tt0113277"), Some("949"), Some("7")));
    assert_eq!(film.texts().collect::<Vec<_>>(), ["Heat", "Film", "Crime"]);
    assert!(film.is_previously_shown());
}

#[test]
fn the_name_in_an_archive_is_kept_in_the_stored_form() {
    for id in ["7", "http://u:p@h/a?b=1&c=\">x"] {
        for clump_index in [None, Some("0/2".to_owned())] {
            let programme = Programme {
                catchup_id: Some(id.to_owned()),
                clump_index,
                titles: vec![LocalText::new("A")],
                ..Programme::default()
            };
            let mut inner = String::new();
            to_xml(&programme, &mut inner);
            assert_eq!(from_xml(0, 0, &inner).as_ref(), Ok(&programme), "{inner}");
        }
    }
    let read = from_xml(0, 0, " catchup-id=\"  \"><title>A</title>").map(|it| it.catchup_id);
    assert_eq!(read, Ok(None));
}
