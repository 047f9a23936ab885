//! Decodes MessagePack.

use std::io::{ErrorKind, Read};
use std::{mem, str};

use rmp::Marker;
use rmp_serde::decode::Error;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

/// Maximum depth of values in values.
const DEPTH_MAX: u16 = 1024;

/// Reads values as `rmp-serde` does, with the same errors, except for what [`encode`](super::encode) never writes: structs
/// without the names of their fields, fields and variants by number, bytes as a sequence, and extensions.
pub(crate) struct Decoder<'de> {
    rest: &'de [u8],
    /// Read already, and not used yet.
    next: Option<Token<'de>>,
    /// The last one that was read.
    marker: Marker,
    depth: u16,
    /// Whether the values come from JSON: there, keys of maps are texts, and some types have another form.
    is_json: bool,
    /// Whether the next value is the key of a map.
    is_key: bool,
}

/// A scalar value, or the beginning of another one.
#[derive(Clone, Copy)]
enum Token<'de> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// Maybe not valid UTF-8.
    Text(&'de [u8]),
    Bytes(&'de [u8]),
    Array(u32),
    Map(u32),
    Extension,
}

impl Token<'_> {
    /// Returns the error for a value of another type than the expected one.
    #[cold]
    fn unexpected(self, expected: &dyn Expected) -> Error {
        let found = match self {
            Self::Nil => Unexpected::Unit,
            Self::Bool(it) => Unexpected::Bool(it),
            Self::Unsigned(it) => Unexpected::Unsigned(it),
            Self::Signed(it) => Unexpected::Signed(it),
            Self::Float(it) => Unexpected::Float(it),
            Self::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Unexpected::Str(text),
                Err(error) => return Error::Utf8Error(error),
            },
            Self::Bytes(bytes) => Unexpected::Bytes(bytes),
            Self::Array(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
            Self::Extension => Unexpected::NewtypeStruct,
        };
        Error::invalid_type(found, expected)
    }
}

impl<'de> Decoder<'de> {
    pub(crate) fn new(bytes: &'de [u8]) -> Self {
        Self {
            rest: bytes,
            next: None,
            marker: Marker::Reserved,
            depth: DEPTH_MAX,
            is_json: false,
            is_key: false,
        }
    }

    /// Creates a decoder of bytes from [`from_json`](super::from_json()).
    pub(crate) fn new_json(bytes: &'de [u8]) -> Self {
        Self { is_json: true, ..Self::new(bytes) }
    }

    /// Returns the bytes that are not decoded yet.
    pub(crate) fn rest(&self) -> &'de [u8] {
        self.rest
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.rest.read_exact(&mut bytes).map_err(Error::InvalidDataRead)?;
        Ok(bytes)
    }

    fn length_8(&mut self) -> Result<u32, Error> {
        Ok(u8::from_be_bytes(self.number()?).into())
    }

    fn length_16(&mut self) -> Result<u32, Error> {
        Ok(u16::from_be_bytes(self.number()?).into())
    }

    fn length_32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.number()?))
    }

    fn bytes(&mut self, n: u32) -> Result<&'de [u8], Error> {
        let ended = || Error::InvalidDataRead(ErrorKind::UnexpectedEof.into());
        let (bytes, rest) = self.rest.split_at_checked(n as usize).ok_or_else(ended)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self, n: u32) -> Result<Token<'de>, Error> {
        self.bytes(n).map(Token::Text)
    }

    fn token(&mut self) -> Result<Token<'de>, Error> {
        if let Some(token) = self.next.take() {
            return Ok(token);
        }
        let mut first = [0];
        self.rest.read_exact(&mut first).map_err(Error::InvalidMarkerRead)?;
        self.marker = Marker::from_u8(first[0]);
        Ok(match self.marker {
            Marker::Null => Token::Nil,
            Marker::False => Token::Bool(false),
            Marker::True => Token::Bool(true),
            Marker::FixPos(it) => Token::Unsigned(it.into()),
            Marker::U8 => Token::Unsigned(u8::from_be_bytes(self.number()?).into()),
            Marker::U16 => Token::Unsigned(u16::from_be_bytes(self.number()?).into()),
            Marker::U32 => Token::Unsigned(u32::from_be_bytes(self.number()?).into()),
            Marker::U64 => Token::Unsigned(u64::from_be_bytes(self.number()?)),
            Marker::FixNeg(it) => Token::Signed(it.into()),
            Marker::I8 => Token::Signed(i8::from_be_bytes(self.number()?).into()),
            Marker::I16 => Token::Signed(i16::from_be_bytes(self.number()?).into()),
            Marker::I32 => Token::Signed(i32::from_be_bytes(self.number()?).into()),
            Marker::I64 => Token::Signed(i64::from_be_bytes(self.number()?)),
            Marker::F32 => Token::Float(f32::from_be_bytes(self.number()?).into()),
            Marker::F64 => Token::Float(f64::from_be_bytes(self.number()?)),
            Marker::FixStr(n) => self.text(n.into())?,
            Marker::Str8 => self.length_8().and_then(|n| self.text(n))?,
            Marker::Str16 => self.length_16().and_then(|n| self.text(n))?,
            Marker::Str32 => self.length_32().and_then(|n| self.text(n))?,
            Marker::Bin8 => self.length_8().and_then(|n| self.bytes(n)).map(Token::Bytes)?,
            Marker::Bin16 => self.length_16().and_then(|n| self.bytes(n)).map(Token::Bytes)?,
            Marker::Bin32 => self.length_32().and_then(|n| self.bytes(n)).map(Token::Bytes)?,
            Marker::FixArray(n) => Token::Array(n.into()),
            Marker::Array16 => Token::Array(self.length_16()?),
            Marker::Array32 => Token::Array(self.length_32()?),
            Marker::FixMap(n) => Token::Map(n.into()),
            Marker::Map16 => Token::Map(self.length_16()?),
            Marker::Map32 => Token::Map(self.length_32()?),
            Marker::Reserved => return Err(Error::TypeMismatch(self.marker)),
            _ => Token::Extension,
        })
    }

    /// Reads a number or another scalar value without length.
    fn scalar(&mut self) -> Result<Token<'de>, Error> {
        let is_key = mem::take(&mut self.is_key);
        Ok(match self.token()? {
            Token::Text(text) if is_key => scalar_key(text).unwrap_or(Token::Text(text)),
            Token::Text(_) | Token::Bytes(_) | Token::Array(_) | Token::Map(_) | Token::Extension => {
                return Err(Error::TypeMismatch(self.marker));
            }
            scalar => scalar,
        })
    }

    /// Reads the beginning of a sequence.
    fn seq(&mut self, expected: &dyn Expected) -> Result<Items<'_, 'de>, Error> {
        match self.token()? {
            Token::Array(n) => self.items(n),
            other => Err(other.unexpected(expected)),
        }
    }

    /// Reads the beginning of a map.
    fn map(&mut self, expected: &dyn Expected) -> Result<Items<'_, 'de>, Error> {
        match self.token()? {
            Token::Map(n) => self.items(n),
            other => Err(other.unexpected(expected)),
        }
    }

    fn items(&mut self, n: u32) -> Result<Items<'_, 'de>, Error> {
        self.depth -= 1;
        if self.depth == 0 {
            return Err(Error::DepthLimitExceeded);
        }
        Ok(Items { decoder: self, n, n_left: n })
    }

    /// Skips a value.
    fn skip(&mut self) -> Result<(), Error> {
        let mut n_left = 1_u64;
        while n_left > 0 {
            n_left -= 1;
            match self.token()? {
                Token::Array(n) => n_left += u64::from(n),
                Token::Map(n) => n_left += 2 * u64::from(n),
                Token::Extension => return Err(Error::TypeMismatch(self.marker)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Parses a number or truth value that JSON has as the key of a map.
fn scalar_key(text: &[u8]) -> Option<Token<'static>> {
    let text = str::from_utf8(text).ok()?;
    let signed = || text.parse().map(Token::Signed);
    text.parse()
        .map(Token::Unsigned)
        .or_else(|_| signed())
        .ok()
        .or_else(|| text.parse().map(Token::Bool).ok())
}

/// Visits an integer. Visitors of other integer types accept the widest one as well.
macro_rules! deserialize_integer {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.scalar()? {
                Token::Unsigned(it) => visitor.visit_u64(it),
                Token::Signed(it) => visitor.visit_i64(it),
                other => Err(other.unexpected(&visitor)),
            }
        }
    )*};
}

macro_rules! deserialize_float {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.scalar()? {
                Token::Float(it) => visitor.visit_f64(it),
                Token::Unsigned(it) => visitor.visit_u64(it),
                Token::Signed(it) => visitor.visit_i64(it),
                other => Err(other.unexpected(&visitor)),
            }
        }
    )*};
}

/// Each method calls only those methods of the visitor that visitors of this type have, because all of them together are
/// several KiB for each visitor.
impl<'de> Deserializer<'de> for &mut Decoder<'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        self.is_json
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_unit(),
            Token::Bool(it) => visitor.visit_bool(it),
            Token::Unsigned(it) => visitor.visit_u64(it),
            Token::Signed(it) => visitor.visit_i64(it),
            Token::Float(it) => visitor.visit_f64(it),
            Token::Text(bytes) => visit_text(visitor, bytes),
            Token::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Token::Array(n) => {
                let mut items = self.items(n)?;
                let value = visitor.visit_seq(&mut items)?;
                items.end(value)
            }
            Token::Map(n) => {
                let mut items = self.items(n)?;
                let value = visitor.visit_map(&mut items)?;
                items.end(value)
            }
            other @ Token::Extension => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.scalar()? {
            Token::Bool(it) => visitor.visit_bool(it),
            other => Err(other.unexpected(&visitor)),
        }
    }

    deserialize_integer! {
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
    }
    deserialize_float! { deserialize_f32 deserialize_f64 }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_identifier(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Text(bytes) => visit_text(visitor, bytes),
            Token::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let token = self.token()?;
        match token {
            Token::Text(bytes) if let Ok(text) = str::from_utf8(bytes) => visitor.visit_borrowed_str(text),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_none(),
            token => {
                self.next = Some(token);
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_unit(),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil | Token::Array(0) => visitor.visit_unit(),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut items = self.seq(&visitor)?;
        let value = visitor.visit_seq(&mut items)?;
        items.end(value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut items = self.map(&visitor)?;
        let value = visitor.visit_map(&mut items)?;
        items.end(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let has_content = match self.token()? {
            Token::Map(1) => true,
            Token::Map(n) => return Err(Error::LengthMismatch(n)),
            token => {
                self.next = Some(token);
                false
            }
        };
        visitor.visit_enum(Variant { decoder: self, has_content })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }
}

fn visit_text<'de, V: Visitor<'de>>(visitor: V, bytes: &'de [u8]) -> Result<V::Value, Error> {
    match str::from_utf8(bytes) {
        Ok(text) => visitor.visit_borrowed_str(text),
        // A visitor of bytes accepts it.
        Err(error) => visitor.visit_borrowed_bytes::<Error>(bytes).map_err(|_| Error::Utf8Error(error)),
    }
}

/// The items of a sequence, or the entries of a map.
struct Items<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    n: u32,
    n_left: u32,
}

impl Items<'_, '_> {
    fn has_next(&mut self) -> bool {
        let has_next = self.n_left > 0;
        self.n_left -= u32::from(has_next);
        has_next
    }

    /// Returns the value that was made of the items, if all of them were visited.
    fn end<T>(self, value: T) -> Result<T, Error> {
        self.check_end().map(|()| value)
    }

    fn check_end(self) -> Result<(), Error> {
        self.decoder.depth += 1;
        match self.n_left {
            0 => Ok(()),
            n_left => Err(Error::LengthMismatch(self.n - n_left)),
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if !self.has_next() {
            return Ok(None);
        }
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        usize::try_from(self.n_left).ok()
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if !self.has_next() {
            return Ok(None);
        }
        self.decoder.is_key = self.decoder.is_json;
        let key = seed.deserialize(&mut *self.decoder)?;
        self.decoder.is_key = false;
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.decoder)
    }

    fn size_hint(&self) -> Option<usize> {
        usize::try_from(self.n_left).ok()
    }
}

/// A variant by its name alone, or the name with its content.
struct Variant<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    has_content: bool,
}

impl<'a, 'de> Variant<'a, 'de> {
    /// Returns the decoder of the content.
    fn content(self, expected: &'static str) -> Result<&'a mut Decoder<'de>, Error> {
        match self.has_content {
            true => Ok(self.decoder),
            false => Err(Error::invalid_type(Unexpected::UnitVariant, &expected)),
        }
    }
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((seed.deserialize(&mut *self.decoder)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        if self.has_content {
            let Token::Nil = self.decoder.token()? else {
                return Err(Error::TypeMismatch(self.decoder.marker));
            };
        }
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.content("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.content("tuple variant")?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.content("struct variant")?.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};
    use uuid::Uuid;

    use crate::encoding::{decode, decode_json};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Everything {
        id: u32,
        delta: i64,
        small: i8,
        share: f64,
        half: f32,
        is_there: bool,
        letter: char,
        name: String,
        note: Option<String>,
        nested: Option<Box<Everything>>,
        pairs: Vec<(u8, String)>,
        by_number: BTreeMap<u32, i16>,
        uuid: Uuid,
        kind: Kind,
        kinds: BTreeMap<Plain, Kind>,
        any: serde_json::Value,
        wrapped: Wrapped,
        unit: (),
        #[serde(flatten)]
        more: More,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct More {
        more: u64,
        tagged: Tagged,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Wrapped(Vec<u16>);

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    enum Plain {
        One,
        Two,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Unit,
        New(u32),
        Tuple(u8, String),
        Struct { a: i32, b: Option<bool> },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Empty,
        Full { size: u64 },
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Unit),
            any::<u32>().prop_map(Kind::New),
            any::<(u8, String)>().prop_map(|it| Kind::Tuple(it.0, it.1)),
            any::<(i32, Option<bool>)>().prop_map(|it| Kind::Struct { a: it.0, b: it.1 }),
        ]
    }

    fn everything() -> impl Strategy<Value = Everything> {
        let numbers = (any::<(u32, i64, i8, bool, char, u64)>(), -1e9_f64..1e9, -1e6_f32..1e6);
        let texts = (any::<String>(), any::<Option<String>>(), any::<u128>());
        let lists = (
            prop::collection::vec(any::<(u8, String)>(), 0..20),
            prop::collection::btree_map(any::<u32>(), any::<i16>(), 0..20),
            prop::collection::vec(any::<u16>(), 0..20),
            (kind(), kind(), any::<bool>()),
        );
        (numbers, texts, lists).prop_map(|(numbers, texts, lists)| {
            let (id, delta, small, is_there, letter, more) = numbers.0;
            let (kind, other, has_nested) = lists.3;
            let one = Everything {
                id,
                delta,
                small,
                share: numbers.1,
                half: numbers.2,
                is_there,
                letter,
                name: texts.0,
                note: texts.1,
                nested: None,
                pairs: lists.0,
                by_number: lists.1,
                uuid: Uuid::from_u128(texts.2),
                kind: kind.clone(),
                kinds: [(Plain::One, kind), (Plain::Two, other)].into(),
                any: serde_json::json!({ "a": [1, -2, 3.5, null, true, "x"], "b": { "c": delta } }),
                wrapped: Wrapped(lists.2),
                unit: (),
                more: More {
                    more,
                    tagged: if has_nested { Tagged::Full { size: more } } else { Tagged::Empty },
                },
            };
            let nested = has_nested.then(|| Box::new(one.clone()));
            Everything { nested, ..one }
        })
    }

    /// Compares with `rmp-serde`: the value, or the text of the error.
    fn compare<T: DeserializeOwned + Debug + PartialEq>(bytes: &[u8]) {
        let expected = rmp_serde::from_slice::<T>(bytes).map_err(|it| it.to_string());
        assert_eq!(decode::<T>(bytes).map_err(|it| it.to_string()), expected, "{bytes:02x?}");
    }

    proptest! {
        #[test]
        fn a_value_decodes_as_rmp_serde_does(value in everything(), cut in any::<prop::sample::Index>()) {
            let bytes = rmp_serde::to_vec_named(&value).unwrap();
            prop_assert_eq!(&decode::<Everything>(&bytes).unwrap(), &value);
            compare::<Everything>(&bytes[..cut.index(bytes.len())]);
        }

        #[test]
        fn a_value_from_json_is_the_same(value in everything()) {
            let text = serde_json::to_vec(&value).unwrap();
            let expected: Everything = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(decode_json::<Everything>(&text).unwrap(), expected);
        }

        #[test]
        fn bytes_that_are_damaged_never_panic(value in everything(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = rmp_serde::to_vec_named(&value).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = decode::<Everything>(&bytes);
        }
    }

    #[test]
    fn a_value_of_another_type_has_the_error_of_rmp_serde() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Named {
            id: u32,
        }
        let values = serde_json::json!([
            null, true, 7, 300, 70_000, 5_000_000_000_u64, -3, -300, -70_000, -5_000_000_000_i64, 2.5, "text", "Unit",
            [], [1, 2], {}, { "id": 3 }, { "id": "x" }, { "id": 3, "other": [{ "a": 1 }] }, { "New": 3 }, { "New": "x" },
            { "Unit": null }, { "Unit": 1 }, { "Other": 1 }, { "Tuple": [1, "x"] }, { "Tuple": [1] }, { "a": 1, "b": 2 },
        ]);
        for value in values.as_array().unwrap() {
            let bytes = rmp_serde::to_vec_named(value).unwrap();
            compare::<u8>(&bytes);
            compare::<i16>(&bytes);
            compare::<u64>(&bytes);
            compare::<f64>(&bytes);
            compare::<bool>(&bytes);
            compare::<char>(&bytes);
            compare::<String>(&bytes);
            compare::<Option<u32>>(&bytes);
            compare::<Vec<u32>>(&bytes);
            compare::<(u8, u8, u8)>(&bytes);
            compare::<BTreeMap<String, u32>>(&bytes);
            compare::<()>(&bytes);
            compare::<serde_json::Value>(&bytes);
            // Only `rmp-serde` reads variants by number, and structs without the names of fields.
            if !value.is_u64() {
                compare::<Kind>(&bytes);
                compare::<Plain>(&bytes);
            }
            if !value.is_array() {
                compare::<Tagged>(&bytes);
                compare::<Named>(&bytes);
            }
        }
        compare::<String>(&[0xa2, 0xff, 0xfe]);
        compare::<u32>(&[0xc1]);
        compare::<u32>(&[]);
        compare::<u32>(&[0xce, 1]);
        compare::<String>(&[0xa3, b'a']);
    }
}
