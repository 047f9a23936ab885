//! Texts in manifests.

use serde_json::{Map, Value};

use super::faults::Faults;

/// Reads a list of texts that are not blank, all of which are needed.
pub(super) fn text_list(value: &Value, path: &str, len_max: usize, faults: &mut Faults) -> Vec<String> {
    read_texts(value, path, len_max, |path, reason| faults.add(path, reason))
}

/// Reads a list of texts that are not blank, and ignores other entries.
pub(super) fn optional_texts(value: &Value, path: &str, len_max: usize, faults: &mut Faults) -> Vec<String> {
    read_texts(value, path, len_max, |path, reason| faults.ignore(path, reason))
}

fn read_texts(
    value: &Value,
    path: &str,
    len_max: usize,
    mut fault: impl FnMut(String, String),
) -> Vec<String> {
    let Some(list) = value.as_array().filter(|it| it.len() <= len_max) else {
        fault(path.to_owned(), format!("must be a list of at most {len_max} texts"));
        return Vec::new();
    };
    let mut texts = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        match value.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => texts.push(text.to_owned()),
            _ => fault(format!("{path}[{index}]"), "must be a text that is not blank".to_owned()),
        }
    }
    texts
}

/// Returns a member that is a text and not blank.
pub(super) fn text_of(json: &Map<String, Value>, name: &str) -> Option<String> {
    json.get(name).and_then(Value::as_str).filter(|it| !it.trim().is_empty()).map(str::to_owned)
}

/// Removes the members of these names that are not texts.
pub(super) fn remove_wrong_texts(
    json: &mut Map<String, Value>,
    names: &[&str],
    path: &str,
    faults: &mut Faults,
) {
    for name in names {
        if json.get(*name).is_some_and(|it| !it.is_string() && !it.is_null()) {
            json.remove(*name);
            faults.ignore(format!("{path}.{name}"), "must be a text");
        }
    }
}
