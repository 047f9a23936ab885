//! The names and contents of an export of films and series as STRM files: small text files that contain an address, which
//! media servers and Kodi list and play like videos.
//!
//! A film has a folder of its own, and a file for each version, whose name begins with the name of the folder: media
//! servers list such files as versions of one film. A series has a folder for each season.
//!
//! ```text
//! Movies/Metropolis (1927) [tmdbid-19]/Metropolis (1927) [tmdbid-19] - 4K.strm
//! Movies/Metropolis (1927) [tmdbid-19]/Metropolis (1927) [tmdbid-19] - 4K.nfo
//! Series/Andor (2022) [tmdbid-83867]/Season 01/Andor S01E02 - That Would Be Me.strm
//! ```
//!
//! Every name is valid on every common file system, and differs from the others of its folder also where case and Unicode
//! forms are ignored. Names come from providers, so none can lead out of its folder.

use std::collections::HashSet;
use std::fmt::Write as _;

use icu_normalizer::ComposingNormalizerBorrowed;

pub use crate::nfo::{ExternalIds, TitleFacts};
use crate::nfo::{NfoEpisode, NfoTitle, episode_nfo, title_nfo};

/// Folder of the films.
pub const FILMS_FOLDER: &str = "Movies";
/// Folder of the series.
pub const SERIES_FOLDER: &str = "Series";
/// Name of the file with the facts of a series, in its folder.
const SERIES_NFO: &str = "tvshow.nfo";
/// The name of a title without a usable one.
const UNTITLED: &str = "Untitled";

/// Maximum length of a title in a name, in bytes.
const TITLE_BYTES_MAX: usize = 120;
/// Maximum lengths of the names of series and episode in the name of an episode, in bytes.
const EPISODE_SERIES_BYTES_MAX: usize = 80;
const EPISODE_TITLE_BYTES_MAX: usize = 70;
/// Maximum length of the name of a version, in bytes.
const LABEL_BYTES_MAX: usize = 40;
/// Maximum length of an id in a name, in bytes.
const ID_BYTES_MAX: usize = 12;

/// A version of a film or an episode, and where it plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrmVersion<'a> {
    /// Unique among all versions, and never changes.
    pub id: u32,
    /// Distinguishes it from the other versions; may be empty.
    pub label: &'a str,
    pub address: String,
}

/// A film or a series.
#[derive(Debug, Clone, Copy)]
pub struct StrmTitle<'a> {
    /// Unique among all films, or among all series, and never changes.
    pub id: u32,
    pub name: &'a str,
    pub year: Option<u32>,
    pub ids: ExternalIds<'a>,
    pub facts: TitleFacts<'a>,
}

/// An episode of a series.
#[derive(Debug, Clone)]
pub struct StrmEpisode<'a> {
    pub name: &'a str,
    pub season: u32,
    pub number: u32,
    pub ids: ExternalIds<'a>,
    pub facts: TitleFacts<'a>,
    pub versions: Vec<StrmVersion<'a>>,
}

impl<'a> StrmTitle<'a> {
    fn for_nfo(&self) -> NfoTitle<'a> {
        NfoTitle {
            name: without_year(self.name, self.year),
            year: self.year,
            ids: self.ids,
            facts: self.facts,
        }
    }
}

impl<'a> StrmEpisode<'a> {
    fn for_nfo(&self, series: &StrmTitle<'a>) -> NfoEpisode<'a> {
        NfoEpisode {
            series: without_year(series.name, series.year),
            name: self.name,
            season: self.season,
            number: self.number,
            ids: self.ids,
            facts: self.facts,
        }
    }
}

/// Takes the path of a file, with slashes between its components, and its content.
pub type PutFile<'a> = dyn FnMut(&str, &str) + 'a;

/// The names of the folders that an export has given so far. Titles must be added in the order of their ids, so that a new
/// one takes no name from an older one.
#[derive(Debug)]
pub struct StrmTree {
    has_nfo: bool,
    films: TakenNames,
    series: TakenNames,
}

impl StrmTree {
    /// Starts an export, with or without NFO files.
    pub fn new(has_nfo: bool) -> Self {
        Self { has_nfo, films: TakenNames::default(), series: TakenNames::default() }
    }

    /// Adds the files of a film. A film without a version has none.
    pub fn add_film(&mut self, film: &StrmTitle<'_>, versions: &[StrmVersion<'_>], put: &mut PutFile<'_>) {
        if versions.is_empty() {
            return;
        }
        let folder = self.films.take(&title_folder(film), film.id);
        let mut files = TakenNames::default();
        for version in versions {
            let name = files.take(&version_name(&folder, version.label), version.id);
            put(&format!("{FILMS_FOLDER}/{folder}/{name}.strm"), &link(&version.address));
            if self.has_nfo {
                // Kodi reads `movie.nfo` only with a setting, and Jellyfin reads both.
                put(&format!("{FILMS_FOLDER}/{folder}/{name}.nfo"), &title_nfo("movie", &film.for_nfo()));
            }
        }
    }

    /// Adds the files of a series. A series without an episode that plays has none.
    pub fn add_series(
        &mut self,
        series: &StrmTitle<'_>,
        episodes: &[StrmEpisode<'_>],
        put: &mut PutFile<'_>,
    ) {
        if episodes.iter().all(|it| it.versions.is_empty()) {
            return;
        }
        let folder = self.series.take(&title_folder(series), series.id);
        let name = component(without_year(series.name, series.year), EPISODE_SERIES_BYTES_MAX);
        let mut files = TakenNames::default();
        for episode in episodes {
            let season = format!("Season {:02}", episode.season);
            let stem = episode_name(&name, episode);
            for (n, version) in episode.versions.iter().enumerate() {
                let file = files.take(&version_name(&stem, version.label), version.id);
                put(&format!("{SERIES_FOLDER}/{folder}/{season}/{file}.strm"), &link(&version.address));
                if self.has_nfo && n == 0 {
                    let text = episode_nfo(&episode.for_nfo(series));
                    put(&format!("{SERIES_FOLDER}/{folder}/{season}/{file}.nfo"), &text);
                }
            }
        }
        if self.has_nfo {
            put(&format!("{SERIES_FOLDER}/{folder}/{SERIES_NFO}"), &title_nfo("tvshow", &series.for_nfo()));
        }
    }
}

/// The content of a file that contains an address.
fn link(address: &str) -> String {
    format!("{address}\n")
}

/// Names of one folder that are in use, in the form in which file systems compare them.
#[derive(Debug, Default)]
struct TakenNames(HashSet<String>);

impl TakenNames {
    /// Returns this name, with the id behind it if the name is in use.
    fn take(&mut self, name: &str, id: u32) -> String {
        let mut taken = name.to_owned();
        let mut n = 0;
        while !self.0.insert(comparable(&taken)) {
            n += 1;
            taken = match n {
                1 => format!("{name} [id-{id}]"),
                _ => format!("{name} [id-{id}-{n}]"),
            };
        }
        taken
    }
}

/// Returns a name in the form in which names are compared: without case and in one Unicode form.
fn comparable(name: &str) -> String {
    // The detour over capital letters makes `ſ` and `ß` equal to `s` and `ss`, as some file systems do.
    let folded = name.to_uppercase().to_lowercase();
    ComposingNormalizerBorrowed::new_nfc().normalize(&folded).into_owned()
}

/// Returns the name of the folder of a title, such as `Metropolis (1927) [tmdbid-19]`.
fn title_folder(title: &StrmTitle<'_>) -> String {
    let mut folder = component(without_year(title.name, title.year), TITLE_BYTES_MAX);
    if let Some(year) = title.year {
        // Writing to a text cannot fail.
        let _ = write!(folder, " ({year})");
    }
    let tmdb = title.ids.tmdb.filter(|it| is_number(it)).map(|it| ("tmdbid", it));
    let imdb = title.ids.imdb.filter(|it| it.strip_prefix("tt").is_some_and(is_number));
    if let Some((catalogue, id)) = tmdb.or_else(|| imdb.map(|it| ("imdbid", it))) {
        let _ = write!(folder, " [{catalogue}-{id}]");
    }
    folder
}

fn is_number(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit())
}

/// Returns a name without its year at the end, because names of folders have it there.
fn without_year(name: &str, year: Option<u32>) -> &str {
    let Some(year) = year else { return name };
    let name = name.trim();
    let shorter = [format!("({year})"), format!("[{year}]")].into_iter().find_map(|it| {
        let rest = name.strip_suffix(it.as_str())?.trim_end();
        (!rest.is_empty()).then_some(rest.len())
    });
    shorter.map_or(name, |it| &name[..it])
}

/// Returns the name of a version, such as `Metropolis (1927) - 4K`.
fn version_name(stem: &str, label: &str) -> String {
    match label.chars().any(char::is_alphanumeric) {
        true => format!("{stem} - {}", component(label, LABEL_BYTES_MAX)),
        false => stem.to_owned(),
    }
}

/// Returns the name of an episode, such as `Andor S01E02 - That Would Be Me`.
fn episode_name(series: &str, episode: &StrmEpisode<'_>) -> String {
    let code = format!("S{:02}E{:02}", episode.season, episode.number);
    let mut name = format!("{series} {code}");
    let title = own_title(series, &code, episode.name);
    if title.chars().any(char::is_alphanumeric) {
        name.push_str(" - ");
        name.push_str(&component(title, EPISODE_TITLE_BYTES_MAX));
    }
    name
}

/// Returns what the name of an episode says besides its series and its number, which many providers repeat in it.
fn own_title<'a>(series: &str, code: &str, name: &'a str) -> &'a str {
    const BETWEEN: [char; 6] = [' ', '-', ':', '.', '_', '\u{2013}'];
    let parts = name.split_once(code).or_else(|| name.split_once(&code.to_lowercase()));
    let Some((before, after)) = parts else { return name };
    match series.starts_with(before.trim_end_matches(BETWEEN)) {
        true => after.trim_start_matches(BETWEEN),
        false => name,
    }
}

/// Returns a text as a component of a path that is valid on every common file system, without its extension: never empty,
/// hidden or a name with a meaning, and of at most this many bytes.
fn component(text: &str, bytes_max: usize) -> String {
    let mut name = String::with_capacity(text.len());
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(text);
    let mut characters = composed.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // `Alien: Romulus` is `Alien - Romulus`.
            ':' if characters.peek().is_none_or(|it| it.is_whitespace()) => name.push_str(" -"),
            ':' | '/' | '\\' | '|' => name.push('-'),
            '"' => name.push('\''),
            // Media servers read ids in brackets, and only those of this export are right.
            '[' | '{' => name.push('('),
            ']' | '}' => name.push(')'),
            '<' | '>' | '*' | '?' => {}
            _ if character.is_whitespace() => name.push(' '),
            _ if character.is_control() || is_invisible(character) => {}
            _ => name.push(character),
        }
    }
    let words: Vec<&str> = name.split(' ').filter(|it| !it.is_empty()).collect();
    let joined = words.join(" ");
    let name = joined.trim_start_matches(['.', ' ']);
    let mut end = name.len().min(bytes_max);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let name = name[..end].trim_end_matches(['.', ' ']);
    match name {
        "" => UNTITLED.to_owned(),
        _ if is_device(name) => format!("_{name}"),
        _ => name.to_owned(),
    }
}

/// Returns whether a character has no shape of its own: marks of direction, joiners and the like, private characters and
/// those that are none.
fn is_invisible(character: char) -> bool {
    matches!(
        u32::from(character),
        0x00AD | 0x061C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0xFE00..=0xFE0F | 0xFEFF
            | 0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xFFF0..=0xFFFF | 0xE0000..=0xE0FFF
    ) || u32::from(character) & 0xFFFE == 0xFFFE
        || u32::from(character) >= 0xF_0000
}

/// Returns whether a name means a device on Windows, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let is_numbered = |it: &str| {
        let mut rest = it.chars();
        matches!(rest.next(), Some('0'..='9' | '¹' | '²' | '³')) && rest.next().is_none()
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || ["com", "lpt"].iter().any(|it| stem.strip_prefix(it).is_some_and(is_numbered))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn title(id: u32, name: &str) -> StrmTitle<'_> {
        StrmTitle { id, name, year: None, ids: ExternalIds::default(), facts: TitleFacts::default() }
    }

    fn version(id: u32, label: &str) -> StrmVersion<'_> {
        StrmVersion { id, label, address: format!("http://tv/{id}") }
    }

    fn films(films: &[(StrmTitle<'_>, Vec<StrmVersion<'_>>)], has_nfo: bool) -> BTreeMap<String, String> {
        let (mut tree, mut files) = (StrmTree::new(has_nfo), BTreeMap::new());
        for (film, versions) in films {
            tree.add_film(film, versions, &mut |path, content| {
                let before = files.insert(path.to_owned(), content.to_owned());
                assert_eq!(before, None, "{path}");
            });
        }
        files
    }

    fn folders(names: &[&str]) -> Vec<String> {
        let mut tree = StrmTree::new(false);
        let ids = 1..;
        let added = names.iter().zip(ids).map(|(name, id)| {
            let mut folder = String::new();
            tree.add_film(&title(id, name), &[version(id, "")], &mut |path, _| {
                folder = path.split('/').nth(1).unwrap().to_owned();
            });
            folder
        });
        added.collect()
    }

    #[test]
    fn a_film_has_a_folder_with_a_file_for_each_version_that_begins_with_its_name() {
        let ids = ExternalIds { tmdb: Some("19"), imdb: Some("tt0017136") };
        let film = StrmTitle { year: Some(1927), ids, ..title(5, "Metropolis (1927)") };
        let files = films(&[(film, vec![version(1, ""), version(2, "4K"), version(3, "4k")])], false);
        let folder = "Movies/Metropolis (1927) [tmdbid-19]";
        let expected: BTreeMap<_, _> = [
            ("Metropolis (1927) [tmdbid-19].strm", "http://tv/1\n"),
            ("Metropolis (1927) [tmdbid-19] - 4K.strm", "http://tv/2\n"),
            ("Metropolis (1927) [tmdbid-19] - 4k [id-3].strm", "http://tv/3\n"),
        ]
        .into_iter()
        .map(|(name, content)| (format!("{folder}/{name}"), content.to_owned()))
        .collect();
        assert_eq!(files, expected);
        let only_imdb = StrmTitle { ids: ExternalIds { tmdb: Some("../1"), ..ids }, ..film };
        assert_eq!(title_folder(&only_imdb), "Metropolis (1927) [imdbid-tt0017136]");
        let neither = ExternalIds { tmdb: Some(""), imdb: Some("tt/../x") };
        assert_eq!(title_folder(&StrmTitle { ids: neither, ..film }), "Metropolis (1927)");
        assert!(films(&[(film, vec![])], true).is_empty(), "nothing plays");
    }

    #[test]
    fn each_version_has_its_facts_beside_it_under_its_own_name() {
        let film = StrmTitle { year: Some(1927), ..title(5, "Metropolis (1927)") };
        let files = films(&[(film, vec![version(1, ""), version(2, "4K")])], true);
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        let folder = "Movies/Metropolis (1927)";
        let expected = ["Metropolis (1927) - 4K.nfo", "Metropolis (1927) - 4K.strm", "Metropolis (1927).nfo"];
        assert_eq!(names[..3], expected.map(|it| format!("{folder}/{it}")));
        let text = &files[names[2]];
        assert!(text.contains("<title>Metropolis</title>") && text.contains("<year>1927</year>"), "{text}");
    }

    #[test]
    fn the_files_of_a_series_are_in_the_folders_of_its_seasons() {
        let series = StrmTitle { year: Some(2022), ..title(1, "Andor") };
        let episode = |season, number, name, n_versions| StrmEpisode {
            name,
            season,
            number,
            ids: ExternalIds::default(),
            facts: TitleFacts::default(),
            versions: (0..n_versions).map(|it| version(100 * season + 10 * number + it, "")).collect(),
        };
        let episodes = [
            episode(0, 1, "", 1),
            episode(1, 2, "That Would/Be: Me", 2),
            episode(1, 2, "that would-be - me", 1),
            episode(1, 3, "Gone", 0),
            episode(12, 113, "Long", 1),
        ];
        let mut files = Vec::new();
        let mut tree = StrmTree::new(true);
        tree.add_series(&series, &episodes, &mut |path, _| files.push(path.to_owned()));
        let names: Vec<_> = files.iter().map(|it| it.strip_prefix("Series/Andor (2022)/").unwrap()).collect();
        assert_eq!(
            names,
            [
                "Season 00/Andor S00E01.strm",
                "Season 00/Andor S00E01.nfo",
                "Season 01/Andor S01E02 - That Would-Be - Me.strm",
                "Season 01/Andor S01E02 - That Would-Be - Me.nfo",
                "Season 01/Andor S01E02 - That Would-Be - Me [id-121].strm",
                "Season 01/Andor S01E02 - that would-be - me [id-120].strm",
                "Season 01/Andor S01E02 - that would-be - me [id-120].nfo",
                "Season 12/Andor S12E113 - Long.strm",
                "Season 12/Andor S12E113 - Long.nfo",
                "tvshow.nfo",
            ]
        );
        let mut n_files = 0;
        tree.add_series(&title(2, "Empty"), &[episode(1, 3, "Gone", 0)], &mut |_, _| n_files += 1);
        assert_eq!(n_files, 0);
    }

    #[test]
    fn the_name_of_an_episode_does_not_repeat_its_series() {
        for (name, expected) in [
            ("Andor S01E02", "Andor S01E02"),
            ("Andor - S01E02 - That Would Be Me", "Andor S01E02 - That Would Be Me"),
            ("s01e02: That Would Be Me", "Andor S01E02 - That Would Be Me"),
            ("After Andor S01E02", "Andor S01E02 - After Andor S01E02"),
            ("S01E03", "Andor S01E02 - S01E03"),
        ] {
            let (ids, facts, versions) = (ExternalIds::default(), TitleFacts::default(), Vec::new());
            let episode = StrmEpisode { name, season: 1, number: 2, ids, facts, versions };
            assert_eq!(episode_name("Andor", &episode), expected, "{name}");
        }
    }

    #[test]
    fn names_of_providers_become_names_that_every_file_system_takes() {
        for (name, expected) in [
            ("Alien: Romulus", "Alien - Romulus"),
            ("9:30", "9-30"),
            ("Face/Off", "Face-Off"),
            ("..", UNTITLED),
            ("../../etc/passwd", "-..-etc-passwd"),
            ("/etc/passwd", "-etc-passwd"),
            (".hidden", "hidden"),
            ("C:\\Windows", "C--Windows"),
            ("What? <b>\"x\"*|", "What b'x'-"),
            ("a\0b\nc\td\u{85}e", "ab c d e"),
            ("abc\u{202E}gpj.exe", "abcgpj.exe"),
            ("Film [tmdbid-1] {x}", "Film (tmdbid-1) (x)"),
            ("etc. . .", "etc"),
            ("con", "_con"),
            ("Aux.2019", "_Aux.2019"),
            ("COM1", "_COM1"),
            ("lpt\u{b9}", "_lpt\u{b9}"),
            ("Community", "Community"),
            ("", UNTITLED),
            ("???", UNTITLED),
            ("Cafe\u{301}", "Café"),
            ("\u{FEFF}\u{200B}", UNTITLED),
        ] {
            assert_eq!(component(name, 100), expected, "{name:?}");
        }
        assert_eq!(component("äöü", 5), "äö");
        assert_eq!(component("ab. cd", 4), "ab");
    }

    #[test]
    fn names_that_a_file_system_takes_for_one_differ_by_the_id_and_the_oldest_keeps_its_name() {
        let names = ["Alien", "ALIEN", "Café", "CAFE\u{301}", "Alien [id-2]", "Straße", "STRASSE", "Alien"];
        assert_eq!(
            folders(&names),
            [
                "Alien",
                "ALIEN [id-2]",
                "Café",
                "CAFÉ [id-4]",
                "Alien (id-2)",
                "Straße",
                "STRASSE [id-7]",
                "Alien [id-8]"
            ]
        );
        assert_eq!(folders(&names[..5]), folders(&names)[..5], "a new title changes no name");
    }

    proptest! {
        #[test]
        fn no_name_leads_out_of_its_folder_or_occurs_twice(
            names in proptest::collection::vec("\\PC{0,300}|[./\\\\: \0-\x1F\u{80}-\u{9F}CON1-9a]{0,12}", 1..12),
            label in "\\PC{0,60}|[./\\\\]{1,4}",
        ) {
            let mut paths = HashSet::new();
            let mut tree = StrmTree::new(true);
            for (name, id) in names.iter().zip(1..) {
                let versions = [version(id, &label), version(id + 1000, &label)];
                tree.add_film(&title(id, name), &versions, &mut |path, _| {
                    assert!(paths.insert(comparable(path)), "{path}");
                    let parts: Vec<_> = path.split('/').collect();
                    assert_eq!(parts.len(), 3);
                    for part in parts {
                        assert!((1..=255).contains(&part.len()) && !part.starts_with('.'), "{part:?}");
                        assert!(!part.ends_with(['.', ' ']) && !part.contains(['\\', ':', '\0', '\n']));
                    }
                });
            }
            prop_assert_eq!(paths.len(), 4 * names.len());
        }
    }
}
