//! Back-ups: what they contain, and what is refused.

use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::secret::Secret;
use flate2::read::MultiGzDecoder;
use storage::backup::{Archive, BackupError, BackupFile, BackupSecret, KeyKind, create_backup};
use storage::{Schema, Store};

use crate::support::{Credential, Item, Note, Place, item, note, put, replace, schema};

/// Saves no file.
fn no_files(_: &str, _: &str, _: &[u8]) -> std::io::Result<()> {
    panic!("the back-up has no files")
}

fn passphrase(text: &str) -> BackupSecret {
    BackupSecret::Passphrase(Secret::new(text))
}

/// Makes a back-up beside the store.
fn back_up(place: &Place, store: &Store, secret: &BackupSecret) -> PathBuf {
    let path = place.folder.path().join("backup.tar.gz");
    create_backup(store, &[], secret, 1_700_000_000_000, &mut File::create(&path).unwrap()).unwrap();
    path
}

/// Restores a back-up to the store of an empty place.
fn restore(path: &Path, secret: &BackupSecret, into: &Place) -> Result<(), BackupError> {
    let archive = Archive::open(path)?.unlock(secret)?;
    archive.restore(&into.store(), &into.key(), &schema(), &mut no_files)
}

/// A store with records of each kind, and with ids that must not be used again.
fn filled(place: &Place) -> Store {
    let store = place.open();
    put(&store, (1..=250).map(|id| note(id, &format!("note {id}")))).unwrap();
    for owner in [1, 7] {
        let first = owner as u32 * 10_000;
        let items: Vec<_> = (0..1_500).map(|at| item(first + at, owner, &format!("item {at}"))).collect();
        replace(&store, owner, &items).unwrap();
    }
    let credential = Credential { id: 3, password: "hunter2".to_owned() };
    store.write_blocking(move |write| write.put(&credential)).unwrap();
    store.write_blocking(|write| write.remove::<Note>(250).map(drop)).unwrap();
    store
}

fn contents(store: &Store) -> (Vec<Note>, Vec<Item>, Vec<Credential>) {
    (store.collection().all().unwrap(), store.collection().all().unwrap(), store.collection().all().unwrap())
}

#[test]
fn a_back_up_restores_every_record_and_no_id_is_used_again() {
    let place = Place::new();
    let store = filled(&place);
    for secret in [passphrase("correct horse"), BackupSecret::from_key_file(&place.key()).unwrap()] {
        let path = back_up(&place, &store, &secret);
        // Another machine, with another key file.
        let other = Place::new();
        restore(&path, &secret, &other).unwrap();
        let restored = other.open();
        assert_eq!(contents(&restored), contents(&store));
        let next = restored.write_blocking(|write| write.next_id::<Note>()).unwrap();
        assert_eq!(next, 251, "the id of a removed record");
        assert!(other.check().is_err(), "the store is in use");
        restored.close();
        drop(restored);
        assert!(other.check().unwrap().is_ok());
    }
}

#[test]
fn a_back_up_is_of_one_commit_although_writes_go_on() {
    let place = Place::new();
    let store = filled(&place);
    let generation = |store: &Store, n: u32| {
        let name = format!("generation {n}");
        store.write_blocking(move |write| {
            // A note that is overwritten, one that comes and goes, and a record of a block.
            write.put(&note(1, &name))?;
            write.remove::<Note>(1_000 + n - 1)?;
            write.put(&note(1_000 + n, &format!("temporary {n}")))?;
            write.put(&item(10_000, 1, &name))?;
            write.put(&item(11_499, 1, &name))
        })
    };
    generation(&store, 1).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, is_over) = (store.clone(), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut n = 1;
            while !is_over.load(Ordering::Relaxed) {
                n += 1;
                generation(&store, n).unwrap();
                if n.is_multiple_of(5) {
                    let items: Vec<_> = (0..300).map(|at| item(70_000 + at, 7, &format!("{n}"))).collect();
                    replace(&store, 7, &items).unwrap();
                }
            }
            n
        })
    };
    let secret = BackupSecret::from_key_file(&place.key()).unwrap();
    let mut names = Vec::new();
    for round in 0..4 {
        if round == 2 {
            store.compact().unwrap();
        }
        let path = back_up(&place, &store, &secret);
        let other = Place::new();
        restore(&path, &secret, &other).unwrap();
        let restored = other.open();
        let name = restored.collection::<Note>().get(1).unwrap().unwrap().name;
        let of_items =
            [10_000, 11_499].map(|id| restored.collection::<Item>().get(id).unwrap().unwrap().name);
        assert_eq!(of_items, [name.clone(), name.clone()]);
        let temporary: Vec<_> =
            restored.collection::<Note>().ids().into_iter().filter(|it| *it > 1_000).collect();
        assert_eq!(temporary.len(), 1);
        assert_eq!(format!("generation {}", temporary[0] - 1_000), name);
        let replaced = restored.collection::<Item>();
        let mut of_one_refresh = Vec::new();
        replaced.for_each_of(7, |it| of_one_refresh.push(it.name)).unwrap();
        of_one_refresh.dedup();
        assert!(of_one_refresh.len() == 1 || of_one_refresh.len() == 1_500, "{}", of_one_refresh.len());
        names.push(name);
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(writer.join().unwrap() > 1);
    store.close();
    drop(store);
    assert!(place.check().unwrap().is_ok());
}

// Holds T-bak.2.
#[test]
fn every_truncation_and_every_changed_byte_is_refused_and_creates_nothing() {
    let place = Place::new();
    let store = place.open();
    put(&store, [note(1, "one"), note(2, "two")]).unwrap();
    let secret = BackupSecret::from_key_file(&place.key()).unwrap();
    let whole = fs::read(back_up(&place, &store, &secret)).unwrap();
    let path = place.folder.path().join("changed.tar.gz");
    let other = Place::new();
    let is_refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let refused = restore(&path, &secret, &other);
        assert!(!other.store().exists());
        refused.err().map(|it| it.to_string())
    };
    for length in 0..whole.len() {
        assert!(is_refused(&whole[..length]).is_some(), "cut to {length} bytes");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(is_refused(&changed).is_some(), "byte {at}");
    }
    let longer = [&whole[..], b"\0"].concat();
    assert_eq!(is_refused(&longer).unwrap(), BackupError::Truncated.to_string());
    for foreign in [&b""[..], b"PK\x03\x04", b"{}", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]] {
        assert_eq!(is_refused(foreign).unwrap(), BackupError::NotABackup.to_string());
    }
    fs::write(&path, &whole).unwrap();
    restore(&path, &secret, &other).unwrap();
}

#[test]
fn another_secret_is_refused_with_the_reason() {
    let (place, other) = (Place::new(), Place::new());
    let store = place.open();
    drop(other.open());
    let (own, foreign) = (
        BackupSecret::from_key_file(&place.key()).unwrap(),
        BackupSecret::from_key_file(&other.key()).unwrap(),
    );
    let path = back_up(&place, &store, &own);
    assert_eq!(Archive::open(&path).unwrap().manifest().key_kind(), KeyKind::KeyFile);
    let unlock = |secret: &BackupSecret| Archive::open(&path).unwrap().unlock(secret).err();
    assert!(matches!(unlock(&foreign), Some(BackupError::WrongKeyFile)));
    assert!(matches!(unlock(&passphrase("a")), Some(BackupError::NeedsKeyFile)));
    assert!(unlock(&own).is_none());

    back_up(&place, &store, &passphrase("a"));
    let unlock = |secret: &BackupSecret| Archive::open(&path).unwrap().unlock(secret).err();
    assert!(matches!(unlock(&passphrase("b")), Some(BackupError::WrongPassphrase)));
    assert!(matches!(unlock(&own), Some(BackupError::NeedsPassphrase)));
    assert!(unlock(&passphrase("a")).is_none());
    assert!(BackupSecret::from_key_file(&place.folder.path().join("none")).is_err());
    assert_eq!(format!("{own:?} {:?}", passphrase("a")), "KeyFile(…) Passphrase(…)");
}

#[test]
fn a_back_up_of_a_later_version_is_refused() {
    let place = Place::new();
    let store = filled(&place);
    let secret = BackupSecret::from_key_file(&place.key()).unwrap();
    let path = back_up(&place, &store, &secret);
    let other = Place::new();
    let older = Schema::new().with::<Note>().with::<Credential>();
    let archive = Archive::open(&path).unwrap().unlock(&secret).unwrap();
    let refused = archive.restore(&other.store(), &other.key(), &older, &mut no_files).unwrap_err();
    assert!(refused.to_string().contains("the collection items"), "{refused}");
    assert!(!other.store().exists());

    // A manifest of a format that has other fields.
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let manifest = b"{\"format\":99,\"program\":\"7.0.0\",\"more\":[]}";
    let mut header = tar::Header::new_gnu();
    header.set_size(manifest.len() as u64);
    tar.append_data(&mut header, "manifest.json", &manifest[..]).unwrap();
    fs::write(&path, tar.into_inner().unwrap().finish().unwrap()).unwrap();
    let refused = Archive::open(&path).err().unwrap().to_string();
    assert!(refused.contains("Headwater 7.0.0") && refused.contains("format 99"), "{refused}");
}

#[test]
fn a_manifest_that_unpacks_to_gigabytes_is_refused_early() {
    let place = Place::new();
    let path = place.folder.path().join("bomb.tar.gz");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut header = tar::Header::new_gnu();
    header.set_path("manifest.json").unwrap();
    header.set_size(1 << 34);
    header.set_cksum();
    gz.write_all(header.as_bytes()).unwrap();
    (0..64).for_each(|_| gz.write_all(&vec![b' '; 1 << 20]).unwrap());
    fs::write(&path, gz.finish().unwrap()).unwrap();
    assert!(matches!(Archive::open(&path), Err(BackupError::NotABackup)));
}

#[test]
fn common_programs_can_read_an_archive_except_for_its_secrets() {
    let place = Place::new();
    let store = filled(&place);
    let file = |name: &str, content: &[u8]| {
        let path = place.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    // Longer than a part.
    let list = b"http://provider.example/user/hunter2/1.ts\n".repeat(200_000);
    let files = [
        BackupFile { folder: "logos", name: "a.png".into(), path: file("a", b"picture"), is_sealed: false },
        BackupFile { folder: "playlists", name: "l.m3u".into(), path: file("b", &list), is_sealed: true },
        BackupFile { folder: "playlists", name: "empty.m3u".into(), path: file("c", b""), is_sealed: true },
    ];
    let (path, secret) = (place.folder.path().join("backup.tar.gz"), passphrase("p"));
    create_backup(&store, &files, &secret, 0, &mut File::create(&path).unwrap()).unwrap();

    let mut text = Vec::new();
    MultiGzDecoder::new(File::open(&path).unwrap()).read_to_end(&mut text).unwrap();
    assert!(!text.windows(7).any(|it| it == b"hunter2"));
    let mut tar = tar::Archive::new(&text[..]);
    let mut members = Vec::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        members.push((name, content));
    }
    let names: Vec<_> = members.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        names,
        [
            "manifest.json",
            "collections/notes/000001.jsonl",
            "collections/items/000001.jsonl",
            "collections/credentials/000001.sealed",
            "files/logos/a.png",
            "files/playlists/l.m3u/000001.sealed",
            "files/playlists/l.m3u/000002.sealed",
            "files/playlists/l.m3u/000003.sealed",
            "files/playlists/empty.m3u/000001.sealed",
            "SHA256SUMS",
        ]
    );
    assert_eq!(String::from_utf8_lossy(&members[1].1).lines().count(), 249);
    let sums = String::from_utf8_lossy(&members[9].1).into_owned();
    assert_eq!(sums.lines().count(), 9);
    assert!(sums.lines().all(|it| it.find("  ") == Some(64)), "{sums}");

    let other = Place::new();
    let mut saved = std::collections::BTreeMap::<String, Vec<u8>>::new();
    let mut save = |folder: &str, name: &str, content: &[u8]| {
        saved.entry(format!("{folder}/{name}")).or_default().extend_from_slice(content);
        Ok(())
    };
    let archive = Archive::open(&path).unwrap().unlock(&secret).unwrap();
    archive.restore(&other.store(), &other.key(), &schema(), &mut save).unwrap();
    assert_eq!(saved["logos/a.png"], b"picture");
    assert!(saved["playlists/l.m3u"] == list && saved["playlists/empty.m3u"].is_empty());
}

#[test]
fn a_restoration_never_writes_into_an_existing_store() {
    let place = Place::new();
    let store = filled(&place);
    let secret = BackupSecret::from_key_file(&place.key()).unwrap();
    let path = back_up(&place, &store, &secret);
    assert!(restore(&path, &secret, &place).is_err());
    assert_eq!(store.collection::<Note>().len(), 249);
}

#[test]
fn back_ups_at_one_time_wait_for_each_other() {
    let place = Place::new();
    let store = filled(&place);
    let secret = BackupSecret::from_key_file(&place.key()).unwrap();
    let path = place.folder.path().join("backup.tar.gz");
    let made = std::thread::scope(|scope| {
        let make = |n: u32| {
            let (store, secret, path) = (store.clone(), secret.clone(), path.with_extension(n.to_string()));
            scope.spawn(move || {
                create_backup(&store, &[], &secret, 0, &mut File::create(path).unwrap()).map(drop)
            })
        };
        [make(1), make(2), make(3)].map(|it| it.join().unwrap())
    });
    assert!(made.iter().all(Result::is_ok), "{made:?}");
}
