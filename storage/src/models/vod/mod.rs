//! Films, series and episodes: reading them by what names them, and writing what accounts list.

mod admin;
mod categories;
mod completions;
mod episodes;
mod imported;
mod landing;
mod names;
mod packed;

use std::sync::Arc;

use domain::ids::EpisodeId;
use domain::vod::{Episode, RelationId, Title, TitleDetails, TitleId, TitleKind, id_in};
use parking_lot::Mutex;
use uuid::Uuid;

pub use self::admin::{edit_title, merge_titles, restore_titles, split_title};
pub use self::categories::category_id;
pub use self::completions::CompletedRecord;
pub use self::episodes::{EPISODES_MAX, FoundEpisodes, LandedEpisodes};
use self::landing::Removed;
pub use self::landing::{FoundTitles, LandError, LandedTitles, TitleSync};
pub use self::packed::PackedList;
use crate::error::{Error, Result};
use crate::records::vod::series_key;
use crate::store::Store;
use crate::write::Write;

/// The films, series and episodes of a store. Clones share the store.
///
/// A read takes some microseconds to milliseconds and may wait for the disk: call it on a thread that may block.
#[derive(Clone)]
pub struct VodTitles {
    store: Store,
    /// Held by the import that runs.
    landing: Arc<Mutex<()>>,
}

/// Details that one write removes.
const REMOVALS_PER_WRITE: usize = 200;
/// Series whose episodes one write removes.
const SERIES_PER_WRITE: usize = 10;

impl VodTitles {
    pub fn new(store: &Store) -> Self {
        Self { store: store.clone(), landing: Arc::default() }
    }

    /// Returns the title with this id, or the one that it was merged into.
    pub fn get(&self, id: TitleId) -> Result<Option<Title>> {
        let titles = self.store.collection::<Title>();
        match titles.get(id.key())? {
            Some(title) => Ok(Some(title)),
            None => titles.one_by("alias", id.key().to_be_bytes()),
        }
    }

    /// Returns the title of this kind with this UUID, or the one that it was merged into.
    pub fn by_uuid(&self, kind: TitleKind, uuid: Uuid) -> Result<Option<Title>> {
        let titles = self.store.collection::<Title>();
        let found = match titles.get(id_in(uuid))?.filter(|it| it.uuid == uuid) {
            Some(title) => Some(title),
            None => titles.one_by("uuid", uuid.as_bytes())?,
        };
        Ok(found.filter(|it| it.id.kind() == kind))
    }

    /// Returns the title that has this relation.
    pub fn by_relation(&self, id: RelationId) -> Result<Option<Title>> {
        self.store.collection::<Title>().one_by("relation", id.0.to_be_bytes())
    }

    /// Returns the film with the number that an app sends: that of the film, of one that was merged into it, or of one
    /// of its relations. The relation is the one that was named.
    pub fn by_stream_id(&self, kind: TitleKind, number: u32) -> Result<Option<(Title, Option<RelationId>)>> {
        let Some(id) = TitleId::new(kind, number) else { return Ok(None) };
        if let Some(title) = self.get(id)? {
            return Ok(Some((title, None)));
        }
        let found = self.by_relation(RelationId(number))?.filter(|it| it.id.kind() == kind);
        Ok(found.map(|title| (title, Some(RelationId(number)))))
    }

    /// Visits all titles in the order of their ids, films and series mixed.
    pub fn for_each(&self, mut visit: impl FnMut(Title)) -> Result<()> {
        self.while_each(|title| {
            visit(title);
            true
        })
    }

    /// Visits titles in nearly the order of their ids until `visit` returns false.
    pub fn while_each(&self, visit: impl FnMut(Title) -> bool) -> Result<()> {
        self.while_each_id(|_| true, visit)
    }

    /// Does the same for titles with some ids.
    fn while_each_id(
        &self,
        is_wanted: impl Fn(TitleId) -> bool,
        mut visit: impl FnMut(Title) -> bool,
    ) -> Result<()> {
        let titles = self.store.collection::<Title>();
        for owner in titles.owners() {
            let mut goes_on = true;
            titles.while_of_ids(
                owner,
                |key| is_wanted(TitleId::from_key(key)),
                |title| {
                    goes_on = visit(title);
                    goes_on
                },
            )?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of titles. Cheap.
    pub fn len(&self) -> usize {
        self.store.collection::<Title>().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the details of a relation, if they were loaded.
    pub fn details(&self, relation: RelationId) -> Result<Option<TitleDetails>> {
        self.store.collection::<TitleDetails>().get(relation.0)
    }

    /// Returns the details of the first relation of a title that has some.
    pub fn details_of_title(&self, title: &Title) -> Result<Option<TitleDetails>> {
        title.relations.iter().find_map(|it| self.details(it.id).transpose()).transpose()
    }

    /// Returns the episode with this id, or the one that it was merged into.
    pub fn episode(&self, id: EpisodeId) -> Result<Option<Episode>> {
        let episodes = self.store.collection::<Episode>();
        match episodes.get(id.0)? {
            Some(episode) => Ok(Some(episode)),
            None => episodes.one_by("alias", id.0.to_be_bytes()),
        }
    }

    /// Returns the episode with this UUID, or the one that it was merged into.
    pub fn episode_by_uuid(&self, uuid: Uuid) -> Result<Option<Episode>> {
        let episodes = self.store.collection::<Episode>();
        match episodes.get(id_in(uuid))?.filter(|it| it.uuid == uuid) {
            Some(episode) => Ok(Some(episode)),
            None => episodes.one_by("uuid", uuid.as_bytes()),
        }
    }

    /// Lists the episodes of a series by season and number.
    pub fn episodes_of(&self, series: TitleId) -> Result<Vec<Episode>> {
        let mut episodes = self.store.collection::<Episode>().by("series", series_key(series))?;
        episodes.sort_by_key(|it| (it.season, it.number));
        Ok(episodes)
    }

    /// Removes the details and the episodes of removed relations.
    fn clean_up(&self, removed: Removed) -> Result<()> {
        let details = self.store.collection::<TitleDetails>();
        let known: Vec<u32> =
            removed.relations.iter().map(|it| it.1.0).filter(|it| details.stamp(*it).is_some()).collect();
        for some in known.chunks(REMOVALS_PER_WRITE) {
            let some = some.to_vec();
            self.store.write_blocking(move |write| {
                some.iter().try_for_each(|it| write.remove::<TitleDetails>(*it).map(drop))
            })?;
        }
        let episodes = self.store.collection::<Episode>();
        let mut series = Vec::new();
        for (title, relation) in removed.relations.into_iter().filter(|it| it.0.kind() == TitleKind::Series) {
            if !episodes.by("series", series_key(title))?.is_empty() {
                series.push((title, relation));
            }
        }
        for some in series.chunks(SERIES_PER_WRITE) {
            let some = some.to_vec();
            self.store.write_blocking(move |write| {
                some.iter().try_for_each(|(series, relation)| remove_offers(write, *series, *relation))
            })?;
        }
        Ok(())
    }
}

/// Removes the episodes that a relation of a series offers, as far as no other one does.
fn remove_offers(write: &mut Write<'_>, series: TitleId, relation: RelationId) -> Result<()> {
    for mut episode in write.by::<Episode>("series", series_key(series))? {
        let n = episode.offers.len();
        episode.offers.retain(|it| it.relation != relation);
        match episode.offers.len() {
            0 => drop(write.remove::<Episode>(episode.id.0)?),
            left if left < n => write.put(&episode)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns random bits for a UUID.
fn random_u128() -> Result<u128> {
    let word = || getrandom::u64().map_err(|error| Error::disk("get random bytes from the system", error));
    Ok((u128::from(word()?) << 64) | u128::from(word()?))
}

#[cfg(test)]
mod tests;
