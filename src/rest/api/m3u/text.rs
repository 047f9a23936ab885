//! Texts of accounts with special rules of reading.

use domain::account::{PlaylistLocation, Rule};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::value::{Readable, Shape, Stored};
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;

use super::view::{M3UAccountRuleView, NewM3UAccountRule};

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
}

impl AccountType {
    pub(super) fn new(list: &PlaylistLocation) -> Self {
        if list.panel().is_some() { Self::Panel } else { Self::Standard }
    }
}

impl Shape for AccountType {
    const KIND: Kind = Kind::Choice(&["STD", "XC"]);
}

impl Readable for AccountType {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        match value.as_str() {
            Some("STD") => Ok(Self::Standard),
            Some("XC") => Ok(Self::Panel),
            _ => Err("This is not a valid choice. Choose one of: STD, XC.".to_owned()),
        }
    }
}

impl Readable for M3UAccountRuleView {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let new = NewM3UAccountRule::read_element(value, false).map_err(FieldErrors::first_message)?;
        Ok(M3UAccountRuleView { field: new.field, find: new.find, replace: new.replace })
    }
}

impl M3UAccountRuleView {
    pub(super) fn into_rule(self) -> Rule {
        Rule { field: self.field.0, find: self.find.0, replace: self.replace.0 }
    }
}

/// Returns the whole URL for admins, and its scheme and host for others. Returns nothing if the host is unknown.
pub(in crate::rest::api) fn shown_url(url: &SourceUrl, is_admin: bool) -> Option<String> {
    if is_admin {
        return Some(url.expose().to_owned());
    }
    // The printed form of a URL ends with an ellipsis.
    let printed = url.to_string();
    let host = printed.trim_end_matches('…');
    url::Url::parse(host).is_ok_and(|it| it.has_host()).then(|| host.to_owned())
}

/// Returns whether a text is an `http` or `https` address with a host.
pub(in crate::rest::api) fn is_web_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
}

/// Turns an error text into a sentence.
pub(in crate::rest::api) fn sentence(text: impl ToString) -> String {
    let text = text.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_ascii_uppercase());
    let end = if text.ends_with('.') { "" } else { "." };
    first.into_iter().chain(chars).chain(end.chars()).collect()
}
