//! What is known about a guide source from its refreshes.

use serde::{Deserialize, Serialize};

use crate::egress::Distance;
use crate::ids::GuideSourceId;

/// The state of a guide source. It is apart from the source, so that a refresh never overwrites an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuideState {
    pub source: GuideSourceId,
    pub status: GuideStatus,
    /// A message for the admin, without credentials.
    #[serde(default)]
    pub message: String,
    /// The generation of the guide file in use; 0 if there is none.
    #[serde(default)]
    pub generation: u64,
    /// Numbers of the guide in use.
    #[serde(default)]
    pub n_channels: u64,
    #[serde(default)]
    pub n_programmes: u64,
    /// Headers of the last accepted answer, for conditional requests.
    #[serde(default)]
    pub etag: Option<String>,
    #[serde(default)]
    pub last_modified: Option<String>,
    /// Hash of the last accepted content.
    #[serde(default)]
    pub digest: Option<[u8; 32]>,
    /// The network that the last accepted guide came from; `None` for a file.
    #[serde(default)]
    pub origin: Option<Distance>,
    /// The zone of times without one in the guide in use; see [`crate::guide::source::GuideSource::time_zone`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// End of the last refresh, in milliseconds since 1970.
    #[serde(default)]
    pub tried_at: Option<i64>,
    /// End of the last successful refresh.
    #[serde(default)]
    pub good_at: Option<i64>,
}

/// The status of a guide source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuideStatus {
    /// Never refreshed.
    #[default]
    Idle,
    Success,
    Error,
}

impl GuideState {
    /// Forgets the content that was accepted last, because the source leads elsewhere now. Its guide stays in use until a
    /// refresh replaces it.
    pub fn forget_content(&mut self) {
        (self.etag, self.last_modified, self.digest) = (None, None, None);
    }

    /// Creates the state of a source that was never refreshed.
    pub fn new(source: GuideSourceId) -> Self {
        Self {
            source,
            status: GuideStatus::default(),
            message: String::new(),
            generation: 0,
            n_channels: 0,
            n_programmes: 0,
            etag: None,
            last_modified: None,
            digest: None,
            origin: None,
            time_zone: None,
            tried_at: None,
            good_at: None,
        }
    }
}
