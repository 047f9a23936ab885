//! Reads films, series and episodes by what names them.

use domain::ids::{AccountId, EpisodeId};
use domain::vod::{Episode, RelationId, Title, TitleDetails, TitleId, TitleKind, id_in};
use uuid::Uuid;

use crate::error::Result;
use crate::records::vod::series_key;
use crate::store::Store;

/// The films, series and episodes of a store. Clones share the store.
///
/// A read takes some microseconds to milliseconds and may wait for the disk: call it on a thread that may block.
#[derive(Clone)]
pub struct VodTitles {
    store: Store,
}

impl VodTitles {
    pub fn new(store: &Store) -> Self {
        Self { store: store.clone() }
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
    pub fn while_each(&self, mut visit: impl FnMut(Title) -> bool) -> Result<()> {
        let titles = self.store.collection::<Title>();
        for owner in titles.owners() {
            let mut goes_on = true;
            titles.while_of(owner, |title| {
                goes_on = visit(title);
                goes_on
            })?;
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

    /// Returns the episode of a series that an account offers under this id.
    pub fn episode_of_provider(
        &self,
        series: TitleId,
        account: AccountId,
        provider_id: &str,
    ) -> Result<Option<Episode>> {
        let is_meant = |it: &Episode| it.offers_of(account).any(|it| it.provider_id == provider_id);
        Ok(self.episodes_of(series)?.into_iter().find(is_meant))
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::VodCategoryId;
    use domain::vod::{Relation, TitleAlias, uuid_of};

    use super::*;
    use crate::error::Error;
    use crate::records::schema;

    fn title(id: TitleId) -> Title {
        let relation = RelationId(id.number() + 100);
        Title {
            relations: vec![Relation::new(relation, AccountId(2), VodCategoryId(1), "55", 0)],
            ..Title::new(id, uuid_of(id.key(), 7), 0)
        }
    }

    #[test]
    fn a_title_is_found_by_its_id_its_uuid_its_relations_and_those_of_merged_titles() {
        let store = Store::temporary(schema()).unwrap();
        let (film, series) = (TitleId::movie(7).unwrap(), TitleId::series(8).unwrap());
        let (gone, foreign) = (TitleId::movie(3).unwrap(), Uuid::from_u128(99));
        let gone_uuid = uuid_of(gone.key(), 1);
        let mut one = title(film);
        one.aliases.push(TitleAlias { id: gone, uuid: gone_uuid, relations: Vec::new() });
        let mut other = title(series);
        other.uuid = foreign;
        let (of_film, of_series) = (one.uuid, other.uuid);
        store
            .write_blocking(move |write| {
                write.put(&one)?;
                write.put(&other)?;
                Ok::<_, Error>(())
            })
            .unwrap();
        let titles = VodTitles::new(&store);
        let id = |found: Result<Option<Title>>| found.unwrap().map(|it| it.id);
        assert_eq!(id(titles.get(film)), Some(film));
        assert_eq!(id(titles.get(gone)), Some(film));
        assert_eq!(id(titles.get(TitleId::movie(8).unwrap())), None);
        assert_eq!(id(titles.by_uuid(TitleKind::Movie, of_film)), Some(film));
        assert_eq!(id(titles.by_uuid(TitleKind::Movie, gone_uuid)), Some(film));
        assert_eq!(id(titles.by_uuid(TitleKind::Series, of_series)), Some(series));
        assert_eq!(id(titles.by_uuid(TitleKind::Movie, of_series)), None);
        assert_eq!(id(titles.by_uuid(TitleKind::Movie, uuid_of(film.key(), 8))), None);
        assert_eq!(id(titles.by_relation(RelationId(108))), Some(series));
        let of_app =
            |number| titles.by_stream_id(TitleKind::Movie, number).unwrap().map(|it| (it.0.id, it.1));
        assert_eq!(of_app(7), Some((film, None)));
        assert_eq!(of_app(107), Some((film, Some(RelationId(107)))));
        assert_eq!((of_app(108), of_app(9)), (None, None));
        let mut all = Vec::new();
        titles.for_each(|it| all.push(it.id)).unwrap();
        assert_eq!(all, [film, series]);
    }

    #[test]
    fn episodes_are_listed_by_season_and_number_and_found_by_uuid() {
        let store = Store::temporary(schema()).unwrap();
        let series = TitleId::series(8).unwrap();
        let episode = |id: u32, series: TitleId, season: u32, number: u32| Episode {
            id: EpisodeId(id),
            uuid: uuid_of(id, 3),
            series,
            season,
            number,
            offers: Vec::new(),
            aliases: Vec::new(),
            created_at: 0,
            updated_at: 0,
        };
        let other = TitleId::series(9).unwrap();
        let all = [
            episode(1, series, 2, 1),
            episode(2, series, 1, 2),
            episode(3, other, 1, 1),
            episode(4, series, 1, 1),
        ];
        store.write_blocking(move |write| all.iter().try_for_each(|it| write.put(it))).unwrap();
        let titles = VodTitles::new(&store);
        let listed: Vec<u32> = titles.episodes_of(series).unwrap().iter().map(|it| it.id.0).collect();
        assert_eq!(listed, [4, 2, 1]);
        assert_eq!(titles.episode_by_uuid(uuid_of(3, 3)).unwrap().unwrap().series, other);
        assert_eq!(titles.episode(EpisodeId(4)).unwrap().unwrap().name(), "S01E01");
        assert_eq!(titles.episode_by_uuid(uuid_of(3, 4)).unwrap(), None);
    }
}
