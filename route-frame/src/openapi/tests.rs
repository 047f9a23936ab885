//! A value that a field reads conforms to the schema of the field in requests.

use domain::pattern::Pattern;
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::value::Readable;

/// Returns whether a schema accepts a value. Knows the parts of JSON Schema that those of fields use.
fn accepts(schema: &Value, value: &Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|it| accepts(it, value));
    }
    if value.is_null() && schema["nullable"] == true {
        return true;
    }
    let has_type = match schema["type"].as_str() {
        Some("boolean") => value.is_boolean(),
        // A number without decimals is an integer, however it is written.
        Some("integer") => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        other => other.is_none(),
    };
    let text = value.as_str().unwrap_or_default();
    let fits_pattern = schema["pattern"].as_str().is_none_or(|pattern| {
        value.is_string() && Pattern::new(pattern, "").is_ok_and(|it| it.is_match(text))
    });
    let fits_limits = value.as_f64().is_none_or(|number| {
        schema["minimum"].as_f64().is_none_or(|it| number >= it)
            && schema["maximum"].as_f64().is_none_or(|it| number <= it)
    });
    let n_chars = text.chars().count() as u64;
    let fits_length = !value.is_string()
        || schema["minLength"].as_u64().is_none_or(|it| n_chars >= it)
            && schema["maxLength"].as_u64().is_none_or(|it| n_chars <= it);
    let is_choice = schema["enum"].as_array().is_none_or(|it| it.contains(value));
    let fits_items = value.as_array().is_none_or(|it| it.iter().all(|it| accepts(&schema["items"], it)));
    has_type && fits_pattern && fits_limits && fits_length && is_choice && fits_items
}

fn values() -> Vec<Value> {
    let texts = [
        "",
        " ",
        "0",
        "1",
        "7",
        "+7",
        "-7",
        " 7 ",
        "07",
        "7.0",
        "1.5",
        ".5",
        "1e3",
        "true",
        "True",
        "TRUE",
        "yes",
        "inf",
        "NaN",
        "x",
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    ];
    let others = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(7),
        json!(-7),
        json!(5.0),
        json!(1.5),
        json!([]),
        json!([1, "2"]),
        json!(["x"]),
        json!([true]),
        json!({}),
    ];
    texts.into_iter().map(Value::from).chain(others).collect()
}

/// Checks a field of this type without rules, or with these.
#[track_caller]
fn check<T: Readable>(rules: impl Fn(Field) -> Field) {
    let field = rules(Field::new::<T>("name", "Name.", Place::Edit));
    let schema = Schemas::default().field_schema(&field, true);
    let mut n_read = 0;
    for value in values() {
        let is_read = T::read(&value, &field).is_ok() && (!value.is_null() || field.is_nullable);
        n_read += usize::from(is_read);
        assert!(!is_read || accepts(&schema, &value), "{:?} reads {value}, not {schema}", field.kind);
    }
    assert!(n_read > 0, "{:?}", field.kind);
}

#[test]
fn whatever_a_field_reads_is_described() {
    check::<bool>(|it| it);
    check::<u32>(|it| it);
    check::<i64>(|it| it.at_least(0).at_most(10));
    check::<f64>(|it| it);
    check::<String>(|it| it.blank());
    check::<UserLevel>(|it| it);
    check::<Uuid>(|it| it);
    check::<Option<u32>>(|it| it);
    check::<Option<bool>>(|it| it);
    check::<Vec<u32>>(|it| it);
}

#[test]
fn texts_of_flags_and_numbers_are_accepted_in_requests_only() {
    let mut schemas = Schemas::default();
    let field = Field::new::<bool>("name", "Name.", Place::Edit);
    assert_eq!(schemas.field_schema(&field, false)["type"], "boolean");
    let sent = schemas.field_schema(&field, true);
    assert!(accepts(&sent, &json!("True")) && !accepts(&sent, &json!("yes")), "{sent}");
    // An optional parameter of a query may be empty.
    let parameter = query_parameter(&Field::new::<u32>("page", "Page.", Place::Query), &mut schemas);
    assert!(
        accepts(&parameter["schema"], &json!("")) && accepts(&parameter["schema"], &json!("7")),
        "{parameter}"
    );
}
