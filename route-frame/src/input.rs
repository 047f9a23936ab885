//! Input of a handler: query parameters and bodies, read and checked before the handler runs.

use std::borrow::Cow;
use std::iter;
use std::sync::Arc;

use domain::query::Query;
use serde_json::{Map, Value};
use server::field_errors::{FieldErrors, NO_FIELD, REQUIRED};

use super::field::{Field, Record};
use super::upload::Upload;
use super::value::Readable;

/// A type that a handler takes. The derive macros `Body` and `Query` implement it.
pub trait Input: Sized + Send + 'static {
    /// Describes the input for the table of routes.
    fn inputs() -> Inputs;

    /// Reads the input, or returns the errors of each field.
    fn read(input: &RequestInput) -> Result<Self, FieldErrors>;
}

/// The parts of a request that a handler reads.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub query: Vec<Field>,
    pub body: Option<BodyShape>,
    pub file: Option<FileInput>,
    pub is_paged: bool,
}

impl Inputs {
    /// Returns the inputs of a handler that reads these parameters of the query.
    pub fn query(record: &Record) -> Self {
        Inputs { query: record.fields.to_vec(), ..Inputs::default() }
    }

    /// Returns the inputs of a handler that reads a body.
    fn body(shape: BodyShape) -> Self {
        Inputs { body: Some(shape), ..Inputs::default() }
    }

    /// Returns the inputs of a handler that reads both.
    fn and(mut self, other: Self) -> Self {
        self.query.extend(other.query);
        self.body = match (self.body, other.body) {
            (Some(body), Some(other)) => Some(body.and(other)),
            (body, other) => body.or(other),
        };
        self.file = self.file.or(other.file);
        self.is_paged |= other.is_paged;
        self
    }

    /// Returns whether the body of a request is read.
    pub fn has_body(&self) -> bool {
        self.body.is_some() || self.file.is_some()
    }
}

/// Maximum number of unknown members of a body that an answer names.
const UNKNOWN_MAX: usize = 10;

/// Whether a request must contain a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileInput {
    Required,
    Optional,
}

/// Structure of a body.
#[derive(Clone, Copy, Debug)]
pub enum BodyShape {
    One(&'static Record),
    /// An object with the fields of both.
    Both(&'static Record, &'static Record),
    /// An array with this maximum number of items.
    Many(&'static Record, usize),
}

impl BodyShape {
    /// Returns the objects of a body: itself, or its items.
    fn objects(self, body: &Value) -> impl Iterator<Item = &Map<String, Value>> {
        let objects = match self {
            Self::One(_) | Self::Both(..) => std::slice::from_ref(body),
            Self::Many(..) => body.as_array().map(Vec::as_slice).unwrap_or_default(),
        };
        objects.iter().filter_map(Value::as_object)
    }

    /// Returns the names of the declared fields that a body contains.
    pub(super) fn sent_fields(self, body: &Value) -> Vec<&'static str> {
        let is_sent =
            |field: &&Field| self.objects(body).any(|it| it.keys().any(|name| field.has_name(name)));
        self.fields().filter(|it| it.is_in_bodies()).filter(is_sent).map(|it| it.name).collect()
    }

    /// Returns the members of a body that are not fields, at most [`UNKNOWN_MAX`]. `shown` are the fields of the answer:
    /// clients send whole records back, whose other fields cannot be changed.
    pub(super) fn unknown_members<'a>(self, body: &'a Value, shown: &[Field]) -> Vec<&'a str> {
        let is_known = |name: &str| {
            self.fields().any(|it| it.has_name(name)) || shown.iter().any(|it| it.has_name(name))
        };
        let mut unknown: Vec<&str> = Vec::new();
        for name in self.objects(body).flat_map(Map::keys) {
            if unknown.len() == UNKNOWN_MAX {
                break;
            }
            if !unknown.contains(&name.as_str()) && !is_known(name) {
                unknown.push(name);
            }
        }
        unknown
    }

    /// Refuses a change whose body has members, none of which is a field: it would change nothing, and usually contains a
    /// misspelled name. Beside a field, other members are ignored, because clients send whole records back.
    pub(super) fn check_any_field(self, body: &Value) -> Result<(), FieldErrors> {
        let (Self::One(_) | Self::Both(..), Some(members)) = (self, body.as_object()) else { return Ok(()) };
        let is_field = |name: &String| self.fields().any(|it| it.has_name(name));
        if members.keys().any(is_field) {
            return Ok(());
        }
        let mut errors = FieldErrors::default();
        for name in members.keys() {
            errors.add(name.as_str(), "There is no such field.");
        }
        errors.or(())
    }

    /// Returns the fields of an object.
    pub fn fields(self) -> impl Iterator<Item = &'static Field> {
        let (record, other): (_, &[Field]) = match self {
            Self::One(record) | Self::Many(record, _) => (record, &[]),
            Self::Both(record, other) => (record, other.fields),
        };
        record.fields.iter().chain(other)
    }

    /// Returns the structure with the fields of another body. Only objects can be combined; of an array and another
    /// body the first one counts.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::One(record), Self::One(other)) => Self::Both(record, other),
            _ => self,
        }
    }
}

/// Decoded query and body of a request, which may contain credentials and do not print themselves.
#[derive(Default)]
pub struct RequestInput {
    pub query: Arc<Query>,
    /// `{}` if the request has no body.
    pub body: Value,
    pub file: Option<Upload>,
    /// Whether required fields may be left out: PATCH.
    pub is_partial: bool,
}

/// Reads one field after another and collects the errors.
pub struct Reader<'a> {
    fields: &'a [Field],
    source: Source<'a>,
    errors: FieldErrors,
}

enum Source<'a> {
    Body { values: &'a Map<String, Value>, is_partial: bool },
    Query(&'a Query),
}

impl<'a> Reader<'a> {
    /// Returns a reader of a body, which must be an object.
    pub fn from_body(value: &'a Value, is_partial: bool, record: &'a Record) -> Result<Self, FieldErrors> {
        let values = value
            .as_object()
            .ok_or_else(|| FieldErrors::new(NO_FIELD, "Invalid data. Expected an object."))?;
        let source = Source::Body { values, is_partial };
        Ok(Reader { fields: record.fields, source, errors: FieldErrors::default() })
    }

    pub fn from_query(query: &'a Query, record: &'a Record) -> Self {
        Reader { fields: record.fields, source: Source::Query(query), errors: FieldErrors::default() }
    }

    /// Returns the field of this name if it was sent and is valid. [`Reader::finish`] returns the errors.
    pub fn take<T: Readable>(&mut self, name: &'static str) -> Option<T> {
        let (value, field) = self.sent(name, T::IS_NULLABLE)?;
        match T::read(&value, field) {
            Ok(read) => Some(read),
            Err(message) => {
                self.errors.add(name, message);
                None
            }
        }
    }

    /// Returns the value of a field if it was sent, and is null only if it may be.
    fn sent(&mut self, name: &str, is_nullable: bool) -> Option<(Cow<'a, Value>, &'a Field)> {
        let field = self.fields.iter().find(|it| it.name == name)?;
        let (value, is_required) = match &self.source {
            Source::Body { values, is_partial } => {
                let names = iter::once(&field.name).chain(field.aliases);
                let value = names.filter_map(|it| values.get(*it)).next();
                (value.map(Cow::Borrowed), field.is_required && !is_partial)
            }
            Source::Query(query) => {
                (query.joined(field.name).map(|it| Cow::Owned(Value::from(it))), field.is_required)
            }
        };
        match value {
            None if is_required => self.errors.add(name, REQUIRED),
            Some(value) if value.is_null() && !is_nullable => {
                self.errors.add(name, "This field may not be null.");
            }
            value => return value.map(|it| (it, field)),
        }
        None
    }

    /// Returns the collected errors, if any.
    pub fn finish(self) -> Result<(), FieldErrors> {
        self.errors.or(())
    }
}

/// Returns the value of a field that has to be sent, or the error that it was not.
pub fn required<T>(name: &str, value: Option<T>) -> Result<T, FieldErrors> {
    value.ok_or_else(|| FieldErrors::required(name))
}

impl Input for () {
    fn inputs() -> Inputs {
        Inputs::default()
    }

    fn read(_: &RequestInput) -> Result<Self, FieldErrors> {
        Ok(())
    }
}

/// Reads both, such as filters and a page, or two parts of a body, and returns the errors of both at once.
impl<A: Input, B: Input> Input for (A, B) {
    fn inputs() -> Inputs {
        A::inputs().and(B::inputs())
    }

    fn read(input: &RequestInput) -> Result<Self, FieldErrors> {
        match (A::read(input), B::read(input)) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (Err(mut errors), Err(others)) => {
                errors.append(others);
                Err(errors)
            }
            (Err(errors), Ok(_)) | (Ok(_), Err(errors)) => Err(errors),
        }
    }
}

/// A body, or one element of a body that is an array.
pub trait Element: Sized + Send + 'static {
    const RECORD: &'static Record;

    fn read_element(value: &Value, is_partial: bool) -> Result<Self, FieldErrors>;
}

impl<T: Element> Input for T {
    fn inputs() -> Inputs {
        Inputs::body(BodyShape::One(T::RECORD))
    }

    fn read(input: &RequestInput) -> Result<Self, FieldErrors> {
        T::read_element(&input.body, input.is_partial)
    }
}

/// An array of bodies. One invalid element refuses all of them.
#[derive(Debug)]
pub struct Many<T, const MAX: usize>(pub Vec<T>);

impl<T: Element, const MAX: usize> Input for Many<T, MAX> {
    fn inputs() -> Inputs {
        Inputs::body(BodyShape::Many(T::RECORD, MAX))
    }

    fn read(input: &RequestInput) -> Result<Self, FieldErrors> {
        let wrong = |message: String| FieldErrors::new(NO_FIELD, message);
        let items = input.body.as_array().ok_or_else(|| wrong("Expected a list of items.".to_owned()))?;
        if items.len() > MAX {
            return Err(wrong(format!("Ensure this list has no more than {MAX} elements.")));
        }
        let mut errors = FieldErrors::default();
        let mut read = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            match T::read_element(item, input.is_partial) {
                Ok(item) => read.push(item),
                Err(of_item) => errors.append(of_item.map(|it| format!("Item {}: {it}", n + 1))),
            }
        }
        errors.or(Many(read))
    }
}

#[cfg(test)]
mod tests {
    use domain::secret::Secret;
    use resource_derive::{Body, Query, View};
    use serde::Serialize;
    use serde_json::json;

    use super::*;
    use crate::value::{WebUrl, WriteOnly};

    /// One field of each type.
    #[derive(Clone, Debug, Serialize, View)]
    #[resource(new = NewEverything, edit = EverythingEdit)]
    struct EverythingView {
        /// A name.
        #[field(required, chars_max = 5)]
        name: String,
        /// A text that may be empty.
        #[field(edit, blank)]
        note: Option<String>,
        /// A number.
        #[field(edit, at_least = 1, at_most = 10, aliases = &["no"])]
        number: u32,
        /// A number with decimals.
        #[field(edit, at_least = 0)]
        ratio: f64,
        /// A flag.
        #[field(edit)]
        flag: bool,
        /// An address.
        #[field(edit)]
        url: WebUrl,
        /// A list.
        #[field(edit, items_max = 3)]
        ids: Vec<u32>,
        /// A password.
        #[field(write_only)]
        #[serde(skip)]
        secret: WriteOnly<Secret>,
        /// An object.
        #[field(edit)]
        extra: Map<String, Value>,
    }

    /// Query parameters.
    #[derive(Debug, Query)]
    struct Parameters {
        /// A list.
        #[field(items_max = 3)]
        ids: Option<Vec<u32>>,
        /// A flag.
        flag: Option<bool>,
        /// A text.
        text: Option<String>,
    }

    /// A body of its own.
    #[derive(Debug, Body)]
    struct Action {
        /// A required number.
        id: u32,
        /// An optional flag.
        force: Option<bool>,
    }

    fn read(body: Value) -> Result<EverythingEdit, Value> {
        EverythingEdit::read_element(&body, true).map_err(FieldErrors::into_json)
    }

    #[test]
    fn values_are_accepted_in_the_forms_that_clients_send() {
        let read = read(json!({
            "name": " a ", "note": "", "no": "7", "ratio": "0.5", "flag": "True", "url": "https://a.example/b c",
            "secret": " a ", "ids": [1, "2", 3.0], "extra": { "a": [1] }, "unknown": 1,
        }));
        let it = read.unwrap();
        assert_eq!((it.name.as_deref(), it.note, it.number), (Some("a"), Some(Some(String::new())), Some(7)));
        assert_eq!((it.ratio, it.flag, it.ids), (Some(0.5), Some(true), Some(vec![1, 2, 3])));
        assert_eq!(it.url, Some(WebUrl("https://a.example/b c".to_owned())));
        assert_eq!(it.secret, Some(Secret::new(" a ")), "white space around a password is kept");
        assert_eq!(it.extra.map(Value::from), Some(json!({ "a": [1] })));
    }

    #[test]
    fn a_missing_field_is_none_and_null_is_accepted_only_by_nullable_fields() {
        let it = read(json!({ "note": null })).unwrap();
        assert_eq!((it.name, it.note), (None, Some(None)));
        let fields = ["name", "number", "ratio", "flag", "url", "ids", "extra"];
        let nulls: Map<String, Value> = fields.iter().map(|it| ((*it).to_owned(), Value::Null)).collect();
        let errors = read(nulls.into()).unwrap_err();
        for field in fields {
            assert_eq!(errors[field], json!(["This field may not be null."]), "{field}");
        }
        assert_eq!(
            EverythingEdit::read_element(&json!({}), false).unwrap_err(),
            FieldErrors::new("name", "This field is required.")
        );
    }

    #[track_caller]
    fn refused(field: &str, values: impl IntoIterator<Item = Value>, message: &str) {
        for value in values {
            let errors = read(json!({ field: value })).unwrap_err();
            assert_eq!(errors, json!({ field: [message] }), "{value}");
        }
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_message_for_its_field() {
        refused("name", [json!(1), json!([]), json!(true)], "Expected a text.");
        refused("name", [json!("ääääää")], "Ensure this field has no more than 5 characters.");
        for value in [json!("x"), json!(1.5), json!(true), json!(1e300), json!({}), json!(""), json!("1.0")] {
            refused("number", [value], "A valid integer is required.");
        }
        refused("number", [json!(0), json!(-1)], "Ensure this value is greater than or equal to 1.");
        refused("number", [json!(11)], "Ensure this value is less than or equal to 10.");
        refused("ratio", [json!("NaN"), json!("inf"), json!([])], "Expected a number, such as 1.5.");
        refused("ratio", [json!(-0.1)], "Ensure this value is greater than or equal to 0.");
        refused("flag", [json!(1), json!("yes"), json!([])], "Expected true or false.");
        let urls = ["ftp://a/b", "file:///etc/passwd", "a", "http://", "//a/b", "javascript:alert(1)"];
        refused("url", urls.map(Value::from), "Enter a valid URL.");
        refused("ids", [json!("1,2"), json!({}), json!(1)], "Expected a list of items.");
        refused("ids", [json!([1, 2, 3, 4])], "Ensure this field has no more than 3 elements.");
        refused("ids", [json!([1, null])], "Item 2: This field may not be null.");
        refused("ids", [json!([-1])], "Item 1: Ensure this value is greater than or equal to 0.");
        refused("extra", [json!([]), json!("{}")], "Expected an object of names and values.");
    }

    #[test]
    fn one_invalid_element_refuses_the_whole_array() {
        let input = |body| RequestInput { body, is_partial: true, ..RequestInput::default() };
        let good = Many::<EverythingEdit, 2>::read(&input(json!([{ "name": "a" }, {}]))).unwrap();
        assert_eq!((good.0.len(), good.0[0].name.as_deref()), (2, Some("a")));
        let wrong = Many::<EverythingEdit, 2>::read(&input(json!([{ "flag": 1 }, { "flag": 1, "name": 1 }])));
        let errors = json!({
            "flag": ["Item 1: Expected true or false.", "Item 2: Expected true or false."],
            "name": ["Item 2: Expected a text."],
        });
        assert_eq!(wrong.unwrap_err().into_json(), errors);
        let many = Many::<EverythingEdit, 2>::read(&input(json!([{}, {}, {}]))).unwrap_err();
        assert_eq!(many, FieldErrors::new(NO_FIELD, "Ensure this list has no more than 2 elements."));
        assert!(Many::<EverythingEdit, 2>::read(&input(json!({}))).is_err());
    }

    #[test]
    fn a_list_in_a_query_is_separated_by_commas_or_repeated_and_an_empty_value_is_ignored() {
        let ask = |text: &str| {
            Parameters::read(&RequestInput { query: Arc::new(Query::parse(text)), ..RequestInput::default() })
        };
        let it = ask("ids=1,2&ids=3&flag=1&text=a+b%2Bc&x").unwrap();
        assert_eq!((it.ids, it.flag, it.text), (Some(vec![1, 2, 3]), Some(true), Some("a b+c".to_owned())));
        let it = ask("ids=&flag=&text=").unwrap();
        assert_eq!((it.ids, it.flag, it.text), (None, None, None));
        let errors = ask("ids=1,x&flag=maybe").unwrap_err().into_json();
        let expected = json!({
            "ids": ["Item 2: A valid integer is required."], "flag": ["Expected true or false."],
        });
        assert_eq!(errors, expected);
    }

    #[test]
    fn a_new_object_has_plain_types_for_required_fields_and_becomes_an_edit() {
        let new = NewEverything::read_element(&json!({ "name": "a", "number": 2 }), false).unwrap();
        assert_eq!((new.name.as_str(), new.number, new.flag), ("a", Some(2), None));
        let edit = EverythingEdit::from(new);
        assert_eq!((edit.name.as_deref(), edit.number), (Some("a"), Some(2)));
        let missing = FieldErrors::new("name", "This field is required.");
        for is_partial in [true, false] {
            assert_eq!(NewEverything::read_element(&json!({}), is_partial).unwrap_err(), missing);
        }
    }

    #[test]
    fn a_body_requires_the_fields_that_are_not_optional() {
        let action = Action::read_element(&json!({ "id": 7 }), false).unwrap();
        assert_eq!((action.id, action.force), (7, None));
        let errors = Action::read_element(&json!({ "force": 1 }), false).unwrap_err().into_json();
        let expected = json!({ "id": ["This field is required."], "force": ["Expected true or false."] });
        assert_eq!(errors, expected);
    }

    #[test]
    fn a_write_only_field_is_in_no_answer() {
        let view = EverythingView {
            name: "a".to_owned(),
            note: None,
            number: 1,
            ratio: 0.0,
            flag: true,
            url: WebUrl("http://a.example".to_owned()),
            ids: Vec::new(),
            secret: WriteOnly::HIDDEN,
            extra: Map::new(),
        };
        assert_eq!(serde_json::to_value(view).unwrap().get("secret"), None);
    }
}
