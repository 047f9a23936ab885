//! The values that plugins store themselves.

use serde::{Deserialize, Serialize};

use super::key::PluginKey;
use crate::secret::Secret;

/// One value that a plugin has stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginValue {
    pub id: u32,
    /// Not its id: values may outlive the record of their plugin, and belong to the next one with this key.
    pub plugin: PluginKey,
    /// Unique among those of the plugin.
    pub key: String,
    /// JSON, in which a plugin may keep tokens.
    pub value: Secret,
}
