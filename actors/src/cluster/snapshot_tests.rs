//! Snapshots and the log over the engine in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::testing::{MemoryEngine, MemoryStore};
use cluster::{Engine, EngineLog, LogState};
use domain::group::Group;
use domain::ids::GroupId;
use storage::Store;
use storage::log::{LogKeys, LogRole, restore_snapshot};
use storage::records::schema;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use uuid::Uuid;

use super::configuration::ConfigurationView;
use super::snapshots::{
    LOG_BYTES_LARGE, SnapshotLimits, SnapshotName, SnapshotParts, SnapshotTask, SnapshotView, is_due,
    list_snapshots, obsolete, read_usable_snapshot, trim_point,
};

const LOG: Uuid = Uuid::from_u128(7);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn name(log: Uuid, sequence: u64, made_at: i64) -> SnapshotName {
    SnapshotName { log, sequence, made_at }
}

fn state(first: u64, last: u64, bytes: u64) -> LogState {
    LogState { identity: String::new(), first, last, bytes }
}

#[test]
fn a_snapshot_is_due_after_64_mib_or_a_day_and_only_if_something_changed() {
    let limits = SnapshotLimits::default();
    let is_due = |log: &LogState, kept: &[SnapshotName], now| is_due(log, log.last, kept, now, &limits);
    let small = state(1, 100, 1 << 20);
    assert!(is_due(&small, &[], 0), "there is none");
    let at = |sequence| [name(LOG, 1, 0), name(LOG, sequence, 0)];
    assert!(!is_due(&small, &at(50), DAY_MS - 1));
    assert!(is_due(&small, &at(50), DAY_MS));
    assert!(is_due(&small, &at(50), -DAY_MS), "the clock was set back");
    assert!(!is_due(&small, &at(100), 9 * DAY_MS), "nothing has changed");
    let half_new = state(1, 100, 128 << 20);
    assert!(is_due(&half_new, &at(50), 0) && !is_due(&half_new, &at(51), 0));
    // The old entries are much smaller than the new ones.
    assert!(is_due(&state(1, 1_000_000, 192 << 20), &at(999_999), 0));
    // The log was trimmed to what follows the snapshot.
    assert!(is_due(&state(51, 100, 64 << 20), &at(50), 0));
    assert!(!is_due(&state(101, 100, 0), &at(50), 0), "an empty log");
}

#[test]
fn the_log_keeps_what_follows_the_older_of_the_last_two_snapshots() {
    let kept = [1, 20, 30].map(|it| name(LOG, it, 0));
    assert_eq!(trim_point(&state(1, 40, 100), &kept), Some(kept[1]));
    assert_eq!(trim_point(&state(20, 40, 100), &kept), None, "it is trimmed");
    assert_eq!(trim_point(&state(1, 40, 100), &kept[..1]), None);
    assert_eq!(trim_point(&state(1, 40, LOG_BYTES_LARGE), &[]), None);
    // Before the log is full, one snapshot has to be enough.
    assert_eq!(trim_point(&state(1, 40, LOG_BYTES_LARGE), &kept), Some(kept[2]));
    assert_eq!(trim_point(&state(1, 40, LOG_BYTES_LARGE), &kept[2..]), Some(kept[2]));

    let earlier = name(Uuid::from_u128(1), 99, 0);
    assert_eq!(obsolete(&[earlier, kept[0], kept[1], kept[2]], LOG), [kept[0], earlier]);
    // A log without a snapshot may need that of the earlier one.
    assert!(obsolete(&[earlier], LOG).is_empty());
}

#[test]
fn names_of_snapshots_are_read_as_written_and_others_are_none() {
    let one = name(LOG, 12, 1_700_000_000_000);
    assert_eq!(SnapshotName::parse(&one.to_string()), Some(one));
    for other in
        ["", "log-snapshot", "log-snapshot.a.1.2", "logo.png", &format!("{one}.3"), &format!(" {one}")]
    {
        assert_eq!(SnapshotName::parse(other), None, "{other}");
    }
    let padded = format!("log-snapshot.{LOG}.012.5");
    assert_eq!(SnapshotName::parse(&padded), None);
    assert!(name(LOG, 9, 0) < name(LOG, 10, 0));
}

struct Node {
    engine: MemoryEngine,
    store: Store,
    keys: LogKeys,
    folder: tempfile::TempDir,
    job: watch::Sender<ConfigurationView>,
    view: watch::Receiver<SnapshotView>,
    _task: tokio_util::task::AbortOnDropHandle<()>,
}

impl Node {
    /// A node whose store writes the log, with a snapshot for each change.
    async fn new(nats: &MemoryStore) -> Self {
        let engine = nats.connect();
        let keys = LogKeys::new().unwrap();
        let store = {
            let (keys, log) = (keys.clone(), Arc::new(EngineLog::new(Arc::new(engine.clone()), 0)));
            spawn_blocking(move || {
                let store = Store::temporary(schema()).unwrap();
                store.begin_log(LOG, 0).unwrap();
                store.attach_log(log, keys).unwrap();
                store.become_writer().unwrap();
                store
            })
        };
        let (store, folder) = (store.await.unwrap(), tempfile::tempdir().unwrap());
        let of_task = keys.clone();
        let parts = SnapshotParts {
            folder: folder.path().to_owned(),
            keys: Arc::new(move || of_task.clone()),
            limits: SnapshotLimits { bytes: 1, interval: Duration::from_secs(1) },
        };
        let (job, changes) =
            watch::channel(ConfigurationView { has_job: true, ..ConfigurationView::default() });
        let (task, view) = SnapshotTask::new(store.clone(), Arc::new(engine.clone()), parts, changes);
        let _task = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(task.run()));
        Self { engine, store, keys, folder, job, view, _task }
    }

    async fn writes(&self, id: u32) -> u64 {
        let store = self.store.clone();
        let write = move || {
            store.write_blocking(move |write| write.put(&Group::new(GroupId(id), format!("group {id}"))))
        };
        spawn_blocking(write).await.unwrap().unwrap();
        self.store.log_status().borrow().as_ref().unwrap().position.sequence
    }

    fn session(&self) -> u64 {
        self.engine.state().borrow().session().unwrap().number
    }

    /// Waits for a snapshot that contains this entry, and for what follows from it.
    async fn has_snapshot_of(&mut self, sequence: u64) {
        self.view.wait_for(|it| it.newest == Some(sequence)).await.unwrap();
    }

    async fn snapshots(&self) -> Vec<u64> {
        let all = list_snapshots(&self.engine, self.session()).await.unwrap();
        all.into_iter().map(|it| it.sequence).collect()
    }

    async fn log(&self) -> LogState {
        self.engine.log_state(self.session()).await.unwrap()
    }

    fn n_files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_keeps_two_snapshots_and_the_entries_after_the_older_one() {
    let nats = MemoryStore::default();
    let mut node = Node::new(&nats).await;
    node.has_snapshot_of(0).await;
    let mut sequences = Vec::new();
    for id in 1..5 {
        let sequence = node.writes(id).await;
        node.has_snapshot_of(sequence).await;
        sequences.push(sequence);
    }
    assert_eq!(node.snapshots().await, sequences[2..]);
    let log = node.log().await;
    assert_eq!((log.first, log.last), (sequences[2], sequences[3]));
    assert_eq!(node.n_files(), 0, "nothing is left of the snapshots");

    // A store that begins with the newest one has everything.
    let last = node.writes(9).await;
    let path = node.folder.path().join("snapshot");
    let found = read_usable_snapshot(&node.engine, node.session(), &path, &[]).await.unwrap();
    assert!(found.sequence <= last && found.log == LOG);
    let (keys, folder) = (node.keys.clone(), node.folder.path().to_owned());
    let log = Arc::new(EngineLog::new(Arc::new(node.engine.clone()), 0));
    let groups = spawn_blocking(move || {
        let (store, key) = (folder.join("store"), folder.join("key"));
        restore_snapshot(&path, &keys, &store, &key, &schema(), &mut |_, _, _| Ok(())).unwrap();
        let store = Store::open(Path::new(&store), &key, schema()).unwrap();
        store.attach_log(log, keys).unwrap();
        store.catch_up().unwrap();
        store.collection::<Group>().len()
    });
    assert_eq!(groups.await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_removed_from_a_log_whose_snapshot_cannot_be_read_or_that_is_another_one() {
    let nats = MemoryStore::default();
    let mut node = Node::new(&nats).await;
    node.has_snapshot_of(0).await;
    // Another node has stored something useless, as the older of two.
    let useless = name(LOG, 2, 0).to_string();
    let session = node.session();
    node.engine.put_object(session, &useless, &mut &b"no archive"[..]).await.unwrap();
    node.writes(1).await;
    node.writes(2).await;
    let third = node.writes(3).await;
    let is_reported = |it: &SnapshotView| it.problem.as_ref().is_some_and(|it| it.contains("at entry 2"));
    node.view.wait_for(is_reported).await.unwrap();
    assert_eq!((node.snapshots().await, node.log().await.first), (vec![0, 2, third], 1));
    // The next snapshot takes its place.
    let fourth = node.writes(4).await;
    node.view.wait_for(|it| it.newest == Some(fourth) && it.problem.is_none()).await.unwrap();
    assert_eq!((node.snapshots().await, node.log().await.first), (vec![third, fourth], third));

    // The stream was removed, and another cluster has begun there.
    nats.replace_log();
    let of_other = EngineLog::new(Arc::new(nats.connect()), 0);
    let other = spawn_blocking(move || {
        let store = Store::temporary(schema()).unwrap();
        store.begin_log(Uuid::from_u128(8), 0).unwrap();
        store.attach_log(Arc::new(of_other), LogKeys::new().unwrap()).unwrap();
        store.become_writer().unwrap();
        for id in 1..9 {
            store.write_blocking(move |write| write.put(&Group::new(GroupId(id), id.to_string()))).unwrap();
        }
        store
    });
    let other = other.await.unwrap();
    let mut status = node.store.log_status();
    let writes = |it: &Option<storage::log::LogStatus>| it.as_ref().unwrap().role == LogRole::Writer;
    status.wait_for(|it| !writes(it)).await.unwrap();
    let log = node.log().await;
    assert_eq!((log.first, log.last), (1, other.log_status().borrow().as_ref().unwrap().position.sequence));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_job_makes_no_snapshot_and_one_that_failed_is_made_again() {
    let nats = MemoryStore::default();
    let mut node = Node::new(&nats).await;
    node.has_snapshot_of(0).await;
    node.job.send_modify(|it| it.has_job = false);
    node.view.wait_for(|it| *it == SnapshotView::default()).await.unwrap();
    let first = node.writes(1).await;
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(node.snapshots().await, [0]);
    // The folder of its files cannot be used.
    let folder = node.folder.path().to_owned();
    std::fs::remove_dir(&folder).unwrap();
    node.job.send_modify(|it| it.has_job = true);
    let has_failed = |it: &SnapshotView| it.problem.as_ref().is_some_and(|it| it.contains("make a snapshot"));
    node.view.wait_for(has_failed).await.unwrap();
    std::fs::create_dir(&folder).unwrap();
    node.view.wait_for(|it| it.newest == Some(first) && it.problem.is_none()).await.unwrap();
    assert_eq!(node.snapshots().await, [0, first]);
}
