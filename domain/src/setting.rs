//! What an admin can change while the gateway runs, as it is kept: a key and a value.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One core setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoreSetting {
    pub id: u32,
    /// Unique.
    pub key: String,
    /// For people.
    pub name: String,
    /// What was set; what is not there has its default.
    pub value: Value,
}
