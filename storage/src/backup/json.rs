//! Records as lines of JSON.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::record::{CollectionKind, Record, decode};
use crate::store::Store;
use crate::write::bulk::BulkWrite;

/// Records per write, and bytes of JSON per write, whichever is reached first.
const RECORDS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 4 << 20;

/// The lines of one collection, one after another.
pub(crate) type Lines<'a> = &'a mut dyn FnMut() -> Result<Option<Vec<u8>>>;
/// Writes the records of one collection to a new store, and returns their number.
pub(crate) type RestoreRecords = fn(&Store, Lines<'_>) -> Result<u64>;

/// Converts an encoded record to JSON, without line breaks.
pub(crate) fn to_json<T: Record>(bytes: &[u8]) -> Result<Vec<u8>> {
    let record: T = decode(bytes)?;
    serde_json::to_vec(&record)
        .map_err(|cause| Error::Encode { collection: T::COLLECTION, cause: cause.to_string() })
}

/// The error does not quote the record, which may contain secrets.
fn of_json<T: Record>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line)
        .map_err(|_| Error::DamagedRecord(format!("a line of {} cannot be read", T::COLLECTION)))
}

pub(crate) fn restore_records<T: Record>(store: &Store, lines: Lines<'_>) -> Result<u64> {
    match T::KIND {
        CollectionKind::Single => restore_singles::<T>(store, lines),
        CollectionKind::Paged => restore_paged::<T>(store, lines),
    }
}

fn restore_singles<T: Record>(store: &Store, lines: Lines<'_>) -> Result<u64> {
    let mut n_restored = 0;
    let mut ids = BTreeSet::new();
    loop {
        let (mut records, mut n_bytes) = (Vec::<T>::new(), 0);
        while records.len() < RECORDS_AT_ONCE
            && n_bytes < BYTES_AT_ONCE
            && let Some(line) = lines()?
        {
            n_bytes += line.len();
            let record: T = of_json(&line)?;
            if !ids.insert(record.id()) {
                return Err(Error::DamagedRecord(format!("{} {} occurs twice", T::COLLECTION, record.id())));
            }
            records.push(record);
        }
        if records.is_empty() {
            return Ok(n_restored);
        }
        n_restored += records.len() as u64;
        store.write_blocking(move |write| records.iter().try_for_each(|it| write.put(it)))?;
    }
}

fn restore_paged<T: Record>(store: &Store, lines: Lines<'_>) -> Result<u64> {
    let mut n_restored = 0;
    let mut owners = BTreeSet::new();
    let mut current: Option<(u64, BulkWrite<T>)> = None;
    while let Some(line) = lines()? {
        let record: T = of_json(&line)?;
        let owner = record.owner();
        if current.as_ref().is_none_or(|it| it.0 != owner) {
            if let Some((_, done)) = current.take() {
                done.commit(|_, _| Ok::<_, Error>(()))?;
            }
            // A second bulk write would replace the records of the first one.
            if !owners.insert(owner) {
                let what = format!("the {} of owner {owner} are not together", T::COLLECTION);
                return Err(Error::DamagedRecord(what));
            }
            current = Some((owner, store.bulk_write(owner)?));
        }
        if let Some((_, bulk)) = &mut current {
            bulk.put(&record)?;
        }
        n_restored += 1;
    }
    if let Some((_, done)) = current {
        done.commit(|_, _| Ok::<_, Error>(()))?;
    }
    Ok(n_restored)
}
