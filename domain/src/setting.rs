//! The record of a setting that admins can change while the gateway runs: a key and a value.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One core setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoreSetting {
    pub id: u32,
    /// Unique.
    pub key: String,
    /// Display name.
    pub name: String,
    /// The configured members; a missing member has its default.
    pub value: Value,
}
