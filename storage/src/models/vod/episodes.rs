//! Writes the episodes and the details that an account states of one title.

use std::collections::HashMap;

use domain::ids::EpisodeId;
use domain::playlist::delta::StalePolicy;
use domain::vod::identity::{Belongs, EntryIdentity, NAMES_PER_ID_MAX, TitleIndex};
use domain::vod::{
    Episode, EpisodeOffer, ExternalIds, FoundDetails, FoundEpisode, Relation, RelationId, Title,
    TitleDetails, TitleKind, TitleName, uuid_of,
};

use super::admin::{merge, priorities_in};
use super::landing::LandError;
use super::{VodTitles, random_u128};
use crate::error::Result;
use crate::records::vod::{external_id_key, series_key};
use crate::write::Write;

/// Maximum number of episodes of one series that an account may list.
pub const EPISODES_MAX: usize = 10_000;
/// Maximum number of offers of one episode. An account that lists more under one number has more than an episode can have.
const OFFERS_MAX: usize = 50;
/// Episodes of one write.
const EPISODES_PER_WRITE: usize = 2_000;

/// The episodes of a series that an account lists.
#[derive(Debug, Clone)]
pub struct FoundEpisodes {
    /// The relation of the series with the account.
    pub relation: RelationId,
    pub episodes: Vec<FoundEpisode>,
}

/// The changes that the episodes of a series made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LandedEpisodes {
    pub n_found: u64,
    pub n_new: u64,
    pub n_changed: u64,
    pub n_stale: u64,
    pub n_removed: u64,
}

impl VodTitles {
    /// Writes the episodes that accounts list of some series, each answer being complete. Several commits; blocks. Returns one
    /// result for each of the series: an empty answer changes nothing if episodes are known.
    pub fn land_episodes(
        &self,
        found: Vec<FoundEpisodes>,
        stale_days: u32,
        now: i64,
    ) -> Result<Vec<Result<LandedEpisodes, LandError>>> {
        let mut landed = Vec::with_capacity(found.len());
        let mut found = found.into_iter().peekable();
        while found.peek().is_some() {
            let (mut some, mut n) = (Vec::new(), 0);
            while let Some(next) =
                found.next_if(|it| some.is_empty() || n + it.episodes.len() <= EPISODES_PER_WRITE)
            {
                n += next.episodes.len();
                some.push(next);
            }
            landed.extend(self.store.write_blocking(move |write| {
                let land = |it| match land_episodes(write, it, stale_days, now) {
                    Err(LandError::Store(error)) => Err(error),
                    landed => Ok(landed),
                };
                some.into_iter().map(land).collect::<Result<Vec<_>>>()
            })?);
        }
        Ok(landed)
    }

    /// Writes the details of a film or a series that an account states, and returns the title, which may be another one if the
    /// details have the id of one. Blocks.
    ///
    /// # Errors
    /// The relation does not exist.
    pub fn land_details(
        &self,
        relation: RelationId,
        mut found: FoundDetails,
        now: i64,
    ) -> Result<Title, LandError> {
        found.limit();
        self.store.write_blocking(move |write| land_details(write, relation, found, now))
    }
}

fn title_of(write: &Write<'_>, relation: RelationId) -> Result<(Title, Relation), LandError> {
    let title = write.by::<Title>("relation", relation.0.to_be_bytes())?.pop();
    let found = title.and_then(|title| {
        let relation = title.relation(relation)?.clone();
        Some((title, relation))
    });
    found.ok_or(LandError::TitleGone)
}

fn land_episodes(
    write: &mut Write<'_>,
    found: FoundEpisodes,
    stale_days: u32,
    now: i64,
) -> Result<LandedEpisodes, LandError> {
    let (mut title, relation) = title_of(write, found.relation)?;
    if title.id.kind() != TitleKind::Series {
        return Err(LandError::TitleGone);
    }
    if found.episodes.len() > EPISODES_MAX {
        return Err(LandError::TooMany { n: found.episodes.len(), max: EPISODES_MAX });
    }
    let before = write.by::<Episode>("series", series_key(title.id))?;
    let is_known = before.iter().any(|it| it.offers.iter().any(|it| it.relation == relation.id));
    if found.episodes.is_empty() && is_known {
        return Err(LandError::Empty);
    }
    let at =
        StalePolicy { last_good: relation.episodes_at.unwrap_or(now), now, stale_stream_days: stale_days };
    let mut landed = LandedEpisodes { n_found: found.episodes.len() as u64, ..LandedEpisodes::default() };
    let mut list = EpisodeList::new(&before);
    for mut episode in found.episodes {
        episode.limit();
        list.take(write, &title, &relation, episode, now, &mut landed)?;
    }
    list.miss(relation.id, at, &mut landed);
    list.put(write, &title, before, now)?;
    if let Some(known) = title.relation_mut(relation.id) {
        (known.episodes_at, known.episodes_of) = (Some(now), known.last_modified);
    }
    write.put(&title)?;
    Ok(landed)
}

/// The episodes of a series while the answer of one account is applied.
struct EpisodeList {
    episodes: Vec<Episode>,
    /// Positions by season and number.
    places: HashMap<(u32, u32), usize>,
    /// Positions by relation and the provider's id.
    offers: HashMap<(RelationId, String), usize>,
    /// Offers that the answer has.
    seen: HashMap<String, (u32, u32)>,
}

impl EpisodeList {
    fn new(episodes: &[Episode]) -> Self {
        let mut list = Self {
            episodes: episodes.to_vec(),
            places: HashMap::new(),
            offers: HashMap::new(),
            seen: HashMap::new(),
        };
        for (at, episode) in episodes.iter().enumerate() {
            list.places.insert((episode.season, episode.number), at);
            for offer in &episode.offers {
                list.offers.insert((offer.relation, offer.provider_id.clone()), at);
            }
        }
        list
    }

    /// Applies one episode of the answer.
    fn take(
        &mut self,
        write: &mut Write<'_>,
        title: &Title,
        relation: &Relation,
        found: FoundEpisode,
        now: i64,
        landed: &mut LandedEpisodes,
    ) -> Result<()> {
        let place = (found.season, found.number);
        let known = self.offers.get(&(relation.id, found.provider_id.clone())).copied();
        if self.seen.insert(found.provider_id.clone(), place).is_some() {
            // The first one counts.
            return Ok(());
        }
        let target = match (known, self.places.get(&place).copied()) {
            (_, Some(target)) => target,
            // The provider has numbered it anew: it stays the same episode, if it is nobody else's.
            (Some(at), None) if self.episodes[at].offers.len() == 1 => {
                let episode = &mut self.episodes[at];
                self.places.remove(&(episode.season, episode.number));
                (episode.season, episode.number) = place;
                self.places.insert(place, at);
                at
            }
            (_, None) => {
                let id = write.next_id::<Episode>()?;
                self.episodes.push(Episode {
                    id: EpisodeId(id),
                    uuid: uuid_of(id, random_u128()?),
                    series: title.id,
                    season: found.season,
                    number: found.number,
                    offers: Vec::new(),
                    completion: None,
                    aliases: Vec::new(),
                    created_at: now,
                    updated_at: now,
                });
                self.places.insert(place, self.episodes.len() - 1);
                self.episodes.len() - 1
            }
        };
        let offer = EpisodeOffer {
            account: relation.account,
            relation: relation.id,
            provider_id: found.provider_id,
            address: found.address,
            extension: found.extension,
            facts: found.facts,
            last_seen: None,
        };
        let is_own = |it: &EpisodeOffer| it.relation == offer.relation && it.provider_id == offer.provider_id;
        if let Some(from) = known.filter(|it| *it != target) {
            self.episodes[from].offers.retain(|it| !is_own(it));
        }
        let offers = &mut self.episodes[target].offers;
        let is_full = offers.len() >= OFFERS_MAX;
        match offers.iter_mut().find(|it| is_own(it)) {
            Some(stored) if *stored == offer => {}
            Some(stored) => {
                landed.n_changed += 1;
                *stored = offer;
            }
            None if is_full => {}
            None => {
                landed.n_new += u64::from(known.is_none());
                landed.n_changed += u64::from(known.is_some());
                offers.push(offer);
            }
        }
        Ok(())
    }

    /// Marks the offers of a relation that the answer does not have, and removes those that were stale for long enough.
    fn miss(&mut self, relation: RelationId, at: StalePolicy, landed: &mut LandedEpisodes) {
        let seen = &self.seen;
        for episode in &mut self.episodes {
            episode.offers.retain_mut(|it| {
                if it.relation != relation || seen.contains_key(&it.provider_id) {
                    return true;
                }
                match it.last_seen {
                    Some(then) if at.is_over(then) => {
                        landed.n_removed += 1;
                        return false;
                    }
                    Some(_) => {}
                    None => {
                        landed.n_stale += 1;
                        it.last_seen = Some(at.last_good.min(at.now));
                    }
                }
                true
            });
        }
    }

    /// Writes what changed. An episode that nobody offers any more is removed.
    fn put(self, write: &mut Write<'_>, title: &Title, before: Vec<Episode>, now: i64) -> Result<()> {
        let before: HashMap<EpisodeId, Episode> = before.into_iter().map(|it| (it.id, it)).collect();
        let order = |id: RelationId| title.relations.iter().position(|it| it.id == id);
        for mut episode in self.episodes {
            episode.offers.sort_by_key(|it| (it.last_seen.is_some(), order(it.relation)));
            if episode.offers.is_empty() {
                write.remove::<Episode>(episode.id.0)?;
            } else if before.get(&episode.id) != Some(&episode) {
                episode.updated_at = now;
                write.put(&episode)?;
            }
        }
        Ok(())
    }
}

fn land_details(
    write: &mut Write<'_>,
    relation: RelationId,
    mut found: FoundDetails,
    now: i64,
) -> Result<Title, LandError> {
    let (mut title, before) = title_of(write, relation)?;
    let name = TitleName::new(before.name());
    for other in with_ids(write, &title, &found.facts.ids)? {
        // A provider that gives one id to several titles is mistaken.
        let of_account = other.relations_of(before.account).map(|it| TitleName::new(it.name()).words);
        let mut names: Vec<String> = of_account.filter(|it| *it != name.words).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() >= NAMES_PER_ID_MAX {
            found.facts.ids = ExternalIds::default();
        }
    }
    let ids = found.facts.ids.clone();
    if let Some(known) = title.relation_mut(relation) {
        let facts = Some(Box::new(found.facts));
        let is_new = known.details != facts;
        (known.details, known.details_at) = (facts, Some(now));
        title.updated_at = if is_new { now } else { title.updated_at };
    }
    write.put(&title)?;
    let account = before.account;
    write.put(&TitleDetails { relation, account, loaded_at: now, properties: found.properties })?;
    if before.is_pinned || ids.is_empty() {
        return Ok(title);
    }
    let mut index = TitleIndex::default();
    for other in with_ids(write, &title, &ids)? {
        index.add(&other);
    }
    let entry = EntryIdentity { ids: &ids, name: &name, year: None };
    let (others, reason) = match index.find(entry) {
        Belongs::New => return Ok(title),
        Belongs::To(one, reason) => (vec![one], reason),
        Belongs::ToBoth(one, other, reason) => (vec![one, other], reason),
    };
    let priorities = priorities_in(write)?;
    let mut into = title.id;
    for other in others {
        let (older, newer) = (into.min(other), into.max(other));
        merge(write, older, newer, &reason, &priorities, now)?;
        into = older;
    }
    write.get::<Title>(into.key())?.ok_or(LandError::TitleGone)
}

/// Returns the other titles of the same kind that are found by one of these ids.
fn with_ids(write: &Write<'_>, title: &Title, ids: &ExternalIds) -> Result<Vec<Title>> {
    let mut found: Vec<Title> = Vec::new();
    for (index, id) in [("tmdb", &ids.tmdb), ("imdb", &ids.imdb)] {
        if let Some(id) = id {
            found.extend(write.by::<Title>(index, external_id_key(title.id.kind(), id))?);
        }
    }
    found.retain(|it| it.id != title.id);
    found.sort_by_key(|it| it.id);
    found.dedup_by_key(|it| it.id);
    Ok(found)
}
