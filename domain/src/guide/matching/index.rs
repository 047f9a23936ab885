//! Finds the names of guides that resemble a name, without comparing it with all of them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::form::{Form, WordId, Words};

/// Names that are compared because they are the same in one respect. More of them are refused as a tie.
pub(super) const SAME_MAX: usize = 1_000;
/// Names that are compared because they share rare words.
const SHARED_MAX: usize = 400;
/// A word in more names than this does not lead to candidates.
const COMMON_WORD_MIN: u32 = 2_000;
/// Rare words of a name that lead to candidates.
const RARE_WORDS: usize = 3;
/// Words of guides that may be meant by a word that no guide has.
const MEANT_WORDS_MAX: usize = 16;

/// The respects in which names are the same.
#[derive(Hash)]
enum Same {
    Letters,
    Order,
    Sound,
}

/// All names of all guides, and where they are found.
#[derive(Default)]
pub(super) struct NameIndex {
    pub(super) words: Words,
    /// Names, each with the position of its guide channel.
    pub(super) forms: Vec<(u32, Form)>,
    same: HashMap<u64, Vec<u32>>,
    /// The names that have a word, in order.
    with_word: Vec<Vec<u32>>,
    /// Words by their forms without one letter.
    shortened: HashMap<u64, Vec<WordId>>,
}

/// Names to compare.
pub(super) struct Found {
    /// Positions in [`NameIndex::forms`], in order.
    pub(super) forms: Vec<u32>,
    /// Whether too many names are the same to compare them.
    pub(super) is_too_common: bool,
}

impl NameIndex {
    pub(super) fn add(&mut self, guide: u32, name: &super::names::NormalName) {
        let form = Form::new(name, |it| self.words.add(it));
        let at = u32::try_from(self.forms.len()).unwrap_or(u32::MAX);
        for key in keys(&form) {
            let forms = self.same.entry(key).or_default();
            // One more than the maximum shows that there are too many.
            if forms.len() <= SAME_MAX && forms.last() != Some(&at) {
                forms.push(at);
            }
        }
        self.with_word.resize_with(self.words.len(), Vec::new);
        for word in &form.core {
            let forms = &mut self.with_word[*word as usize];
            if forms.len() <= COMMON_WORD_MIN as usize && forms.last() != Some(&at) {
                forms.push(at);
            }
        }
        self.forms.push((guide, form));
    }

    /// Completes the index after the last name.
    pub(super) fn finish(&mut self) {
        for id in 0..self.words.len() as WordId {
            for variant in without_one_letter(self.words.text(id)) {
                let words = self.shortened.entry(variant).or_default();
                if words.len() < MEANT_WORDS_MAX {
                    words.push(id);
                }
            }
        }
    }

    /// Returns the names that are the same in one respect.
    pub(super) fn same(&self, form: &Form) -> Found {
        let mut forms = Vec::new();
        let mut is_too_common = false;
        for key in keys(form) {
            let of_key = self.same.get(&key).map_or(&[][..], Vec::as_slice);
            is_too_common |= of_key.len() > SAME_MAX;
            forms.extend_from_slice(of_key);
        }
        forms.sort_unstable();
        forms.dedup();
        Found { forms, is_too_common }
    }

    /// Returns names that share rare words with a name, or words that differ in one letter. `text` returns its words.
    pub(super) fn alike<'a>(&self, form: &Form, text: impl Fn(WordId) -> &'a str) -> Vec<u32> {
        let mut words: Vec<WordId> = Vec::new();
        for word in &form.core {
            match self.words.count(*word) {
                0 => words.extend(self.meant(text(*word))),
                n if n <= COMMON_WORD_MIN => words.push(*word),
                _ => {}
            }
        }
        words.sort_unstable_by_key(|it| (self.words.count(*it), *it));
        words.dedup();
        let mut forms = Vec::new();
        for word in words.into_iter().take(RARE_WORDS) {
            let left = SHARED_MAX.saturating_sub(forms.len());
            let of_word = self.with_word.get(word as usize).map_or(&[][..], Vec::as_slice);
            forms.extend(of_word.iter().take(left));
        }
        forms.sort_unstable();
        forms.dedup();
        forms
    }

    /// Returns the words of guides that differ from a word in one letter.
    fn meant(&self, word: &str) -> Vec<WordId> {
        let variants = without_one_letter(word);
        let mut words: Vec<WordId> =
            variants.filter_map(|it| self.shortened.get(&it)).flatten().copied().collect();
        words.sort_unstable();
        words.dedup();
        words.truncate(MEANT_WORDS_MAX);
        words
    }
}

/// Returns the keys under which a name is found.
fn keys(form: &Form) -> impl Iterator<Item = u64> {
    let keys = [
        Some(hash(&(Same::Letters, &form.squashed))),
        (form.core_squashed != form.squashed).then(|| hash(&(Same::Letters, &form.core_squashed))),
        (form.core.len() > 1).then(|| hash(&(Same::Order, form.sorted_core()))),
        form.sound.as_ref().map(|it| hash(&(Same::Sound, it))),
    ];
    keys.into_iter().flatten()
}

/// Words with fewer letters are never taken for others.
const LETTERS_MIN: usize = 8;

/// Returns a long word and its forms without one letter, as numbers. Numbers have no such forms.
fn without_one_letter(word: &str) -> impl Iterator<Item = u64> + '_ {
    let is_long = word.chars().count() + 1 >= LETTERS_MIN && !word.chars().any(char::is_numeric);
    let ends = word.char_indices().map(|(at, it)| (at, at + it.len_utf8()));
    let forms = ends.map(move |(start, end)| hash(&[&word[..start], &word[end..]].concat()));
    std::iter::once(hash(&word.to_owned())).chain(forms).filter(move |_| is_long)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
