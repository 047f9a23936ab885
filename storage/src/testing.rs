//! Functions for the tests of other crates.

use std::path::Path;

use crate::engine::commit_file::CommitFile;
use crate::engine::disk::{Disk, Slice};
use crate::engine::folder::database_folder;
use crate::error::{Error, Result};

/// Damages every block of a collection, in the folder of a store that is not open. Returns their number.
pub fn damage_blocks(folder: &Path, collection: &str) -> Result<usize> {
    let (_, mark) = CommitFile::open(folder)?.ok_or_else(|| Error::NoStore(folder.to_owned()))?;
    let disk = Disk::open(&database_folder(folder, mark.generation))?;
    let prefix = [b"p", collection.as_bytes(), b"\0"].concat();
    let blocks = disk.scan(&prefix).collect::<Result<Vec<_>>>()?;
    let n_blocks = blocks.len();
    for (key, mut bytes) in blocks {
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let mut slice = Slice::default();
        slice.put(key, bytes);
        disk.apply(slice)?;
    }
    disk.sync()?;
    Ok(n_blocks)
}
