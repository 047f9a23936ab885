//! What an account offers, as a reader of panels or playlists found it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::category::CATEGORY_NAME_CHARS_MAX;
use super::episode::EpisodeFacts;
use super::relation::Relation;
use super::title::{TitleFacts, TitleKind};
use super::{
    DESCRIPTION_CHARS_MAX, DETAILS_BYTES_MAX, EXTENSION_CHARS_MAX, EXTERNAL_ID_CHARS_MAX, GENRE_CHARS_MAX,
    LOGO_CHARS_MAX, NAME_CHARS_MAX, PROPERTIES_BYTES_MAX, PROVIDER_ID_CHARS_MAX, RATING_CHARS_MAX,
    limit_properties, shorten, shorten_option,
};
use crate::ids::VodCategoryId;
use crate::source_url::SourceUrl;

/// A category that a provider lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCategory {
    pub kind: TitleKind,
    /// The provider's id. Empty for that of titles without a category.
    pub provider_id: String,
    pub name: String,
}

/// A film or a series that a provider lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundTitle {
    /// The provider's id, `stream_id` or `series_id`. For a playlist without ids: anything that stays the same, such as the
    /// address without the login.
    pub provider_id: String,
    pub category: VodCategoryId,
    /// The address, if the provider lists addresses instead of ids.
    pub address: Option<SourceUrl>,
    /// Extension of the file; empty for a series, or if unknown.
    pub extension: String,
    /// The name as the provider writes it, and so on. A year in the name is found in it.
    pub facts: TitleFacts,
    /// When the provider changed the series (`last_modified`) or added the film (`added`), in seconds since 1970.
    pub last_modified: Option<i64>,
    /// Other values, such as cast, director and trailer, under the names that panels use.
    pub custom_properties: Map<String, Value>,
    /// The name without the marks of the provider, by the rules of the admin. Set when the title is imported.
    pub clean_name: Option<String>,
}

/// The details of a film or a series, as a provider answered them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FoundDetails {
    /// Values that complete those of the list. An empty name is none.
    pub facts: TitleFacts,
    /// All values worth keeping, under the names that panels use.
    pub properties: Map<String, Value>,
}

/// An episode that a provider lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundEpisode {
    /// 0 is the season of specials.
    pub season: u32,
    pub number: u32,
    /// The provider's id. For a playlist without ids: anything that stays the same.
    pub provider_id: String,
    /// The address, if the provider lists addresses instead of ids.
    pub address: Option<SourceUrl>,
    /// Extension of the file; empty if unknown.
    pub extension: String,
    pub facts: EpisodeFacts,
}

impl FoundCategory {
    /// Shortens a name that is too long.
    pub fn limit(&mut self) {
        shorten(&mut self.name, CATEGORY_NAME_CHARS_MAX);
        shorten(&mut self.provider_id, PROVIDER_ID_CHARS_MAX);
    }
}

impl FoundTitle {
    /// Creates a title of which nothing else is known.
    pub fn new(provider_id: impl Into<String>, category: VodCategoryId, name: impl Into<String>) -> Self {
        Self {
            provider_id: provider_id.into(),
            category,
            address: None,
            extension: String::new(),
            facts: TitleFacts { name: name.into(), ..TitleFacts::default() },
            last_modified: None,
            custom_properties: Map::new(),
            clean_name: None,
        }
    }

    /// Returns the name by which titles are compared.
    pub fn name(&self) -> &str {
        self.clean_name.as_deref().unwrap_or(&self.facts.name)
    }

    /// Shortens texts that are too long, and leaves out values that are none.
    pub fn limit(&mut self) {
        shorten(&mut self.provider_id, PROVIDER_ID_CHARS_MAX);
        limit_extension(&mut self.extension);
        self.facts.limit();
        limit_properties(&mut self.custom_properties, PROPERTIES_BYTES_MAX);
    }
}

impl FoundTitle {
    /// Returns whether a relation has exactly these values.
    pub fn is_same(&self, relation: &Relation) -> bool {
        self.provider_id == relation.provider_id
            && self.category == relation.category
            && self.address == relation.address
            && self.extension == relation.extension
            && self.facts == relation.facts
            && self.last_modified == relation.last_modified
            && self.custom_properties == relation.custom_properties
    }

    /// Moves the values into a relation. Its details, its label and its state stay.
    pub fn put_into(self, relation: &mut Relation) {
        relation.provider_id = self.provider_id;
        relation.category = self.category;
        relation.address = self.address;
        relation.extension = self.extension;
        relation.facts = self.facts;
        relation.last_modified = self.last_modified;
        relation.custom_properties = self.custom_properties;
        relation.clean_name = self.clean_name;
    }
}

impl FoundDetails {
    /// Shortens texts that are too long, and leaves out values that are none.
    pub fn limit(&mut self) {
        self.facts.limit();
        limit_properties(&mut self.properties, DETAILS_BYTES_MAX);
    }
}

impl FoundEpisode {
    /// Shortens texts that are too long, and leaves out values that are none.
    pub fn limit(&mut self) {
        shorten(&mut self.provider_id, PROVIDER_ID_CHARS_MAX);
        limit_extension(&mut self.extension);
        self.facts.limit();
    }
}

impl EpisodeFacts {
    /// Shortens texts that are too long, and leaves out values that are none.
    pub fn limit(&mut self) {
        shorten(&mut self.name, NAME_CHARS_MAX);
        shorten_option(&mut self.description, DESCRIPTION_CHARS_MAX);
        shorten_option(&mut self.air_date, 10);
        limit_rating(&mut self.rating);
        shorten_option(&mut self.logo, LOGO_CHARS_MAX);
        limit_id(&mut self.ids.tmdb);
        limit_id(&mut self.ids.imdb);
        limit_properties(&mut self.custom_properties, PROPERTIES_BYTES_MAX);
    }
}

impl TitleFacts {
    /// Shortens texts that are too long, and leaves out values that are none.
    pub fn limit(&mut self) {
        shorten(&mut self.name, NAME_CHARS_MAX);
        shorten_option(&mut self.description, DESCRIPTION_CHARS_MAX);
        self.year = self.year.filter(|it| *it != 0);
        limit_rating(&mut self.rating);
        shorten_option(&mut self.genre, GENRE_CHARS_MAX);
        self.duration_secs = self.duration_secs.filter(|it| *it != 0);
        shorten_option(&mut self.logo, LOGO_CHARS_MAX);
        limit_id(&mut self.ids.tmdb);
        limit_id(&mut self.ids.imdb);
    }
}

/// Leaves out an id that is none, such as `0` or `null`.
fn limit_id(id: &mut Option<String>) {
    let Some(inside) = id else { return };
    let trimmed = inside.trim();
    let none = ["null", "none", "nan", "n/a", "false", "undefined"];
    let is_none =
        trimmed.bytes().all(|it| it == b'0') || none.iter().any(|it| trimmed.eq_ignore_ascii_case(it));
    // A longer text cannot be an id, and its beginning would be the id of another title.
    if is_none || trimmed.chars().count() > EXTERNAL_ID_CHARS_MAX {
        *id = None;
    } else if trimmed.len() != inside.len() {
        *id = Some(trimmed.to_owned());
    }
}

fn limit_rating(rating: &mut Option<String>) {
    shorten_option(rating, RATING_CHARS_MAX);
}

fn limit_extension(extension: &mut String) {
    let is_plain = |it: &str| {
        it.len() <= EXTENSION_CHARS_MAX && it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    if !is_plain(extension) {
        // It becomes part of addresses and file names.
        let trimmed = extension.trim().trim_start_matches('.').to_ascii_lowercase();
        *extension = if is_plain(&trimmed) { trimmed } else { String::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vod::ExternalIds;

    #[test]
    fn ids_that_are_none_are_left_out_and_texts_are_shortened() {
        for (id, expected) in [
            ("949", Some("949")),
            (" tt0113277 ", Some("tt0113277")),
            ("0", None),
            ("00", None),
            ("null", None),
            ("NULL", None),
            ("None", None),
            ("", None),
            ("   ", None),
        ] {
            let mut found = FoundTitle::new("1", VodCategoryId(1), "x".repeat(300));
            found.facts.ids = ExternalIds { tmdb: Some(id.to_owned()), imdb: Some(id.to_owned()) };
            found.facts.rating = Some("7.123456789012".to_owned());
            found.limit();
            assert_eq!(found.facts.ids.tmdb.as_deref(), expected, "{id:?}");
            assert_eq!(found.facts.ids.imdb.as_deref(), expected, "{id:?}");
            assert_eq!((found.facts.name.len(), found.facts.rating.as_deref()), (255, Some("7.12345678")));
        }
    }

    #[test]
    fn an_extension_is_plain_or_none() {
        for (extension, expected) in
            [("MKV", "mkv"), (".mp4", "mp4"), ("../x", ""), ("a/b", ""), ("verylongextension", "")]
        {
            let mut found = FoundTitle::new("1", VodCategoryId(1), "x");
            found.extension = extension.to_owned();
            found.limit();
            assert_eq!(found.extension, expected, "{extension}");
        }
    }
}
