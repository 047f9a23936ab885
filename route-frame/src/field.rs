//! One field of a body, an answer or a query: its name, type, limits and description.
//!
//! The derive macros of the crate `resource_derive` build tables of these. Reading, the schema and the generated tests
//! use the same table, so nothing about a field is declared twice.

use super::value::Shape;

/// One field of a body, an answer or a query.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    /// Other names that clients send. Read when the first name is absent; never in an answer.
    pub aliases: &'static [&'static str],
    /// Description in the schema.
    pub description: &'static str,
    pub kind: Kind,
    pub is_nullable: bool,
    pub place: Place,
    pub is_required: bool,
    /// Whether answers may leave the field out.
    pub may_be_absent: bool,
    /// Whether an empty text is accepted.
    pub may_be_blank: bool,
    pub chars_max: usize,
    pub least: Option<i64>,
    pub most: Option<i64>,
    /// Maximum number of items of a list.
    pub items_max: usize,
    /// Example in the schema: JSON, except that a text stands without its quotes.
    pub example: Option<&'static str>,
}

/// Part of the request or answer that contains a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Answers only; ignored in bodies.
    Read,
    /// Answers and bodies.
    Edit,
    /// Bodies only; never returned.
    Write,
    /// The query of the URL.
    Query,
}

/// Type of a field on the wire.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// A text that is an `http` or `https` URL.
    Url,
    Uuid,
    /// ISO 8601.
    Time,
    Flag,
    Integer,
    /// A number that may have decimals.
    Number,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// One of these numbers.
    NumberChoice(&'static [i64]),
    /// An object with any members.
    Object,
    /// Any JSON.
    Any,
    List(&'static Kind),
    /// An item of a list that may be `null`.
    Nullable(&'static Kind),
    /// Any of these types.
    Either(&'static [Kind]),
    /// An object with fields of its own.
    Record(&'static Record),
}

/// The fields of one object.
#[derive(Debug)]
pub struct Record {
    /// Name in the schema.
    pub name: &'static str,
    pub description: &'static str,
    pub fields: &'static [Field],
}

/// Default maximum length of a text, in characters.
pub const CHARS_MAX: usize = 4096;
/// Default maximum number of items of a list.
pub const ITEMS_MAX: usize = 100_000;

impl Field {
    /// Returns whether clients can call the field by this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Returns a field without rules.
    pub const fn new<T: Shape>(name: &'static str, description: &'static str, place: Place) -> Self {
        Field {
            name,
            aliases: &[],
            description,
            kind: T::KIND,
            is_nullable: T::IS_NULLABLE,
            place,
            is_required: false,
            may_be_absent: false,
            may_be_blank: false,
            chars_max: CHARS_MAX,
            least: None,
            most: None,
            items_max: ITEMS_MAX,
            example: None,
        }
    }

    /// Requires the field in a body that creates or replaces. Other fields keep their value when they are left out.
    pub const fn required(self) -> Self {
        Field { is_required: true, ..self }
    }

    /// Lets answers leave the field out. For interfaces whose clients take `null` for an error.
    pub const fn may_be_absent(self) -> Self {
        Field { may_be_absent: true, ..self }
    }

    /// Accepts an empty text.
    pub const fn blank(self) -> Self {
        Field { may_be_blank: true, ..self }
    }

    pub const fn chars_max(self, chars_max: usize) -> Self {
        Field { chars_max, ..self }
    }

    pub const fn at_least(self, least: i64) -> Self {
        Field { least: Some(least), ..self }
    }

    pub const fn at_most(self, most: i64) -> Self {
        Field { most: Some(most), ..self }
    }

    pub const fn items_max(self, items_max: usize) -> Self {
        Field { items_max, ..self }
    }

    /// Accepts other names in bodies.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Field { aliases, ..self }
    }

    pub const fn example(self, example: &'static str) -> Self {
        Field { example: Some(example), ..self }
    }

    pub fn is_in_bodies(&self) -> bool {
        matches!(self.place, Place::Edit | Place::Write)
    }

    pub fn is_in_answers(&self) -> bool {
        matches!(self.place, Place::Read | Place::Edit)
    }
}
