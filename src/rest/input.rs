//! What a handler is given of a request, read and checked before it runs.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::field::{Field, Record};
use super::value::Readable;

/// A type that a handler takes. The macros of [`record`](super::record) implement it.
pub(crate) trait Input: Sized + Send + 'static {
    /// What the table of routes says about it.
    fn inputs() -> Inputs;

    /// Reads it, or says for each field what is wrong.
    fn read(given: &Given) -> Result<Self, FieldErrors>;
}

/// Which parts of a request are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) query: Vec<Field>,
    pub(crate) body: Option<BodyShape>,
    pub(crate) is_paged: bool,
}

/// What a body consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyShape {
    One(&'static Record),
    /// An array of at most so many.
    Many(&'static Record, usize),
}

/// What the client sent.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) query: Query,
    /// `{}` where nothing was sent.
    pub(crate) body: Value,
    /// Only what is there counts: PATCH.
    pub(crate) is_partial: bool,
}

/// For each field what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldErrors(BTreeMap<String, Vec<String>>);

/// The key of what is wrong with no field in particular.
pub(crate) const NO_FIELD: &str = "non_field_errors";

impl FieldErrors {
    pub(crate) fn of(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut errors = Self::default();
        errors.add(field, message);
        errors
    }

    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.entry(field.into()).or_default().push(message.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn append(&mut self, other: Self) {
        for (field, messages) in other.0 {
            self.0.entry(field).or_default().extend(messages);
        }
    }

    /// The same with other words.
    pub(crate) fn each(self, words: impl Fn(&str) -> String) -> Self {
        let of_field =
            |(field, messages): (String, Vec<String>)| (field, messages.iter().map(|it| words(it)).collect());
        FieldErrors(self.0.into_iter().map(of_field).collect())
    }

    pub(crate) fn into_json(self) -> Value {
        self.0
            .into_iter()
            .map(|(field, messages)| (field, Value::from(messages)))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// The query of an address, decoded. Of a name that comes twice both values are there.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Bytes that are no text become the sign for that. `+` is a space, as forms write it.
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |it: &str| percent_decode_str(&it.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pair = |it: &str| {
            let (name, value) = it.split_once('=').unwrap_or((it, ""));
            (decode(name), decode(value))
        };
        Query { pairs: text.split('&').filter(|it| !it.is_empty()).map(pair).collect() }
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// The value of a name; several are joined by commas. An empty one is as good as none.
    fn get(&self, name: &str) -> Option<String> {
        let values = self.pairs.iter().filter(|it| it.0 == name && !it.1.is_empty()).map(|it| it.1.as_str());
        let values: Vec<&str> = values.collect();
        (!values.is_empty()).then(|| values.join(","))
    }
}

/// Reads field after field and remembers what is wrong.
pub(crate) struct Reader<'a> {
    fields: &'a [Field],
    source: Source<'a>,
    errors: FieldErrors,
}

enum Source<'a> {
    Body { values: &'a Map<String, Value>, is_partial: bool },
    Query(&'a Query),
}

impl<'a> Reader<'a> {
    /// For a body, which has to be an object.
    pub(crate) fn of_body(
        value: &'a Value,
        is_partial: bool,
        record: &'a Record,
    ) -> Result<Self, FieldErrors> {
        let values = value
            .as_object()
            .ok_or_else(|| FieldErrors::of(NO_FIELD, "Invalid data. Expected an object."))?;
        let source = Source::Body { values, is_partial };
        Ok(Reader { fields: record.fields, source, errors: FieldErrors::default() })
    }

    pub(crate) fn of_query(query: &'a Query, record: &'a Record) -> Self {
        Reader { fields: record.fields, source: Source::Query(query), errors: FieldErrors::default() }
    }

    /// The field of this name, if it was sent. What is wrong with it is found in [`Reader::done`].
    pub(crate) fn take<T: Readable>(&mut self, name: &'static str) -> Option<T> {
        let name = name.trim_start_matches("r#");
        let field = self.fields.iter().find(|it| it.name == name)?;
        match read(&self.source, field) {
            Ok(read) => read,
            Err(message) => {
                self.errors.add(name, message);
                None
            }
        }
    }

    /// What was read, if nothing is wrong.
    pub(crate) fn done<T>(self, read: T) -> Result<T, FieldErrors> {
        if self.errors.is_empty() { Ok(read) } else { Err(self.errors) }
    }
}

fn read<T: Readable>(source: &Source<'_>, field: &Field) -> Result<Option<T>, String> {
    let text;
    let (value, has_to_be_there) = match source {
        Source::Body { values, is_partial } => {
            let names = std::iter::once(&field.name).chain(field.aliases);
            (names.filter_map(|it| values.get(*it)).next(), field.is_required && !is_partial)
        }
        Source::Query(query) => {
            text = query.get(field.name).map(Value::from);
            (text.as_ref(), field.is_required)
        }
    };
    match value {
        None if has_to_be_there => Err("This field is required.".to_owned()),
        None => Ok(None),
        Some(Value::Null) if !T::IS_NULLABLE => Err("This field may not be null.".to_owned()),
        Some(value) => T::read(value, field).map(Some),
    }
}

impl Input for () {
    fn inputs() -> Inputs {
        Inputs::default()
    }

    fn read(_: &Given) -> Result<Self, FieldErrors> {
        Ok(())
    }
}

/// Both, such as filters and a page; what is wrong with either is told at once.
impl<A: Input, B: Input> Input for (A, B) {
    fn inputs() -> Inputs {
        let (mut both, other) = (A::inputs(), B::inputs());
        both.query.extend(other.query);
        both.body = both.body.or(other.body);
        both.is_paged |= other.is_paged;
        both
    }

    fn read(given: &Given) -> Result<Self, FieldErrors> {
        match (A::read(given), B::read(given)) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (Err(mut errors), Err(others)) => {
                errors.append(others);
                Err(errors)
            }
            (Err(errors), Ok(_)) | (Ok(_), Err(errors)) => Err(errors),
        }
    }
}

/// A body that can be one of an array.
pub(crate) trait Element: Input {
    const RECORD: &'static Record;

    fn of(value: &Value, is_partial: bool) -> Result<Self, FieldErrors>;
}

/// An array of bodies, of which all are good or none is taken.
#[derive(Debug)]
pub(crate) struct Many<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T: Element, const MAX: usize> Input for Many<T, MAX> {
    fn inputs() -> Inputs {
        Inputs { body: Some(BodyShape::Many(T::RECORD, MAX)), ..Inputs::default() }
    }

    fn read(given: &Given) -> Result<Self, FieldErrors> {
        let wrong = |message: String| FieldErrors::of(NO_FIELD, message);
        let items = given.body.as_array().ok_or_else(|| wrong("Expected a list of items.".to_owned()))?;
        if items.len() > MAX {
            return Err(wrong(format!("Ensure this list has no more than {MAX} elements.")));
        }
        let mut errors = FieldErrors::default();
        let mut read = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            match T::of(item, given.is_partial) {
                Ok(item) => read.push(item),
                Err(of_item) => errors.append(of_item.each(|it| format!("Item {}: {it}", n + 1))),
            }
        }
        if errors.is_empty() { Ok(Many(read)) } else { Err(errors) }
    }
}
