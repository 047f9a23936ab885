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

#[cfg(test)]
mod tests {
    use domain::secret::Secret;
    use serde_json::json;

    use super::*;
    use crate::rest::frame::record::{body, query};
    use crate::rest::frame::value::WebUrl;

    body! {
        /// One of each.
        Everything {
            /// A name.
            name: String [required(), chars_max(5)],
            /// A text that may be empty.
            note: Option<String> [blank()],
            /// As it was typed.
            number: u32 [at_least(1), at_most(10), also(&["no"])],
            /// With decimals.
            ratio: f64 [at_least(0)],
            /// Yes or no.
            flag: bool,
            /// An address.
            url: WebUrl,
            /// A few.
            ids: Vec<u32> [items_max(3)],
            /// A password.
            secret: Secret,
            /// Anything inside.
            extra: Map<String, Value>,
        }
    }

    query! {
        /// The same in an address.
        Question {
            /// A few.
            ids: Vec<u32> [items_max(3)],
            /// Yes or no.
            flag: bool,
            /// A text.
            text: String,
        }
    }

    fn read(body: Value) -> Result<Everything, Value> {
        Everything::of(&body, true).map_err(FieldErrors::into_json)
    }

    #[test]
    fn a_value_is_taken_as_clients_write_it() {
        let read = read(json!({
            "name": " a ", "note": "", "no": "7", "ratio": "0.5", "flag": "True", "url": "https://a.example/b c",
            "secret": " a ", "ids": [1, "2", 3.0], "extra": { "a": [1] }, "unknown": 1,
        }));
        let it = read.unwrap();
        assert_eq!((it.name.as_deref(), it.note, it.number), (Some("a"), Some(Some(String::new())), Some(7)));
        assert_eq!((it.ratio, it.flag, it.ids), (Some(0.5), Some(true), Some(vec![1, 2, 3])));
        assert_eq!(it.url, Some(WebUrl("https://a.example/b c".to_owned())));
        assert_eq!(it.secret, Some(Secret::new(" a ")), "white space around a password may be meant");
        assert_eq!(it.extra.map(Value::from), Some(json!({ "a": [1] })));
    }

    #[test]
    fn what_is_not_sent_is_not_there_and_null_is_a_value_only_where_it_may_be() {
        let it = read(json!({ "note": null })).unwrap();
        assert_eq!((it.name, it.note), (None, Some(None)));
        let fields = ["name", "number", "ratio", "flag", "url", "ids", "extra"];
        let nulls: Map<String, Value> = fields.iter().map(|it| ((*it).to_owned(), Value::Null)).collect();
        let errors = read(nulls.into()).unwrap_err();
        for field in fields {
            assert_eq!(errors[field], json!(["This field may not be null."]), "{field}");
        }
        assert_eq!(
            Everything::of(&json!({}), false).unwrap_err(),
            FieldErrors::of("name", "This field is required.")
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
    fn what_a_field_cannot_have_is_refused_in_words() {
        refused("name", [json!(1), json!([]), json!(true)], "Not a valid string.");
        refused("name", [json!("ääääää")], "Ensure this field has no more than 5 characters.");
        for value in [json!("x"), json!(1.5), json!(true), json!(1e300), json!({}), json!(""), json!("1.0")] {
            refused("number", [value], "A valid integer is required.");
        }
        refused("number", [json!(0), json!(-1)], "Ensure this value is greater than or equal to 1.");
        refused("number", [json!(11)], "Ensure this value is less than or equal to 10.");
        refused("ratio", [json!("NaN"), json!("inf"), json!([])], "A valid number is required.");
        refused("ratio", [json!(-0.1)], "Ensure this value is greater than or equal to 0.");
        refused("flag", [json!(1), json!("yes"), json!([])], "Must be a valid boolean.");
        let urls = ["ftp://a/b", "file:///etc/passwd", "a", "http://", "//a/b", "javascript:alert(1)"];
        refused("url", urls.map(Value::from), "Enter a valid URL.");
        refused("ids", [json!("1,2"), json!({}), json!(1)], "Expected a list of items.");
        refused("ids", [json!([1, 2, 3, 4])], "Ensure this field has no more than 3 elements.");
        refused("ids", [json!([1, null])], "Item 2: This field may not be null.");
        refused("ids", [json!([-1])], "Item 1: Ensure this value is greater than or equal to 0.");
        refused("extra", [json!([]), json!("{}")], "Not a valid object of names and values.");
    }

    #[test]
    fn of_an_array_all_are_good_or_none_is_taken() {
        let given = |body| Given { body, is_partial: true, ..Given::default() };
        let good = Many::<Everything, 2>::read(&given(json!([{ "name": "a" }, {}]))).unwrap();
        assert_eq!((good.0.len(), good.0[0].name.as_deref()), (2, Some("a")));
        let wrong = Many::<Everything, 2>::read(&given(json!([{ "flag": 1 }, { "flag": 1, "name": 1 }])));
        let errors = json!({
            "flag": ["Item 1: Must be a valid boolean.", "Item 2: Must be a valid boolean."],
            "name": ["Item 2: Not a valid string."],
        });
        assert_eq!(wrong.unwrap_err().into_json(), errors);
        let many = Many::<Everything, 2>::read(&given(json!([{}, {}, {}]))).unwrap_err();
        assert_eq!(many, FieldErrors::of(NO_FIELD, "Ensure this list has no more than 2 elements."));
        assert!(Many::<Everything, 2>::read(&given(json!({}))).is_err());
    }

    #[test]
    fn a_list_in_a_query_has_commas_or_comes_in_parts_and_nothing_is_nothing() {
        let ask = |text: &str| Question::read(&Given { query: Query::parse(text), ..Given::default() });
        let it = ask("ids=1,2&ids=3&flag=1&text=a+b%2Bc&x").unwrap();
        assert_eq!((it.ids, it.flag, it.text), (Some(vec![1, 2, 3]), Some(true), Some("a b+c".to_owned())));
        let it = ask("ids=&flag=&text=").unwrap();
        assert_eq!((it.ids, it.flag, it.text), (None, None, None));
        let errors = ask("ids=1,x&flag=maybe").unwrap_err().into_json();
        let expected = json!({
            "ids": ["Item 2: A valid integer is required."], "flag": ["Must be a valid boolean."],
        });
        assert_eq!(errors, expected);
    }
}
