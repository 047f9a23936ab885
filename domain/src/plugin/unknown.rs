//! The parts of a manifest that the gateway does not know, which have no effect.

use serde_json::{Map, Value};

use super::field::{Field, FieldKind};
use super::manifest::Manifest;

/// Maximum number of parts that are listed, and of characters of each.
const PARTS_MAX: usize = 20;
const PART_CHARS_MAX: usize = 100;

/// The keys of manifests, with those that the catalogues of other services read.
const MANIFEST_KEYS: &[&str] = &[
    "name",
    "version",
    "description",
    "author",
    "help_url",
    "fields",
    "actions",
    "permissions",
    "limits",
    "requirements",
    "command",
    "lifetime",
    "concurrency",
    "license",
    "repo_url",
    "discord_thread",
    "min_dispatcharr_version",
    "max_dispatcharr_version",
    "source_type",
    "source_url",
    "maintainers",
    "deprecated",
    "unlisted",
    "logo",
    "icon",
];
const PERMISSION_KEYS: &[&str] = &["api", "network", "listen", "programs", "files"];
const FIELD_KEYS: &[&str] =
    &["id", "label", "type", "default", "options", "input_type", "help_text", "description", "placeholder"];
const ACTION_KEYS: &[&str] = &[
    "id",
    "label",
    "description",
    "button_label",
    "button_variant",
    "button_color",
    "confirm",
    "events",
    "schedule",
    "timeout",
];

/// Returns sentences about unknown keys, and about fields of unknown types, of a manifest and of what the code reports.
pub fn unknown_parts(manifest: &Manifest, fields: &[Field], actions: &[Map<String, Value>]) -> Vec<String> {
    let mut keys = unknown_keys(&manifest.json, "", MANIFEST_KEYS);
    if let Some(permissions) = manifest.json.get("permissions").and_then(Value::as_object) {
        keys.extend(unknown_keys(permissions, "permissions.", PERMISSION_KEYS));
    }
    for field in fields {
        keys.extend(unknown_keys(field.json(), &format!("fields.{}.", field.id), FIELD_KEYS));
    }
    for action in actions {
        let id = action.get("id").and_then(Value::as_str).unwrap_or_default();
        keys.extend(unknown_keys(action, &format!("actions.{id}."), ACTION_KEYS));
    }
    let mut sentences = Vec::new();
    if !keys.is_empty() {
        let n_more = keys.len().saturating_sub(PARTS_MAX);
        keys.truncate(PARTS_MAX);
        let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
        sentences.push(format!("Unknown keys have no effect: {}{more}.", keys.join(", ")));
    }
    let of_type = |field: &Field| match &field.kind {
        FieldKind::Other(kind) => Some(format!(
            "The field \"{}\" has the unknown type \"{}\", so any value is accepted.",
            cut(&field.id),
            cut(kind)
        )),
        _ => None,
    };
    sentences.extend(fields.iter().filter_map(of_type).take(PARTS_MAX));
    sentences
}

fn unknown_keys(json: &Map<String, Value>, place: &str, known: &[&str]) -> Vec<String> {
    let unknown = json.keys().filter(|it| !known.contains(&it.as_str()));
    unknown.map(|it| cut(&format!("{place}{it}"))).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(PART_CHARS_MAX).collect()
}
