//! Migrations: the format of the store as a whole, and the steps from older formats.
//!
//! Records have versions of their own. This format concerns everything around them: keys, envelopes, names of
//! collections. Its number is in the commit file. A step writes everything to a new database. The last one replaces the
//! old one together with the number once it is loaded, so a crash or an error in the middle leaves the old one in use.

use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::commit_file::CommitMark;
use crate::engine::disk::{Disk, Slice};
use crate::engine::folder::{create_database, database_folder};
use crate::engine::slice_writer::SliceWriter;
use crate::engine::value::{DiskKey, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};

/// The current format, and the steps that lead to it.
#[derive(Clone, Copy)]
pub(crate) struct Formats {
    pub(crate) now: u8,
    /// One step for each older format that was ever released.
    pub(crate) steps: &'static [MigrationStep],
}

/// The formats of this version.
pub(crate) const FORMATS: Formats =
    Formats { now: 2, steps: &[MigrationStep { from: 1, name: "long values in pieces", run: copy }] };

/// Copies all values; the new database splits long ones.
fn copy(migration: &mut Migration<'_>) -> Result<()> {
    for item in migration.from.scan(b"") {
        let (key, value) = item?;
        migration.to.add(key, value)?;
    }
    Ok(())
}

/// The migration from one format to the next.
pub(crate) struct MigrationStep {
    pub(crate) from: u8,
    /// Description for the log: completes "migrating the store: …".
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Migration<'_>) -> Result<()>,
}

/// Input and output of a step. Values that the step does not write are lost.
pub(crate) struct Migration<'a> {
    pub(crate) from: &'a Disk,
    pub(crate) to: SliceWriter<'a>,
    /// Number of records per collection; must be correct after the step.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the first step that renames a collection"))]
    pub(crate) counts: &'a mut BTreeMap<String, u64>,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the first step that has to read encrypted records")
    )]
    pub(crate) vault: &'a Vault,
}

/// Returns an error if a later version wrote the store.
pub(crate) fn refuse_newer(mark: &CommitMark, formats: &Formats) -> Result<()> {
    match mark.format > formats.now {
        true => Err(Error::NewerProgram {
            program: mark.program.clone(),
            what: format!("format {}", mark.format),
        }),
        false => Ok(()),
    }
}

/// Runs the missing steps one after the other. The database of each is removed when it is dropped.
pub(crate) fn migrate(
    folder: &Path,
    mut disk: Disk,
    mut mark: CommitMark,
    vault: &Vault,
    formats: &Formats,
) -> Result<(Disk, CommitMark)> {
    while mark.format < formats.now {
        let format = mark.format;
        let step = formats.steps.iter().find(|it| it.from == format).ok_or_else(|| Error::Damaged {
            at: folder.to_owned(),
            what: format!("unknown format {format}"),
        })?;
        tracing::info!(from = format, to = format + 1, "migrating the store: {}", step.name);
        // The keys may change with the step, so the sums of the old ones say nothing.
        let mut next = CommitMark { format: format + 1, generation: mark.generation + 1, sums: None, ..mark };
        let new = create_database(&database_folder(folder, next.generation), |new| {
            let to = SliceWriter::staged(new);
            let mut migration = Migration { from: &disk, to, counts: &mut next.counts, vault };
            (step.run)(&mut migration)?;
            migration.to.send()?;
            write_format(new, format + 1)
        })?;
        new.remove_with_last_reader();
        (disk, mark) = (new, next);
    }
    Ok((disk, mark))
}

/// Writes the format to the database too, in case the commit file is lost.
fn write_format(disk: &Disk, format: u8) -> Result<()> {
    let key = DiskKey::Meta.encode();
    let Some(bytes) = disk.get(&key)? else { return Ok(()) };
    let mut meta = Value::decode_at(&key, &bytes)?;
    if let Some(number) = meta.payload.first_mut() {
        *number = format;
    }
    let mut slice = Slice::default();
    slice.put(key, meta.encode());
    disk.apply(slice)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::engine::commit_file::CommitFile;
    use crate::engine::folder::database_folders;
    use crate::record::{Record, Schema, Sharing};
    use crate::store::Store;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Old {
        id: u32,
        text: String,
    }

    impl Record for Old {
        const COLLECTION: &'static str = "memos";
        const SHARING: Sharing = Sharing::Local;
        const SEALED: bool = true;

        fn id(&self) -> u32 {
            self.id
        }
    }

    /// The same record type with another collection name.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct New {
        id: u32,
        text: String,
    }

    impl Record for New {
        const COLLECTION: &'static str = "notes";
        const SHARING: Sharing = Sharing::Local;
        const SEALED: bool = true;

        fn id(&self) -> u32 {
            self.id
        }
    }

    /// Renames a collection, and encrypts its records for their new keys.
    fn rename(migration: &mut Migration<'_>, before: &str, after: &str) -> Result<()> {
        for item in migration.from.scan(b"") {
            let (key, bytes) = item?;
            let mut value = Value::decode_at(&key, &bytes)?;
            let disk_key = match DiskKey::parse(&key) {
                Some(DiskKey::Single { collection, id, version }) if collection == before => {
                    let disk_key = DiskKey::Single { collection: after.to_owned(), id, version };
                    let old = DiskKey::parse(&key).map(|it| it.stem()).unwrap_or_default();
                    let plain = migration.vault.unseal(&old, &value.payload)?;
                    value.payload = migration.vault.seal(&disk_key.stem(), &plain)?;
                    disk_key
                }
                Some(DiskKey::Counter(collection)) if collection == before => {
                    DiskKey::Counter(after.to_owned())
                }
                Some(disk_key) => disk_key,
                None => return Err(Error::DamagedRecord("unknown key".to_owned())),
            };
            value.key = disk_key.encode();
            migration.to.add(disk_key.encode(), value.encode())?;
        }
        if let Some(n) = migration.counts.remove(before) {
            migration.counts.insert(after.to_owned(), n);
        }
        Ok(())
    }

    /// Simulates a full disk once.
    static IS_FULL: AtomicBool = AtomicBool::new(true);

    const LATER: Formats = Formats {
        now: 4,
        steps: &[
            MigrationStep { from: 3, name: "rename drafts to notes", run: second },
            MigrationStep {
                from: 2,
                name: "rename memos to drafts",
                run: |it| rename(it, "memos", "drafts"),
            },
        ],
    };

    fn second(migration: &mut Migration<'_>) -> Result<()> {
        rename(migration, "drafts", "notes")?;
        match IS_FULL.swap(false, Ordering::SeqCst) {
            true => Err(Error::disk("write the database", "no space left")),
            false => Ok(()),
        }
    }

    #[test]
    fn an_older_store_is_migrated_step_by_step_and_a_newer_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        let old = || Schema::new().with::<Old>();
        let new = || Schema::new().with::<New>();
        let format = || CommitFile::open(&at).unwrap().unwrap().1.format;
        let store = Store::open(&at, &key, old()).unwrap();
        store
            .write_blocking(|write| {
                (1..=300).try_for_each(|id| write.put(&Old { id, text: id.to_string() }))?;
                write.remove::<Old>(300)
            })
            .unwrap();
        drop(store);
        assert_eq!(format(), 2);

        // The second step fails: the old database stays in use, and no record is lost.
        let failed = Store::open_as(&at, &key, new(), &LATER).err().unwrap();
        assert!(failed.to_string().contains("no space left"), "{failed}");
        assert_eq!((format(), database_folders(&at).unwrap().len()), (2, 1));

        let store = Store::open_as(&at, &key, new(), &LATER).unwrap();
        assert_eq!((format(), database_folders(&at).unwrap().len()), (4, 1));
        let notes = store.collection::<New>();
        let expected: Vec<_> = (1..300).map(|id| New { id, text: id.to_string() }).collect();
        assert_eq!(notes.all().unwrap(), expected);
        let id = store.write_blocking(|write| write.next_id::<New>()).unwrap();
        assert_eq!(id, 301, "the id counter was migrated too");
        store.compact().unwrap();
        drop(store);
        assert_eq!(format(), 4);
        assert_eq!(Store::open_as(&at, &key, new(), &LATER).unwrap().collection::<New>().len(), 299);

        let before = std::fs::read(at.join("commit")).unwrap();
        let refused = Store::open(&at, &key, new()).err().unwrap();
        assert!(matches!(refused, Error::NewerProgram { .. }), "{refused}");
        assert!(
            refused.to_string().contains(", with format 4, which this version does not know"),
            "{refused}"
        );
        assert_eq!(std::fs::read(at.join("commit")).unwrap(), before, "the store was changed");
    }

    #[test]
    fn a_format_without_a_migration_step_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        drop(Store::open(&at, &key, Schema::new().with::<Old>()).unwrap());
        let formats = Formats { now: 3, steps: &[] };
        let refused = Store::open_as(&at, &key, Schema::new().with::<Old>(), &formats).err().unwrap();
        assert!(refused.to_string().contains("unknown format 2"), "{refused}");
        Store::open(&at, &key, Schema::new().with::<Old>()).unwrap();
    }
}
