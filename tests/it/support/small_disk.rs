//! A small file system of its own, as a disk that is full or read-only.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A temporary file system of limited size, removed when it is dropped. Mounting it needs root.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    pub fn new(mib: u32) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let size = format!("size={mib}m");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder));
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns the room that is left, in MiB.
    pub fn available_mib(&self) -> usize {
        let found = rustix::fs::statvfs(&self.folder).expect("the disk is there");
        usize::try_from((found.f_bavail * found.f_frsize) >> 20).expect("a small disk")
    }

    /// Writes a file of this size, which replaces an earlier one, and returns its path.
    pub fn fill(&self, mib: usize) -> PathBuf {
        let file = self.folder.join("other data");
        fs::write(&file, vec![7; mib << 20]).expect("the disk has room");
        file
    }

    /// Writes a file that leaves no byte, which replaces an earlier one, and returns its path.
    pub fn fill_up(&self) -> PathBuf {
        let path = self.folder.join("other data");
        let mut file = File::create(&path).expect("the disk has room");
        loop {
            match file.write(&[7; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return path,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Mounts the disk at a second place, from which it can be taken and to which it can come back with its files.
    pub fn attached(&self) -> MountPoint<'_> {
        let point = MountPoint { disk: self, folder: tempfile::tempdir().expect("a temporary folder") };
        point.attach();
        point
    }

    /// Makes the file system read-only.
    pub fn make_read_only(&self) {
        run(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.folder));
    }
}

/// A folder that shows the files of a disk while that is attached.
#[derive(Debug)]
pub struct MountPoint<'a> {
    disk: &'a SmallDisk,
    folder: TempDir,
}

impl MountPoint<'_> {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn attach(&self) {
        run(Command::new("mount").arg("--bind").arg(&self.disk.folder).arg(self.path()));
    }

    /// Takes the disk away although programs use it. What is left is an empty folder.
    pub fn detach(&self) {
        run(Command::new("umount").arg("-l").arg(self.path()));
    }
}

impl Drop for MountPoint<'_> {
    fn drop(&mut self) {
        // Fails if the disk is not attached.
        drop(Command::new("umount").arg("-l").arg(self.path()).stderr(Stdio::null()).status());
    }
}

fn run(mount: &mut Command) {
    assert!(mount.status().is_ok_and(|it| it.success()), "mounting a tmpfs needs root");
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["-l"]).arg(&self.folder).status());
        drop(fs::remove_dir(&self.folder));
    }
}
