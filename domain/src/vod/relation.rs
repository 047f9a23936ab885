//! A relation: an account offers a title, in one version of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::title::{ExternalIds, TitleFacts, is_false};
use crate::ids::{AccountId, VodCategoryId};
use crate::source_url::SourceUrl;

/// Identifies a relation among all titles and relations, because apps that list versions name one by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RelationId(pub u32);

impl fmt::Display for RelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// States that an account offers a title. Several versions in one account are several relations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    pub id: RelationId,
    pub account: AccountId,
    pub category: VodCategoryId,
    /// The provider's id of the film (`stream_id`) or the series (`external_series_id`). Unique among the titles of one
    /// kind of the account.
    pub provider_id: String,
    /// The address, if the provider lists addresses instead of ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SourceUrl>,
    /// Extension of the file, such as `mkv`, in lower case. Empty for a series, or if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extension: String,
    /// The difference to other versions, such as `EN 4K`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The values of the provider's list.
    pub facts: TitleFacts,
    /// The name in place of that of the list, where the rules of the admin clean it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_name: Option<String>,
    /// Those of its details, which complete the values of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<TitleFacts>>,
    /// When the details were loaded, in milliseconds since 1970; `last_advanced_refresh` in the interface. The other
    /// details are a [`TitleDetails`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details_at: Option<i64>,
    /// When the provider changed the series or added the film, as its list states it, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<i64>,
    /// When the episodes of the series were loaded, in milliseconds since 1970; `last_episode_refresh` in the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes_at: Option<i64>,
    /// `last_modified` as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes_of: Option<i64>,
    /// When a relation missing from the list of its account was last seen there, in milliseconds since 1970. Such a
    /// relation is *stale*. For others, see [`VodSync::last_seen`](super::VodSync::last_seen).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<i64>,
    /// When it was first seen, in milliseconds since 1970.
    #[serde(default)]
    pub added_at: i64,
    /// Why it belongs to its title.
    #[serde(default)]
    pub reason: MatchReason,
    /// Whether an admin chose its title. Then its ids of external catalogues choose none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_pinned: bool,
    /// Other values of the list, such as cast, director and trailer, under the names that panels use.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub custom_properties: Map<String, Value>,
}

/// Why a relation belongs to its title.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchReason {
    /// The title was created for it.
    #[default]
    First,
    /// Another relation has the same id.
    TmdbId(String),
    ImdbId(String),
    /// Another relation without ids has the same name and year.
    NameAndYear,
    /// An admin put it there.
    Admin,
}

/// As a message for people.
impl fmt::Display for MatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("the title was created for it"),
            Self::TmdbId(id) => write!(f, "same TMDB id {id}"),
            Self::ImdbId(id) => write!(f, "same IMDb id {id}"),
            Self::NameAndYear => f.write_str("same name and year"),
            Self::Admin => f.write_str("chosen by an admin"),
        }
    }
}

impl Relation {
    /// Creates a relation of which nothing else is known.
    pub fn new(
        id: RelationId,
        account: AccountId,
        category: VodCategoryId,
        provider_id: impl Into<String>,
        at: i64,
    ) -> Self {
        Self {
            id,
            account,
            category,
            provider_id: provider_id.into(),
            address: None,
            extension: String::new(),
            label: None,
            facts: TitleFacts::default(),
            clean_name: None,
            details: None,
            details_at: None,
            last_modified: None,
            episodes_at: None,
            episodes_of: None,
            last_seen: None,
            added_at: at,
            reason: MatchReason::First,
            is_pinned: false,
            custom_properties: Map::new(),
        }
    }

    /// Returns whether its account no longer lists it.
    pub fn is_stale(&self) -> bool {
        self.last_seen.is_some()
    }

    /// Returns whether its account marks the title as adult content.
    pub fn is_adult(&self) -> bool {
        self.facts.is_adult || self.details.as_ref().is_some_and(|it| it.is_adult)
    }

    /// Returns the ids that choose its title.
    pub fn ids(&self) -> ExternalIds {
        match self.is_pinned {
            true => ExternalIds::default(),
            false => ExternalIds {
                tmdb: self.first(|it| it.ids.tmdb.clone()),
                imdb: self.first(|it| it.ids.imdb.clone()),
            },
        }
    }

    /// Returns whether the episodes of the series have to be loaded: they never were, or the provider changed them since.
    pub fn needs_episodes(&self) -> bool {
        self.episodes_at.is_none() || self.last_modified != self.episodes_of
    }

    /// Returns the name that is shown and compared: the cleaned one, else that of the provider. Empty if unknown.
    pub fn name(&self) -> &str {
        self.clean_name.as_deref().unwrap_or_else(|| self.provider_name())
    }

    /// Returns the name as the provider writes it. Empty if unknown.
    pub fn provider_name(&self) -> &str {
        self.first(|it| Some(&*it.name).filter(|it| !it.is_empty())).unwrap_or_default()
    }

    /// Returns the first value among those of the list and those of the details.
    pub fn first<'a, T>(&'a self, value: impl Fn(&'a TitleFacts) -> Option<T>) -> Option<T> {
        value(&self.facts).or_else(|| value(self.details.as_deref()?))
    }
}

/// The details of a relation that lists do not need, as its provider answered them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TitleDetails {
    pub relation: RelationId,
    pub account: AccountId,
    /// Milliseconds since 1970.
    pub loaded_at: i64,
    /// Values under the names that panels use.
    pub properties: Map<String, Value>,
}
