//! Telling what is wrong with a store, without changing it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::engine::disk::folder_bytes;
use crate::engine::space::is_wasteful;
use crate::engine::value::Place;
use crate::engine::vault::Vault;
use crate::error::Result;
use crate::record::Schema;
use crate::recovery::damage::{Damage, print_lines, size};
use crate::recovery::load::shown;
use crate::recovery::scan::{Inspector, ReadCopy, Values, collection_of, find};

/// What [`check`] found. Prints itself for the person who asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub folder: PathBuf,
    /// Sentences; none when all is well.
    pub problems: Vec<String>,
    pub damage: Damage,
    /// What was damaged at an earlier start and is out of the way since.
    pub set_aside: Vec<String>,
    /// Records that read, per collection.
    pub records: BTreeMap<String, u64>,
    /// Values that are whole and count, per collection: records, or blocks of a paged one.
    pub values: BTreeMap<String, u64>,
    /// Records per collection at the last acknowledged commit.
    pub acknowledged: BTreeMap<String, u64>,
    pub live_bytes: u64,
    pub disk_bytes: u64,
}

impl CheckReport {
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty() && self.damage.n == 0
    }

    /// How many times what lives in it the store takes of the disk.
    pub fn amplification(&self) -> f64 {
        self.disk_bytes as f64 / self.live_bytes.max(1) as f64
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_ok() { "is well" } else { "is damaged" };
        writeln!(f, "the store at {} {verdict}", self.folder.display())?;
        print_lines(f, &self.records, &self.damage, &self.problems)?;
        self.set_aside.iter().try_for_each(|it| writeln!(f, "  set aside: {it}"))?;
        let (live, disk) = (size(self.live_bytes), size(self.disk_bytes));
        writeln!(f, "  {live} live in it, it takes {disk} of the disk: {:.1} times", self.amplification())?;
        if !self.is_ok() {
            writeln!(f, "restore a back-up, or save what can be read with `headwater store salvage`")?;
        } else if is_wasteful(self.disk_bytes, self.live_bytes) {
            writeln!(f, "it is rewritten at the next start, and is smaller then")?;
        }
        Ok(())
    }
}

/// Reads a store without changing it, and tells what is wrong with it.
///
/// # Errors
/// Where there is no store, beside a running server, without the key file or with that of another store, and when a
/// later version wrote it.
pub fn check(folder: &Path, key_file: &Path, schema: &Schema) -> Result<CheckReport> {
    let mut report = CheckReport { folder: folder.to_owned(), ..CheckReport::default() };
    let found = find(folder, &mut report.problems)?;
    let vault = Vault::open(key_file, false)?;
    let inspector = Inspector { schema, vault: &vault };
    report.acknowledged = found.mark.as_ref().map(|it| it.counts.clone()).unwrap_or_default();
    let Some(database) = &found.database else { return Ok(report) };
    report.disk_bytes = folder_bytes(database);
    let copy = ReadCopy::of(database, folder)?;
    let mut read = Values::default();
    read.open(&copy.folder, &mut report.problems, &mut report.damage);
    drop(copy);
    inspector.refuse_other_key(&read)?;
    let mut unknown = BTreeSet::new();
    // Set aside since the last commit, and counted in it.
    let mut missed: BTreeMap<String, u64> = BTreeMap::new();
    for (place, value) in read.current() {
        if let Place::Aside(place) = &place {
            report.set_aside.push(shown(place));
            if found.commit == Some(value.commit) {
                *missed.entry(collection_of(place).unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        let Some(collection) = collection_of(&place) else { continue };
        if !inspector.knows(&place) {
            unknown.insert(collection.to_owned());
            continue;
        }
        *report.values.entry(collection.to_owned()).or_default() += 1;
        report.live_bytes += u64::from(value.at(0).bytes);
        if let Some((_, n)) = inspector.keep(&place, value, &mut report.damage) {
            *report.records.entry(collection.to_owned()).or_default() += n;
        }
    }
    let unknown =
        unknown.iter().map(|it| format!("it has a collection {it:?} that this version does not know"));
    report.problems.extend(unknown);
    let last = read.values.get(&Place::Meta.key()).map(|it| it.commit);
    match (last, found.commit) {
        (None, _) => report.problems.push("the number of the last commit is missing".to_owned()),
        (Some(last), Some(acknowledged)) if last < acknowledged => report
            .problems
            .push(format!("commit {acknowledged} was acknowledged, the database ends at {last}")),
        _ => {}
    }
    if last == found.commit {
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
