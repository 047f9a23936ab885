//! Record types for tests, and a store in a temporary folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use storage::{CheckReport, CollectionKind, Keys, Record, Result, SalvageReport, Schema, Sharing, Store};
use tempfile::TempDir;

/// A single record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) tag: u8,
}

impl Record for Note {
    const COLLECTION: &'static str = "notes";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
        keys.plain("tag", [self.tag]);
    }
}

/// A paged record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: u32,
    pub(crate) owner: u64,
    pub(crate) name: String,
}

impl Record for Item {
    const COLLECTION: &'static str = "items";
    const SHARING: Sharing = Sharing::AllNodes;
    const KIND: CollectionKind = CollectionKind::Paged;

    fn id(&self) -> u32 {
        self.id
    }

    fn owner(&self) -> u64 {
        self.owner
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("name", &self.name);
    }
}

/// An encrypted record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Credential {
    pub(crate) id: u32,
    pub(crate) password: String,
}

impl Record for Credential {
    const COLLECTION: &'static str = "credentials";
    const SHARING: Sharing = Sharing::FullNodes;
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

pub(crate) fn note(id: u32, name: &str) -> Note {
    Note { id, name: name.to_owned(), tag: (id % 3) as u8 }
}

pub(crate) fn item(id: u32, owner: u64, name: &str) -> Item {
    Item { id, owner, name: name.to_owned() }
}

pub(crate) fn schema() -> Schema {
    Schema::new().with::<Note>().with::<Item>().with::<Credential>()
}

/// The folder of a store; removed on drop.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Store> {
        Store::open(&self.store(), &self.key(), schema())
    }

    pub(crate) fn check(&self) -> Result<CheckReport> {
        storage::check(&self.store(), &self.key(), &schema())
    }

    pub(crate) fn salvage(&self, into: &Path) -> Result<SalvageReport> {
        storage::salvage(&self.store(), into, &self.key(), &schema())
    }

    /// Returns the path of the database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.store().join("db-000001").join("db")
    }
}

/// Puts notes in one write.
pub(crate) fn put(store: &Store, notes: impl IntoIterator<Item = Note>) -> Result<()> {
    let notes: Vec<_> = notes.into_iter().collect();
    store.write_blocking(move |write| notes.iter().try_for_each(|it| write.put(it)))
}

/// Replaces the items of an owner.
pub(crate) fn replace(store: &Store, owner: u64, items: &[Item]) -> Result<()> {
    let mut bulk = store.bulk_write::<Item>(owner)?;
    for item in items {
        bulk.put(item)?;
    }
    bulk.commit(|_, _| Ok(()))
}
