//! From JSON to MessagePack, so that each type has one decoder.

use std::fmt;

use rmp::encode;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Converts a value of JSON. [`Decoder::new_json`](super::Decoder::new_json) reads the result.
pub(crate) fn from_json(text: &[u8]) -> Result<Vec<u8>, rmp_serde::decode::Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = Writer(&mut bytes).deserialize(&mut json).and_then(|()| json.end());
    read.map(|()| bytes).map_err(Error::custom)
}

/// Appends a value.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    /// Appends the marker of a list, writes its items, and sets their number. A list has a length of four bytes, whatever
    /// it is, because it is known at the end.
    fn list<E: Error>(
        self,
        marker: rmp::Marker,
        mut next: impl FnMut(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.0.push(marker.to_u8());
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        let mut n = 0_u32;
        while next(self.0)? {
            n += 1;
        }
        self.0[at..at + 4].copy_from_slice(&n.to_be_bytes());
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        encode::write_nil(self.0).map_err(E::custom)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        encode::write_bool(self.0, value).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        encode::write_uint(self.0, value).map(drop).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        encode::write_sint(self.0, value).map(drop).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        encode::write_f64(self.0, value).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        encode::write_str(self.0, value).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.list(rmp::Marker::Array32, |bytes| Ok(items.next_element_seed(Writer(bytes))?.is_some()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.list(rmp::Marker::Map32, |bytes| {
            let has_next = entries.next_key_seed(Writer(bytes))?.is_some();
            if has_next {
                entries.next_value_seed(Writer(bytes))?;
            }
            Ok(has_next)
        })
    }
}
