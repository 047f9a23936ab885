//! Films, series and episodes of the other service, under the ids that they have there: favourites of players and files of
//! media servers name titles by them.
//!
//! What an account offers is taken with the id of its provider, by which the first refresh of the account finds the title
//! again and replaces its values.

use std::collections::{HashMap, HashSet};

use domain::ids::{AccountId, EpisodeId, VodCategoryId};
use domain::recording::RECORDING_NUMBER_FIRST;
use domain::vod::category::{CATEGORY_NAME_CHARS_MAX, UNCATEGORISED};
use domain::vod::{
    Episode, EpisodeAlias, EpisodeFacts, EpisodeOffer, ExternalIds, FoundEpisode, FoundTitle, MatchReason,
    NAME_CHARS_MAX, PROVIDER_ID_CHARS_MAX, Relation, RelationId, Title, TitleId, TitleKind, TitleName,
};
use uuid::Uuid;

use super::household::Household;
use super::plan::Foundation;
use super::report::{KindReport, Report};
use super::row::{SourceRow, plain};
use super::table::SourceTable;

/// Maximum number of accounts' offers of one title or episode that are taken.
const OFFERS_MAX: usize = 50;

/// The films, series and episodes of a source. Kept in few bytes each, because there may be hundreds of thousands.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceTitles {
    categories: Vec<SourceCategory>,
    links: Vec<SourceLink>,
    movies: Vec<SourceTitle>,
    series: Vec<SourceTitle>,
    episodes: Vec<SourceEpisode>,
    movie_offers: Vec<SourceOffer>,
    series_offers: Vec<SourceOffer>,
    episode_offers: Vec<SourceOffer>,
}

#[derive(Debug, Clone)]
struct SourceCategory {
    id: u32,
    kind: TitleKind,
    name: String,
}

/// A category of an account.
#[derive(Debug, Clone)]
struct SourceLink {
    account: u32,
    category: u32,
    enabled: bool,
}

#[derive(Debug, Clone)]
struct SourceTitle {
    id: Option<u32>,
    uuid: Option<Uuid>,
    name: Box<str>,
    year: Option<u16>,
    tmdb: Option<Box<str>>,
    imdb: Option<Box<str>>,
    is_adult: bool,
    created_at: Option<i64>,
}

#[derive(Debug, Clone)]
struct SourceEpisode {
    id: Option<u32>,
    uuid: Option<Uuid>,
    series: Option<u32>,
    season: u32,
    number: u32,
    name: Box<str>,
    created_at: Option<i64>,
}

/// States that an account offers a title or an episode.
#[derive(Debug, Clone)]
struct SourceOffer {
    account: u32,
    of: u32,
    category: Option<u32>,
    provider_id: Box<str>,
    extension: Box<str>,
}

impl SourceTitles {
    /// Adds a row of one of the tables of films and series. Returns false for a row of another table.
    pub(crate) fn add(&mut self, table: SourceTable, row: &SourceRow) -> bool {
        match table {
            SourceTable::VodCategories => {
                let kind = row.text("category_type").and_then(TitleKind::from_name);
                let name = plain(row.text("name").unwrap_or_default(), CATEGORY_NAME_CHARS_MAX);
                if let (Some(id), Some(kind), false) = (row.id("id"), kind, name.is_empty()) {
                    self.categories.push(SourceCategory { id, kind, name });
                }
            }
            SourceTable::AccountVodCategories => {
                if let (Some(account), Some(category)) = (row.id("m3u_account_id"), row.id("category_id")) {
                    let enabled = row.flag("enabled") == Some(true);
                    self.links.push(SourceLink { account, category, enabled });
                }
            }
            SourceTable::Movies => self.movies.push(SourceTitle::from_row(row)),
            SourceTable::Series => self.series.push(SourceTitle::from_row(row)),
            SourceTable::Episodes => self.episodes.push(SourceEpisode::from_row(row)),
            SourceTable::MovieOffers => {
                self.movie_offers.extend(SourceOffer::from_row(row, "movie_id", "stream_id"));
            }
            SourceTable::SeriesOffers => {
                self.series_offers.extend(SourceOffer::from_row(row, "series_id", "external_series_id"));
            }
            SourceTable::EpisodeOffers => {
                self.episode_offers.extend(SourceOffer::from_row(row, "episode_id", "stream_id"));
            }
            _ => return false,
        }
        true
    }
}

fn uuid_in(row: &SourceRow) -> Option<Uuid> {
    row.text("uuid").and_then(|it| Uuid::try_parse(it).ok()).filter(|it| !it.is_nil())
}

impl SourceTitle {
    fn from_row(row: &SourceRow) -> Self {
        let text = |column| row.text(column).map(|it| plain(it, NAME_CHARS_MAX).into_boxed_str());
        Self {
            id: row.id("id"),
            uuid: uuid_in(row),
            name: text("name").unwrap_or_default(),
            year: row.integer("year").and_then(|it| u16::try_from(it).ok()),
            tmdb: text("tmdb_id"),
            imdb: text("imdb_id"),
            is_adult: row.flag("is_adult") == Some(true),
            created_at: row.time_ms("created_at"),
        }
    }
}

impl SourceEpisode {
    fn from_row(row: &SourceRow) -> Self {
        let number = |column| row.integer(column).and_then(|it| u32::try_from(it).ok()).unwrap_or_default();
        Self {
            id: row.id("id"),
            uuid: uuid_in(row),
            series: row.id("series_id"),
            season: number("season_number"),
            number: number("episode_number"),
            name: plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX).into_boxed_str(),
            created_at: row.time_ms("created_at"),
        }
    }
}

impl SourceOffer {
    fn from_row(row: &SourceRow, of: &'static str, provider_id: &'static str) -> Option<Self> {
        let provider_id = plain(&row.number(provider_id)?, PROVIDER_ID_CHARS_MAX);
        (!provider_id.is_empty()).then_some(())?;
        Some(Self {
            account: row.id("m3u_account_id")?,
            of: row.id(of)?,
            category: row.id("category_id"),
            provider_id: provider_id.into_boxed_str(),
            extension: row.text("container_extension").unwrap_or_default().into(),
        })
    }
}

/// A title, and the relation of each account that offers it.
type KnownTitle = (TitleId, Vec<(AccountId, RelationId)>);

/// The titles that the store has already, and the first numbers that nothing ever had.
#[derive(Debug, Default)]
pub struct KnownTitles {
    pub titles: HashMap<(TitleKind, Uuid), KnownTitle>,
    /// The offers of accounts, by the ids of their providers.
    pub offers: HashSet<(AccountId, TitleKind, Box<str>)>,
    pub episodes: HashSet<Uuid>,
    /// Series, seasons and numbers of the episodes.
    pub episode_places: HashSet<(TitleId, u32, u32)>,
    /// The first number that neither a title nor a relation ever had.
    pub unused_number: u32,
    /// The first id that no episode ever had.
    pub unused_episode: u32,
}

/// The films, series and episodes that an import writes.
#[derive(Debug, Clone, Default)]
pub struct PlannedTitles {
    /// The categories that titles and links refer to, by position.
    pub categories: Vec<(TitleKind, String)>,
    /// Accounts, their categories by position, and whether these are enabled.
    pub links: Vec<(AccountId, usize, bool)>,
    titles: Vec<PlannedTitle>,
    pub episodes: Vec<Episode>,
    /// The first number that neither a title nor a relation has after the import.
    pub next_number: u32,
}

#[derive(Debug, Clone)]
struct PlannedTitle {
    /// Without relations.
    title: Title,
    name: Box<str>,
    year: Option<u16>,
    ids: ExternalIds,
    is_adult: bool,
    offers: Vec<PlannedOffer>,
}

#[derive(Debug, Clone)]
struct PlannedOffer {
    relation: RelationId,
    account: AccountId,
    category: usize,
    provider_id: Box<str>,
    extension: Box<str>,
}

impl PlannedTitles {
    pub fn is_empty(&self) -> bool {
        self.titles.is_empty() && self.episodes.is_empty() && self.links.is_empty()
    }

    /// Takes the titles, with the categories in the store by their positions.
    pub fn take_titles(&mut self, categories: &[VodCategoryId]) -> Vec<Title> {
        let titles = std::mem::take(&mut self.titles);
        titles.into_iter().map(|it| it.into_title(categories)).collect()
    }
}

impl PlannedTitle {
    fn into_title(self, categories: &[VodCategoryId]) -> Title {
        let mut title = self.title;
        for offer in self.offers {
            let category = categories.get(offer.category).copied().unwrap_or(VodCategoryId(0));
            let mut found = FoundTitle::new(&*offer.provider_id, category, &*self.name);
            found.extension = offer.extension.into_string();
            (found.facts.year, found.facts.ids) = (self.year, self.ids.clone());
            found.facts.is_adult = self.is_adult;
            found.limit();
            let mut relation = Relation::new(offer.relation, offer.account, category, "", title.created_at);
            relation.label = Some(TitleName::new(&found.facts.name).label).filter(|it| !it.is_empty());
            relation.reason = match (&found.facts.ids.tmdb, &found.facts.ids.imdb) {
                _ if title.relations.is_empty() => MatchReason::First,
                (Some(id), _) => MatchReason::TmdbId(id.clone()),
                (None, Some(id)) => MatchReason::ImdbId(id.clone()),
                (None, None) => MatchReason::NameAndYear,
            };
            found.put_into(&mut relation);
            title.relations.push(relation);
        }
        title
    }
}

impl Foundation {
    /// Converts films, series and episodes. `now` is in milliseconds since 1970; `random` returns a new UUID that ends with an
    /// id, for a title without a usable one.
    pub fn titles(
        &self,
        household: &Household,
        known: &KnownTitles,
        now: i64,
        random: &dyn Fn(u32) -> Uuid,
        report: &mut Report,
    ) -> PlannedTitles {
        let source = &household.titles;
        let ids = source.movies.iter().chain(&source.series).filter_map(|it| it.id);
        let largest = ids.filter(|it| *it < RECORDING_NUMBER_FIRST).max().unwrap_or_default();
        let mut planning = Planning {
            foundation: self,
            known,
            now,
            random,
            next: known.unused_number.max(largest.saturating_add(1)),
            planned: PlannedTitles::default(),
            places: HashMap::new(),
            uncategorised: HashMap::new(),
            links: HashMap::new(),
        };
        planning.add_categories(source);
        let movies = SourceTable::Movies;
        planning.add_titles(
            TitleKind::Movie,
            &source.movies,
            &source.movie_offers,
            report.kind(movies.label()),
        );
        let series = planning.add_titles(
            TitleKind::Series,
            &source.series,
            &source.series_offers,
            report.kind(SourceTable::Series.label()),
        );
        planning.add_episodes(source, &series, report.kind(SourceTable::Episodes.label()));
        planning.finish()
    }
}

/// A series of the source in the store, and the relations of accounts with it.
type PlacedSeries = HashMap<u32, (TitleId, Vec<(AccountId, RelationId)>)>;

struct Planning<'a> {
    foundation: &'a Foundation,
    known: &'a KnownTitles,
    now: i64,
    random: &'a dyn Fn(u32) -> Uuid,
    /// The next number for a title that cannot keep its own, and for relations.
    next: u32,
    planned: PlannedTitles,
    /// Positions of categories by the id of the source.
    places: HashMap<u32, (TitleKind, usize)>,
    uncategorised: HashMap<TitleKind, usize>,
    /// Whether categories of accounts are enabled.
    links: HashMap<(AccountId, usize), bool>,
}

impl Planning<'_> {
    fn add_categories(&mut self, source: &SourceTitles) {
        for category in &source.categories {
            let at = self.category(category.kind, &category.name);
            self.places.insert(category.id, (category.kind, at));
        }
        for link in &source.links {
            let account = self.foundation.accounts.get(&link.account).filter(|it| it.is_new);
            let place = self.places.get(&link.category);
            if let (Some(account), Some((_, at))) = (account, place) {
                self.links.insert((account.account.id, *at), link.enabled);
            }
        }
    }

    fn category(&mut self, kind: TitleKind, name: &str) -> usize {
        let categories = &mut self.planned.categories;
        let found = categories.iter().position(|it| it.0 == kind && it.1 == name);
        found.unwrap_or_else(|| {
            categories.push((kind, name.to_owned()));
            categories.len() - 1
        })
    }

    /// Returns the category of an offer. A title whose category the source does not know is uncategorised.
    fn category_of(&mut self, kind: TitleKind, category: Option<u32>) -> usize {
        let own = category.and_then(|it| self.places.get(&it)).filter(|it| it.0 == kind);
        if let Some((_, at)) = own {
            return *at;
        }
        if let Some(at) = self.uncategorised.get(&kind) {
            return *at;
        }
        let at = self.category(kind, UNCATEGORISED);
        self.uncategorised.insert(kind, at);
        at
    }

    fn fresh(&mut self) -> u32 {
        let number = self.next;
        // Numbers of a source are below 2^31, and there are fewer titles than that.
        self.next = self.next.saturating_add(1);
        number
    }

    /// Returns the account of an offer that is new in the store.
    fn account_of(&self, offer: &SourceOffer) -> Option<AccountId> {
        self.foundation.accounts.get(&offer.account).map(|it| it.account.id)
    }

    fn add_titles(
        &mut self,
        kind: TitleKind,
        titles: &[SourceTitle],
        offers: &[SourceOffer],
        report: &mut KindReport,
    ) -> PlacedSeries {
        let by_title = by_record(offers);
        let mut placed = PlacedSeries::new();
        let (mut numbers, mut uuids, mut provided) = (HashSet::new(), HashSet::new(), HashSet::new());
        for title in titles {
            let Some(source) = title.id else {
                report.skip(format!("{} {}", kind.name(), title.name), "its id is missing or too large");
                continue;
            };
            let what = || format!("{} {source}", kind.name());
            if let Some(known) = title.uuid.and_then(|it| self.known.titles.get(&(kind, it))) {
                report.merged += 1;
                placed.entry(source).or_insert_with(|| known.clone());
                continue;
            }
            let of_title = by_title.get(&source).map_or(&[][..], Vec::as_slice);
            let mut taken = Vec::new();
            let mut is_known = false;
            for offer in of_title.iter().map(|it| &offers[*it]) {
                let Some(account) = self.account_of(offer) else { continue };
                is_known |= self.known.offers.contains(&(account, kind, offer.provider_id.clone()));
                if !is_known && taken.len() < OFFERS_MAX && provided.insert((account, &*offer.provider_id)) {
                    taken.push((account, offer));
                }
            }
            if is_known {
                // The account was refreshed here before, so the title has an id of its own.
                report.merged += 1;
                continue;
            }
            if taken.is_empty() {
                report.skip(what(), "no account that is taken offers it");
                continue;
            }
            let is_free = (self.known.unused_number..RECORDING_NUMBER_FIRST).contains(&source)
                && numbers.insert(source);
            let number = if is_free { source } else { self.fresh() };
            let Some(id) = TitleId::new(kind, number) else {
                report.skip(what(), "no number is left");
                continue;
            };
            if number != source {
                report.change(what(), "it gets another id, because its own is in use, or one of recordings");
            }
            let uuid = title.uuid.filter(|it| uuids.insert(*it)).unwrap_or_else(|| {
                report.change(what(), "its uuid is missing, invalid or occurs twice, so it gets another one");
                (self.random)(id.key())
            });
            let mut planned = Vec::with_capacity(taken.len());
            for (account, offer) in taken {
                let category = self.category_of(kind, offer.category);
                self.links.entry((account, category)).or_insert(true);
                planned.push(PlannedOffer {
                    relation: RelationId(self.fresh()),
                    account,
                    category,
                    provider_id: offer.provider_id.clone(),
                    extension: offer.extension.clone(),
                });
            }
            let relations = planned.iter().map(|it| (it.account, it.relation)).collect();
            placed.insert(source, (id, relations));
            let text = |it: &Option<Box<str>>| it.as_deref().map(str::to_owned);
            self.planned.titles.push(PlannedTitle {
                title: Title::new(id, uuid, title.created_at.unwrap_or(self.now)),
                name: title.name.clone(),
                year: title.year,
                ids: ExternalIds { tmdb: text(&title.tmdb), imdb: text(&title.imdb) },
                is_adult: title.is_adult,
                offers: planned,
            });
            report.taken += 1;
        }
        placed
    }

    fn add_episodes(&mut self, source: &SourceTitles, series: &PlacedSeries, report: &mut KindReport) {
        let by_episode = by_record(&source.episode_offers);
        let ids = source.episodes.iter().filter_map(|it| it.id);
        let largest = ids.filter(|it| *it < RECORDING_NUMBER_FIRST).max().unwrap_or_default();
        let mut next = self.known.unused_episode.max(largest.saturating_add(1));
        let (mut ids, mut uuids, mut places) = (HashSet::new(), HashSet::new(), HashMap::new());
        for episode in &source.episodes {
            let placed = episode.series.and_then(|it| series.get(&it));
            let (Some(source_id), Some((title, relations))) = (episode.id, placed) else {
                report.skip("an episode", "its id is missing, or its series was skipped or does not exist");
                continue;
            };
            let what = || format!("episode {source_id}");
            let place = (*title, episode.season, episode.number);
            if episode.uuid.is_some_and(|it| self.known.episodes.contains(&it))
                || self.known.episode_places.contains(&place)
            {
                report.merged += 1;
                continue;
            }
            let of_episode = by_episode.get(&source_id).map_or(&[][..], Vec::as_slice);
            let offers = of_episode.iter().filter_map(|it| {
                let offer = &source.episode_offers[*it];
                let account = self.account_of(offer)?;
                let relation = relations.iter().find(|it| it.0 == account)?.1;
                Some(episode_offer(episode, offer, account, relation))
            });
            let offers: Vec<EpisodeOffer> = offers.take(OFFERS_MAX).collect();
            if offers.is_empty() {
                report.skip(what(), "no account that is taken offers it");
                continue;
            }
            let is_free = (self.known.unused_episode..RECORDING_NUMBER_FIRST).contains(&source_id)
                && ids.insert(source_id);
            let id = if is_free {
                source_id
            } else {
                report.change(what(), "it gets another id, because its own is in use, or one of recordings");
                next = next.saturating_add(1);
                next - 1
            };
            let uuid = episode.uuid.filter(|it| uuids.insert(*it)).unwrap_or_else(|| {
                report.change(what(), "its uuid is missing, invalid or occurs twice, so it gets another one");
                (self.random)(id)
            });
            report.taken += 1;
            let id = EpisodeId(id);
            match places.get(&place) {
                // The other service has a number twice: both ids lead to one episode.
                Some(at) => {
                    let first: &mut Episode = &mut self.planned.episodes[*at];
                    first.aliases.push(EpisodeAlias { id, uuid });
                    let room = OFFERS_MAX.saturating_sub(first.offers.len());
                    first.offers.extend(offers.into_iter().take(room));
                }
                None => {
                    places.insert(place, self.planned.episodes.len());
                    let created_at = episode.created_at.unwrap_or(self.now);
                    self.planned.episodes.push(Episode {
                        id,
                        uuid,
                        series: *title,
                        season: episode.season,
                        number: episode.number,
                        offers,
                        completion: None,
                        aliases: Vec::new(),
                        created_at,
                        updated_at: created_at,
                    });
                }
            }
        }
    }

    fn finish(mut self) -> PlannedTitles {
        let mut links: Vec<_> = self.links.into_iter().map(|((account, at), on)| (account, at, on)).collect();
        links.sort_unstable();
        (self.planned.links, self.planned.next_number) = (links, self.next);
        self.planned
    }
}

/// Returns the positions of offers by the record that they belong to.
fn by_record(offers: &[SourceOffer]) -> HashMap<u32, Vec<usize>> {
    let mut found: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, offer) in offers.iter().enumerate() {
        found.entry(offer.of).or_default().push(at);
    }
    found
}

fn episode_offer(
    episode: &SourceEpisode,
    offer: &SourceOffer,
    account: AccountId,
    relation: RelationId,
) -> EpisodeOffer {
    let mut found = FoundEpisode {
        season: episode.season,
        number: episode.number,
        provider_id: offer.provider_id.to_string(),
        address: None,
        extension: offer.extension.to_string(),
        facts: EpisodeFacts { name: episode.name.to_string(), ..EpisodeFacts::default() },
    };
    found.limit();
    EpisodeOffer {
        account,
        relation,
        provider_id: found.provider_id,
        address: None,
        extension: found.extension,
        facts: found.facts,
        last_seen: None,
    }
}
