//! Tells channels from films, episodes and the lines that only structure a list.
//!
//! Lists mix all of them. A classification is a set of rules, the strongest evidence first; the tables below are the
//! rules. When nothing speaks against it, an entry is a channel, because a missing channel is worse than a film too many.
//!
//! | Order | Evidence | Why it decides |
//! |---|---|---|
//! | 1 | the type that the list or panel states ([`TYPES`]) | the provider knows |
//! | 2 | the folder of a panel address ([`FOLDERS`]) | panels serve each kind below its own folder |
//! | 3 | a name of lines and stars, or a placeholder address | nobody calls a programme `##### UK #####` |
//! | 4 | a length of at least five minutes | live streams have -1 or 0; some lists write 1 or 10 everywhere |
//! | 5 | the extension of a video file ([`FILM_EXTENSIONS`]), unless the length is -1 and nothing in group and name speaks of films | live streams end with `.ts`, `.m3u8` or nothing; cameras serve endless files |
//! | 6 | a word of the group ([`GROUP_WORDS`]) together with a year or an episode in the name | "Movies" alone is also the group of film channels |

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::playlist::attributes::{AttributeMeaning, meaning_of};
use crate::playlist::m3u::PlaylistEntry;
use crate::source_url::SourceUrl;
use crate::vod::episode_name::ends_with_date;
use crate::vod::title_name::TitleName;

/// The content of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamContent {
    /// A channel: live, or a loop that never ends.
    #[default]
    Live,
    /// A film.
    Movie,
    /// An episode of a series.
    Series,
    /// Nothing: a headline inside the list.
    Separator,
}

impl StreamContent {
    pub const ALL: [Self; 4] = [Self::Live, Self::Movie, Self::Series, Self::Separator];

    /// Returns whether it is live, which records leave out.
    pub fn is_live(&self) -> bool {
        *self == Self::Live
    }
}

/// Number of entries of each content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContentCounts {
    pub channels: u64,
    pub movies: u64,
    pub episodes: u64,
    pub separators: u64,
}

impl ContentCounts {
    /// Counts one more entry.
    pub fn add(&mut self, content: StreamContent) {
        let count = match content {
            StreamContent::Live => &mut self.channels,
            StreamContent::Movie => &mut self.movies,
            StreamContent::Series => &mut self.episodes,
            StreamContent::Separator => &mut self.separators,
        };
        *count += 1;
    }

    /// Returns whether all entries are channels.
    pub fn is_only_channels(&self) -> bool {
        self.movies + self.episodes + self.separators == 0
    }
}

/// `3 channels, 2 films, 1 separator line`, without what a list does not have.
impl fmt::Display for ContentCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.channels, "channel"),
            (self.movies, "film"),
            (self.episodes, "episode"),
            (self.separators, "separator line"),
        ];
        let mut separator = "";
        for (count, noun) in counts.into_iter().filter(|it| it.0 > 0) {
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{separator}{count} {noun}{plural}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Stated types, in lower case.
const TYPES: [(&str, StreamContent); 15] = [
    ("live", StreamContent::Live),
    ("created_live", StreamContent::Live),
    ("radio_streams", StreamContent::Live),
    ("radio", StreamContent::Live),
    ("created_radio", StreamContent::Live),
    ("channel", StreamContent::Live),
    ("movie", StreamContent::Movie),
    ("movies", StreamContent::Movie),
    ("film", StreamContent::Movie),
    ("vod", StreamContent::Movie),
    ("series", StreamContent::Series),
    ("serie", StreamContent::Series),
    ("tvshow", StreamContent::Series),
    ("tvshows", StreamContent::Series),
    ("episode", StreamContent::Series),
];

/// Folders of panel addresses: `/movie/USER/PASSWORD/ID.mkv`.
const FOLDERS: [(&str, StreamContent); 4] = [
    ("live", StreamContent::Live),
    ("movie", StreamContent::Movie),
    ("series", StreamContent::Series),
    ("timeshift", StreamContent::Live),
];

/// Extensions of video files, in lower case. `.ts` and `.m3u8` are missing, because channels have them.
const FILM_EXTENSIONS: [&str; 13] =
    ["mp4", "mkv", "avi", "mov", "wmv", "m4v", "flv", "mpg", "mpeg", "webm", "divx", "vob", "ogm"];

/// Words of group names, in lower case.
const GROUP_WORDS: [(&str, StreamContent); 18] = [
    ("vod", StreamContent::Movie),
    ("movie", StreamContent::Movie),
    ("movies", StreamContent::Movie),
    ("film", StreamContent::Movie),
    ("films", StreamContent::Movie),
    ("filme", StreamContent::Movie),
    ("filmes", StreamContent::Movie),
    ("peliculas", StreamContent::Movie),
    ("películas", StreamContent::Movie),
    ("cinema", StreamContent::Movie),
    ("kino", StreamContent::Movie),
    ("series", StreamContent::Series),
    ("serie", StreamContent::Series),
    ("serien", StreamContent::Series),
    ("séries", StreamContent::Series),
    ("shows", StreamContent::Series),
    ("episodes", StreamContent::Series),
    ("novelas", StreamContent::Series),
];

/// Further words of groups of files, in lower case. Groups with such a name may have channels, too, so these words count only
/// for addresses of files.
const FILM_GROUP_WORDS: [&str; 40] = [
    "action",
    "adventure",
    "animation",
    "anime",
    "biography",
    "blockbuster",
    "blockbusters",
    "bollywood",
    "comedy",
    "comedies",
    "crime",
    "documentary",
    "documentaries",
    "doku",
    "drama",
    "dramas",
    "disney",
    "family",
    "fantasy",
    "foreign",
    "history",
    "hbo",
    "horror",
    "hulu",
    "imdb",
    "komödie",
    "marvel",
    "mystery",
    "netflix",
    "oscar",
    "paramount",
    "prime",
    "romance",
    "romantik",
    "scifi",
    "serial",
    "serials",
    "thriller",
    "war",
    "western",
];

/// Characters that draw lines.
const LINE_CHARS: &str = "#=-_*~+|•●◉○▬═━─▀▄█▓▒░■□◆◇★☆✦✪►◄▶◀»«><:.";
/// Minimum number of them at both ends of a headline.
const LINE_CHARS_MIN: usize = 3;
/// Hosts of addresses that stand for none.
const PLACEHOLDER_HOSTS: [&str; 3] = ["0.0.0.0", "none", "null"];
/// Minimum length of a film, in seconds.
const FILM_SECONDS_MIN: f64 = 300.0;

/// Classifies an entry of a playlist.
pub fn from_entry(entry: &PlaylistEntry) -> StreamContent {
    let mut stated = entry.attributes.iter().filter(|it| meaning_of(&it.0) == Some(AttributeMeaning::Type));
    match stated.find_map(|it| from_type(&it.1)) {
        Some(content) => separator_or(content, &entry.name),
        None => from_values(&entry.name, &entry.url, entry.group.as_deref(), entry.duration),
    }
}

/// Classifies a stream whose type nobody states. `duration` is in seconds.
pub fn from_values(name: &str, url: &SourceUrl, group: Option<&str>, duration: Option<f64>) -> StreamContent {
    if let Some(content) = from_folder(url) {
        return separator_or(content, name);
    }
    if is_headline(name) || is_placeholder(url) {
        return StreamContent::Separator;
    }
    let is_episode = episode_of(name) || ends_with_date(name);
    let film = if is_episode { StreamContent::Series } else { StreamContent::Movie };
    if duration.is_some_and(|it| it.is_finite() && it >= FILM_SECONDS_MIN) {
        return film;
    }
    if FILM_EXTENSIONS.contains(&extension(url).as_str()) {
        // Cameras and local stations serve endless files.
        let is_endless = !is_episode && !has_year(name) && duration.is_some_and(|it| it < 0.0);
        return if is_endless && is_live_group(group) { StreamContent::Live } else { film };
    }
    match from_group(group.unwrap_or_default()) {
        Some(_) if film == StreamContent::Series => film,
        Some(content) if has_year(name) => content,
        _ => StreamContent::Live,
    }
}

/// Classifies a live stream of a panel, by the type that the panel states and by its name.
pub fn from_panel(stream_type: Option<&str>, name: &str) -> StreamContent {
    separator_or(stream_type.and_then(from_type).unwrap_or_default(), name)
}

/// A headline is one whatever the provider states, because panels list it among the channels.
fn separator_or(content: StreamContent, name: &str) -> StreamContent {
    if content.is_live() && is_headline(name) { StreamContent::Separator } else { content }
}

fn from_type(text: &str) -> Option<StreamContent> {
    let text = text.trim().to_ascii_lowercase();
    TYPES.iter().find(|it| it.0 == text).map(|it| it.1)
}

/// Returns the kind of `/FOLDER/USER/PASSWORD/ID.EXTENSION`.
fn from_folder(url: &SourceUrl) -> Option<StreamContent> {
    let mut segments = url.path().rsplit('/');
    let id = segments.next()?.split('.').next()?;
    let folder = segments.nth(2)?;
    let is_id = !id.is_empty() && id.bytes().all(|it| it.is_ascii_digit());
    FOLDERS.iter().find(|it| is_id && it.0 == folder).map(|it| it.1)
}

/// Returns whether a name is a headline: it begins and ends with a line, or has no letter and no digit.
fn is_headline(name: &str) -> bool {
    let is_line = |it: &char| LINE_CHARS.contains(*it) || it.is_whitespace();
    let line = |chars: &mut dyn Iterator<Item = char>| {
        chars.take_while(is_line).filter(|it| !it.is_whitespace()).count()
    };
    let (start, end) = (line(&mut name.chars()), line(&mut name.chars().rev()));
    let has_words = name.chars().any(char::is_alphanumeric);
    let has_line = start.max(end) >= LINE_CHARS_MIN;
    has_line && (start.min(end) >= LINE_CHARS_MIN || !has_words)
}

fn is_placeholder(url: &SourceUrl) -> bool {
    let host = url.host().unwrap_or_default();
    url.is_http() && PLACEHOLDER_HOSTS.iter().any(|it| host.eq_ignore_ascii_case(it)) && url.path().len() <= 1
}

fn extension(url: &SourceUrl) -> String {
    let last = url.path().rsplit('/').next().unwrap_or_default();
    last.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase()
}

/// Returns whether a group has channels as far as its name shows it: it has a name, and no word of films.
fn is_live_group(group: Option<&str>) -> bool {
    let group = group.unwrap_or_default().to_lowercase();
    let mut words = group.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()).peekable();
    let is_of_films =
        |it: &str| FILM_GROUP_WORDS.contains(&it) || GROUP_WORDS.iter().any(|word| word.0 == it);
    words.peek().is_some() && !words.any(|it| is_of_films(it) || has_year(it))
}

fn from_group(group: &str) -> Option<StreamContent> {
    let group = group.to_lowercase();
    let mut words = group.split(|it: char| !it.is_alphanumeric());
    words.find_map(|word| GROUP_WORDS.iter().find(|it| it.0 == word)).map(|it| it.1)
}

/// Returns whether a name contains a season and an episode: `S01E02`, `S01 E02` or `1x02`.
fn episode_of(name: &str) -> bool {
    let bytes = name.as_bytes();
    let digits = |at: usize| bytes[at.min(bytes.len())..].iter().take_while(|it| it.is_ascii_digit()).count();
    (0..bytes.len()).any(|at| {
        let is_start = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        if !is_start {
            return false;
        }
        let is_marked = bytes[at].eq_ignore_ascii_case(&b's');
        let n_season = digits(at + usize::from(is_marked));
        let mut next = at + usize::from(is_marked) + n_season;
        if !(1..=2).contains(&n_season) {
            return false;
        }
        if is_marked && bytes.get(next) == Some(&b' ') {
            next += 1;
        }
        let separator = if is_marked { b'e' } else { b'x' };
        bytes.get(next).is_some_and(|it| it.eq_ignore_ascii_case(&separator))
            && (1..=3).contains(&digits(next + 1))
    })
}

/// Returns whether a name ends with a year, or has one in brackets, as the names of films do.
fn has_year(name: &str) -> bool {
    let is_year =
        |text: &str| text.len() == 4 && text.parse::<u32>().is_ok_and(|it| (1900..=2100).contains(&it));
    let mut in_brackets = name.split(['(', '[']).skip(1).filter_map(|it| it.split([')', ']']).next());
    in_brackets.any(|it| is_year(it.trim()))
        || name.rsplit([' ', '-']).next().is_some_and(is_year)
        || TitleName::new(name).year.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};

    #[track_caller]
    fn check(extinf: &str, url: &str, content: StreamContent) {
        let text = format!("#EXTM3U\n#EXTINF:{extinf}\n{url}\n");
        let (items, _) = parse(text.as_bytes(), PlaylistLimits::default());
        let entry = items.into_iter().find_map(|it| match it {
            PlaylistItem::Entry(entry) => Some(entry),
            _ => None,
        });
        assert_eq!(from_entry(&entry.expect("an entry")), content, "{extinf} {url}");
    }

    #[test]
    fn channels_stay_channels_even_if_their_names_and_groups_speak_of_films() {
        for (extinf, url) in [
            ("-1,News", "http://tv.example/live/u/p/7.ts"),
            ("-1,News", "http://tv.example/u/p/7"),
            ("0 group-title=\"UK | MOVIES\",Film Four", "http://tv.example/u/p/7"),
            ("-1 group-title=\"Series\",Series Channel HD", "http://tv.example/u/p/7.ts"),
            ("-1 group-title=\"VOD 24/7\",Friends", "http://tv.example/live/u/p/7.ts"),
            ("10,News", "http://tv.example/u/p/7.ts"),
            ("-1,France 24", "http://tv.example/hls/france24.m3u8"),
            ("-1,4x4 TV", "http://tv.example/4x4"),
            ("-1,--- News", "http://tv.example/7"),
            ("-1,* Sports *", "http://tv.example/7"),
            ("-1,A&E", "http://tv.example/7"),
            ("-1,C-SPAN 2", "http://tv.example/7"),
            ("-1 tvg-type=\"live\",Film", "http://tv.example/7.mp4"),
            ("-1,movie", "http://tv.example/movie/7"),
        ] {
            check(extinf, url, StreamContent::Live);
        }
    }

    #[test]
    fn films_and_episodes_are_recognised_by_address_extension_length_and_type() {
        for (extinf, url, content) in [
            ("-1,Any", "http://tv.example/movie/u/p/7.ts", StreamContent::Movie),
            ("-1,Any", "http://tv.example/series/u/p/7.ts", StreamContent::Series),
            ("-1,Any", "http://tv.example/sub/series/u/p/7.mkv", StreamContent::Series),
            ("-1,Any", "http://tv.example/files/any.mkv?token=1", StreamContent::Movie),
            ("-1,Any S01E02", "http://tv.example/files/any.MP4", StreamContent::Series),
            ("-1,Any 1x02 Pilot", "http://tv.example/files/any.mp4", StreamContent::Series),
            ("5400,Any", "http://tv.example/7", StreamContent::Movie),
            ("1500,Any S1 E12", "http://tv.example/7", StreamContent::Series),
            ("-1 tvg-type=\"movies\",Any", "http://tv.example/7", StreamContent::Movie),
            ("-1 type=\"series\",Any", "http://tv.example/7", StreamContent::Series),
            ("-1 group-title=\"VOD - Action\",Any (2019)", "http://tv.example/7", StreamContent::Movie),
            ("-1 group-title=\"Serien\",Any S03E04", "http://tv.example/7", StreamContent::Series),
        ] {
            check(extinf, url, content);
        }
    }

    #[test]
    fn an_endless_file_in_a_group_of_channels_is_a_channel() {
        for (extinf, url, content) in [
            ("-1 group-title=\"News\",Town News", "http://cams.example/1/news.mp4", StreamContent::Live),
            ("-1 group-title=\"Webcams\",Harbour", "http://cams.example/1/cam.wmv", StreamContent::Live),
            ("-1 group-title=\"Local\",Town", "http://cams.example/1/a.flv?x=1", StreamContent::Live),
            ("-1 group-title=\"VOD\",Any", "http://tv.example/any.mp4", StreamContent::Movie),
            ("-1 group-title=\"Action\",Any", "http://tv.example/any.mp4", StreamContent::Movie),
            ("-1 group-title=\"EN | Netflix\",Any", "http://tv.example/any.mkv", StreamContent::Movie),
            ("-1 group-title=\"Best of 2023\",Any", "http://tv.example/any.mkv", StreamContent::Movie),
            ("-1 group-title=\"News\",Any (2019)", "http://tv.example/any.mp4", StreamContent::Movie),
            ("-1 group-title=\"News\",Any 2019 4K", "http://tv.example/any.mp4", StreamContent::Movie),
            ("-1 group-title=\"News\",Any S01E02", "http://tv.example/any.mp4", StreamContent::Series),
            ("-1 group-title=\"News\",Any 2024-05-01", "http://tv.example/any.mp4", StreamContent::Series),
            ("5400 group-title=\"News\",Any", "http://tv.example/any.mp4", StreamContent::Movie),
            ("0 group-title=\"News\",Any", "http://tv.example/any.mp4", StreamContent::Movie),
            ("-1,Any", "http://tv.example/any.mp4", StreamContent::Movie),
            ("-1 group-title=\"News\",Any", "http://tv.example/movie/u/p/7.mp4", StreamContent::Movie),
        ] {
            check(extinf, url, content);
        }
    }

    #[test]
    fn headlines_inside_a_list_are_separators() {
        for name in [
            "##### UK SPORTS #####",
            "===== NEWS =====",
            "--- 4K ---",
            "▬▬▬ DE ▬▬▬",
            "★ ★ ★ VIP ★ ★ ★",
            "----------",
            "|||| FR ||||",
        ] {
            check(&format!("-1,{name}"), "http://tv.example/live/u/p/7.ts", StreamContent::Separator);
            check(&format!("-1,{name}"), "http://tv.example/7", StreamContent::Separator);
            assert_eq!(from_panel(Some("live"), name), StreamContent::Separator, "{name}");
        }
        check("-1,UK", "http://0.0.0.0/", StreamContent::Separator);
        assert_eq!(from_panel(None, "News"), StreamContent::Live);
        assert_eq!(from_panel(Some("created_live"), "Friends 24/7"), StreamContent::Live);
        assert_eq!(from_panel(Some("movie"), "Any"), StreamContent::Movie);
    }
}
