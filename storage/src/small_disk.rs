//! A small file system for tests of a full disk.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
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

    /// Allows this many files and folders, the file system itself included.
    pub(crate) fn limit_files(&self, n: u32) {
        let limit = format!("remount,nr_inodes={n}");
        assert!(Command::new("mount").args(["-o", &limit]).arg(&self.0).status().unwrap().success());
    }

    /// Writes another file that leaves no byte.
    pub(crate) fn fill_up(&self) -> PathBuf {
        let path = self.0.join("other data");
        let mut file = File::create(&path).unwrap();
        loop {
            match file.write(&[7; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return path,
                Err(error) => panic!("{error}"),
            }
        }
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
