//! Names as they are compared: numbered words, and texts without spaces.

use std::collections::HashMap;

use super::countries::Country;
use super::names::{NormalName, squashed};
use super::scripts::{is_foreign, sound};
use super::vocabulary::Quality;

/// The number of a word.
pub(super) type WordId = u32;

/// All words of the names of guides, with their frequencies.
#[derive(Default)]
pub(super) struct Words {
    ids: HashMap<Box<str>, WordId>,
    texts: Vec<Box<str>>,
    /// In how many names each word occurs.
    counts: Vec<u32>,
}

impl Words {
    pub(super) fn add(&mut self, text: &str) -> WordId {
        let id = match self.ids.get(text) {
            Some(id) => *id,
            None => {
                let id = WordId::try_from(self.texts.len()).unwrap_or(WordId::MAX);
                self.ids.insert(text.into(), id);
                self.texts.push(text.into());
                self.counts.push(0);
                id
            }
        };
        self.counts[id as usize] += 1;
        id
    }

    pub(super) fn id(&self, text: &str) -> Option<WordId> {
        self.ids.get(text).copied()
    }

    pub(super) fn text(&self, id: WordId) -> &str {
        self.texts.get(id as usize).map_or("", |it| it)
    }

    pub(super) fn count(&self, id: WordId) -> u32 {
        self.counts.get(id as usize).copied().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns how much a word says about which channel it is: rare words say more.
    pub(super) fn weight(&self, id: WordId) -> f32 {
        let n = self.texts.len() as f32 + 2.0;
        (n / (self.count(id) as f32 + 1.0)).ln().max(0.2)
    }
}

/// One name.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) words: Box<[WordId]>,
    pub(super) core: Box<[WordId]>,
    /// The words without spaces, as [`squashed`] returns them.
    pub(super) squashed: Box<str>,
    pub(super) core_squashed: Box<str>,
    /// The core without spaces by its sound, if its script allows.
    pub(super) sound: Option<Box<str>>,
    pub(super) is_foreign: bool,
    pub(super) country: Option<Country>,
    pub(super) is_country_in_name: bool,
    pub(super) quality: Quality,
}

impl Form {
    /// `id` returns the number of a word.
    pub(super) fn new(name: &NormalName, mut id: impl FnMut(&str) -> WordId) -> Self {
        let words: Box<[WordId]> = name.words.iter().map(|it| id(it)).collect();
        let core = name.core();
        // The core is a part of the words, so each of its words has a number.
        let core_ids =
            core.iter().filter_map(|it| Some(words[name.words.iter().position(|word| word == it)?]));
        let core_squashed: Box<str> = squashed(core.iter().copied()).into();
        Self {
            core: core_ids.collect(),
            words,
            squashed: squashed(name.words.iter().map(String::as_str)).into(),
            sound: sound(&core_squashed).filter(|it| it.len() > 2).map(Into::into),
            is_foreign: is_foreign(&core_squashed),
            core_squashed,
            country: name.country,
            is_country_in_name: name.is_country_in_name,
            quality: name.quality,
        }
    }

    /// Returns the core in the order of the word numbers.
    pub(super) fn sorted_core(&self) -> Vec<WordId> {
        let mut sorted = self.core.to_vec();
        sorted.sort_unstable();
        sorted
    }
}
