//! Writes values to the database, one slice at a time.

use crate::engine::disk::{Disk, SLICE_WEIGHT_MAX, Slice};
use crate::engine::value::{DiskKey, Location};
use crate::error::Result;

/// Collects values and, if they are staged, sends each full slice to the database.
pub(crate) struct SliceWriter<'a> {
    disk: &'a Disk,
    pub(crate) slice: Slice,
    is_staged: bool,
}

impl<'a> SliceWriter<'a> {
    /// Keeps everything in one slice, which the caller applies.
    pub(crate) fn one_slice(disk: &'a Disk) -> Self {
        Self { disk, slice: Slice::default(), is_staged: false }
    }

    /// Sends a slice whenever one is full. The caller sends the last one.
    pub(crate) fn staged(disk: &'a Disk) -> Self {
        Self { disk, slice: Slice::default(), is_staged: true }
    }

    pub(crate) fn put(&mut self, disk_key: &DiskKey, commit: u64, value: Vec<u8>) -> Result<Location> {
        let key = disk_key.encode();
        let at = Location::new(disk_key.version(), commit, &key, value.len());
        self.add(key, value)?;
        Ok(at)
    }

    pub(crate) fn add(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        let weight = Slice::weight_of(&key, value.len());
        if self.is_staged && self.slice.weight() + weight > SLICE_WEIGHT_MAX {
            self.send()?;
        }
        self.slice.put(key, value);
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: Vec<u8>) -> Result<()> {
        if self.is_staged && self.slice.weight() >= SLICE_WEIGHT_MAX {
            self.send()?;
        }
        self.slice.remove(key);
        Ok(())
    }

    pub(crate) fn send(&mut self) -> Result<()> {
        self.disk.apply(std::mem::take(&mut self.slice))?;
        self.disk.flush()
    }
}
