//! Learned aliases: names that an admin linked with a guide channel.

use serde::{Deserialize, Serialize};

use super::keys::NormalKey;
use super::matcher::{Subject, place};
use super::names::{NameRules, NormalName};
use crate::ids::GuideSourceId;

/// Maximum number of learned aliases; the oldest are dropped.
pub const GUIDE_ALIASES_MAX: usize = 20_000;

/// The normal form of a learned name: its words, country and time shift. Settings of matching do not change it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AliasName(String);

impl AliasName {
    /// Returns the normal form of the name of a channel; `None` if the name cannot be learned.
    pub fn from_channel(channel: &Subject<'_>) -> Option<Self> {
        let name = NormalName::new(channel.name, &NameRules::default());
        if !name.is_usable() {
            return None;
        }
        let key = channel.tvg_id.and_then(NormalKey::parse);
        let place = place(&name, key.as_ref(), channel.group);
        let country = place.country.map(|it| it.to_string()).unwrap_or_default();
        Some(Self(format!("{}|{country}|{}", name.words.join(" "), place.shift)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name that an admin linked with a guide channel. Channels of this name are linked with it from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuideAlias {
    pub id: u32,
    /// Unique.
    pub name: AliasName,
    /// The name of the channel as it was.
    pub channel_name: String,
    /// Its guide id as it was. For channels with another one that a guide has, that id counts.
    #[serde(default)]
    pub tvg_id: Option<String>,
    pub source: GuideSourceId,
    /// The key of the guide channel in its source.
    pub key: String,
    /// Milliseconds since 1970.
    pub learned_at: i64,
}
