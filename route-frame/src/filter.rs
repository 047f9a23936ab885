//! The filters of a list as an object in a body, for operations on everything that the list shows.

use std::sync::Arc;

use domain::query::Query;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;

use super::input::{Input, RequestInput};

/// Name of the field that contains the filters.
const FIELD: &str = "filter";

/// Reads the filters of a list. An unknown name is refused, because a misspelled filter would select everything.
pub fn read_filter<F: Input>(filter: &Map<String, Value>) -> Result<F, FieldErrors> {
    let known: Vec<&str> = F::inputs().query.iter().map(|it| it.name).collect();
    let mut errors = FieldErrors::default();
    let mut pairs = Vec::new();
    for (name, value) in filter {
        if !known.contains(&name.as_str()) {
            let name: String = name.chars().take(100).collect();
            errors.add(FIELD, format!("There is no filter \"{name}\". Choose from: {}.", known.join(", ")));
            continue;
        }
        match text_of(value) {
            Some(text) => pairs.push((name.clone(), text)),
            None => errors
                .add(FIELD, format!("{name}: Expected a text, a number, true or false, or a list of these.")),
        }
    }
    errors.or(())?;
    let input = RequestInput { query: Arc::new(Query::from_pairs(pairs)), ..RequestInput::default() };
    F::read(&input).map_err(|errors| errors.inside(FIELD))
}

/// Returns a value as it would be written in a query.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(it) => Some(it.to_string()),
        Value::Number(it) => Some(it.to_string()),
        Value::String(it) => Some(it.clone()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|it| if it.is_array() { None } else { text_of(it) }).collect();
            texts.map(|it| it.join(","))
        }
        Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use resource_derive::Query;
    use serde_json::json;

    use super::*;

    /// Filters of a list.
    #[derive(Debug, Query)]
    struct Filters {
        /// A list.
        #[field(items_max = 3)]
        ids: Option<Vec<u32>>,
        /// A flag.
        flag: Option<bool>,
        /// A text.
        text: Option<String>,
    }

    fn read(filter: Value) -> Result<Filters, Value> {
        read_filter(filter.as_object().unwrap()).map_err(FieldErrors::into_json)
    }

    #[test]
    fn filters_in_a_body_are_read_like_those_in_a_query() {
        let it = read(json!({ "ids": [1, "2"], "flag": true, "text": "a b" })).unwrap();
        assert_eq!((it.ids, it.flag, it.text.as_deref()), (Some(vec![1, 2]), Some(true), Some("a b")));
        let it = read(json!({ "ids": "3", "text": null })).unwrap();
        assert_eq!((it.ids, it.flag, it.text), (Some(vec![3]), None, None));
    }

    #[test]
    fn an_unknown_filter_is_refused_and_not_ignored() {
        let errors = read(json!({ "names": "a" })).unwrap_err();
        assert_eq!(
            errors,
            json!({ "filter": ["There is no filter \"names\". Choose from: ids, flag, text."] })
        );
        let errors = read(json!({ "ids": [1, 2, 3, 4], "flag": {} })).unwrap_err();
        let message = "flag: Expected a text, a number, true or false, or a list of these.";
        assert_eq!(errors, json!({ "filter": [message] }));
        let errors = read(json!({ "ids": [1, 2, 3, 4] })).unwrap_err();
        assert_eq!(errors, json!({ "filter": ["ids: Ensure this field has no more than 3 elements."] }));
    }
}
