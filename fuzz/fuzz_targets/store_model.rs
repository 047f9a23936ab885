//! Random histories of a small store against ordered maps; reopening and compaction are steps of the history.
//!
//! Every three bytes are a step: operation, record, and amount.
#![no_main]

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};
use storage::{CollectionKind, Error, Keys, Record, Schema, Sharing, Store, Table, View};

/// Maximum number of steps; longer histories find nothing more.
const STEPS_MAX: usize = 30;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Note {
    id: u32,
    name: u8,
    step: usize,
}

impl Record for Note {
    const COLLECTION: &'static str = "notes";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", [self.name]);
        keys.plain("half", [self.name / 2]);
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Item {
    id: u32,
    owner: u64,
    step: usize,
}

impl Record for Item {
    const COLLECTION: &'static str = "items";
    const SHARING: Sharing = Sharing::Local;
    const KIND: CollectionKind = CollectionKind::Paged;
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn owner(&self) -> u64 {
        self.owner
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("step", self.step.to_be_bytes());
    }
}

/// The expected contents, and the values seen earlier.
#[derive(Default)]
struct Model {
    notes: BTreeMap<u32, Note>,
    items: BTreeMap<u32, Item>,
    ids: HashSet<u32>,
    step: usize,
    stamps: BTreeMap<u32, (u64, Note)>,
    fingerprints: BTreeMap<u64, (u64, Vec<Item>)>,
}

struct StoreFixture {
    folder: tempfile::TempDir,
    store: Option<Store>,
    table: Option<View<Table<Note>>>,
}

impl StoreFixture {
    fn new() -> Self {
        // In memory if possible, because this target does not test the disk.
        let memory = PathBuf::from("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let mut fixture = Self { folder: folder.expect("a folder"), store: None, table: None };
        fixture.open();
        fixture
    }

    fn open(&mut self) {
        self.store = None;
        let at = self.folder.path();
        let schema = Schema::new().with::<Note>().with::<Item>();
        let store = Store::open(&at.join("store"), &at.join("key"), schema).expect("the store opens");
        self.table = Some(store.table().expect("a table"));
        self.store = Some(store);
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }
}

fn replace(store: &Store, owner: u64, items: &[Item], meanwhile: Option<Note>) -> Result<(), Error> {
    let mut bulk = store.bulk_write::<Item>(owner)?;
    items.iter().try_for_each(|it| bulk.put(it))?;
    if let Some(note) = meanwhile {
        store.write_blocking(move |write| write.put(&note))?;
    }
    bulk.commit(|_, _| Ok(()))
}

impl Model {
    fn apply(&mut self, [operation, record, amount]: [u8; 3], fixture: &mut StoreFixture) {
        self.step += 1;
        let step = self.step;
        let (id, owner, n) = (u32::from(record % 24) + 1, u64::from(record % 3) + 1, u32::from(amount));
        let store = fixture.store();
        match operation % 12 {
            0 | 1 => {
                let note = Note { id, name: amount % 32, step };
                let is_free = self.notes.values().all(|it| it.id == id || it.name != note.name);
                let kept = note.clone();
                let done = store.write_blocking(move |write| write.put(&note));
                assert_eq!(done.is_ok(), is_free, "{done:?}");
                if is_free {
                    self.notes.insert(id, kept);
                }
            }
            2 => {
                let done = store
                    .write_blocking(move |write| write.remove::<Note>(id))
                    .expect("the write is committed");
                assert_eq!(done, self.notes.remove(&id).is_some());
            }
            3 => {
                let items: Vec<_> = (0..=n % 130).map(|at| Item { id: id * 8 + at, owner, step }).collect();
                self.items.extend(items.iter().map(|it| (it.id, it.clone())));
                store
                    .write_blocking(move |write| items.iter().try_for_each(|it| write.put(it)))
                    .expect("the write is committed");
            }
            4 => {
                let id = id * 8 + n;
                let done = store
                    .write_blocking(move |write| write.remove::<Item>(id))
                    .expect("the write is committed");
                assert_eq!(done, self.items.remove(&id).is_some());
            }
            5 => {
                let removed = move |write: &mut storage::Write<'_>| {
                    write.remove_owner::<Item>(owner);
                    Ok::<_, Error>(())
                };
                store.write_blocking(removed).expect("the write is committed");
                self.items.retain(|_, it| it.owner != owner);
            }
            6 | 7 => {
                let ids = (1..=2 * n).filter(|id| self.items.get(id).is_none_or(|it| it.owner == owner));
                let items: Vec<_> = ids.map(|id| Item { id, owner, step }).collect();
                let note = Note { id, name: 200, step };
                let is_free = self.notes.values().all(|it| it.id == id || it.name != note.name);
                let meanwhile = (operation % 2 == 0 && is_free).then(|| note.clone());
                replace(store, owner, &items, meanwhile.clone()).expect("the write is committed");
                self.items.retain(|_, it| it.owner != owner);
                self.items.extend(items.into_iter().map(|it| (it.id, it)));
                self.notes.extend(meanwhile.map(|it| (it.id, it)));
            }
            8 => {
                // Rolled back: a write that fails, and a bulk write that is never committed.
                let refused: Result<(), _> = store.write_blocking(move |write| {
                    write.remove::<Note>(id)?;
                    write.remove_owner::<Item>(owner);
                    write.put(&Item { id, owner, step })?;
                    Err(Error::Closed)
                });
                assert!(refused.is_err());
                let mut bulk = store.bulk_write::<Item>(owner).expect("no other bulk write runs");
                (1..=n)
                    .try_for_each(|id| bulk.put(&Item { id, owner, step }))
                    .expect("the record is accepted");
            }
            9 => {
                let take = |write: &mut storage::Write<'_>| write.next_id::<Note>();
                let id = store.write_blocking(take).expect("there are ids");
                assert!(self.ids.insert(id) && !self.notes.contains_key(&id), "{id} was assigned before");
            }
            10 => store.compact().expect("compaction succeeds"),
            _ => {
                let figures = store.statistics();
                fixture.open();
                let again = fixture.store().statistics();
                assert_eq!((figures.version, figures.live_bytes), (again.version, again.live_bytes));
            }
        }
    }

    fn compare(&mut self, fixture: &StoreFixture) {
        let notes = fixture.store().collection::<Note>();
        assert!(notes.all().expect("the store can be read").iter().eq(self.notes.values()));
        let table = fixture.table.as_ref().expect("the record exists").load();
        assert!(table.iter().map(|it| &**it).eq(self.notes.values()));
        for note in self.notes.values() {
            assert_eq!(table.one_by("name", [note.name]).map(|it| &**it), Some(note));
            let alike = self.notes.values().filter(|it| it.name / 2 == note.name / 2);
            assert!(notes.by("half", [note.name / 2]).expect("the store can be read").iter().eq(alike));
            let stamp = notes.stamp(note.id).expect("the record exists");
            if let Some((before, was)) = self.stamps.insert(note.id, (stamp, note.clone())) {
                assert!(before != stamp || was == *note, "a record changed under its stamp");
            }
        }
        let items = fixture.store().collection::<Item>();
        let mut all = items.all().expect("the store can be read");
        all.sort_by_key(|it| it.id);
        assert!(all.iter().eq(self.items.values()));
        for owner in 1..=3 {
            let own: Vec<_> = all.iter().filter(|it| it.owner == owner).cloned().collect();
            assert_eq!(items.len_of(owner), own.len());
            let fingerprint = items.fingerprint_of(owner);
            if let Some((before, was)) = self.fingerprints.insert(owner, (fingerprint, own.clone())) {
                assert!(before != fingerprint || was == own, "an owner changed under its fingerprint");
            }
        }
        if let Some(item) = all.get(self.step * 7 % all.len().max(1)) {
            let alike = all.iter().filter(|it| it.step == item.step);
            assert!(
                items.by("step", item.step.to_be_bytes()).expect("the store can be read").iter().eq(alike)
            );
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut fixture = StoreFixture::new();
    let mut model = Model::default();
    for step in data.chunks_exact(3).take(STEPS_MAX) {
        model.apply([step[0], step[1], step[2]], &mut fixture);
        model.compare(&fixture);
    }
    fixture.open();
    model.compare(&fixture);
});
