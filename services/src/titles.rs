//! What a viewer may see of the films and series, with the accounts that offer them at this moment.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use actors::{VodImporter, vod_limits};
use domain::account::Account;
use domain::user::{User, UserLevel};
use domain::vod::query::{VodSnapshot, VodSources};
use domain::vod::visible::{VodLimits, visible};
use domain::vod::{AccountCategory, Episode, Relation, RelationId, Title, TitleDetails};
use media::spawn_blocking;
use serde_json::{Map, Value};
use server::reply::Refusal;
use storage::{Models, NotReady, Table};

/// The titles that a viewer may see, and the relations that can play. A snapshot of one moment. Two viewers with equal ones
/// see the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTitles {
    pub limits: VodLimits,
    sources: VodSources,
    is_admin: bool,
}

impl SeenTitles {
    /// For a user, or for callers without credentials.
    pub fn new(models: &Models, user: Option<&User>) -> Self {
        let (accounts, links) = (models.accounts.load(), models.vod_account_categories.load());
        let is_admin = user.is_some_and(|it| it.may(UserLevel::Admin));
        Self { limits: vod_limits(models, user), sources: sources(&accounts, &links), is_admin }
    }

    /// Returns the relations that count in lists: for admins all.
    pub fn listed_sources(&self) -> Option<&VodSources> {
        (!self.is_admin).then_some(&self.sources)
    }

    /// Returns the relations that play.
    pub fn sources(&self) -> &VodSources {
        &self.sources
    }

    /// Returns whether the interface lists a title: admins find all titles, also those that cannot play, and others those
    /// that they may watch.
    pub fn lists(&self, title: &Title) -> bool {
        self.is_admin || self.shows(title)
    }

    /// Returns whether the viewer may see and watch a title.
    pub fn shows(&self, title: &Title) -> bool {
        visible(&self.limits, title, |it| self.sources.has(it.account, it.category))
    }

    fn is_playable(&self, relation: &Relation) -> bool {
        self.sources.has(relation.account, relation.category)
            && self.limits.allows_category(relation.category)
    }

    /// Returns the relations that play a title, the preferred one first.
    pub fn relations<'a>(&'a self, title: &'a Title) -> impl Iterator<Item = &'a Relation> {
        title.relations.iter().filter(|it| self.is_playable(it))
    }

    /// Returns the preferred relation of each version of a title.
    pub fn versions<'a>(&self, title: &'a Title) -> Vec<&'a Relation> {
        let mut labels = HashSet::new();
        let playable = title.relations.iter().filter(|it| self.is_playable(it));
        playable.filter(|it| labels.insert(it.label.as_deref().unwrap_or_default().to_lowercase())).collect()
    }
}

/// Returns the relations of active accounts in enabled categories.
fn sources(accounts: &Table<Account>, links: &Table<AccountCategory>) -> VodSources {
    VodSources::new(accounts.iter().map(|it| &**it), links.iter().map(|it| &**it))
}

/// A title with the details of one of its relations, if an account has them.
pub struct OpenedTitle {
    pub title: Title,
    pub details: Option<TitleDetails>,
}

/// Maximum wait for the panel that has the details of a title. What is stored is shown afterwards.
const DETAILS_WAIT: Duration = Duration::from_secs(10);

/// Films and series as they are stored, and the panels that have more about them. Clones share their state.
#[derive(Clone)]
pub struct Titles {
    models: Models,
    importer: VodImporter,
}

impl Titles {
    pub fn new(models: Models, importer: VodImporter) -> Self {
        Self { models, importer }
    }

    /// Returns the index of the latest committed write, so that clients read their own writes.
    pub async fn index(&self) -> Result<Arc<VodSnapshot>, Refusal> {
        self.models.vod_index.at(self.models.store.version()).await.map_err(|error| match error {
            NotReady::Late => Refusal::unavailable(error.to_string()).retry_soon(),
            NotReady::Ended => Refusal::fault(format_args!("list titles: {error}")),
        })
    }

    /// Opens a title: its details are loaded if they are missing or old. `relation` is the version to open; `None` is the
    /// preferred one.
    pub async fn open(&self, title: Title, relation: Option<RelationId>) -> Result<OpenedTitle, Refusal> {
        // In each case, what is stored is shown.
        self.importer.open(title.id, relation, DETAILS_WAIT).await;
        let titles = self.models.vod.clone();
        reading(move || {
            let is_seen = |it: &Relation| title.relations.iter().any(|seen| seen.id == it.id);
            let loaded = titles.get(title.id)?.map(|mut it| {
                it.relations.retain(is_seen);
                it
            });
            let title = loaded.filter(|it| !it.relations.is_empty()).unwrap_or(title);
            let opened = relation.or_else(|| title.relations.first().map(|it| it.id));
            let details = opened.map(|it| titles.details(it)).transpose()?.flatten();
            Ok(OpenedTitle { title, details })
        })
        .await
    }

    /// Opens a series: its details and its episodes are loaded if they are missing or old. The episodes are in order.
    pub async fn open_series(&self, series: Title) -> Result<(OpenedTitle, Vec<Episode>), Refusal> {
        let opened = self.open(series, None).await?;
        let (titles, id) = (self.models.vod.clone(), opened.title.id);
        let episodes = reading(move || titles.episodes_of(id)).await?;
        Ok((opened, episodes))
    }
}

/// Reads titles on a thread that may block.
pub async fn reading<R: Send + 'static>(
    read: impl FnOnce() -> Result<R, storage::Error> + Send + 'static,
) -> Result<R, Refusal> {
    let done = spawn_blocking(read).await;
    Ok(done.map_err(|error| Refusal::fault(format_args!("read titles: {error}")))??)
}

/// The facts of a title or an episode that interfaces show besides its fields: those of admins first, then those of the
/// catalogue that completes titles, then those of the details, then those of the lists of accounts.
pub struct Properties<'a>(Vec<&'a Map<String, Value>>);

impl<'a> Properties<'a> {
    /// Those of a title, with the details of one of its relations if they were loaded.
    pub fn from_title(title: &'a Title, details: Option<&'a TitleDetails>) -> Self {
        let own = std::iter::once(&title.custom_properties);
        let completed = title.completion.as_ref().map(|it| &it.properties);
        let details = details.map(|it| &it.properties);
        let of_lists = title.relations.iter().map(|it| &it.custom_properties);
        Self(own.chain(completed).chain(details).chain(of_lists).filter(|it| !it.is_empty()).collect())
    }

    /// Those of an episode.
    pub fn from_episode(episode: &'a Episode) -> Self {
        let offers = episode.offers.iter().map(|it| &it.facts.custom_properties);
        Self(offers.filter(|it| !it.is_empty()).collect())
    }

    /// Returns the first value that is not empty under one of the names that panels use for it.
    fn find(&self, names: &[&str]) -> Option<&'a Value> {
        let is_value = |it: &&Value| match it {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        };
        self.0.iter().find_map(|properties| names.iter().find_map(|it| properties.get(*it).filter(is_value)))
    }

    /// Returns a text; numbers become texts, and lists of texts become one.
    pub fn text(&self, names: &[&str]) -> String {
        let of_item = |it: &Value| match it {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match self.find(names) {
            Some(Value::Array(items)) => items.iter().filter_map(of_item).collect::<Vec<_>>().join(", "),
            Some(value) => of_item(value).unwrap_or_default(),
            None => String::new(),
        }
    }

    /// Returns a whole number, which may be written as a text.
    pub fn number(&self, names: &[&str]) -> Option<u64> {
        match self.find(names)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns the addresses of pictures.
    pub fn pictures(&self, names: &[&str]) -> Vec<&'a str> {
        match self.find(names) {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    /// Returns the short values of an object, such as the codec of a video. Long ones may contain anything.
    pub fn facts(&self, names: &[&str]) -> Map<String, Value> {
        let Some(Value::Object(members)) = self.find(names) else { return Map::new() };
        let is_short = |it: &Value| match it {
            Value::Number(_) | Value::Bool(_) => true,
            Value::String(text) => text.len() <= FACT_BYTES_MAX && !text.contains("://"),
            _ => false,
        };
        let short = members.iter().filter(|it| is_short(it.1)).take(FACTS_MAX);
        short.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub fn cast(&self) -> String {
        self.text(&["cast", "actors"])
    }

    pub fn director(&self) -> String {
        self.text(&["director", "directed_by"])
    }

    pub fn country(&self) -> String {
        self.text(&["country"])
    }

    pub fn trailer(&self) -> String {
        self.text(&["youtube_trailer", "trailer"])
    }

    pub fn release_date(&self) -> String {
        self.text(&["release_date", "releaseDate", "releasedate"])
    }

    pub fn run_time(&self) -> String {
        self.text(&["episode_run_time", "runtime"])
    }

    pub fn original_name(&self) -> String {
        self.text(&["o_name", "original_name"])
    }

    pub fn age(&self) -> String {
        self.text(&["age", "mpaa_rating"])
    }

    pub fn bitrate(&self) -> u64 {
        self.number(&["bitrate"]).unwrap_or_default()
    }

    pub fn video(&self) -> Map<String, Value> {
        self.facts(&["video"])
    }

    pub fn audio(&self) -> Map<String, Value> {
        self.facts(&["audio"])
    }

    pub fn backdrops(&self) -> Vec<&'a str> {
        self.pictures(&["backdrop_path", "backdrops"])
    }
}

/// Maximum length of a fact in an object, in bytes, and maximum number of facts.
const FACT_BYTES_MAX: usize = 100;
const FACTS_MAX: usize = 50;

/// Returns a rating that is a number from 0 to 10; labels such as `PG-13` are none.
pub fn numeric_rating(rating: Option<&str>) -> Option<f64> {
    rating?.trim().parse().ok().filter(|it: &f64| (0.0..=10.0).contains(it))
}

/// Returns a duration such as `01:45:09`.
pub fn clock_time(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use domain::vod::TitleId;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_first_usable_value_of_a_property_counts_whatever_its_type_is() {
        let mut title = Title::new(TitleId::movie(1).unwrap(), Uuid::from_u128(1), 0);
        let properties = json!({
            "cast": " ", "actors": ["A", "B", null], "director": 7, "country": {}, "youtube_trailer": null,
            "bitrate": "4500", "backdrop_path": "http://p/1.jpg",
            "video": { "codec_name": "h264", "width": 1280, "tags": {}, "file": "http://u:p@p/1.mp4" },
        });
        title.custom_properties = properties.as_object().unwrap().clone();
        let it = Properties::from_title(&title, None);
        assert_eq!(
            (it.cast(), it.director(), it.country(), it.trailer()),
            ("A, B".to_owned(), "7".to_owned(), String::new(), String::new())
        );
        assert_eq!((it.bitrate(), it.backdrops()), (4500, vec!["http://p/1.jpg"]));
        assert_eq!(Value::from(it.video()), json!({ "codec_name": "h264", "width": 1280 }));
        assert_eq!((numeric_rating(Some("7.5")), numeric_rating(Some("PG-13"))), (Some(7.5), None));
        assert_eq!(clock_time(6309), "01:45:09");
    }
}
