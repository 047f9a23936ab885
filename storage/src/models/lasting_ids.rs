//! Keeps the ids of streams when the records of streams are damaged; see [`domain::stream_ids`].

use std::collections::{BTreeMap, HashMap};

use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use domain::stream_ids::{IDS_PER_PAGE, StreamIdPage, StreamKey};

use crate::error::Result;
use crate::store::Store;
use crate::write::Write;

/// Pages per write.
const PAGES_AT_ONCE: usize = 1_000;

/// Streams that were created or removed, not yet recorded.
#[derive(Debug, Default)]
pub struct StreamIdChanges {
    by_page: BTreeMap<u32, Vec<(StreamId, Option<StreamKey>)>>,
}

impl StreamIdChanges {
    /// Notes the key of a stream, or that it does not exist any more.
    pub fn set(&mut self, id: StreamId, key: Option<StreamKey>) {
        self.by_page.entry(StreamIdPage::number_of(id)).or_default().push((id, key));
    }

    /// Records all changes.
    pub fn put(self, write: &mut Write<'_>) -> Result<()> {
        for (number, changes) in self.by_page {
            let stored = write.get::<StreamIdPage>(number)?;
            let mut page = stored.unwrap_or_else(|| StreamIdPage::new(number));
            changes.into_iter().for_each(|(id, key)| page.set(id, key));
            if page.is_empty() {
                write.remove::<StreamIdPage>(number)?;
            } else {
                write.put(&page)?;
            }
        }
        Ok(())
    }
}

/// The ids of the streams whose records are damaged, by key.
#[derive(Debug, Default)]
pub struct LostStreamIds {
    /// In descending order.
    ids: HashMap<StreamKey, Vec<StreamId>>,
}

impl LostStreamIds {
    /// Returns the recorded ids without a stream, if blocks of streams of this account were set aside, and nothing
    /// otherwise. Blocks.
    pub fn read(store: &Store, account: AccountId) -> Result<Self> {
        let streams = store.collection::<Stream>();
        let mut lost = Self::default();
        if !streams.is_incomplete(u64::from(account.0)) {
            return Ok(lost);
        }
        store.collection::<StreamIdPage>().for_each(|page| {
            for (id, key) in page.iter().filter(|it| streams.stamp(it.0.0).is_none()) {
                lost.ids.entry(key).or_default().push(id);
            }
        })?;
        lost.ids.values_mut().for_each(|it| it.reverse());
        Ok(lost)
    }

    /// Returns the id that a stream with this key had, the least if there are several. Each id is returned once.
    pub fn take(&mut self, key: StreamKey) -> Option<StreamId> {
        self.ids.get_mut(&key)?.pop()
    }
}

/// Removes the pages without any existing stream, such as those of deleted accounts. Blocks.
pub fn drop_unused_stream_ids(store: &Store) -> Result<()> {
    let streams = store.collection::<Stream>();
    // Streams that are missing may return.
    if streams.is_any_incomplete() {
        return Ok(());
    }
    let pages = store.collection::<StreamIdPage>().ids();
    let is_unused = |number: &u32| {
        let first = number.saturating_mul(IDS_PER_PAGE);
        !streams.has_id_in(first..=first.saturating_add(IDS_PER_PAGE - 1))
    };
    let unused: Vec<u32> = pages.into_iter().filter(is_unused).collect();
    for some in unused.chunks(PAGES_AT_ONCE) {
        let some = some.to_vec();
        store.write_blocking(move |write| {
            some.iter().try_for_each(|number| write.remove::<StreamIdPage>(*number).map(drop))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::account::StreamIdentity;
    use domain::source_url::SourceUrl;
    use domain::stream::StreamProperties;

    use super::*;
    use crate::error::Error;
    use crate::records::schema;

    fn stream(id: u32) -> Stream {
        let properties =
            StreamProperties::new(format!("stream {id}"), SourceUrl::new(format!("http://tv.example/{id}")));
        Stream::new(StreamId(id), AccountId(2), properties, 0)
    }

    fn key(stream: &Stream) -> StreamKey {
        StreamKey::new(stream.account, StreamIdentity::Url, &stream.provider)
    }

    #[test]
    fn pages_without_a_stream_are_removed_and_changes_empty_them() {
        let store = Store::temporary(schema()).unwrap();
        store
            .write_blocking(|write| {
                let mut changes = StreamIdChanges::default();
                for id in [1, 2, 300, 600, 601] {
                    changes.set(StreamId(id), Some(key(&stream(id))));
                }
                write.put(&stream(2))?;
                write.put(&stream(600))?;
                changes.put(write)
            })
            .unwrap();
        let pages = || store.collection::<StreamIdPage>().ids();
        assert_eq!(pages(), [0, 1, 2]);
        drop_unused_stream_ids(&store).unwrap();
        assert_eq!(pages(), [0, 2]);
        store
            .write_blocking(|write| {
                let mut changes = StreamIdChanges::default();
                changes.set(StreamId(600), None);
                changes.set(StreamId(601), None);
                changes.put(write)
            })
            .unwrap();
        assert_eq!(pages(), [0]);
        // Nothing is damaged, so nothing is lost.
        let mut lost = LostStreamIds::read(&store, AccountId(2)).unwrap();
        assert_eq!(lost.take(key(&stream(1))), None);
        store
            .write_blocking(|write| {
                write.remove_owner::<Stream>(2);
                Ok::<_, Error>(())
            })
            .unwrap();
        drop_unused_stream_ids(&store).unwrap();
        assert!(pages().is_empty());
    }
}
