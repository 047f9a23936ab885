//! Finds the programmes with a word in the search index of a guide file.

use super::bitmap::Bitmap;
use super::bytes::ByteReader;
use super::file::GuideFile;
use super::query::GuideField;
use crate::error::Result;

/// An entry of a block of words.
pub(crate) struct WordEntry<'a> {
    /// The number of the field, followed by the word.
    pub(crate) key: &'a [u8],
    first: u32,
    differences: &'a [u8],
}

impl WordEntry<'_> {
    /// Adds the programmes to a set.
    pub(crate) fn add_to(&self, set: &mut impl FnMut(u32) -> bool) -> Option<()> {
        let mut number = self.first;
        let mut input = ByteReader(self.differences);
        loop {
            if !set(number) {
                return None;
            }
            if input.is_empty() {
                return Some(());
            }
            number = number.checked_add(input.varint()?)?;
        }
    }
}

/// Calls `visit` with the entries of a block until it returns false. Returns whether it never did, or `None` if the block
/// is invalid.
pub(crate) fn read_entries<'a>(
    block: &'a [u8],
    mut visit: impl FnMut(&WordEntry<'a>) -> Option<bool>,
) -> Option<bool> {
    let mut input = ByteReader(block);
    while !input.is_empty() {
        let n_key = input.byte()?;
        let key = input.bytes(n_key.into())?;
        let first = input.varint()?;
        let n_differences = input.varint()?;
        let differences = input.bytes(n_differences as usize)?;
        if !visit(&WordEntry { key, first, differences })? {
            return Some(false);
        }
    }
    Some(true)
}

impl GuideFile {
    /// Returns the programmes that have, in this field, a word that begins with this one, or with `is_whole` this word
    /// itself.
    pub(super) fn with_word(&self, field: GuideField, word: &str, is_whole: bool) -> Result<Bitmap> {
        let mut found = Bitmap::empty(self.n_programmes);
        let wanted = [&[field.number()], word.as_bytes()].concat();
        let blocks = &self.tables.words;
        // The block before the first one that begins with the word or a later one may end with it.
        let begin = blocks.partition_point(|it| *it.first < *wanted).saturating_sub(1);
        for block in &blocks[begin..] {
            let bytes = self.block(block.offset, block.n_bytes)?;
            let goes_on = read_entries(&bytes, |entry| {
                let is_found = match is_whole {
                    true => entry.key == wanted,
                    false => entry.key.starts_with(&wanted),
                };
                if is_found {
                    entry.add_to(&mut |it| found.insert(it))?;
                }
                Some(is_found || *entry.key < *wanted)
            });
            if !self.valid(goes_on, "a block of words is invalid")? {
                break;
            }
        }
        Ok(found)
    }
}
