//! Checks answers against the published schema. Supports the parts of JSON Schema that the schema uses.

use http::header::CONTENT_TYPE;
use route_frame::route::Route;
use serde_json::Value;

use super::testing::Answer;

/// Returns the differences between an answer and the schema of its operation. The content of an answer that is not JSON
/// is not compared, only its media type.
pub(super) fn check(document: &Value, route: &Route, answer: &Answer) -> Vec<String> {
    let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
    let mut response = &operation["responses"][answer.status.to_string()];
    if let Some(shared) = response["$ref"].as_str() {
        response = document.pointer(shared.trim_start_matches('#')).unwrap_or(&Value::Null);
    }
    let mut wrong = Vec::new();
    if !response.is_object() {
        wrong.push(format!("{} is not described", answer.status));
    } else if !answer.text.is_empty() {
        let media_type = answer.headers.get(CONTENT_TYPE).map(|it| it.to_str().expect("it is ASCII"));
        match &response["content"][media_type.unwrap_or_default()] {
            described if !described.is_object() => {
                wrong.push(format!("the media type {media_type:?} is not described"));
            }
            json if media_type == Some("application/json") => {
                conforms(document, &json["schema"], &answer.body, "answer", &mut wrong);
            }
            _ => {}
        }
    }
    wrong
}

fn conforms(document: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
        return match target.is_object() {
            true => conforms(document, target, value, at, wrong),
            false => wrong.push(format!("{reference} does not exist")),
        };
    }
    if value.is_null()
        && (schema["nullable"] == true
            || schema.as_object().is_some_and(|it| {
                !it.contains_key("type") && !it.contains_key("allOf") && !it.contains_key("anyOf")
            }))
    {
        return;
    }
    for all in schema["allOf"].as_array().into_iter().flatten() {
        conforms(document, all, value, at, wrong);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |it: &&Value| {
            let mut wrong = Vec::new();
            conforms(document, it, value, at, &mut wrong);
            wrong.is_empty()
        };
        if any.iter().find(fits).is_none() {
            wrong.push(format!("{at} matches no alternative: {value}"));
        }
    }
    let is_right = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some(_) => false,
        None => true,
    };
    if !is_right {
        wrong.push(format!("{at} should be {}: {value}", schema["type"]));
        return;
    }
    if let Some(choices) = schema["enum"].as_array().filter(|it| !it.contains(value)) {
        wrong.push(format!("{at} is not in {choices:?}: {value}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            wrong.push(format!("{at} has no {name}"));
        }
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (known, _) if known.is_object() => conforms(document, known, value, &at, wrong),
            (_, others) if others.is_object() => conforms(document, others, value, &at, wrong),
            (_, others) if *others == true || schema.get("properties").is_none() => {}
            _ => wrong.push(format!("{at} is not described")),
        }
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        conforms(document, &schema["items"], item, &format!("{at}[{n}]"), wrong);
    }
}
