//! What a panel says, in the form in which the catalogue stores it.

use serde_json::{Map, Value};

use super::{MovieInfo, PanelEpisode, PanelFacts, PanelMovie, PanelSeries, SeriesInfo};
use crate::ids::VodCategoryId;
use crate::vod::{EpisodeFacts, ExternalIds, FoundDetails, FoundEpisode, FoundTitle, TitleFacts};

/// Values of a title under the names that panels use.
#[derive(Default)]
struct Properties(Map<String, Value>);

impl Properties {
    fn add<T: Into<Value>>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    fn add_object(&mut self, name: &str, object: Map<String, Value>) {
        self.add(name, Some(object).filter(|it| !it.is_empty()));
    }
}

impl PanelFacts {
    /// Returns the values that the catalogue knows, and the others under the names that panels use.
    fn into_facts(self, name: String) -> (TitleFacts, Properties) {
        let mut others = Properties::default();
        others.add("o_name", self.original_name);
        others.add("cast", self.cast);
        others.add("director", self.director);
        others.add("country", self.country);
        others.add("release_date", self.release_date);
        others.add("age", self.age);
        others.add("youtube_trailer", self.trailer);
        others.add("backdrop_path", Some(self.backdrops).filter(|it| !it.is_empty()));
        others.add("bitrate", self.bitrate);
        others.add_object("video", self.video);
        others.add_object("audio", self.audio);
        let facts = TitleFacts {
            name,
            description: self.plot,
            year: self.year,
            rating: self.rating,
            genre: self.genre,
            duration_secs: self.duration_secs,
            logo: self.picture,
            is_adult: self.is_adult,
            ids: ExternalIds { tmdb: self.tmdb_id, imdb: self.imdb_id },
        };
        (facts, others)
    }
}

fn seconds(ms: Option<i64>) -> Option<i64> {
    ms.map(|it| it / 1000)
}

impl PanelMovie {
    /// Returns the film as an account offers it in a category.
    pub fn into_found(self, category: VodCategoryId) -> FoundTitle {
        let (facts, others) = self.facts.into_facts(self.name);
        let mut found = FoundTitle::new(self.id, category, "");
        found.extension = self.extension.unwrap_or_default();
        found.last_modified = seconds(self.added_at);
        (found.facts, found.custom_properties) = (facts, others.0);
        found
    }
}

impl PanelSeries {
    /// Returns the series as an account offers it in a category.
    pub fn into_found(self, category: VodCategoryId) -> FoundTitle {
        let (facts, others) = self.facts.into_facts(self.name);
        let mut found = FoundTitle::new(self.id, category, "");
        found.last_modified = seconds(self.modified_at);
        (found.facts, found.custom_properties) = (facts, others.0);
        found
    }
}

impl PanelEpisode {
    pub fn into_found(self) -> FoundEpisode {
        let air_date = self.facts.release_date.clone().filter(|it| is_date(it));
        let (facts, mut others) = self.facts.into_facts(self.name);
        others.add("added", seconds(self.added_at).map(|it| it.to_string()));
        FoundEpisode {
            season: self.season,
            number: self.number,
            provider_id: self.id,
            address: None,
            extension: self.extension.unwrap_or_default(),
            facts: EpisodeFacts {
                name: facts.name,
                description: facts.description,
                air_date,
                rating: facts.rating,
                duration_secs: facts.duration_secs,
                logo: facts.logo,
                ids: facts.ids,
                custom_properties: others.0,
            },
        }
    }
}

impl MovieInfo {
    pub fn into_details(self) -> FoundDetails {
        details(self.facts, self.extension)
    }
}

impl SeriesInfo {
    /// Returns the details without the episodes.
    pub fn details(&self) -> FoundDetails {
        details(self.facts.clone(), None)
    }
}

/// Returns the details of a title. The name of the list stays, because it is the one that people see.
fn details(facts: PanelFacts, extension: Option<String>) -> FoundDetails {
    let (facts, mut others) = facts.into_facts(String::new());
    others.add("container_extension", extension);
    FoundDetails { facts, properties: others.0 }
}

/// Returns whether a text is a date of the form `2024-05-31`.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(n, it)| if matches!(n, 4 | 7) { it == b'-' } else { it.is_ascii_digit() })
}
