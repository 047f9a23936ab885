//! Films, series and episodes: what the store has of them, and writing those of the source.

use anyhow::bail;
use domain::ids::VodCategoryId;
use domain::vod::{AccountCategory, Episode, Title};
use import_from::{KnownTitles, PlannedTitles};
use storage::records::category_link_key;
use storage::{Store, VodTitles, category_id};

/// Links of accounts with categories that one write adds.
const LINKS_PER_WRITE: usize = 1_000;

/// Reads the titles with which those of the source may conflict.
pub(super) fn known(store: &Store) -> anyhow::Result<KnownTitles> {
    let mut known = KnownTitles::default();
    VodTitles::new(store).for_each(|title| {
        let relations = title.relations.iter().map(|it| (it.account, it.id)).collect();
        known.titles.insert((title.id.kind(), title.uuid), (title.id, relations));
        let offers = title.relations.iter();
        known
            .offers
            .extend(offers.map(|it| (it.account, title.id.kind(), it.provider_id.clone().into_boxed_str())));
    })?;
    let episodes = store.collection::<Episode>();
    for owner in episodes.owners() {
        episodes.for_each_of(owner, |it| {
            known.episodes.insert(it.uuid);
            known.episode_places.insert((it.series, it.season, it.number));
            known.episodes.extend(it.aliases.iter().map(|it| it.uuid));
        })?;
    }
    // Only a write knows the next ids, so this one is discarded.
    let looked = store.write_blocking(|write| {
        Err::<(), _>(Looked::Ids(write.next_id::<Title>()?, write.next_id::<Episode>()?))
    });
    match looked {
        Err(Looked::Ids(title, episode)) => {
            known.unused_number = VodTitles::unused_number(title).max(1);
            known.unused_episode = episode;
            Ok(known)
        }
        Err(Looked::Failed(error)) => Err(error.into()),
        Ok(()) => bail!("the store kept a write that was discarded"),
    }
}

/// Why a write that only looks ends.
enum Looked {
    /// The next ids of titles and episodes.
    Ids(u32, u32),
    Failed(storage::Error),
}

impl From<storage::Error> for Looked {
    fn from(error: storage::Error) -> Self {
        Self::Failed(error)
    }
}

/// Writes everything: categories, then titles, then episodes, so that an import that was interrupted can be repeated. Blocks.
pub(super) fn write(store: &Store, mut planned: PlannedTitles) -> anyhow::Result<()> {
    if planned.is_empty() {
        return Ok(());
    }
    let wanted = std::mem::take(&mut planned.categories);
    let mut categories: Vec<VodCategoryId> = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(LINKS_PER_WRITE) {
        let some = some.to_vec();
        categories.extend(store.write_blocking(move |write| {
            let ids = some.iter().map(|(kind, name)| category_id(write, *kind, name));
            ids.collect::<storage::Result<Vec<_>>>()
        })?);
    }
    for some in planned.links.chunks(LINKS_PER_WRITE) {
        let links: Vec<_> = some
            .iter()
            .filter_map(|(account, at, enabled)| {
                Some((*account, *categories.get(*at)?, wanted.get(*at)?.0, *enabled))
            })
            .collect();
        store.write_blocking(move |write| {
            for (account, category, kind, enabled) in links {
                let known = write.by::<AccountCategory>("link", category_link_key(account, category))?;
                if known.is_empty() {
                    let id = write.next_id::<AccountCategory>()?;
                    write.put(&AccountCategory {
                        id,
                        account,
                        category,
                        kind,
                        // The first refresh finds the category by its name.
                        provider_ids: Vec::new(),
                        enabled,
                        custom_properties: serde_json::Map::new(),
                        last_seen: None,
                    })?;
                }
            }
            Ok::<_, storage::Error>(())
        })?;
    }
    let titles = VodTitles::new(store);
    titles.put_new_titles(planned.take_titles(&categories), planned.next_number)?;
    titles.put_new_episodes(planned.episodes)?;
    Ok(())
}
