//! The record of an installed plugin.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::field::{Field, MASK};
use super::gap::PluginGap;
use super::key::PluginKey;
use super::limits::LimitsEdit;
use super::permissions::Permissions;

/// Maximum size of all settings of a plugin as JSON, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 256 * 1024;

/// A plugin as an admin configured it. Its code and manifest are in its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    pub id: u32,
    /// Unique.
    pub key: PluginKey,
    pub is_enabled: bool,
    /// Whether it has ever been enabled.
    pub was_enabled: bool,
    /// The permissions that an admin granted last.
    pub granted: Option<Permissions>,
    /// Requirements of Python packages that an admin allowed to be fetched.
    #[serde(default)]
    pub allowed_packages: Vec<String>,
    /// The gaps that an admin accepted.
    #[serde(default)]
    pub accepted_gaps: BTreeSet<PluginGap>,
    /// The limits that an admin set in place of those of the manifest.
    #[serde(default)]
    pub limits: LimitsEdit,
    pub settings: PluginSettings,
    /// Version in the manifest that was installed last.
    pub version: String,
    /// The archive of this version that the nodes of a cluster share. `None` without a cluster, and until it is shared.
    #[serde(default)]
    pub archive: Option<String>,
    /// The parts of the manifest that the code reported when it was started last.
    #[serde(default)]
    pub reported: Option<ReportedParts>,
    /// Starts of the gateway in a row at which it crashed.
    #[serde(default)]
    pub failed_starts: u32,
    /// Why it is in the state `failed`, over restarts of the gateway.
    #[serde(default)]
    pub failed: Option<String>,
    /// Milliseconds since 1970.
    pub installed_at: i64,
    /// Milliseconds since 1970.
    pub updated_at: i64,
}

/// Attributes of the class of a plugin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportedParts {
    #[serde(default)]
    pub fields: Vec<Value>,
    #[serde(default)]
    pub actions: Vec<Value>,
    /// Name, version and description, of plugins without a manifest.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
}

/// The saved settings of a plugin; missing ones have their defaults. Prints without its values, which may be passwords.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginSettings(Map<String, Value>);

/// A setting with a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongPluginSetting {
    /// Id of the field.
    pub field: String,
    /// A sentence.
    pub reason: String,
}

impl PluginSettings {
    /// Returns the settings that the plugin gets: saved ones, else defaults.
    pub fn with_defaults(&self, fields: &[Field]) -> Map<String, Value> {
        let defaults = fields.iter().filter_map(|it| Some((it.id.clone(), it.default.clone()?)));
        let mut settings: Map<String, Value> = defaults.collect();
        settings.extend(self.0.iter().map(|it| (it.0.clone(), it.1.clone())));
        settings
    }

    /// Returns the saved settings for people: passwords are masked, and so are texts without a field, which may be
    /// passwords of another version.
    pub fn masked(&self, fields: &[Field]) -> Map<String, Value> {
        let mut settings = self.0.clone();
        for (id, value) in &mut settings {
            let field = fields.iter().find(|it| it.id == *id);
            let is_masked = field.map_or(value.is_string(), |it| it.is_password);
            if is_masked && value.as_str() != Some("") {
                *value = MASK.into();
            }
        }
        settings
    }

    /// Returns the passwords in clear, which logs must not contain.
    pub fn passwords<'a>(&'a self, fields: &'a [Field]) -> impl Iterator<Item = &'a str> {
        let passwords = fields.iter().filter(|it| it.is_password);
        passwords.filter_map(|it| self.0.get(&it.id)?.as_str()).filter(|it| !it.is_empty())
    }

    /// Returns the settings after an admin has sent new ones. They replace the old ones, except passwords that are
    /// masked or missing. A setting without a field is saved as it is: the next version may have its field.
    ///
    /// # Errors
    /// Each setting with a value that cannot be used.
    pub fn replaced(
        &self,
        mut sent: Map<String, Value>,
        fields: &[Field],
    ) -> Result<Self, Vec<WrongPluginSetting>> {
        let mut wrong = Vec::new();
        for field in fields.iter().filter(|it| !it.id.is_empty()) {
            let is_kept = field.is_password && sent.get(&field.id).is_none_or(|it| it.as_str() == Some(MASK));
            match (is_kept, self.0.get(&field.id)) {
                (true, Some(saved)) => drop(sent.insert(field.id.clone(), saved.clone())),
                (true, None) => drop(sent.remove(&field.id)),
                (false, _) if !field.has_value() || sent.get(&field.id).is_some_and(Value::is_null) => {
                    sent.remove(&field.id);
                }
                (false, _) => {
                    if let Some(Err(reason)) = sent.get(&field.id).map(|it| field.check(it)) {
                        wrong.push(WrongPluginSetting { field: field.id.clone(), reason });
                    }
                }
            }
        }
        let has_field = |id: &str| fields.iter().any(|it| it.id == id);
        sent.retain(|id, value| match value.as_str() == Some(MASK) && !has_field(id) {
            true => self.0.get(id).map(|saved| *value = saved.clone()).is_some(),
            false => true,
        });
        let size = Value::from(sent.clone()).to_string().len();
        if size > SETTINGS_BYTES_MAX {
            let reason =
                format!("All settings together may have at most {} KiB.", SETTINGS_BYTES_MAX / 1_024);
            wrong.push(WrongPluginSetting { field: "settings".to_owned(), reason });
        }
        match wrong.is_empty() {
            true => Ok(Self(sent)),
            false => Err(wrong),
        }
    }
}

impl fmt::Debug for PluginSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
