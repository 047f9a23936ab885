//! A channel as a guide source names it.

use serde::{Deserialize, Serialize};

use crate::ids::{GuideChannelId, GuideSourceId};

/// A channel of a guide source. It keeps its id over refreshes, by its source and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuideChannel {
    pub id: GuideChannelId,
    pub source: GuideSourceId,
    /// The identifier in the source: the `id` of a channel in XMLTV. Unique in the source.
    pub key: String,
    /// The preferred name first.
    #[serde(default)]
    pub names: Vec<String>,
    /// Address of its logo.
    #[serde(default)]
    pub icon: Option<String>,
}

impl GuideChannel {
    /// Returns the preferred name, or the key of a channel without names.
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.key)
    }
}
