//! The values that a snapshot still needs although commits have overwritten or removed them.
//!
//! A small commit overwrites a value in place. While a snapshot exists, the writer first keeps the value here. Values that
//! staged commits replace have other keys; these stay on the disk, because a snapshot is also a scan.

use std::collections::BTreeMap;

use crate::engine::disk::{Disk, Slice};
use crate::engine::value::is_of_records;

/// Memory for kept values, in bytes. A snapshot that needs more is given up, so that no write has to wait for it.
const BYTES_MAX: usize = 64 << 20;

/// Values of a snapshot that are no longer in the database.
#[derive(Default)]
pub(crate) struct KeptValues {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    n_bytes: usize,
    /// Whether a value could not be kept, so that the snapshot cannot be completed.
    is_lost: bool,
}

impl KeptValues {
    /// Keeps the values that a slice is about to overwrite or remove. Never fails: at worst the snapshot is lost.
    pub(crate) fn keep(&mut self, disk: &Disk, slice: &Slice) {
        for key in slice.keys().filter(|key| is_of_records(key)) {
            if self.is_lost || self.values.contains_key(key) {
                continue;
            }
            match disk.get(key) {
                // A new key, which the snapshot does not have.
                Ok(None) => {}
                Ok(Some(value)) if self.n_bytes + value.len() <= BYTES_MAX => {
                    self.n_bytes += key.len() + value.len();
                    self.values.insert(key.clone(), value);
                }
                Ok(Some(_)) | Err(_) => {
                    self.values.clear();
                    self.is_lost = true;
                }
            }
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns the kept value of a key; `None` if the database still has it.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.values.get(key).map(Vec::as_slice)
    }
}
