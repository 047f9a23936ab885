//! Unpacking of plugin archives. The content is untrusted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::plugin::{
    ArchiveNames, EntryName, ManifestError, NameFault, PluginKey, PluginRoot, RootFault, is_left_out,
};
use flate2::read::DeflateDecoder;

use super::zip::{self, Entry, Kind, Method, ZipFault};

/// Maximum number of files and folders in an archive.
pub const ENTRIES_MAX: usize = 2_000;
/// Maximum size of all unpacked files, in bytes.
pub const UNPACKED_BYTES_MAX: u64 = 200 << 20;
const BUFFER_BYTES: usize = 64 * 1024;

/// Why an archive is refused. Nothing of it is kept then.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0}")]
    Zip(#[from] ZipFault),
    #[error("the entry {entry:?} {fault}")]
    Name { entry: String, fault: NameFault },
    #[error("the entry {entry:?} {reason}")]
    Entry { entry: String, reason: &'static str },
    #[error("the entries {first:?} and {second:?} overlap")]
    Overlap { first: String, second: String },
    #[error("the entry {entry:?} exceeds the maximum of {ENTRIES_MAX} files")]
    TooMany { entry: String },
    #[error("with the entry {entry:?} the files exceed the maximum of {} MiB", UNPACKED_BYTES_MAX >> 20)]
    TooLarge { entry: String },
    #[error("{0}")]
    Root(#[from] RootFault),
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    #[error("the plugin has no code: plugin.py, __init__.py, or a command in its manifest")]
    NoCode,
    #[error("the archive cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

impl ArchiveError {
    /// States whether the archive is at fault, and not the disk.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Io(_))
    }
}

/// Where the entries of an archive are written.
pub trait ArchiveTarget {
    type File: Write;

    /// Creates a folder unless it exists, and those that it is in.
    ///
    /// # Errors
    /// It cannot be created.
    fn folder(&mut self, path: &[String]) -> io::Result<()>;

    /// Creates a file in a folder that exists.
    ///
    /// # Errors
    /// It cannot be created, or exists.
    fn file(&mut self, path: &[String], is_executable: bool) -> io::Result<Self::File>;
}

/// Unpacks the one plugin of an archive, and returns its key. Other files of the archive are checked, but not written.
///
/// # Errors
/// The archive is refused, or cannot be read or written. The target may then have a part of the files.
pub fn unpack<R: Read + Seek, T: ArchiveTarget>(
    archive: R,
    file_name: &str,
    target: &mut T,
) -> Result<PluginKey, ArchiveError> {
    let mut archive = BufReader::with_capacity(BUFFER_BYTES, archive);
    let directory = zip::read_directory(&mut archive, ENTRIES_MAX).map_err(|fault| match fault {
        zip::DirectoryError::TooMany { entry } => ArchiveError::TooMany { entry },
        zip::DirectoryError::Fault(fault) => ArchiveError::Zip(fault),
        zip::DirectoryError::Io(error) => ArchiveError::Io(error),
    })?;
    let names = check_names(&directory.entries)?;
    check_entries(&directory.entries)?;
    let starts = check_places(&mut archive, &directory)?;
    let root = PluginRoot::find(names.iter(), file_name)?;
    for ((entry, name), start) in directory.entries.iter().zip(&names).zip(starts) {
        let Some(path) = root.below(name).filter(|_| !is_left_out(name)) else { continue };
        if name.is_folder {
            target.folder(path)?;
            continue;
        }
        if let Some((_, folder)) = path.split_last().filter(|it| !it.1.is_empty()) {
            target.folder(folder)?;
        }
        archive.seek(SeekFrom::Start(start))?;
        let file = target.file(path, entry.is_executable)?;
        unpack_entry(&mut archive, entry, file)?;
    }
    Ok(root.key)
}

fn check_names(entries: &[Entry]) -> Result<Vec<EntryName>, ArchiveError> {
    let mut names = ArchiveNames::default();
    let add = |entry: &Entry| {
        names.add(&entry.name).map_err(|fault| ArchiveError::Name { entry: entry.display(), fault })
    };
    entries.iter().map(add).collect()
}

/// Checks kinds, encryption and declared sizes.
fn check_entries(entries: &[Entry]) -> Result<(), ArchiveError> {
    let mut n_bytes: u64 = 0;
    for entry in entries {
        let refuse = |reason| ArchiveError::Entry { entry: entry.display(), reason };
        let is_folder = entry.name.ends_with(b"/");
        match entry.kind {
            Kind::Link => return Err(refuse("is a link")),
            Kind::Device => return Err(refuse("is a device, a pipe or a socket")),
            Kind::Folder if !is_folder => return Err(refuse("is a folder with the name of a file")),
            Kind::Folder | Kind::File => {}
        }
        if entry.is_encrypted {
            return Err(refuse("is encrypted"));
        }
        if entry.method == Method::Other {
            return Err(refuse("is compressed in a way that is not supported; use deflate"));
        }
        if is_folder && entry.size > 0 {
            return Err(refuse("is a folder with content"));
        }
        if entry.method == Method::Stored && entry.size != entry.compressed {
            return Err(refuse("has a false size"));
        }
        n_bytes = n_bytes.saturating_add(entry.size);
        if n_bytes > UNPACKED_BYTES_MAX {
            return Err(ArchiveError::TooLarge { entry: entry.display() });
        }
    }
    Ok(())
}

/// Checks that entries do not overlap and agree with their own headers. Returns where the content of each begins.
fn check_places<R: Read + Seek>(
    archive: &mut R,
    directory: &zip::Directory,
) -> Result<Vec<u64>, ArchiveError> {
    let mut starts = Vec::with_capacity(directory.entries.len());
    let mut extents = Vec::with_capacity(directory.entries.len());
    for entry in &directory.entries {
        let refuse = |reason| ArchiveError::Entry { entry: entry.display(), reason };
        let start = zip::content_start(archive, entry)?.map_err(|fault| refuse(fault.reason()))?;
        let end = start.checked_add(entry.compressed).filter(|it| *it <= directory.start);
        let end = end.ok_or_else(|| refuse("goes beyond the end of the archive"))?;
        extents.push((entry.header_start, end, entry));
        starts.push(start);
    }
    extents.sort_unstable_by_key(|it| (it.0, it.1));
    for pair in extents.windows(2) {
        if let [(_, end, first), (start, _, second)] = pair
            && start < end
        {
            return Err(ArchiveError::Overlap { first: first.display(), second: second.display() });
        }
    }
    Ok(starts)
}

/// Unpacks one file. Bytes are counted while they are unpacked: the size in the archive is a claim.
fn unpack_entry(archive: &mut impl Read, entry: &Entry, mut file: impl Write) -> Result<(), ArchiveError> {
    let refuse = |reason| ArchiveError::Entry { entry: entry.display(), reason };
    let mut sum = crc32fast::Hasher::new();
    let compressed = archive.take(entry.compressed);
    let mut n_bytes: u64 = 0;
    let mut copy = |content: &mut dyn Read| -> Result<(), ArchiveError> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let n_read = match content.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n_read) => n_read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_damage(&error) => return Err(refuse("is damaged")),
                Err(error) => return Err(error.into()),
            };
            n_bytes += n_read as u64;
            if n_bytes > entry.size {
                return Err(refuse("has a false size"));
            }
            sum.update(&buffer[..n_read]);
            file.write_all(&buffer[..n_read])?;
        }
    };
    let is_whole = match entry.method {
        Method::Deflated => {
            let mut content = DeflateDecoder::new(compressed);
            copy(&mut content)?;
            content.total_in() == entry.compressed
        }
        Method::Stored | Method::Other => {
            copy(&mut { compressed })?;
            true
        }
    };
    if n_bytes != entry.size || !is_whole {
        return Err(refuse("has a false size"));
    }
    if sum.finalize() != entry.checksum {
        return Err(refuse("is damaged: its checksum is wrong"));
    }
    file.flush()?;
    Ok(())
}

/// States whether the compressed bytes are at fault.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

/// A folder that an archive is unpacked into.
#[derive(Debug)]
pub(super) struct UnpackFolder<'a> {
    root: &'a Path,
}

impl<'a> UnpackFolder<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    fn path(&self, path: &[String]) -> PathBuf {
        path.iter().fold(self.root.to_owned(), |all, part| all.join(part))
    }
}

impl ArchiveTarget for UnpackFolder<'_> {
    type File = File;

    fn folder(&mut self, path: &[String]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.path(path))
    }

    fn file(&mut self, path: &[String], is_executable: bool) -> io::Result<File> {
        let mode = if is_executable { 0o700 } else { 0o600 };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(self.path(path))
    }
}
