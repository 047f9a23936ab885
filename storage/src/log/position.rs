//! The position of a store in the log.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::record::{Record, Sharing};

/// The hash of an entry of the log, which its successor contains. In text it has 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EntryHash(pub(crate) [u8; 32]);

impl EntryHash {
    /// Returns the hash of an encoded entry.
    pub(crate) fn new(entry: &[u8]) -> Self {
        Self(Sha256::digest(entry).into())
    }

    /// Returns the hash that the first entry of a log contains.
    fn before_first(log: Uuid, sequence: u64) -> Self {
        let hash = Sha256::new().chain_update(b"headwater log ").chain_update(log.as_bytes());
        Self(hash.chain_update(sequence.to_be_bytes()).finalize().into())
    }
}

impl fmt::Display for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// Prints the digits.
impl fmt::Debug for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryHash({self})")
    }
}

impl From<EntryHash> for String {
    fn from(hash: EntryHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for EntryHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().and_then(|it| it.try_into().ok());
        bytes.map(Self).ok_or("the hash of an entry has 64 hexadecimal digits")
    }
}

/// The last commit of the log that a store contains. Stored as a record, so that it changes together with the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Identifies the log; another one begins with each reseed.
    pub log: Uuid,
    /// The sequence of the entry that completed the commit, or the one after which the log begins.
    pub sequence: u64,
    pub hash: EntryHash,
}

impl LogPosition {
    /// Returns the position before the first entry of a log that begins after this sequence.
    pub fn beginning(log: Uuid, sequence: u64) -> Self {
        Self { log, sequence, hash: EntryHash::before_first(log, sequence) }
    }

    /// Returns whether no entry of the log was applied yet.
    pub fn is_beginning(&self) -> bool {
        self.hash == EntryHash::before_first(self.log, self.sequence)
    }
}

/// A commit of the log that a write applies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Applied {
    pub(crate) before: LogPosition,
    pub(crate) after: LogPosition,
}

impl Record for LogPosition {
    const COLLECTION: &'static str = "log_positions";
    const SHARING: Sharing = Sharing::Local;

    /// The collection has one record.
    fn id(&self) -> u32 {
        POSITION_ID
    }
}

/// The id of the only record.
pub(crate) const POSITION_ID: u32 = 1;
