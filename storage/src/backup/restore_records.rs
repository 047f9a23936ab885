//! Restores records from lines of JSON.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::record::{CollectionKind, EncodedRecord, RecordType};
use crate::store::Store;
use crate::write::bulk::EncodedBulk;

/// Records per write, and bytes of JSON per write, whichever is reached first.
const RECORDS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 4 << 20;

/// The lines of one collection, one after another.
pub(crate) type Lines<'a> = &'a mut dyn FnMut() -> Result<Option<Vec<u8>>>;

/// Writes the records of one collection to a new store, and returns their number.
pub(crate) fn restore_records(store: &Store, type_number: usize, lines: Lines<'_>) -> Result<u64> {
    match record_type(store, type_number).kind {
        CollectionKind::Single => restore_singles(store, type_number, lines),
        CollectionKind::Paged => restore_paged(store, type_number, lines),
    }
}

fn record_type(store: &Store, type_number: usize) -> &RecordType {
    store.shared().record_type(type_number)
}

fn restore_singles(store: &Store, type_number: usize, lines: Lines<'_>) -> Result<u64> {
    let record_type = record_type(store, type_number);
    let mut n_restored = 0;
    let mut ids = BTreeSet::new();
    loop {
        let (mut records, mut n_bytes) = (Vec::<EncodedRecord>::new(), 0);
        while records.len() < RECORDS_AT_ONCE
            && n_bytes < BYTES_AT_ONCE
            && let Some(line) = lines()?
        {
            n_bytes += line.len();
            let record = (record_type.from_json)(&line)?;
            if !ids.insert(record.id) {
                let what = format!("{} {} occurs twice", record_type.name, record.id);
                return Err(Error::DamagedRecord(what));
            }
            records.push(record);
        }
        if records.is_empty() {
            return Ok(n_restored);
        }
        n_restored += records.len() as u64;
        store.write_blocking(move |write| {
            records.into_iter().try_for_each(|it| write.put_new(type_number, it))
        })?;
    }
}

fn restore_paged(store: &Store, type_number: usize, lines: Lines<'_>) -> Result<u64> {
    let record_type = record_type(store, type_number);
    let mut n_restored = 0;
    let mut owners = BTreeSet::new();
    let mut current: Option<EncodedBulk> = None;
    while let Some(line) = lines()? {
        let EncodedRecord { id, owner, bytes, keys } = (record_type.from_json)(&line)?;
        let bulk = match current.take() {
            Some(bulk) if bulk.owner() == owner => bulk,
            other => {
                other.map_or(Ok(()), |done| done.commit(|_, _| Ok::<_, Error>(())))?;
                // A second bulk write would replace the records of the first one.
                if !owners.insert(owner) {
                    let what = format!("the {} of owner {owner} are not together", record_type.name);
                    return Err(Error::DamagedRecord(what));
                }
                store.encoded_bulk(type_number, owner, false)?
            }
        };
        current.insert(bulk).put(id, bytes, &keys)?;
        n_restored += 1;
    }
    current.map_or(Ok(()), |done| done.commit(|_, _| Ok::<_, Error>(())))?;
    Ok(n_restored)
}
