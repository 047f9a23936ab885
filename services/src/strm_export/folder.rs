//! The folder of an export. Every file is reached from the folder component by component, without following a link, so that
//! nothing outside is ever read, written or removed, whatever somebody puts into the folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// Files of an export are small; a larger one is somebody else's.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A manifest of two million files.
const MANIFEST_BYTES_MAX: u64 = 512 << 20;
/// Media servers run as other users.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
/// Name of a file that is being written.
const UNFINISHED: &str = ".headwater-part~";

/// An open folder.
pub(super) struct ExportFolder {
    root: OwnedFd,
    /// The folders that lead to the file that was used last, by name.
    open: Vec<(String, OwnedFd)>,
}

/// The thing at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Missing,
    /// A file of this size in bytes.
    File(u64),
    /// A link, a folder or another thing, or a path that leads through something other than folders.
    Other,
}

impl ExportFolder {
    /// Opens a folder, or creates it, and locks it until it is closed.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another export uses the folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let root: OwnedFd = File::open(path)?.into();
        flock(&root, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { root, open: Vec::new() })
    }

    /// Returns what is at a path. Its folders are created if `creates` is true.
    pub(super) fn entry(&mut self, path: &str, creates: bool) -> io::Result<Entry> {
        let Some((folder, name)) = self.parent(path, creates)? else { return Ok(Entry::Other) };
        let Some(folder) = folder else { return Ok(Entry::Missing) };
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) if FileType::from_raw_mode(about.st_mode) == FileType::RegularFile => {
                Ok(Entry::File(u64::try_from(about.st_size).unwrap_or(u64::MAX)))
            }
            Ok(_) => Ok(Entry::Other),
            Err(Errno::NOENT) => Ok(Entry::Missing),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the content of a file; `None` if it is something else or too large for one of an export.
    pub(super) fn read(&mut self, path: &str) -> io::Result<Option<Vec<u8>>> {
        self.read_up_to(path, FILE_BYTES_MAX)
    }

    /// Returns the content of a file of any reasonable size: the manifest.
    pub(super) fn read_whole(&mut self, path: &str) -> io::Result<Option<Vec<u8>>> {
        self.read_up_to(path, MANIFEST_BYTES_MAX)
    }

    fn read_up_to(&mut self, path: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let Some((Some(folder), name)) = self.parent(path, false)? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut content = Vec::new();
        file.take(bytes_max + 1).read_to_end(&mut content)?;
        Ok((content.len() as u64 <= bytes_max).then_some(content))
    }

    /// Writes a file whole, in place of an earlier one. Returns false if its path leads through something other than folders.
    pub(super) fn write(&mut self, path: &str, content: &[u8]) -> io::Result<bool> {
        let Some((Some(folder), name)) = self.parent(path, true)? else { return Ok(false) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(folder, UNFINISHED, flags, FILE_MODE);
        let created = match create() {
            // Left over from a crash.
            Err(Errno::EXIST) => {
                unlinkat(folder, UNFINISHED, AtFlags::empty())?;
                create()
            }
            created => created,
        };
        let mut file = File::from(created?);
        let written = file.write_all(content).and_then(|()| {
            renameat(folder, UNFINISHED, folder, name)?;
            Ok(true)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = unlinkat(folder, UNFINISHED, AtFlags::empty());
        }
        written
    }

    /// Removes a file, and the folders above it that are then empty.
    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        let Some((Some(folder), name)) = self.parent(path, false)? else { return Ok(()) };
        unlinkat(folder, name, AtFlags::empty())?;
        while let Some((name, _)) = self.open.pop() {
            let above = self.open.last().map_or(self.root.as_fd(), |it| it.1.as_fd());
            if unlinkat(above, name.as_str(), AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the folder of a path and the name in it; `Some((None, _))` if the folder does not exist and `creates` is
    /// false, and `None` if the path is not one of an export or leads through something other than folders.
    fn parent<'a>(
        &mut self,
        path: &'a str,
        creates: bool,
    ) -> io::Result<Option<(Option<BorrowedFd<'_>>, &'a str)>> {
        let is_plain = |it: &str| !matches!(it, "" | "." | "..") && !it.contains('\0');
        if !path.split('/').all(is_plain) {
            return Ok(None);
        }
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let wanted = || folders.split('/').filter(|it| !it.is_empty());
        let n_same = wanted().zip(&self.open).take_while(|(wanted, open)| *wanted == open.0).count();
        self.open.truncate(n_same);
        for folder in wanted().skip(n_same) {
            let above = self.open.last().map_or(self.root.as_fd(), |it| it.1.as_fd());
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match openat(above, folder, flags, Mode::empty()) {
                Err(Errno::NOENT) if creates => {
                    mkdirat(above, folder, FOLDER_MODE)?;
                    openat(above, folder, flags, Mode::empty())
                }
                Err(Errno::NOENT) => return Ok(Some((None, name))),
                opened => opened,
            };
            match opened {
                Ok(opened) => self.open.push((folder.to_owned(), opened)),
                Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let folder = self.open.last().map_or(self.root.as_fd(), |it| it.1.as_fd());
        Ok(Some((Some(folder), name)))
    }
}
