//! Keys and values as they lie in sled.
//!
//! A key is a letter for its sort, the collection, the id, and a *version*: 0 for what a small commit made, the
//! number of the staged commit for what a large one made. Of several versions the highest counts.
//!
//! A value carries everything needed to tell whether it is whole and what it is, even torn out of its database:
//! magic, checksum, length, the commit that wrote it, its key, and the payload.

use crate::engine::state::At;
use crate::error::{Error, Result};

pub(crate) const MAGIC: [u8; 4] = [0xd7, b'H', b'w', 0x91];
/// Of the envelope and of the layout of keys. The payload of a record has a version of its own.
pub(crate) const FORMAT: u8 = 1;
/// Most bytes in the name of a collection.
pub(crate) const NAME_MAX: usize = 32;
/// Most bytes in a key: that of a block.
const KEY_MAX: usize = 1 + NAME_MAX + 1 + 8 + 4 + 8;
const HEAD: usize = 4 + 4 + 4 + 1 + 1 + 8 + 1;

/// A key, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// The next id of a collection.
    Counter(String),
    /// The number of the last commit, and what is known of the store as a whole.
    Meta,
    /// Records of a paged collection.
    Block { collection: String, owner: u64, block: u32, version: u64 },
    /// One record.
    Single { collection: String, id: u32, version: u64 },
    /// A staged commit that has not landed, or has if the value says that it is gone.
    Stage(u64),
    /// What did not read at open and was put out of the way: its bytes as they were found.
    Aside(Box<Place>),
}

impl Place {
    pub(crate) fn key(&self) -> Vec<u8> {
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
            Self::Single { collection, id, version } => {
                name(&mut key, b'r', collection);
                key.extend_from_slice(&id.to_be_bytes());
                key.extend_from_slice(&version.to_be_bytes());
            }
            Self::Aside(place) => {
                key.push(b'a');
                key.extend_from_slice(&place.key());
            }
            // Last of all letters: what belongs to a stage is swept before its mark is.
            Self::Stage(number) => {
                key.push(b's');
                key.extend_from_slice(&number.to_be_bytes());
            }
        }
        key
    }

    pub(crate) fn parse(key: &[u8]) -> Option<Self> {
        // No key of ours is longer, and nothing nests deeply.
        if key.len() > KEY_MAX {
            return None;
        }
        let (&letter, rest) = key.split_first()?;
        let named = || {
            let end = rest.iter().position(|it| *it == 0).filter(|end| (1..=NAME_MAX).contains(end))?;
            Some((std::str::from_utf8(&rest[..end]).ok()?.to_owned(), &rest[end + 1..]))
        };
        Some(match letter {
            b'a' => Self::Aside(Box::new(Self::parse(rest).filter(|it| matches!(it, Self::Single { .. }))?)),
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

    /// The key without its version: what the versions of one thing have in common.
    pub(crate) fn stem(&self) -> Vec<u8> {
        let mut key = self.key();
        if matches!(self, Self::Block { .. } | Self::Single { .. }) {
            key.truncate(key.len() - 8);
        }
        key
    }
}

/// What a value holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) key: Vec<u8>,
    /// The commit that wrote it.
    pub(crate) commit: u64,
    /// Says that the thing is gone; around staged commits only, and swept after they landed.
    pub(crate) is_gone: bool,
    pub(crate) payload: Vec<u8>,
}

impl Value {
    /// Where it lies and what it takes, once it is there.
    pub(crate) fn at(&self, version: u64) -> At {
        At::new(version, self.commit, &self.key, HEAD + self.key.len() + self.payload.len())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let length = HEAD + self.key.len() + self.payload.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&u32::try_from(length).expect("records have at most a MiB").to_be_bytes());
        bytes.push(FORMAT);
        bytes.push(u8::from(self.is_gone));
        bytes.extend_from_slice(&self.commit.to_be_bytes());
        bytes.push(u8::try_from(self.key.len()).expect("collection names are short"));
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.payload);
        let checksum = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Reads the value at the beginning of `bytes`, and checks it. What follows it is ignored.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &str| Error::DamagedRecord(what.to_owned());
        if bytes.len() < HEAD || bytes[..4] != MAGIC {
            return Err(damaged("its head is not ours"));
        }
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (checksum, length) = (word(4), word(8) as usize);
        let (format, flags) = (bytes[12], bytes[13]);
        let key_end = HEAD + usize::from(bytes[22]);
        if length > bytes.len() || key_end > length {
            return Err(damaged("it is shorter than it says"));
        }
        if crc32fast::hash(&bytes[8..length]) != checksum {
            return Err(damaged("its checksum does not fit"));
        }
        if format > FORMAT {
            return Err(Error::TooNew { found: format, known: FORMAT });
        }
        let mut commit = [0; 8];
        commit.copy_from_slice(&bytes[14..22]);
        Ok(Self {
            key: bytes[HEAD..key_end].to_vec(),
            commit: u64::from_be_bytes(commit),
            is_gone: flags & 1 == 1,
            payload: bytes[key_end..length].to_vec(),
        })
    }

    /// The same, of a value that was found under a key: a whole value in a wrong place is damage too.
    pub(crate) fn of_key(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let value = Self::decode(bytes)?;
        if value.key != key {
            return Err(Error::DamagedRecord("it lies where another belongs".to_owned()));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<Place> {
        let collection = || "streams".to_owned();
        vec![
            Place::Aside(Box::new(Place::Single { collection: collection(), id: 5, version: 0 })),
            Place::Counter(collection()),
            Place::Meta,
            Place::Block { collection: collection(), owner: 7, block: 3, version: 9 },
            Place::Single { collection: collection(), id: 5, version: 0 },
            Place::Stage(11),
        ]
    }

    #[test]
    fn a_key_says_what_it_is_and_sorts_by_sort_owner_and_version() {
        let keys: Vec<_> = places().iter().map(Place::key).collect();
        assert!(keys.is_sorted());
        for (place, key) in places().iter().zip(&keys) {
            assert_eq!(Place::parse(key).as_ref(), Some(place));
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
            b"mm",
        ] {
            assert_eq!(Place::parse(junk), None, "{junk:?}");
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_of_a_value_goes_unnoticed() {
        let value =
            Value { key: places()[4].key(), commit: 12, is_gone: false, payload: b"some record".to_vec() };
        let bytes = value.encode();
        assert_eq!(Value::of_key(&value.key, &bytes).unwrap(), value);
        for length in 0..bytes.len() {
            assert!(Value::decode(&bytes[..length]).is_err(), "cut to {length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Value::decode(&flipped).is_err(), "bit {bit}");
        }
        assert!(Value::of_key(&places()[5].key(), &bytes).is_err());
    }
}
