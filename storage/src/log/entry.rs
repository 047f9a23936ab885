//! The encoding of a log entry.
//!
//! ```text
//!   magic 4 │ format 1 │ kind 1 │ log 16 │ sequence 8 │ run 8 │ previous hash 32 │ cluster part │ provider part
//!                                                            part: generation 4 │ length 4 │ nonce and ciphertext
//! ```
//!
//! Numbers are big-endian. A part of length 0 is absent. The plain text of a part is its inflated length (4 bytes) and a
//! deflate stream of [operations](super::operations). The header is authenticated with each part, so a part cannot be
//! moved to another entry or log.

use std::io::{Read, Write as _};

use uuid::Uuid;

use super::keys::{KeyRing, LogKeys};
use super::position::{EntryHash, LogPosition};
use crate::error::{Error, Result};

const MAGIC: [u8; 4] = *b"HwLg";
/// Format that is written.
const FORMAT: u8 = 1;
const HEADER: usize = 4 + 1 + 1 + 16 + 8 + 8 + 32;
const PART_HEADER: usize = 8;

/// Maximum size of the operations in a part before compression, in bytes.
pub(crate) const PART_BYTES_MAX: usize = if cfg!(test) { 16 << 10 } else { 256 << 10 };
/// Maximum size of a sealed part: deflate, cipher and lengths add some hundred bytes at most.
const SEALED_BYTES_MAX: usize = PART_BYTES_MAX + 1024;
/// Maximum size of an encoded entry, in bytes. Below the maximum of a message of common servers, 1 MiB.
pub const ENTRY_BYTES_MAX: usize = HEADER + 2 * (PART_HEADER + SEALED_BYTES_MAX);

/// Whether an entry completes a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A part of a large commit. Applied only if the run is completed.
    Slice,
    /// A commit, or the last part of one.
    Commit,
}

/// The fixed fields of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryHeader {
    pub(crate) kind: EntryKind,
    pub(crate) log: Uuid,
    pub(crate) sequence: u64,
    /// The sequence of the first entry of the commit.
    pub(crate) run: u64,
    pub(crate) previous: EntryHash,
}

/// The nodes that can read a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Cluster,
    Provider,
}

/// An encrypted part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SealedPart {
    generation: u32,
    bytes: Vec<u8>,
}

/// A parsed entry. Only its form is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) header: EntryHeader,
    cluster: SealedPart,
    provider: SealedPart,
}

/// The plain operations of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) cluster: Vec<u8>,
    pub(crate) provider: Vec<u8>,
}

impl EntryHeader {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(FORMAT);
        bytes.push(match self.kind {
            EntryKind::Slice => 1,
            EntryKind::Commit => 2,
        });
        bytes.extend_from_slice(self.log.as_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.run.to_be_bytes());
        bytes.extend_from_slice(&self.previous.0);
        bytes
    }

    /// Returns what is authenticated with a part.
    fn associated(&self, kind: PartKind, generation: u32) -> Vec<u8> {
        let mut bytes = self.encode();
        bytes.push(match kind {
            PartKind::Cluster => b'c',
            PartKind::Provider => b'p',
        });
        bytes.extend_from_slice(&generation.to_be_bytes());
        bytes
    }
}

impl LogEntry {
    /// Encrypts an entry.
    ///
    /// # Errors
    /// If there are provider operations and this node has no provider key.
    pub(crate) fn seal(header: EntryHeader, parts: &Parts, keys: &LogKeys) -> Result<Self> {
        let seal = |kind, ring: &KeyRing, plain: &[u8]| {
            if plain.is_empty() {
                return Ok(SealedPart::default());
            }
            let generation = ring.generation();
            let bytes = ring.seal(&header.associated(kind, generation), &deflate(plain))?;
            Ok::<_, Error>(SealedPart { generation, bytes })
        };
        let provider = match &keys.provider {
            Some(ring) => seal(PartKind::Provider, ring, &parts.provider)?,
            None if parts.provider.is_empty() => SealedPart::default(),
            None => return Err(Error::Key("this node does not have the provider key".to_owned())),
        };
        Ok(Self { header, cluster: seal(PartKind::Cluster, &keys.cluster, &parts.cluster)?, provider })
    }

    /// Decrypts an entry. Without the provider key that part is empty.
    ///
    /// # Errors
    /// If a part was changed, or if this node does not have its generation of the key.
    pub(crate) fn unseal(&self, keys: &LogKeys) -> Result<Parts> {
        let unseal = |kind, ring: &KeyRing, part: &SealedPart| {
            if part.bytes.is_empty() {
                return Ok(Vec::new());
            }
            let associated = self.header.associated(kind, part.generation);
            inflate(&ring.unseal(part.generation, &associated, &part.bytes)?).ok_or_else(|| {
                Error::LogBroken(format!("log entry {} cannot be unpacked", self.header.sequence))
            })
        };
        Ok(Parts {
            cluster: unseal(PartKind::Cluster, &keys.cluster, &self.cluster)?,
            provider: match &keys.provider {
                Some(ring) => unseal(PartKind::Provider, ring, &self.provider)?,
                None => Vec::new(),
            },
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.header.encode();
        for part in [&self.cluster, &self.provider] {
            let length = u32::try_from(part.bytes.len()).expect("parts are limited");
            bytes.extend_from_slice(&part.generation.to_be_bytes());
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&part.bytes);
        }
        bytes
    }

    /// Parses an entry. Never panics, whatever the bytes are.
    ///
    /// # Errors
    /// If the bytes are not exactly one entry, or if a later version wrote it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let invalid = || Error::LogBroken("it is not a log entry".to_owned());
        let (magic, rest) = bytes.split_first_chunk::<4>().ok_or_else(invalid)?;
        let (&format, rest) = rest.split_first().ok_or_else(invalid)?;
        if *magic != MAGIC || bytes.len() > ENTRY_BYTES_MAX {
            return Err(invalid());
        }
        if format > FORMAT {
            return Err(Error::TooNew { found: format, known: FORMAT });
        }
        parse_fields(rest).filter(|_| format == FORMAT).ok_or_else(invalid)
    }

    /// Returns whether this entry follows a position or another entry.
    pub(crate) fn follows(&self, tail: &LogPosition) -> bool {
        let header = &self.header;
        header.log == tail.log
            && Some(header.sequence) == tail.sequence.checked_add(1)
            && header.previous == tail.hash
    }
}

/// Returns the id of the log that an encoded entry names. `None`: this version cannot read the entry.
/// Nothing of it is verified.
pub fn log_of(entry: &[u8]) -> Option<Uuid> {
    let (&[m0, m1, m2, m3, FORMAT, _kind], rest) = entry.split_first_chunk()? else { return None };
    let (log, _) = rest.split_first_chunk::<16>()?;
    ([m0, m1, m2, m3] == MAGIC).then(|| Uuid::from_bytes(*log))
}

/// Parses what follows the format.
fn parse_fields(bytes: &[u8]) -> Option<LogEntry> {
    let (&kind, rest) = bytes.split_first()?;
    let kind = match kind {
        1 => EntryKind::Slice,
        2 => EntryKind::Commit,
        _ => return None,
    };
    let (log, rest) = rest.split_first_chunk::<16>()?;
    let (sequence, rest) = rest.split_first_chunk()?;
    let (run, rest) = rest.split_first_chunk()?;
    let (previous, rest) = rest.split_first_chunk()?;
    let header = EntryHeader {
        kind,
        log: Uuid::from_bytes(*log),
        sequence: u64::from_be_bytes(*sequence),
        run: u64::from_be_bytes(*run),
        previous: EntryHash(*previous),
    };
    let (cluster, rest) = parse_part(rest)?;
    let (provider, rest) = parse_part(rest)?;
    let is_valid = rest.is_empty() && header.run <= header.sequence;
    is_valid.then_some(LogEntry { header, cluster, provider })
}

fn parse_part(bytes: &[u8]) -> Option<(SealedPart, &[u8])> {
    let (generation, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let generation = u32::from_be_bytes(*generation);
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|it| *it <= SEALED_BYTES_MAX)?;
    let (bytes, rest) = rest.split_at_checked(length)?;
    let is_valid = (generation == 0) == bytes.is_empty();
    is_valid.then(|| (SealedPart { generation, bytes: bytes.to_vec() }, rest))
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let length = u32::try_from(plain.len()).expect("parts are limited");
    let start = length.to_be_bytes().to_vec();
    let mut encoder = flate2::write::DeflateEncoder::new(start, flate2::Compression::new(1));
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

/// Returns `None` if it is not exactly one deflated part of at most [`PART_BYTES_MAX`].
pub(crate) fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, deflated) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|it| *it <= PART_BYTES_MAX)?;
    let mut plain = Vec::with_capacity(length);
    flate2::read::DeflateDecoder::new(deflated).take(length as u64 + 1).read_to_end(&mut plain).ok()?;
    (plain.len() == length).then_some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> EntryHeader {
        EntryHeader {
            kind: EntryKind::Commit,
            log: Uuid::from_u128(7),
            sequence: 12,
            run: 11,
            previous: EntryHash([9; 32]),
        }
    }

    fn parts() -> Parts {
        Parts { cluster: b"for all".repeat(50), provider: b"for full nodes".to_vec() }
    }

    #[test]
    fn an_entry_is_read_as_written_and_an_edge_node_reads_only_its_part() {
        let keys = LogKeys::new().unwrap();
        let entry = LogEntry::seal(header(), &parts(), &keys).unwrap();
        let read = LogEntry::parse(&entry.encode()).unwrap();
        assert_eq!(read, entry);
        assert_eq!(read.unseal(&keys).unwrap(), parts());
        let at_edge = read.unseal(&keys.for_edge()).unwrap();
        assert_eq!((&*at_edge.cluster, &*at_edge.provider), (&*parts().cluster, &b""[..]));
        assert!(read.unseal(&LogKeys::new().unwrap()).is_err());
        let encoded = entry.encode();
        assert!(!encoded.windows(7).any(|it| it == b"for all"), "the entry is not encrypted");
        let refused = LogEntry::seal(header(), &parts(), &keys.for_edge()).unwrap_err();
        assert!(refused.to_string().contains("provider key"), "{refused}");
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_of_an_entry_is_detected() {
        let keys = LogKeys::new().unwrap();
        let small = Parts { cluster: b"a".to_vec(), provider: b"b".to_vec() };
        let bytes = LogEntry::seal(header(), &small, &keys).unwrap().encode();
        let is_read = |bytes: &[u8]| LogEntry::parse(bytes).and_then(|it| it.unseal(&keys)).is_ok();
        assert!(is_read(&bytes));
        for length in 0..bytes.len() {
            assert!(LogEntry::parse(&bytes[..length]).is_err(), "cut to {length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_read(&flipped), "bit {bit}");
        }
        assert!(LogEntry::parse(&[&bytes[..], b"x"].concat()).is_err());
        let mut newer = bytes;
        newer[4] = FORMAT + 1;
        assert!(matches!(LogEntry::parse(&newer), Err(Error::TooNew { .. })));
    }

    #[test]
    fn the_largest_part_fits() {
        let keys = LogKeys::new().unwrap();
        // Not compressible.
        let mut noise = vec![0; PART_BYTES_MAX];
        getrandom::fill(&mut noise).unwrap();
        let parts = Parts { cluster: noise.clone(), provider: noise };
        let bytes = LogEntry::seal(header(), &parts, &keys).unwrap().encode();
        assert!(bytes.len() <= ENTRY_BYTES_MAX);
        assert_eq!(LogEntry::parse(&bytes).unwrap().unseal(&keys).unwrap(), parts);
    }

    #[test]
    fn a_part_that_claims_to_be_huge_is_refused_without_allocating() {
        assert_eq!(inflate(&[0xff; 32]), None);
        let mut longer = deflate(b"four");
        longer[3] = 3;
        assert_eq!(inflate(&longer), None);
    }

    proptest! {
        #[test]
        fn parsing_an_entry_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&MAGIC[..], &[FORMAT], &bytes].concat();
            if let Ok(entry) = LogEntry::parse(&bytes) {
                prop_assert_eq!(entry.encode(), bytes);
            }
        }
    }
}
