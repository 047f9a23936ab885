//! The normal form of a channel's name: its words, and what it says about country, time shift and quality.

use super::countries::Country;
use super::tokens::{Gap, Token, Tokens, split};
use super::vocabulary::{
    Quality, digits, is_bundle, is_common_word, is_decoration, is_leading_code, is_region, is_remark,
    is_weak, quality, quality_of_two,
};

/// Texts that an admin wants to be ignored in names, besides those that always are. Compared regardless of case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameRules {
    /// Texts at the beginning of names.
    pub prefixes: Vec<String>,
    /// Texts at the end of names.
    pub suffixes: Vec<String>,
    /// Texts anywhere in names.
    pub parts: Vec<String>,
}

impl NameRules {
    /// Returns the name without the ignored texts, or as it is if no word of two letters would be left: `Radio X` must not
    /// become `X`, which is another station.
    fn apply(&self, name: &str) -> String {
        let mut rest = name.trim().to_owned();
        for part in self.parts.iter().filter(|it| !it.is_empty()) {
            // Each is removed once per occurrence, so a text that appears by a removal stays.
            let mut from = 0;
            while let Some((start, end)) = find_ignoring_case(&rest, part, from) {
                rest.replace_range(start..end, " ");
                from = start + 1;
            }
        }
        for prefix in self.prefixes.iter().filter(|it| !it.is_empty()) {
            if let Some((0, end)) = find_ignoring_case(&rest, prefix, 0) {
                rest = rest[end..].trim_start().to_owned();
            }
        }
        for suffix in self.suffixes.iter().filter(|it| !it.is_empty()) {
            let n = suffix.chars().count();
            let start = rest.char_indices().rev().nth(n.saturating_sub(1)).map(|it| it.0);
            if let Some(start) = start.filter(|it| is_same(&rest[*it..], suffix)) {
                rest = rest[..start].trim_end().to_owned();
            }
        }
        if rest.split(|it: char| !it.is_alphanumeric()).any(is_distinctive) { rest } else { name.to_owned() }
    }
}

fn is_same(a: &str, b: &str) -> bool {
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}

/// Returns the first place of a text from an offset on, regardless of case.
fn find_ignoring_case(text: &str, wanted: &str, from: usize) -> Option<(usize, usize)> {
    let n = wanted.chars().count();
    let mut starts = text.char_indices().map(|it| it.0).chain([text.len()]).filter(|it| *it >= from);
    starts.find_map(|start| {
        let end = text[start..].char_indices().nth(n).map_or(text.len(), |it| start + it.0);
        is_same(&text[start..end], wanted).then_some((start, end))
    })
}

/// When the first word of a name is a country, although no separator follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    Never,
    /// Not if its code is a word as well, and nothing speaks for the country.
    UnlessWord,
    Always,
}

/// The normal form of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalName {
    /// All words of the name, without what follows here.
    pub words: Vec<String>,
    pub country: Option<Country>,
    /// Whether the country is a word of the name, as in `Sky Sport Austria`, and not a mark of the provider.
    pub is_country_in_name: bool,
    /// The time shift in hours, as in `ITV+1`.
    pub shift: u8,
    pub quality: Quality,
    /// Whether the name is the heading of a part of a playlist.
    pub is_heading: bool,
    /// Whether the name has a word, and not only numbers and signs.
    pub has_word: bool,
}

impl NormalName {
    /// Reads a name. Only its first 512 characters count.
    pub fn new(name: &str, rules: &NameRules) -> Self {
        Self::read(name, rules, Lead::Never).0
    }

    /// Reads a name whose first word is a country without a separator behind it, as in `US CNN` or `DE RTL HD`. `None` if
    /// nothing speaks for that: the word may as well be the beginning of the name, as in `USA Network`. Only a guide channel
    /// of the same name in this country confirms it.
    pub(super) fn with_leading_country(name: &str, rules: &NameRules) -> Option<Self> {
        let (found, has_led) = Self::read(name, rules, Lead::UnlessWord);
        (has_led && found.is_usable()).then_some(found)
    }

    /// Does the same, also with codes that are words, as in `NO SPORT 1`: the names of other channels show that the provider
    /// writes this code before its names.
    pub(super) fn with_leading_code(name: &str, rules: &NameRules) -> Option<Self> {
        let (found, has_led) = Self::read(name, rules, Lead::Always);
        (has_led && found.is_usable()).then_some(found)
    }

    /// Returns the normal form, and whether a country was taken from its beginning because `lead` allowed it.
    fn read(name: &str, rules: &NameRules, lead: Lead) -> (Self, bool) {
        let is_ruled = !(rules.prefixes.is_empty() && rules.suffixes.is_empty() && rules.parts.is_empty());
        let tokens = if is_ruled { split(&rules.apply(&shortened(name))) } else { split(name) };
        let Tokens { words, is_closed, shift, is_heading, is_marked } = tokens;
        let found = Self { shift, is_heading, ..Self::default() };
        let mut parts = Parts { words, is_closed, is_marked, has_quality: false, found };
        parts.take_quality();
        parts.take_prefixes();
        let has_led = lead != Lead::Never && parts.take_leading_country(lead);
        parts.take_suffixes();
        let Parts { words, found, .. } = parts;
        let has_word = words.iter().any(|it| it.text.chars().any(char::is_alphabetic));
        let word = |it: Token| digits(&it.text).map_or(it.text, str::to_owned);
        (Self { words: words.into_iter().map(word).collect(), has_word, ..found }, has_led)
    }

    /// Returns the words that tell channels apart: without `TV`, `Channel` and `The`, unless a number or a single letter
    /// would be left.
    pub fn core(&self) -> Vec<&str> {
        let core: Vec<&str> = self.words.iter().map(String::as_str).filter(|it| !is_weak(it)).collect();
        if core.iter().any(|it| is_distinctive(it)) {
            core
        } else {
            self.words.iter().map(String::as_str).collect()
        }
    }

    /// Returns whether the name can be the name of one channel.
    pub fn is_usable(&self) -> bool {
        self.has_word && !self.is_heading
    }
}

/// Returns words without the spaces between them, except that numbers stay apart: `Sport 1 2` is not `Sport 12`.
pub(super) fn squashed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        if text.ends_with(char::is_numeric) && word.starts_with(char::is_numeric) {
            text.push('.');
        }
        text.push_str(word);
    }
    text
}

fn shortened(name: &str) -> String {
    name.chars().take(super::tokens::NAME_CHARS_MAX).collect()
}

/// Returns whether a word is a remark of the provider: also a single letter in brackets, which tells its lines apart.
fn is_remark_word(word: &Token) -> bool {
    let is_letter = || word.text.chars().count() == 1 && word.text.chars().all(char::is_alphabetic);
    is_remark(&word.text) || (word.bracket > 0 && is_letter())
}

fn is_distinctive(word: &str) -> bool {
    word.chars().filter(|it| it.is_alphabetic()).count() >= 2
}

/// The words that are left, and what the others said.
struct Parts {
    words: Vec<Token>,
    is_closed: bool,
    /// Whether a `#` is before the first word.
    is_marked: bool,
    /// Whether the name stated a quality, also the standard one.
    has_quality: bool,
    found: NormalName,
}

impl Parts {
    /// Returns whether a word is left that can be the name, without those in this range.
    fn leaves_name(&self, without: std::ops::Range<usize>) -> bool {
        let mut left = self.words.iter().enumerate().filter(|it| !without.contains(&it.0));
        left.any(|it| it.1.text.chars().any(char::is_alphabetic))
    }

    fn remove(&mut self, range: std::ops::Range<usize>) {
        // What follows keeps the separator before the removed words.
        let gap = self.words[range.start].before;
        self.words.drain(range.clone());
        if let Some(next) = self.words.get_mut(range.start) {
            next.before = next.before.max(gap);
        } else {
            self.is_closed |= gap == Gap::Sign;
        }
    }

    fn take_quality(&mut self) {
        let mut at = 0;
        while at < self.words.len() {
            let two = self.words.get(at + 1).and_then(|it| quality_of_two(&self.words[at].text, &it.text));
            let one = quality(&self.words[at].text);
            let n = if two.is_some() { 2 } else { 1 };
            match two.or(one).filter(|_| self.leaves_name(at..at + n)) {
                Some(quality) => {
                    self.found.quality = self.found.quality.max(quality);
                    self.has_quality = true;
                    self.remove(at..at + n);
                }
                None => at += 1,
            }
        }
    }

    /// Returns the end of the part that begins here: the words up to the next separator.
    fn end_of_part(&self, start: usize) -> usize {
        let next = self.words.iter().skip(start + 1).position(|it| it.before == Gap::Sign);
        next.map_or(self.words.len(), |it| start + 1 + it)
    }

    fn country_of(&self, range: std::ops::Range<usize>) -> Option<Country> {
        let words = &self.words[range];
        match words {
            [one] => Country::from_code(&one.text).or_else(|| Country::from_name(&one.text)),
            [_, _] => Country::from_name(&format!("{}{}", words[0].text, words[1].text)),
            _ => None,
        }
    }

    /// Takes away what a provider writes before a name: `UK:`, `|DE|`, `[VIP]`, `UK `.
    fn take_prefixes(&mut self) {
        while !self.words.is_empty() {
            let end = self.end_of_part(0);
            let is_part = end < self.words.len() || (self.words[0].bracket > 0 && self.is_closed);
            let is_part = is_part && end <= 2 && self.leaves_name(0..end);
            let country = if is_part { self.country_of(0..end) } else { None };
            // Another station could have a single letter.
            let has_name = self.words[end..].iter().any(|it| is_distinctive(&it.text));
            let is_service = |it: &Token| has_name && is_bundle(&it.text);
            let is_remark = |it: &Token| is_remark_word(it) || is_region(&it.text) || is_service(it);
            if let Some(country) = country {
                self.found.country = self.found.country.or(Some(country));
                self.remove(0..end);
            } else if is_part && self.words[..end].iter().all(is_remark) {
                self.remove(0..end);
            } else {
                let first = &self.words[0];
                let is_code = first.is_upper && is_leading_code(&first.text);
                let is_apart = self.words.get(1).is_some_and(|it| it.before >= Gap::Space);
                if is_code && is_apart && self.leaves_name(0..1) {
                    self.found.country = self.found.country.or(Country::from_code(&first.text));
                    self.remove(0..1);
                } else if is_decoration(&first.text) && first.is_upper && is_apart && self.leaves_name(0..1) {
                    self.remove(0..1);
                } else {
                    return;
                }
            }
        }
    }

    /// Takes away a country at the beginning: its name, or its code in capitals, as providers mark their lists. Codes that are
    /// words as well need a name that is not in capitals, a stated quality, or a `#` before them. Returns whether there was one.
    fn take_leading_country(&mut self, lead: Lead) -> bool {
        let Some((country, n)) = self.leading_country(lead).filter(|_| self.found.country.is_none()) else {
            return false;
        };
        let is_apart = self.words.get(n).is_some_and(|it| it.before >= Gap::Space);
        if !is_apart || !self.leaves_name(0..n) {
            return false;
        }
        self.found.country = Some(country);
        self.remove(0..n);
        // What the word hid: `US (P) News`, `DE VIP News`.
        self.take_prefixes();
        true
    }

    /// Returns the country at the beginning, and the number of its words.
    fn leading_country(&self, lead: Lead) -> Option<(Country, usize)> {
        let [first, second, ..] = self.words.as_slice() else { return None };
        // `France Deux` is a station, as `France 2` is.
        let is_station = |n: usize| self.words[n..].iter().all(|it| digits(&it.text).is_some());
        let of_two = Country::from_name(&format!("{}{}", first.text, second.text));
        if let Some(country) = of_two.filter(|_| second.before == Gap::Space && !is_station(2)) {
            return Some((country, 2));
        }
        if let Some(country) = Country::from_name(&first.text).filter(|_| !is_station(1)) {
            return Some((country, 1));
        }
        if !first.is_upper {
            return None;
        }
        let is_shouted =
            self.words[1..].iter().all(|it| it.is_upper || !it.text.chars().any(char::is_alphabetic));
        let is_code = self.has_quality || self.is_marked || first.text == "us";
        let is_word = is_common_word(&first.text) && is_shouted && !is_code && lead != Lead::Always;
        let of_code = Country::from_code(&first.text).filter(|_| !is_word);
        Some((of_code?, 1))
    }

    /// Takes away what follows a name: `(US)`, `| DE`, ` UK`, `Germany`, `(Backup)`.
    fn take_suffixes(&mut self) {
        let mut at = self.words.len();
        while at > 1 {
            let start = (1..at).rev().find(|it| self.words[*it].before == Gap::Sign).unwrap_or(at);
            let is_part = start < at && at - start <= 2 && self.leaves_name(start..at);
            let country = if is_part { self.country_of(start..at) } else { None };
            if let Some(country) = country {
                self.found.country = self.found.country.or(Some(country));
                self.remove(start..at);
            } else if is_part && self.words[start..at].iter().all(is_remark_word) {
                self.remove(start..at);
            } else if !self.take_last_word(at - 1) {
                return;
            }
            at = self.words.len();
        }
    }

    /// Takes the last word away if it is a country or a decoration.
    fn take_last_word(&mut self, at: usize) -> bool {
        let word = &self.words[at];
        let core_is_left =
            self.words[..at].iter().any(|it| it.text.chars().filter(|it| it.is_alphabetic()).count() >= 2);
        if word.before < Gap::Space || !core_is_left {
            return false;
        }
        // In capitals among other words, `US` is not the word.
        let is_shouted =
            || self.words[..at].iter().all(|it| it.is_upper || !it.text.chars().any(char::is_alphabetic));
        let is_word = is_common_word(&word.text) && is_shouted();
        let code = Country::from_code(&word.text).filter(|_| word.is_upper && !is_word);
        let name = Country::from_name(&word.text);
        if let Some(country) = code {
            self.found.country = self.found.country.or(Some(country));
        } else if let Some(country) = name {
            // The name of a country is more exact than the mark of the list that the channel is in.
            self.found.country = Some(country);
            self.found.is_country_in_name = true;
        } else if !(is_decoration(&word.text) && (word.is_upper || word.bracket > 0)) {
            return false;
        }
        self.remove(at..at + 1);
        true
    }
}
