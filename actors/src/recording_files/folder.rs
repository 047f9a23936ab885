//! The folder of recordings. Every file is reached from the folder component by component, without following a link, and no
//! file is ever overwritten.
//!
//! A marker file shows that the folder is the right one: the mount point of a disk that is not mounted lacks it, so nothing
//! is written there, and the recordings on the disk keep their records.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::ids::RecordingId;
use domain::recording::RecordedFile;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fsync, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use storage::create_folder;

/// Name of the marker file.
const MARKER: &str = ".headwater-recordings";
/// Hidden folder with the indexes of recordings, and with files while they are made, by id.
const INDEXES: &str = ".headwater-indexes";
/// Hidden folder with the parts of the copy that is being made.
pub(crate) const PARTS: &str = ".headwater-parts";
/// Media servers run as other users.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
/// How many names are tried for a file whose name exists.
const NAMES_MAX: u32 = 10_000;

/// The folder of recordings, which is opened at each use.
#[derive(Clone, Debug)]
pub struct RecordingsFolder {
    root: PathBuf,
    /// Name of the node of a cluster whose folder it is.
    node: Option<Arc<str>>,
}

/// A disk, with sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    /// The number by which the system knows it.
    pub(crate) device: u64,
    pub(crate) bytes: u64,
    pub(crate) available: u64,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("the folder of recordings is missing its file {MARKER}: is its disk mounted?")]
    NotMarked,
    #[error("the folder of recordings cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("the path of the recording leads out of its folder")]
    Path,
}

impl From<Errno> for FolderError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl RecordingsFolder {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), node: None }
    }

    /// Makes it the folder of a node of a cluster, which has only the files of this node.
    pub fn with_node(self, node: Option<&str>) -> Self {
        Self { node: node.map(Arc::from), ..self }
    }

    /// Returns the name of the node whose folder it is; `None` without a cluster.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Returns whether a file belongs to this folder, and not to that of another node. One that names no node is from a time
    /// before the cluster.
    pub fn has(&self, file: &RecordedFile) -> bool {
        match (&self.node, &file.node) {
            (Some(own), Some(node)) => **own == **node,
            (None, _) | (_, None) => true,
        }
    }

    /// Returns the path of a file below the folder, for people.
    pub fn display(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }

    /// Returns the path of the folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folder and its marker. To be called only while no recording has a file here, because a folder without its
    /// marker is otherwise one whose disk is not mounted.
    pub(crate) fn mark(&self) -> Result<(), FolderError> {
        create_folder(&self.root, 0o777)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = self.open_root()?;
        openat(&root, MARKER, flags, FILE_MODE)?;
        fsync(root)?;
        Ok(())
    }

    /// Returns whether the folder has its marker. Blocks.
    pub fn is_marked(&self) -> bool {
        self.marked_root().is_ok()
    }

    /// Returns the room on the disk of the folder in bytes, if the system says it. Blocks.
    pub(crate) fn available(&self) -> Option<u64> {
        let found = rustix::fs::fstatvfs(self.marked_root().ok()?).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Returns the disk of the folder; `None` if the folder lacks its marker, or the system does not say it. Blocks.
    pub(crate) fn disk(&self) -> Option<Disk> {
        let root = self.marked_root().ok()?;
        let (device, found) = (rustix::fs::fstat(&root).ok()?.st_dev, rustix::fs::fstatvfs(&root).ok()?);
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Disk { device, bytes: bytes(found.f_blocks), available: bytes(found.f_bavail) })
    }

    /// Returns the names of everything in a folder below this one, or in this one for an empty path. None if it does not
    /// exist.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, FolderError> {
        let inside = if path.is_empty() { "name".to_owned() } else { format!("{path}/name") };
        let Some((folder, _)) = parent(self.marked_root()?, &inside, false)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Creates a new file. Returns it with its path, which ends with a number if the name existed.
    pub(crate) fn create(&self, stem: &str, extension: &str) -> Result<(File, String), FolderError> {
        let root = self.marked_root()?;
        let (folder, name) = parent(root, stem, true)?.ok_or(FolderError::Path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for n in 1..=NAMES_MAX {
            let number = if n == 1 { String::new() } else { format!(" ({n})") };
            match openat(&folder, format!("{name}{number}.{extension}"), flags, FILE_MODE) {
                Ok(file) => {
                    // Otherwise a power cut can take the name, and the file with it.
                    fsync(&folder)?;
                    return Ok((file.into(), format!("{stem}{number}.{extension}")));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(FolderError::Io(io::ErrorKind::AlreadyExists.into()))
    }

    /// Returns the status of what is at a path, of a link that of the link itself. `None` if nothing is there.
    pub(crate) fn status(&self, path: &str) -> Result<Option<Stat>, FolderError> {
        let Some((folder, name)) = parent(self.marked_root()?, path, false)? else { return Ok(None) };
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file to continue it. `None` if it does not exist.
    pub(crate) fn reopen(&self, path: &str) -> Result<Option<File>, FolderError> {
        self.open_with(path, OFlags::RDWR)
    }

    /// Opens a file to read it. `None` if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be used. Blocks.
    pub fn open(&self, path: &str) -> io::Result<Option<File>> {
        self.open_with(path, OFlags::RDONLY).map_err(|error| match error {
            FolderError::Io(error) => error,
            error => io::Error::other(error.to_string()),
        })
    }

    /// Writes a new file, whose path ends with a number if the name existed. Returns its path.
    pub(crate) fn write_new(
        &self,
        stem: &str,
        extension: &str,
        content: &[u8],
    ) -> Result<String, FolderError> {
        let (mut file, path) = self.create(stem, extension)?;
        match file.write_all(content).and_then(|()| file.sync_all()) {
            Ok(()) => Ok(path),
            Err(error) => {
                self.remove(&path)?;
                Err(error.into())
            }
        }
    }

    /// Returns the absolute path of an existing file without links, for a program that reads it.
    pub(crate) fn real_path(&self, path: &str) -> Result<Option<PathBuf>, FolderError> {
        let Some(file) = self.open_with(path, OFlags::RDONLY)? else { return Ok(None) };
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(Some(std::fs::read_link(link)?))
    }

    /// Removes a file, and the folders above it that are then empty. Returns whether it existed.
    pub(crate) fn remove(&self, path: &str) -> Result<bool, FolderError> {
        let root = self.marked_root()?;
        let Some((folder, name)) = parent(root, path, false)? else { return Ok(false) };
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let mut above = path;
        while let Some((rest, _)) = above.rsplit_once('/') {
            above = rest;
            let Some((folder, name)) = parent(self.marked_root()?, above, false)? else { break };
            // Fails if the folder has other files.
            if unlinkat(folder, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(true)
    }

    /// Removes the parts of a copy with their folder, also those that a process left behind that was killed. Blocks.
    pub(crate) fn remove_parts(&self) -> Result<(), FolderError> {
        let root = self.marked_root()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match openat(&root, PARTS, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                unlinkat(&folder, name, AtFlags::empty())?;
            }
        }
        Ok(unlinkat(&root, PARTS, AtFlags::REMOVEDIR)?)
    }

    /// Opens the index of the recording with this id. With `creates` it is created if it does not exist.
    pub(crate) fn open_index(&self, id: RecordingId, creates: bool) -> Result<Option<File>, FolderError> {
        let path = format!("{INDEXES}/{id}");
        let Some((folder, name)) = parent(self.marked_root()?, &path, creates)? else { return Ok(None) };
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = if creates { flags | OFlags::CREATE } else { flags };
        match openat(folder, name, flags, FILE_MODE) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the file that is made beside a recording, empty.
    pub(crate) fn create_beside(&self, id: RecordingId) -> Result<File, FolderError> {
        let path = beside(id);
        let (folder, name) = parent(self.marked_root()?, &path, true)?.ok_or(FolderError::Path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(folder, name, flags, FILE_MODE)?.into())
    }

    /// Opens the file beside a recording to read it. `None` if it does not exist.
    pub(crate) fn open_beside(&self, id: RecordingId) -> Result<Option<File>, FolderError> {
        self.open_with(&beside(id), OFlags::RDONLY)
    }

    /// Puts the file beside a recording in the place of the file at `path`, in one step.
    pub(crate) fn replace_with_beside(&self, id: RecordingId, path: &str) -> Result<(), FolderError> {
        let from = beside(id);
        let (from_folder, from) = parent(self.marked_root()?, &from, false)?.ok_or(FolderError::Path)?;
        let (to_folder, to) = parent(self.marked_root()?, path, false)?.ok_or(FolderError::Path)?;
        renameat(&from_folder, from, &to_folder, to)?;
        fsync(&to_folder)?;
        Ok(())
    }

    /// Removes the file beside a recording. Returns whether it existed.
    pub(crate) fn remove_beside(&self, id: RecordingId) -> Result<bool, FolderError> {
        self.remove(&beside(id))
    }

    /// Removes the index of a recording, if it has one.
    pub(crate) fn remove_index(&self, id: RecordingId) -> Result<bool, FolderError> {
        self.remove(&format!("{INDEXES}/{id}"))
    }

    fn open_with(&self, path: &str, access: OFlags) -> Result<Option<File>, FolderError> {
        let root = self.marked_root()?;
        let Some((folder, name)) = parent(root, path, false)? else { return Ok(None) };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(if file.metadata()?.is_file() { Some(file) } else { None })
    }

    fn open_root(&self) -> io::Result<OwnedFd> {
        open_folder(&self.root)
    }

    fn marked_root(&self) -> Result<OwnedFd, FolderError> {
        let root = match self.open_root() {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FolderError::NotMarked),
            Err(error) => return Err(error.into()),
        };
        match statat(&root, MARKER, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(root),
            Err(Errno::NOENT) => Err(FolderError::NotMarked),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the path of the file that is made beside a recording.
fn beside(id: RecordingId) -> String {
    format!("{INDEXES}/{id}.ts")
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Returns the folder of a path and the name in it; `None` if the folder does not exist and `creates` is false.
fn parent(root: OwnedFd, path: &str, creates: bool) -> Result<Option<(OwnedFd, &str)>, FolderError> {
    let is_plain = |it: &str| !matches!(it, "" | "." | "..") && !it.contains('\0');
    if !path.split('/').all(is_plain) {
        return Err(FolderError::Path);
    }
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut folder = root;
    for below in folders.split('/').filter(|it| !it.is_empty()) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat(folder.as_fd(), below, flags, Mode::empty()) {
            Err(Errno::NOENT) if creates => {
                match mkdirat(folder.as_fd(), below, FOLDER_MODE) {
                    // Another recording has just created it.
                    Ok(()) => fsync(folder.as_fd())?,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(folder.as_fd(), below, flags, Mode::empty())
            }
            Err(Errno::NOENT) => return Ok(None),
            opened => opened,
        };
        folder = match opened {
            Ok(opened) => opened,
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(FolderError::Path),
            Err(error) => return Err(error.into()),
        };
    }
    Ok(Some((folder, name)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, RecordingsFolder) {
        let parent = tempfile::tempdir().unwrap();
        let folder = RecordingsFolder::new(parent.path().join("recordings"));
        folder.mark().unwrap();
        (parent, folder)
    }

    /// Holds T-dvr.7.
    #[test]
    fn files_of_the_same_name_get_numbers_and_none_is_overwritten() {
        let (_parent, folder) = folder();
        let paths: Vec<_> = (0..3).map(|_| folder.create("Show/One", "ts").unwrap().1).collect();
        assert_eq!(paths, ["Show/One.ts", "Show/One (2).ts", "Show/One (3).ts"]);
        assert!(folder.remove("Show/One (2).ts").unwrap());
        assert!(!folder.remove("Show/One (2).ts").unwrap());
        assert!(folder.open("Show/One.ts").unwrap().is_some());
        assert!(folder.open("Show/One (2).ts").unwrap().is_none());
    }

    #[test]
    fn an_empty_folder_goes_with_its_last_file() {
        let (parent, folder) = folder();
        folder.create("A/B/One", "ts").unwrap();
        folder.create("A/Two", "ts").unwrap();
        folder.remove("A/B/One.ts").unwrap();
        let root = parent.path().join("recordings");
        assert!(!root.join("A/B").exists() && root.join("A/Two.ts").exists());
        folder.remove("A/Two.ts").unwrap();
        assert!(!root.join("A").exists() && folder.is_marked());
    }

    #[test]
    fn a_folder_tells_its_names_and_its_disk() {
        let (_parent, folder) = folder();
        folder.create("A/One", "ts").unwrap();
        folder.create("A/Two", "ts").unwrap();
        let named = |path: &str| {
            let mut names = folder.list(path).unwrap();
            names.retain(|it| !it.starts_with('.'));
            names.sort();
            names
        };
        assert_eq!(named(""), ["A"]);
        assert_eq!(named("A"), ["One.ts", "Two.ts"]);
        assert!(named("B").is_empty() && folder.list("../A").is_err());
        assert!(folder.disk().is_some_and(|it| it.bytes >= it.available));
    }

    #[test]
    fn no_link_leads_out_of_the_folder() {
        let (parent, folder) = folder();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.ts"), "x").unwrap();
        symlink(&outside, parent.path().join("recordings/Show")).unwrap();
        symlink(outside.join("secret.ts"), parent.path().join("recordings/link.ts")).unwrap();
        for path in ["Show/secret.ts", "link.ts", "../outside/secret.ts", "/etc/passwd", "a//b"] {
            assert!(!matches!(folder.open(path), Ok(Some(_))), "{path}");
            assert!(!matches!(folder.reopen(path), Ok(Some(_))), "{path}");
        }
        assert!(folder.create("Show/new", "ts").is_err());
        assert!(folder.remove("Show/secret.ts").is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(outside.join("secret.ts")).unwrap(), "x");
    }

    #[test]
    fn a_folder_without_its_marker_is_not_written_to() {
        let (parent, folder) = folder();
        folder.create("One", "ts").unwrap();
        let root = parent.path().join("recordings");
        fs::rename(&root, parent.path().join("unmounted")).unwrap();
        fs::create_dir(&root).unwrap();
        assert!(matches!(folder.create("Two", "ts"), Err(FolderError::NotMarked)));
        assert!(matches!(folder.remove("One.ts"), Err(FolderError::NotMarked)));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }
}
