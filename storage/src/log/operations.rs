//! The operations of a commit: their encoding in the parts of log entries, and its reader.
//!
//! ```text
//!   put        1 │ collection │ length 4 │ encoded record
//!   remove     2 │ collection │ id 4
//!   clear      3 │ collection │ owner 8          removes all records of the owner
//!   replace    4 │ collection │ owner 8          the puts until the end are all records that the owner has afterwards
//!   next id    5 │ collection │ id 4
//!   piece      6 │ length 4 │ bytes              the beginning of the record of the next put
//!                  collection: length 1 │ name
//! ```
//!
//! Within a commit all removals come before the puts, and at most one `replace` comes last.

use crate::error::{Error, Result};
use crate::log::entry::PART_BYTES_MAX;
use crate::record::{NAME_MAX, RECORD_BYTES_MAX};

/// Maximum length of the record bytes in one operation. Longer records are divided.
const PIECE_BYTES_MAX: usize = PART_BYTES_MAX / 4;

/// A change of one record, or of all records of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Put { collection: &'a str, record: Vec<u8> },
    Remove { collection: &'a str, id: u32 },
    Clear { collection: &'a str, owner: u64 },
    Replace { collection: &'a str, owner: u64 },
    NextId { collection: &'a str, next: u32 },
}

/// Encodes an operation as one or several that each fit into a part.
pub(crate) fn encode(operation: &Operation<'_>, mut emit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let start = |kind: u8, collection: &str| {
        let length = u8::try_from(collection.len()).expect("collection names are short");
        [&[kind, length], collection.as_bytes()].concat()
    };
    match operation {
        Operation::Put { collection, record } => {
            let mut rest = &record[..];
            while rest.len() > PIECE_BYTES_MAX {
                let (piece, after) = rest.split_at(PIECE_BYTES_MAX);
                emit(&[&[6], &length_of(piece)[..], piece].concat())?;
                rest = after;
            }
            emit(&[&start(1, collection)[..], &length_of(rest), rest].concat())
        }
        Operation::Remove { collection, id } => {
            emit(&[&start(2, collection)[..], &id.to_be_bytes()].concat())
        }
        Operation::Clear { collection, owner } => {
            emit(&[&start(3, collection)[..], &owner.to_be_bytes()].concat())
        }
        Operation::Replace { collection, owner } => {
            emit(&[&start(4, collection)[..], &owner.to_be_bytes()].concat())
        }
        Operation::NextId { collection, next } => {
            emit(&[&start(5, collection)[..], &next.to_be_bytes()].concat())
        }
    }
}

fn length_of(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("records have at most 1 MiB").to_be_bytes()
}

/// Reads the operations of one kind of part, slice by slice.
#[derive(Default)]
pub(crate) struct OperationReader {
    /// Pieces of the record of the next put.
    begun: Vec<u8>,
}

impl OperationReader {
    /// Reads the operations of a part. Never panics, whatever the bytes are.
    ///
    /// # Errors
    /// If the bytes are not whole operations. The first error of `visit` ends the reading.
    pub(crate) fn read(
        &mut self,
        mut part: &[u8],
        mut visit: impl FnMut(Operation<'_>) -> Result<()>,
    ) -> Result<()> {
        while !part.is_empty() {
            let (operation, rest) = self.next(part).ok_or_else(invalid)?;
            part = rest;
            if let Some(operation) = operation {
                visit(operation)?;
            }
        }
        Ok(())
    }

    /// Checks that the last record is complete.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.begun.is_empty() { Ok(()) } else { Err(invalid()) }
    }

    /// Returns the next operation, or `None` for a piece of one, and the rest.
    fn next<'a>(&mut self, part: &'a [u8]) -> Option<(Option<Operation<'a>>, &'a [u8])> {
        let (&kind, rest) = part.split_first()?;
        if kind == 6 {
            let (piece, rest) = parse_bytes(rest)?;
            self.extend(piece)?;
            return (!piece.is_empty()).then_some((None, rest));
        }
        let (&length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(length))?;
        let collection = std::str::from_utf8(name).ok().filter(|it| (1..=NAME_MAX).contains(&it.len()))?;
        if kind == 1 {
            let (bytes, rest) = parse_bytes(rest)?;
            self.extend(bytes)?;
            let record = std::mem::take(&mut self.begun);
            return Some((Some(Operation::Put { collection, record }), rest));
        }
        // Only a put follows a piece.
        if !self.begun.is_empty() {
            return None;
        }
        let (operation, rest) = match kind {
            2 => {
                let (id, rest) = rest.split_first_chunk()?;
                (Operation::Remove { collection, id: u32::from_be_bytes(*id) }, rest)
            }
            3 => {
                let (owner, rest) = rest.split_first_chunk()?;
                (Operation::Clear { collection, owner: u64::from_be_bytes(*owner) }, rest)
            }
            4 => {
                let (owner, rest) = rest.split_first_chunk()?;
                (Operation::Replace { collection, owner: u64::from_be_bytes(*owner) }, rest)
            }
            5 => {
                let (next, rest) = rest.split_first_chunk()?;
                (Operation::NextId { collection, next: u32::from_be_bytes(*next) }, rest)
            }
            _ => return None,
        };
        Some((Some(operation), rest))
    }

    fn extend(&mut self, bytes: &[u8]) -> Option<()> {
        (self.begun.len() + bytes.len() <= RECORD_BYTES_MAX).then(|| self.begun.extend_from_slice(bytes))
    }
}

fn parse_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn invalid() -> Error {
    Error::LogBroken("it contains an invalid operation".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads operations that are spread over parts.
    fn read(parts: &[Vec<u8>]) -> Result<Vec<String>> {
        let (mut reader, mut found) = (OperationReader::default(), Vec::new());
        for part in parts {
            reader.read(part, |operation| {
                found.push(format!("{operation:?}"));
                Ok(())
            })?;
        }
        reader.finish().map(|()| found)
    }

    #[test]
    fn operations_are_read_as_written_and_long_records_are_divided() {
        let operations = [
            Operation::Clear { collection: "streams", owner: 4 },
            Operation::Remove { collection: "channels", id: 8 },
            Operation::Put { collection: "channels", record: b"short".to_vec() },
            Operation::Put { collection: "channels", record: Vec::new() },
            Operation::Put { collection: "channels", record: vec![7; RECORD_BYTES_MAX] },
            Operation::NextId { collection: "channels", next: 10 },
            Operation::Replace { collection: "streams", owner: u64::MAX },
        ];
        let mut parts = Vec::new();
        for operation in &operations {
            encode(operation, |bytes| {
                assert!(bytes.len() < PART_BYTES_MAX / 2);
                parts.push(bytes.to_vec());
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(parts.len(), operations.len() + RECORD_BYTES_MAX / PIECE_BYTES_MAX - 1);
        let expected: Vec<_> = operations.iter().map(|it| format!("{it:?}")).collect();
        assert_eq!(read(&parts).unwrap(), expected);
        assert_eq!(read(&[parts.concat()]).unwrap(), expected);
        let whole = parts[..3].concat();
        for length in 1..whole.len() {
            let n_whole = (1..3).filter(|n| parts[..*n].concat().len() == length).count();
            assert_eq!(read(&[whole[..length].to_vec()]).is_ok(), n_whole == 1, "cut to {length}");
        }
    }

    #[test]
    fn a_record_that_is_too_long_or_has_no_end_is_refused() {
        let piece = [&[6][..], &length_of(&[0; PIECE_BYTES_MAX]), &[0; PIECE_BYTES_MAX]].concat();
        assert!(read(std::slice::from_ref(&piece)).is_err());
        let n = RECORD_BYTES_MAX / PIECE_BYTES_MAX;
        let mut parts = vec![piece; n];
        parts.push(b"\x01\x01x\0\0\0\x01y".to_vec());
        assert!(read(&parts).is_err());
        assert!(
            read(&[b"\x06\0\0\0\x01y\x02\x01x\0\0\0\x01".to_vec()]).is_err(),
            "a removal follows a piece"
        );
    }

    proptest! {
        #[test]
        fn reading_operations_never_panics(kind in 0u8..8, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&[[&[kind][..], &bytes].concat()]);
        }
    }
}
