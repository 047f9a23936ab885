//! Stores whose log is in NATS.

use std::sync::Arc;
use std::time::Duration;

use cluster::nats::NatsEngine;
use cluster::testing::NatsServers;
use cluster::{Engine, EngineLog};
use domain::ids::ServerGroupId;
use domain::server_group::ServerGroup;
use storage::log::{LogKeys, LogRole};
use storage::records::schema;
use storage::{Error, Store};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::support::{servers, session_after, started};

/// A node: its connection to the engine, and its store.
struct Node {
    engine: Arc<NatsEngine>,
    _folder: TempDir,
    store: Store,
}

impl Node {
    async fn start(servers: &NatsServers, keys: &LogKeys) -> Self {
        let (engine, _) = started(servers).await;
        let engine = Arc::new(engine);
        let (log, keys) = (engine.clone(), keys.clone());
        let runtime = tokio::runtime::Handle::current();
        let made = spawn_blocking(move || {
            let _entered = runtime.enter();
            let folder = tempfile::tempdir().expect("a folder");
            let (path, key) = (folder.path().join("store"), folder.path().join("key"));
            let store = Store::open(&path, &key, schema()).expect("a store");
            let position = store.begin_log(Uuid::from_u128(7), 0).expect("a position");
            store.attach_log(Arc::new(EngineLog::new(log, position.sequence)), keys).expect("a position");
            (folder, store)
        });
        let (folder, store) = made.await.expect("no panic");
        Self { engine, _folder: folder, store }
    }

    /// Runs a function of the store on a thread that may block.
    async fn with<R: Send + 'static>(&self, work: impl FnOnce(&Store) -> R + Send + 'static) -> R {
        let store = self.store.clone();
        spawn_blocking(move || work(&store)).await.expect("no panic")
    }

    async fn write(&self, id: u32) -> Result<(), Error> {
        let group = ServerGroup { id: ServerGroupId(id), name: format!("group {id}"), max_streams: id };
        self.with(move |store| store.write_blocking(move |write| write.put(&group))).await
    }

    /// Writes, and becomes the writer first whenever that is needed.
    async fn write_surely(&self, id: u32) {
        while self.write(id).await.is_err() {
            if let Err(error) = self.with(|store| store.become_writer().map(drop)).await {
                assert!(matches!(error, Error::LogUnreachable(_)), "{error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// Catches up with the log when it answers again, and returns the ids of all groups.
    async fn groups(&self) -> Vec<u32> {
        let has_caught_up = async || match self.with(|store| store.catch_up()).await {
            Err(Error::LogUnreachable(_)) => false,
            caught_up => caught_up.map(|_| true).expect("the log can be read"),
        };
        let caught_up = async {
            while !has_caught_up().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), caught_up).await.expect("the log answers again");
        self.with(|store| {
            store.collection::<ServerGroup>().all().expect("records").iter().map(|it| it.id.0).collect()
        })
        .await
    }

    fn role(&self) -> LogRole {
        self.store.log_status().borrow().as_ref().expect("it has a log").role.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_writes_the_others_follow_and_a_writer_that_was_replaced_changes_nothing() {
    let servers = servers(1);
    let keys = LogKeys::new().unwrap();
    let (one, two) = tokio::join!(Node::start(&servers, &keys), Node::start(&servers, &keys));
    assert!(matches!(one.write(1).await, Err(Error::NotWriter)));
    one.with(|store| store.become_writer().map(drop)).await.unwrap();
    for id in 1..=20 {
        one.write(id).await.unwrap();
    }
    assert_eq!(two.groups().await, Vec::from_iter(1..=20));
    two.with(|store| store.become_writer().map(drop)).await.unwrap();
    two.write(21).await.unwrap();
    // It still believes that it writes.
    assert_eq!(one.role(), LogRole::Writer);
    assert!(matches!(one.write(22).await, Err(Error::NotWriter)));
    assert_eq!((one.role(), one.groups().await), (LogRole::Follower, Vec::from_iter(1..=21)));
    two.write(23).await.unwrap();
    let expected = Vec::from_iter((1..=21).chain([23]));
    assert_eq!((one.groups().await, two.groups().await), (expected.clone(), expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answered_write_is_lost_when_the_leader_of_nats_is_killed_and_while_nats_is_frozen_none_is_answered()
 {
    let mut servers = servers(3);
    let keys = LogKeys::new().unwrap();
    let (one, two) = tokio::join!(Node::start(&servers, &keys), Node::start(&servers, &keys));
    for id in 1..=5 {
        one.write_surely(id).await;
    }
    for at in 0..3 {
        servers.kill(at);
        one.write_surely(6 + at as u32).await;
        servers.restart(at);
    }
    assert_eq!(two.groups().await, Vec::from_iter(1..=8));
    for at in 0..3 {
        servers.freeze(at);
    }
    let refused = one.write(9).await.unwrap_err();
    assert!(matches!(refused, Error::LogUnknown | Error::NotWriter), "{refused}");
    assert!(matches!(two.with(|store| store.catch_up()).await, Err(Error::LogUnreachable(_))));
    for at in 0..3 {
        servers.thaw(at);
    }
    // Not answered, so it may be there or not; the same on both nodes.
    session_after(&*one.engine as &dyn Engine, 0).await;
    one.write_surely(10).await;
    let groups = one.groups().await;
    assert!(groups.starts_with(&Vec::from_iter(1..=8)) && groups.ends_with(&[10]), "{groups:?}");
    assert_eq!(two.groups().await, groups);
}
