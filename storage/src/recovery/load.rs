//! Loading: reads all records once when a store opens, and compares them with the last acknowledged commit.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::engine::block::{Block, RECORDS_MAX};
use crate::engine::commit_file::{CommitMark, is_later_program};
use crate::engine::disk::Disk;
use crate::engine::shared::Shared;
use crate::engine::state::{Directory, Pairs, Partition, State, pair_of, record_counts, value_sums};
use crate::engine::value::{DiskKey, Location, Value};
use crate::error::{Error, Result};
use crate::record::CollectionKind;

/// A loaded store.
pub(crate) struct Loaded {
    pub(crate) state: State,
    /// The largest number of a commit or stage found.
    pub(crate) last: u64,
    /// Keys of values that a crash left behind.
    pub(crate) leftovers: BTreeSet<Vec<u8>>,
    /// Damaged records that may be missed; not yet set aside.
    pub(crate) damaged: Vec<DamagedValue>,
    /// Records that an earlier version wrote unencrypted, encrypted now; not yet written.
    pub(crate) sealed: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A current record or block that cannot be decoded.
pub(crate) struct DamagedValue {
    pub(crate) disk_key: DiskKey,
    pub(crate) bytes: Vec<u8>,
    pub(crate) why: Error,
}

/// With more damaged records than this the store does not open, because the fault affects more than single records.
const DAMAGED_MAX: usize = 16;

/// A partition that is being loaded.
#[derive(Default)]
struct PartitionBuilder {
    blocks: BTreeMap<u32, Location>,
    ids: Vec<(u32, u32)>,
    index: Vec<(u32, u32)>,
}

struct Loader<'a> {
    shared: &'a Shared,
    directories: Vec<Directory>,
    indexes: Vec<Vec<(u32, u32)>>,
    partitions: BTreeMap<(usize, u64), PartitionBuilder>,
    /// Next id of each collection, and the commit that wrote it.
    counters: BTreeMap<usize, (u32, u64)>,
    last: u64,
    meta: Option<Value>,
    damaged: Vec<DamagedValue>,
    sealed: Vec<(Vec<u8>, Vec<u8>)>,
    /// Records set aside earlier: their original key, and the last commit at that time.
    set_aside: Vec<(DiskKey, u64)>,
}

/// Loads all records. Records of a later program are not damage.
pub(crate) fn load(shared: &Shared, disk: &Disk, mark: &CommitMark) -> Result<Loaded> {
    load_all(shared, disk, mark).map_err(|error| match error {
        Error::TooNew { found, .. } if is_later_program(&mark.program) => {
            let what = format!("records of version {found}");
            Error::NewerProgram { program: mark.program.clone(), what }
        }
        other => other,
    })
}

fn load_all(shared: &Shared, disk: &Disk, mark: &CommitMark) -> Result<Loaded> {
    let damaged = |what: String| Error::Damaged { at: shared.folder.clone(), what };
    let mut stages = HashSet::new();
    for item in disk.scan(b"s") {
        let (key, bytes) = item?;
        // A mark that cannot be read is reported below.
        let is_complete = Value::decode_at(&key, &bytes).is_ok_and(|it| it.is_tombstone);
        if let Some(DiskKey::Stage(number)) = DiskKey::parse(&key)
            && !is_complete
        {
            stages.insert(number);
        }
    }
    let is_unknown = |it: &(&String, &u64)| *it.1 > 0 && shared.schema.position(it.0).is_none();
    if let Some((name, _)) = mark.counts.iter().find(is_unknown) {
        if is_later_program(&mark.program) {
            let what = format!("the collection {name:?}");
            return Err(Error::NewerProgram { program: mark.program.clone(), what });
        }
        return Err(damaged(format!("unknown collection {name:?}")));
    }
    let record_types = &shared.schema.record_types;
    let mut loader = Loader {
        shared,
        directories: record_types.iter().map(|it| Directory::new(it.kind)).collect(),
        indexes: record_types.iter().map(|_| Vec::new()).collect(),
        partitions: BTreeMap::new(),
        counters: BTreeMap::new(),
        last: 0,
        meta: None,
        damaged: Vec::new(),
        sealed: Vec::new(),
        set_aside: Vec::new(),
    };
    let mut leftovers = BTreeSet::new();
    // The versions of a record or block are adjacent, the highest last. So whether a value is current is known when the
    // next key is read.
    let mut candidate: Option<(DiskKey, ScannedValue)> = None;
    for item in disk.scan(b"") {
        let (key, bytes) =
            item.map_err(|error| if error.is_of_system() { error } else { damaged(error.to_string()) })?;
        let Some(disk_key) = DiskKey::parse(&key) else {
            return Err(damaged("unknown key in the database".to_owned()));
        };
        let found = match Value::decode_at(&key, &bytes) {
            Ok(value) => {
                loader.last = loader.last.max(value.commit);
                ScannedValue::Intact(value)
            }
            Err(why) if loader.may_be_missed(&disk_key) => ScannedValue::Damaged(bytes, why),
            Err(error) => return Err(damaged(format!("{disk_key}: {error}"))),
        };
        loader.last = loader.last.max(disk_key.version());
        if let DiskKey::Stage(number) = disk_key {
            loader.last = loader.last.max(number);
        }
        if matches!(disk_key, DiskKey::Stage(_)) || stages.contains(&disk_key.version()) {
            leftovers.insert(key);
            continue;
        }
        if let Some((before, found)) = candidate.replace((disk_key, found)) {
            let is_same = candidate.as_ref().is_some_and(|(disk_key, _)| disk_key.stem() == before.stem());
            loader.settle(before, found, is_same, &mut leftovers).map_err(|error| in_store(shared, error))?;
        }
    }
    if let Some((disk_key, found)) = candidate {
        loader.settle(disk_key, found, false, &mut leftovers).map_err(|error| in_store(shared, error))?;
    }
    loader.finish(mark, leftovers).map_err(|error| in_store(shared, error))
}

/// Returns the maximum number of records of a collection in a value.
pub(crate) fn n_of(name: &str, disk_key: &DiskKey) -> u64 {
    match disk_key {
        DiskKey::Single { collection, .. } if collection == name => 1,
        DiskKey::Block { collection, .. } if collection == name => RECORDS_MAX as u64,
        _ => 0,
    }
}

/// A value as it was read.
enum ScannedValue {
    Intact(Value),
    Damaged(Vec<u8>, Error),
}

/// Turns the error of a damaged record into the error of a damaged store.
fn in_store(shared: &Shared, error: Error) -> Error {
    match error {
        Error::DamagedRecord(what) => Error::Damaged { at: shared.folder.clone(), what },
        other => other,
    }
}

impl Loader<'_> {
    fn position(&self, collection: &str, kind: CollectionKind) -> Result<usize> {
        let position = self.shared.schema.position(collection);
        position
            .filter(|it| self.shared.record_type(*it).kind == kind)
            .ok_or_else(|| Error::DamagedRecord(format!("unknown collection {collection:?}")))
    }

    fn may_be_missed(&self, disk_key: &DiskKey) -> bool {
        let (type_number, owner) = match disk_key {
            DiskKey::Single { collection, .. } => (self.position(collection, CollectionKind::Single), 0),
            DiskKey::Block { collection, owner, .. } => {
                (self.position(collection, CollectionKind::Paged), *owner)
            }
            _ => return false,
        };
        type_number.is_ok_and(|it| (self.shared.record_type(it).may_be_missed)(owner))
    }

    /// Loads a value or counts it as a leftover, depending on whether a higher version follows.
    fn settle(
        &mut self,
        disk_key: DiskKey,
        found: ScannedValue,
        is_replaced: bool,
        leftovers: &mut BTreeSet<Vec<u8>>,
    ) -> Result<()> {
        match found {
            _ if is_replaced => drop(leftovers.insert(disk_key.encode())),
            ScannedValue::Intact(value) if value.is_tombstone => drop(leftovers.insert(disk_key.encode())),
            ScannedValue::Damaged(bytes, why) => self.damaged.push(DamagedValue { disk_key, bytes, why }),
            ScannedValue::Intact(value) => match self.add(&disk_key, &value) {
                Err(why @ Error::DamagedRecord(_)) if self.may_be_missed(&disk_key) => {
                    self.damaged.push(DamagedValue { disk_key, bytes: value.encode(), why });
                }
                other => other?,
            },
        }
        Ok(())
    }

    /// Adds a current value to the directory. After an error nothing was added.
    fn add(&mut self, disk_key: &DiskKey, value: &Value) -> Result<()> {
        match disk_key {
            DiskKey::Meta => self.meta = Some(value.clone()),
            DiskKey::SetAside(disk_key) => self.set_aside.push(((**disk_key).clone(), value.commit)),
            DiskKey::Counter(collection) => {
                let type_number = self.shared.schema.position(collection);
                let next = <[u8; 4]>::try_from(&*value.payload).map(u32::from_be_bytes);
                if let (Some(type_number), Ok(next)) = (type_number, next) {
                    self.counters.insert(type_number, (next, value.commit));
                }
            }
            DiskKey::Single { collection, id, version } => {
                let type_number = self.position(collection, CollectionKind::Single)?;
                let at = value.location(*version);
                let bytes = self.shared.unseal(type_number, disk_key, value)?;
                let (found, _, keys) = (self.shared.record_type(type_number).read)(&bytes)?;
                if found != *id {
                    return Err(Error::DamagedRecord(format!("{disk_key} contains the id {found}")));
                }
                if self.shared.record_type(type_number).is_plain(&self.shared.vault, disk_key, &value.payload)
                {
                    let sealed = self.shared.seal(type_number, disk_key, value.commit, &bytes)?;
                    self.sealed.push((value.key.clone(), sealed));
                }
                self.directories[type_number].singles.insert(*id, at);
                self.directories[type_number].count(0, *id, None, Some(at));
                self.indexes[type_number].extend(keys.iter().map(|key| (pair_of(key), *id)));
            }
            DiskKey::Block { collection, owner, block, version } => {
                let type_number = self.position(collection, CollectionKind::Paged)?;
                let at = value.location(*version);
                let payload = self.shared.unseal(type_number, disk_key, value)?;
                let (mut ids, mut index) = (Vec::new(), Vec::new());
                for (id, bytes) in Block::decode(&payload)?.records {
                    let (found, _, keys) = (self.shared.record_type(type_number).read)(&bytes)?;
                    if found != id {
                        return Err(Error::DamagedRecord(format!(
                            "record {id} of {collection} contains the id {found}"
                        )));
                    }
                    ids.push((id, *block));
                    index.extend(keys.iter().map(|key| (pair_of(key), id)));
                }
                let draft = self.partitions.entry((type_number, *owner)).or_default();
                draft.blocks.insert(*block, at);
                draft.ids.extend(ids);
                draft.index.extend(index);
                self.directories[type_number].count(*owner, *block, None, Some(at));
            }
            // The database joins pieces.
            DiskKey::Stage(_) | DiskKey::Piece { .. } => {}
        }
        Ok(())
    }

    fn finish(mut self, mark: &CommitMark, leftovers: BTreeSet<Vec<u8>>) -> Result<Loaded> {
        let damaged = |what: String| Error::Damaged { at: self.shared.folder.clone(), what };
        let Some(meta) = self.meta.take() else {
            return Err(damaged("the database is empty, but records were acknowledged".to_owned()));
        };
        let (format, proof) = meta
            .payload
            .split_first()
            .ok_or_else(|| damaged("the format is missing from the database".to_owned()))?;
        if *format > self.shared.format {
            return Err(Error::TooNew { found: *format, known: self.shared.format });
        }
        self.shared.vault.unseal(b"meta", proof)?;
        let commit = meta.commit;
        if commit < mark.commit {
            let acknowledged = mark.commit;
            return Err(damaged(format!(
                "commit {acknowledged} was acknowledged, the database ends at {commit}"
            )));
        }
        for ((type_number, owner), draft) in self.partitions {
            let partition = Partition {
                blocks: draft.blocks,
                ids: Pairs::new(draft.ids),
                index: Pairs::new(draft.index),
            };
            self.directories[type_number].partitions.insert(owner, partition);
        }
        for (type_number, index) in self.indexes.into_iter().enumerate() {
            let directory = &mut self.directories[type_number];
            directory.index = Pairs::new(index);
            let largest = directory.singles.keys().next_back().copied();
            let in_partitions =
                directory.partitions.values().filter_map(|it| it.ids.bounds()).map(|it| it.1).max();
            let name = self.shared.record_type(type_number).name;
            let missed =
                self.damaged.iter().map(|it| &it.disk_key).chain(self.set_aside.iter().map(|it| &it.0));
            let missed = missed.filter_map(|disk_key| match disk_key {
                DiskKey::Single { collection, id, .. } if collection == name => Some(*id),
                _ => None,
            });
            let after = missed.max().max(largest).max(in_partitions).map_or(1, |id| id.saturating_add(1));
            let counter = self.counters.get(&type_number).copied();
            directory.counter_commit = counter.map(|it| it.1);
            directory.next_id = counter.map_or(1, |it| it.0).max(after);
        }
        let counts = record_counts(&self.shared.schema, &self.directories);
        let sums = value_sums(&self.shared.schema, &self.directories);
        if commit == mark.commit {
            for (name, found) in &counts {
                let acknowledged = mark.counts.get(name).copied().unwrap_or(0);
                // Records set aside since that commit, or about to be. Some of them may have been removed before.
                let n_missed: u64 = self.damaged.iter().map(|it| n_of(name, &it.disk_key)).sum::<u64>()
                    + self
                        .set_aside
                        .iter()
                        .filter(|it| it.1 == commit)
                        .map(|it| n_of(name, &it.0))
                        .sum::<u64>();
                if !(*found..=*found + n_missed).contains(&acknowledged) {
                    return Err(damaged(format!(
                        "{name} has {found} records, {acknowledged} were acknowledged"
                    )));
                }
                let is_same = mark.sums.as_ref().is_none_or(|it| it.get(name).unwrap_or(&0) == &sums[name]);
                if !is_same && n_missed == 0 {
                    return Err(damaged(format!("{name} has a record that was replaced later")));
                }
            }
        }
        if self.damaged.len() > DAMAGED_MAX {
            let (first, n) = (&self.damaged[0], self.damaged.len());
            return Err(damaged(format!(
                "{n} records are damaged, for example {}: {}",
                first.disk_key, first.why
            )));
        }
        let set_aside = self.set_aside.into_iter().map(|it| it.0).collect();
        let state = State { directories: self.directories, commit, set_aside };
        Ok(Loaded {
            state,
            last: self.last.max(commit),
            leftovers,
            damaged: self.damaged,
            sealed: self.sealed,
        })
    }
}
