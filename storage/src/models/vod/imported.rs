//! Writes titles and episodes that were taken from another service.

use domain::vod::{Episode, Title, TitleId, TitleKind};

use super::VodTitles;
use super::landing::{priorities, sort};
use crate::error::{Error, Result};
use crate::record::Record;
use crate::store::Store;

impl VodTitles {
    /// Returns the first number that neither a title nor a relation ever had, from the first free id of titles.
    pub fn unused_number(next_id: u32) -> u32 {
        next_id.div_ceil(2)
    }

    /// Writes new titles, range by range, in a commit each. The numbers below `next_number` are not used again, because
    /// relations have them. Blocks; nobody else may write at the same time.
    pub fn put_new_titles(&self, mut titles: Vec<Title>, next_number: u32) -> Result<()> {
        let _only_one = self.landing.lock();
        let priorities = priorities(&self.store)?;
        for title in &mut titles {
            sort(title, &priorities);
            title.limit_size();
        }
        let next_id = TitleId::new(TitleKind::Movie, next_number).map_or(u32::MAX, TitleId::key);
        put_new(&self.store, titles, next_id)
    }

    /// Does the same for episodes.
    pub fn put_new_episodes(&self, episodes: Vec<Episode>) -> Result<()> {
        put_new(&self.store, episodes, 0)
    }
}

/// Adds records to their ranges.
fn put_new<T: Record>(store: &Store, mut records: Vec<T>, next_id: u32) -> Result<()> {
    records.sort_by_key(Record::id);
    let type_number = store.shared().schema.number(T::COLLECTION);
    for new in records.chunk_by(|one, other| one.owner() == other.owner()) {
        let Some((owner, last)) = new.first().zip(new.last()).map(|(it, last)| (it.owner(), last.id()))
        else {
            continue;
        };
        let mut bulk = store.bulk_write::<T>(owner)?;
        let mut kept = Ok(());
        store.collection::<T>().for_each_of(owner, |record| {
            if kept.is_ok() {
                kept = bulk.put(&record);
            }
        })?;
        kept?;
        new.iter().try_for_each(|it| bulk.put(it))?;
        // A bulk write does not advance the counter of ids.
        let next_id = next_id.max(last.saturating_add(1));
        bulk.commit(move |write, _| {
            write.reserve_ids(type_number, next_id);
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}
