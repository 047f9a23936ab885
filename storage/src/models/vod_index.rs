//! The index of all films and series in memory, which follows the commits on a thread of its own.
//!
//! Titles are stored in ranges of ids. After a commit, the ranges whose fingerprint changed are read again, which takes some
//! milliseconds each, and all others are copied from the index before.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::vod::query::{VodRow, VodSnapshot, VodSnapshotBuilder};
use domain::vod::{Title, TitleId};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::stream_index::NotReady;
use crate::changes::{ChangeMessage, ChangedIds, Changes};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::read::collection::Collection;
use crate::record::Record;
use crate::records::vod::title_keys_of;
use crate::store::Store;

/// Maximum wait until the index contains a commit.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Pause before a failed update is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 5_000 });
/// Pause after an update during an import, which makes many commits in a row.
const IMPORT_PAUSE: Duration = Duration::from_millis(200);

/// All films and series in memory. Clones share one index; its thread ends with the last clone, or with the store.
#[derive(Clone)]
pub struct VodIndex {
    /// Declared before the thread, so that it still exists while the thread is joined.
    snapshot: watch::Receiver<IndexedTitles>,
    _thread: Arc<Thread>,
}

/// The index after a commit.
#[derive(Clone, Default)]
struct IndexedTitles {
    version: u64,
    index: Arc<VodSnapshot>,
}

impl VodIndex {
    /// Reads all titles, and follows the commits from then on. Blocks for as long as reading takes. Does not keep the store
    /// open.
    pub fn start(store: &Store) -> Result<Self> {
        let changes = store.changes();
        let (stop, stopped) = watch::channel(());
        let mut follower = Follower {
            now: IndexedTitles::default(),
            fingerprints: BTreeMap::new(),
            store: Arc::downgrade(store.shared()),
            stop: stopped,
        };
        follower.follow(store.shared())?;
        let (sender, snapshot) = watch::channel(follower.now.clone());
        let thread = std::thread::Builder::new()
            .name("vod-index".to_owned())
            .spawn(move || follower.run(changes, &sender))
            .map_err(|error| Error::disk("start the thread of the index of films and series", error))?;
        let thread = Thread { stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) };
        Ok(Self { snapshot, _thread: Arc::new(thread) })
    }

    /// Returns the titles as last read: usually as of the last commit, sometimes as of a moment ago. Never waits.
    pub fn load(&self) -> Arc<VodSnapshot> {
        Arc::clone(&self.snapshot.borrow().index)
    }

    /// Waits until the index contains this commit, as returned by [`Store::version`] after a write, and returns the index.
    /// Waits at most 30 seconds.
    pub async fn at(&self, version: u64) -> Result<Arc<VodSnapshot>, NotReady> {
        let mut snapshot = self.snapshot.clone();
        match tokio::time::timeout(WAIT_MAX, snapshot.wait_for(|it| it.version >= version)).await {
            Ok(Ok(now)) => Ok(Arc::clone(&now.index)),
            Ok(Err(_)) => Err(NotReady::Ended),
            Err(_) => Err(NotReady::Late),
        }
    }
}

/// The state of the thread.
struct Follower {
    now: IndexedTitles,
    /// Fingerprint of each range as the index contains it.
    fingerprints: BTreeMap<u64, u64>,
    /// Weak, so that the index does not keep the store open.
    store: Weak<Shared>,
    /// Never receives a value: it closes when the last handle of the index is dropped.
    stop: watch::Receiver<()>,
}

/// The messages since the last update.
#[derive(Default)]
struct Pending {
    /// The last commit.
    version: u64,
    is_changed: bool,
    is_many: bool,
    has_ended: bool,
}

impl Pending {
    fn add(&mut self, message: ChangeMessage) {
        match message {
            ChangeMessage::Changed(change) => {
                self.version = change.version;
                let ids = change.ids(Title::COLLECTION);
                self.is_changed |= ids.is_some();
                self.is_many |= ids == Some(&ChangedIds::Many);
            }
            ChangeMessage::Lagged => (self.is_changed, self.is_many) = (true, true),
            ChangeMessage::Closed => self.has_ended = true,
        }
    }
}

impl Follower {
    /// Updates the index after each change until the store or the index is dropped. Continues after errors and panics.
    fn run(mut self, mut changes: Changes, sender: &watch::Sender<IndexedTitles>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!("failed to start the index of films and series: {error}"),
        };
        let mut pause = None;
        let mut has_failed = false;
        loop {
            let mut stop = self.stop.clone();
            let mut pending = Pending::default();
            runtime.block_on(async {
                if let Some(pause) = pause.take() {
                    tokio::select! {
                        _ = stop.changed() => pending.has_ended = true,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                tokio::select! {
                    _ = stop.changed() => pending.has_ended = true,
                    message = changes.next() => pending.add(message),
                    () = tokio::time::sleep(RETRY_PAUSE), if has_failed => {}
                }
            });
            // All waiting messages are handled together.
            while let Some(message) = changes.try_next().filter(|_| !pending.has_ended) {
                pending.add(message);
            }
            let Some(shared) = self.store.upgrade().filter(|_| !pending.has_ended) else { return };
            if pending.is_changed || has_failed {
                let followed = catch_unwind(AssertUnwindSafe(|| self.follow(&shared)));
                match followed.unwrap_or(Err(Error::Panicked)) {
                    _ if self.has_ended(&shared) => return,
                    Ok(()) => has_failed = false,
                    Err(error) => {
                        tracing::error!("failed to update the index of films and series: {error}");
                        has_failed = true;
                        continue;
                    }
                }
                pause = pending.is_many.then_some(IMPORT_PAUSE);
            }
            self.now.version = self.now.version.max(pending.version);
            sender.send_replace(self.now.clone());
        }
    }

    /// Returns whether the store or the index is no longer used.
    fn has_ended(&self, shared: &Arc<Shared>) -> bool {
        Arc::strong_count(shared) == 1 || self.stop.has_changed().is_err()
    }

    /// Reads the ranges that changed.
    fn follow(&mut self, shared: &Arc<Shared>) -> Result<()> {
        let version = shared.state.read().commit;
        let titles = Collection::<Title>::new(shared);
        let mut builder = VodSnapshotBuilder::after(&self.now.index);
        let mut fingerprints = BTreeMap::new();
        let mut is_changed = false;
        for owner in titles.owners() {
            // Taken before reading: after a commit that happens meanwhile, it differs and the range is read once more.
            let fingerprint = titles.fingerprint_of(owner);
            fingerprints.insert(owner, fingerprint);
            if self.fingerprints.get(&owner) == Some(&fingerprint) {
                let keys = title_keys_of(owner);
                builder
                    .keep(&self.now.index, TitleId::from_key(*keys.start())..=TitleId::from_key(*keys.end()));
                continue;
            }
            is_changed = true;
            let mut rows = Vec::new();
            titles.while_of(owner, |title| {
                rows.push(VodRow::from_title(&title));
                rows.len() % 256 != 0 || !self.has_ended(shared)
            })?;
            rows.sort_unstable_by_key(|it| it.id);
            rows.into_iter().for_each(|it| builder.add(it));
        }
        if is_changed || fingerprints.len() != self.fingerprints.len() {
            let index = builder.build();
            index.prepare_like(&self.now.index);
            self.now.index = Arc::new(index);
        }
        self.fingerprints = fingerprints;
        self.now.version = self.now.version.max(version);
        Ok(())
    }
}

/// The thread of the index. Dropping it stops and joins the thread.
struct Thread {
    stop: Mutex<Option<watch::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.stop.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::{AccountId, VodCategoryId};
    use domain::vod::query::{VodOrder, VodQuery};
    use domain::vod::visible::VodLimits;
    use domain::vod::{Relation, RelationId, uuid_of};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::records::schema;

    fn title(number: u32, name: u32) -> Title {
        let id = TitleId::movie(number).expect("a small number");
        let mut relation = Relation::new(RelationId(number), AccountId(2), VodCategoryId(1), "1", 0);
        relation.facts.name = format!("Name {name}");
        Title { relations: vec![relation], ..Title::new(id, uuid_of(id.key(), 0), 0) }
    }

    /// Numbers in several ranges.
    fn number() -> impl Strategy<Value = u32> {
        (0u32..3, 1u32..20).prop_map(|(range, it)| range * 4_096 + it)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_index_of_titles_contains_every_commit(
            rounds in vec(vec((number(), 0u32..5, any::<bool>()), 1..8), 1..8),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let store = Store::temporary(schema()).unwrap();
            let index = VodIndex::start(&store).unwrap();
            let query = VodQuery { order: VodOrder::Name, ..VodQuery::default() };
            for round in rounds {
                store.write_blocking(move |write| {
                    for (number, name, is_there) in round {
                        match is_there {
                            true => write.put(&title(number, name))?,
                            false => drop(write.remove::<Title>(title(number, name).id.key())?),
                        }
                    }
                    Ok::<_, Error>(())
                }).unwrap();
                let now = runtime.block_on(index.at(store.version())).unwrap();
                let mut expected = store.collection::<Title>().all().unwrap();
                expected.sort_by(|one, other| (one.name(), one.id).cmp(&(other.name(), other.id)));
                let expected: Vec<TitleId> = expected.iter().map(|it| it.id).collect();
                prop_assert_eq!(now.ids(&query, &VodLimits::none(), None), expected);
            }
        }
    }

    #[tokio::test]
    async fn the_index_of_titles_ends_with_its_store() {
        let store = Store::temporary(schema()).unwrap();
        let index = VodIndex::start(&store).unwrap();
        let version = store.version();
        assert!(index.at(version).await.unwrap().is_empty());
        store.close();
        drop(store);
        assert!(matches!(index.at(version + 1).await, Err(NotReady::Ended)));
    }
}
