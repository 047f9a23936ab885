//! What the name of a title states: the words of the title, its year, and which version of it this is.
//!
//! Providers write `EN - Heat (1995) 4K`, `|DE| Heat [UHD]` or `Heat - 1995`. The same title is recognised by its words and
//! its year; what is left over distinguishes versions.

use std::borrow::Cow;

use crate::guide::words::WordSplitter;
use crate::name_cleaning::is_film_version;

/// Years that a name can state.
const YEARS: std::ops::RangeInclusive<u16> = 1900..=2100;
/// Years that count without brackets.
const BARE_YEARS: std::ops::RangeInclusive<u16> = 1900..=2035;
/// Titles that end with a number of [`BARE_YEARS`], in lower case.
const TITLES_WITH_YEARS: [&str; 9] = [
    "airport 1975",
    "class of 1984",
    "class of 1999",
    "death race 2000",
    "dracula 2000",
    "frankenstein 1970",
    "heavy metal 2000",
    "space 1999",
    "wonder woman 1984",
];
/// Ends of names of video files.
const FILE_ENDS: [&str; 5] = ["mkv", "mp4", "avi", "ts", "m4v"];
/// Marks at the beginning of a name that are read at most.
const PREFIXES_MAX: usize = 3;
/// Maximum length of a label, in characters.
pub const LABEL_CHARS_MAX: usize = 40;

/// The parts of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TitleName {
    /// The words in lower case and without accents, separated by spaces. Empty if the name has none.
    pub words: String,
    /// The year that the name states.
    pub year: Option<u16>,
    /// Marks of language and quality, such as `EN 4K`. Empty if there are none.
    pub label: String,
}

impl TitleName {
    /// Reads a name.
    pub fn new(name: &str) -> Self {
        let spaced = spaced(name.trim());
        let mut label = Vec::new();
        let mut rest = spaced.as_ref();
        for _ in 0..PREFIXES_MAX {
            let Some((mark, after)) = leading_mark(rest) else { break };
            label.push(mark);
            rest = after.trim_start();
        }
        let mut year = None;
        let mut kept = rest.trim_end();
        while let Some((before, mark)) = trailing_mark(kept) {
            match mark {
                // A second year is a part of the title, as in `Blade Runner 2049 (2017)`.
                Mark::BareYear(_) if year.is_some() => break,
                Mark::BareYear(_) if is_title_with_year(kept) => break,
                Mark::Year(found) | Mark::BareYear(found) => year = year.or(Some(found)),
                Mark::Version(text) => label.push(text),
            }
            kept =
                before.trim_end_matches(|it: char| it.is_whitespace() || matches!(it, '-' | '|' | ':' | ','));
        }
        let mut words = words_of(kept);
        if words.is_empty() {
            // A name of marks only, such as `4K`.
            (words, label) = (words_of(name), Vec::new());
        }
        let mut label = label.join(" ");
        super::shorten(&mut label, LABEL_CHARS_MAX);
        Self { words, year, label }
    }
}

/// Returns the name of a file with spaces: `Night.Ferry.1998.1080p.mkv`, `Night_Ferry_1998`.
fn spaced(name: &str) -> Cow<'_, str> {
    let is_file = !name.contains(' ') && name.matches(['.', '_']).count() >= 2;
    if !is_file {
        return Cow::Borrowed(name);
    }
    let stem = name.rsplit_once('.').filter(|it| FILE_ENDS.contains(&it.1)).map_or(name, |it| it.0);
    Cow::Owned(stem.replace(['.', '_'], " "))
}

fn words_of(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    // An apostrophe does not end a word, because providers leave it out.
    let cleaned: String;
    let text = if text.contains(['\'', '’', '`', '&']) {
        cleaned = text.replace(['\'', '’', '`'], "").replace('&', " and ");
        &*cleaned
    } else {
        text
    };
    WordSplitter::default().split(text, |word| {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    });
    joined
}

/// A mark at the end of a name.
enum Mark<'a> {
    Year(u16),
    /// Without brackets and separator.
    BareYear(u16),
    Version(&'a str),
}

/// Returns a mark of language or quality at the beginning, such as `|EN|`, `[DE]`, `4K-FR - ` or `IT: `, and the rest.
fn leading_mark(text: &str) -> Option<(&str, &str)> {
    let first = text.chars().next()?;
    if let Some(closing) = closing_of(first) {
        let inside = &text[first.len_utf8()..];
        let end = inside.find(closing)?;
        let (mark, after) = (inside[..end].trim(), &inside[end + closing.len_utf8()..]);
        let after = after.trim_start().trim_start_matches(['-', ':', '|']);
        return (is_code(mark) && has_title(after)).then_some((mark, after));
    }
    // A separator without a space before it belongs to the word, as in `X-Men`.
    let end = text.find([' ', ':', '|', '┃'])?;
    let (mark, after) = text.split_at(end);
    let after = after.trim_start();
    let separated = after.strip_prefix([':', '|', '┃', '-', '–'])?;
    // `- ` is a separator, `-` may begin a word.
    let is_separated = !after.starts_with('-') || separated.starts_with(' ');
    (is_separated && is_code(mark) && has_title(separated)).then_some((mark, separated))
}

fn closing_of(opening: char) -> Option<char> {
    Some(match opening {
        '[' => ']',
        '(' => ')',
        '{' => '}',
        '|' => '|',
        '┃' => '┃',
        _ => return None,
    })
}

/// Returns whether a text has a word before its first bracket.
fn has_title(text: &str) -> bool {
    text.split(['(', '[', '{']).next().is_some_and(has_word)
}

fn has_word(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

/// Returns whether a mark before a name is the code of a language or a service, or a quality: `EN`, `D+`, `4K-FR`.
fn is_code(mark: &str) -> bool {
    let parts = mark.split(['-', '/', ' ', '+']).filter(|it| !it.is_empty());
    let is_short = |it: &str| {
        it.len() <= 3
            && it.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
            && it.bytes().any(|it| it.is_ascii_uppercase())
    };
    let mut n = 0;
    parts.into_iter().all(|it| {
        n += 1;
        is_short(it) || is_film_version(it)
    }) && (1..=3).contains(&n)
}

/// Returns the name without a mark at its end, and the mark.
fn trailing_mark(text: &str) -> Option<(&str, Mark<'_>)> {
    let last = text.chars().next_back()?;
    if matches!(last, ')' | ']' | '}') {
        let opening = match last {
            ')' => '(',
            ']' => '[',
            _ => '{',
        };
        let start = text.rfind(opening)?;
        let inside = text[start + opening.len_utf8()..text.len() - last.len_utf8()].trim();
        let before = text[..start].trim_end();
        if !has_word(before) {
            return None;
        }
        if let Some(year) = year(inside) {
            return Some((before, Mark::Year(year)));
        }
        let is_mark = is_code(inside) || inside.split([' ', '-', '/', ',']).all(is_film_version);
        return is_mark.then_some((before, Mark::Version(inside)));
    }
    let (before, word) = text.rsplit_once([' ', '|'])?;
    let trimmed = before.trim_end();
    if !has_word(trimmed) {
        return None;
    }
    if let Some(year) = year(word) {
        return match trimmed.strip_suffix(['-', '–', '|']) {
            Some(before) => has_word(before).then_some((before, Mark::Year(year))),
            // Films of the future are named after their year.
            None => BARE_YEARS.contains(&year).then_some((trimmed, Mark::BareYear(year))),
        };
    }
    is_film_version(word).then_some((trimmed, Mark::Version(word)))
}

fn is_title_with_year(name: &str) -> bool {
    let name = name.to_lowercase();
    TITLES_WITH_YEARS.iter().any(|it| name.ends_with(it))
}

fn year(text: &str) -> Option<u16> {
    let is_plain = text.len() == 4 && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_plain && YEARS.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_words_year_and_marks_of_the_version() {
        for (name, words, year, label) in [
            ("Heat", "heat", None, ""),
            ("Heat (1995)", "heat", Some(1995), ""),
            ("EN - Heat (1995) 4K", "heat", Some(1995), "EN 4K"),
            ("|DE| Heat [UHD]", "heat", None, "DE UHD"),
            ("[FR] Heat - 1995", "heat", Some(1995), "FR"),
            ("4K-DE - Heat (1995)", "heat", Some(1995), "4K-DE"),
            ("IT: Heat", "heat", None, "IT"),
            ("D+ - Heat", "heat", None, "D+"),
            ("Heat (1995) (MULTI) HEVC", "heat", Some(1995), "HEVC MULTI"),
            ("X-Men", "x men", None, ""),
            ("Blade Runner 2049", "blade runner 2049", None, ""),
            ("Blade Runner 2049 (2017)", "blade runner 2049", Some(2017), ""),
            ("Night Ferry 1998", "night ferry", Some(1998), ""),
            ("Night.Ferry.1998.1080p.mkv", "night ferry", Some(1998), "1080p"),
            ("Night_Ferry_1998", "night ferry", Some(1998), ""),
            ("S.W.A.T.", "s w a t", None, ""),
            ("Night Ferry 1998 4K", "night ferry", Some(1998), "4K"),
            ("EN - Night Ferry 1998 HEVC MULTI", "night ferry", Some(1998), "EN MULTI HEVC"),
            ("Wonder Woman 1984", "wonder woman 1984", None, ""),
            ("Wonder Woman 1984 (2020)", "wonder woman 1984", Some(2020), ""),
            ("Night Ferry 1997 1998", "night ferry 1997", Some(1998), ""),
            ("1917", "1917", None, ""),
            ("1917 2019", "1917", Some(2019), ""),
            ("2012 (2009)", "2012", Some(2009), ""),
            ("Schindler's List", "schindlers list", None, ""),
            ("Fast & Furious", "fast and furious", None, ""),
            ("Amélie", "amelie", None, ""),
            ("Birdman (or The Unexpected Virtue)", "birdman or the unexpected virtue", None, ""),
            ("4K", "4k", None, ""),
            ("Up", "up", None, ""),
            ("UP - (2009)", "up", Some(2009), ""),
            ("Вий (1967)", "вий", Some(1967), ""),
            ("---", "", None, ""),
            ("", "", None, ""),
            ("(2009)", "2009", None, ""),
        ] {
            let read = TitleName::new(name);
            assert_eq!((&*read.words, read.year, &*read.label), (words, year, label), "{name:?}");
        }
    }

    #[test]
    fn marks_of_other_scripts_do_not_break_a_name() {
        for name in ["┃EN┃ Heat", "é[", "(é", "┃", "| |", "[]x", "{é} a", "a –", "– –"] {
            // Only that it ends and stays within the text matters.
            assert!(TitleName::new(name).words.len() <= name.len() + 8, "{name}");
        }
        assert_eq!(TitleName::new("┃EN┃ Heat").words, "heat");
    }
}
