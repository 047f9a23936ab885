//! The thread that keeps the index of all streams up to date.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use domain::streams::{EDITED_MAX, Shard, ShardBuilder, StreamSnapshot};
use tokio::sync::watch;

use crate::changes::{ChangeMessage, ChangedIds, Changes};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::read::collection::Collection;
use crate::record::Record;
use crate::store::Store;

/// Pause after a failed update before everything is read again. Reading takes seconds, and may fail again.
const RETRY_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 5_000 });

/// The index after a commit.
pub(crate) struct IndexSnapshot {
    pub(crate) version: u64,
    pub(crate) index: Arc<StreamSnapshot>,
}

/// The state of the thread.
pub(crate) struct Follower {
    index: Arc<StreamSnapshot>,
    /// Fingerprint of each account as the index contains it. `None` if unknown, so that the account is read again.
    fingerprints: HashMap<AccountId, Option<u64>>,
    /// The last commit that the index contains.
    version: u64,
    /// Whether a read failed, so that an unknown part is missing.
    is_behind: bool,
    /// Weak, so that the index does not keep the store open.
    store: Weak<Shared>,
    /// Never receives a value: it closes when the last handle of the index is dropped.
    stop: watch::Receiver<()>,
}

/// Changes committed since the last update.
#[derive(Default)]
pub(crate) struct PendingChanges {
    ids: BTreeSet<u32>,
    is_many: bool,
    /// The last commit that a message announced.
    version: Option<u64>,
    has_ended: bool,
}

impl PendingChanges {
    fn add(&mut self, message: ChangeMessage) {
        match message {
            ChangeMessage::Changed(change) => {
                self.version = Some(change.version);
                match change.ids(Stream::COLLECTION) {
                    Some(ChangedIds::Few(ids)) => self.ids.extend(ids),
                    Some(ChangedIds::Many) => self.is_many = true,
                    None => {}
                }
            }
            ChangeMessage::Lagged => self.is_many = true,
            ChangeMessage::Closed => self.has_ended = true,
        }
    }
}

impl Follower {
    pub(crate) fn new(store: &Store, stop: watch::Receiver<()>) -> Self {
        Self {
            index: Arc::default(),
            fingerprints: HashMap::new(),
            version: store.version(),
            is_behind: true,
            store: Arc::downgrade(store.shared()),
            stop,
        }
    }

    pub(crate) fn snapshot(&self) -> IndexSnapshot {
        IndexSnapshot { version: self.version, index: Arc::clone(&self.index) }
    }

    /// Calls `follow` after each change until the store or the index is dropped. Continues after errors and panics.
    pub(crate) fn run(
        mut self,
        mut changes: Changes,
        sender: &watch::Sender<IndexSnapshot>,
        mut follow: impl FnMut(&mut Self, &Arc<Shared>, &PendingChanges) -> Result<()>,
    ) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!("failed to start the stream index: {error}"),
        };
        loop {
            let mut stop = self.stop.clone();
            let mut pending = PendingChanges::default();
            let is_behind = self.is_behind;
            runtime.block_on(async {
                tokio::select! {
                    _ = stop.changed() => pending.has_ended = true,
                    message = changes.next() => pending.add(message),
                    () = tokio::time::sleep(RETRY_PAUSE), if is_behind => {}
                }
            });
            // All waiting messages are handled together; the subscription buffers some hundred commits at most.
            while let Some(message) = changes.try_next().filter(|_| !pending.has_ended) {
                pending.add(message);
            }
            let Some(shared) = self.store.upgrade().filter(|_| !pending.has_ended) else { return };
            // The state after a panic is not used: everything is read again.
            let followed = catch_unwind(AssertUnwindSafe(|| follow(&mut self, &shared, &pending)));
            match followed.unwrap_or(Err(Error::Panicked)) {
                _ if self.has_ended(&shared) => return,
                Ok(()) => sender.send_replace(self.snapshot()),
                Err(error) => {
                    // Everything is read again after the next commit, or after a pause.
                    tracing::error!("failed to update the stream index: {error}");
                    self.fingerprints.clear();
                    self.is_behind = true;
                    continue;
                }
            };
        }
    }

    /// Returns whether the store or the index is no longer used.
    fn has_ended(&self, shared: &Arc<Shared>) -> bool {
        Arc::strong_count(shared) == 1 || self.stop.has_changed().is_err()
    }

    /// Brings the index up to date.
    pub(crate) fn follow(&mut self, shared: &Arc<Shared>, pending: &PendingChanges) -> Result<()> {
        if pending.is_many || self.is_behind || self.index.n_edited() + pending.ids.len() > EDITED_MAX {
            if !pending.is_many {
                self.forget_edited();
            }
            let version = shared.state.read().commit;
            self.compare(shared)?;
            self.version = self.version.max(version);
            self.is_behind = false;
        } else if !pending.ids.is_empty() {
            self.edit(shared, pending)?;
        }
        self.version = self.version.max(pending.version.unwrap_or_default());
        Ok(())
    }

    /// Marks the accounts with edited streams to be read again.
    fn forget_edited(&mut self) {
        for account in self.index.edited_accounts() {
            self.fingerprints.insert(account, None);
        }
    }

    /// Reads the accounts again whose fingerprint changed.
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
            // Taken before reading: a commit that happens meanwhile may be read or not, so it changes the fingerprint and
            // the account is read once more.
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

    /// Reads the streams of an account. Returns `None` if the store or the index is no longer used.
    fn read(
        &self,
        shared: &Arc<Shared>,
        streams: &Collection<'_, Stream>,
        account: AccountId,
    ) -> Result<Option<Shard>> {
        let mut builder = ShardBuilder::new(account);
        let mut has_ended = false;
        streams.while_of(account.0.into(), |stream| {
            builder.add(&stream);
            has_ended = self.has_ended(shared);
            !has_ended
        })?;
        Ok((!has_ended).then(|| builder.build()))
    }

    /// Reads a few changed streams.
    fn edit(&mut self, shared: &Arc<Shared>, pending: &PendingChanges) -> Result<()> {
        let streams = Collection::<Stream>::new(shared);
        let is_exact = || pending.version == Some(shared.state.read().commit);
        let mut fingerprints: Vec<(AccountId, Option<u64>)> = Vec::new();
        let mut edits = Vec::with_capacity(pending.ids.len());
        for id in &pending.ids {
            edits.push((StreamId(*id), streams.get(*id)?));
        }
        let before = edits.iter().filter_map(|(id, _)| self.index.contains(*id));
        let after = edits.iter().filter_map(|(_, stream)| stream.as_ref()).map(|it| it.account);
        for account in before.chain(after).collect::<BTreeSet<_>>() {
            fingerprints.push((account, Some(streams.fingerprint_of(account.0.into()))));
        }
        // The fingerprint matches the index only if no commit happened meanwhile. An account without a known fingerprint
        // still has none after some of its streams were read.
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
    use domain::stream::StreamProperties;
    use domain::streams::StreamQuery;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::records::schema;

    fn stream(id: u32, account: u32, name: u32) -> Stream {
        let facts = StreamProperties::new(format!("name {name}"), SourceUrl::new("http://h/1"));
        Stream::new(StreamId(id), AccountId(account), facts, 0)
    }

    /// A write between two updates of the index.
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
            // Each account has its own ids, because an id belongs to one account.
            1 => (1u32..4, 0u32..20, 0u32..9).prop_map(|(account, n, name)| Op::Import(account, n, name)),
        ]
    }

    fn apply(store: &Store, op: &Op) {
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
        let follower = Follower::new(store, stop);
        (follower, sender)
    }

    /// Lists the ids with account and name, from the store and from the index.
    fn both(store: &Store, index: &StreamSnapshot) -> [Vec<(StreamId, AccountId, bool)>; 2] {
        let query = StreamQuery { name: Some("name 1".to_owned()), ..StreamQuery::default() };
        let named = index.ids(&query);
        let of_index = index.ids(&StreamQuery::default()).into_iter().map(|id| {
            let account = index.contains(id).expect("listed ids exist");
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

        // A slow subscriber misses old changes; the index must still be complete.
        #[test]
        fn the_index_equals_the_store_whichever_messages_were_missed(
            updates in vec((vec(op(), 1..6), any::<bool>(), any::<bool>()), 1..10),
        ) {
            let store = Store::temporary(schema()).unwrap();
            let (mut follower, _sender) = follower(&store);
            follower.follow(store.shared(), &PendingChanges::default()).unwrap();
            let mut changes = store.changes();
            for (ops, is_missed, comes_late) in updates {
                let (before, after) = ops.split_at(if comes_late { ops.len() / 2 } else { ops.len() });
                before.iter().for_each(|it| apply(&store, it));
                let mut pending = PendingChanges::default();
                if is_missed {
                    while changes.try_next().is_some() {}
                    pending.add(ChangeMessage::Lagged);
                }
                while let Some(message) = changes.try_next() {
                    pending.add(message);
                }
                // The store is ahead of the messages.
                after.iter().for_each(|it| apply(&store, it));
                follower.follow(store.shared(), &pending).unwrap();
            }
            let mut pending = PendingChanges::default();
            while let Some(message) = changes.try_next() {
                pending.add(message);
            }
            follower.follow(store.shared(), &pending).unwrap();
            let [of_store, of_index] = both(&store, &follower.index);
            prop_assert_eq!(of_store, of_index);
            prop_assert_eq!(follower.version, store.version());
        }
    }

    #[test]
    fn after_a_failed_read_everything_is_read_again() {
        let store = Store::temporary(schema()).unwrap();
        apply(&store, &Op::Import(1, 10, 1));
        let (mut follower, _sender) = follower(&store);
        follower.follow(store.shared(), &PendingChanges::default()).unwrap();
        let mut changes = store.changes();
        apply(&store, &Op::Put(5, 2, 1));
        // This message is lost with the failure.
        drop(changes.try_next());
        follower.fingerprints.clear();
        follower.is_behind = true;
        apply(&store, &Op::Put(6, 1, 1));
        let mut pending = PendingChanges::default();
        while let Some(message) = changes.try_next() {
            pending.add(message);
        }
        follower.follow(store.shared(), &pending).unwrap();
        let [of_store, of_index] = both(&store, &follower.index);
        assert_eq!(of_store, of_index);
    }

    /// Before the fix, a panic ended the thread and the lists of streams were never updated again.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_index_continues_after_a_panic_while_reading() {
        let store = Store::temporary(schema()).unwrap();
        let (follower, stop) = follower(&store);
        let changes = store.changes();
        let (sender, mut snapshot) = watch::channel(follower.snapshot());
        let mut n_panics = 0;
        let thread = std::thread::spawn(move || {
            follower.run(changes, &sender, |follower, shared, pending| {
                n_panics += 1;
                assert!(n_panics > 2, "a defect");
                follower.follow(shared, pending)
            });
        });
        for id in 1..=3 {
            let put = store.clone();
            tokio::task::spawn_blocking(move || apply(&put, &Op::Put(id, 1, 1))).await.unwrap();
        }
        let version = store.version();
        let read = snapshot.wait_for(|it| it.version >= version).await.unwrap().index.clone();
        let [of_store, of_index] = both(&store, &read);
        assert_eq!((of_index.len(), of_store), (3, of_index));
        drop(stop);
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    }
}
