//! The encoding of records: MessagePack with the names of fields.
//!
//! `rmp-serde` makes a copy of its whole decoder for each type of each field, several KiB each. [`Decoder`] reads the
//! same bytes with the same errors, and most of it exists once.

mod decoder;
mod from_json;

use std::io;

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

/// Appends a value, in the encoding of records. For values that are kept in memory for a while.
///
/// # Errors
/// The type has no encoding.
pub fn append_value<T: Serialize>(bytes: &mut Vec<u8>, value: &T) -> io::Result<()> {
    encode(bytes, value).map_err(io::Error::other)
}

/// Decodes the first of several values from [`append_value`], and moves the bytes to the next one.
///
/// # Errors
/// The bytes are not such a value. The bytes stay as they are.
pub fn take_value<T: DeserializeOwned>(bytes: &mut &[u8]) -> io::Result<T> {
    let mut decoder = Decoder::new(bytes);
    let value = T::deserialize(&mut decoder).map_err(io::Error::other)?;
    *bytes = decoder.rest();
    Ok(value)
}

/// Decodes a value in JSON.
pub(crate) fn decode_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    T::deserialize(&mut Decoder::new_json(&from_json(text)?))
}
