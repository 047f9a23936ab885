//! Record types: encoding, index keys, and the schema of a store.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::Hasher;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encoding;
use crate::error::{Error, Result};

/// Maximum length of a collection name, in bytes.
pub(crate) const NAME_MAX: usize = 32;

/// Maximum size of one encoded record. Larger data, such as pictures, guides and archives, belongs in files.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// Storage layout of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionKind {
    /// One value per record: for records that users edit, up to some ten thousands.
    Single,
    /// Compressed blocks of up to a hundred records of one owner: for hundreds of thousands of imported records.
    Paged,
}

/// The nodes of a cluster that hold the records of a collection. Without a cluster it has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Each node has records of its own, which are in no log and in no snapshot.
    Local,
    /// All nodes; encrypted with the cluster key.
    AllNodes,
    /// Full nodes only; encrypted with the provider key. For records with secrets of providers, and for those that only
    /// the jobs of full nodes need.
    FullNodes,
}

/// A type that the store can hold.
///
/// The encoding is MessagePack with field names, so a new field with `#[serde(default)]` still decodes old records.
/// Other changes need a new [`Record::VERSION`] and a step in [`Record::upgrade`].
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the collection. Must not change once released.
    const COLLECTION: &'static str;
    /// The nodes of a cluster that hold the records. Each type states it, so that none is shared or kept back by accident.
    const SHARING: Sharing;
    const KIND: CollectionKind = CollectionKind::Single;
    /// Whether records are encrypted with the key file. For records with passwords or source addresses.
    const SEALED: bool = false;
    /// Whether earlier versions wrote records of this type unencrypted. Such a record is still read, and encrypted when
    /// the store opens.
    const WAS_PLAIN: bool = false;
    /// Whether the store opens although a record of this type is damaged. The damaged record, or its whole block, is set
    /// aside and listed by [`Store::set_aside`](crate::Store::set_aside); its id is never used again. For records whose
    /// temporary absence does no harm, or that are fetched again. Not for records that restrict or belong to users, nor
    /// for records whose absence removes others: settings, users, accounts.
    const MAY_BE_MISSED: bool = false;
    /// Whether a record of this type grants access. If it cannot be read after a commit, tables leave it out until it can,
    /// instead of keeping its earlier content.
    const GRANTS_ACCESS: bool = false;
    /// Version of the encoding that is written. Older versions go through [`Record::upgrade`].
    const VERSION: u8 = 1;

    /// Returns the id, unique in the collection: from [`Write::next_id`](crate::Write::next_id), or fixed.
    fn id(&self) -> u32;

    /// Returns whether the damaged records of this owner [may be missed](Record::MAY_BE_MISSED). Paged collections only.
    fn may_be_missed(_owner: u64) -> bool {
        Self::MAY_BE_MISSED
    }

    /// Returns the owner: the records of one owner are stored and replaced together. Paged collections only.
    fn owner(&self) -> u64 {
        0
    }

    /// Adds the secondary index keys of the record.
    fn keys(&self, _keys: &mut Keys) {}

    /// Converts a record of an older version to the encoding of the next version.
    fn upgrade(version: u8, _bytes: Vec<u8>) -> Result<Vec<u8>> {
        Err(Error::DamagedRecord(format!("{} has no upgrade step from version {version}", Self::COLLECTION)))
    }
}

/// The secondary index keys of one record, collected by [`Record::keys`].
#[derive(Debug, Default)]
pub struct Keys {
    pub(crate) all: Vec<Key>,
}

/// A value of one index of one record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) index: &'static str,
    pub(crate) is_unique: bool,
    pub(crate) value: Vec<u8>,
}

impl Key {
    /// Creates a key to look for.
    pub(crate) fn new(index: &'static str, value: &[u8]) -> Self {
        Self { index, is_unique: false, value: value.to_vec() }
    }
}

impl Keys {
    /// Adds a key that only one record may have. For single records only: writing a record of a paged collection with
    /// such a key is an error, because an import cannot check each record against half a million others.
    pub fn unique(&mut self, index: &'static str, value: impl AsRef<[u8]>) {
        self.all.push(Key { index, is_unique: true, value: value.as_ref().to_vec() });
    }

    /// Adds a key that any number of records may have.
    pub fn plain(&mut self, index: &'static str, value: impl AsRef<[u8]>) {
        self.all.push(Key { index, is_unique: false, value: value.as_ref().to_vec() });
    }

    pub(crate) fn from_record<T: Record>(record: &T) -> Vec<Key> {
        let mut keys = Self::default();
        record.keys(&mut keys);
        keys.all
    }
}

/// Returns whether a list of keys contains a key.
pub(crate) fn has_key(keys: &[Key], wanted: &Key) -> bool {
    keys.iter().any(|it| it.index == wanted.index && it.value == wanted.value)
}

/// Returns the hash of a value in an index. Different values can have the same hash, so readers also compare the record.
pub(crate) fn hash(index: &str, value: &[u8]) -> u64 {
    // SipHash with fixed keys: a deliberate collision only costs one comparison.
    #[expect(deprecated, reason = "the one hasher of the standard library whose keys are fixed")]
    let mut hasher = std::hash::SipHasher::new();
    hasher.write(index.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(value);
    hasher.finish()
}

/// Returns a digest of an encoded record.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    hash("", bytes)
}

/// Returns a hash of a list of blocks and the commits that wrote them. A collision is very unlikely; the hash is not
/// used for security.
pub(crate) fn fingerprint(blocks: impl Iterator<Item = (u32, u64)>) -> u64 {
    #[expect(deprecated, reason = "the one hasher of the standard library whose keys are fixed")]
    let mut hasher = std::hash::SipHasher::new();
    for (number, commit) in blocks {
        hasher.write_u32(number);
        hasher.write_u64(commit);
    }
    hasher.finish()
}

/// An encoded record, and what the store has to know about it.
pub(crate) struct EncodedRecord {
    pub(crate) id: u32,
    pub(crate) owner: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) keys: Vec<Key>,
}

impl EncodedRecord {
    /// Encodes a record that will be written.
    pub(crate) fn new<T: Record>(record: &T) -> Result<Self> {
        let bytes = encode(record)?;
        let found = Self { id: record.id(), owner: record.owner(), bytes, keys: Keys::from_record(record) };
        match found.keys.iter().find(|it| it.is_unique && T::KIND == CollectionKind::Paged) {
            Some(key) => Err(Error::NotUnique { collection: T::COLLECTION, index: key.index }),
            None => Ok(found),
        }
    }
}

pub(crate) fn encode<T: Record>(record: &T) -> Result<Vec<u8>> {
    let mut bytes = vec![T::VERSION];
    let encoded = encoding::encode(&mut bytes, record);
    check_encoded(T::COLLECTION, bytes, encoded)
}

fn check_encoded(
    collection: &'static str,
    bytes: Vec<u8>,
    encoded: Result<(), rmp_serde::encode::Error>,
) -> Result<Vec<u8>> {
    encoded.map_err(|cause| Error::Encode { collection, cause: cause.to_string() })?;
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(Error::TooLarge { what: "a record", size: bytes.len(), max: RECORD_BYTES_MAX });
    }
    Ok(bytes)
}

/// Decodes a record of this or any older version. Never panics, whatever the bytes are.
pub fn decode<T: Record>(bytes: &[u8]) -> Result<T> {
    let body = present_body(bytes, T::COLLECTION, T::VERSION, T::upgrade)?;
    encoding::decode(&body).map_err(|cause| undecodable(T::COLLECTION, &cause))
}

/// Returns the body of an encoded record, in the present version of its encoding.
fn present_body<'a>(
    bytes: &'a [u8],
    collection: &'static str,
    version: u8,
    upgrade: fn(u8, Vec<u8>) -> Result<Vec<u8>>,
) -> Result<Cow<'a, [u8]>> {
    let (&found, body) =
        bytes.split_first().ok_or_else(|| Error::DamagedRecord(format!("{collection} is empty")))?;
    match found.cmp(&version) {
        Ordering::Greater => Err(Error::TooNew { found, known: version }),
        Ordering::Equal => Ok(Cow::Borrowed(body)),
        Ordering::Less => {
            let upgraded = (found..version).try_fold(body.to_vec(), |bytes, version| upgrade(version, bytes));
            upgraded.map(Cow::Owned)
        }
    }
}

#[cold]
fn undecodable(collection: &'static str, cause: &rmp_serde::decode::Error) -> Error {
    Error::DamagedRecord(format!("{collection} cannot be decoded: {cause}"))
}

/// Converts an encoded record to JSON, without line breaks.
fn to_json<T: Record>(bytes: &[u8]) -> Result<Vec<u8>> {
    let record: T = decode(bytes)?;
    serde_json::to_vec(&record)
        .map_err(|cause| Error::Encode { collection: T::COLLECTION, cause: cause.to_string() })
}

/// Encodes a record in JSON. The error does not quote the record, which may contain secrets.
fn from_json<T: Record>(line: &[u8]) -> Result<EncodedRecord> {
    let unreadable = |_| Error::DamagedRecord(format!("a line of {} cannot be read", T::COLLECTION));
    EncodedRecord::new(&encoding::decode_json::<T>(line).map_err(unreadable)?)
}

/// The properties of a record type, without its Rust type.
#[derive(Clone, Copy)]
pub(crate) struct RecordType {
    pub(crate) name: &'static str,
    pub(crate) kind: CollectionKind,
    pub(crate) sharing: Sharing,
    pub(crate) is_sealed: bool,
    pub(crate) was_plain: bool,
    pub(crate) may_be_missed: fn(u64) -> bool,
    pub(crate) read: fn(&[u8]) -> Result<RecordFacts>,
    /// Version of the encoding that is written.
    pub(crate) version: u8,
    pub(crate) to_json: fn(&[u8]) -> Result<Vec<u8>>,
    pub(crate) from_json: fn(&[u8]) -> Result<EncodedRecord>,
}

/// Id, owner and index keys of an encoded record.
pub(crate) type RecordFacts = (u32, u64, Vec<Key>);

impl RecordType {
    fn new<T: Record>() -> Self {
        Self {
            name: T::COLLECTION,
            kind: T::KIND,
            sharing: T::SHARING,
            is_sealed: T::SEALED,
            was_plain: T::WAS_PLAIN,
            may_be_missed: T::may_be_missed,
            read: |bytes| {
                let record: T = decode(bytes)?;
                Ok((record.id(), record.owner(), Keys::from_record(&record)))
            },
            version: T::VERSION,
            to_json: to_json::<T>,
            from_json: from_json::<T>,
        }
    }
}

/// The record types of a store. A collection on the disk that is not in the schema is an error.
#[derive(Clone, Default)]
pub struct Schema {
    pub(crate) record_types: Vec<RecordType>,
}

impl Schema {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record type.
    ///
    /// # Panics
    /// When two types have the same collection name, or a name is not 1 to 32 lower-case letters, digits or `_`.
    pub fn with<T: Record>(mut self) -> Self {
        self.add(RecordType::new::<T>());
        self
    }

    fn add(&mut self, record_type: RecordType) {
        let name = record_type.name;
        let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
        assert!(
            (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain),
            "{name:?} is not a valid collection name"
        );
        assert!(
            self.record_types.iter().all(|it| it.name != name),
            "two record types have the collection name {name}"
        );
        self.record_types.push(record_type);
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.record_types.iter().position(|it| it.name == name)
    }

    /// Returns the position of a collection.
    ///
    /// # Panics
    /// When it is not in the schema.
    pub(crate) fn number(&self, collection: &str) -> usize {
        self.position(collection).expect("the schema of the store contains every record type in use")
    }
}
