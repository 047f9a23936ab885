//! Splits the name of a channel into words.

use super::scripts::plain;
use super::vocabulary::quality;

/// Maximum number of characters of a name that are read.
pub(super) const NAME_CHARS_MAX: usize = 512;
/// Maximum number of words of a name.
const WORDS_MAX: usize = 64;
/// The longest time shift of a channel, in hours.
const SHIFT_MAX: u8 = 24;

/// How a word is separated from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Letters next to digits, as in `BBC1`.
    None,
    /// A single dot, as in `M.T.V`.
    Dot,
    Space,
    /// A sign that separates parts of a name, such as `:` or `|`.
    Sign,
}

/// A word of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// Lower case without accents.
    pub(super) text: String,
    pub(super) before: Gap,
    /// Whether all letters are capitals.
    pub(super) is_upper: bool,
    /// The pair of brackets that the word is in, counted from 1; 0 is none.
    pub(super) bracket: u16,
}

/// The words of a name, and what its signs say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) words: Vec<Token>,
    /// Whether a separator follows the last word.
    pub(super) is_closed: bool,
    /// The time shift in hours.
    pub(super) shift: u8,
    /// Whether the name is the heading of a part of a playlist, such as `##### SPORT #####`.
    pub(super) is_heading: bool,
    /// Whether a `#` stands directly before the first word, as providers mark their lists.
    pub(super) is_marked: bool,
}

/// Splits a name.
pub(super) fn split(name: &str) -> Tokens {
    // An apostrophe does not end a word.
    let is_apostrophe = |it: &char| matches!(it, '\'' | '’' | '`');
    let chars: Vec<char> = plain(name).chars().filter(|it| !is_apostrophe(it)).take(NAME_CHARS_MAX).collect();
    let mut reader =
        Reader { chars: &chars, at: 0, gap: Gap::Sign, tokens: Tokens::default(), brackets: (0, 0) };
    reader.tokens.is_heading = is_heading(&chars);
    let mut signs = chars.iter().skip_while(|it| it.is_whitespace());
    reader.tokens.is_marked = signs.next() == Some(&'#') && signs.next().is_some_and(|it| it.is_alphabetic());
    while reader.at < chars.len() && reader.tokens.words.len() < WORDS_MAX {
        reader.step();
    }
    reader.tokens.is_closed = reader.gap == Gap::Sign;
    let words = join_initials(reader.tokens.words);
    Tokens { words, ..reader.tokens }
}

/// Returns whether a name begins and ends with a row of signs.
fn is_heading(chars: &[char]) -> bool {
    let is_sign = |it: &&char| {
        !it.is_alphanumeric() && !it.is_whitespace() && !matches!(it, '(' | ')' | '[' | ']' | '|')
    };
    let signs = |of: &mut dyn Iterator<Item = &char>| {
        let mut of = of.skip_while(|it| it.is_whitespace()).take_while(is_sign).peekable();
        let is_hash = of.peek().is_some_and(|it| matches!(it, '#' | '='));
        (of.count(), is_hash)
    };
    let ((first, is_hash), (last, _)) = (signs(&mut chars.iter()), signs(&mut chars.iter().rev()));
    let least = if is_hash { 2 } else { 3 };
    first >= least && last >= least
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    gap: Gap,
    tokens: Tokens,
    /// The pairs of brackets so far, and the open one.
    brackets: (u16, u16),
}

impl Reader<'_> {
    fn peek(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }

    fn step(&mut self) {
        let Some(it) = self.peek(0) else { return };
        match it {
            it if it.is_alphanumeric() => self.word(),
            '+' => self.plus(),
            '&' => {
                self.push("and".to_owned(), false);
                self.skip(1, Gap::Space);
            }
            '.' => self.skip(1, Gap::Dot),
            '(' | '[' | '{' | '<' => {
                self.brackets.0 += 1;
                self.brackets.1 = self.brackets.0;
                self.skip(1, Gap::Sign);
            }
            ')' | ']' | '}' | '>' => {
                self.brackets.1 = 0;
                self.skip(1, Gap::Sign);
            }
            '-' | '–' | '—' => {
                let before = self.at.checked_sub(1).and_then(|it| self.chars.get(it));
                let is_apart = before.is_none_or(|it| it.is_whitespace())
                    || self.peek(1).is_none_or(char::is_whitespace);
                self.skip(1, if is_apart { Gap::Sign } else { Gap::Space });
            }
            ' ' | '_' | '!' | '?' | '*' | '"' | '@' => self.skip(1, Gap::Space),
            it if it.is_whitespace() => self.skip(1, Gap::Space),
            _ => self.skip(1, Gap::Sign),
        }
    }

    fn skip(&mut self, n: usize, gap: Gap) {
        self.at += n;
        self.gap = match (self.gap, gap) {
            // Two dots, or a dot beside a space, are a space.
            (Gap::Dot | Gap::Space, Gap::Dot) => Gap::Space,
            (before, gap) => before.max(gap),
        };
    }

    fn push(&mut self, text: String, is_upper: bool) {
        self.tokens.words.push(Token { text, before: self.gap, is_upper, bracket: self.brackets.1 });
        self.gap = Gap::None;
    }

    /// Reads letters and digits, which may be several words.
    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(|it| it.is_alphanumeric()) {
            self.at += 1;
        }
        let run = &self.chars[start..self.at];
        let whole: String = run.iter().flat_map(|it| it.to_lowercase()).collect();
        let is_upper =
            |run: &[char]| run.iter().any(|it| it.is_uppercase()) && !run.iter().any(|it| it.is_lowercase());
        if quality(&whole).is_some() {
            self.push(whole, is_upper(run));
            return;
        }
        for part in run.chunk_by(|a, b| a.is_numeric() == b.is_numeric()) {
            let text: String = part.iter().flat_map(|it| it.to_lowercase()).collect();
            let text = match part[0].is_ascii_digit() {
                true => text.trim_start_matches('0').to_owned(),
                false => text,
            };
            // In `ESPNHD`, the quality is a word of its own.
            let name =
                ["uhd", "fhd", "hd"].iter().find_map(|it| text.strip_suffix(it)).filter(|it| it.len() >= 2);
            let name = name.map(str::len).unwrap_or(text.len());
            let (name, suffix) = text.split_at(name);
            self.push(if name.is_empty() { "0".to_owned() } else { name.to_owned() }, is_upper(part));
            if !suffix.is_empty() {
                self.push(suffix.to_owned(), is_upper(part));
            }
        }
    }

    /// Reads a plus: a time shift before a number, otherwise a part of the name.
    fn plus(&mut self) {
        let is_after_word = self.gap == Gap::None && !self.tokens.words.is_empty();
        let n_spaces = self.chars[self.at + 1..].iter().take_while(|it| it.is_whitespace()).count();
        // In `Canal+ 1`, the plus belongs to the word before it.
        let at = 1 + if is_after_word { 0 } else { n_spaces };
        let digits: String = self.chars[(self.at + at).min(self.chars.len())..]
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .collect();
        let hours = digits.parse().ok().filter(|it| (1..=SHIFT_MAX).contains(it));
        let mut after = at + digits.len();
        if let Some(hours) = hours {
            let is_end = |reader: &Self, at| !reader.peek(at).is_some_and(char::is_alphanumeric);
            if self.peek(after).is_some_and(|it| it.eq_ignore_ascii_case(&'h')) && is_end(self, after + 1) {
                after += 1;
            }
            self.tokens.shift = hours;
            self.skip(after, Gap::Space);
            return;
        }
        // Of a quality, as in `HD+`, or once more, as in `Plus++`.
        let is_sign = |it: &Token| is_after_word && (it.text == "plus" || quality(&it.text).is_some());
        if self.tokens.words.last().is_some_and(|it| !is_sign(it)) {
            self.push("plus".to_owned(), false);
        }
        self.skip(1, Gap::None);
    }
}

/// Joins single letters with dots between them, as in `M.T.V`.
fn join_initials(words: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::with_capacity(words.len());
    let mut ends_with_initial = false;
    for word in words {
        let is_initial = word.text.len() == 1 && word.text.chars().all(char::is_alphabetic);
        match joined.last_mut() {
            Some(last) if ends_with_initial && is_initial && word.before == Gap::Dot => {
                last.text.push_str(&word.text)
            }
            _ => {
                ends_with_initial = is_initial;
                joined.push(word);
            }
        }
    }
    joined
}
