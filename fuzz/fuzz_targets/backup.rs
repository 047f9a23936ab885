//! Archives of back-ups: nothing panics, an archive with any other byte is refused, and a hostile one that was made with
//! the right key restores nothing but what its manifest says.
#![no_main]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use domain::secret::Secret;
use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};
use storage::backup::{Archive, BackupError, BackupSecret, Manifest, UnlockedArchive, create_backup};
use storage::{CollectionKind, Record, Schema, Sharing, Store};
use tempfile::TempDir;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    id: u32,
    text: String,
}

impl Record for Note {
    const COLLECTION: &'static str = "notes";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Item {
    id: u32,
    owner: u64,
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
}

fn schema() -> Schema {
    Schema::new().with::<Note>().with::<Item>()
}

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    /// Bytes of a genuine archive that are changed, and its new length.
    Changed { length: u16, changes: Vec<(u16, u8)> },
    /// Any file.
    Bytes(&'a [u8]),
    /// The members of an archive with a valid authentication code, and the numbers of records in its manifest.
    Members { n_records: [u8; 2], members: Vec<(Name<'a>, &'a [u8])> },
}

#[derive(Debug, Arbitrary)]
enum Name<'a> {
    Notes(u8),
    Items(u8),
    SealedItems(u8),
    File(&'a str),
    Other(&'a str),
}

impl Name<'_> {
    fn text(&self) -> String {
        match self {
            Self::Notes(part) => format!("collections/notes/{part:06}.jsonl"),
            Self::Items(part) => format!("collections/items/{part:06}.jsonl"),
            Self::SealedItems(part) => format!("collections/items/{part:06}.sealed"),
            Self::File(name) => format!("files/logos/{name}"),
            Self::Other(name) => (*name).to_owned(),
        }
    }
}

/// A genuine archive.
struct Genuine {
    folder: TempDir,
    bytes: Vec<u8>,
    manifest: Manifest,
    secret: BackupSecret,
}

static GENUINE: LazyLock<Genuine> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::temporary(schema()).expect("a store");
    store
        .write_blocking(|write| {
            write.put(&Note { id: 1, text: "one".to_owned() })?;
            (1..4).try_for_each(|id| write.put(&Item { id, owner: 2 }))
        })
        .expect("a write");
    let secret = BackupSecret::KeyFile(Secret::new("a key"));
    let path = folder.path().join("genuine");
    let mut file = File::create_new(&path).expect("a file");
    let manifest = create_backup(&store, &[], &secret, 0, &mut file).expect("a back-up");
    Genuine { bytes: fs::read(&path).expect("a file"), folder, manifest, secret }
});

fn unlock(path: &Path) -> Result<UnlockedArchive, BackupError> {
    Archive::open(path)?.unlock(&GENUINE.secret)
}

fn file_of(bytes: &[u8]) -> PathBuf {
    let path = GENUINE.folder.path().join("archive");
    fs::write(&path, bytes).expect("a file");
    path
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Changed { length, changes } => {
            let mut bytes = GENUINE.bytes.clone();
            bytes.truncate(usize::from(length).max(1));
            let n = bytes.len();
            changes.iter().for_each(|(at, value)| bytes[usize::from(*at) % n] ^= value);
            let is_genuine = bytes == GENUINE.bytes;
            assert_eq!(unlock(&file_of(&bytes)).is_ok(), is_genuine);
        }
        Input::Bytes(bytes) => assert!(unlock(&file_of(bytes)).is_err()),
        Input::Members { n_records, members } => {
            let mut manifest = GENUINE.manifest.clone();
            for (collection, n) in manifest.collections.iter_mut().zip(n_records) {
                collection.records = n.into();
            }
            let members: Vec<_> = members.iter().map(|(name, bytes)| (name.text(), bytes.to_vec())).collect();
            let path = GENUINE.folder.path().join("hostile");
            let mut file = File::create(&path).expect("a file");
            let written = storage::fuzzing::write_members(manifest, &members, &GENUINE.secret, &mut file);
            // Some names are invalid for members.
            if written.is_err() {
                return;
            }
            let archive = unlock(&path).expect("the archive is authenticated");
            let (into, key) = (GENUINE.folder.path().join("store"), GENUINE.folder.path().join("key"));
            let mut save = |folder: &str, name: &str, _: &[u8]| {
                assert!(!folder.contains('/') && !name.contains('/'));
                Ok(())
            };
            match archive.restore(&into, &key, &schema(), &mut save) {
                Ok(()) => {
                    let store = Store::open(&into, &key, schema()).expect("a restored store opens");
                    let found = [store.collection::<Note>().len(), store.collection::<Item>().len()];
                    assert_eq!(found, n_records.map(usize::from));
                    drop(store);
                    fs::remove_dir_all(&into).expect("the folder exists");
                }
                Err(_) => assert!(!into.exists()),
            }
            let _ = fs::remove_file(&key);
        }
    }
});
