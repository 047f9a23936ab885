//! Encoding of keys and values in sled.
//!
//! A key consists of a letter for its type, the collection, the id, and a *version*: usually 0 for values of small
//! commits (their commit number while older versions are not swept yet), the number of the stage for values of large
//! ones. The highest version is the current one.
//!
//! A value identifies itself and can be verified even outside of its database: it consists of magic, checksum, length,
//! the commit that wrote it, its key, and the payload.

use std::fmt;

use crate::error::{Error, Result};
use crate::record::NAME_MAX;

pub(crate) const MAGIC: [u8; 4] = [0xd7, b'H', b'w', 0x91];
/// Format of the envelope and of the keys. The payload of a record has a version of its own.
pub(crate) const FORMAT: u8 = 1;
/// Maximum size of a key, in bytes: the key of a piece of a block that was set aside.
const KEY_MAX: usize = 1 + 1 + (1 + NAME_MAX + 1 + 8 + 4 + 8) + 2;
/// First letter of the keys of pieces.
pub(crate) const PIECE_LETTER: u8 = b'q';
/// Size of the fields before the key, in bytes.
const HEAD: usize = 4 + 4 + 4 + 1 + 1 + 8 + 1;

/// Returns whether the value of a key is a record or a block of records.
pub(crate) fn is_of_records(key: &[u8]) -> bool {
    matches!(key.first(), Some(b'p' | b'r'))
}

/// A parsed key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum DiskKey {
    /// The next id of a collection.
    Counter(String),
    /// The number of the last commit, the format of the store, and a proof of its key file.
    Meta,
    /// A block of records of a paged collection.
    Block { collection: String, owner: u64, block: u32, version: u64 },
    /// A piece of a long value; see [`pieces`](crate::engine::pieces).
    Piece { of: Box<DiskKey>, number: u16 },
    /// One record of a single collection.
    Single { collection: String, id: u32, version: u64 },
    /// The mark of a staged commit that is not complete; complete if the value is a tombstone.
    Stage(u64),
    /// A record or block that could not be decoded when the store opened: its original bytes.
    SetAside(Box<DiskKey>),
}

/// Names the record or block in messages.
impl fmt::Display for DiskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(collection) => write!(f, "the id counter of {collection}"),
            Self::Meta => f.write_str("the number of the last commit"),
            Self::Block { collection, owner, block, .. } => {
                write!(f, "block {block} of {collection} of owner {owner}")
            }
            Self::Piece { of, number } => write!(f, "piece {number} of {of}"),
            Self::Single { collection, id, .. } => write!(f, "record {id} of {collection}"),
            Self::Stage(number) => write!(f, "the mark of stage {number}"),
            Self::SetAside(disk_key) => write!(f, "{disk_key} (set aside)"),
        }
    }
}

impl DiskKey {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(40);
        let name = |key: &mut Vec<u8>, letter: u8, name: &str| {
            key.push(letter);
            key.extend_from_slice(name.as_bytes());
            key.push(0);
        };
        match self {
            Self::Counter(collection) => name(&mut key, b'c', collection),
            Self::Meta => key.push(b'm'),
            Self::Block { collection, owner, block, version } => {
                name(&mut key, b'p', collection);
                key.extend_from_slice(&owner.to_be_bytes());
                key.extend_from_slice(&block.to_be_bytes());
                key.extend_from_slice(&version.to_be_bytes());
            }
            Self::Piece { of, number } => {
                key.push(PIECE_LETTER);
                key.extend_from_slice(&of.encode());
                key.extend_from_slice(&number.to_be_bytes());
            }
            Self::Single { collection, id, version } => {
                name(&mut key, b'r', collection);
                key.extend_from_slice(&id.to_be_bytes());
                key.extend_from_slice(&version.to_be_bytes());
            }
            Self::SetAside(disk_key) => {
                key.push(b'a');
                key.extend_from_slice(&disk_key.encode());
            }
            // The last letter: the values of a stage are swept before its mark.
            Self::Stage(number) => {
                key.push(b's');
                key.extend_from_slice(&number.to_be_bytes());
            }
        }
        key
    }

    pub(crate) fn parse(key: &[u8]) -> Option<Self> {
        // Valid keys are not longer. Also bounds the recursion.
        if key.len() > KEY_MAX {
            return None;
        }
        let (&letter, rest) = key.split_first()?;
        let named = || {
            let end = rest.iter().position(|it| *it == 0).filter(|end| (1..=NAME_MAX).contains(end))?;
            Some((std::str::from_utf8(&rest[..end]).ok()?.to_owned(), &rest[end + 1..]))
        };
        Some(match letter {
            b'a' => {
                let is_of_records = |it: &Self| matches!(it, Self::Single { .. } | Self::Block { .. });
                Self::SetAside(Box::new(Self::parse(rest).filter(is_of_records)?))
            }
            b'c' => Self::Counter(named().filter(|(_, rest)| rest.is_empty())?.0),
            b'm' if rest.is_empty() => Self::Meta,
            b'p' => {
                let (collection, rest) = named()?;
                let (owner, rest) = rest.split_first_chunk()?;
                let (block, version) = rest.split_first_chunk()?;
                Self::Block {
                    collection,
                    owner: u64::from_be_bytes(*owner),
                    block: u32::from_be_bytes(*block),
                    version: u64::from_be_bytes(version.try_into().ok()?),
                }
            }
            PIECE_LETTER => {
                let (of, number) = rest.split_last_chunk()?;
                let of = Self::parse(of).filter(|it| {
                    matches!(it, Self::Block { .. } | Self::Single { .. } | Self::SetAside(_))
                })?;
                Self::Piece { of: Box::new(of), number: u16::from_be_bytes(*number) }
            }
            b'r' => {
                let (collection, rest) = named()?;
                let (id, version) = rest.split_first_chunk()?;
                Self::Single {
                    collection,
                    id: u32::from_be_bytes(*id),
                    version: u64::from_be_bytes(version.try_into().ok()?),
                }
            }
            b's' => Self::Stage(u64::from_be_bytes(rest.try_into().ok()?)),
            _ => return None,
        })
    }

    pub(crate) fn version(&self) -> u64 {
        match self {
            Self::Block { version, .. } | Self::Single { version, .. } => *version,
            _ => 0,
        }
    }

    /// Returns the key without its version, which all versions of a record or block share.
    pub(crate) fn stem(&self) -> Vec<u8> {
        let mut key = self.encode();
        if matches!(self, Self::Block { .. } | Self::Single { .. }) {
            key.truncate(key.len() - 8);
        }
        key
    }
}

/// A decoded value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) key: Vec<u8>,
    /// The commit that wrote it.
    pub(crate) commit: u64,
    /// Marks a deleted record, block or stage. Written by or after staged commits only, and swept later.
    pub(crate) is_tombstone: bool,
    /// The value is in pieces; the payload is its length. Seen by [`pieces`](crate::engine::pieces) only.
    pub(crate) is_split: bool,
    pub(crate) payload: Vec<u8>,
}

impl Value {
    pub(crate) fn new(key: Vec<u8>, commit: u64, payload: Vec<u8>) -> Self {
        Self { key, commit, is_tombstone: false, is_split: false, payload }
    }

    pub(crate) fn tombstone(key: Vec<u8>, commit: u64) -> Self {
        Self { is_tombstone: true, ..Self::new(key, commit, Vec::new()) }
    }

    /// Returns the location of this value once it is written under this version.
    pub(crate) fn location(&self, version: u64) -> Location {
        Location::new(version, self.commit, &self.key, HEAD + self.key.len() + self.payload.len())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let length = HEAD + self.key.len() + self.payload.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&u32::try_from(length).expect("records have at most 1 MiB").to_be_bytes());
        bytes.push(FORMAT);
        bytes.push(u8::from(self.is_tombstone) | u8::from(self.is_split) << 1);
        bytes.extend_from_slice(&self.commit.to_be_bytes());
        bytes.push(u8::try_from(self.key.len()).expect("collection names are short"));
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.payload);
        let checksum = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Decodes and verifies the value at the beginning of `bytes`. Ignores trailing bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &str| Error::DamagedRecord(what.to_owned());
        if bytes.len() < HEAD || bytes[..4] != MAGIC {
            return Err(damaged("wrong magic number"));
        }
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (checksum, length) = (word(4), word(8) as usize);
        let (format, flags) = (bytes[12], bytes[13]);
        let key_end = HEAD + usize::from(bytes[22]);
        if length > bytes.len() || key_end > length {
            return Err(damaged("truncated"));
        }
        if crc32fast::hash(&bytes[8..length]) != checksum {
            return Err(damaged("wrong checksum"));
        }
        if format > FORMAT {
            return Err(Error::TooNew { found: format, known: FORMAT });
        }
        let mut commit = [0; 8];
        commit.copy_from_slice(&bytes[14..22]);
        Ok(Self {
            key: bytes[HEAD..key_end].to_vec(),
            commit: u64::from_be_bytes(commit),
            is_tombstone: flags & 1 == 1,
            is_split: flags & 2 == 2,
            payload: bytes[key_end..length].to_vec(),
        })
    }

    /// Decodes the value stored under a key. An intact value under another key is damage too.
    pub(crate) fn decode_at(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let value = Self::decode(bytes)?;
        if value.key != key {
            return Err(Error::DamagedRecord("stored under the wrong key".to_owned()));
        }
        if value.is_split {
            return Err(Error::DamagedRecord("a piece of it is missing".to_owned()));
        }
        Ok(value)
    }
}

/// The location of one record or block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) version: u64,
    /// The commit that wrote it. Identifies the content for the cache and for stamps.
    pub(crate) commit: u64,
    /// Size of key and value on the disk, in bytes.
    pub(crate) bytes: u32,
}

impl Location {
    pub(crate) fn new(version: u64, commit: u64, key: &[u8], value_bytes: usize) -> Self {
        // Larger values are refused long before.
        let bytes = u32::try_from(key.len() + value_bytes).unwrap_or(u32::MAX);
        Self { version, commit, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk_keys() -> Vec<DiskKey> {
        let collection = || "streams".to_owned();
        vec![
            DiskKey::SetAside(Box::new(DiskKey::Single { collection: collection(), id: 5, version: 0 })),
            DiskKey::Counter(collection()),
            DiskKey::Meta,
            DiskKey::Block { collection: collection(), owner: 7, block: 3, version: 9 },
            DiskKey::Piece {
                of: Box::new(DiskKey::Block {
                    collection: "x".repeat(NAME_MAX),
                    owner: 7,
                    block: 3,
                    version: 9,
                }),
                number: 2,
            },
            DiskKey::Single { collection: collection(), id: 5, version: 0 },
            DiskKey::Stage(11),
        ]
    }

    #[test]
    fn a_key_parses_back_and_keys_sort_by_type_owner_and_version() {
        let keys: Vec<_> = disk_keys().iter().map(DiskKey::encode).collect();
        assert!(keys.is_sorted());
        for (disk_key, key) in disk_keys().iter().zip(&keys) {
            assert_eq!(DiskKey::parse(key).as_ref(), Some(disk_key));
        }
        for junk in [
            &b""[..],
            b"x",
            b"r",
            b"a",
            b"am",
            b"aam",
            b"rname",
            b"rname\0",
            &[b'c'; 300],
            b"c\0",
            b"rname\0\0\0\0\x01",
            b"s\0",
            b"qm\0\0",
            b"qqr\0\0\0\0",
            b"mm",
        ] {
            assert_eq!(DiskKey::parse(junk), None, "{junk:?}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_value_is_detected() {
        let value = Value::new(disk_keys()[5].encode(), 12, b"some record".to_vec());
        let bytes = value.encode();
        assert_eq!(Value::decode_at(&value.key, &bytes).unwrap(), value);
        for length in 0..bytes.len() {
            assert!(Value::decode(&bytes[..length]).is_err(), "cut to {length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Value::decode(&flipped).is_err(), "bit {bit}");
        }
        assert!(Value::decode_at(&disk_keys()[6].encode(), &bytes).is_err());
    }
}
