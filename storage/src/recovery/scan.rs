//! What lies on the disk, read with more patience than a store that opens has: by [`check`](crate::check()) and
//! [`salvage`](crate::salvage()).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::engine::block::Block;
use crate::engine::commit_file::{self, CommitFile, CommitMark};
use crate::engine::disk::Disk;
use crate::engine::value::{MAGIC, Place, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::record::{Noun, Schema};
use crate::recovery::damage::Damage;
use crate::recovery::format::{FORMATS, refuse_newer};
use crate::recovery::load::shown;
use crate::write::start::{database, databases, lock};

/// The folder of a copy to read.
pub(crate) const COPY: &str = "copy-to-read";

/// What lies in the folder of a store.
pub(crate) struct Found {
    pub(crate) database: Option<PathBuf>,
    pub(crate) mark: Option<CommitMark>,
    pub(crate) commit: Option<u64>,
    /// Held until this is dropped.
    _lock: File,
}

/// Looks for a store and takes it for itself. Refuses where there is none, and makes nothing there.
pub(crate) fn find(folder: &Path, problems: &mut Vec<String>) -> Result<Found> {
    let is_there =
        folder.join(commit_file::FILE).exists() || databases(folder).is_ok_and(|it| !it.is_empty());
    if !is_there {
        return Err(Error::NoStore(folder.to_owned()));
    }
    let lock = lock(folder)?;
    let mark = match CommitFile::open(folder) {
        Ok(Some((_, mark))) => {
            refuse_newer(&mark, &FORMATS)?;
            Some(mark)
        }
        Ok(None) => {
            problems.push("the commit file is missing".to_owned());
            None
        }
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    };
    let mut there = databases(folder)?;
    there.sort();
    let named = mark.as_ref().map(|it| database(folder, it.generation));
    let database = match named {
        Some(named) if named.join("db").exists() => Some(named),
        Some(named) => {
            problems.push(format!("the database {} is missing", named.display()));
            there.pop()
        }
        None => there.pop(),
    };
    Ok(Found { database, commit: mark.as_ref().map(|it| it.commit), mark, _lock: lock })
}

/// A copy of a database: sled writes when it opens, and what is damaged must not get worse.
pub(crate) struct ReadCopy {
    pub(crate) folder: PathBuf,
}

impl ReadCopy {
    pub(crate) fn of(database: &Path, beside: &Path) -> Result<Self> {
        let folder = beside.join(COPY);
        crate::write::start::remove_folder(&folder)?;
        copy_folder(database, &folder).map_err(|error| Error::disk("copy the database", error))?;
        Ok(Self { folder })
    }
}

impl Drop for ReadCopy {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// Whole values by key.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) values: HashMap<Vec<u8>, Value>,
}

impl Values {
    /// Reads through sled. False if that was not possible to the end.
    pub(crate) fn open(&mut self, database: &Path, problems: &mut Vec<String>, damage: &mut Damage) -> bool {
        let disk = match Disk::open(database) {
            Ok(disk) => disk,
            Err(error) => {
                problems.push(error.to_string());
                return false;
            }
        };
        for item in disk.scan(b"") {
            let (key, bytes) = match item {
                Ok(item) => item,
                Err(error) => {
                    problems.push(error.to_string());
                    return false;
                }
            };
            let Some(place) = Place::parse(&key) else {
                problems.push("it has a key that this version does not know".to_owned());
                continue;
            };
            match Value::of_key(&key, &bytes) {
                Ok(value) => drop(self.values.insert(key, value)),
                Err(error) => damage.add(shown(&place), &error),
            }
        }
        true
    }

    /// Looks for whole values anywhere in the files. Of several under one key the newest counts.
    pub(crate) fn search(&mut self, database: &Path) -> Result<()> {
        let mut files = vec![database.join("db")];
        files
            .extend(fs::read_dir(database.join("blobs")).into_iter().flatten().flatten().map(|it| it.path()));
        for file in files {
            let Ok(bytes) = fs::read(&file) else { continue };
            for at in 0..bytes.len().saturating_sub(MAGIC.len()) {
                if bytes[at..].starts_with(&MAGIC)
                    && let Ok(value) = Value::decode(&bytes[at..])
                    && Place::parse(&value.key).is_some()
                {
                    let is_newer = self.values.get(&value.key).is_none_or(|it| it.commit < value.commit);
                    if is_newer {
                        self.values.insert(value.key.clone(), value);
                    }
                }
            }
        }
        Ok(())
    }

    /// What counts: of each thing the highest version that was not staged only and is not gone. No marks, no meta.
    pub(crate) fn current(&self) -> Vec<(Place, Value)> {
        let places = || self.values.iter().filter_map(|(key, value)| Some((Place::parse(key)?, value)));
        let stages: HashSet<u64> = places()
            .filter(|(_, value)| !value.is_gone)
            .filter_map(|(place, _)| if let Place::Stage(number) = place { Some(number) } else { None })
            .collect();
        let mut newest: BTreeMap<Vec<u8>, (Place, &Value)> = BTreeMap::new();
        for (place, value) in places() {
            let counts =
                !matches!(place, Place::Stage(_) | Place::Meta) && !stages.contains(&place.version());
            let stem = place.stem();
            if counts && newest.get(&stem).is_none_or(|it| it.0.version() < place.version()) {
                newest.insert(stem, (place, value));
            }
        }
        newest.into_values().filter(|it| !it.1.is_gone).map(|(place, value)| (place, value.clone())).collect()
    }
}

/// Looks into values as the store does that opens.
pub(crate) struct Inspector<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) vault: &'a Vault,
}

impl Inspector<'_> {
    /// Refuses a key file that is not the one of this store. Nothing is said where the proof is lost.
    pub(crate) fn refuse_other_key(&self, read: &Values) -> Result<()> {
        let meta = read.values.get(&Place::Meta.key());
        let Some((_, proof)) = meta.and_then(|it| it.payload.split_first()) else { return Ok(()) };
        self.vault.unseal_bytes(b"meta", proof).map(drop)
    }

    /// What of a value reads, and how many records that is. A block may lose some; the rest of it is kept.
    pub(crate) fn keep(&self, place: &Place, mut value: Value, damage: &mut Damage) -> Option<(Value, u64)> {
        let Some((noun, collection)) = self.noun(place) else {
            return matches!(place, Place::Counter(_)).then_some((value, 0));
        };
        let kept = match self.plain(noun, place, &value) {
            Err(error) => Err(error),
            Ok(bytes) => match place {
                Place::Block { .. } => Block::decode(&bytes).and_then(|mut block| {
                    let before = block.records.len();
                    block.records.retain(|(id, bytes)| {
                        let read = (noun.read)(bytes);
                        let is_fine = read.as_ref().is_ok_and(|it| it.0 == *id);
                        if !is_fine {
                            let other = |_| Error::DamagedRecord("it says that it is another".to_owned());
                            let why = read.map_or_else(|error| error, other);
                            damage.add(format!("record {id} of {collection}"), &why);
                        }
                        is_fine
                    });
                    if block.records.len() < before {
                        value.payload = self.sealed(noun, place, block.encode())?;
                    }
                    Ok(block.records.len() as u64)
                }),
                _ => match (noun.read)(&bytes) {
                    Ok((id, ..)) if matches!(place, Place::Single { id: wanted, .. } if *wanted != id) => {
                        Err(Error::DamagedRecord(format!("it says that it is {id}")))
                    }
                    other => other.map(|_| 1),
                },
            },
        };
        match kept {
            Ok(0) => None,
            Ok(n) => Some((value, n)),
            Err(error) => {
                damage.add(shown(place), &error);
                None
            }
        }
    }

    /// Whether the records of a place are of a noun that this version has.
    pub(crate) fn knows(&self, place: &Place) -> bool {
        match place {
            Place::Counter(collection) => self.schema.position(collection).is_some(),
            _ => self.noun(place).is_some(),
        }
    }

    fn noun<'a>(&self, place: &'a Place) -> Option<(&Noun, &'a str)> {
        let collection = collection_of(place)?;
        let noun = &self.schema.nouns[self.schema.position(collection)?];
        let is_block = matches!(place, Place::Block { .. });
        (is_block == (noun.kind == crate::record::CollectionKind::Paged)).then_some((noun, collection))
    }

    fn plain(&self, noun: &Noun, place: &Place, value: &Value) -> Result<Vec<u8>> {
        match noun.is_sealed {
            true => self.vault.unseal_bytes(&place.stem(), &value.payload),
            false => Ok(value.payload.clone()),
        }
    }

    fn sealed(&self, noun: &Noun, place: &Place, bytes: Vec<u8>) -> Result<Vec<u8>> {
        match noun.is_sealed {
            true => self.vault.seal_bytes(&place.stem(), &bytes),
            false => Ok(bytes),
        }
    }
}

pub(crate) fn collection_of(place: &Place) -> Option<&str> {
    match place {
        Place::Block { collection, .. } | Place::Single { collection, .. } => Some(collection),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::engine::disk::Slice;
    use crate::record::{CollectionKind, Record};
    use crate::store::Store;

    #[derive(Serialize, Deserialize)]
    struct Note {
        id: u32,
    }

    impl Record for Note {
        const COLLECTION: &'static str = "notes";

        fn id(&self) -> u32 {
            self.id
        }
    }

    /// One that a house can do without for a day.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Logo {
        id: u32,
        name: String,
    }

    impl Record for Logo {
        const COLLECTION: &'static str = "logos";
        const MAY_BE_MISSED: bool = true;

        fn id(&self) -> u32 {
            self.id
        }

        fn keys(&self, keys: &mut crate::record::Keys) {
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
        const KIND: CollectionKind = CollectionKind::Paged;
        const SEALED: bool = true;

        fn id(&self) -> u32 {
            self.id
        }
    }

    fn schema() -> Schema {
        Schema::new().with::<Note>().with::<Logo>().with::<Item>()
    }

    /// A store with 50 notes, 40 logos and 250 items, in which this happens behind its back.
    fn harmed(harm: impl FnOnce(&Disk, &Vault)) -> tempfile::TempDir {
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
        let disk = Disk::open(&database(&at, 1)).unwrap();
        harm(&disk, &Vault::open(&key, false).unwrap());
        disk.sync().unwrap();
        folder
    }

    fn found(disk: &Disk, letter: &[u8], n: usize) -> (Vec<u8>, Vec<u8>) {
        disk.scan(letter).nth(n).unwrap().unwrap()
    }

    fn put(disk: &Disk, key: Vec<u8>, bytes: Vec<u8>) {
        let mut slice = Slice::default();
        slice.put(key, bytes);
        disk.apply(slice).unwrap();
    }

    /// Checks and saves. Gives what was said to be damaged, and how many notes and items were saved.
    #[track_caller]
    fn check_and_save(folder: &Path) -> (Vec<String>, usize, usize) {
        let (at, key, into) = (folder.join("store"), folder.join("key"), folder.join("salvaged"));
        assert!(matches!(Store::open(&at, &key, schema()), Err(Error::Damaged { .. })));
        let report = crate::check(&at, &key, &schema()).unwrap();
        assert!(!report.is_ok());
        let saved = crate::salvage(&at, &into, &key, &schema()).unwrap();
        assert_eq!(saved.damage.n, report.damage.n);
        assert!(report.to_string().contains(&report.damage.to_string()));
        let store = Store::open(&into, &key, schema()).unwrap();
        let said = report.damage.named.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
        let (notes, items) = (store.collection::<Note>(), store.collection::<Item>());
        assert_eq!((notes.all().unwrap().len(), items.all().unwrap().len()), (notes.len(), items.len()));
        (said, notes.len(), items.len())
    }

    #[test]
    fn a_record_whose_bytes_changed_is_named_and_the_others_are_saved() {
        let folder = harmed(|disk, _| {
            let (key, mut bytes) = found(disk, b"rnotes", 6);
            *bytes.last_mut().unwrap() ^= 1;
            put(disk, key, bytes);
        });
        let (said, notes, items) = check_and_save(folder.path());
        assert_eq!(said, ["record 7 of notes: its checksum does not fit"]);
        assert_eq!((notes, items), (49, 250));
    }

    #[test]
    fn a_record_that_does_not_read_is_named_and_the_others_are_saved() {
        let folder = harmed(|disk, _| {
            let (key, bytes) = found(disk, b"rnotes", 6);
            let value = Value { payload: vec![1, 0xc1], ..Value::of_key(&key, &bytes).unwrap() };
            put(disk, key, value.encode());
        });
        let (said, notes, items) = check_and_save(folder.path());
        assert!(said[0].starts_with("record 7 of notes: notes does not read"), "{said:?}");
        assert_eq!((said.len(), notes, items), (1, 49, 250));
    }

    #[test]
    fn records_that_do_not_read_in_a_sealed_block_are_named_and_the_rest_of_it_is_saved() {
        let folder = harmed(|disk, vault| {
            let (key, bytes) = found(disk, b"p", 1);
            let mut value = Value::of_key(&key, &bytes).unwrap();
            let stem = Place::parse(&key).unwrap().stem();
            let mut block = Block::decode(&vault.unseal_bytes(&stem, &value.payload).unwrap()).unwrap();
            block.records[3].1 = vec![1, 0xc1];
            block.records[9].1 = vec![];
            value.payload = vault.seal_bytes(&stem, &block.encode()).unwrap();
            put(disk, key, value.encode());
        });
        let (said, notes, items) = check_and_save(folder.path());
        assert!(said[0].starts_with("record 104 of items: items does not read"), "{said:?}");
        assert_eq!(said[1], "record 110 of items: items is empty");
        assert_eq!((said.len(), notes, items), (2, 50, 248));
    }

    #[test]
    fn a_bare_file_gives_what_landed_and_not_what_never_did() {
        let folder = tempfile::tempdir().unwrap();
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        let store = Store::open(&at, &key, schema()).unwrap();
        let bulk = |store: &Store, ids: std::ops::RangeInclusive<u32>| {
            let mut bulk = store.bulk_write::<Item>(0).unwrap();
            ids.for_each(|id| bulk.put(&Item { id }).unwrap());
            bulk
        };
        bulk(&store, 1..=2_500).commit(|_, _| Ok::<_, Error>(())).unwrap();
        store.write_blocking(|write| (1..=300).try_for_each(|id| write.put(&logo(id)))).unwrap();
        drop(bulk(&store, 5_000..=9_000));
        // Under way when the house burned down.
        let unfinished = bulk(&store, 10_000..=13_000);
        store.close();
        let mut read = Values::default();
        read.search(&database(&at, 1)).unwrap();
        drop(unfinished);
        let vault = Vault::open(&key, false).unwrap();
        let schema = schema();
        let inspector = Inspector { schema: &schema, vault: &vault };
        let mut damage = Damage::default();
        let mut found = BTreeMap::new();
        for (place, value) in read.current() {
            if let (Some(name), Some((_, n))) =
                (collection_of(&place).map(str::to_owned), inspector.keep(&place, value, &mut damage))
            {
                *found.entry(name).or_insert(0) += n;
            }
        }
        assert_eq!(damage.n, 0);
        assert_eq!(found, BTreeMap::from([("items".to_owned(), 2_500), ("logos".to_owned(), 300)]));
    }

    /// Flips the last bit of logos, so that their checksums do not fit.
    fn flip(disk: &Disk, logos: std::ops::Range<usize>) {
        for n in logos {
            let (key, mut bytes) = found(disk, b"rlogos", n);
            *bytes.last_mut().unwrap() ^= 1;
            put(disk, key, bytes);
        }
    }

    #[test]
    fn one_damaged_record_that_may_be_missed_is_set_aside_and_the_house_goes_on() {
        // The last one, so that nothing but what was set aside holds its id back, and one that is whole but unreadable.
        let folder = harmed(|disk, _| {
            flip(disk, 39..40);
            let (key, bytes) = found(disk, b"rlogos", 4);
            let value = Value { payload: vec![1, 0xc1], ..Value::of_key(&key, &bytes).unwrap() };
            put(disk, key, value.encode());
            let mut slice = Slice::default();
            slice.remove(Place::Counter("logos".to_owned()).key());
            disk.apply(slice).unwrap();
        });
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        assert_eq!(crate::check(&at, &key, &schema()).unwrap().damage.n, 2);
        let aside = ["record 5 of logos", "record 40 of logos"];
        // Opened twice before anything is written, and rewritten.
        for is_rewritten in [false, true] {
            let store = Store::open(&at, &key, schema()).unwrap();
            assert_eq!(store.set_aside(), aside);
            let logos = store.collection::<Logo>();
            assert_eq!((logos.len(), logos.get(5).unwrap(), logos.get(40).unwrap()), (38, None, None));
            assert_eq!(logos.all().unwrap().len(), 38);
            assert_eq!(store.collection::<Note>().len(), 50);
            if is_rewritten {
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
        // From a back-up it comes in again under its own id.
        store.write_blocking(|write| write.put(&logo(5))).unwrap();
        drop(store);
        let store = Store::open(&at, &key, schema()).unwrap();
        assert_eq!(store.collection::<Logo>().get(5).unwrap(), Some(logo(5)));
        assert_eq!(store.set_aside(), aside);
        drop(store);
        assert!(crate::check(&at, &key, &schema()).unwrap().is_ok());
    }

    #[test]
    fn an_older_value_of_a_damaged_record_never_takes_its_place() {
        let folder = harmed(|disk, _| {
            // As a large write leaves them: the new one above the old one, which was not swept yet.
            let (key, bytes) = found(disk, b"rlogos", 4);
            let Some(Place::Single { collection, id, version }) = Place::parse(&key) else {
                panic!("a logo")
            };
            let place = Place::Single { collection, id, version: version + 1 };
            let newer = Value { key: place.key(), ..Value::of_key(&key, &bytes).unwrap() };
            let mut bytes = newer.encode();
            *bytes.last_mut().unwrap() ^= 1;
            put(disk, place.key(), bytes);
        });
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        for _ in 0..2 {
            let store = Store::open(&at, &key, schema()).unwrap();
            assert_eq!(store.collection::<Logo>().get(5).unwrap(), None);
            assert_eq!(store.set_aside(), ["record 5 of logos"]);
        }
    }

    #[test]
    fn many_damaged_records_are_no_accident_and_the_store_does_not_open() {
        let folder = harmed(|disk, _| flip(disk, 0..17));
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        let refused = Store::open(&at, &key, schema()).err().unwrap();
        assert!(
            refused.to_string().contains("17 records do not read, record 1 of logos for instance"),
            "{refused}"
        );
        let disk = Disk::open(&database(&at, 1)).unwrap();
        assert_eq!(disk.scan(b"a").count(), 0, "nothing was set aside");
    }
}
