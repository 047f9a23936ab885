//! What a field is: its name, its type, its limits and what it means.
//!
//! The tables that the macros of [`record`](super::record) make are made of these. Reading, the schema and the
//! generated tests all go by them, so nothing about a field is said twice.

/// One field of a body, of an answer or of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Other names under which clients send it. Read when the first name is not there; never in an answer.
    pub(crate) aliases: &'static [&'static str],
    /// For people; a sentence.
    pub(crate) meaning: &'static str,
    pub(crate) kind: Kind,
    pub(crate) is_nullable: bool,
    pub(crate) place: Place,
    pub(crate) is_required: bool,
    /// May the text be empty?
    pub(crate) may_be_blank: bool,
    pub(crate) chars_max: usize,
    pub(crate) least: Option<i64>,
    pub(crate) most: Option<i64>,
    /// Of a list.
    pub(crate) items_max: usize,
    /// Shown in the schema. JSON, except that a text stands without its quotes.
    pub(crate) example: Option<&'static str>,
}

/// Where a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In answers only; ignored when it is sent.
    Read,
    /// In answers and in bodies.
    Edit,
    /// In bodies only: never shown again.
    Write,
    /// In the query of the address.
    Query,
}

/// The type of a field on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    /// A text that is an `http` or `https` address.
    Url,
    Uuid,
    /// ISO 8601.
    Time,
    Flag,
    Integer,
    /// With decimals.
    Number,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// One of these numbers.
    NumberChoice(&'static [i64]),
    /// Names and values that nobody looks into.
    Object,
    /// Any JSON.
    Any,
    List(&'static Kind),
    /// Any of these.
    Either(&'static [Kind]),
    /// An object with fields of its own.
    Record(&'static Record),
}

/// The fields of one thing.
#[derive(Debug)]
pub(crate) struct Record {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) fields: &'static [Field],
}

/// Characters of a text whose field does not say otherwise.
pub(crate) const CHARS_MAX: usize = 4096;
/// Entries of a list whose field does not say otherwise.
pub(crate) const ITEMS_MAX: usize = 100_000;

impl Field {
    /// A field without rules. The `meaning` comes from a doc comment.
    pub(crate) const fn new<T: super::value::Shape>(
        name: &'static str,
        meaning: &'static str,
        place: Place,
    ) -> Self {
        Field {
            name,
            aliases: &[],
            meaning,
            kind: T::KIND,
            is_nullable: T::IS_NULLABLE,
            place,
            is_required: false,
            may_be_blank: false,
            chars_max: CHARS_MAX,
            least: None,
            most: None,
            items_max: ITEMS_MAX,
            example: None,
        }
    }

    /// Has to be there when something is created or replaced. The rest may be left out, and is then left as it is.
    pub(crate) const fn required(self) -> Self {
        Field { is_required: true, ..self }
    }

    /// An empty text is a value.
    pub(crate) const fn blank(self) -> Self {
        Field { may_be_blank: true, ..self }
    }

    pub(crate) const fn chars_max(self, chars_max: usize) -> Self {
        Field { chars_max, ..self }
    }

    pub(crate) const fn at_least(self, least: i64) -> Self {
        Field { least: Some(least), ..self }
    }

    pub(crate) const fn at_most(self, most: i64) -> Self {
        Field { most: Some(most), ..self }
    }

    pub(crate) const fn items_max(self, items_max: usize) -> Self {
        Field { items_max, ..self }
    }

    /// Other names under which it is taken.
    pub(crate) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Field { aliases, ..self }
    }

    pub(crate) const fn example(self, example: &'static str) -> Self {
        Field { example: Some(example), ..self }
    }

    pub(crate) fn is_in_bodies(&self) -> bool {
        matches!(self.place, Place::Edit | Place::Write)
    }

    pub(crate) fn is_in_answers(&self) -> bool {
        matches!(self.place, Place::Read | Place::Edit)
    }
}
