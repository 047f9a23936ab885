//! Tests of stores that share a log: what followers see, who may write, and what happens to large commits.

mod model;
mod sim_log;

use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::sim_log::{Fault, SimLog};
use super::{EntryHash, LogKeys, LogPosition, LogRole, create_snapshot, restore_snapshot};
use crate::backup::{Archive, BackupError, BackupSecret, create_backup};
use crate::changes::{ChangeMessage, ChangedIds};
use crate::error::{Error, Result};
use crate::record::{CollectionKind, Keys, Record, Schema, Sharing};
use crate::store::Store;
use crate::write::Write;

const LOG: Uuid = Uuid::from_u128(0x10c);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    id: u32,
    name: String,
}

impl Record for Note {
    const COLLECTION: &'static str = "notes";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Item {
    id: u32,
    owner: u64,
    text: String,
}

impl Record for Item {
    const COLLECTION: &'static str = "items";
    const SHARING: Sharing = Sharing::FullNodes;
    const KIND: CollectionKind = CollectionKind::Paged;
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn owner(&self) -> u64 {
        self.owner
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("text", &self.text);
    }
}

/// A record of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Label {
    id: u32,
    text: String,
}

impl Record for Label {
    const COLLECTION: &'static str = "labels";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

fn schema() -> Schema {
    Schema::new().with::<Note>().with::<Item>().with::<Label>().with::<LogPosition>()
}

fn note(id: u32, name: &str) -> Note {
    Note { id, name: name.to_owned() }
}

fn item(id: u32, owner: u64, text: &str) -> Item {
    Item { id, owner, text: text.to_owned() }
}

/// Writes in one commit.
fn write(store: &Store, fill: impl FnOnce(&mut Write<'_>) -> Result<()> + Send + 'static) -> Result<()> {
    store.write_blocking(fill)
}

fn import(store: &Store, owner: u64, items: &[Item]) -> Result<()> {
    let mut bulk = store.bulk_write::<Item>(owner)?;
    items.iter().try_for_each(|it| bulk.put(it))?;
    bulk.commit(|_, _| Ok(()))
}

/// Lists all shared records of a store.
fn content(store: &Store) -> (Vec<Note>, Vec<Item>) {
    let mut items = store.collection::<Item>().all().unwrap();
    items.sort();
    (store.collection::<Note>().all().unwrap(), items)
}

/// Some stores with the same log, in temporary folders.
struct Cluster {
    log: Arc<SimLog>,
    keys: LogKeys,
    folder: tempfile::TempDir,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { log: Arc::default(), keys: LogKeys::new().unwrap(), folder }
    }

    fn folder_of(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the store of a node and connects it with the log.
    fn open(&self, name: &str) -> Store {
        let folder = self.folder_of(name);
        let store = Store::open(&folder.join("store"), &folder.join("key"), schema()).unwrap();
        if store.log_status().borrow().is_none() {
            store.begin_log(LOG, 0).unwrap();
        }
        let is_edge = name.starts_with("edge");
        let keys = if is_edge { self.keys.for_edge() } else { self.keys.clone() };
        store.attach_log(Arc::clone(&self.log) as Arc<_>, keys).unwrap();
        store
    }

    fn writer(&self, name: &str) -> Store {
        let store = self.open(name);
        store.become_writer().unwrap();
        store
    }
}

fn role(store: &Store) -> LogRole {
    store.log_status().borrow().as_ref().unwrap().role.clone()
}

#[test]
fn a_follower_has_what_the_writer_was_answered_and_sees_it_like_a_write_of_its_own() {
    let cluster = Cluster::new();
    let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
    let (table, mut changes) = (follower.table::<Note>().unwrap(), follower.changes());
    write(&writer, |write| {
        let id = write.next_id::<Note>()?;
        write.put(&note(id, "one"))?;
        write.put(&note(7, "seven"))?;
        write.put(&item(3, 1, "text"))
    })
    .unwrap();
    let position = follower.catch_up().unwrap();
    assert_eq!(position, writer.log_status().borrow().as_ref().unwrap().position);
    assert_eq!(content(&follower), content(&writer));
    assert_eq!(table.load().one_by("name", "seven").map(|it| it.id), Some(7));
    assert_eq!(follower.collection::<Item>().by("text", "text").unwrap(), [item(3, 1, "text")]);
    let Some(ChangeMessage::Changed(change)) = changes.try_next() else { panic!("no change was announced") };
    assert_eq!(change.ids("notes"), Some(&ChangedIds::Few(vec![1, 7])));
    assert_eq!(change.ids("items"), Some(&ChangedIds::Few(vec![3])));
    assert_eq!(changes.try_next(), None);

    // Two records exchange a unique name, which is impossible one by one.
    write(&writer, |write| {
        write.put(&note(1, "other"))?;
        write.put(&note(7, "one"))?;
        write.put(&note(1, "seven"))?;
        write.remove::<Item>(3).map(drop)
    })
    .unwrap();
    follower.catch_up().unwrap();
    assert_eq!(content(&follower).0, [note(1, "seven"), note(7, "one")]);
    assert_eq!((content(&follower).1, table.load().len()), (Vec::new(), 2));
    // Ids are never used twice, whichever node writes.
    writer.stop_writing().unwrap();
    follower.become_writer().unwrap();
    let id = follower.write_blocking(|write| write.next_id::<Note>()).unwrap();
    assert_eq!(id, 8);
}

#[test]
fn a_node_that_does_not_write_refuses_shared_changes_only() {
    let cluster = Cluster::new();
    let follower = cluster.open("a");
    for refused in [
        write(&follower, |write| write.put(&note(1, "one"))),
        write(&follower, |write| write.next_id::<Note>().map(drop)),
        write(&follower, |write| {
            write.remove_owner::<Item>(1);
            Ok(())
        }),
        import(&follower, 1, &[item(1, 1, "text")]),
        follower.reserve_ids::<Note>(1).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::NotWriter)), "{refused:?}");
    }
    let label = || Label { id: 1, text: "local".to_owned() };
    write(&follower, move |write| write.put(&label())).unwrap();
    assert_eq!((follower.collection::<Label>().len(), cluster.log.len()), (1, 0));
    follower.become_writer().unwrap();
    // A local change is in no log.
    write(&follower, move |write| write.remove::<Label>(1).map(drop)).unwrap();
    assert_eq!(cluster.log.len(), 0);
    write(&follower, |write| write.put(&note(1, "one"))).unwrap();
    assert_eq!(cluster.log.len(), 1);
    // Without its log, a store of a cluster still refuses.
    let folder = cluster.folder_of("a");
    drop(follower);
    let alone = Store::open(&folder.join("store"), &folder.join("key"), schema()).unwrap();
    let refused = write(&alone, |write| write.put(&note(2, "two")));
    assert!(matches!(refused, Err(Error::NotWriter)), "{refused:?}");
    // Until it leaves the cluster, with all its records.
    alone.leave_log().unwrap();
    write(&alone, |write| write.put(&note(2, "two"))).unwrap();
    assert_eq!(content(&alone).0, [note(1, "one"), note(2, "two")]);
    assert_eq!(*alone.log_status().borrow(), None);
}

#[test]
fn an_edge_node_gets_no_record_of_full_nodes_and_never_writes() {
    let cluster = Cluster::new();
    let (writer, edge) = (cluster.writer("a"), cluster.open("edge"));
    write(&writer, |write| {
        write.put(&note(1, "one"))?;
        write.put(&item(1, 1, "secret"))
    })
    .unwrap();
    import(&writer, 2, &(10..300).map(|id| item(id, 2, "secret")).collect::<Vec<_>>()).unwrap();
    let position = edge.catch_up().unwrap();
    assert_eq!(position, writer.log_status().borrow().as_ref().unwrap().position);
    assert_eq!(content(&edge), (vec![note(1, "one")], Vec::new()));
    assert!(matches!(edge.become_writer(), Err(Error::NotWriter)));
    assert!(edge.begin_log(LOG, 9).is_err());
    let all: Vec<u8> = cluster.log.entries().concat();
    for secret in [&b"secret"[..], b"one", b"notes"] {
        assert!(!all.windows(secret.len()).any(|it| it == secret), "an entry contains a plain record");
    }
}

#[test]
fn a_deposed_writer_changes_nothing_and_follows() {
    let cluster = Cluster::new();
    let (old, new) = (cluster.writer("a"), cluster.open("b"));
    write(&old, |write| write.put(&note(1, "one"))).unwrap();
    let mut bulk = old.bulk_write::<Item>(1).unwrap();
    bulk.put(&item(1, 1, "old")).unwrap();
    new.become_writer().unwrap();
    write(&new, |write| write.put(&note(2, "two"))).unwrap();

    let before = content(&old);
    let refused = write(&old, |write| write.put(&note(3, "three")));
    assert!(matches!(refused, Err(Error::NotWriter)), "{refused:?}");
    assert_eq!((role(&old), content(&old)), (LogRole::Follower, before));
    let interrupted = bulk.commit(|_, _| Ok::<_, Error>(()));
    assert!(matches!(interrupted, Err(Error::NotWriter)), "{interrupted:?}");
    old.catch_up().unwrap();
    assert_eq!(content(&old), content(&new));
    // The import is begun again where the writer is, also for the same owner.
    import(&new, 1, &[item(1, 1, "new")]).unwrap();
    old.catch_up().unwrap();
    assert_eq!(content(&old).1, [item(1, 1, "new")]);
}

#[test]
fn an_unknown_outcome_is_found_out_and_an_entry_is_never_there_twice() {
    let cluster = Cluster::new();
    let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
    for (number, fault) in [(1, Fault::Applied), (2, Fault::Lost), (3, Fault::Late)] {
        cluster.log.fail_next(fault);
        let name = format!("{fault:?}");
        write(&writer, move |write| write.put(&note(number, &name))).unwrap();
        assert_eq!(cluster.log.len(), number as usize, "{fault:?}");
    }
    follower.catch_up().unwrap();
    assert_eq!(content(&follower), content(&writer));
    assert_eq!(content(&follower).0.len(), 3);
}

#[test]
fn a_write_without_an_answer_of_the_log_is_applied_later_or_never_but_not_in_part() {
    let cluster = Cluster::new();
    let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
    write(&writer, |write| write.put(&note(1, "one"))).unwrap();
    for is_late in [false, true] {
        let id = 2 + u32::from(is_late);
        cluster.log.stop_answering(if is_late { Fault::Late } else { Fault::Lost });
        let unknown = write(&writer, move |write| {
            write.put(&note(id, &format!("number {id}")))?;
            write.put(&item(id, 1, "text"))
        });
        assert!(matches!(unknown, Err(Error::LogUnknown)), "{unknown:?}");
        assert_eq!((role(&writer), content(&writer).0.len()), (LogRole::Follower, 1));
        assert!(matches!(writer.catch_up(), Err(Error::LogUnreachable(_))));
        cluster.log.answer_again();
        follower.catch_up().unwrap();
        writer.become_writer().unwrap();
        assert_eq!(content(&writer).0.len(), if is_late { 2 } else { 1 });
        assert_eq!(content(&writer), content(&follower));
        assert_eq!(content(&writer).0.len(), content(&writer).1.len() + 1);
    }
    write(&writer, |write| write.put(&note(9, "nine"))).unwrap();
}

#[test]
fn an_import_sends_what_changed_and_a_large_one_everything_in_slices() {
    let cluster = Cluster::new();
    let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
    let text = |id: u32| format!("{:x}", crc32fast::hash(&id.to_be_bytes())).repeat(20);
    let mut items: Vec<_> = (1..=600).map(|id| item(id, 1, &text(id))).collect();
    import(&writer, 1, &items).unwrap();
    let slices = cluster.log.len();
    assert!(slices > 5, "{slices} entries");
    // Not applied before it is complete.
    let last = cluster.log.hide_last();
    assert_eq!(follower.catch_up().unwrap().sequence, 0);
    assert_eq!(content(&follower).1, []);
    cluster.log.show(last);
    follower.catch_up().unwrap();
    assert_eq!(content(&follower), content(&writer));
    assert_eq!(follower.collection::<Item>().len_of(1), 600);

    // A few changed, one is new, one is gone, and the commit itself changes others.
    items[4].text = "changed".to_owned();
    items.remove(7);
    items.push(item(700, 1, "new"));
    let before = cluster.log.bytes();
    let mut bulk = writer.bulk_write::<Item>(1).unwrap();
    items.iter().try_for_each(|it| bulk.put(it)).unwrap();
    bulk.commit(|write, _| {
        write.put(&item(20, 2, "moved"))?;
        write.put(&item(30, 1, "edited"))?;
        write.remove::<Item>(40)?;
        write.put(&note(1, "with it"))
    })
    .unwrap();
    assert_eq!(cluster.log.len(), slices + 1);
    assert!(
        cluster.log.bytes() - before < 2_000,
        "the difference has {} bytes",
        cluster.log.bytes() - before
    );
    follower.catch_up().unwrap();
    assert_eq!(content(&follower), content(&writer));
    assert_eq!(follower.collection::<Item>().get(20).unwrap(), Some(item(20, 2, "moved")));

    // All are other ones, and the commit moves one between owners.
    let others: Vec<_> = (1_000..1_400).map(|id| item(id, 1, &text(id))).collect();
    let mut bulk = writer.bulk_write::<Item>(1).unwrap();
    others.iter().try_for_each(|it| bulk.put(it)).unwrap();
    bulk.commit(|write, _| {
        write.put(&item(20, 1, "moved back"))?;
        write.put(&item(1_001, 3, "moved away"))
    })
    .unwrap();
    follower.catch_up().unwrap();
    assert_eq!(content(&follower), content(&writer));
    // All are gone.
    write(&writer, |write| {
        write.remove_owner::<Item>(1);
        write.put(&item(5, 1, "again"))
    })
    .unwrap();
    follower.catch_up().unwrap();
    assert_eq!(content(&follower).1, [item(5, 1, "again"), item(1_001, 3, "moved away")]);
    assert_eq!(content(&writer), content(&follower));
}

#[test]
fn an_import_that_nobody_completed_changes_nothing() {
    let cluster = Cluster::new();
    let (old, new, follower) = (cluster.writer("a"), cluster.open("b"), cluster.open("c"));
    let items: Vec<_> = (1..=600).map(|id| item(id, 1, &"text ".repeat(50))).collect();
    // The first slices arrive; then another node writes.
    cluster.log.conflict_after(2);
    let refused = import(&old, 1, &items);
    assert!(matches!(refused, Err(Error::NotWriter)), "{refused:?}");
    new.become_writer().unwrap();
    assert_eq!((new.collection::<Item>().len(), cluster.log.len()), (0, 2));
    write(&new, |write| write.put(&note(1, "one"))).unwrap();
    for store in [&old, &follower] {
        store.catch_up().unwrap();
        assert_eq!(content(store), (vec![note(1, "one")], Vec::new()));
    }
    // The staged blocks of the refused import are swept, and the same owner can be imported again.
    old.become_writer().unwrap();
    import(&old, 1, &items).unwrap();
    follower.catch_up().unwrap();
    assert_eq!(content(&follower), content(&old));
}

#[test]
fn a_salvaged_store_belongs_to_no_log() {
    let cluster = Cluster::new();
    let writer = cluster.writer("a");
    write(&writer, |write| write.put(&note(1, "one"))).unwrap();
    drop(writer);
    let folder = cluster.folder_of("a");
    let (key, saved) = (folder.join("key"), folder.join("saved"));
    let report = crate::salvage(&folder.join("store"), &saved, &key, &schema()).unwrap();
    assert!(report.to_string().contains("belongs to no cluster"), "{report}");
    let store = Store::open(&saved, &key, schema()).unwrap();
    assert_eq!((content(&store).0, store.log_status().borrow().clone()), (vec![note(1, "one")], None));
}

#[test]
fn a_record_larger_than_an_entry_arrives_whole() {
    let cluster = Cluster::new();
    let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
    let mut noise = vec![0; 300_000];
    getrandom::fill(&mut noise).unwrap();
    let text = HEXLOWER.encode(&noise);
    let large = item(1, 1, &text);
    let copy = large.clone();
    write(&writer, move |write| write.put(&copy)).unwrap();
    follower.catch_up().unwrap();
    assert_eq!(content(&follower).1, [large]);
}

/// Damages a log.
type Damage = fn(&SimLog);

#[test]
fn a_damaged_log_makes_shared_records_read_only_and_a_new_log_ends_it() {
    let damages: [(&str, Damage); 4] = [
        ("damaged", |log| log.change(3, |entry| *entry.last_mut().unwrap() ^= 1)),
        ("does not continue", |log| {
            let third = log.entries()[2].clone();
            log.change(2, |entry| *entry = third);
        }),
        ("ends at entry 0", |log| log.cut_after(0)),
        ("not the one that this node has", |log| {
            log.change(1, |entry| *entry.last_mut().unwrap() ^= 1);
            log.cut_after(1);
        }),
    ];
    for (expected, damage) in damages {
        let cluster = Cluster::new();
        let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
        write(&writer, |write| write.put(&note(1, "one"))).unwrap();
        follower.catch_up().unwrap();
        for id in 2..4 {
            write(&writer, move |write| write.put(&note(id, &id.to_string()))).unwrap();
        }
        damage(&cluster.log);
        let broken = follower.catch_up().unwrap_err();
        assert!(matches!(broken, Error::LogBroken(_)), "{broken:?}");
        assert!(broken.to_string().contains(expected), "{broken}");
        assert!(broken.to_string().contains("reseed"), "{broken}");
        assert!(matches!(role(&follower), LogRole::ReadOnly(_)));
        for refused in [
            write(&follower, |write| write.put(&note(9, "nine"))),
            follower.become_writer().map(drop),
            import(&follower, 1, &[]),
        ] {
            assert!(matches!(refused, Err(Error::LogBroken(_))), "{refused:?}");
        }
        // Reading goes on, and so do local changes.
        assert!(!follower.collection::<Note>().is_empty());
        write(&follower, |write| write.put(&Label { id: 1, text: String::new() })).unwrap();

        // The complete store begins a new log, behind what the old one contains.
        let after = cluster.log.last_sequence();
        writer.begin_log(Uuid::from_u128(2), after).unwrap();
        writer.become_writer().unwrap();
        write(&writer, |write| write.put(&note(4, "four"))).unwrap();
        assert_eq!(content(&writer).0.len(), 4);
        // The other node belongs to the old log, and says so, also in a session that begins now.
        assert!(matches!(follower.catch_up(), Err(Error::LogReplaced)));
        follower.attach_log(Arc::clone(&cluster.log) as Arc<_>, cluster.keys.clone()).unwrap();
        assert!(matches!(follower.catch_up(), Err(Error::LogReplaced)));
        assert!(matches!(follower.become_writer(), Err(Error::LogReplaced)));
    }
}

#[test]
fn a_node_behind_the_compacted_log_and_one_without_a_key_say_what_is_missing() {
    let mut cluster = Cluster::new();
    let (writer, follower) = (cluster.writer("a"), cluster.open("b"));
    for id in 1..4 {
        write(&writer, move |write| write.put(&note(id, &id.to_string()))).unwrap();
    }
    cluster.log.compact_before(3);
    assert!(matches!(follower.catch_up(), Err(Error::LogBehind(0))));
    assert_eq!(role(&follower), LogRole::Follower);

    // A rotated key: entries of both generations are read.
    let old = cluster.keys.clone();
    cluster.keys.cluster = cluster.keys.cluster.rotated().unwrap();
    writer.set_log_keys(cluster.keys.clone()).unwrap();
    let before = writer.log_status().borrow().as_ref().unwrap().position;
    write(&writer, |write| write.put(&note(9, "nine"))).unwrap();
    let folder = cluster.folder_of("d");
    let late = Store::open(&folder.join("store"), &folder.join("key"), schema()).unwrap();
    late.run(move |writer| {
        writer.write_now(move |write| write.put(&before))?;
        writer.load_log()
    })
    .unwrap();
    late.attach_log(Arc::clone(&cluster.log) as Arc<_>, old).unwrap();
    let missing = late.catch_up().unwrap_err();
    assert!(matches!(&missing, Error::Key(why) if why.contains("generation 2")), "{missing:?}");
    assert_eq!(role(&late), LogRole::Follower);
    late.set_log_keys(cluster.keys.clone()).unwrap();
    late.catch_up().unwrap();
    assert_eq!(content(&late).0, [note(9, "nine")]);
}

#[test]
fn a_node_joins_with_a_snapshot_and_the_tail_of_the_log() {
    let cluster = Cluster::new();
    let writer = cluster.writer("a");
    write(&writer, |write| write.put(&Label { id: 1, text: "of node a".to_owned() })).unwrap();
    write(&writer, |write| write.put(&note(1, "one"))).unwrap();
    import(&writer, 1, &(1..300).map(|id| item(id, 1, "secret")).collect::<Vec<_>>()).unwrap();
    let path = cluster.folder_of("snapshot");
    let mut file = std::fs::File::create(&path).unwrap();
    let position = create_snapshot(&writer, &[], &cluster.keys, 0, &mut file).unwrap();
    assert_eq!(position, writer.log_status().borrow().as_ref().unwrap().position);
    write(&writer, |write| write.put(&note(2, "two"))).unwrap();
    import(&writer, 1, &(2..310).map(|id| item(id, 1, "secret")).collect::<Vec<_>>()).unwrap();
    cluster.log.compact_before(position.sequence + 1);

    for name in ["b", "edge"] {
        let is_edge = name == "edge";
        let keys = if is_edge { cluster.keys.for_edge() } else { cluster.keys.clone() };
        let folder = cluster.folder_of(name);
        std::fs::create_dir(&folder).unwrap();
        let restore = |keys: &LogKeys| {
            let (store, key) = (folder.join("store"), folder.join("key"));
            restore_snapshot(&path, keys, &store, &key, &schema(), &mut |_, _, _| Ok(()))
        };
        assert!(restore(&LogKeys::new().unwrap()).is_err());
        assert_eq!(restore(&keys).unwrap(), position);
        let joined = cluster.open(name);
        assert_eq!(joined.log_status().borrow().as_ref().unwrap().position, position);
        assert_eq!(content(&joined).0, [note(1, "one")]);
        joined.catch_up().unwrap();
        let (notes, items) = content(&writer);
        assert_eq!(content(&joined), (notes, if is_edge { Vec::new() } else { items }));
        // Records of one node stay there.
        assert!(joined.collection::<Label>().is_empty());
        if is_edge {
            let refused = create_snapshot(&joined, &[], &keys, 0, &mut file).unwrap_err();
            assert!(refused.to_string().contains("edge"), "{refused}");
            continue;
        }
        writer.stop_writing().unwrap();
        joined.become_writer().unwrap();
        assert_eq!(joined.write_blocking(|write| write.next_id::<Note>()).unwrap(), 3);
        joined.stop_writing().unwrap();
        writer.catch_up().unwrap();
    }
    // A snapshot is not a back-up, and a back-up is not a snapshot and does not belong to a log.
    let refused = Archive::open(&path).unwrap_err();
    assert!(matches!(refused, BackupError::IsSnapshot), "{refused}");
    let secret = BackupSecret::KeyFile(domain::secret::Secret::new("a key"));
    create_backup(&writer, &[], &secret, 0, &mut std::fs::File::create(&path).unwrap()).unwrap();
    let folder = cluster.folder_of("restored");
    std::fs::create_dir(&folder).unwrap();
    let key = folder.join("key");
    let refused =
        restore_snapshot(&path, &cluster.keys, &folder.join("no"), &key, &schema(), &mut |_, _, _| Ok(()));
    assert!(matches!(refused, Err(BackupError::NotASnapshot)), "{refused:?}");
    let archive = Archive::open(&path).unwrap().unlock(&secret).unwrap();
    archive.restore(&folder.join("store"), &key, &schema(), &mut |_, _, _| Ok(())).unwrap();
    let restored = Store::open(&folder.join("store"), &key, schema()).unwrap();
    assert_eq!((content(&restored), restored.collection::<Label>().len()), (content(&writer), 1));
    assert_eq!(*restored.log_status().borrow(), None);
}

#[test]
fn a_snapshot_leaves_out_collections_that_were_never_used() {
    let cluster = Cluster::new();
    let writer = cluster.writer("a");
    write(&writer, |write| write.put(&note(1, "one"))).unwrap();
    // A version that does not know items.
    let earlier = || Schema::new().with::<Note>().with::<Label>().with::<LogPosition>();
    let restored = |name: &str| {
        let (path, folder) = (cluster.folder_of(&format!("snapshot-{name}")), cluster.folder_of(name));
        let mut file = std::fs::File::create(&path).unwrap();
        create_snapshot(&writer, &[], &cluster.keys, 0, &mut file).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let (store, key) = (folder.join("store"), folder.join("key"));
        restore_snapshot(&path, &cluster.keys, &store, &key, &earlier(), &mut |_, _, _| Ok(()))?;
        Ok::<_, BackupError>(Store::open(&store, &key, earlier()).unwrap())
    };
    let store = restored("b").unwrap();
    assert_eq!(store.collection::<Note>().all().unwrap(), [note(1, "one")]);
    import(&writer, 1, &[item(1, 1, "secret")]).unwrap();
    assert!(restored("c").is_err());
}

#[test]
fn a_store_without_a_log_has_no_position_and_no_status() {
    let store = Store::temporary(schema()).unwrap();
    write(&store, |write| write.put(&note(1, "one"))).unwrap();
    assert_eq!(*store.log_status().borrow(), None);
    assert!(store.collection::<LogPosition>().is_empty());
    assert!(matches!(store.catch_up(), Err(Error::NoLog)));
    assert!(matches!(store.become_writer(), Err(Error::NoLog)));
    assert!(matches!(
        store.attach_log(Arc::new(SimLog::default()), LogKeys::new().unwrap()),
        Err(Error::NoLog)
    ));
    // Nor does a schema without positions need one.
    let other = Store::temporary(Schema::new().with::<Label>()).unwrap();
    write(&other, |write| write.put(&Label { id: 1, text: String::new() })).unwrap();
}

#[test]
fn the_beginning_of_a_log_is_its_own_position() {
    let position = LogPosition::beginning(LOG, 5);
    assert!(position.is_beginning());
    assert!(!LogPosition { sequence: 6, ..position }.is_beginning());
    let text = position.hash.to_string();
    assert_eq!((text.len(), EntryHash::try_from(text)), (64, Ok(position.hash)));
    assert!(EntryHash::try_from("12".to_owned()).is_err());
}

/// Copies a folder with the files of an open store, as a power cut would leave it.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
