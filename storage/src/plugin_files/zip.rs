//! The directory of a zip archive, read strictly.
//!
//! Readers of zip archives disagree about archives with two directories, repeated names or headers that contradict each
//! other, and a scan may see other files than the installation. Such archives are refused, so this module reads the
//! directory itself: libraries keep the last of repeated names, and skip what is before the archive.

use std::io::{self, Read, Seek, SeekFrom};

/// Size of the end of the directory without its comment, in bytes.
const END_BYTES: u64 = 22;
const COMMENT_BYTES_MAX: u64 = 65_535;
/// Size of an entry in the directory without name, extra fields and comment, in bytes.
const ENTRY_BYTES: usize = 46;
/// Size of the header before a file without name and extra fields, in bytes.
const HEADER_BYTES: usize = 30;
/// Maximum size of the directory, in bytes.
const DIRECTORY_BYTES_MAX: u64 = 8 << 20;

/// Why a file cannot be used as a zip archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ZipFault {
    #[error("the file is not a zip archive")]
    NotAZip,
    #[error("the archive is damaged, or something was added to it")]
    Damaged,
    #[error("the archive has several parts")]
    SeveralParts,
    #[error("the archive is too large: ZIP64 is not supported")]
    Zip64,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub(super) enum DirectoryError {
    Fault(ZipFault),
    TooMany {
        /// The first entry beyond the maximum.
        entry: String,
    },
    Io(io::Error),
}

impl From<io::Error> for DirectoryError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Fault(ZipFault::Damaged),
            _ => Self::Io(error),
        }
    }
}

/// The directory of an archive.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) entries: Vec<Entry>,
    /// Where the directory begins; the files are before it.
    pub(super) start: u64,
}

/// A file or folder in an archive.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) method: Method,
    pub(super) is_encrypted: bool,
    pub(super) is_executable: bool,
    pub(super) checksum: u32,
    /// Size in the archive, in bytes.
    pub(super) compressed: u64,
    /// Unpacked size, in bytes.
    pub(super) size: u64,
    pub(super) header_start: u64,
    flags: u16,
    method_number: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
    Other,
}

/// A contradiction between the directory and the header before a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderFault {
    Missing,
    Contradiction,
    Size,
}

impl HeaderFault {
    /// Worded to follow the name of the entry.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Missing => "has no content",
            Self::Contradiction => "contradicts its own header",
            Self::Size => "has a false size",
        }
    }
}

impl Entry {
    /// Returns the name for people.
    pub(super) fn display(&self) -> String {
        String::from_utf8_lossy(&self.name).chars().take(200).collect()
    }
}

/// Reads the directory of an archive with at most `entries_max` entries.
pub(super) fn read_directory<R: Read + Seek>(
    archive: &mut R,
    entries_max: usize,
) -> Result<Directory, DirectoryError> {
    let (end_start, end) = read_end(archive)?;
    let number = |at| u16_at(&end, at);
    let sentinel = number(8) == u16::MAX || u32_at(&end, 12) == u32::MAX || u32_at(&end, 16) == u32::MAX;
    if sentinel {
        return Err(DirectoryError::Fault(ZipFault::Zip64));
    }
    if number(4) != 0 || number(6) != 0 || number(8) != number(10) {
        return Err(DirectoryError::Fault(ZipFault::SeveralParts));
    }
    let (size, start) = (u64::from(u32_at(&end, 12)), u64::from(u32_at(&end, 16)));
    // Otherwise something is before the archive or after the directory.
    if start + size != end_start || size > DIRECTORY_BYTES_MAX {
        return Err(DirectoryError::Fault(ZipFault::Damaged));
    }
    archive.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    archive.read_exact(&mut bytes)?;
    let n_entries = usize::from(number(8));
    let mut rest = bytes.as_slice();
    let mut entries = Vec::with_capacity(n_entries.min(entries_max));
    for index in 0..n_entries {
        let (entry, after) = read_entry(rest).ok_or(DirectoryError::Fault(ZipFault::Damaged))?;
        if index == entries_max {
            return Err(DirectoryError::TooMany { entry: entry.display() });
        }
        entries.push(entry);
        rest = after;
    }
    match rest.is_empty() {
        true => Ok(Directory { entries, start }),
        false => Err(DirectoryError::Fault(ZipFault::Damaged)),
    }
}

/// Finds the end of the directory, and returns its place and its bytes.
fn read_end<R: Read + Seek>(archive: &mut R) -> Result<(u64, Vec<u8>), DirectoryError> {
    let not_a_zip = DirectoryError::Fault(ZipFault::NotAZip);
    let n_bytes = archive.seek(SeekFrom::End(0))?;
    if n_bytes < END_BYTES {
        return Err(not_a_zip);
    }
    let tail_start = n_bytes.saturating_sub(END_BYTES + COMMENT_BYTES_MAX);
    archive.seek(SeekFrom::Start(tail_start))?;
    let mut tail = Vec::new();
    archive.take(END_BYTES + COMMENT_BYTES_MAX).read_to_end(&mut tail)?;
    let last = tail.len().checked_sub(22).ok_or(DirectoryError::Fault(ZipFault::NotAZip))?;
    let is_end = |at: &usize| {
        let comment = usize::from(u16_at(&tail[*at..], 20));
        tail[*at..].starts_with(b"PK\x05\x06") && at + 22 + comment == tail.len()
    };
    // A comment can look like an end; an archive with two readings is refused.
    let mut ends = (0..=last).filter(is_end);
    match (ends.next(), ends.next()) {
        (Some(at), None) => Ok((tail_start + at as u64, tail.split_off(at))),
        (Some(_), Some(_)) => Err(DirectoryError::Fault(ZipFault::Damaged)),
        (None, _) => Err(not_a_zip),
    }
}

/// Reads an entry of the directory, and returns what is after it.
fn read_entry(bytes: &[u8]) -> Option<(Entry, &[u8])> {
    let head = bytes.get(..ENTRY_BYTES).filter(|it| it.starts_with(b"PK\x01\x02"))?;
    let [name_len, extra_len, comment_len] = [28, 30, 32].map(|at| usize::from(u16_at(head, at)));
    let name = bytes.get(ENTRY_BYTES..ENTRY_BYTES + name_len)?;
    let rest = bytes.get(ENTRY_BYTES + name_len + extra_len + comment_len..)?;
    let (flags, method_number) = (u16_at(head, 8), u16_at(head, 10));
    let sizes = (u32_at(head, 20), u32_at(head, 24), u32_at(head, 42));
    // Sizes of ZIP64 are elsewhere; other parts of an archive are other files.
    if sizes.0 == u32::MAX || sizes.1 == u32::MAX || sizes.2 == u32::MAX || u16_at(head, 34) != 0 {
        return None;
    }
    let mode = u32_at(head, 38) >> 16;
    let entry = Entry {
        name: name.to_vec(),
        kind: match mode & 0o170_000 {
            0 | 0o100_000 => Kind::File,
            0o040_000 => Kind::Folder,
            0o120_000 => Kind::Link,
            _ => Kind::Device,
        },
        method: match method_number {
            0 => Method::Stored,
            8 => Method::Deflated,
            _ => Method::Other,
        },
        // Bit 0: encrypted; bit 6: strongly; bit 13: the directory too. Method 99 is AES.
        is_encrypted: flags & 0b0010_0000_0100_0001 != 0 || method_number == 99,
        is_executable: mode & 0o111 != 0,
        checksum: u32_at(head, 16),
        compressed: sizes.0.into(),
        size: sizes.1.into(),
        header_start: sizes.2.into(),
        flags,
        method_number,
    };
    Some((entry, rest))
}

/// Returns where the content of an entry begins, after the header before it.
pub(super) fn content_start<R: Read + Seek>(
    archive: &mut R,
    entry: &Entry,
) -> io::Result<Result<u64, HeaderFault>> {
    archive.seek(SeekFrom::Start(entry.header_start))?;
    let mut head = [0; HEADER_BYTES];
    if let Err(error) = archive.read_exact(&mut head) {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(Err(HeaderFault::Missing)),
            _ => Err(error),
        };
    }
    if !head.starts_with(b"PK\x03\x04") {
        return Ok(Err(HeaderFault::Missing));
    }
    let (name_len, extra_len) = (u16_at(&head, 26), u16_at(&head, 28));
    let mut name = Vec::new();
    archive.take(name_len.into()).read_to_end(&mut name)?;
    if name != entry.name
        || u16_at(&head, 8) != entry.method_number
        || u16_at(&head, 6) & 1 != entry.flags & 1
    {
        return Ok(Err(HeaderFault::Contradiction));
    }
    let sizes = (u32_at(&head, 18), u32_at(&head, 22));
    let is_said = |said: u32, size: u64| u64::from(said) == size || said == u32::MAX;
    // With bit 3 the sizes are after the content.
    let is_later = u16_at(&head, 6) & 0b1000 != 0 && sizes == (0, 0);
    let is_true = is_later || is_said(sizes.0, entry.compressed) && is_said(sizes.1, entry.size);
    if !is_true {
        return Ok(Err(HeaderFault::Size));
    }
    Ok(Ok(entry.header_start + HEADER_BYTES as u64 + u64::from(name_len) + u64::from(extra_len)))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some([low, high]) => u16::from_le_bytes([*low, *high]),
        _ => 0,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}
