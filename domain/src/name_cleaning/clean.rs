//! Takes the marks of providers off a name.

use super::NameKind;
use super::tables::{
    EXTENSIONS, IN_BRACKETS, KEPT_STARTS, LANGUAGES, PHRASES, REMAKES, SERVICES, SMALL_WORDS, VERSIONS,
    WordPlace, closing_of, is_decoration, is_repeated_decoration,
};
use crate::guide::marks::{is_glyph, plain_letters};
use crate::guide::matching::{Country, is_decoration as is_channel_remark, quality};

/// Maximum number of passes over a name. Each pass but the last one shortens it; real names need two.
const PASSES_MAX: usize = 16;
/// Maximum number of characters before a separator that are read as marks.
const MARK_CHARS_MAX: usize = 24;
/// Length of the longest word that states a version, in bytes.
const WORD_BYTES_MAX: usize = 10;
/// Maximum number of marks between two brackets, or before a separator.
const MARKS_MAX: usize = 4;
/// Years in brackets at the end of a name.
const YEARS: std::ops::RangeInclusive<u16> = 1900..=2100;
/// Years behind a hyphen at the end of a name. Films of the future are named after their year.
const SEPARATED_YEARS: std::ops::RangeInclusive<u16> = 1900..=2035;

/// Where a text is in a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spot {
    Bracket,
    /// Before or behind a separator.
    Separated,
    /// The last word. `is_mixed`: the words before it have small letters, so capitals set it apart.
    Bare {
        is_mixed: bool,
    },
}

/// Returns a name without marks of language and quality, with spaces between its words. A name of marks only keeps its
/// words.
pub(super) fn clean(name: &str, kind: NameKind) -> String {
    let mut cleaned = name.trim().to_owned();
    for _ in 0..PASSES_MAX {
        let next = pass(&cleaned, kind);
        if next == cleaned {
            break;
        }
        cleaned = next;
    }
    cleaned
}

fn pass(name: &str, kind: NameKind) -> String {
    if !has_word(name) {
        return name.to_owned();
    }
    let spaced = with_spaces(name);
    let mut rest = trimmed(&spaced);
    while let Some(shorter) = without_leading(rest, kind).or_else(|| without_trailing(rest, kind)) {
        rest = trimmed(shorter);
    }
    let Some((base, year)) = year_at_end(rest, kind) else { return rest.to_owned() };
    let mut base = trimmed(base);
    while let Some(shorter) = without_trailing(base, kind) {
        base = trimmed(shorter);
    }
    format!("{base} ({year})")
}

fn has_word(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

/// Returns whether a text has a word outside of brackets.
fn has_title(text: &str) -> bool {
    let mut closing = None;
    text.chars().any(|it| match closing {
        Some(end) => {
            closing = closing.filter(|_| it != end);
            false
        }
        None => {
            closing = closing_of(it);
            it.is_alphanumeric()
        }
    })
}

/// Returns a name with single spaces, in place of underscores and, if it has no space, of dots.
fn with_spaces(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len());
    for it in name.chars() {
        match it {
            _ if it.is_whitespace() || it == '_' => {
                if !spaced.ends_with(' ') {
                    spaced.push(' ');
                }
            }
            '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{FE0F}' | '\u{AD}' => {}
            _ if it.is_control() => {}
            _ => spaced.push(it),
        }
    }
    let inner = spaced.trim();
    if inner.contains(' ') {
        return spaced;
    }
    let inner = without_extension(inner);
    if has_dots_for_spaces(inner) { without_dots(inner) } else { inner.to_owned() }
}

/// Returns the title of the name of a file, such as `The.Matrix.1999.German.1080p`: the words behind a year describe the
/// file.
fn without_dots(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').filter(|it| !it.is_empty()).collect();
    let years = parts.iter().enumerate().skip(1).filter(|it| year(it.1).is_some_and(is_release_year));
    match years.map(|it| it.0).next_back().filter(|it| it + 1 < parts.len()) {
        Some(at) => format!("{} ({})", parts[..at].join(" "), parts[at]),
        None => parts.join(" "),
    }
}

fn is_release_year(year: u16) -> bool {
    SEPARATED_YEARS.contains(&year)
}

/// Reads a year of four digits.
fn year(text: &str) -> Option<u16> {
    let is_plain = text.len() == 4 && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

fn without_extension(name: &str) -> &str {
    let stem = EXTENSIONS.iter().find_map(|it| {
        let at = name.len().checked_sub(it.len())?;
        name.get(at..)?.eq_ignore_ascii_case(it).then(|| &name[..at])
    });
    stem.filter(|it| has_word(it)).unwrap_or(name)
}

/// Returns whether the dots of a name are between words, and not those of `S.W.A.T.` or `Mr.Robot`.
fn has_dots_for_spaces(name: &str) -> bool {
    let (mut n, mut n_words) = (0, 0);
    for part in name.split('.') {
        n += 1;
        n_words += usize::from(part.chars().filter(|it| it.is_alphabetic()).count() > 1);
    }
    n > 2 && n_words > 1
}

/// Returns a text without decorations and separators at its ends.
fn trimmed(text: &str) -> &str {
    let is_outer = |it: char| it.is_whitespace() || is_decoration(it);
    let mut rest = text;
    loop {
        let inner = rest.trim_matches(is_outer);
        let inner = without_run(inner);
        let inner = inner.trim_start_matches(['-', '–', '—', ':', ',']);
        let inner = inner.trim_end_matches(['-', '–', '—', ':', ',']);
        if inner.len() == rest.len() || !has_word(inner) {
            return rest;
        }
        rest = inner;
    }
}

/// Returns a text without repeated signs at its ends.
fn without_run(text: &str) -> &str {
    let run = |sign: Option<char>, n: fn(&str, char) -> usize| {
        let sign = sign.filter(|it| is_repeated_decoration(*it))?;
        Some(n(text, sign)).filter(|it| *it > 1)
    };
    let at_start = run(text.chars().next(), |it, sign| it.len() - it.trim_start_matches(sign).len());
    let at_end = run(text.chars().next_back(), |it, sign| it.len() - it.trim_end_matches(sign).len());
    let (from, until) = (at_start.unwrap_or(0), text.len() - at_end.unwrap_or(0));
    text.get(from..until).unwrap_or(text)
}

/// Returns a name without the marks at its beginning, such as `|EN|`, `[DE]`, `4K-FR - ` or `IT: `.
fn without_leading(text: &str, kind: NameKind) -> Option<&str> {
    let is_kept = |it: &&str| text.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it));
    if kind != NameKind::Channel && KEPT_STARTS.iter().any(is_kept) {
        return None;
    }
    let first = text.chars().next()?;
    let (mark, rest, spot) = if is_glyph(first) {
        let rest = text.trim_start_matches(is_glyph);
        (&text[..text.len() - rest.len()], rest, Spot::Bracket)
    } else if let Some(closing) = closing_of(first) {
        let (mark, rest) = text[first.len_utf8()..].split_once(closing)?;
        (mark, rest, Spot::Bracket)
    } else {
        let (at, sign) = separator(text)?;
        (&text[..at], &text[at + sign.len_utf8()..], Spot::Separated)
    };
    (are_marks(mark, kind, spot) && has_title(rest)).then_some(rest)
}

/// Returns the first separator of a name and its place. A hyphen before a letter belongs to the word, as in `X-Men`.
fn separator(text: &str) -> Option<(usize, char)> {
    let is_separator = |(at, it): &(usize, char)| match it {
        '-' | '–' | '—' => text[at + it.len_utf8()..].starts_with(' '),
        ':' | '：' => true,
        _ => is_decoration(*it),
    };
    text.char_indices().take(MARK_CHARS_MAX).find(is_separator)
}

/// Returns a name without the last mark at its end, such as `[UHD]`, `(MULTI)`, ` - VOSTFR` or ` 4K`.
fn without_trailing(text: &str, kind: NameKind) -> Option<&str> {
    let last = text.chars().next_back()?;
    let (before, is_mark) = if is_glyph(last) {
        let before = text.trim_end_matches(is_glyph);
        (before, are_marks(&text[before.len()..], kind, Spot::Bracket))
    } else if let Some(start) = opening_of(text, last) {
        let inside = text[start..].trim_matches(|it| closing_of(it).is_some() || it == last).trim();
        let is_remake = last == ')' && kind != NameKind::Channel && REMAKES.contains(&inside);
        (&text[..start], !is_remake && are_marks(inside, kind, Spot::Bracket))
    } else {
        return without_last_part(text, kind).or_else(|| without_last_word(text, kind));
    };
    (is_mark && has_word(before)).then_some(before)
}

/// Returns where the bracket begins that this character closes.
fn opening_of(text: &str, closing: char) -> Option<usize> {
    text.char_indices().rev().find(|it| closing_of(it.1) == Some(closing)).map(|it| it.0)
}

/// Returns a name without the marks behind its last separator.
fn without_last_part(text: &str, kind: NameKind) -> Option<&str> {
    let bar = text.rfind(is_decoration);
    let hyphen = [" - ", " – ", " — "].iter().filter_map(|it| text.rfind(it)).max();
    let at = bar.max(hyphen)?;
    let (before, part) = text.split_at(at);
    let part = part.trim_start_matches(|it: char| !it.is_alphanumeric());
    (are_marks(part, kind, Spot::Separated) && has_word(before)).then_some(before)
}

/// Returns a name without its last word if that states a version.
fn without_last_word(text: &str, kind: NameKind) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let phrase =
        PHRASES.iter().find(|it| lower.ends_with(**it)).map(|it| text.split_at(text.len() - it.len()).0);
    if let Some(before) = phrase.filter(|it| has_word(it)) {
        return Some(before);
    }
    let (before, word) = text.rsplit_once(' ')?;
    (is_last_mark(before.trim_end(), word, kind) && has_word(before)).then_some(before)
}

/// Returns whether the last word of a name is a mark behind these words.
fn is_last_mark(before: &str, word: &str, kind: NameKind) -> bool {
    if before.ends_with([')', ']']) && is_mark(word, kind, Spot::Separated) {
        return true;
    }
    let bare = Spot::Bare { is_mixed: before.contains(char::is_lowercase) };
    // The name of a group follows the format in the names of files: `x264-GROUP`.
    let format = word.split_once('-').map_or("", |it| it.0);
    let is_format = is_version(format, NameKind::Movie, Spot::Bare { is_mixed: false });
    // `TV4 FHD SE`.
    let is_behind_version = || before.rsplit_once(' ').is_some_and(|it| is_version(it.1, kind, bare));
    is_format
        || word.split('/').all(|it| is_version(it, kind, bare))
        || (is_mark(word, kind, Spot::Separated) && is_behind_version())
}

/// Returns whether a text has marks only.
fn are_marks(text: &str, kind: NameKind, spot: Spot) -> bool {
    if is_mark(text.trim(), kind, spot) {
        return true;
    }
    let mut n = 0;
    let mut parts = text.split([' ', '-', '/', '|', ',', '&']).filter(|it| !it.is_empty());
    let are_all = parts.all(|it| {
        n += 1;
        is_mark(it, kind, spot)
    });
    are_all && (1..=MARKS_MAX).contains(&n)
}

fn is_mark(word: &str, kind: NameKind, spot: Spot) -> bool {
    if !word.is_empty() && word.chars().all(is_glyph) {
        let plain = plain_letters(word);
        let is_code = Country::from_code(&plain).is_some() || LANGUAGES.contains(&&*plain);
        return is_code
            || SMALL_WORDS.contains(&&*plain)
            || is_version(&plain, NameKind::Channel, Spot::Bracket);
    }
    let is_in_brackets = || spot == Spot::Bracket && IN_BRACKETS.contains(&&*word.to_lowercase());
    is_version(word, kind, spot)
        || is_in_brackets()
        || (are_capitals(word) && is_code(&word.to_ascii_lowercase(), kind, spot))
}

fn are_capitals(word: &str) -> bool {
    word.contains(|it: char| it.is_ascii_uppercase()) && !word.contains(char::is_lowercase)
}

/// Returns whether a text in lower case names a language, a country or a service.
fn is_code(word: &str, kind: NameKind, spot: Spot) -> bool {
    let is_channel = kind == NameKind::Channel;
    // Films and series are named after countries, too.
    let may_be_name = is_channel || spot == Spot::Bracket;
    LANGUAGES.contains(&word)
        || Country::from_code(word).is_some()
        || (may_be_name && Country::from_name(word).is_some())
        || (!is_channel && SERVICES.contains(&word))
}

fn is_version(word: &str, kind: NameKind, spot: Spot) -> bool {
    if word.len() > WORD_BYTES_MAX || !word.is_ascii() {
        return false;
    }
    if kind == NameKind::Channel {
        let lower = word.to_ascii_lowercase();
        if quality(&lower).is_some() || is_channel_remark(&lower) {
            return true;
        }
    }
    let Some((_, place)) = VERSIONS.iter().find(|it| it.0.eq_ignore_ascii_case(word)) else { return false };
    match (place, spot) {
        (WordPlace::Anywhere, _) | (_, Spot::Bracket) | (WordPlace::Separated, Spot::Separated) => true,
        (WordPlace::Separated, Spot::Bare { .. }) => false,
        (WordPlace::Capitals, Spot::Separated) => are_capitals(word),
        (WordPlace::Capitals, Spot::Bare { is_mixed }) => is_mixed && are_capitals(word),
    }
}

/// Returns whether a word states a version of a film, in brackets or not.
pub(crate) fn is_film_version(word: &str) -> bool {
    is_version(word, NameKind::Movie, Spot::Bracket)
}

/// Splits the year off the end of the name of a film or a series: `Heat (1995)`, `Heat [1995]` or `Heat - 1995`.
fn year_at_end(text: &str, kind: NameKind) -> Option<(&str, u16)> {
    if kind == NameKind::Channel {
        return None;
    }
    let in_brackets = || {
        let inside = text.strip_suffix([')', ']'])?;
        let (before, inside) = inside.rsplit_once(['(', '['])?;
        Some((before, year(inside.trim()).filter(|it| YEARS.contains(it))?))
    };
    let separated = || {
        let (before, behind) = text.rsplit_once(" - ")?;
        Some((before, year(behind).filter(|it| is_release_year(*it))?))
    };
    in_brackets().or_else(separated).filter(|it| has_word(it.0))
}
