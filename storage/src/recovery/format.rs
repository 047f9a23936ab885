//! The format of the store as a whole, and the steps from older ones.
//!
//! Records have versions of their own; this is about what lies around them: keys, envelopes, names of collections. The
//! number stands in the commit file. A step writes everything into a fresh database that takes the place of the old one
//! together with the new number, so a crash in the middle leaves the old one.

use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::{Disk, Slice};
use crate::engine::value::{Place, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::write::compact::fresh;
use crate::write::start::database;
use crate::write::writer::Batch;

/// What is written, and how to get there.
pub(crate) struct Formats {
    pub(crate) now: u8,
    /// One from each older format that was ever released.
    pub(crate) steps: &'static [Step],
}

/// The formats of this version. There is no older one yet.
pub(crate) const FORMATS: Formats = Formats { now: 1, steps: &[] };

/// From one format to the next.
pub(crate) struct Step {
    pub(crate) from: u8,
    /// What it does, for the log: completes "the store is brought up to date: …".
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Rewrite<'_>) -> Result<()>,
}

/// What a step reads and writes. What it does not write is gone.
#[cfg_attr(not(test), expect(dead_code, reason = "there is no step yet but in the tests"))]
pub(crate) struct Rewrite<'a> {
    pub(crate) from: &'a Disk,
    pub(crate) to: Batch<'a>,
    /// Records per collection, which have to fit afterwards.
    pub(crate) counts: &'a mut BTreeMap<String, u64>,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the first step that has to look into what is sealed")
    )]
    pub(crate) vault: &'a Vault,
}

/// Refuses what a later version wrote.
pub(crate) fn refuse_newer(mark: &CommitMark, formats: &Formats) -> Result<()> {
    match mark.format > formats.now {
        true => Err(Error::TooNew { found: mark.format, known: formats.now }),
        false => Ok(()),
    }
}

/// Runs the steps that are missing, one after the other; each is durable before the next.
pub(crate) fn bring_up_to_date(
    folder: &Path,
    mut disk: Disk,
    mut mark: CommitMark,
    commit_file: &mut CommitFile,
    vault: &Vault,
    formats: &Formats,
) -> Result<(Disk, CommitMark)> {
    while mark.format < formats.now {
        let format = mark.format;
        let step = formats.steps.iter().find(|it| it.from == format).ok_or_else(|| Error::Damaged {
            at: folder.to_owned(),
            what: format!("it has format {format}, which no version ever wrote"),
        })?;
        tracing::info!(from = format, to = format + 1, "the store is brought up to date: {}", step.name);
        let mut next = CommitMark { format: format + 1, generation: mark.generation + 1, ..mark };
        let new = fresh(&database(folder, next.generation), |new| {
            let to = Batch { disk: new, slice: Slice::default(), is_staged: true };
            let mut rewrite = Rewrite { from: &disk, to, counts: &mut next.counts, vault };
            (step.run)(&mut rewrite)?;
            rewrite.to.send()?;
            renumber(new, format + 1)
        })?;
        commit_file.write(&next)?;
        disk.remove_with_last_reader();
        (disk, mark) = (new, next);
    }
    Ok((disk, mark))
}

/// The number stands in the database too, for the day on which the commit file is lost.
fn renumber(disk: &Disk, format: u8) -> Result<()> {
    let key = Place::Meta.key();
    let Some(bytes) = disk.get(&key)? else { return Ok(()) };
    let mut meta = Value::of_key(&key, &bytes)?;
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
    use crate::record::{Record, Schema};
    use crate::store::Store;
    use crate::write::start::databases;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Old {
        id: u32,
        text: String,
    }

    impl Record for Old {
        const COLLECTION: &'static str = "memos";
        const SEALED: bool = true;

        fn id(&self) -> u32 {
            self.id
        }
    }

    /// The same noun under another name.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct New {
        id: u32,
        text: String,
    }

    impl Record for New {
        const COLLECTION: &'static str = "notes";
        const SEALED: bool = true;

        fn id(&self) -> u32 {
            self.id
        }
    }

    /// Gives a collection its new name; what is sealed is sealed for its new place.
    fn rename(rewrite: &mut Rewrite<'_>, before: &str, after: &str) -> Result<()> {
        for item in rewrite.from.scan(b"") {
            let (key, bytes) = item?;
            let mut value = Value::of_key(&key, &bytes)?;
            let place = match Place::parse(&key) {
                Some(Place::Single { collection, id, version }) if collection == before => {
                    let place = Place::Single { collection: after.to_owned(), id, version };
                    let old = Place::parse(&key).map(|it| it.stem()).unwrap_or_default();
                    let plain = rewrite.vault.unseal_bytes(&old, &value.payload)?;
                    value.payload = rewrite.vault.seal_bytes(&place.stem(), &plain)?;
                    place
                }
                Some(Place::Counter(collection)) if collection == before => Place::Counter(after.to_owned()),
                Some(place) => place,
                None => return Err(Error::DamagedRecord("no key of ours".to_owned())),
            };
            value.key = place.key();
            rewrite.to.add(place.key(), value.encode())?;
        }
        if let Some(n) = rewrite.counts.remove(before) {
            rewrite.counts.insert(after.to_owned(), n);
        }
        Ok(())
    }

    /// The disk is full, once.
    static IS_FULL: AtomicBool = AtomicBool::new(true);

    const LATER: Formats = Formats {
        now: 3,
        steps: &[
            Step { from: 2, name: "drafts are called notes", run: second },
            Step { from: 1, name: "memos are called drafts", run: |it| rename(it, "memos", "drafts") },
        ],
    };

    fn second(rewrite: &mut Rewrite<'_>) -> Result<()> {
        rename(rewrite, "drafts", "notes")?;
        match IS_FULL.swap(false, Ordering::SeqCst) {
            true => Err(Error::disk("write the database", "no space left")),
            false => Ok(()),
        }
    }

    #[test]
    fn an_older_store_takes_every_step_in_order_and_a_newer_one_is_refused() {
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
        assert_eq!(format(), 1);

        // The second step fails: the first one stays done, and nothing is lost.
        let failed = Store::open_as(&at, &key, new(), &LATER).err().unwrap();
        assert!(failed.to_string().contains("no space left"), "{failed}");
        assert_eq!((format(), databases(&at).unwrap().len()), (2, 1));

        let store = Store::open_as(&at, &key, new(), &LATER).unwrap();
        assert_eq!((format(), databases(&at).unwrap().len()), (3, 1));
        let notes = store.collection::<New>();
        let expected: Vec<_> = (1..300).map(|id| New { id, text: id.to_string() }).collect();
        assert_eq!(notes.all().unwrap(), expected);
        let id = store.write_blocking(|write| write.next_id::<New>()).unwrap();
        assert_eq!(id, 301, "the counter came along");
        store.compact().unwrap();
        drop(store);
        assert_eq!(format(), 3);
        assert_eq!(Store::open_as(&at, &key, new(), &LATER).unwrap().collection::<New>().len(), 299);

        let before = std::fs::read(at.join("commit")).unwrap();
        let refused = Store::open(&at, &key, new()).err().unwrap();
        assert!(matches!(refused, Error::TooNew { found: 3, known: 1 }), "{refused}");
        assert!(refused.to_string().contains("use a newer Headwater"), "{refused}");
        assert_eq!(std::fs::read(at.join("commit")).unwrap(), before, "nothing was touched");
    }

    #[test]
    fn a_format_that_no_step_leads_from_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        drop(Store::open(&at, &key, Schema::new().with::<Old>()).unwrap());
        let formats = Formats { now: 2, steps: &[] };
        let refused = Store::open_as(&at, &key, Schema::new().with::<Old>(), &formats).err().unwrap();
        assert!(refused.to_string().contains("no version ever wrote"), "{refused}");
        Store::open(&at, &key, Schema::new().with::<Old>()).unwrap();
    }
}
