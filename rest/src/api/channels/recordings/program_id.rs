//! The id of a programme in bodies and answers.

use domain::recording::PROGRAMME_TEXT_CHARS_MAX;
use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The id of a programme: a number, or a text for generated programmes. The guide need not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramId(pub(super) String);

impl Shape for ProgramId {
    const KIND: Kind = Kind::Either(&[Kind::Integer, Kind::Text]);
}

impl Readable for ProgramId {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        if let Some(number) = value.as_u64() {
            return Ok(Self(number.to_string()));
        }
        let text = String::read(value, field).map_err(|_| "Not a valid id of a programme.")?;
        match text.chars().count() <= PROGRAMME_TEXT_CHARS_MAX {
            true => Ok(Self(text)),
            false => Err("Not a valid id of a programme.".to_owned()),
        }
    }
}

impl Serialize for ProgramId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.parse::<u64>() {
            Ok(number) if number.to_string() == self.0 => serializer.serialize_u64(number),
            _ => serializer.serialize_str(&self.0),
        }
    }
}
