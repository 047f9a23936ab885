//! Snapshots: all shared records at a position of the log, with which a node joins.

use std::fs::File;
use std::path::Path;

use super::{LogKeys, LogPosition};
use crate::backup::{Archive, BackupError, BackupFile, BackupSecret, SaveFile, create_backup};
use crate::record::Schema;
use crate::store::Store;

/// Writes a snapshot of all shared records and of these files, in the format of back-ups. Returns the position in the log
/// that it stands at. Other reads and writes continue. Blocks.
///
/// `created_at` is in milliseconds since 1970. On success the file is complete and durable.
///
/// # Errors
/// If the store has no log, if this is an edge node, if another snapshot or back-up is being made, if too much is
/// overwritten meanwhile, or if the disk fails. The file is then useless.
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

/// Restores a snapshot to a new store in this folder, which can then follow the log. An edge node gets the records that all
/// nodes have. Returns the position of the store. Blocks.
///
/// # Errors
/// If the file is no complete and unchanged snapshot under these keys, if a later version made it, if the folder contains
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
