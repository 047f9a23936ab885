//! Films and series of a portal: their lists by category and page, and the episodes of one series.
//!
//! The module of films lists series as well, so that its pages are read once for both kinds. Servers that behave like
//! portals have another module for series.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use domain::account::Account;
use domain::ids::VodCategoryId;
use domain::panel::ElementProblem;
use domain::panel::vod::{EPISODES_MAX, SkippedElements};
use domain::portal::{
    PortalGenre, PortalMedia, PortalQuestion, PortalSeason, PortalStreamAddress, PortalTitle, SeriesParts,
    TitleModule, numbered_episodes, read_episode, read_genres,
};
use domain::source_url::SourceUrl;
use domain::vod::{AccountCategory, FoundCategory, FoundEpisode, FoundTitle, Relation, TitleKind};
use storage::FoundEpisodes;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::error::VodError;
use super::lists::{ReadTitles, TITLES_MAX};
use super::sync::{KindSummary, SyncJob, blocking, check_account};
use super::{Parts, land};
use crate::memory::usable_bytes;
use crate::portals::{PAGE_PAUSE, Pages, PortalClient, PortalFailure, items_of};
use crate::refresh::spool::{self, Spool};

/// Maximum number of seasons of a series.
const SEASONS_MAX: usize = 200;

/// A refresh of the films and then the series of a portal.
pub(super) struct PortalTitles<'a> {
    job: &'a SyncJob<'a>,
    client: &'a PortalClient,
    /// The base address of the portal, as the account names it.
    server: SourceUrl,
    /// The categories of the module of films.
    categories: BTreeMap<String, PortalGenre>,
    /// The series that this module has listed, each with the id of its category.
    series: Spool<(String, FoundTitle)>,
    /// The ids of these categories.
    with_series: BTreeSet<String>,
}

/// Titles of one kind while they are read.
struct Reading {
    into: ReadTitles,
    seen: HashSet<String>,
    /// The categories that have answered with titles.
    asked: BTreeSet<VodCategoryId>,
}

impl Reading {
    fn new() -> Self {
        Self { into: ReadTitles::new(), seen: HashSet::new(), asked: BTreeSet::new() }
    }

    /// Adds a title, unless another category has listed it before.
    fn add(&mut self, title: FoundTitle) -> Result<(), VodError> {
        if self.into.titles.len() >= TITLES_MAX {
            self.into.skipped.add(ElementProblem::TooMany);
            return Ok(());
        }
        self.asked.insert(title.category);
        if self.seen.insert(title.provider_id.clone()) {
            self.into.n_listed += 1;
            self.into.titles.push(&title)?;
        }
        Ok(())
    }
}

impl<'a> PortalTitles<'a> {
    /// Prepares a refresh. `None` if the account is no longer at a portal.
    pub(super) fn new(job: &'a SyncJob<'a>, client: &'a PortalClient) -> Option<Self> {
        Some(Self {
            job,
            client,
            server: job.account.list.portal()?.server.clone(),
            categories: BTreeMap::new(),
            series: Spool::new(spool::bytes_max(usable_bytes())),
            with_series: BTreeSet::new(),
        })
    }

    /// Refreshes one kind. The films come first.
    pub(super) async fn kind(&mut self, kind: TitleKind) -> Result<KindSummary, VodError> {
        match kind {
            TitleKind::Movie => self.films().await,
            TitleKind::Series => self.series().await,
        }
    }

    async fn films(&mut self) -> Result<KindSummary, VodError> {
        self.categories = self.genres(TitleModule::Vod).await?;
        let found = self.categories.iter().map(|(id, it)| found_category(TitleKind::Movie, id, it));
        let links = self.land_categories(TitleKind::Movie, found.collect()).await?;
        let enabled = enabled_ids(&links);
        let of_series = enabled_ids(&self.known_series());
        let wanted: Vec<(String, PortalGenre)> = self
            .categories
            .iter()
            .filter(|it| {
                enabled.contains_key(it.0) || of_series.contains_key(&TitleModule::Vod.catalogue_id(it.0))
            })
            .map(|it| (it.0.clone(), it.1.clone()))
            .collect();
        let mut reading = Reading::new();
        for (id, genre) in wanted {
            let category = enabled.get(&id).copied();
            self.category(TitleModule::Vod, (&id, &genre), category, &mut reading).await?;
        }
        if reading.into.n_listed == 0 && (enabled.is_empty() || !self.with_series.is_empty()) {
            return Ok(KindSummary::without_titles(TitleKind::Movie, &links, reading.into.skipped));
        }
        self.land_titles(TitleKind::Movie, &links, reading).await
    }

    async fn series(&mut self) -> Result<KindSummary, VodError> {
        let genres = match self.genres(TitleModule::Series).await {
            // Portals have no such module.
            Err(VodError::Portal { is_refusal: false, .. }) => BTreeMap::new(),
            genres => genres?,
        };
        let mut found: Vec<FoundCategory> =
            genres.iter().map(|(id, it)| found_category(TitleKind::Series, id, it)).collect();
        let of_films =
            self.categories.iter().filter(|it| genres.is_empty() || self.with_series.contains(it.0));
        found.extend(
            of_films
                .map(|(id, it)| found_category(TitleKind::Series, &TitleModule::Vod.catalogue_id(id), it)),
        );
        if found.is_empty() && self.known_series().is_empty() {
            return Ok(KindSummary::without_titles(TitleKind::Series, &[], SkippedElements::default()));
        }
        let links = self.land_categories(TitleKind::Series, found).await?;
        let enabled = enabled_ids(&links);
        let mut reading = Reading::new();
        for (id, genre) in &genres {
            if let Some(category) = enabled.get(id) {
                self.category(TitleModule::Series, (id, genre), Some(*category), &mut reading).await?;
            }
        }
        let adult = |id: &str| self.categories.get(id).is_some_and(|it| it.is_censored);
        self.series.for_each(|(id, mut title)| {
            if let Some(category) = enabled.get(&TitleModule::Vod.catalogue_id(&id)) {
                title.category = *category;
                title.facts.is_adult |= adult(&id);
                reading.add(title)?;
            }
            Ok::<_, VodError>(())
        })?;
        // The categories of the module of films need not have series.
        let is_of_films = |it: &String| it.starts_with(&TitleModule::Vod.catalogue_id(""));
        if reading.into.n_listed == 0 && enabled.keys().all(is_of_films) {
            return Ok(KindSummary::without_titles(TitleKind::Series, &links, reading.into.skipped));
        }
        self.land_titles(TitleKind::Series, &links, reading).await
    }

    /// Reads the titles of a category, page by page. Films are added if their category is enabled; series of the module of
    /// films are kept for later.
    async fn category(
        &mut self,
        module: TitleModule,
        (id, genre): (&str, &PortalGenre),
        category: Option<VodCategoryId>,
        reading: &mut Reading,
    ) -> Result<(), VodError> {
        let endpoint = self.client.endpoint().await.ok_or(VodError::AccountChanged)?;
        let mut pages = Pages::new(self.client, TITLES_MAX as u64);
        let mut seen = HashSet::new();
        sleep(PAGE_PAUSE).await;
        while let Some(js) = pages.next(|page| PortalQuestion::Titles { module, category: id, page }).await? {
            let n_before = seen.len();
            for element in items_of(&js) {
                let title = match PortalTitle::read(element, module, (&self.server, &endpoint)) {
                    Ok(title) => title,
                    Err(problem) => {
                        reading.into.skipped.add(problem);
                        continue;
                    }
                };
                let is_for_later = title.is_series && module == TitleModule::Vod;
                let found = title.into_found(category.unwrap_or(VodCategoryId(0)), genre.is_censored);
                if !seen.insert(found.provider_id.clone()) {
                    continue;
                }
                if is_for_later {
                    self.with_series.insert(id.to_owned());
                    self.series.push(&(id.to_owned(), found))?;
                } else if category.is_some() {
                    reading.add(found)?;
                }
            }
            let n_new = (seen.len() - n_before) as u64;
            pages.read(n_new);
            self.job.report_titles(n_new);
        }
        Ok(())
    }

    async fn genres(&self, module: TitleModule) -> Result<BTreeMap<String, PortalGenre>, VodError> {
        let answer = self.client.ask(&PortalQuestion::Categories { module }).await?;
        Ok(read_genres(&answer).into_iter().collect())
    }

    /// Returns the links of the account with categories of series.
    fn known_series(&self) -> Vec<AccountCategory> {
        let links = self.job.parts.models.vod_account_categories.load();
        let of_account = links.by("account", self.job.account.id.0.to_be_bytes());
        of_account.filter(|it| it.kind == TitleKind::Series).map(|it| (**it).clone()).collect()
    }

    async fn land_categories(
        &self,
        kind: TitleKind,
        found: Vec<FoundCategory>,
    ) -> Result<Vec<AccountCategory>, VodError> {
        let (models, account) = (self.job.parts.models.clone(), self.job.account.clone());
        check_account(&models, &account)?;
        let now = (self.job.parts.now)();
        blocking(move || land::categories(&models, &account, kind, found, now)).await
    }

    async fn land_titles(
        &self,
        kind: TitleKind,
        links: &[AccountCategory],
        reading: Reading,
    ) -> Result<KindSummary, VodError> {
        let Reading { into, asked, .. } = reading;
        // An empty answer says nothing about the titles of its category.
        self.job.land(kind, links, into, (Some(asked), SkippedElements::default())).await
    }
}

fn found_category(kind: TitleKind, id: &str, genre: &PortalGenre) -> FoundCategory {
    FoundCategory { kind, provider_id: id.to_owned(), name: genre.name.clone() }
}

/// Returns the categories that are enabled by their ids at the portal.
fn enabled_ids(links: &[AccountCategory]) -> HashMap<String, VodCategoryId> {
    let enabled = links.iter().filter(|it| it.enabled);
    enabled.flat_map(|it| it.provider_ids.iter().map(|id| (id.clone(), it.category))).collect()
}

/// Asks the portal for the episodes of a series, and stores them.
pub(super) async fn load_episodes(
    parts: &Arc<Parts>,
    account: &Arc<Account>,
    client: &PortalClient,
    relation: Relation,
    stop: &CancellationToken,
) -> Result<(), VodError> {
    let address = relation.address.as_ref().and_then(PortalStreamAddress::parse);
    let address = address.ok_or(VodError::AccountChanged)?;
    let server = account.list.portal().map(|it| it.server.clone()).ok_or(VodError::AccountChanged)?;
    let asking = episodes_of(client, &address, &server);
    let mut episodes = stop.run_until_cancelled(asking).await.ok_or(VodError::Stopped)??;
    if episodes.is_empty() {
        return Err(VodError::Empty { what: "episodes" });
    }
    episodes.truncate(EPISODES_MAX);
    let (parts, account) = (parts.clone(), account.clone());
    blocking(move || {
        check_account(&parts.models, &account)?;
        let found = FoundEpisodes { relation: relation.id, episodes };
        land::episodes(&parts.models, &account, vec![found], (parts.now)())
    })
    .await
}

async fn episodes_of(
    client: &PortalClient,
    address: &PortalStreamAddress,
    server: &SourceUrl,
) -> Result<Vec<FoundEpisode>, PortalFailure> {
    let (series, cmd) = (address.id.as_str(), &address.cmd);
    match &address.media {
        PortalMedia::Series(SeriesParts::Numbered(numbers)) => {
            Ok(numbered_episodes((series, cmd), None, numbers, server))
        }
        PortalMedia::Series(SeriesParts::Module) => {
            let seasons = seasons_of(client, TitleModule::Series, series).await?;
            let of = |it: &PortalSeason| {
                numbered_episodes((series, &it.cmd), Some(it.number), &it.numbers, server)
            };
            Ok(seasons.iter().flat_map(of).collect())
        }
        _ => {
            let mut episodes = Vec::new();
            for season in seasons_of(client, TitleModule::Vod, series).await? {
                sleep(PAGE_PAUSE).await;
                episodes.extend(season_episodes(client, series, &season, server).await?);
                if episodes.len() >= EPISODES_MAX {
                    break;
                }
            }
            Ok(episodes)
        }
    }
}

/// Returns the seasons of a series, each number once.
async fn seasons_of(
    client: &PortalClient,
    module: TitleModule,
    title: &str,
) -> Result<Vec<PortalSeason>, PortalFailure> {
    let mut pages = Pages::new(client, SEASONS_MAX as u64);
    let (mut seasons, mut seen) = (Vec::new(), HashSet::new());
    let question = |page| PortalQuestion::Parts { module, title, season: None, episode: None, page };
    while let Some(js) = pages.next(question).await? {
        let n_before = seasons.len();
        for element in items_of(&js) {
            let season = PortalSeason::read(element, seasons.len());
            seasons.extend(season.filter(|it| seen.insert(it.number)));
        }
        pages.read((seasons.len() - n_before) as u64);
    }
    seasons.truncate(SEASONS_MAX);
    Ok(seasons)
}

async fn season_episodes(
    client: &PortalClient,
    title: &str,
    season: &PortalSeason,
    server: &SourceUrl,
) -> Result<Vec<FoundEpisode>, PortalFailure> {
    let mut pages = Pages::new(client, EPISODES_MAX as u64);
    let (mut episodes, mut seen) = (Vec::new(), HashSet::new());
    let (module, id) = (TitleModule::Vod, Some(season.id.as_str()));
    let question = |page| PortalQuestion::Parts { module, title, season: id, episode: None, page };
    while let Some(js) = pages.next(question).await? {
        let n_before = episodes.len();
        for element in items_of(&js) {
            let episode = read_episode(element, (title, season), episodes.len(), server);
            episodes.extend(episode.filter(|it| seen.insert(it.provider_id.clone())));
        }
        pages.read((episodes.len() - n_before) as u64);
    }
    Ok(episodes)
}
