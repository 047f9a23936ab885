//! Snapshots: all shared records at a position of the log, with which a node joins.

use std::fs::File;
use std::path::Path;

use super::{LogKeys, LogPosition};
use crate::backup::{Archive, BackupError, BackupFile, BackupSecret, SaveFile, create_backup};
use crate::error::{Error, Result as StoreResult};
use crate::read::snapshot::Snapshot;
use crate::record::{Record, RecordType, Schema, Sharing};
use crate::store::Store;

/// Records that are copied in one write.
const COPIED_AT_ONCE: usize = 500;

/// Writes a snapshot of all shared records and of these files, in the format of back-ups. Returns the position in the log
/// that it stands at. Other reads and writes continue, and another snapshot or back-up is waited for. Blocks.
///
/// `created_at` is in milliseconds since 1970. On success the file is complete and durable.
///
/// # Errors
/// If the store has no log, if this is an edge node, if another snapshot or back-up takes longer than a minute, if
/// too much is overwritten meanwhile, or if the disk fails. The file is then useless.
pub fn create_snapshot(
    store: &Store,
    files: &[BackupFile],
    keys: &LogKeys,
    created_at: i64,
    into: &mut File,
) -> Result<LogPosition, BackupError> {
    let manifest = create_backup(store, files, &BackupSecret::DataKeys(keys.clone()), created_at, into)?;
    manifest.log.ok_or(BackupError::NotASnapshot)
}

/// Verifies each byte of a snapshot, without restoring it. Returns the position in the log that it stands at. Blocks.
///
/// # Errors
/// If the file is not a complete and unchanged snapshot under these keys, or if a later version made it.
pub fn verify_snapshot(path: &Path, keys: &LogKeys) -> Result<LogPosition, BackupError> {
    let archive = Archive::open_any(path)?.unlock(&BackupSecret::DataKeys(keys.clone()))?;
    archive.manifest().log.ok_or(BackupError::NotASnapshot)
}

/// Restores a snapshot to a new store in this folder, which can then follow the log. An edge node gets the records that all
/// nodes have. Returns the position of the store. Blocks.
///
/// # Errors
/// If the file is not a complete and unchanged snapshot under these keys, if a later version made it, if the folder contains
/// a store, or if the disk fails. The folder is removed then.
pub fn restore_snapshot(
    path: &Path,
    keys: &LogKeys,
    folder: &Path,
    key_file: &Path,
    schema: &Schema,
    save: SaveFile<'_>,
) -> Result<LogPosition, BackupError> {
    let archive = Archive::open_any(path)?.unlock(&BackupSecret::DataKeys(keys.clone()))?;
    let position = archive.manifest().log.ok_or(BackupError::NotASnapshot)?;
    archive.restore(folder, key_file, schema, save)?;
    Ok(position)
}

/// Gives a new store the records of an old one that belong to this node alone. Can be repeated. Blocks.
///
/// # Errors
/// If a disk fails.
pub fn copy_local_records(from: &Store, to: &Store) -> StoreResult<()> {
    copy(from, to, |it| it.sharing == Sharing::Local && it.name != LogPosition::COLLECTION)
}

/// Replaces the records of these collections by those of another store. Ids that the other one has given are not given
/// again. Can be repeated. Blocks.
///
/// # Errors
/// If a disk fails, or if the store refuses writes to such a collection.
pub fn copy_records(from: &Store, to: &Store, collections: &[&str]) -> StoreResult<()> {
    copy(from, to, |it| collections.contains(&it.name))
}

fn copy(from: &Store, to: &Store, is_copied: impl Fn(&RecordType) -> bool) -> StoreResult<()> {
    let source = Snapshot::begin(from.shared())?;
    for (type_number, record_type) in from.shared().schema.record_types.iter().enumerate() {
        let target = to.shared().schema.position(record_type.name);
        let Some(target) = target.filter(|_| is_copied(record_type)) else { continue };
        let mut old = Vec::new();
        let read = record_type.read;
        Snapshot::begin(to.shared())?.for_each(target, |bytes| {
            old.push(read(bytes)?.0);
            Ok::<_, Error>(())
        })?;
        let next_id = source.collections()[type_number].next_id;
        to.write_blocking(move |write| {
            old.into_iter().try_for_each(|id| write.remove_encoded(target, id).map(drop))?;
            write.reserve_ids(target, next_id);
            Ok::<_, Error>(())
        })?;
        let mut records = Vec::new();
        let put = |records: Vec<Vec<u8>>| {
            to.write_blocking(move |write| {
                records.into_iter().try_for_each(|bytes| {
                    let (id, owner, keys) = read(&bytes)?;
                    write.put_encoded(target, owner, id, bytes, &keys)
                })
            })
        };
        source.for_each(type_number, |bytes| {
            records.push(bytes.to_vec());
            match records.len() {
                COPIED_AT_ONCE => put(std::mem::take(&mut records)),
                _ => Ok(()),
            }
        })?;
        put(records)?;
    }
    Ok(())
}
