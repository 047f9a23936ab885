//! Functions for the fuzz targets; exist in fuzzing builds only.

pub use crate::backup::write_members;
use crate::engine::block::Block;
use crate::engine::value::{DiskKey, Value};
use crate::guide::{GuideTables, decode_cell, read_entries};
use crate::log::{LogEntry, OperationReader, encode_operation, inflate};
use crate::record::{Record, encode};

/// Encodes a record like a write.
pub fn encode_record<T: Record>(record: &T) -> Vec<u8> {
    encode(record).expect("a decoded record is within the size limit")
}

/// Checks that a decoded block is encoded and decoded to the same block.
pub fn read_block(bytes: &[u8]) {
    if let Ok(block) = Block::decode(bytes) {
        // The encoder does not support more records.
        if block.records.len() <= crate::engine::block::RECORDS_MAX {
            assert_eq!(Block::decode(&block.encode()).expect("an encoded block can be decoded"), block);
        }
    }
}

/// Checks decoding of arbitrary values, and of values with a correct checksum, which a fuzzer cannot find by itself.
pub fn read_value(bytes: &[u8]) {
    drop(Value::decode(bytes));
    if let Some(disk_key) = DiskKey::parse(bytes) {
        let value = Value::new(disk_key.encode(), 1, bytes.to_vec());
        assert_eq!(disk_key.encode(), bytes);
        assert_eq!(Value::decode_at(bytes, &value.encode()).expect("an encoded block can be decoded"), value);
    }
}

/// Decodes arbitrary bytes as each part of a guide file, without the checksums, which a fuzzer cannot find by itself.
pub fn read_guide_parts(bytes: &[u8]) {
    if let Ok(cell) = decode_cell(bytes) {
        assert!(cell.iter().all(|it| it.start <= it.stop));
    }
    drop(GuideTables::decode(bytes, 1_000, 1 << 20));
    let mut n = 0u64;
    read_entries(bytes, |entry| {
        entry.add_to(&mut |_| {
            n += 1;
            true
        })?;
        Some(true)
    });
    // Each number takes a byte at least.
    assert!(n <= bytes.len() as u64);
}

/// Parses arbitrary bytes as an entry of the log, and as the compressed and the plain operations of one, which a fuzzer
/// cannot encrypt by itself.
pub fn read_log_entry(bytes: &[u8]) {
    if let Ok(entry) = LogEntry::parse(bytes) {
        assert_eq!(entry.encode(), bytes);
    }
    let inflated = inflate(bytes);
    for part in [bytes].into_iter().chain(inflated.as_deref()) {
        let (mut reader, mut encoded) = (OperationReader::default(), Vec::new());
        let read = reader.read(part, |operation| {
            encode_operation(&operation, |bytes| {
                encoded.extend_from_slice(bytes);
                Ok(())
            })
        });
        if read.is_ok() && reader.finish().is_ok() {
            let (mut again, mut n) = (OperationReader::default(), 0);
            let count = again.read(&encoded, |_| {
                n += 1;
                Ok(())
            });
            assert!(count.is_ok() && (n > 0 || part.is_empty()), "encoded operations can be read");
        }
    }
}
