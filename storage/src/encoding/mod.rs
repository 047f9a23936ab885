//! The encoding of records: MessagePack with the names of fields.
//!
//! `rmp-serde` makes a copy of its whole decoder for each type of each field, several KiB each. [`Decoder`] reads the
//! same bytes with the same errors, and most of it exists once.

mod decoder;
mod from_json;

use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned};

pub(crate) use self::decoder::Decoder;
use self::from_json::from_json;

/// Appends an encoded value.
pub(crate) fn encode<T: Serialize>(bytes: &mut Vec<u8>, value: &T) -> Result<(), rmp_serde::encode::Error> {
    rmp_serde::encode::write_named(bytes, value)
}

/// Decodes a value. Never panics, whatever the bytes are.
pub(crate) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, rmp_serde::decode::Error> {
    T::deserialize(&mut Decoder::new(bytes))
}

/// Decodes a value in JSON.
pub(crate) fn decode_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    T::deserialize(&mut Decoder::new_json(&from_json(text)?))
}
