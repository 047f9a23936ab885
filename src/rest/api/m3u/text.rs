//! Texts of accounts that are read in a way of their own.

use domain::account::Rule;
use domain::secret::Secret;
use serde::Serialize;
use serde_json::Value;

use super::view::{M3UAccountRule, M3UAccountRuleEdit};
use crate::rest::frame::field::{Field, Kind};
use crate::rest::frame::input::{Element, FieldErrors};
use crate::rest::frame::value::{Readable, Shape};

/// A text whose white space counts, such as a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Exact(pub(crate) String);

impl Shape for Exact {
    const KIND: Kind = Kind::Text;
}

impl Readable for Exact {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        Secret::read(value, field).map(|it| Exact(it.expose().to_owned()))
    }
}

/// `STD`: the only kind of account there is today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum AccountType {
    #[serde(rename = "STD")]
    Standard,
}

impl Shape for AccountType {
    const KIND: Kind = Kind::Choice(&["STD"]);
}

impl Readable for AccountType {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        match value.as_str() {
            Some("STD") => Ok(Self::Standard),
            Some("XC") => {
                Err("Panel accounts are not supported yet; give the address of the account's playlist."
                    .to_owned())
            }
            _ => Err("This is not a valid choice. Choose one of: STD.".to_owned()),
        }
    }
}

impl Readable for M3UAccountRule {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let M3UAccountRuleEdit { field, find, replace } =
            M3UAccountRuleEdit::of(value, false).map_err(in_one_sentence)?;
        match (field, find, replace) {
            (Some(field), Some(find), Some(replace)) => Ok(M3UAccountRule { field, find, replace }),
            _ => Err("A rule has field, find and replace.".to_owned()),
        }
    }
}

impl M3UAccountRule {
    pub(super) fn of(rule: &Rule) -> Self {
        M3UAccountRule {
            field: crate::rest::frame::value::Named(rule.field),
            find: Exact(rule.find.clone()),
            replace: Exact(rule.replace.clone()),
        }
    }

    pub(super) fn rule(self) -> Rule {
        Rule { field: self.field.0, find: self.find.0, replace: self.replace.0 }
    }
}

/// What is wrong with a thing within a field, where there is room for one text.
fn in_one_sentence(errors: FieldErrors) -> String {
    let errors = errors.into_json();
    let first = errors.as_object().and_then(|it| it.iter().next());
    match first.and_then(|(field, messages)| Some((field, messages.get(0)?.as_str()?))) {
        Some((field, message)) if field == crate::rest::frame::input::NO_FIELD => message.to_owned(),
        Some((field, message)) => format!("{field}: {message}"),
        None => "This is not valid.".to_owned(),
    }
}

/// A sentence of another room as one of the interface.
pub(super) fn sentence(text: impl ToString) -> String {
    let text = text.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_ascii_uppercase());
    let end = if text.ends_with('.') { "" } else { "." };
    first.into_iter().chain(chars).chain(end.chars()).collect()
}
