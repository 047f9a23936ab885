//! The room on file systems.

use std::path::Path;

use rustix::fs::statvfs;

/// Less room than this on the file system of the data folder is reported.
pub const DISK_BYTES_LOW: u64 = 1 << 30;

/// Room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    pub available: u64,
    pub total: u64,
}

impl DiskSpace {
    /// Returns the room on the file system of a folder, or `None` if the system does not say. Blocks.
    pub fn read(folder: &Path) -> Option<Self> {
        let found = statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(DiskSpace { available: bytes(found.f_bavail), total: bytes(found.f_blocks) })
    }
}
