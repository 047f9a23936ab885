//! Marks in names that tell streams of one channel apart: quality, time shift, number, country and language.
//!
//! Half a million names are read at a refresh, so each word is looked up once and remembered.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::guide::matching::{
    Country, Quality, digits, is_common_word, is_decoration, is_leading_code, is_remark, is_weak, plain,
    quality,
};

/// Maximum number of different words that are remembered.
const WORDS_MAX: usize = 50_000;
/// Longer words are not remembered.
const WORD_BYTES_MAX: usize = 32;
/// Maximum number of characters of a name that are read.
const NAME_CHARS_MAX: usize = 512;
/// The longest time shift, in hours.
const SHIFT_MAX: u8 = 24;

/// The marks of a name. 0 is always "not stated".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    quality: u8,
    /// Hours; 0 is the original, which no name states.
    shift: u8,
    country: [u8; 2],
    language: [u8; 2],
    /// Hash of the numbers in their order.
    numbers: u32,
}

impl Marks {
    /// Returns a number for the stated quality; 0 if none is stated.
    pub(super) fn quality(self) -> u8 {
        self.quality
    }

    /// Returns the letters of the stated country; zeros if none is stated.
    pub(super) fn country(self) -> [u8; 2] {
        self.country
    }

    /// Returns whether two names cannot be those of one stream. A quality, a country and a language contradict only if
    /// both names state one; numbers and time shifts contradict also if only one name has them.
    pub(super) fn contradict(self, other: Self) -> bool {
        let differ = |a: [u8; 2], b: [u8; 2]| a != [0; 2] && b != [0; 2] && a != b;
        let is_other_quality = self.quality != 0 && other.quality != 0 && self.quality != other.quality;
        is_other_quality
            || self.shift != other.shift
            || self.numbers != other.numbers
            || differ(self.country, other.country)
            || differ(self.language, other.language)
    }
}

/// The meanings of a word, wherever it stands.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// Hash of its letters; 0 if it says nothing about which channel it is.
    core: u32,
    /// Hash of its number; 0 without one.
    number: u32,
    quality: u8,
    /// The country of a code, which counts only in some places, and of a name, which counts everywhere.
    code: [u8; 2],
    country: [u8; 2],
    /// The same of a language.
    language_code: [u8; 2],
    language: [u8; 2],
    /// The code begins names without a sign behind it.
    is_leading: bool,
    /// The code is also a common word.
    is_common: bool,
}

/// Reads marks. Remembers words, so one reader is used for all names of a refresh.
#[derive(Debug, Clone)]
pub(super) struct MarkReader {
    hasher: RandomState,
    words: HashMap<Box<str>, Word>,
}

/// Languages by their names and by codes that do not stand for a country.
const LANGUAGES: &[(&str, &[&str], &[&str])] = &[
    ("ar", &["arabic"], &["ar", "ara"]),
    ("cs", &["cestina"], &[]),
    ("de", &["german", "deutsch"], &[]),
    ("el", &["greek"], &[]),
    ("en", &["english"], &["en", "eng"]),
    ("es", &["spanish", "espanol", "castellano"], &["spa"]),
    ("fa", &["persian", "farsi"], &["fa"]),
    ("fr", &["french", "francais"], &["fre"]),
    ("he", &["hebrew"], &["he", "heb"]),
    ("hi", &["hindi"], &["hi", "hin"]),
    ("it", &["italian", "italiano"], &[]),
    ("ja", &["japanese"], &["ja", "jap"]),
    ("ko", &["korean"], &["ko", "kor"]),
    ("ku", &["kurdish"], &["ku"]),
    ("nl", &["dutch", "nederlands"], &["dut"]),
    ("pa", &["punjabi"], &["pan"]),
    ("pl", &["polish", "polski"], &[]),
    ("pt", &["portuguese", "portugues"], &[]),
    ("ru", &["russian"], &[]),
    ("sv", &["swedish", "svenska"], &[]),
    ("ta", &["tamil"], &["ta", "tam"]),
    ("te", &["telugu"], &["te", "tel"]),
    ("tr", &["turkish", "turkce"], &[]),
    ("ur", &["urdu"], &["ur", "urd"]),
    ("zh", &["chinese", "mandarin"], &["zh", "chi"]),
];

/// Countries whose code is not that of their language.
const WITHOUT_LANGUAGE: &[&str] = &[
    "ae", "at", "au", "be", "br", "ca", "ch", "cn", "cz", "dk", "eg", "gr", "hk", "ie", "il", "in", "iq",
    "ir", "jp", "ke", "kr", "lk", "lu", "ma", "mt", "mx", "my", "ng", "nz", "ph", "pk", "qa", "sa", "se",
    "sg", "tn", "tw", "uk", "us", "za",
];

impl MarkReader {
    pub(super) fn new(hasher: RandomState) -> Self {
        Self { hasher, words: HashMap::new() }
    }

    /// Returns the marks of a name, and a hash of all other words; 0 without one.
    pub(super) fn read(&mut self, name: &str) -> (Marks, u32) {
        let of_plain;
        let name = match name.is_ascii() {
            true => name,
            false => {
                of_plain = plain(name);
                &of_plain
            }
        };
        let end = name.char_indices().nth(NAME_CHARS_MAX).map_or(name.len(), |it| it.0);
        let mut found = Found::default();
        let mut rest = &name[..end];
        let mut before = ' ';
        while let Some(start) = rest.find(|it: char| it.is_alphanumeric() || it == '+') {
            before = rest[..start].chars().rev().find(|it| !it.is_whitespace()).unwrap_or(before);
            let is_after_space = rest[..start].ends_with(char::is_whitespace) || found.n_words == 0;
            rest = &rest[start..];
            if let Some(after_plus) = rest.strip_prefix('+') {
                let (hours, n_bytes) = time_shift(after_plus, is_after_space);
                found.marks.shift = if hours > 0 { hours } else { found.marks.shift };
                rest = &after_plus[n_bytes..];
                before = '+';
                continue;
            }
            let end = rest.find(|it: char| !it.is_alphanumeric()).unwrap_or(rest.len());
            let (run, behind) = rest.split_at(end);
            let next = behind.chars().find(|it| !it.is_whitespace());
            let is_upper = !run.contains(|it: char| it.is_lowercase());
            let place = Place { is_first: found.n_words == 0, is_upper, before, next };
            let word = self.word(run);
            found.add(word, place);
            before = ' ';
            rest = behind;
        }
        found.finish()
    }

    /// Returns what a word is. Letters and digits side by side are one word here.
    fn word(&mut self, run: &str) -> Word {
        if run.bytes().all(|it| it.is_ascii_digit()) {
            // Each channel has another one.
            return Word { number: self.hash(run.trim_start_matches('0')), ..Word::default() };
        }
        if run.len() > WORD_BYTES_MAX {
            return self.classify(&run.to_lowercase());
        }
        if let Some(word) = self.words.get(run) {
            return *word;
        }
        let word = self.classify(&run.to_lowercase());
        if self.words.len() < WORDS_MAX {
            self.words.insert(run.into(), word);
        }
        word
    }

    fn classify(&self, lower: &str) -> Word {
        let mut word = Word { quality: stated_quality(lower), ..Word::default() };
        if word.quality != 0 || quality(lower).is_some() {
            return word;
        }
        // In `ESPNHD`, the quality is a word of its own.
        let suffix =
            ["uhd", "fhd", "hd"].into_iter().find(|it| lower.len() >= it.len() + 2 && lower.ends_with(it));
        let lower = match suffix {
            Some(suffix) => {
                word.quality = stated_quality(suffix);
                &lower[..lower.len() - suffix.len()]
            }
            None => lower,
        };
        let language = |is_code: bool| {
            let found = LANGUAGES.iter().find(|it| if is_code { it.2 } else { it.1 }.contains(&lower));
            found.map(|it| two(it.0)).unwrap_or_default()
        };
        word.language = language(false);
        word.language_code = language(true);
        if lower.len() <= 3 {
            word.code = Country::from_text(lower).map(|it| two(&it.to_string())).unwrap_or_default();
            word.is_leading = is_leading_code(lower);
            word.is_common = is_common_word(lower);
        } else {
            word.country = Country::from_text(lower).map(|it| two(&it.to_string())).unwrap_or_default();
        }
        if word.language_code == [0; 2] && word.code != [0; 2] {
            let code = String::from_utf8_lossy(&word.code).into_owned();
            word.language_code = if WITHOUT_LANGUAGE.contains(&&*code) { [0; 2] } else { word.code };
        }
        for part in lower.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
            // A part of a text between digits begins and ends at characters.
            let text = String::from_utf8_lossy(part);
            let number = digits(&text).map(str::to_owned);
            let number =
                number.or_else(|| part[0].is_ascii_digit().then(|| text.trim_start_matches('0').to_owned()));
            match number {
                Some(number) => word.number = word.number.wrapping_mul(31).wrapping_add(self.hash(&number)),
                None => word.core = word.core.wrapping_add(self.hash(&text)),
            }
        }
        if is_decoration(lower) || is_remark(lower) || is_weak(lower) {
            word.core = 0;
        }
        word
    }

    /// Returns a number that is never 0.
    fn hash(&self, text: &str) -> u32 {
        // The lower half is as random as the whole.
        (self.hasher.hash_one(text) as u32).max(1)
    }
}

/// Where a word stands in a name.
#[derive(Clone, Copy)]
struct Place {
    is_first: bool,
    is_upper: bool,
    /// The sign before it; a space if there is none.
    before: char,
    /// The next character besides spaces.
    next: Option<char>,
}

impl Place {
    /// Returns whether a code here is a mark of the provider: `UK: News`, `[DE] News`, `News (US)`, `News FR`.
    fn is_of_mark(self, word: Word) -> bool {
        let is_sign = |it: char| !it.is_alphanumeric() && !matches!(it, '&' | '\'' | '.' | '+');
        let is_closed = self.next.is_some_and(is_sign);
        let is_opened = !self.before.is_whitespace() && is_sign(self.before);
        let is_last = self.next.is_none() && !self.is_first && !word.is_common;
        let is_leading = self.is_first && word.is_leading && self.next.is_some();
        self.is_upper && (is_closed && (self.is_first || is_opened) || is_last || is_leading)
    }
}

/// The marks so far.
#[derive(Default)]
struct Found {
    marks: Marks,
    core: u32,
    /// A language that a word names, and not only a country.
    language: [u8; 2],
    n_words: usize,
}

impl Found {
    fn add(&mut self, word: Word, place: Place) {
        self.n_words += 1;
        self.marks.quality = self.marks.quality.max(word.quality);
        set(&mut self.marks.country, word.country);
        set(&mut self.language, word.language);
        let is_code = word.code != [0; 2] || word.language_code != [0; 2];
        if is_code && place.is_of_mark(word) {
            set(&mut self.marks.country, word.code);
            match word.language_code == word.code {
                true => set(&mut self.marks.language, word.code),
                false => set(&mut self.language, word.language_code),
            }
            return;
        }
        self.core = self.core.wrapping_add(word.core);
        if word.number != 0 {
            self.marks.numbers = self.marks.numbers.wrapping_mul(31).wrapping_add(word.number);
        }
    }

    fn finish(mut self) -> (Marks, u32) {
        if self.language != [0; 2] {
            self.marks.language = self.language;
        }
        (self.marks, self.core)
    }
}

/// Sets a mark that is not stated yet.
fn set(mark: &mut [u8; 2], value: [u8; 2]) {
    if *mark == [0; 2] {
        *mark = value;
    }
}

/// Returns the two letters of a code.
pub(super) fn two(code: &str) -> [u8; 2] {
    code.as_bytes().try_into().unwrap_or_default()
}

/// Returns the quality that a word states; 0 for none. Codecs and frame rates state none.
fn stated_quality(word: &str) -> u8 {
    match quality(word) {
        Some(Quality::Ultra) => 3,
        Some(Quality::High) => 2,
        Some(Quality::Standard) if matches!(word, "sd" | "480p" | "480i" | "576p" | "576i" | "360p") => 1,
        _ => 0,
    }
}

/// Returns the hours behind a plus and the number of bytes that state them; 0 hours if the plus is a part of the name, as in
/// `Canal+ 1`.
fn time_shift(text: &str, is_after_space: bool) -> (u8, usize) {
    let n_spaces = if is_after_space { text.len() - text.trim_start().len() } else { 0 };
    let n_digits = text[n_spaces..].bytes().take_while(u8::is_ascii_digit).count();
    let end = n_spaces + n_digits;
    let hours = text[n_spaces..end].parse().unwrap_or(0);
    let behind = &text[end..];
    let is_unit = behind.starts_with(['h', 'H']) && !behind[1..].starts_with(char::is_alphanumeric);
    let is_end = is_unit || !behind.starts_with(char::is_alphanumeric);
    match (1..=SHIFT_MAX).contains(&hours) && is_end {
        true => (hours, end + usize::from(is_unit)),
        false => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contradict_in_quality_shift_number_country_and_language() {
        let mut reader = MarkReader::new(RandomState::new());
        for (a, b, expected) in [
            ("News", "News", false),
            ("News HD", "News SD", true),
            ("News HD", "News UHD", true),
            ("News FHD", "News 1080p", false),
            ("News HD", "News ᴴᴰ", false),
            ("NewsHD", "News 4K", true),
            // A name without a quality states none.
            ("News", "News HD", false),
            ("News HEVC", "News HD", false),
            ("Film4", "Film4 +1", true),
            ("Film4+1", "Film4 +1", false),
            ("Film4 +1h", "Film4 + 1", false),
            ("Film4 +1", "Film4 +24", true),
            ("Canal+", "Canal+", false),
            ("Canal+ 1", "Canal+", true),
            ("Sport 1", "Sport 2", true),
            ("Sport 1", "Sport One", false),
            ("Sport 01", "Sport1", false),
            ("Sport", "Sport 2", true),
            ("UK: News", "US: News", true),
            ("UK: News", "GB | News", false),
            ("UK: News", "News", false),
            ("News (US)", "News [CA]", true),
            ("News Germany", "News Austria", true),
            ("DE News", "AT News", false),
            ("News DE", "News FR", true),
            ("UK News", "GER News", true),
            ("News (EN)", "News (ES)", true),
            ("News (EN)", "News (UK)", false),
            ("News (EN)", "News DE", true),
            ("News Arabic", "News English", true),
            ("News Arabic", "News (AR)", false),
            ("News Deutsch", "News [DE]", false),
            // Words of a sentence are not codes.
            ("What is it", "What is us", false),
            ("Love it", "Love it", false),
            ("", "News", false),
        ] {
            let (one, other) = (reader.read(a).0, reader.read(b).0);
            assert_eq!(one.contradict(other), expected, "{a:?} {b:?}: {one:?} {other:?}");
            assert_eq!(other.contradict(one), expected, "{b:?} {a:?}");
        }
    }

    #[test]
    fn the_words_of_a_name_are_the_same_without_marks_and_in_another_order() {
        let mut reader = MarkReader::new(RandomState::new());
        for (a, b, expected) in [
            ("UK: News Today HD", "Today News", true),
            ("VIP | News FHD (Backup)", "News", true),
            ("News 1", "News 2", true),
            ("News Channel", "News", true),
            ("News", "Weather", false),
            ("Sky News", "News", false),
        ] {
            assert_eq!(reader.read(a).1 == reader.read(b).1, expected, "{a:?} {b:?}");
        }
        assert_eq!(reader.read("12 ++ --").1, 0);
        assert_eq!(reader.read(&"x ".repeat(100_000)), reader.read(&"x ".repeat(100_000)));
    }
}
