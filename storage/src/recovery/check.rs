//! `check`: reports the damage of a store, without changing it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::engine::commit_file::{CommitMark, is_later_program};
use crate::engine::disk::folder_bytes;
use crate::engine::space::is_wasteful;
use crate::engine::state::{counter_hash, value_hash};
use crate::engine::value::DiskKey;
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::record::Schema;
use crate::recovery::damage::{Damage, print_lines, size};
use crate::recovery::inspect::{RecordInspector, collection_of};
use crate::recovery::load::n_of;
use crate::recovery::scan::{DatabaseCopy, ScannedValues, find_store};

/// The result of [`check`]. `Display` formats it for the person who runs the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub folder: PathBuf,
    /// Problems with the store as a whole, one text each.
    pub problems: Vec<String>,
    /// Damaged records.
    pub damage: Damage,
    /// Records that were damaged at an earlier start and set aside.
    pub set_aside: Vec<String>,
    /// Number of readable records per collection.
    pub records: BTreeMap<String, u64>,
    /// Number of intact current values per collection: records, or blocks of a paged one.
    pub values: BTreeMap<String, u64>,
    /// Number of records per collection at the last acknowledged commit.
    pub acknowledged: BTreeMap<String, u64>,
    /// Size of the current values on the disk.
    pub live_bytes: u64,
    /// Size of the database on the disk.
    pub disk_bytes: u64,
}

impl CheckReport {
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty() && self.damage.n == 0
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (data, disk) = (size(self.live_bytes), size(self.disk_bytes));
        let verdict = if self.is_ok() { "OK" } else { "damaged" };
        writeln!(f, "store {verdict}; {data} of data, {disk} on disk")?;
        writeln!(f, "  folder: {}", self.folder.display())?;
        print_lines(f, &self.records, &self.damage, &self.problems)?;
        self.set_aside.iter().try_for_each(|it| writeln!(f, "  set aside: {it}"))?;
        if !self.is_ok() {
            writeln!(
                f,
                "restore a back-up, or copy the readable records to a new store with `headwater store salvage`"
            )?;
        } else if is_wasteful(self.disk_bytes, self.live_bytes) {
            writeln!(f, "the next start compacts the store, which makes it smaller")?;
        }
        Ok(())
    }
}

/// Reads a store without changing it, and reports all damage.
///
/// # Errors
/// If there is no store, if a server is running on it, if the key file is missing or belongs to another store, and if a
/// later version wrote the store.
pub fn check(folder: &Path, key_file: &Path, schema: &Schema) -> Result<CheckReport> {
    let mut report = CheckReport { folder: folder.to_owned(), ..CheckReport::default() };
    let found = find_store(folder, &mut report.problems)?;
    let vault = Vault::open(key_file, false)?;
    let inspector = RecordInspector { schema, vault: &vault };
    report.acknowledged = found.mark.as_ref().map(|it| it.counts.clone()).unwrap_or_default();
    let Some(database) = &found.database else { return Ok(report) };
    report.disk_bytes = folder_bytes(database);
    let copy = DatabaseCopy::temporary(database, folder)?;
    let mut read = ScannedValues::default();
    read.open(&copy.folder, &mut report.problems, &mut report.damage)?;
    drop(copy);
    inspector.refuse_wrong_key(&read)?;
    let mut unknown = BTreeSet::new();
    // Records set aside since the last commit, which still counted them.
    let mut missed: BTreeMap<String, u64> = BTreeMap::new();
    for (disk_key, value) in read.current() {
        if let DiskKey::SetAside(disk_key) = &disk_key {
            report.set_aside.push(disk_key.to_string());
            if found.commit == Some(value.commit) {
                let name = collection_of(disk_key).unwrap_or_default();
                *missed.entry(name.to_owned()).or_default() += n_of(name, disk_key);
            }
        }
        let Some(collection) = collection_of(&disk_key) else { continue };
        if !inspector.knows(&disk_key) {
            unknown.insert(collection.to_owned());
            continue;
        }
        *report.values.entry(collection.to_owned()).or_default() += 1;
        report.live_bytes += u64::from(value.location(0).bytes);
        if let Some((_, n)) = inspector.readable_part(&disk_key, value, &mut report.damage) {
            *report.records.entry(collection.to_owned()).or_default() += n;
        }
    }
    let program = found.mark.as_ref().map_or("", |it| &it.program);
    if let Some(name) = unknown.first()
        && is_later_program(program)
    {
        let what = format!("the collection {name:?}");
        return Err(Error::NewerProgram { program: program.to_owned(), what });
    }
    let unknown = unknown.iter().map(|it| format!("unknown collection {it:?}"));
    report.problems.extend(unknown);
    let last = read.values.get(&DiskKey::Meta.encode()).map(|it| it.commit);
    match (last, found.commit) {
        (None, _) => report.problems.push("the number of the last commit is missing".to_owned()),
        (Some(last), Some(acknowledged)) if last < acknowledged => report
            .problems
            .push(format!("commit {acknowledged} was acknowledged, the database ends at {last}")),
        _ => {}
    }
    if last == found.commit {
        for name in changed_collections(&read, found.mark.as_ref()) {
            if !missed.contains_key(&name) && report.damage.n == 0 {
                report.problems.push(format!("{name} has a record that was replaced later"));
            }
        }
        for (name, acknowledged) in &report.acknowledged {
            let found = report.records.get(name).copied().unwrap_or(0);
            let missed = missed.get(name).copied().unwrap_or(0);
            if !(found..=found + missed).contains(acknowledged) {
                report.problems.push(format!("{name} has {found} records, {acknowledged} were acknowledged"));
            }
        }
    }
    Ok(report)
}

/// Lists the collections whose sum differs from that of the last acknowledged commit.
fn changed_collections(read: &ScannedValues, mark: Option<&CommitMark>) -> Vec<String> {
    let Some(acknowledged) = mark.and_then(|it| it.sums.as_ref()) else { return Vec::new() };
    let mut sums: BTreeMap<String, u64> = acknowledged.keys().map(|name| (name.clone(), 0)).collect();
    for (disk_key, value) in read.current() {
        let (collection, hash) = match disk_key {
            DiskKey::Single { collection, id, version } => {
                (collection, value_hash(0, id, version, value.commit))
            }
            DiskKey::Block { collection, owner, block, version } => {
                (collection, value_hash(owner, block, version, value.commit))
            }
            DiskKey::Counter(collection) => (collection, counter_hash(Some(value.commit))),
            _ => continue,
        };
        let sum = sums.entry(collection).or_default();
        *sum = sum.wrapping_add(hash);
    }
    sums.into_iter().filter(|(name, sum)| acknowledged.get(name) != Some(sum)).map(|it| it.0).collect()
}
