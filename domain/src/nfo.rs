//! NFO files: the facts of films, series and episodes beside their files, as Kodi and Jellyfin read them
//! (<https://kodi.wiki/view/NFO_files/Movies>, <https://jellyfin.org/docs/general/server/metadata/nfo/>).

use std::fmt::Write as _;

use crate::xml::push_escaped;

/// Maximum number of names in one list, such as actors.
const NAMES_MAX: usize = 50;
/// Length of the id of a video at YouTube, in bytes.
const YOUTUBE_ID_BYTES: usize = 11;

/// The ids of a title in external catalogues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExternalIds<'a> {
    pub tmdb: Option<&'a str>,
    pub imdb: Option<&'a str>,
}

/// The facts of a title for an NFO file. Empty ones are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TitleFacts<'a> {
    /// The title in the language in which it was made.
    pub original_name: &'a str,
    pub plot: &'a str,
    pub genre: &'a str,
    pub rating: &'a str,
    /// `YYYY-MM-DD`.
    pub date: &'a str,
    pub duration_secs: Option<u32>,
    /// Names separated by commas.
    pub directors: &'a str,
    pub actors: &'a str,
    pub countries: &'a str,
    /// Address or id of a video at YouTube.
    pub trailer: &'a str,
    /// Address of the picture.
    pub picture: &'a str,
    /// Address of the picture for the background.
    pub fanart: &'a str,
}

/// A film or a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NfoTitle<'a> {
    pub(crate) name: &'a str,
    pub(crate) year: Option<u32>,
    pub(crate) ids: ExternalIds<'a>,
    pub(crate) facts: TitleFacts<'a>,
}

/// An episode of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NfoEpisode<'a> {
    pub(crate) series: &'a str,
    pub(crate) name: &'a str,
    pub(crate) season: u32,
    pub(crate) number: u32,
    pub(crate) ids: ExternalIds<'a>,
    pub(crate) facts: TitleFacts<'a>,
}

pub(crate) const XML_START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";

/// Returns the file of a film (`movie`) or a series (`tvshow`).
pub(crate) fn title_nfo(element: &str, title: &NfoTitle<'_>) -> String {
    let mut out = format!("{XML_START}<{element}>\n");
    push_element(&mut out, "title", title.name);
    push_element(&mut out, "originaltitle", title.facts.original_name);
    if let Some(year) = title.year {
        push_element(&mut out, "year", &year.to_string());
    }
    push_facts(&mut out, &title.facts, "premiered");
    push_ids(&mut out, title.ids);
    let _ = writeln!(out, "</{element}>");
    out
}

/// Returns the file of an episode.
pub(crate) fn episode_nfo(episode: &NfoEpisode<'_>) -> String {
    let mut out = format!("{XML_START}<episodedetails>\n");
    push_element(&mut out, "title", episode.name);
    push_element(&mut out, "showtitle", episode.series);
    push_element(&mut out, "season", &episode.season.to_string());
    push_element(&mut out, "episode", &episode.number.to_string());
    push_facts(&mut out, &episode.facts, "aired");
    push_ids(&mut out, episode.ids);
    out.push_str("</episodedetails>\n");
    out
}

fn push_facts(out: &mut String, facts: &TitleFacts<'_>, date: &str) {
    push_element(out, "plot", facts.plot);
    push_list(out, "genre", facts.genre, &[',', '/', '|']);
    push_list(out, "country", facts.countries, &[',', '/', '|']);
    push_list(out, "director", facts.directors, &[',', '/', '|']);
    if is_date(facts.date) {
        push_element(out, date, facts.date);
    }
    if let Some(seconds) = facts.duration_secs.filter(|it| *it >= 60) {
        push_element(out, "runtime", &(seconds / 60).to_string());
    }
    if facts.rating.parse().is_ok_and(|it: f64| (0.0..=10.0).contains(&it) && it > 0.0) {
        // Kodi reads the list, and Jellyfin the element of its own.
        push_element(out, "rating", facts.rating);
        out.push_str("  <ratings><rating name=\"default\" max=\"10\" default=\"true\"><value>");
        push_escaped(out, facts.rating);
        out.push_str("</value></rating></ratings>\n");
    }
    for actor in names(facts.actors, &[',', '|']) {
        out.push_str("  <actor><name>");
        push_escaped(out, actor);
        out.push_str("</name></actor>\n");
    }
    if let Some(id) = youtube_id(facts.trailer) {
        // Both programs read the address of Kodi's add-on.
        let address = format!("plugin://plugin.video.youtube/?action=play_video&videoid={id}");
        push_element(out, "trailer", &address);
    }
    if !facts.picture.is_empty() {
        out.push_str("  <thumb aspect=\"poster\">");
        push_escaped(out, facts.picture);
        out.push_str("</thumb>\n");
    }
    if !facts.fanart.is_empty() {
        out.push_str("  <fanart><thumb>");
        push_escaped(out, facts.fanart);
        out.push_str("</thumb></fanart>\n");
    }
}

fn push_ids(out: &mut String, ids: ExternalIds<'_>) {
    let both = [("tmdb", ids.tmdb), ("imdb", ids.imdb)].into_iter().filter_map(|it| Some((it.0, it.1?)));
    for (n, (catalogue, id)) in both.enumerate() {
        let _ = write!(out, "  <uniqueid type=\"{catalogue}\" default=\"{}\">", n == 0);
        push_escaped(out, id);
        out.push_str("</uniqueid>\n");
    }
}

fn names<'a>(list: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    list.split(separators).map(str::trim).filter(|it| !it.is_empty()).take(NAMES_MAX)
}

fn push_list(out: &mut String, element: &str, list: &str, separators: &[char]) {
    names(list, separators).for_each(|it| push_element(out, element, it));
}

/// Returns whether a text is a date as both programs read it. Providers also write years and dates of other forms.
fn is_date(text: &str) -> bool {
    let is_digit = |(at, it): (usize, u8)| if matches!(at, 4 | 7) { it == b'-' } else { it.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(is_digit)
}

/// Returns the id of a video at YouTube in an address, or a text that is one.
fn youtube_id(text: &str) -> Option<&str> {
    let text = text.trim();
    let after = ["v=", "youtu.be/", "/embed/"].iter().find_map(|it| Some(text.split_once(it)?.1));
    let id = after.unwrap_or(text);
    let id = id.split(['&', '?', '#', '/']).next()?;
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    (id.len() == YOUTUBE_ID_BYTES && id.bytes().all(is_letter)).then_some(id)
}

/// Appends an element, unless its text is empty.
pub(crate) fn push_element(out: &mut String, name: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let _ = write!(out, "  <{name}>");
    push_escaped(out, text);
    let _ = writeln!(out, "</{name}>");
}

#[cfg(test)]
mod tests {
    use roxmltree::{Document, Node};

    use super::*;

    /// Lists the elements of a file with the path of their names, their attributes and their texts.
    fn elements(text: &str) -> Vec<String> {
        fn list(node: Node<'_, '_>, path: &str, into: &mut Vec<String>) {
            for child in node.children().filter(Node::is_element) {
                let attributes: String =
                    child.attributes().map(|it| format!(" {}={}", it.name(), it.value())).collect();
                let path = format!("{path}/{}", child.tag_name().name());
                if child.children().any(|it| it.is_element()) {
                    list(child, &path, into);
                } else {
                    into.push(format!("{path}{attributes}: {}", child.text().unwrap_or_default()));
                }
            }
        }
        let document = Document::parse(text).unwrap();
        let mut found = Vec::new();
        list(document.root_element(), document.root_element().tag_name().name(), &mut found);
        found
    }

    #[test]
    fn the_facts_of_a_title_are_written_as_kodi_and_jellyfin_read_them() {
        let facts = TitleFacts {
            original_name: "Metropolis",
            plot: "Tom & <Jerry>\0",
            genre: "Drama, Science-Fiction",
            rating: "7.5",
            date: "1927-01-10",
            duration_secs: Some(9180),
            directors: "Fritz Lang",
            actors: "Brigitte Helm, Alfred Abel,, ",
            countries: "DE",
            trailer: "https://www.youtube.com/watch?v=abcDEF123-_&t=1",
            picture: "http://tv/1.jpg?v=a&b",
            fanart: "http://tv/b.jpg",
        };
        let ids = ExternalIds { tmdb: Some("19"), imdb: Some("tt0017136") };
        let film = NfoTitle { name: "Metro\"polis\"", year: Some(1927), ids, facts };
        assert_eq!(
            elements(&title_nfo("movie", &film)),
            [
                "movie/title: Metro\"polis\"",
                "movie/originaltitle: Metropolis",
                "movie/year: 1927",
                "movie/plot: Tom & <Jerry> ",
                "movie/genre: Drama",
                "movie/genre: Science-Fiction",
                "movie/country: DE",
                "movie/director: Fritz Lang",
                "movie/premiered: 1927-01-10",
                "movie/runtime: 153",
                "movie/rating: 7.5",
                "movie/ratings/rating/value: 7.5",
                "movie/actor/name: Brigitte Helm",
                "movie/actor/name: Alfred Abel",
                "movie/trailer: plugin://plugin.video.youtube/?action=play_video&videoid=abcDEF123-_",
                "movie/thumb aspect=poster: http://tv/1.jpg?v=a&b",
                "movie/fanart/thumb: http://tv/b.jpg",
                "movie/uniqueid type=tmdb default=true: 19",
                "movie/uniqueid type=imdb default=false: tt0017136",
            ]
        );
    }

    #[test]
    fn an_episode_names_its_series_and_its_place_and_unusable_facts_are_left_out() {
        let facts = TitleFacts {
            rating: "PG-13",
            date: "2022",
            duration_secs: Some(20),
            trailer: "http://p/trailer.mp4",
            ..TitleFacts::default()
        };
        let ids = ExternalIds { tmdb: None, imdb: Some("tt1") };
        let episode = NfoEpisode { series: "Andor", name: "Kassa", season: 0, number: 1, ids, facts };
        assert_eq!(
            elements(&episode_nfo(&episode)),
            [
                "episodedetails/title: Kassa",
                "episodedetails/showtitle: Andor",
                "episodedetails/season: 0",
                "episodedetails/episode: 1",
                "episodedetails/uniqueid type=imdb default=true: tt1",
            ]
        );
        let aired = TitleFacts { date: "2022-09-21", ..TitleFacts::default() };
        let text = episode_nfo(&NfoEpisode { facts: aired, ..episode });
        assert!(text.contains("<aired>2022-09-21</aired>"), "{text}");
        for (text, id) in [
            ("abcDEF123-_", Some("abcDEF123-_")),
            ("https://youtu.be/abcDEF123-_?t=3", Some("abcDEF123-_")),
            ("https://www.youtube.com/embed/abcDEF123-_", Some("abcDEF123-_")),
            ("http://p/v=x", None),
            ("\"><x", None),
            ("", None),
        ] {
            assert_eq!(youtube_id(text), id, "{text}");
        }
    }
}
