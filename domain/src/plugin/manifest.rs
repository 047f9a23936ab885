//! Manifests of plugins.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use thiserror::Error;

use super::action::Action;
use super::faults::{Faults, ManifestFault, list_of_faults};
use super::field::Field;
use super::key::PluginKey;
use super::limits::Limits;
use super::permissions::Permissions;
use super::texts::text_list;

/// Name of the manifest in the folder of a plugin.
pub const MANIFEST_FILE: &str = "plugin.json";
/// Maximum size of a manifest, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of fields, and of actions.
const ENTRIES_MAX: usize = 500;
/// Maximum number of simultaneous runs.
const CONCURRENCY_MAX: u8 = 8;
/// Maximum number of packages that a plugin needs, and of arguments of its command.
const LIST_MAX: usize = 64;

/// The description of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub description: String,
    pub author: String,
    /// An address with `http` or `https`; otherwise empty.
    pub help_url: String,
    /// `None` if the plugin lists them as attributes of its class.
    pub fields: Option<Vec<Field>>,
    /// `None` if the plugin lists them as attributes of its class.
    pub actions: Option<Vec<Action>>,
    pub permissions: Permissions,
    pub limits: Limits,
    /// Python packages, as pip names them.
    pub requirements: Vec<String>,
    /// Program and arguments of a plugin that is not run by the Python host.
    pub command: Option<Vec<String>>,
    pub lifetime: Lifetime,
    /// Maximum number of simultaneous runs.
    pub concurrency: u8,
    /// The plugin has no manifest.
    pub is_legacy: bool,
    /// Damaged elements that are ignored, because the plugin can be used without them.
    pub ignored: Vec<ManifestFault>,
    /// All members, also unknown ones.
    pub json: Map<String, Value>,
}

/// When a plugin has a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// While it is enabled.
    Resident,
    /// During runs, and a few minutes after them.
    OnDemand,
}

/// A manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    #[error("{MANIFEST_FILE} has more than {} KiB", MANIFEST_BYTES_MAX / 1_024)]
    TooLarge,
    #[error("{MANIFEST_FILE} is not valid JSON: {0}")]
    NotJson(String),
    #[error("{MANIFEST_FILE}: {}", list_of_faults(.0))]
    Faults(Vec<ManifestFault>),
}

impl Manifest {
    /// Reads the content of a manifest.
    ///
    /// # Errors
    /// It is too large or no JSON object, or a member without which the plugin would be unsafe or of no use is missing or
    /// damaged. Other damaged elements are ignored, and named.
    pub fn parse(content: &[u8]) -> Result<Self, ManifestError> {
        if content.len() > MANIFEST_BYTES_MAX {
            return Err(ManifestError::TooLarge);
        }
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let value: Value =
            serde_json::from_slice(content).map_err(|error| ManifestError::NotJson(error.to_string()))?;
        let Value::Object(json) = value else {
            return Err(ManifestError::NotJson("expected an object".to_owned()));
        };
        let mut faults = Faults::default();
        let manifest = Self::from_json(json, &mut faults);
        match faults.errors.is_empty() {
            true => Ok(Self { ignored: faults.ignored, ..manifest }),
            false => Err(ManifestError::Faults(faults.errors)),
        }
    }

    /// Returns the manifest of a plugin that has none.
    pub fn legacy(key: &PluginKey) -> Self {
        let json = Map::from_iter([
            ("name".to_owned(), Value::from(key.as_str())),
            ("version".to_owned(), Value::from("")),
            ("description".to_owned(), Value::from("")),
        ]);
        Self {
            name: key.as_str().to_owned(),
            is_legacy: true,
            ..Self::from_json(json, &mut Faults::default())
        }
    }

    /// Returns the action with this id, of those that the manifest lists.
    pub fn action(&self, id: &str) -> Option<&Action> {
        self.actions.iter().flatten().find(|it| it.id == id)
    }

    fn from_json(json: Map<String, Value>, faults: &mut Faults) -> Self {
        let mut needed = |name: &str| match json.get(name) {
            None | Some(Value::Null) => {
                faults.add(name, "is required");
                String::new()
            }
            Some(Value::String(text)) if text.trim().is_empty() => {
                faults.add(name, "must not be blank");
                String::new()
            }
            Some(Value::String(text)) => text.trim().to_owned(),
            // As in `"version": 1.2`.
            Some(Value::Number(number)) => {
                faults.ignore(name, "should be a text, and is a number");
                number.to_string()
            }
            Some(_) => {
                faults.add(name, "must be a text");
                String::new()
            }
        };
        let (name, version) = (needed("name"), needed("version"));
        let mut text = |name: &str, is_expected: bool| match json.get(name) {
            None | Some(Value::Null) if is_expected => {
                faults.ignore(name, "is missing");
                String::new()
            }
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(_) => {
                faults.ignore(name, "must be a text");
                String::new()
            }
        };
        let (description, author) = (text("description", true), text("author", false));
        let help_url = text("help_url", false);
        let is_web = help_url.starts_with("https://") || help_url.starts_with("http://");
        Self {
            name,
            version,
            description,
            author,
            help_url: if is_web { help_url } else { String::new() },
            fields: json.get("fields").filter(|it| !it.is_null()).and_then(|it| read_fields(it, faults)),
            actions: json.get("actions").filter(|it| !it.is_null()).and_then(|it| read_actions(it, faults)),
            permissions: match json.get("permissions") {
                None => Permissions::undeclared(),
                Some(value) => Permissions::read(value, faults),
            },
            limits: read_limits(json.get("limits"), faults),
            requirements: match json.get("requirements") {
                None => Vec::new(),
                Some(value) => read_requirements(value, faults),
            },
            command: json.get("command").and_then(|it| read_command(it, faults)),
            lifetime: read_lifetime(json.get("lifetime"), faults),
            concurrency: read_concurrency(json.get("concurrency"), faults),
            is_legacy: false,
            ignored: Vec::new(),
            json,
        }
    }
}

/// Reads the fields that the code of a plugin lists. Damaged elements are ignored, and named.
pub fn fields_of(value: &Value) -> (Vec<Field>, Vec<ManifestFault>) {
    let mut faults = Faults::default();
    let fields = read_fields(value, &mut faults);
    (fields.unwrap_or_default(), faults.ignored)
}

/// Reads the actions that the code of a plugin lists. Damaged elements are ignored, and named.
pub fn actions_of(value: &Value) -> (Vec<Action>, Vec<ManifestFault>) {
    let mut faults = Faults::default();
    let actions = read_actions(value, &mut faults);
    (actions.unwrap_or_default(), faults.ignored)
}

fn read_fields(value: &Value, faults: &mut Faults) -> Option<Vec<Field>> {
    read_list(value, "fields", faults, Field::read, |it| &it.id)
}

fn read_actions(value: &Value, faults: &mut Faults) -> Option<Vec<Action>> {
    read_list(value, "actions", faults, Action::read, |it| &it.id)
}

/// Reads a list of entries with unique ids; `None` if it is something else. Entries with an empty id are not compared.
fn read_list<T>(
    value: &Value,
    name: &str,
    faults: &mut Faults,
    read: impl Fn(&Value, &str, &mut Faults) -> Option<T>,
    id: impl Fn(&T) -> &str,
) -> Option<Vec<T>> {
    let Some(list) = value.as_array() else {
        faults.ignore(name, "must be a list");
        return None;
    };
    if list.len() > ENTRIES_MAX {
        faults.ignore(name, format!("must have at most {ENTRIES_MAX} entries; further ones are ignored"));
    }
    let mut ids = BTreeSet::new();
    let mut entries = Vec::with_capacity(list.len().min(ENTRIES_MAX));
    for (index, value) in list.iter().take(ENTRIES_MAX).enumerate() {
        let path = format!("{name}[{index}]");
        let Some(entry) = read(value, &path, faults) else { continue };
        match id(&entry).is_empty() || ids.insert(id(&entry).to_owned()) {
            true => entries.push(entry),
            false => faults.ignore(format!("{path}.id"), format!("{:?} is used twice", id(&entry))),
        }
    }
    Some(entries)
}

/// Reads the names of packages. Options, addresses and paths of pip are refused: they would fetch anything.
fn read_requirements(value: &Value, faults: &mut Faults) -> Vec<String> {
    let list = text_list(value, "requirements", LIST_MAX, faults);
    let is_char = |it: char| it.is_ascii_alphanumeric() || " ._-[],<>=!~*;'\"()+".contains(it);
    for (index, text) in list.iter().enumerate() {
        let is_package = text.starts_with(|it: char| it.is_ascii_alphanumeric());
        if !is_package || text.len() > 256 || !text.chars().all(is_char) {
            faults.add(
                format!("requirements[{index}]"),
                "must be a package and its versions, such as requests>=2",
            );
        }
    }
    list
}

fn read_command(value: &Value, faults: &mut Faults) -> Option<Vec<String>> {
    let before = faults.errors.len();
    let command = text_list(value, "command", LIST_MAX, faults);
    if faults.errors.len() > before {
        return None;
    }
    if command.is_empty() || command.iter().any(|it| it.contains('\0')) {
        faults.add("command", "must be a program and its arguments");
    }
    Some(command)
}

fn read_lifetime(value: Option<&Value>, faults: &mut Faults) -> Lifetime {
    match value.map(Value::as_str) {
        None | Some(Some("resident")) => Lifetime::Resident,
        Some(Some("on_demand")) => Lifetime::OnDemand,
        Some(_) => {
            faults.ignore("lifetime", "must be resident or on_demand");
            Lifetime::Resident
        }
    }
}

fn read_concurrency(value: Option<&Value>, faults: &mut Faults) -> u8 {
    let Some(value) = value else { return 1 };
    let number = value.as_u64().and_then(|it| u8::try_from(it).ok());
    number.filter(|it| (1..=CONCURRENCY_MAX).contains(it)).unwrap_or_else(|| {
        faults.ignore("concurrency", format!("must be a whole number from 1 to {CONCURRENCY_MAX}"));
        1
    })
}

fn read_limits(value: Option<&Value>, faults: &mut Faults) -> Limits {
    let mut limits = Limits::DEFAULT;
    match value {
        None => {}
        Some(Value::Object(members)) => {
            for (name, value) in members {
                if let Err(reason) = limits.set(name, value) {
                    faults.ignore(format!("limits.{name}"), reason);
                }
            }
        }
        Some(_) => faults.ignore("limits", "must be an object"),
    }
    limits
}
