//! Takes the marks off the ends of a text, one after another.

use std::borrow::Cow;

use super::glyphs::{is_glyph, plain};
use super::numbers::{Notation, Numbers, numbers};
use super::words::{BARE_EPISODE_WORDS, BARE_SEASON_WORDS, Word, meaning, prefix_meaning};
use super::{MarkedText, Marks};

/// Longer texts in brackets are parts of names.
const GROUP_BYTES_MAX: usize = 60;
/// Longer texts before a colon are parts of names.
const PREFIX_BYTES_MAX: usize = 30;
/// Marks at the end of a text without brackets have at most so many words, as in `Season 1, Episode 5 of 10`.
const WORDS_MAX: usize = 6;
/// More episodes than this after a slash without brackets are a date or something else.
const BARE_EPISODES_MAX: u32 = 26;
/// Marks at each end of a text.
const MARKS_MAX: usize = 8;
/// As many words of a title are looked at.
const TITLE_WORDS_MAX: usize = 40;
/// Bytes of a description in which a mark at its beginning ends.
const BEGINNING_BYTES: usize = 80;

/// Signs between a text and its marks.
const SEPARATORS: [char; 11] = [' ', '-', '–', '—', ':', '|', ',', '·', '•', ';', '/'];

/// Returns false if a text can have no marks, as most texts do, after a quick look.
pub(super) fn may_have_marks(text: &str, kind: MarkedText) -> bool {
    match kind {
        MarkedText::Title | MarkedText::SubTitle => text.bytes().any(may_be_mark) || text.ends_with("HD"),
        MarkedText::Description => {
            let bytes = text.as_bytes();
            let (first, last) = (bytes.len().min(24), bytes.len().saturating_sub(24));
            bytes[..first].iter().any(|it| may_be_mark(*it) || matches!(it, b'.' | b'!'))
                || bytes[last..].iter().any(|it| may_be_mark(*it))
        }
    }
}

/// Returns whether a byte occurs in marks: brackets, digits and signs, or the first byte of a letter that is set apart.
fn may_be_mark(it: u8) -> bool {
    matches!(it, b'0'..=b'9' | b'(' | b'[' | b'{' | b':' | b'|' | b'*' | b'#')
        || matches!(it, 0xCA | 0xCB | 0xE1 | 0xE2 | 0xE3 | 0xE7 | 0xEA | 0xEF | 0xF0)
}

/// A text whose marks are taken off.
pub(super) struct Peeler<'a> {
    kind: MarkedText,
    whole: &'a str,
    rest: &'a str,
    marks: Marks,
    is_marked: bool,
}

impl<'a> Peeler<'a> {
    pub(super) fn new(text: &'a str, kind: MarkedText) -> Self {
        Self { kind, whole: text, rest: text.trim(), marks: Marks::default(), is_marked: false }
    }

    pub(super) fn run(mut self) -> Option<(Marks, Cow<'a, str>)> {
        for _ in 0..MARKS_MAX {
            if !self.end() && !self.start() {
                break;
            }
        }
        if self.kind == MarkedText::Title {
            self.cut_at_numbers();
        }
        let without = if self.kind == MarkedText::Description { None } else { self.without_inner() };
        self.is_marked.then(|| (self.marks, without.map_or(Cow::Borrowed(self.rest), Cow::Owned)))
    }

    /// Takes a mark off, unless nothing else would be left of a title.
    fn take(&mut self, rest: &'a str, marks: Marks) -> bool {
        let rest = rest.trim_matches(SEPARATORS);
        let is_name = rest.chars().any(char::is_alphanumeric);
        if !is_name && (self.kind == MarkedText::Title || self.rest.len() < self.whole.trim().len()) {
            return false;
        }
        self.marks.add(marks);
        self.is_marked = true;
        if is_name {
            self.rest = rest;
        }
        is_name
    }

    /// Takes a mark off the end. Returns false if there is none.
    fn end(&mut self) -> bool {
        let rest = self.rest;
        let Some(last) = rest.chars().next_back() else { return false };
        if let Some(at) = opening(rest, last) {
            let inside = &rest[at..rest.len() - last.len_utf8()];
            let inside = inside.chars().next().map_or("", |it| &inside[it.len_utf8()..]);
            return group(inside, is_square(last)).is_some_and(|it| self.take(&rest[..at], it));
        }
        if is_glyph(last) || last == '\u{FE0F}' {
            return self.end_glyphs();
        }
        if self.kind != MarkedText::Description && self.end_word() {
            return true;
        }
        self.end_numbers()
    }

    fn end_glyphs(&mut self) -> bool {
        let is_part = |it: char| is_glyph(it) || it == ' ' || it == '\u{FE0F}';
        let before = self.rest.trim_end_matches(is_part);
        let run = &self.rest[before.len()..];
        // A single letter can belong to the word before it.
        let is_apart = run.starts_with(' ') || before.is_empty() || run.chars().count() > 1;
        let run_marks = || group(&plain(run), false).or_else(|| glued(plain(run).trim()));
        if let Some(marks) = run_marks().filter(|_| is_apart) {
            return self.take(before, marks);
        }
        // Only the last word, after others in the same letters.
        let Some((start, word)) = run.rsplit_once(' ') else { return false };
        let before = &self.rest[..before.len() + start.len()];
        group(&plain(word), false).is_some_and(|it| self.take(before, it))
    }

    /// Takes a quality in capital letters off, or a word after a vertical bar.
    fn end_word(&mut self) -> bool {
        let rest = self.rest;
        if let Some((before, word)) = rest.rsplit_once(' ') {
            let quality = match word {
                "HD" | "FHD" => Some(Word::Hd),
                "UHD" => Some(Word::Uhd),
                _ => None,
            };
            if let Some(quality) = quality {
                return self.take(before, marks_of(quality));
            }
        }
        let Some((before, word)) = rest.rsplit_once('|') else { return false };
        let word = word.trim().to_lowercase();
        let found = meaning(&word).filter(|it| word.chars().count() > 1 && *it != Word::Other);
        found.is_some_and(|it| self.take(before, marks_of(it)))
    }

    /// Takes numbers without brackets off the end.
    fn end_numbers(&mut self) -> bool {
        let rest = self.rest;
        if !rest.bytes().rev().take(16).any(|it| it.is_ascii_digit()) {
            return false;
        }
        // The longest first, so that the season is not left out.
        let mut starts = [0; WORDS_MAX];
        let spaces = rest.rmatch_indices(' ').map(|it| it.0 + 1);
        let n_spaces = starts.iter_mut().zip(spaces).map(|(start, at)| *start = at).count();
        let n_starts = WORDS_MAX.min(n_spaces + 1);
        for at in starts[..n_starts].iter().rev().copied() {
            let Some(found) =
                numbers(&rest[at..]).filter(|it| rest[at + it.length..].trim_end_matches('.').is_empty())
            else {
                continue;
            };
            if self.may_end_with(&found, &rest[..at], &rest[at..]) {
                return self.take(&rest[..at], marks_of_numbers(&found));
            }
        }
        false
    }

    /// Returns whether numbers without brackets at the end of a text are a mark.
    fn may_end_with(&self, found: &Numbers<'_>, before: &str, text: &str) -> bool {
        let word = found.word.to_lowercase();
        match found.notation {
            Notation::Both | Notation::Cross => true,
            _ if self.kind == MarkedText::Description => false,
            Notation::Season => self.kind == MarkedText::Title && BARE_SEASON_WORDS.contains(&word.as_str()),
            Notation::Episode => {
                let is_padded = word == "e" && found.digits.starts_with('0');
                is_padded
                    || BARE_EPISODE_WORDS.contains(&word.as_str())
                    || self.kind == MarkedText::SubTitle && before.is_empty()
            }
            Notation::Count { with_word } => {
                let all = text
                    .rsplit('/')
                    .next()
                    .and_then(|it| it.trim_matches(['.', ' ']).parse().ok())
                    .unwrap_or(u32::MAX);
                let is_fraction = before.trim_end().ends_with(|it: char| it.is_ascii_digit());
                let is_few = with_word || all <= BARE_EPISODES_MAX;
                let is_mark = !with_word || self.kind == MarkedText::SubTitle;
                is_mark && is_few && !is_fraction
            }
        }
    }

    /// Takes a mark off the start. Returns false if there is none.
    fn start(&mut self) -> bool {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else { return false };
        if let Some(close) = closing(first) {
            let inside = &rest[first.len_utf8()..];
            let Some(end) = inside.find(close).filter(|it| *it <= GROUP_BYTES_MAX) else { return false };
            let after = &inside[end + close.len_utf8()..];
            let marks = group(&inside[..end], is_square(close));
            return marks.is_some_and(|it| self.take(after.trim_start_matches('.'), it));
        }
        if is_glyph(first) {
            let after = rest.trim_start_matches(|it: char| is_glyph(it) || it == ' ' || it == '\u{FE0F}');
            let run = plain(&rest[..rest.len() - after.len()]);
            return group(&run, false).is_some_and(|it| self.take(after, it));
        }
        self.start_word() || self.start_numbers()
    }

    /// Takes a word before a colon off the start; of a description also one before a full stop.
    fn start_word(&mut self) -> bool {
        let rest = self.rest;
        let is_end =
            |it: char| it == ':' || (self.kind == MarkedText::Description && matches!(it, '.' | '!' | '\n'));
        let Some(end) = rest.find(is_end).filter(|it| *it <= PREFIX_BYTES_MAX) else { return false };
        let after = &rest[end + 1..];
        let is_apart = after.starts_with(char::is_whitespace) || after.is_empty();
        let found = prefix_meaning(&rest[..end].trim().to_lowercase()).filter(|_| is_apart);
        found.is_some_and(|it| self.take(after, marks_of(it)))
    }

    /// Takes numbers off the start: of titles only those with season and episode.
    fn start_numbers(&mut self) -> bool {
        let rest = self.rest;
        let Some(found) = numbers(rest).filter(|it| it.length <= BEGINNING_BYTES) else { return false };
        let after = &rest[found.length..];
        let is_apart = after
            .trim_start_matches(' ')
            .starts_with([':', '.', ',', '-', '–', '—', '|', '\n', ')', ';', '·']);
        let is_mark = match (self.kind, found.notation) {
            (_, Notation::Both) => true,
            (MarkedText::Title, _) => false,
            (_, Notation::Cross) => is_apart || after.is_empty(),
            (_, Notation::Season) => false,
            (_, Notation::Episode) => {
                let is_short = found.word.len() > 1 || found.digits.starts_with('0');
                is_apart || (after.is_empty() && is_short)
            }
            (_, Notation::Count { .. }) => is_apart || after.is_empty(),
        };
        is_mark && self.take(after.trim_start_matches(['.', ' ', '\n', ')']), marks_of_numbers(&found))
    }

    /// Cuts a title before the numbers within it: the name of the episode follows them.
    fn cut_at_numbers(&mut self) {
        let rest = self.rest;
        if !rest.bytes().any(|it| it.is_ascii_digit()) {
            return;
        }
        let starts = rest.match_indices(' ').map(|it| it.0 + 1).take(TITLE_WORDS_MAX);
        let mut found = starts.filter_map(|at| Some((at, numbers(&rest[at..])?)));
        let both = found.find(|(_, it)| it.notation == Notation::Both);
        if let Some((at, found)) = both {
            self.take(&rest[..at], marks_of_numbers(&found));
        }
    }

    /// Returns the text without the words in it that are marks in brackets or in letters that are set apart.
    fn without_inner(&mut self) -> Option<String> {
        let rest = self.rest;
        let mut out = String::new();
        let mut at = 0;
        while let Some(found) = rest[at..].find(|it: char| closing(it).is_some() || is_glyph(it)) {
            let start = at + found;
            let first = rest[start..].chars().next()?;
            let end = match closing(first) {
                Some(close) => {
                    let inside = start + first.len_utf8();
                    rest[inside..].find(close).map(|it| inside + it + close.len_utf8())
                }
                None => Some(start + rest[start..].find(|it| !is_glyph(it)).unwrap_or(rest.len() - start)),
            };
            let Some(end) = end else { break };
            let text = match closing(first) {
                Some(close) => rest[start + first.len_utf8()..end - close.len_utf8()].to_owned(),
                None => plain(&rest[start..end]),
            };
            // Letters alone are parts of names.
            let is_long = text.trim().chars().count() > 1;
            let marks = group(&text, false).filter(|it| is_long && !it.names_one());
            if let Some(marks) = marks.filter(|_| start > 0 && end < rest.len()) {
                self.marks.add(marks);
                self.is_marked = true;
                out.push_str(rest[at..start].trim_end());
                // The next word follows with its own space, a colon or comma without one.
            } else {
                out.push_str(&rest[at..end]);
            }
            at = end;
        }
        (!out.is_empty()).then(|| out + &rest[at..])
    }
}

/// Returns where the bracket opens that this character closes at the end of a text.
fn opening(text: &str, last: char) -> Option<usize> {
    let open = match last {
        ')' => '(',
        ']' => '[',
        '}' => '{',
        '）' => '（',
        '】' => '【',
        '］' => '［',
        '*' => '*',
        _ => return None,
    };
    let before = &text[..text.len() - last.len_utf8()];
    before.rfind(open).filter(|at| before.len() - at <= GROUP_BYTES_MAX)
}

/// Returns the character that closes a bracket.
fn closing(first: char) -> Option<char> {
    Some(match first {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '（' => '）',
        '【' => '】',
        '［' => '］',
        '*' => '*',
        _ => return None,
    })
}

fn is_square(close: char) -> bool {
    matches!(close, ']' | '］' | '】')
}

/// Returns the marks of a text in brackets; `None` if anything in it is none. Signs that no field has are marks alone if
/// `is_square`.
fn group(text: &str, is_square: bool) -> Option<Marks> {
    let text = text.trim();
    if text.is_empty() || text.len() > GROUP_BYTES_MAX {
        return None;
    }
    let lower = text.to_lowercase();
    let (marks, is_certain) = group_part(&lower)?;
    (is_certain || is_square).then_some(marks)
}

/// Returns the marks of a part of a group in lower case, and whether one of them is a mark alone.
fn group_part(text: &str) -> Option<(Marks, bool)> {
    let text = text.trim_matches(['.', '!', ' ', ',', ';', '-', '*']);
    if let Some(word) = meaning(text) {
        return Some((marks_of(word), word != Word::Other));
    }
    if let Some(year) = year(text) {
        return Some((Marks { year: Some(year), ..Marks::default() }, true));
    }
    if let Some(found) = numbers(text) {
        let marks = marks_of_numbers(&found);
        let rest = text[found.length..].trim_start_matches(SEPARATORS).trim();
        if rest.is_empty() {
            return Some((marks, true));
        }
        return group_part(rest).map(|(more, _)| (joined(marks, more), true));
    }
    let at = text.find([',', '/', '|', ';', '+', '&', '·']).or_else(|| text.find(' '))?;
    let (one, other) = text.split_at(at);
    let other = other.trim_start_matches([',', '/', '|', ';', '+', '&', '·', ' ']);
    let (one, is_certain) = group_part(one)?;
    let (other, is_other_certain) = group_part(other)?;
    Some((joined(one, other), is_certain || is_other_certain))
}

/// Returns the marks of two words without a space between them, as in `ᴸᶦᵛᵉᴺᵉʷ`.
fn glued(text: &str) -> Option<Marks> {
    let word = |it: &str| meaning(it).filter(|word| it.len() > 1 && *word != Word::Other).map(marks_of);
    text.char_indices().find_map(|(at, _)| {
        let (one, other) = text.split_at(at);
        Some(joined(word(one)?, word(other)?))
    })
}

fn joined(mut one: Marks, other: Marks) -> Marks {
    one.add(other);
    one
}

/// Returns the year of production that a text is.
fn year(text: &str) -> Option<u32> {
    let is_year = text.len() == 4 && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_year && (1900..=2099).contains(it))
}

fn marks_of(word: Word) -> Marks {
    let mut marks = Marks::default();
    marks.add_word(word);
    marks
}

fn marks_of_numbers(found: &Numbers<'_>) -> Marks {
    // A season or episode 0 is a special, and a real number.
    Marks { season: found.season, episode: found.episode, ..Marks::default() }
}
