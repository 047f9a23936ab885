//! Up to a hundred records in one compressed value.
//!
//! Layout: count (2 bytes), ids (4 bytes each), decompressed length of the rest (4 bytes), and as a deflate stream: each
//! record after its length (4 bytes). All numbers are big-endian. The ids can be read without decompression.

use std::io::{Read, Write as _};

use crate::error::{Error, Result};

/// Maximum number of records in a block.
pub(crate) const RECORDS_MAX: usize = 100;
/// A block accepts no further record that would bring it above this many bytes.
pub(crate) const BYTES_MAX: usize = 256 * 1024;
/// Maximum decompressed size of a block, in bytes. Bounds the memory that a damaged length can cause.
const INFLATED_MAX: usize = 8 * 1024 * 1024;

/// The encoded records of a block, in the order in which they were put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) records: Vec<(u32, Vec<u8>)>,
}

impl Block {
    pub(crate) fn bytes(&self) -> usize {
        self.records.iter().map(|(_, bytes)| bytes.len() + 8).sum()
    }

    /// Returns whether one more record of this size fits.
    pub(crate) fn has_room_for(&self, n_bytes: usize) -> bool {
        self.records.is_empty() || (self.records.len() < RECORDS_MAX && self.bytes() + n_bytes <= BYTES_MAX)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&[u8]> {
        self.records.iter().find(|it| it.0 == id).map(|it| &*it.1)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let word = |number: usize| u32::try_from(number).expect("a block has at most some MiB").to_be_bytes();
        let mut inside = Vec::with_capacity(self.bytes());
        for (_, record) in &self.records {
            inside.extend_from_slice(&word(record.len()));
            inside.extend_from_slice(record);
        }
        let n = u16::try_from(self.records.len()).expect("a block has at most a hundred records");
        let mut bytes = n.to_be_bytes().to_vec();
        for (id, _) in &self.records {
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        bytes.extend_from_slice(&word(inside.len()));
        let mut encoder = flate2::write::DeflateEncoder::new(bytes, flate2::Compression::new(1));
        encoder.write_all(&inside).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
    }

    /// Never panics and never allocates more than a valid block needs, whatever the bytes are.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        parse(bytes).ok_or_else(|| Error::DamagedRecord("invalid block".to_owned()))
    }
}

fn parse(bytes: &[u8]) -> Option<Block> {
    let (n, rest) = bytes.split_first_chunk::<2>()?;
    let n = usize::from(u16::from_be_bytes(*n));
    let (ids, rest) = rest.split_at_checked(4 * n)?;
    let (length, deflated) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|it| *it <= INFLATED_MAX)?;
    let mut inside = Vec::with_capacity(length);
    flate2::read::DeflateDecoder::new(deflated).take(length as u64 + 1).read_to_end(&mut inside).ok()?;
    if inside.len() != length {
        return None;
    }
    let mut records = Vec::with_capacity(n);
    let mut rest = &*inside;
    for id in ids.chunks_exact(4) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (record, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        records.push((u32::from_be_bytes([id[0], id[1], id[2], id[3]]), record.to_vec()));
        rest = after;
    }
    rest.is_empty().then_some(Block { records })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_block_decodes_to_the_same_records(records in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..50)), 0..100)) {
            let block = Block { records };
            prop_assert_eq!(Block::decode(&block.encode()).unwrap(), block);
        }

        #[test]
        fn decoding_a_block_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Block::decode(&bytes);
        }
    }

    #[test]
    fn a_block_with_a_huge_length_is_refused_without_allocating() {
        let mut bytes = vec![0, 0];
        bytes.extend_from_slice(&u32::MAX.to_be_bytes());
        assert!(Block::decode(&bytes).is_err());
    }
}
