//! Tables of marks by language, and of names that are none.

use proptest::prelude::*;

use super::*;
use crate::guide::programme::{from_xml, to_xml};

/// Returns marks as a text, in a fixed order.
fn said(marks: &Marks) -> String {
    let flags = [
        (marks.is_new, "new"),
        (marks.is_live, "live"),
        (marks.is_repeat, "repeat"),
        (marks.is_premiere, "premiere"),
    ];
    let flags = flags.into_iter().filter(|it| it.0).map(|it| it.1.to_owned());
    let numbers = [("s", marks.season), ("e", marks.episode), ("y", marks.year)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some(format!("{name}{}", number?)));
    flags.chain(marks.quality.map(str::to_owned)).chain(numbers).collect::<Vec<_>>().join(" ")
}

fn check_as(kind: MarkedText, text: &str, plain_text: &str, expected: &str) {
    let (marks, without) = read(text, kind).unwrap_or((Marks::default(), text.into()));
    assert_eq!((&*without, said(&marks).as_str()), (plain_text, expected), "{text}");
    assert_eq!(plain(&without, kind), without, "a text without marks stays as it is: {text}");
}

fn check(title: &str, plain_title: &str, expected: &str) {
    check_as(MarkedText::Title, title, plain_title, expected);
}

#[test]
fn names_stay_whole() {
    for name in [
        "24",
        "1899",
        "1917",
        "The 100",
        "Live and Let Die",
        "New Girl",
        "90210",
        "11/22/63",
        "9-1-1",
        "S.W.A.T.",
        "9/11",
        "Fahrenheit 9/11",
        "20/20",
        "50/50",
        "24/7",
        "M*A*S*H",
        "[REC]",
        "(500) Days of Summer",
        "Se7en",
        "Apollo 13",
        "Ocean's 8",
        "Blade Runner 2049",
        "Space: 1999",
        "2 1/2 Men",
        "9 1/2 Weeks",
        "8 1/2",
        "K-19",
        "U-571",
        "T2 Trainspotting",
        "Star Wars: Episode 4",
        "Star Wars Episode 1",
        "Open Season 2",
        "Area 51",
        "Saturday Night Live",
        "Live",
        "New",
        "Repeat",
        "The New Pope",
        "What's New",
        "Born to Be Live",
        "Live!",
        "E4",
        "S4C",
        "Route E45",
        "Athletics 4x100",
        "Ski 4x10 km",
        "NOVA: Black Hole",
        "Toys (R) Us",
        "Law & Order: SVU",
        "Law & Order (US)",
        "Premier League 2023/24",
        "Euro 2024",
        "Formula 1: Race",
        "Top 10",
        "Terminator 2",
        "Rocky IV",
        "Alien³",
        "E=mc²",
        "H₂O",
        "Teil 2",
        "Kill Bill: Vol. 2",
        "Die Hard 4.0",
        "Tatort",
        "7 vs. Wild",
        "Channel 5 News",
        "Studio 10",
        "HD",
        "4K",
        "R",
        "(N)",
        "New York, New York",
        "Late Show with Stephen Colbert",
        "Diretta",
        "Novo Mundo",
        "Nuevo Día",
        "Neues aus der Welt",
        "La Nouvelle Vague",
        "Hawaii Five-0",
        "3%",
        "1×1",
        "12 Monkeys",
        "Warehouse 13",
        "The 4400",
        "21 Jump Street",
        "30 Rock",
        "S1m0ne",
        "S2",
        "Stargate SG-1",
        "Babylon 5",
        "Deep Space 9",
        "District 9",
        "UEFA U21",
        "Call 911",
        "Twenty20",
        "The L Word",
        "V",
        "Ep",
        "Season",
        "50 First Dates",
        "Tele 5",
        "Inside No. 9",
        "Catch-22",
        "1.000 Wege",
        "Wehe, wenn ...",
        "Number 1",
    ] {
        check(name, name, "");
    }
}

#[test]
fn marks_in_other_letters_and_in_brackets_are_read_in_english() {
    for (title, plain_title, marks) in [
        ("Harbour Lights ᴺᵉʷ", "Harbour Lights", "new"),
        ("Harbour Lights ᴺᴱᵂ ᴴᴰ", "Harbour Lights", "new HDTV"),
        ("Football: A v B ᴸᶦᵛᵉ", "Football: A v B", "live"),
        ("Football: A v Bᴸᶦᵛᵉ", "Football: A v B", "live"),
        ("ᴸᶦᵛᵉ Football", "Football", "live"),
        ("Harbour Lights ᴿᵉᵖᵉᵃᵗ", "Harbour Lights", "repeat"),
        ("Harbour Lights ᴺᵉʷ ᴱᵖᶦˢᵒᵈᵉ", "Harbour Lights", "new"),
        ("Harbour Lights ᵁᴴᴰ", "Harbour Lights", "UHDTV"),
        ("Harbour Lights ⁴ᴷ", "Harbour Lights", "UHDTV"),
        ("Harbour Lights ᴺᵉʷ: Two Boats", "Harbour Lights: Two Boats", "new"),
        ("Harbour Lights ɴᴇᴡ", "Harbour Lights", "new"),
        ("🆕 Harbour Lights", "Harbour Lights", "new"),
        ("🔴 Harbour v Lights", "Harbour v Lights", "live"),
        ("🔴 LIVE: Harbour v Lights", "Harbour v Lights", "live"),
        ("Harbour Lights ᴸᶦᵛᵉᴺᵉʷ", "Harbour Lights", "new live"),
        ("Harbour Lights ᴺᵉʷᴴᴰ", "Harbour Lights", "new HDTV"),
        ("Harbour Lights 🅽🅴🆆", "Harbour Lights", "new"),
        ("Harbour Lights ⓁⒾⓋⒺ", "Harbour Lights", "live"),
        ("Harbour Lights (N)", "Harbour Lights", "new"),
        ("Harbour Lights (R)", "Harbour Lights", "repeat"),
        ("Harbour Lights [NEW]", "Harbour Lights", "new"),
        ("[New] Harbour Lights", "Harbour Lights", "new"),
        ("Harbour Lights {new}", "Harbour Lights", "new"),
        ("*NEW* Harbour Lights", "Harbour Lights", "new"),
        ("Harbour Lights *NEW*", "Harbour Lights", "new"),
        ("Harbour Lights (New!)", "Harbour Lights", "new"),
        ("Harbour Lights (New) (HD)", "Harbour Lights", "new HDTV"),
        ("Harbour Lights [HD, New]", "Harbour Lights", "new HDTV"),
        ("Harbour Lights [HD][S,AD,New]", "Harbour Lights", "new HDTV"),
        ("Harbour Lights (New) - Two Boats", "Harbour Lights - Two Boats", "new"),
        ("New: Harbour Lights", "Harbour Lights", "new"),
        ("NEW: New Girl", "New Girl", "new"),
        ("LIVE: Football", "Football", "live"),
        ("Harbour Lights | NEW", "Harbour Lights", "new"),
        ("Harbour Lights HD", "Harbour Lights", "HDTV"),
        ("Harbour Lights (1080p)", "Harbour Lights", "HDTV"),
        ("Harbour Lights (Premiere)", "Harbour Lights", "premiere"),
        ("1899 (2022)", "1899", "y2022"),
        ("24 (N)", "24", "new"),
        ("Harbour Lights [2019] (R)", "Harbour Lights", "repeat y2019"),
    ] {
        check(title, plain_title, marks);
    }
}

#[test]
fn numbers_are_read_in_every_notation() {
    for (title, marks) in [
        ("Harbour Lights S01 E05", "s1 e5"),
        ("Harbour Lights S01E05", "s1 e5"),
        ("Harbour Lights s1e5", "s1 e5"),
        ("Harbour Lights (S1 Ep5)", "s1 e5"),
        ("Harbour Lights (S1, Ep 5/10)", "s1 e5"),
        ("Harbour Lights [S01.E05]", "s1 e5"),
        ("Harbour Lights - S1:E5", "s1 e5"),
        ("Harbour Lights, S1 Ep. 5 of 10", "s1 e5"),
        ("Harbour Lights Season 1 Episode 5", "s1 e5"),
        ("Harbour Lights Season 1, Episode 5 of 10", "s1 e5"),
        ("Harbour Lights (Episode 5, Season 1)", "s1 e5"),
        ("Harbour Lights S01E05E06", "s1 e5"),
        ("Harbour Lights S01E05-06", "s1 e5"),
        ("Harbour Lights 1x05", "s1 e5"),
        ("Harbour Lights (1x05)", "s1 e5"),
        ("Harbour Lights S01E05 Two Boats", "s1 e5"),
        ("Harbour Lights S01E05 - Two Boats (HD)", "HDTV s1 e5"),
        ("S01E05 Harbour Lights", "s1 e5"),
        ("Harbour Lights (S2)", "s2"),
        ("Harbour Lights (Season 2)", "s2"),
        ("Harbour Lights (Ep. 5)", "e5"),
        ("Harbour Lights (Episode 5)", "e5"),
        ("Harbour Lights Ep.5", "e5"),
        ("Harbour Lights E05", "e5"),
        ("Harbour Lights 1/6", "e1"),
        ("Harbour Lights (1/6)", "e1"),
        ("Harbour Lights [1/6]", "e1"),
        ("Harbour Lights (1 of 6)", "e1"),
        ("Harbour Lights (9 of 11)", "e9"),
        ("Harbour Lights (#5)", "e5"),
        ("Harbour Lights (S2024E101)", "s2024 e101"),
        ("Harbour Lights S01 E05 (N)", "new s1 e5"),
        ("Harbour Lights (N) S01 E05", "new s1 e5"),
        ("Harbour Lights ᴺᵉʷ S01 E05", "new s1 e5"),
        ("Harbour Lights S01 E05 ᴺᵉʷ", "new s1 e5"),
        ("New: Harbour Lights (S1 E5, HD)", "new HDTV s1 e5"),
    ] {
        check(title, "Harbour Lights", marks);
    }
}

#[test]
fn every_language_has_its_words() {
    for (lang, title, plain_title, marks) in [
        ("de", "Hafenlichter (Neu)", "Hafenlichter", "new"),
        ("de", "NEU: Hafenlichter", "Hafenlichter", "new"),
        ("de", "Hafenlichter [Neue Folgen]", "Hafenlichter", "new"),
        ("de", "Hafenlichter (Wdh.)", "Hafenlichter", "repeat"),
        ("de", "Hafenlichter (WH)", "Hafenlichter", "repeat"),
        ("de", "Hafenlichter (Staffel 1, Folge 5)", "Hafenlichter", "s1 e5"),
        ("de", "Hafenlichter Staffel 1 Folge 5", "Hafenlichter", "s1 e5"),
        ("de", "Hafenlichter - Folge 4212", "Hafenlichter", "e4212"),
        ("de", "Hafenlichter Staffel 3", "Hafenlichter", "s3"),
        ("de", "Hafenlichter (1 von 6)", "Hafenlichter", "e1"),
        ("de", "Hafenlichter (Free-TV-Premiere)", "Hafenlichter", "premiere"),
        ("fr", "Lumières du port (inédit)", "Lumières du port", "new"),
        ("fr", "Lumières du port [Nouveauté]", "Lumières du port", "new"),
        ("fr", "Lumières du port (en direct)", "Lumières du port", "live"),
        ("fr", "Lumières du port (Rediff.)", "Lumières du port", "repeat"),
        ("fr", "Lumières du port (Saison 1, épisode 5)", "Lumières du port", "s1 e5"),
        ("fr", "Lumières du port - Saison 1 Épisode 5", "Lumières du port", "s1 e5"),
        ("fr", "Lumières du port S1 Ep5", "Lumières du port", "s1 e5"),
        ("es", "Luces del puerto (Estreno)", "Luces del puerto", "premiere"),
        ("es", "Luces del puerto (Nuevo episodio)", "Luces del puerto", "new"),
        ("es", "Luces del puerto [En directo]", "Luces del puerto", "live"),
        ("es", "Luces del puerto (Repetición)", "Luces del puerto", "repeat"),
        ("es", "Luces del puerto T1 E5", "Luces del puerto", "s1 e5"),
        ("es", "Luces del puerto (T1:E5)", "Luces del puerto", "s1 e5"),
        ("es", "Luces del puerto (Temporada 1, Capítulo 5)", "Luces del puerto", "s1 e5"),
        ("es", "Luces del puerto Cap. 25", "Luces del puerto", "e25"),
        ("it", "Luci del porto (1ª TV)", "Luci del porto", "premiere"),
        ("it", "Luci del porto (Prima TV)", "Luci del porto", "premiere"),
        ("it", "Luci del porto (Diretta)", "Luci del porto", "live"),
        ("it", "Luci del porto (Replica)", "Luci del porto", "repeat"),
        ("it", "Luci del porto S1 Ep5", "Luci del porto", "s1 e5"),
        ("it", "Luci del porto (Stagione 1 - Episodio 5)", "Luci del porto", "s1 e5"),
        ("it", "Luci del porto (5 di 10)", "Luci del porto", "e5"),
        ("nl", "Havenlichten (Nieuw)", "Havenlichten", "new"),
        ("nl", "Havenlichten (herhaling)", "Havenlichten", "repeat"),
        ("nl", "Havenlichten (herh.)", "Havenlichten", "repeat"),
        ("nl", "Havenlichten (rechtstreeks)", "Havenlichten", "live"),
        ("nl", "Havenlichten (Seizoen 1, Afl. 5)", "Havenlichten", "s1 e5"),
        ("nl", "Havenlichten afl. 5", "Havenlichten", "e5"),
        ("nl", "Havenlichten (5 van 10)", "Havenlichten", "e5"),
        ("pl", "Światła portu (nowy odcinek)", "Światła portu", "new"),
        ("pl", "Światła portu (premiera)", "Światła portu", "premiere"),
        ("pl", "Światła portu (na żywo)", "Światła portu", "live"),
        ("pl", "Światła portu (powt.)", "Światła portu", "repeat"),
        ("pl", "Światła portu (sezon 1, odc. 5)", "Światła portu", "s1 e5"),
        ("pl", "Światła portu odc. 5", "Światła portu", "e5"),
        ("pl", "Światła portu (odc. 5/10)", "Światła portu", "e5"),
        ("pt", "Luzes do porto (Inédito)", "Luzes do porto", "new"),
        ("pt", "Luzes do porto (Estreia)", "Luzes do porto", "premiere"),
        ("pt", "Luzes do porto (Ao vivo)", "Luzes do porto", "live"),
        ("pt", "Luzes do porto [Em direto]", "Luzes do porto", "live"),
        ("pt", "Luzes do porto (Reprise)", "Luzes do porto", "repeat"),
        ("pt", "Luzes do porto T1 Ep. 5", "Luzes do porto", "s1 e5"),
        ("pt", "Luzes do porto (Temporada 1 Episódio 5)", "Luzes do porto", "s1 e5"),
        ("sv", "Hamnljus (Nytt avsnitt)", "Hamnljus", "new"),
        ("sv", "Hamnljus (Repris)", "Hamnljus", "repeat"),
        ("sv", "Hamnljus (Säsong 1, avsnitt 5)", "Hamnljus", "s1 e5"),
        ("sv", "Hamnljus (5 av 10)", "Hamnljus", "e5"),
        ("da", "Havnelys (Genudsendelse)", "Havnelys", "repeat"),
        ("da", "Havnelys (Sæson 1, afsnit 5)", "Havnelys", "s1 e5"),
        ("no", "Havnelys (Sesong 1, episode 5)", "Havnelys", "s1 e5"),
        ("fi", "Sataman valot (uusi)", "Sataman valot", "new"),
        ("fi", "Sataman valot (U)", "Sataman valot", "repeat"),
        ("fi", "Sataman valot (Kausi 1, jakso 5)", "Sataman valot", "s1 e5"),
        ("cs", "Světla přístavu (přímý přenos)", "Světla přístavu", "live"),
        ("cs", "Světla přístavu (5. díl)", "Světla přístavu", "e5"),
        ("cs", "Světla přístavu (5/10)", "Světla přístavu", "e5"),
        ("hu", "Kikötői fények (ism.)", "Kikötői fények", "repeat"),
        ("hu", "Kikötői fények (1. évad 5. rész)", "Kikötői fények", "s1 e5"),
        ("ro", "Luminile portului (reluare)", "Luminile portului", "repeat"),
        ("ro", "Luminile portului (Sezonul 1, Episodul 5)", "Luminile portului", "s1 e5"),
        ("tr", "Liman Işıkları (Yeni Bölüm)", "Liman Işıkları", "new"),
        ("tr", "Liman Işıkları 5. Bölüm", "Liman Işıkları", "e5"),
        ("tr", "Liman Işıkları (Canlı)", "Liman Işıkları", "live"),
        ("ru", "Огни порта (новая серия)", "Огни порта", "new"),
        ("ru", "Огни порта (прямой эфир)", "Огни порта", "live"),
        ("ru", "Огни порта (1 сезон, 5 серия)", "Огни порта", "s1 e5"),
        ("ru", "Огни порта (5-я серия)", "Огни порта", "e5"),
        ("el", "Φώτα του λιμανιού (Ε)", "Φώτα του λιμανιού", "repeat"),
        ("el", "Φώτα του λιμανιού (απευθείας)", "Φώτα του λιμανιού", "live"),
        ("ja", "[新]港の灯", "港の灯", "new"),
        ("ja", "港の灯[再][字]", "港の灯", "repeat"),
        ("ja", "港の灯[字]", "港の灯", ""),
        ("ja", "港の灯 第5話", "港の灯", "e5"),
        ("ja", "🈟港の灯", "港の灯", "new"),
        ("zh", "港口之光(直播)", "港口之光", "live"),
        ("zh", "港口之光 第1季第5集", "港口之光", "s1 e5"),
        ("ko", "항구의 불빛 (재방송)", "항구의 불빛", "repeat"),
    ] {
        assert!(words::WORDS.iter().any(|it| it.0 == lang), "{lang} has words");
        check(title, plain_title, marks);
    }
}

#[test]
fn sub_titles_and_descriptions_have_marks_at_their_ends() {
    use MarkedText::{Description, SubTitle};
    for (kind, text, plain_text, marks) in [
        (SubTitle, "S01 E05 Two Boats", "Two Boats", "s1 e5"),
        (SubTitle, "Two Boats (S1 Ep5)", "Two Boats", "s1 e5"),
        (SubTitle, "Two Boats ᴺᵉʷ", "Two Boats", "new"),
        (SubTitle, "Two Boats (R)", "Two Boats", "repeat"),
        (SubTitle, "Episode 5", "Episode 5", "e5"),
        (SubTitle, "(1/6)", "(1/6)", "e1"),
        (SubTitle, "1/6", "1/6", "e1"),
        (SubTitle, "1/6: Two Boats", "Two Boats", "e1"),
        (SubTitle, "Folge 5: Zwei Boote", "Zwei Boote", "e5"),
        (SubTitle, "E5 - Two Boats", "Two Boats", "e5"),
        (SubTitle, "Two Boats", "Two Boats", ""),
        (SubTitle, "The 5 Boats", "The 5 Boats", ""),
        (SubTitle, "9/11: The Day", "9/11: The Day", ""),
        (Description, "S01 E05 Two Boats\nA storm comes.", "Two Boats\nA storm comes.", "s1 e5"),
        (Description, "(S1 Ep5) A storm comes.", "A storm comes.", "s1 e5"),
        (Description, "A storm comes. (S1, ep 5/10)", "A storm comes.", "s1 e5"),
        (Description, "A storm comes. S1 Ep5", "A storm comes.", "s1 e5"),
        (Description, "1/6. A storm comes.", "A storm comes.", "e1"),
        (Description, "Season 1 Episode 5. A storm comes.", "A storm comes.", "s1 e5"),
        (Description, "New. A storm comes.", "A storm comes.", "new"),
        (Description, "New series. A storm comes.", "A storm comes.", "new"),
        (Description, "[NEW] A storm comes. [HD]", "A storm comes.", "new HDTV"),
        (Description, "ᴺᵉʷ A storm comes.", "A storm comes.", "new"),
        (Description, "A storm comes. (R)", "A storm comes.", "repeat"),
        (Description, "A storm comes. [HD] [S,AD,HD]", "A storm comes.", "HDTV"),
        (Description, "Wiederholung. Ein Sturm kommt.", "Ein Sturm kommt.", "repeat"),
        (Description, "(2019) A storm comes.", "A storm comes.", "y2019"),
        (Description, "A storm comes. (2019)", "A storm comes.", "y2019"),
        (Description, "New boats come (not live) in 2019.", "New boats come (not live) in 2019.", ""),
        (Description, "Episode 5 shows a storm.", "Episode 5 shows a storm.", ""),
        (Description, "5 boats and 1/6 of the crew.", "5 boats and 1/6 of the crew.", ""),
        (Description, "Live from the port.", "Live from the port.", ""),
        (Description, "24 hours of news on channel 5", "24 hours of news on channel 5", ""),
    ] {
        check_as(kind, text, plain_text, marks);
    }
}

fn applied(inner: &str) -> Programme {
    let programme = with_marks(&from_xml(0, 60, inner).unwrap()).into_owned();
    let mut stored = String::new();
    to_xml(&programme, &mut stored);
    assert_eq!(from_xml(0, 60, &stored).as_ref(), Ok(&programme), "{stored}");
    programme
}

#[test]
fn a_programme_gets_the_fields_that_its_marks_mean_and_keeps_its_texts() {
    let it = applied(
        "<title>Lights ᴺᵉʷ ᴴᴰ (2019)</title><sub-title>Two Boats (Live)</sub-title><desc>S01 E05 A storm.</desc>",
    );
    assert!(it.is_new() && it.is_live() && !it.is_previously_shown());
    assert_eq!((it.season_episode(), it.year()), ((Some(1), Some(5)), Some(2019)));
    assert_eq!(it.video.and_then(|it| it.quality).as_deref(), Some("HDTV"));
    assert_eq!(it.titles[0].text, "Lights ᴺᵉʷ ᴴᴰ (2019)");
    assert!(applied("<title>Lights (R)</title>").is_previously_shown());
    let premiere = applied("<title>Lights (Premiere)</title>");
    assert!(premiere.is_premiere() && premiere.is_new());
    assert_eq!(
        applied("<title>Lights</title><desc>A storm.</desc>"),
        from_xml(0, 60, "<title>Lights</title><desc>A storm.</desc>").unwrap()
    );
}

#[test]
fn elements_of_the_guide_count_more_than_marks() {
    let it = applied(
        "<title>Lights (N) S1E5</title><previously-shown/><episode-num system=\"xmltv_ns\">1.2.</episode-num>",
    );
    assert!(it.is_previously_shown() && !it.is_new());
    assert_eq!(it.season_episode(), (Some(2), Some(3)));
    let it = applied(
        "<title>Lights (R) [HD] (2019)</title><date>2001</date><video><quality>SDTV</quality></video><new/>",
    );
    assert!(it.is_new() && !it.is_previously_shown());
    assert_eq!((it.year(), it.video.and_then(|it| it.quality).as_deref()), (Some(2001), Some("SDTV")));
    for (own, season_episode) in [
        (".4.", (Some(1), Some(5))),
        ("0..", (Some(1), Some(5))),
        (".7.", (None, Some(8))),
        ("3..", (Some(4), None)),
    ] {
        let inner = format!("<title>Lights S1E5</title><episode-num system=\"xmltv_ns\">{own}</episode-num>");
        assert_eq!(applied(&inner).season_episode(), season_episode, "{own}");
    }
    let both = applied("<title>Lights (N)</title><sub-title>Boats (R)</sub-title>");
    assert!(both.is_new() && !both.is_previously_shown());
}

#[test]
fn a_rule_means_all_of_a_series_unless_its_title_names_one_showing() {
    assert_eq!(plain_of_rule("Harbour Lights ᴺᵉʷ [HD]"), "Harbour Lights");
    assert_eq!(plain_of_rule("Harbour Lights S01E05 (N)"), "Harbour Lights S01E05 (N)");
    assert_eq!(plain_of_rule("Harbour Lights (2005)"), "Harbour Lights (2005)");
}

#[test]
fn every_word_of_the_table_is_a_mark_in_brackets_and_has_one_meaning() {
    let mut meanings = std::collections::HashMap::new();
    for (lang, word, texts) in words::WORDS {
        for text in *texts {
            assert_eq!(text.to_lowercase(), **text, "{lang}: {text} is in lower case");
            assert_eq!(*meanings.entry(*text).or_insert(*word), *word, "{lang}: {text} has two meanings");
            if *word != Word::Other && !text.starts_with('(') {
                let title = format!("Harbour ({text})");
                assert_eq!(plain(&title, MarkedText::Title), "Harbour", "{lang}: {text}");
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_panic_and_a_plain_text_is_never_empty(
        text in "\\PC{0,40}|[ -~ᴺᵉʷ🆕()\\[\\]SE0-9/:|.*#]{0,40}",
    ) {
        for kind in [MarkedText::Title, MarkedText::SubTitle, MarkedText::Description] {
            if let Some((_, without)) = read(&text, kind) {
                prop_assert!(!without.trim().is_empty(), "{:?}", text);
                prop_assert!(without.len() <= text.len(), "{:?}", text);
            }
        }
        let programme = Programme { titles: vec![LocalText::new(text)], ..Programme::default() };
        let once = with_marks(&programme).into_owned();
        prop_assert_eq!(with_marks(&once).into_owned(), once);
    }

    #[test]
    fn a_name_without_marks_stays_whole(name in "[A-Z][a-z]{1,9}( [a-zA-Z]{1,9}){0,3}") {
        prop_assume!(!name.ends_with("HD"));
        prop_assert_eq!(plain(&name, MarkedText::Title), name.as_str());
    }
}
