//! Doors for the fuzzer, which are there in its builds only.

use crate::engine::block::Block;
use crate::engine::value::{Place, Value};
use crate::record::{Record, encode};

/// The bytes of a record, as a write makes them.
pub fn encode_record<T: Record>(record: &T) -> Vec<u8> {
    encode(record).expect("what was read is no larger than a record may be")
}

/// A block that reads is written and read as the same one.
pub fn read_block(bytes: &[u8]) {
    if let Ok(block) = Block::decode(bytes) {
        // Counts above what we write would not fit the way back.
        if block.records.len() <= crate::engine::block::RECORDS_MAX {
            assert_eq!(Block::decode(&block.encode()).expect("what was written reads"), block);
        }
    }
}

/// A value with a checksum that fits, which no fuzzer finds by itself, and a key of any kind.
pub fn read_value(bytes: &[u8]) {
    drop(Value::decode(bytes));
    if let Some(place) = Place::parse(bytes) {
        let value = Value { key: place.key(), commit: 1, is_gone: false, payload: bytes.to_vec() };
        assert_eq!(place.key(), bytes);
        assert_eq!(Value::of_key(bytes, &value.encode()).expect("what was written reads"), value);
    }
}
