//! Texts of accounts with special rules of reading.

use domain::account::PlaylistLocation;
use domain::secret::Secret;
use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape, Stored};
use serde::Serialize;
use serde_json::Value;

/// A text with significant white space, such as a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Exact(pub(crate) String);

impl Stored<String> for Exact {
    fn from_stored(value: &String) -> Self {
        Exact(value.clone())
    }

    fn into_stored(self) -> String {
        self.0
    }
}

impl Shape for Exact {
    const KIND: Kind = Kind::Text;
}

impl Readable for Exact {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        Secret::read(value, field).map(|it| Exact(it.expose().to_owned()))
    }
}

/// Type of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum AccountType {
    #[serde(rename = "STD")]
    Standard,
    #[serde(rename = "XC")]
    Panel,
    #[serde(rename = "STALKER")]
    Portal,
}

impl AccountType {
    pub(super) fn new(list: &PlaylistLocation) -> Self {
        match list {
            PlaylistLocation::Panel(_) => Self::Panel,
            PlaylistLocation::Portal(_) => Self::Portal,
            _ => Self::Standard,
        }
    }
}

impl Shape for AccountType {
    const KIND: Kind = Kind::Choice(&["STD", "XC", "STALKER"]);
}

impl Readable for AccountType {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        match value.as_str() {
            Some("STD") => Ok(Self::Standard),
            Some("XC") => Ok(Self::Panel),
            Some("STALKER") => Ok(Self::Portal),
            _ => Err("This is not a valid choice. Choose one of: STD, XC, STALKER.".to_owned()),
        }
    }
}
