//! A guide source: where programmes come from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::account::RefreshSchedule;
use crate::ids::{AccountId, GuideSourceId};
use crate::secret::Secret;
use crate::source_url::SourceUrl;

/// Days for which past programmes are kept if nothing else is configured.
pub const HISTORY_DAYS: u32 = 7;

/// An origin of programmes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuideSource {
    pub id: GuideSourceId,
    /// Unique.
    pub name: String,
    pub kind: GuideSourceKind,
    /// The address of an XMLTV guide, or the base address of a service; often with credentials.
    #[serde(default)]
    pub url: Option<SourceUrl>,
    /// The login at the service.
    #[serde(default)]
    pub username: Option<String>,
    #[serde(default)]
    pub password: Option<Secret>,
    /// The panel account of a source of the kind [`GuideSourceKind::Panel`].
    #[serde(default)]
    pub account: Option<AccountId>,
    /// The name of an uploaded file in the data folder, which is read instead of an address.
    #[serde(default)]
    pub file: Option<String>,
    /// Programmes of an inactive source are not shown, and it is not refreshed.
    pub is_active: bool,
    #[serde(default)]
    pub schedule: RefreshSchedule,
    /// Decides between sources with a channel of the same key: the larger value wins.
    #[serde(default)]
    pub priority: i32,
    /// Days for which past programmes are kept.
    #[serde(default = "history_days")]
    pub history_days: u32,
    /// Settings of its kind, such as the patterns of a generated guide.
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

impl GuideSource {
    /// Creates an active source that is not refreshed by schedule. `at` is the time in milliseconds since 1970.
    pub fn new(id: GuideSourceId, name: impl Into<String>, kind: GuideSourceKind, at: i64) -> Self {
        Self {
            id,
            name: name.into(),
            kind,
            url: None,
            username: None,
            password: None,
            account: None,
            file: None,
            is_active: true,
            schedule: RefreshSchedule::default(),
            priority: 0,
            history_days: HISTORY_DAYS,
            custom_properties: Map::new(),
            created_at: at,
            updated_at: at,
        }
    }
}

fn history_days() -> u32 {
    HISTORY_DAYS
}

/// The kinds of guide sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuideSourceKind {
    /// XMLTV from an address or an uploaded file.
    Xmltv,
    /// The guide of a panel account.
    Panel,
    /// The service Schedules Direct.
    SchedulesDirect,
    /// Made from the names of channels when it is read.
    Generated,
    /// Tables in the transport streams that are played.
    Stream,
    /// Programmes that clients of the REST interface write.
    Written,
}

impl GuideSourceKind {
    /// Returns the name in the REST interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xmltv => "xmltv",
            Self::Panel => "panel",
            Self::SchedulesDirect => "schedules_direct",
            Self::Generated => "dummy",
            Self::Stream => "stream",
            Self::Written => "written",
        }
    }

    /// Returns whether refreshes replace its programmes.
    pub fn is_refreshed(self) -> bool {
        matches!(self, Self::Xmltv | Self::Panel | Self::SchedulesDirect | Self::Stream)
    }
}
