//! An episode of a series.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::relation::RelationId;
use super::title::{ExternalIds, TitleId};
use crate::ids::{AccountId, EpisodeId};
use crate::source_url::SourceUrl;

/// An episode. Series, season and number are unique together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The id that interfaces use.
    pub id: EpisodeId,
    /// The identifier in its address. Never changes.
    pub uuid: Uuid,
    pub series: TitleId,
    /// 0 is the season of specials.
    pub season: u32,
    pub number: u32,
    /// The accounts that offer it, in the order of the relations of the series. The first one that has a value states it.
    pub offers: Vec<EpisodeOffer>,
    /// The values of a catalogue of films and series, which precede those of accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Box<EpisodeFacts>>,
    /// Episodes that were merged into this one. Their ids and UUIDs lead here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<EpisodeAlias>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

/// The id and the UUID of an episode that was merged into another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeAlias {
    pub id: EpisodeId,
    pub uuid: Uuid,
}

/// States that an account offers an episode; an episode relation in the interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeOffer {
    pub account: AccountId,
    /// The relation of the series.
    pub relation: RelationId,
    /// The provider's id, `stream_id` in the interface.
    pub provider_id: String,
    /// The address, if the provider lists addresses instead of ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SourceUrl>,
    /// Extension of the file, such as `mkv`, in lower case. Empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extension: String,
    pub facts: EpisodeFacts,
    /// When an episode missing from the answer of its provider was last seen there, in milliseconds since 1970. Such an
    /// offer is *stale*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<i64>,
}

/// The values of an episode as one provider states them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EpisodeFacts {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// As `2024-05-31`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub air_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_secs: Option<u32>,
    /// Address of the picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    #[serde(skip_serializing_if = "ExternalIds::is_empty")]
    pub ids: ExternalIds,
    /// Other values under the names that panels use.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub custom_properties: Map<String, Value>,
}

impl Episode {
    /// Returns the name in force, at least such as `S01E02`.
    pub fn name(&self) -> String {
        let own = self.first(|it| Some(&*it.name).filter(|it| !it.is_empty()));
        own.map_or_else(|| format!("S{:02}E{:02}", self.season, self.number), str::to_owned)
    }

    /// Returns the value of the catalogue, else the first that an account states.
    pub fn first<'a, T>(&'a self, value: impl Fn(&'a EpisodeFacts) -> Option<T>) -> Option<T> {
        let completed = self.completion.as_ref().and_then(|it| value(it));
        completed.or_else(|| self.offers.iter().find_map(|it| value(&it.facts)))
    }

    /// Returns whether all accounts that offered it no longer list it.
    pub fn is_stale(&self) -> bool {
        self.offers.iter().all(|it| it.last_seen.is_some())
    }
}
