//! How a noun becomes bytes and comes back.

use std::hash::Hasher;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::value::NAME_MAX;
use crate::error::{Error, Result};

/// Most bytes that one record may have. Pictures, guides and archives are files.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// How the records of a collection lie on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionKind {
    /// One value per record: for what people edit, up to some ten thousands.
    Single,
    /// Compressed blocks of a hundred records per owner: for what comes by the hundred thousand.
    Paged,
}

/// A noun that the store keeps.
///
/// On the disk it is MessagePack with field names, so a new field with `#[serde(default)]` reads old records.
/// What that does not cover is a new [`Record::VERSION`] with a step in [`Record::upgrade`].
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Never changes once released.
    const COLLECTION: &'static str;
    const KIND: CollectionKind = CollectionKind::Single;
    /// Whether values are encrypted under the key file. For records that hold passwords or source addresses.
    const SEALED: bool = false;
    /// Whether the store opens without a record of this noun that does not read. It is set aside then, and told by
    /// [`Store::set_aside`](crate::Store::set_aside); its id is never given again. For single records that a house can
    /// do without for a day. Never for what restricts or belongs to somebody: settings, users, what others refer to and
    /// are removed without.
    const MAY_BE_MISSED: bool = false;
    /// The format that is written. Older ones go through [`Record::upgrade`].
    const VERSION: u8 = 1;

    /// Unique in the collection. Given out by [`Write::next_id`](crate::Write::next_id), or fixed.
    fn id(&self) -> u32;

    /// Of a paged collection: whose records lie together, and are replaced together. Ignored otherwise.
    fn owner(&self) -> u64 {
        0
    }

    /// By what else it is found.
    fn keys(&self, _keys: &mut Keys) {}

    /// The bytes of a record of an older version, as the next version writes them.
    fn upgrade(version: u8, _bytes: Vec<u8>) -> Result<Vec<u8>> {
        Err(Error::DamagedRecord(format!("{} has no step from format {version}", Self::COLLECTION)))
    }
}

/// The secondary keys of one record, collected by [`Record::keys`].
#[derive(Debug, Default)]
pub struct Keys {
    pub(crate) all: Vec<Key>,
}

/// The value of one index of one record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) index: &'static str,
    pub(crate) is_unique: bool,
    pub(crate) value: Vec<u8>,
}

impl Keys {
    /// At most one record has this value. For single records only: a noun of a paged collection that names one is
    /// refused with its first record, because nobody looks through half a million others at every one of an import.
    pub fn unique(&mut self, index: &'static str, value: impl AsRef<[u8]>) {
        self.all.push(Key { index, is_unique: true, value: value.as_ref().to_vec() });
    }

    /// Any number of records have this value.
    pub fn plain(&mut self, index: &'static str, value: impl AsRef<[u8]>) {
        self.all.push(Key { index, is_unique: false, value: value.as_ref().to_vec() });
    }

    /// The keys of a record that is to be written.
    pub(crate) fn checked<T: Record>(record: &T) -> Result<Vec<Key>> {
        let keys = Self::of(record);
        match keys.iter().find(|it| it.is_unique && T::KIND == CollectionKind::Paged) {
            Some(key) => Err(Error::NotUnique { collection: T::COLLECTION, index: key.index }),
            None => Ok(keys),
        }
    }

    pub(crate) fn of<T: Record>(record: &T) -> Vec<Key> {
        let mut keys = Self::default();
        record.keys(&mut keys);
        keys.all
    }
}

/// Where an index looks for a value. Different values may meet here; whoever looks compares the record itself.
pub(crate) fn hash(index: &str, value: &[u8]) -> u64 {
    // SipHash with fixed keys. What collides on purpose costs a comparison and nothing else.
    #[expect(deprecated, reason = "the one hasher of the standard library whose keys are fixed")]
    let mut hasher = std::hash::SipHasher::new();
    hasher.write(index.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(value);
    hasher.finish()
}

/// One number for a list of blocks and the commits that wrote them. Different lists have different numbers but for
/// bad luck of one in many billions; it guards no secret.
pub(crate) fn fingerprint(blocks: impl Iterator<Item = (u32, u64)>) -> u64 {
    #[expect(deprecated, reason = "the one hasher of the standard library whose keys are fixed")]
    let mut hasher = std::hash::SipHasher::new();
    for (number, commit) in blocks {
        hasher.write_u32(number);
        hasher.write_u64(commit);
    }
    hasher.finish()
}

pub(crate) fn encode<T: Record>(record: &T) -> Result<Vec<u8>> {
    let mut bytes = vec![T::VERSION];
    rmp_serde::encode::write_named(&mut bytes, record)
        .map_err(|cause| Error::Encode { collection: T::COLLECTION, cause: cause.to_string() })?;
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(Error::TooLarge { what: "a record", size: bytes.len(), max: RECORD_BYTES_MAX });
    }
    Ok(bytes)
}

/// Reads a record of this or of any older version. Never panics, whatever the bytes are.
pub fn decode<T: Record>(bytes: &[u8]) -> Result<T> {
    let (&found, body) =
        bytes.split_first().ok_or_else(|| Error::DamagedRecord(format!("{} is empty", T::COLLECTION)))?;
    if found > T::VERSION {
        return Err(Error::TooNew { found, known: T::VERSION });
    }
    let upgraded;
    let mut body = body;
    if found < T::VERSION {
        let mut bytes = body.to_vec();
        for version in found..T::VERSION {
            bytes = T::upgrade(version, bytes)?;
        }
        upgraded = bytes;
        body = &upgraded;
    }
    rmp_serde::from_slice(body)
        .map_err(|cause| Error::DamagedRecord(format!("{} does not read: {cause}", T::COLLECTION)))
}

/// What the store knows of a noun without knowing its type.
#[derive(Clone, Copy)]
pub(crate) struct Noun {
    pub(crate) name: &'static str,
    pub(crate) kind: CollectionKind,
    pub(crate) is_sealed: bool,
    pub(crate) may_be_missed: bool,
    pub(crate) read: fn(&[u8]) -> Result<Facts>,
}

/// Id, owner and keys of an encoded record.
pub(crate) type Facts = (u32, u64, Vec<Key>);

impl Noun {
    pub(crate) fn of<T: Record>() -> Self {
        Self {
            name: T::COLLECTION,
            kind: T::KIND,
            is_sealed: T::SEALED,
            may_be_missed: T::MAY_BE_MISSED,
            read: |bytes| {
                let record: T = decode(bytes)?;
                Ok((record.id(), record.owner(), Keys::of(&record)))
            },
        }
    }
}

/// The nouns that a store keeps. A collection on the disk that is not named here is an error, never dropped.
#[derive(Clone, Default)]
pub struct Schema {
    pub(crate) nouns: Vec<Noun>,
}

impl Schema {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a noun.
    ///
    /// # Panics
    /// When two nouns have one name, or a name is not between 1 and 32 lower-case letters, digits or `_`.
    pub fn with<T: Record>(mut self) -> Self {
        let name = T::COLLECTION;
        let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
        assert!(
            (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain),
            "{name:?} is no collection name"
        );
        assert!(self.nouns.iter().all(|it| it.name != name), "two nouns are called {name}");
        self.nouns.push(Noun::of::<T>());
        self
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.nouns.iter().position(|it| it.name == name)
    }

    pub(crate) fn number<T: Record>(&self) -> usize {
        self.position(T::COLLECTION).expect("every noun is named in the schema the store was opened with")
    }
}
