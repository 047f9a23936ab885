//! The marks of a programme that media servers look for: whether it is an episode, a film, sports, news or for children,
//! whether it is live, and season and episode in both notations.
//!
//! Jellyfin and Emby compare whole categories with lists (`movie`, `sports`, `news`, `kids`), and read `<live/>` and `<new/>`.
//! Plex and Channels look for `Series`, `Movie` and `Sports` besides. Guides have categories of many languages instead.

use std::borrow::Cow;

use super::episode::season_episode;
use super::parts::EpisodeNumber;
use super::write::LIVE;

/// A kind of programmes.
struct Kind {
    /// The category that media servers read.
    category: &'static str,
    /// Words of categories that mean it, in lower case; with `*` the beginnings of words.
    words: &'static [&'static str],
    /// Whether a programme with an episode number is not an episode of a series for all that.
    is_single: bool,
}

const KINDS: &[Kind] = &[
    Kind {
        category: "Movie",
        words: &[
            "movie",
            "movies",
            "film",
            "films",
            "filme",
            "spielfilm",
            "fernsehfilm",
            "película",
            "películas",
            "pelicula",
            "peliculas",
            "cine",
            "cinema",
            "cinéma",
            "фильм*",
            "кино",
        ],
        is_single: true,
    },
    Kind {
        category: "Sports",
        words: &[
            "sport*",
            "deporte*",
            "esporte*",
            "motorsport*",
            "спорт*",
            "football",
            "fussball",
            "fußball",
            "soccer",
            "fútbol",
            "futbol",
            "futebol",
            "calcio",
            "basketball",
            "baseball",
            "hockey",
            "eishockey",
            "handball",
            "tennis",
            "rugby",
            "cricket",
            "golf",
        ],
        is_single: true,
    },
    Kind {
        category: "News",
        words: &[
            "news",
            "nachrichten",
            "noticia*",
            "notizie",
            "telegiornale",
            "journal",
            "nyheter",
            "wiadomości",
            "новости",
        ],
        is_single: false,
    },
    Kind {
        category: "Kids",
        words: &["kids", "children*", "kinder*", "infantil*", "enfant*", "jeunesse", "bambini", "детск*"],
        is_single: false,
    },
];

/// Elements of the canonical form after which the categories follow, and the categories themselves.
const BEFORE_CATEGORIES: [&str; 6] = ["title", "sub-title", "desc", "credits", "date", "category"];

/// Returns the stored form of a programme with the categories, numbers and marks that media servers read. What it has
/// already stays.
pub fn for_media_servers(inner: &str) -> Cow<'_, str> {
    let start = if inner.starts_with(' ') { inner.find('>').map_or(0, |it| it + 1) } else { 0 };
    let categories_end = start + elements_end(&inner[start..]);
    let categories: Vec<String> =
        texts(&inner[start..categories_end], "category").map(|it| it.to_lowercase()).collect();
    let mut added = String::new();
    let mut is_single = false;
    for kind in KINDS {
        let is_kind = categories.iter().any(|it| kind.is_in(it));
        is_single |= is_kind && kind.is_single;
        if is_kind {
            push_category(&mut added, &categories, kind.category);
        }
    }
    let rest = &inner[categories_end..];
    let numbers = Numbers::new(rest);
    if !is_single && numbers.is_episode {
        push_category(&mut added, &categories, "Series");
    }
    let is_live = rest.contains(&format!("<keyword>{LIVE}</keyword>"));
    if added.is_empty() && numbers.added.is_empty() && !is_live {
        return Cow::Borrowed(inner);
    }
    let (before_numbers, after_numbers) = rest.split_at(numbers.end);
    let live = if is_live { "<live/>" } else { "" };
    Cow::Owned(
        [&inner[..categories_end], &added, before_numbers, &numbers.added, after_numbers, live].concat(),
    )
}

impl Kind {
    /// Returns whether a category in lower case means this kind.
    fn is_in(&self, category: &str) -> bool {
        let is_listed = |word: &str| {
            self.words
                .iter()
                .any(|it| it.strip_suffix('*').map_or(*it == word, |start| word.starts_with(start)))
        };
        category.split(|it: char| !it.is_alphanumeric()).any(is_listed)
    }
}

/// Appends a category, unless the programme has it already.
fn push_category(added: &mut String, categories: &[String], name: &str) {
    if !categories.iter().any(|it| it.eq_ignore_ascii_case(name)) {
        added.extend(["<category lang=\"en\">", name, "</category>"]);
    }
}

/// Returns where the elements of [`BEFORE_CATEGORIES`] end. In the canonical form they come first.
fn elements_end(inner: &str) -> usize {
    let mut at = 0;
    while let Some(name) = BEFORE_CATEGORIES.iter().find(|it| is_element(&inner[at..], it)) {
        let close = format!("</{name}>");
        let Some(end) = inner[at..].find(&close) else { break };
        at += end + close.len();
    }
    at
}

/// Returns whether a text begins with an element of this name.
fn is_element(text: &str, name: &str) -> bool {
    let rest = text.strip_prefix('<').and_then(|it| it.strip_prefix(name));
    rest.is_some_and(|it| it.starts_with(['>', ' ']))
}

/// Returns the texts of elements without children.
fn texts<'a>(inner: &'a str, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
    inner.match_indices('<').filter_map(move |(at, _)| {
        let element = Some(&inner[at..]).filter(|it| is_element(it, name))?;
        let text = &element[element.find('>')? + 1..];
        Some(html_escape::decode_html_entities(&text[..text.find('<')?]))
    })
}

/// The episode numbers of a programme, and those that it lacks.
struct Numbers {
    /// Whether they state an episode of a series.
    is_episode: bool,
    added: String,
    /// Where the last one ends; 0 without any.
    end: usize,
}

impl Numbers {
    fn new(rest: &str) -> Self {
        const CLOSE: &str = "</episode-num>";
        let none = Self { is_episode: false, added: String::new(), end: 0 };
        let Some(end) = rest.rfind(CLOSE) else { return none };
        let mut numbers = Vec::new();
        for (at, _) in rest.match_indices("<episode-num") {
            let Some((attributes, value)) = rest[at..].split_once('>') else { continue };
            let system = attributes.split_once("system=\"").and_then(|it| Some(it.1.split_once('"')?.0));
            let value = value.split_once('<').map_or("", |it| it.0);
            let value = html_escape::decode_html_entities(value).into_owned();
            numbers.push(EpisodeNumber { system: system.map(str::to_owned), value });
        }
        let has =
            |system: &str| numbers.iter().any(|it| it.system.as_deref().unwrap_or("onscreen") == system);
        // The ids of the service Gracenote say what a programme is: EP is an episode.
        let is_episode_id =
            |it: &EpisodeNumber| it.system.as_deref() == Some("dd_progid") && it.value.starts_with("EP");
        let (season, episode) = season_episode(&numbers);
        let mut added = String::new();
        if let Some(episode) = episode.filter(|it| *it > 0) {
            if !has("xmltv_ns") {
                let season = season.filter(|it| *it > 0).map(|it| (it - 1).to_string()).unwrap_or_default();
                let number = format!("<episode-num system=\"xmltv_ns\">{season}.{}.{CLOSE}", episode - 1);
                added.push_str(&number);
            }
            if !has("onscreen") {
                let season = season.map(|it| format!("S{it:02}")).unwrap_or_default();
                added.push_str(&format!("<episode-num system=\"onscreen\">{season}E{episode:02}{CLOSE}"));
            }
        }
        let is_episode = season.is_some() || episode.is_some() || numbers.iter().any(is_episode_id);
        Self { is_episode, added, end: end + CLOSE.len() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::guide::programme::{from_xml, to_xml};

    /// Checks the form of a programme with these elements behind its title.
    #[track_caller]
    fn check(elements: &str, expected: &str) {
        let inner = format!("<title>T</title>{elements}");
        assert_eq!(for_media_servers(&inner), format!("<title>T</title>{expected}"), "{elements}");
    }

    #[test]
    fn episodes_films_and_sports_get_the_categories_that_media_servers_read() {
        const SERIES: &str = "<category lang=\"en\">Series</category>";
        const MOVIE: &str = "<category lang=\"en\">Movie</category>";
        let both = "<episode-num system=\"xmltv_ns\">0.1.</episode-num><episode-num system=\"onscreen\">S01E02</episode-num>";
        check(both, &format!("{SERIES}{both}"));
        check("<date>2020</date><keyword>k</keyword>", "<date>2020</date><keyword>k</keyword>");
        check(
            &format!(
                "<credits><actor>A<image>http://h/a</image></actor></credits><category>Drama</category>{both}"
            ),
            &format!(
                "<credits><actor>A<image>http://h/a</image></actor></credits><category>Drama</category>{SERIES}{both}"
            ),
        );
        check("<category>series</category>", "<category>series</category>");
        check(
            "<category lang=\"de\">Spielfilm</category>",
            &format!("<category lang=\"de\">Spielfilm</category>{MOVIE}"),
        );
        check("<category>Películas</category>", &format!("<category>Películas</category>{MOVIE}"));
        check("<category>Фильм</category>", &format!("<category>Фильм</category>{MOVIE}"));
        check("<category>movie</category>", "<category>movie</category>");
        check("<category>Filmmagazin</category>", "<category>Filmmagazin</category>");
        check(
            "<category>TV-Movie</category>",
            "<category>TV-Movie</category><category lang=\"en\">Movie</category>",
        );
        // A match does not belong to a series.
        check(
            &format!("<category>Fußball &amp; mehr</category>{both}"),
            &format!("<category>Fußball &amp; mehr</category><category lang=\"en\">Sports</category>{both}"),
        );
        check(
            "<category>Sports event</category>",
            "<category>Sports event</category><category lang=\"en\">Sports</category>",
        );
        check("<category>Transport</category>", "<category>Transport</category>");
        check(
            "<category>Nachrichten</category>",
            "<category>Nachrichten</category><category lang=\"en\">News</category>",
        );
        check(
            "<category>Kinderserie</category>",
            "<category>Kinderserie</category><category lang=\"en\">Kids</category>",
        );
        let id = "<episode-num system=\"dd_progid\">EP0123.0004</episode-num>";
        check(id, &format!("{SERIES}{id}"));
        let other = "<episode-num system=\"dd_progid\">SH0123.0000</episode-num>";
        check(other, other);
    }

    #[test]
    fn numbers_are_written_in_both_notations_and_marks_stay() {
        const SERIES: &str = "<category lang=\"en\">Series</category>";
        check(
            "<episode-num system=\"onscreen\">S02E03</episode-num><new/>",
            &format!(
                "{SERIES}<episode-num system=\"onscreen\">S02E03</episode-num>\
                 <episode-num system=\"xmltv_ns\">1.2.</episode-num><new/>"
            ),
        );
        check(
            "<episode-num system=\"xmltv_ns\">.118.</episode-num><previously-shown/>",
            &format!(
                "{SERIES}<episode-num system=\"xmltv_ns\">.118.</episode-num>\
                 <episode-num system=\"onscreen\">E119</episode-num><previously-shown/>"
            ),
        );
        check("<keyword>live</keyword><new/>", "<keyword>live</keyword><new/><live/>");
        check("<keyword lang=\"en\">live</keyword>", "<keyword lang=\"en\">live</keyword>");
    }

    #[test]
    fn attributes_and_damaged_forms_stay_as_they_are() {
        for inner in [
            "",
            " clumpidx=\"0/2\">",
            " clumpidx=\"0/2\"><title>T</title>",
            "<title>T",
            "<category>Movie",
            "<>",
        ] {
            assert_eq!(for_media_servers(inner), inner);
        }
        assert_eq!(
            for_media_servers(" clumpidx=\"0/2\"><title>T</title><category>Sport</category>"),
            " clumpidx=\"0/2\"><title>T</title><category>Sport</category><category lang=\"en\">Sports</category>"
        );
    }

    proptest! {
        #[test]
        fn what_a_programme_says_stays_and_is_read_again(
            category in "[a-zA-Z ]{0,8}|Movie|Sport|News",
            number in "S0[1-9]E0[1-9]|[0-9]?\\.[0-9]?\\.|x",
            is_live in any::<bool>(),
            is_new in any::<bool>(),
        ) {
            let live = if is_live { "<live/>" } else { "" };
            let new = if is_new { "<new/>" } else { "" };
            let text = format!(
                "<title>T</title><category>{category}</category><episode-num>{number}</episode-num>{new}{live}"
            );
            let before = from_xml(0, 60, &text).unwrap();
            let mut stored = String::new();
            to_xml(&before, &mut stored);
            let marked = for_media_servers(&stored).into_owned();
            let after = from_xml(0, 60, &marked).unwrap();
            prop_assert_eq!((after.is_new, after.is_live), (before.is_new, before.is_live));
            prop_assert_eq!(after.title(), before.title());
            prop_assert_eq!(after.season_episode(), before.season_episode());
            prop_assert!(before.categories.iter().all(|it| after.categories.contains(it)));
        }

        #[test]
        fn no_text_breaks_it(inner in "(<category>|</category>|<episode-num system=\"|\">|</episode-num>|<title>|</title>|sport| |S01E01|<live/>|é){0,12}") {
            let marked = for_media_servers(&inner);
            prop_assert!(marked.len() >= inner.len());
        }
    }
}
