//! Checking, salvaging and opening stores with damaged records.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::engine::block::Block;
use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::{Disk, Slice};
use crate::engine::folder::database_folder;
use crate::engine::value::{DiskKey, Value};
use crate::engine::vault::Vault;
use crate::error::Error;
use crate::record::{CollectionKind, Keys, Record, Schema, Sharing};
use crate::recovery::damage::Damage;
use crate::recovery::inspect::{RecordInspector, collection_of};
use crate::recovery::scan::ScannedValues;
use crate::store::Store;

#[derive(Serialize, Deserialize)]
struct Note {
    id: u32,
}

impl Record for Note {
    const COLLECTION: &'static str = "notes";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

/// A record type without which the store opens.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Logo {
    id: u32,
    name: String,
}

impl Record for Logo {
    const COLLECTION: &'static str = "logos";
    const SHARING: Sharing = Sharing::Local;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}

fn logo(id: u32) -> Logo {
    Logo { id, name: format!("logo {id}") }
}

#[derive(Serialize, Deserialize)]
struct Item {
    id: u32,
}

impl Record for Item {
    const COLLECTION: &'static str = "items";
    const SHARING: Sharing = Sharing::Local;
    const KIND: CollectionKind = CollectionKind::Paged;
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

fn schema() -> Schema {
    Schema::new().with::<Note>().with::<Logo>().with::<Item>()
}

/// Creates a store with 50 notes, 40 logos and 250 items, and damages its database.
fn damaged_store(damage: impl FnOnce(&Disk, &Vault)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let store = Store::open(&at, &key, schema()).unwrap();
    store
        .write_blocking(|write| {
            (1..=50).try_for_each(|id| write.put(&Note { id }))?;
            (1..=40).try_for_each(|id| write.put(&logo(id)))?;
            (1..=250).try_for_each(|id| write.put(&Item { id }))
        })
        .unwrap();
    drop(store);
    let disk = Disk::open(&database_folder(&at, 1)).unwrap();
    damage(&disk, &Vault::open(&key, false).unwrap());
    disk.sync().unwrap();
    folder
}

/// Flips a bit in the middle of each snapshot of a database.
fn damage_snapshots(database: &Path) -> usize {
    let paths = std::fs::read_dir(database).unwrap().map(|it| it.unwrap().path());
    let is_snapshot =
        |it: &std::path::PathBuf| it.file_name().unwrap().to_str().unwrap().starts_with("snap.");
    let snapshots: Vec<_> = paths.filter(is_snapshot).collect();
    for path in &snapshots {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    snapshots.len()
}

// The whole store was refused, although its records were there without that file.
#[test]
fn a_store_with_a_damaged_snapshot_opens_without_it_if_nothing_is_missing() {
    let folder = damaged_store(|_, _| {});
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    // Each start writes a snapshot.
    drop(Store::open(&at, &key, schema()).unwrap());
    let generation = CommitFile::open(&at).unwrap().unwrap().1.generation;
    assert!(damage_snapshots(&database_folder(&at, generation)) > 0);
    for _ in 0..2 {
        let store = Store::open(&at, &key, schema()).unwrap();
        let counts = (
            store.collection::<Note>().all().unwrap().len(),
            store.collection::<Logo>().all().unwrap().len(),
            store.collection::<Item>().all().unwrap().len(),
        );
        assert_eq!(counts, (50, 40, 250));
        store.write_blocking(|write| write.put(&Note { id: 50 })).unwrap();
        drop(store);
        assert!(at.join("damaged-snapshot").exists());
    }
}

#[test]
fn a_store_with_a_damaged_snapshot_that_lacks_a_record_is_refused_as_before() {
    let folder = damaged_store(|_, _| {});
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    drop(Store::open(&at, &key, schema()).unwrap());
    let generation = CommitFile::open(&at).unwrap().unwrap().1.generation;
    let database = database_folder(&at, generation);
    let disk = Disk::open(&database).unwrap();
    let (note, _) = found(&disk, b"r", 60);
    let mut slice = Slice::default();
    slice.remove(note);
    disk.apply(slice).unwrap();
    disk.sync().unwrap();
    drop(disk);
    assert!(damage_snapshots(&database) > 0);
    let refused = Store::open(&at, &key, schema()).err().unwrap();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    assert!(database.join("db").exists(), "the original is still there");
}

fn found(disk: &Disk, letter: &[u8], n: usize) -> (Vec<u8>, Vec<u8>) {
    disk.scan(letter).nth(n).unwrap().unwrap()
}

fn put(disk: &Disk, key: Vec<u8>, bytes: Vec<u8>) {
    let mut slice = Slice::default();
    slice.put(key, bytes);
    disk.apply(slice).unwrap();
}

/// Checks and salvages the store. Returns the reported damage, and the number of salvaged notes and items.
#[track_caller]
fn check_and_salvage(folder: &Path) -> (Vec<String>, usize, usize) {
    let (at, key, into) = (folder.join("store"), folder.join("key"), folder.join("salvaged"));
    assert!(matches!(Store::open(&at, &key, schema()), Err(Error::Damaged { .. })));
    let report = crate::check(&at, &key, &schema()).unwrap();
    assert!(!report.is_ok());
    let salvaged = crate::salvage(&at, &into, &key, &schema()).unwrap();
    assert_eq!(salvaged.damage.n, report.damage.n);
    assert!(report.to_string().contains(&report.damage.to_string()));
    let store = Store::open(&into, &key, schema()).unwrap();
    let reported = report.damage.named.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
    let (notes, items) = (store.collection::<Note>(), store.collection::<Item>());
    assert_eq!((notes.all().unwrap().len(), items.all().unwrap().len()), (notes.len(), items.len()));
    (reported, notes.len(), items.len())
}

#[test]
fn a_record_with_changed_bytes_is_reported_and_the_others_are_salvaged() {
    let folder = damaged_store(|disk, _| {
        let (key, mut bytes) = found(disk, b"rnotes", 6);
        *bytes.last_mut().unwrap() ^= 1;
        put(disk, key, bytes);
    });
    let (reported, notes, items) = check_and_salvage(folder.path());
    assert_eq!(reported, ["record 7 of notes: wrong checksum"]);
    assert_eq!((notes, items), (49, 250));
}

#[test]
fn a_record_that_cannot_be_decoded_is_reported_and_the_others_are_salvaged() {
    let folder = damaged_store(|disk, _| {
        let (key, bytes) = found(disk, b"rnotes", 6);
        let value = Value { payload: vec![1, 0xc1], ..Value::decode_at(&key, &bytes).unwrap() };
        put(disk, key, value.encode());
    });
    let (reported, notes, items) = check_and_salvage(folder.path());
    assert!(reported[0].starts_with("record 7 of notes: notes cannot be decoded"), "{reported:?}");
    assert_eq!((reported.len(), notes, items), (1, 49, 250));
}

#[test]
fn records_that_do_not_read_in_a_sealed_block_are_named_and_the_rest_of_it_is_saved() {
    let folder = damaged_store(|disk, vault| {
        let (key, bytes) = found(disk, b"p", 1);
        let mut value = Value::decode_at(&key, &bytes).unwrap();
        let stem = DiskKey::parse(&key).unwrap().stem();
        let mut block = Block::decode(&vault.unseal(&stem, &value.payload).unwrap()).unwrap();
        block.records[3].1 = vec![1, 0xc1];
        block.records[9].1 = vec![];
        value.payload = vault.seal(&stem, &block.encode()).unwrap();
        put(disk, key, value.encode());
    });
    let (reported, notes, items) = check_and_salvage(folder.path());
    assert!(reported[0].starts_with("record 104 of items: items cannot be decoded"), "{reported:?}");
    assert_eq!(reported[1], "record 110 of items: items is empty");
    assert_eq!((reported.len(), notes, items), (2, 50, 248));
}

#[test]
fn a_search_of_the_file_finds_committed_records_and_no_uncommitted_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let store = Store::open(&at, &key, schema()).unwrap();
    let bulk = |store: &Store, ids: RangeInclusive<u32>| {
        let mut bulk = store.bulk_write::<Item>(0).unwrap();
        ids.for_each(|id| bulk.put(&Item { id }).unwrap());
        bulk
    };
    bulk(&store, 1..=2_500).commit(|_, _| Ok::<_, Error>(())).unwrap();
    store.write_blocking(|write| (1..=300).try_for_each(|id| write.put(&logo(id)))).unwrap();
    drop(bulk(&store, 5_000..=9_000));
    // Not complete when the files are copied.
    let unfinished = bulk(&store, 10_000..=13_000);
    store.close();
    let mut read = ScannedValues::default();
    read.search(&database_folder(&at, 1)).unwrap();
    drop(unfinished);
    let vault = Vault::open(&key, false).unwrap();
    let schema = schema();
    let inspector = RecordInspector { schema: &schema, vault: &vault };
    let mut damage = Damage::default();
    let mut found = BTreeMap::new();
    for (disk_key, value) in read.current() {
        if let (Some(name), Some((_, n))) = (
            collection_of(&disk_key).map(str::to_owned),
            inspector.readable_part(&disk_key, value, &mut damage),
        ) {
            *found.entry(name).or_insert(0) += n;
        }
    }
    assert_eq!(damage.n, 0);
    assert_eq!(found, BTreeMap::from([("items".to_owned(), 2_500), ("logos".to_owned(), 300)]));
}

/// Flips the last bit of logos, so that their checksums are wrong.
fn flip(disk: &Disk, logos: Range<usize>) {
    for n in logos {
        let (key, mut bytes) = found(disk, b"rlogos", n);
        *bytes.last_mut().unwrap() ^= 1;
        put(disk, key, bytes);
    }
}

#[test]
fn one_damaged_record_that_may_be_missed_is_set_aside_and_the_store_opens() {
    // The last record, whose id only the set-aside copy still reserves, and one with a correct checksum that cannot be
    // decoded.
    let folder = damaged_store(|disk, _| {
        flip(disk, 39..40);
        let (key, bytes) = found(disk, b"rlogos", 4);
        let value = Value { payload: vec![1, 0xc1], ..Value::decode_at(&key, &bytes).unwrap() };
        put(disk, key, value.encode());
        let mut slice = Slice::default();
        slice.remove(DiskKey::Counter("logos".to_owned()).encode());
        disk.apply(slice).unwrap();
    });
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    assert_eq!(crate::check(&at, &key, &schema()).unwrap().damage.n, 2);
    let aside = ["record 5 of logos", "record 40 of logos"];
    // Opened twice before the first write, and compacted.
    for is_compacted in [false, true] {
        let store = Store::open(&at, &key, schema()).unwrap();
        assert_eq!(store.set_aside(), aside);
        let logos = store.collection::<Logo>();
        assert_eq!((logos.len(), logos.get(5).unwrap(), logos.get(40).unwrap()), (38, None, None));
        assert_eq!(logos.all().unwrap().len(), 38);
        assert_eq!(store.collection::<Note>().len(), 50);
        if is_compacted {
            store.compact().unwrap();
        }
        drop(store);
        let report = crate::check(&at, &key, &schema()).unwrap();
        assert!(report.is_ok(), "{report}");
        assert!(report.to_string().contains("\n  set aside: record 5 of logos\n"), "{report}");
    }
    let store = Store::open(&at, &key, schema()).unwrap();
    let id = store.write_blocking(|write| write.next_id::<Logo>()).unwrap();
    assert_eq!(id, 41, "an id was given twice");
    // It can be restored from a back-up under its own id.
    store.write_blocking(|write| write.put(&logo(5))).unwrap();
    drop(store);
    let store = Store::open(&at, &key, schema()).unwrap();
    assert_eq!(store.collection::<Logo>().get(5).unwrap(), Some(logo(5)));
    assert_eq!(store.set_aside(), aside[1..]);
    drop(store);
    assert!(crate::check(&at, &key, &schema()).unwrap().is_ok());
}

#[test]
fn an_older_value_never_replaces_a_damaged_record() {
    let folder = damaged_store(|disk, _| {
        // As after a large write: the new version exists beside the old one, which is not swept yet.
        let (key, bytes) = found(disk, b"rlogos", 4);
        let Some(DiskKey::Single { collection, id, version }) = DiskKey::parse(&key) else {
            panic!("a logo")
        };
        let disk_key = DiskKey::Single { collection, id, version: version + 1 };
        let newer = Value { key: disk_key.encode(), ..Value::decode_at(&key, &bytes).unwrap() };
        let mut bytes = newer.encode();
        *bytes.last_mut().unwrap() ^= 1;
        put(disk, disk_key.encode(), bytes);
    });
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    for _ in 0..2 {
        let store = Store::open(&at, &key, schema()).unwrap();
        assert_eq!(store.collection::<Logo>().get(5).unwrap(), None);
        assert_eq!(store.set_aside(), ["record 5 of logos"]);
    }
}

#[test]
fn a_store_with_many_damaged_records_does_not_open() {
    let folder = damaged_store(|disk, _| flip(disk, 0..17));
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let refused = Store::open(&at, &key, schema()).err().unwrap();
    assert!(
        refused.to_string().contains("17 records are damaged, for example record 1 of logos"),
        "{refused}"
    );
    let disk = Disk::open(&database_folder(&at, 1)).unwrap();
    assert_eq!(disk.scan(b"a").count(), 0, "records were set aside");
}

// Holds T-store.2.
#[test]
fn a_value_that_was_replaced_or_removed_later_is_noticed() {
    type Change = fn(&mut crate::Write<'_>) -> crate::Result<()>;
    // A change, and the value that it replaces: a record, a removed record, a block, an id counter.
    let changes: [(Change, &[u8]); 4] = [
        (|write| write.put(&Logo { name: "new name".to_owned(), ..logo(7) }), b"rlogos"),
        (
            |write| {
                write.remove::<Note>(7)?;
                write.put(&Note { id: 51 })
            },
            b"rnotes",
        ),
        (
            |write| {
                write.remove::<Item>(250)?;
                write.put(&Item { id: 251 })
            },
            b"p",
        ),
        (|write| write.next_id::<Item>().map(drop), b"citems"),
    ];
    for (change, letters) in changes {
        let folder = damaged_store(|_, _| ());
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        let all = |disk: &Disk| disk.scan(letters).map(Result::unwrap).collect::<Vec<_>>();
        let before = all(&Disk::open(&database_folder(&at, 1)).unwrap());
        Store::open(&at, &key, schema()).unwrap().write_blocking(change).unwrap();
        let generation = CommitFile::open(&at).unwrap().unwrap().1.generation;
        let disk = Disk::open(&database_folder(&at, generation)).unwrap();
        let after = all(&disk);
        let lost = before.into_iter().find(|it| !after.contains(it)).unwrap();
        if letters == b"rnotes" {
            // Its place is taken by no other record, so that the number of records is right.
            let mut slice = Slice::default();
            slice.remove(DiskKey::Single { collection: "notes".to_owned(), id: 51, version: 0 }.encode());
            disk.apply(slice).unwrap();
        }
        put(&disk, lost.0, lost.1);
        disk.sync().unwrap();
        drop(disk);
        let refused = Store::open(&at, &key, schema()).err().unwrap().to_string();
        assert!(refused.contains("has a record that was replaced later"), "{refused}");
        let report = crate::check(&at, &key, &schema()).unwrap();
        let problems = report.problems.join("; ");
        assert!(problems.contains("has a record that was replaced later"), "{report}");
    }
}

#[test]
fn a_search_of_the_file_joins_the_pieces_of_long_records() {
    let folder = tempfile::tempdir().unwrap();
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let store = Store::open(&at, &key, schema()).unwrap();
    let long = |id: u32, letter: &str| Logo { id, name: format!("{id} {}", letter.repeat(100_000)) };
    for letter in ["a", "b"] {
        store.write_blocking(move |write| (1..=5).try_for_each(|id| write.put(&long(id, letter)))).unwrap();
    }
    drop(store);
    let mut read = ScannedValues::default();
    read.search(&database_folder(&at, 1)).unwrap();
    let of = |id: u32| DiskKey::Single { collection: "logos".to_owned(), id, version: 0 }.encode();
    for id in 1..=5 {
        let logo: Logo = crate::decode(&read.values[&of(id)].payload).unwrap();
        assert_eq!(logo, long(id, "b"));
    }
    assert!(read.values.keys().all(|key| !matches!(DiskKey::parse(key), Some(DiskKey::Piece { .. }))));
}

/// The record type of an earlier version, and the same now.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PlainProfile {
    id: u32,
    parameters: String,
}

impl Record for PlainProfile {
    const COLLECTION: &'static str = "profiles";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct SealedProfile {
    id: u32,
    parameters: String,
}

impl Record for SealedProfile {
    const COLLECTION: &'static str = "profiles";
    const SHARING: Sharing = Sharing::Local;
    const SEALED: bool = true;
    const WAS_PLAIN: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

#[test]
fn records_that_were_not_encrypted_are_encrypted_when_the_store_opens_and_leave_no_trace() {
    const SECRET: &str = "-headers 'Authorization: hunter2'";
    let folder = tempfile::tempdir().unwrap();
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let store = Store::open(&at, &key, Schema::new().with::<PlainProfile>()).unwrap();
    let plain = |id: u32| PlainProfile { id, parameters: SECRET.to_owned() };
    store.write_blocking(move |write| (1..=3).try_for_each(|id| write.put(&plain(id)))).unwrap();
    drop(store);
    let has_secret = || {
        let folders = crate::engine::folder::database_folders(&at).unwrap();
        let bytes = std::fs::read(folders[0].join("db")).unwrap();
        bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes())
    };
    assert!(has_secret());
    let now = || Schema::new().with::<SealedProfile>();
    assert!(crate::check(&at, &key, &now()).unwrap().is_ok());
    for _ in 0..2 {
        let store = Store::open(&at, &key, now()).unwrap();
        let all = store.collection::<SealedProfile>().all().unwrap();
        assert_eq!(all, [1, 2, 3].map(|id| SealedProfile { id, parameters: SECRET.to_owned() }));
        drop(store);
        assert!(!has_secret());
    }
    assert!(crate::check(&at, &key, &now()).unwrap().is_ok());
}

/// Records that are fetched again, except those of one owner.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Fetched {
    id: u32,
    owner: u64,
}

impl Record for Fetched {
    const COLLECTION: &'static str = "fetched";
    const SHARING: Sharing = Sharing::Local;
    const KIND: CollectionKind = CollectionKind::Paged;
    const SEALED: bool = true;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn owner(&self) -> u64 {
        self.owner
    }

    fn may_be_missed(owner: u64) -> bool {
        owner != 1
    }
}

/// Creates a store with 250 records of two owners each, and damages a block.
fn with_damaged_block(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let store = Store::open(&at, &key, Schema::new().with::<Fetched>()).unwrap();
    (1..=2).for_each(|owner| fetch(&store, owner, 0));
    drop(store);
    let disk = Disk::open(&database_folder(&at, 1)).unwrap();
    let (key, mut bytes) = found(&disk, b"pfetched", n);
    *bytes.last_mut().unwrap() ^= 1;
    put(&disk, key, bytes);
    disk.sync().unwrap();
    folder
}

fn fetch(store: &Store, owner: u64, after: u32) {
    let mut bulk = store.bulk_write::<Fetched>(owner).unwrap();
    let first = owner as u32 * 10_000 + after;
    (1..=250).try_for_each(|id| bulk.put(&Fetched { id: first + id, owner })).unwrap();
    bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
}

#[test]
fn a_damaged_block_that_can_be_fetched_again_is_set_aside_until_it_was() {
    // The third block of the first owner, and the second one of the second owner.
    let refused = with_damaged_block(2);
    let open = |folder: &Path| {
        Store::open(&folder.join("store"), &folder.join("key"), Schema::new().with::<Fetched>())
    };
    assert!(matches!(open(refused.path()), Err(Error::Damaged { .. })));
    for is_small in [false, true] {
        let folder = with_damaged_block(4);
        for _ in 0..2 {
            let store = open(folder.path()).unwrap();
            assert_eq!(store.set_aside(), ["block 1 of fetched of owner 2"]);
            assert_eq!(store.statistics().n_set_aside, 1);
            let records = store.collection::<Fetched>();
            assert_eq!((records.len_of(1), records.len_of(2), records.all().unwrap().len()), (250, 150, 400));
            // Ordinary changes go on.
            store.write_blocking(|write| write.put(&Fetched { id: 20_001, owner: 2 })).unwrap();
        }
        let report = crate::check(
            &folder.path().join("store"),
            &folder.path().join("key"),
            &Schema::new().with::<Fetched>(),
        );
        assert!(report.unwrap().is_ok());
        let store = open(folder.path()).unwrap();
        match is_small {
            true => store
                .write_blocking(|write| {
                    (20_101..=20_200).try_for_each(|id| write.put(&Fetched { id, owner: 2 }))?;
                    write.mark_complete::<Fetched>(2);
                    Ok::<_, Error>(())
                })
                .unwrap(),
            false => fetch(&store, 2, 1_000),
        }
        assert!(store.set_aside().is_empty());
        drop(store);
        let store = open(folder.path()).unwrap();
        assert!(store.set_aside().is_empty());
        assert_eq!(store.collection::<Fetched>().len_of(2), 250);
    }
}

// Holds T-store.4.
#[test]
fn a_store_of_a_later_program_is_refused_as_such_if_something_in_it_is_unknown() {
    let folder = damaged_store(|_, _| ());
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let written_by = |program: &str| {
        let (mut file, mark) = CommitFile::open(&at).unwrap().unwrap();
        file.write(&CommitMark { program: program.to_owned(), ..mark }).unwrap();
    };
    let without_notes = || Schema::new().with::<Logo>().with::<Item>();
    let refused = || Store::open(&at, &key, without_notes()).err().unwrap();
    assert!(matches!(refused(), Error::Damaged { .. }));
    written_by("99.2.0");
    let error = refused().to_string();
    assert!(error.contains("Headwater 99.2.0 wrote the store, with the collection \"notes\""), "{error}");
    assert!(matches!(crate::check(&at, &key, &without_notes()), Err(Error::NewerProgram { .. })));

    // A record of a later version.
    let generation = CommitFile::open(&at).unwrap().unwrap().1.generation;
    let disk = Disk::open(&database_folder(&at, generation)).unwrap();
    let (name, bytes) = found(&disk, b"rlogos", 3);
    let mut value = Value::decode_at(&name, &bytes).unwrap();
    value.payload[0] = 200;
    put(&disk, name.clone(), value.encode());
    disk.sync().unwrap();
    drop(disk);
    let error = Store::open(&at, &key, schema()).err().unwrap().to_string();
    assert!(error.contains("Headwater 99.2.0 wrote the store, with records of version 200"), "{error}");

    // A later program whose store has nothing that is unknown.
    let disk = Disk::open(&database_folder(&at, generation)).unwrap();
    put(&disk, name, bytes);
    disk.sync().unwrap();
    drop(disk);
    assert_eq!(Store::open(&at, &key, schema()).unwrap().collection::<Logo>().len(), 40);
}
