//! The index of all streams in memory, which follows what is committed on a thread of its own.
//!
//! Half a million streams take a second to read, so they cannot be followed where a commit waits. A few edited streams
//! are read one by one and kept beside their shard; after anything larger the accounts whose fingerprint is another one
//! are read again, and no others.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use domain::streams::{EDITED_MAX, Shard, ShardBuilder, StreamSnapshot};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::changes::{ChangeMessage, ChangedIds, Changes};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::read::collection::Collection;
use crate::record::Record;
use crate::store::Store;

/// After a reading that failed, before everything is read again. It costs seconds, and may fail again.
const RETRY_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 5_000 });

/// Longest wait for a commit to be seen. Reading every account again takes some seconds.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// All streams in memory. Clones are the same; the thread behind it ends with the last of them, or with the store.
#[derive(Clone)]
pub struct StreamIndex {
    /// Before the thread, so that it is still there when the thread is waited for.
    seen: watch::Receiver<Seen>,
    _thread: Arc<Thread>,
}

/// What was read, and up to which commit.
struct Seen {
    version: u64,
    index: Arc<StreamSnapshot>,
}

/// Why a commit is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("the list of streams is not up to date yet")]
    Late,
    #[error("the list of streams is not followed any more")]
    Ended,
}

impl StreamIndex {
    /// Reads all streams, and follows them from then on. For a thread that may block, which it does for as long as the
    /// reading takes. It does not keep the store open.
    pub fn start(store: &Store) -> Result<Self> {
        let changes = store.changes();
        let shared = store.shared();
        let mut follower = Follower {
            index: Arc::default(),
            fingerprints: HashMap::new(),
            version: store.version(),
            is_behind: true,
            store: Arc::downgrade(shared),
            stop: watch::channel(()).1,
        };
        let (stop, stopped) = watch::channel(());
        follower.stop = stopped;
        follower.follow(shared, &Batch::default())?;
        let (sender, seen) = watch::channel(follower.seen());
        let thread = std::thread::Builder::new()
            .name("stream-index".to_owned())
            .spawn(move || follower.run(changes, &sender, Follower::follow))
            .map_err(|error| Error::disk("start the thread of the stream index", error))?;
        let thread = Thread { stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) };
        Ok(Self { seen, _thread: Arc::new(thread) })
    }

    /// The streams as they were last read: mostly as of the last commit, sometimes as of a second ago. Never waits.
    pub fn load(&self) -> Arc<StreamSnapshot> {
        Arc::clone(&self.seen.borrow().index)
    }

    /// The streams with this commit in them, as [`Store::version`] named it after a write was answered. Waits until it
    /// is read, at most 30 seconds.
    pub async fn at(&self, version: u64) -> Result<Arc<StreamSnapshot>, NotReady> {
        let mut seen = self.seen.clone();
        match tokio::time::timeout(WAIT_MAX, seen.wait_for(|it| it.version >= version)).await {
            Ok(Ok(seen)) => Ok(Arc::clone(&seen.index)),
            Ok(Err(_)) => Err(NotReady::Ended),
            Err(_) => Err(NotReady::Late),
        }
    }
}

/// The thread, which is told to stop and waited for.
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

/// What the thread knows.
struct Follower {
    index: Arc<StreamSnapshot>,
    /// Of what the index has of each account. `None` where that cannot be told, so that it is read again.
    fingerprints: HashMap<AccountId, Option<u64>>,
    /// The last commit that is in the index.
    version: u64,
    /// Something could not be read: nobody knows what is missing.
    is_behind: bool,
    /// Not strong: whoever follows a store does not keep it open.
    store: Weak<Shared>,
    stop: watch::Receiver<()>,
}

/// What was committed since the last look.
#[derive(Default)]
struct Batch {
    ids: BTreeSet<u32>,
    is_many: bool,
    /// The last commit that was heard of.
    version: Option<u64>,
    is_over: bool,
}

impl Batch {
    fn take(&mut self, news: ChangeMessage) {
        match news {
            ChangeMessage::Changed(change) => {
                self.version = Some(change.version);
                match change.of(Stream::COLLECTION) {
                    Some(ChangedIds::Few(ids)) => self.ids.extend(ids),
                    Some(ChangedIds::Many) => self.is_many = true,
                    None => {}
                }
            }
            ChangeMessage::Lagged => self.is_many = true,
            ChangeMessage::Closed => self.is_over = true,
        }
    }
}

impl Follower {
    fn seen(&self) -> Seen {
        Seen { version: self.version, index: Arc::clone(&self.index) }
    }

    /// Follows with `follow`. Nothing that happens in there ends this: neither an error nor a panic.
    fn run(
        mut self,
        mut changes: Changes,
        sender: &watch::Sender<Seen>,
        mut follow: impl FnMut(&mut Self, &Arc<Shared>, &Batch) -> Result<()>,
    ) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!("the stream index cannot follow the store: {error}"),
        };
        loop {
            let mut stop = self.stop.clone();
            let mut batch = Batch::default();
            let is_behind = self.is_behind;
            runtime.block_on(async {
                tokio::select! {
                    // Nothing is ever sent: it ends when the last handle is gone.
                    _ = stop.changed() => batch.is_over = true,
                    news = changes.next() => batch.take(news),
                    () = tokio::time::sleep(RETRY_PAUSE), if is_behind => {}
                }
            });
            // What came meanwhile is done in one go; the feed holds some hundred commits at most.
            while let Some(news) = changes.try_next().filter(|_| !batch.is_over) {
                batch.take(news);
            }
            let Some(shared) = self.store.upgrade().filter(|_| !batch.is_over) else { return };
            // What a panic leaves behind is not used: everything is read again.
            let followed = catch_unwind(AssertUnwindSafe(|| follow(&mut self, &shared, &batch)));
            match followed.unwrap_or(Err(Error::Panicked)) {
                _ if self.is_over(&shared) => return,
                Ok(()) => sender.send_replace(self.seen()),
                Err(error) => {
                    // Everything is read again with the next commit, or after a pause.
                    tracing::error!("the stream index stays behind: {error}");
                    self.fingerprints.clear();
                    self.is_behind = true;
                    continue;
                }
            };
        }
    }

    /// Nobody holds the store any more, or the index.
    fn is_over(&self, shared: &Arc<Shared>) -> bool {
        Arc::strong_count(shared) == 1 || self.stop.has_changed().is_err()
    }

    fn follow(&mut self, shared: &Arc<Shared>, batch: &Batch) -> Result<()> {
        if batch.is_many || self.is_behind || self.index.n_edited() + batch.ids.len() > EDITED_MAX {
            if !batch.is_many {
                self.forget_edited();
            }
            let version = shared.state.read().commit;
            self.compare(shared)?;
            self.version = self.version.max(version);
            self.is_behind = false;
        } else if !batch.ids.is_empty() {
            self.edit(shared, batch)?;
        }
        self.version = self.version.max(batch.version.unwrap_or_default());
        Ok(())
    }

    /// Lets the accounts be read again that have streams beside their shards.
    fn forget_edited(&mut self) {
        for account in self.index.edited_accounts() {
            self.fingerprints.insert(account, None);
        }
    }

    /// Reads the accounts again that are not what they were.
    fn compare(&mut self, shared: &Arc<Shared>) -> Result<()> {
        let streams = Collection::<Stream>::new(shared);
        let owners = streams.owners();
        let accounts: BTreeSet<AccountId> =
            owners.iter().filter_map(|it| u32::try_from(*it).ok()).map(AccountId).collect();
        for gone in self.index.accounts().into_iter().filter(|it| !accounts.contains(it)) {
            self.index = Arc::new(self.index.without(gone));
            self.fingerprints.remove(&gone);
        }
        for account in accounts {
            // Before the reading: what is committed meanwhile may be seen or not, and then is read once more.
            let fingerprint = streams.fingerprint_of(account.0.into());
            if self.fingerprints.get(&account) == Some(&Some(fingerprint)) {
                continue;
            }
            let Some(shard) = self.read(shared, &streams, account)? else { return Ok(()) };
            self.index = Arc::new(self.index.with(shard));
            self.fingerprints.insert(account, Some(fingerprint));
        }
        Ok(())
    }

    /// The streams of an account; `None` when it is over.
    fn read(
        &self,
        shared: &Arc<Shared>,
        streams: &Collection<'_, Stream>,
        account: AccountId,
    ) -> Result<Option<Shard>> {
        let mut builder = ShardBuilder::new(account);
        let mut is_over = false;
        streams.while_of(account.0.into(), |stream| {
            builder.add(&stream);
            is_over = self.is_over(shared);
            !is_over
        })?;
        Ok((!is_over).then(|| builder.build()))
    }

    /// Reads a few streams.
    fn edit(&mut self, shared: &Arc<Shared>, batch: &Batch) -> Result<()> {
        let streams = Collection::<Stream>::new(shared);
        let is_exact = || batch.version == Some(shared.state.read().commit);
        let mut fingerprints: Vec<(AccountId, Option<u64>)> = Vec::new();
        let mut edits = Vec::with_capacity(batch.ids.len());
        for id in &batch.ids {
            edits.push((StreamId(*id), streams.get(*id)?));
        }
        let before = edits.iter().filter_map(|(id, _)| self.index.contains(*id));
        let after = edits.iter().filter_map(|(_, stream)| stream.as_ref()).map(|it| it.account);
        for account in before.chain(after).collect::<BTreeSet<_>>() {
            fingerprints.push((account, Some(streams.fingerprint_of(account.0.into()))));
        }
        // A fingerprint stands for what was heard of only where nothing was committed meanwhile; and an account that
        // was not known exactly before is not after some of its streams were read.
        let is_exact = is_exact();
        for (account, fingerprint) in fingerprints {
            let is_known = !matches!(self.fingerprints.get(&account), Some(None));
            self.fingerprints.insert(account, fingerprint.filter(|_| is_exact && is_known));
        }
        let edits = edits.iter().map(|(id, stream)| (*id, stream.as_ref()));
        self.index = Arc::new(self.index.edited(edits));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::source_url::SourceUrl;
    use domain::stream::{RequestHeaders, StreamProperties};
    use domain::streams::StreamQuery;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::records::schema;

    fn stream(id: u32, account: u32, name: u32) -> Stream {
        let facts = StreamProperties {
            name: format!("name {name}"),
            url: SourceUrl::new("http://h/1"),
            headers: RequestHeaders::default(),
            tvg_id: None,
            group: None,
            logo: None,
            number: None,
        };
        Stream::new(StreamId(id), AccountId(account), facts, 0)
    }

    /// What happens between two looks at the feed.
    #[derive(Debug, Clone)]
    enum Op {
        Put(u32, u32, u32),
        Remove(u32),
        Import(u32, u32, u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            5 => (1u32..40, 1u32..4, 0u32..9).prop_map(|(id, account, name)| Op::Put(id, account, name)),
            2 => (1u32..40).prop_map(Op::Remove),
            // ChangedIds of its own for each account, as an id belongs to one.
            1 => (1u32..4, 0u32..20, 0u32..9).prop_map(|(account, n, name)| Op::Import(account, n, name)),
        ]
    }

    fn carry_out(store: &Store, op: &Op) {
        match *op {
            Op::Put(id, account, name) => {
                let stream = stream(id, account, name);
                store.write_blocking(move |write| write.put(&stream)).unwrap();
            }
            Op::Remove(id) => {
                store.write_blocking(move |write| write.remove::<Stream>(id).map(drop)).unwrap();
            }
            Op::Import(account, n, name) => {
                let mut bulk = store.bulk_write::<Stream>(account.into()).unwrap();
                (0..n).for_each(|at| bulk.put(&stream(account * 100 + at, account, name)).unwrap());
                bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
            }
        }
    }

    fn follower(store: &Store) -> (Follower, watch::Sender<()>) {
        let (sender, stop) = watch::channel(());
        let follower = Follower {
            index: Arc::default(),
            fingerprints: HashMap::new(),
            version: store.version(),
            is_behind: true,
            store: Arc::downgrade(store.shared()),
            stop,
        };
        (follower, sender)
    }

    /// ChangedIds with account and name, from the store and from the index.
    fn both(store: &Store, index: &StreamSnapshot) -> [Vec<(StreamId, AccountId, bool)>; 2] {
        let query = StreamQuery { name: Some("name 1".to_owned()), ..StreamQuery::default() };
        let named = index.ids(&query);
        let of_index = index.ids(&StreamQuery::default()).into_iter().map(|id| {
            let account = index.contains(id).expect("what is listed is there");
            (id, account, named.contains(&id))
        });
        let of_index = of_index.collect();
        let all = store.collection::<Stream>().all().unwrap();
        let mut of_store: Vec<_> = all.iter().map(|it| (it.id, it.account, it.name() == "name 1")).collect();
        of_store.sort();
        [of_store, of_index]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        // The feed forgets what is too old for a slow follower; that must not cost a single change.
        #[test]
        fn whatever_of_the_feed_is_missed_the_index_is_what_the_store_is(
            looks in vec((vec(op(), 1..6), any::<bool>(), any::<bool>()), 1..10),
        ) {
            let store = Store::temporary(schema()).unwrap();
            let (mut follower, _sender) = follower(&store);
            follower.follow(store.shared(), &Batch::default()).unwrap();
            let mut changes = store.changes();
            for (ops, is_missed, comes_late) in looks {
                let (before, behind) = ops.split_at(if comes_late { ops.len() / 2 } else { ops.len() });
                before.iter().for_each(|it| carry_out(&store, it));
                let mut batch = Batch::default();
                if is_missed {
                    while changes.try_next().is_some() {}
                    batch.take(ChangeMessage::Lagged);
                }
                while let Some(news) = changes.try_next() {
                    batch.take(news);
                }
                // The store is ahead of what was heard of.
                behind.iter().for_each(|it| carry_out(&store, it));
                follower.follow(store.shared(), &batch).unwrap();
            }
            let mut batch = Batch::default();
            while let Some(news) = changes.try_next() {
                batch.take(news);
            }
            follower.follow(store.shared(), &batch).unwrap();
            let [of_store, of_index] = both(&store, &follower.index);
            prop_assert_eq!(of_store, of_index);
            prop_assert_eq!(follower.version, store.version());
        }
    }

    #[test]
    fn after_a_failed_reading_everything_is_read_again() {
        let store = Store::temporary(schema()).unwrap();
        carry_out(&store, &Op::Import(1, 10, 1));
        let (mut follower, _sender) = follower(&store);
        follower.follow(store.shared(), &Batch::default()).unwrap();
        let mut changes = store.changes();
        carry_out(&store, &Op::Put(5, 2, 1));
        // Heard of, and lost with the failure.
        drop(changes.try_next());
        follower.fingerprints.clear();
        follower.is_behind = true;
        carry_out(&store, &Op::Put(6, 1, 1));
        let mut batch = Batch::default();
        while let Some(news) = changes.try_next() {
            batch.take(news);
        }
        follower.follow(store.shared(), &batch).unwrap();
        let [of_store, of_index] = both(&store, &follower.index);
        assert_eq!(of_store, of_index);
    }

    /// What was seen before: the thread ended with the panic, and the lists of streams stood still for ever.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_while_it_reads_costs_a_reading_and_not_the_index() {
        let store = Store::temporary(schema()).unwrap();
        let (follower, stop) = follower(&store);
        let changes = store.changes();
        let (sender, mut seen) = watch::channel(follower.seen());
        let mut n_panics = 0;
        let thread = std::thread::spawn(move || {
            follower.run(changes, &sender, |follower, shared, batch| {
                n_panics += 1;
                assert!(n_panics > 2, "a defect");
                follower.follow(shared, batch)
            });
        });
        for id in 1..=3 {
            let put = store.clone();
            tokio::task::spawn_blocking(move || carry_out(&put, &Op::Put(id, 1, 1))).await.unwrap();
        }
        let version = store.version();
        let read = seen.wait_for(|it| it.version >= version).await.unwrap().index.clone();
        let [of_store, of_index] = both(&store, &read);
        assert_eq!((of_index.len(), of_store), (3, of_index));
        drop(stop);
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    }
}
