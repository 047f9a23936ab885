//! A small file system for tests of a full disk.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A file system of its own, which is removed with this value. Needs root.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    pub(crate) fn new(mib: u32) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let size = format!("size={mib}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
        assert!(mount.unwrap().success(), "mounting a tmpfs needs root");
        Self(folder)
    }

    pub(crate) fn available_mib(&self) -> usize {
        let room = rustix::fs::statvfs(&self.0).unwrap();
        ((room.f_bavail * room.f_frsize) >> 20) as usize
    }

    /// Writes another file of this size.
    pub(crate) fn fill(&self, mib: usize) -> PathBuf {
        let file = self.0.join("other data");
        fs::write(&file, vec![7; mib << 20]).unwrap();
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["-l"]).arg(&self.0).status());
        drop(fs::remove_dir(&self.0));
    }
}
