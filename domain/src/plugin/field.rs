//! Fields of the settings of plugins.

use serde_json::{Map, Value};

use super::faults::Faults;
use super::texts::{remove_wrong_texts, text_of};

/// Displayed instead of a saved password. Sending it back keeps the password.
pub const MASK: &str = "********";

/// Maximum size of a text on one line, in bytes.
const STRING_BYTES_MAX: usize = 16 * 1024;
/// Maximum size of a longer text, in bytes.
const TEXT_BYTES_MAX: usize = 128 * 1024;

/// A setting of a plugin, as its manifest or its code describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Unique in the plugin. Fields of the type `info` may have none.
    pub id: String,
    pub label: String,
    pub kind: FieldKind,
    /// Whether the value is a secret.
    pub is_password: bool,
    pub default: Option<Value>,
    json: Map<String, Value>,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    Boolean,
    Number,
    /// A text on one line.
    String,
    Text,
    /// Without options, any value is accepted: the code of the plugin may list some when it runs.
    Select(Vec<FieldOption>),
    /// A text for people, without a value.
    Info,
    /// A type of a newer version: any value is kept.
    Other(String),
}

/// A choice of a select field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldOption {
    /// A text, a number, or true or false.
    pub value: Value,
    pub label: String,
}

impl Field {
    /// Returns the field as the manifest has it, with unknown members and without damaged ones.
    pub fn json(&self) -> &Map<String, Value> {
        &self.json
    }

    /// Returns the field for people: as the manifest has it, without the default of a password.
    pub fn shown(&self) -> Map<String, Value> {
        let mut json = self.json.clone();
        if self.is_password && json.get("default").is_some_and(|it| !is_blank(it)) {
            json.insert("default".to_owned(), MASK.into());
        }
        json
    }

    /// States whether users choose among options that nobody knows yet.
    pub fn lacks_options(&self) -> bool {
        matches!(&self.kind, FieldKind::Select(options) if options.is_empty())
    }

    /// States whether it has a value.
    pub fn has_value(&self) -> bool {
        self.kind != FieldKind::Info
    }

    /// Checks a value that a user has typed.
    ///
    /// # Errors
    /// The reason why the value cannot be used, as a sentence.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match &self.kind {
            FieldKind::Boolean if value.is_boolean() => Ok(()),
            FieldKind::Boolean => Err("Must be true or false.".to_owned()),
            FieldKind::Number if value.is_number() => Ok(()),
            FieldKind::Number => Err("Must be a number.".to_owned()),
            FieldKind::String => check_text(value, STRING_BYTES_MAX),
            FieldKind::Text => check_text(value, TEXT_BYTES_MAX),
            FieldKind::Select(options) if options.is_empty() => match is_scalar(value) {
                true => Ok(()),
                false => Err("Must be a text, a number, or true or false.".to_owned()),
            },
            FieldKind::Select(options) if options.iter().any(|it| it.value == *value) => Ok(()),
            FieldKind::Select(_) => Err("Choose one of the options.".to_owned()),
            FieldKind::Info => Err("This field has no value.".to_owned()),
            FieldKind::Other(_) => Ok(()),
        }
    }

    /// Takes over the options that the code of the plugin lists, if the manifest lists none.
    pub(super) fn fill_options(&mut self, of_code: &[Self]) {
        let FieldKind::Select(options) = &mut self.kind else { return };
        let same = of_code.iter().find(|it| it.id == self.id && options.is_empty());
        let Some(Self { kind: FieldKind::Select(listed), json, .. }) = same else { return };
        options.clone_from(listed);
        self.json.extend(json.get("options").map(|it| ("options".to_owned(), it.clone())));
    }

    pub(super) fn read(value: &Value, path: &str, faults: &mut Faults) -> Option<Self> {
        let Some(mut json) = value.as_object().cloned() else {
            faults.ignore(path, "must be an object");
            return None;
        };
        // An unreadable one could be that of a password.
        let is_password =
            json.get("input_type").is_some_and(|it| it == "password" || !it.is_string() && !it.is_null());
        let texts = ["id", "label", "help_text", "description", "placeholder", "input_type", "type"];
        remove_wrong_texts(&mut json, &texts, path, faults);
        if is_password {
            json.insert("input_type".to_owned(), "password".into());
        }
        let kind = match text_of(&json, "type").as_deref() {
            None | Some("string" | "password") => FieldKind::String,
            Some("boolean") => FieldKind::Boolean,
            Some("number") => FieldKind::Number,
            Some("text") => FieldKind::Text,
            Some("select") => FieldKind::Select(read_options(&mut json, path, faults)),
            Some("info") => FieldKind::Info,
            Some(other) => FieldKind::Other(other.to_owned()),
        };
        let id = text_of(&json, "id");
        if id.is_none() && kind != FieldKind::Info {
            faults.ignore(path, "has no id");
            return None;
        }
        let id = id.unwrap_or_default();
        let default = json.get("default").filter(|it| !it.is_null());
        if let Some(expected) = default.and_then(|it| wrong_default(&kind, it)) {
            faults.ignore(format!("{path}.default"), expected);
            json.remove("default");
        }
        let default = json.get("default").filter(|it| !it.is_null() && kind != FieldKind::Info).cloned();
        Some(Self {
            label: text_of(&json, "label").unwrap_or_else(|| id.clone()),
            is_password: is_password || json.get("type").is_some_and(|it| it == "password"),
            default,
            json,
            kind,
            id,
        })
    }
}

fn check_text(value: &Value, bytes_max: usize) -> Result<(), String> {
    let text = value.as_str().ok_or("Must be a text.")?;
    match text.len() > bytes_max {
        true => Err(format!("At most {bytes_max} bytes are allowed.")),
        false if text.contains('\0') => Err("Must not contain NUL.".to_owned()),
        false => Ok(()),
    }
}

/// States whether a default means that there is none.
fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// Returns what a default must be if its type is wrong. Select fields may begin with a value beside their options, such as an
/// empty text.
fn wrong_default(kind: &FieldKind, default: &Value) -> Option<&'static str> {
    let (is_right, expected) = match kind {
        FieldKind::Boolean => (default.is_boolean(), "must be true or false"),
        FieldKind::Number => (default.is_number() || is_blank(default), "must be a number"),
        FieldKind::String | FieldKind::Text => (default.is_string(), "must be a text"),
        FieldKind::Select(_) => (is_scalar(default), "must be a text, a number, or true or false"),
        FieldKind::Info | FieldKind::Other(_) => (true, ""),
    };
    (!is_right).then_some(expected)
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

/// Reads the options, and removes those that are damaged. Without any, the field still has a value.
fn read_options(json: &mut Map<String, Value>, path: &str, faults: &mut Faults) -> Vec<FieldOption> {
    let list = match json.remove("options") {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            faults.ignore(format!("{path}.options"), "must be a list, because the type is select");
            return Vec::new();
        }
    };
    let (mut options, mut good) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
    for (index, option) in list.into_iter().enumerate() {
        // Some plugins list bare values.
        let (value, label) = match option.as_object() {
            Some(members) => (members.get("value"), members.get("label")),
            None => (Some(&option), None),
        };
        let Some(value) = value.filter(|it| is_scalar(it)) else {
            let expected = "must have a value that is a text, a number, or true or false";
            faults.ignore(format!("{path}.options[{index}]"), expected);
            continue;
        };
        let label = match label {
            Some(Value::String(label)) => label.clone(),
            _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        };
        options.push(FieldOption { value: value.clone(), label });
        good.push(option);
    }
    json.insert("options".to_owned(), good.into());
    options
}
