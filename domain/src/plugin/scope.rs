//! Parts of the API that a plugin may use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiArea {
    /// Channels, their groups, logos, lineups and playlists.
    Channels,
    Streams,
    /// Recordings and their rules.
    Recordings,
    /// Playlist accounts of providers.
    Accounts,
    /// Guide sources, their channels and programmes.
    Guide,
    /// Films and series.
    Vod,
    /// Live channels, their clients, and catch-up sessions.
    Playback,
    /// Tuners that are announced to players.
    Tuners,
    /// Core settings and user agents.
    Settings,
    /// Health, logs, notices and the audit.
    System,
    /// Stream profiles and output profiles, which run programs.
    StreamProfiles,
    /// Users, their groups, keys and logins.
    Users,
    Plugins,
    Integrations,
    /// Back-ups, which contain the store.
    Backups,
}

/// Permission to read or to change a part of the API; permission to change includes reading. Written `channels:read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApiScope {
    /// `None` is every part that is not [protected](ApiArea::is_protected); written `*`.
    pub area: Option<ApiArea>,
    pub is_write: bool,
}

impl ApiArea {
    pub const ALL: [Self; 15] = [
        Self::Channels,
        Self::Streams,
        Self::Recordings,
        Self::Accounts,
        Self::Guide,
        Self::Vod,
        Self::Playback,
        Self::Tuners,
        Self::Settings,
        Self::System,
        Self::StreamProfiles,
        Self::Users,
        Self::Plugins,
        Self::Integrations,
        Self::Backups,
    ];

    /// The name in scopes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Channels => "channels",
            Self::Streams => "streams",
            Self::Recordings => "recordings",
            Self::Accounts => "accounts",
            Self::Guide => "guide",
            Self::Vod => "vod",
            Self::Playback => "playback",
            Self::Tuners => "tuners",
            Self::Settings => "settings",
            Self::System => "system",
            Self::StreamProfiles => "stream_profiles",
            Self::Users => "users",
            Self::Plugins => "plugins",
            Self::Integrations => "integrations",
            Self::Backups => "backups",
        }
    }

    /// States whether it is permitted only by name, because it leads to other permissions.
    pub fn is_protected(self) -> bool {
        matches!(
            self,
            Self::StreamProfiles | Self::Users | Self::Plugins | Self::Integrations | Self::Backups
        )
    }

    /// Returns the part of the API that a path belongs to. A path of no known part is protected like users.
    pub fn from_path(path: &str) -> Self {
        let mut parts = path.split('/').filter(|it| !it.is_empty());
        let (first, second) = match parts.next() {
            Some("api") => (parts.next().unwrap_or(""), parts.next().unwrap_or("")),
            Some(other) => (other, ""),
            None => ("", ""),
        };
        match (first, second) {
            ("channels", "streams") => Self::Streams,
            ("channels", "recordings" | "recurring-rules" | "series-rules" | "dvr") => Self::Recordings,
            ("channels" | "playlist", _) => Self::Channels,
            ("m3u", _) => Self::Accounts,
            ("epg", _) => Self::Guide,
            ("vod", _) => Self::Vod,
            ("proxy" | "catchup", _) => Self::Playback,
            ("hdhr" | "tuner" | "discover.json" | "lineup.json" | "device.xml", _) => Self::Tuners,
            ("core", "streamprofiles" | "outputprofiles") => Self::StreamProfiles,
            ("core", "settings" | "useragents") => Self::Settings,
            ("core" | "" | "schema" | "docs" | "swagger" | "redoc" | "demo", _) => Self::System,
            ("plugins", _) => Self::Plugins,
            ("connect", _) => Self::Integrations,
            ("backups", _) => Self::Backups,
            _ => Self::Users,
        }
    }
}

impl ApiScope {
    /// Reads a scope such as `channels:read` or `*:write`.
    pub fn parse(text: &str) -> Option<Self> {
        let (area, right) = text.split_once(':')?;
        let is_write = match right {
            "read" => false,
            "write" => true,
            _ => return None,
        };
        let area = match area {
            "*" => None,
            name => Some(ApiArea::ALL.into_iter().find(|it| it.name() == name)?),
        };
        Some(Self { area, is_write })
    }

    /// States whether it permits a request to a part of the API.
    pub fn permits(self, area: ApiArea, is_write: bool) -> bool {
        let is_area = self.area.map_or_else(|| !area.is_protected(), |it| it == area);
        is_area && (self.is_write || !is_write)
    }

    /// Returns the scope for what both permit; `None` if they have nothing in common.
    pub fn both(self, other: Self) -> Option<Self> {
        let area = match (self.area, other.area) {
            (None, None) => None,
            (None, Some(area)) | (Some(area), None) if area.is_protected() => return None,
            (None, Some(area)) | (Some(area), None) => Some(area),
            (Some(mine), Some(theirs)) if mine == theirs => Some(mine),
            (Some(_), Some(_)) => return None,
        };
        Some(Self { area, is_write: self.is_write && other.is_write })
    }

    /// States whether everything that the other scope permits is permitted by this one.
    pub fn includes(self, other: Self) -> bool {
        let is_area = match (self.area, other.area) {
            (None, None) => true,
            (None, Some(area)) => !area.is_protected(),
            (mine, theirs) => mine == theirs,
        };
        is_area && (self.is_write || !other.is_write)
    }
}

impl fmt::Display for ApiScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let right = if self.is_write { "write" } else { "read" };
        write!(f, "{}:{right}", self.area.map_or("*", ApiArea::name))
    }
}

impl TryFrom<String> for ApiScope {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a scope of the API"))
    }
}

impl From<ApiScope> for String {
    fn from(scope: ApiScope) -> Self {
        scope.to_string()
    }
}
