//! The beginning and the end of films on disk, so that they outlive a restart.
//!
//! What a session read is written when it is over, as one file per film, and read again when the next session begins
//! without anything in memory. A checksum shows damage. All methods block.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::cache::{EDGE_BYTES, FileVersion};
use crate::clock::now_ms;

/// Extension of a file that is being written.
const UNFINISHED: &str = "part~";
/// Maximum length of a file: both edges, and the head.
const FILE_BYTES_MAX: u64 = 2 * EDGE_BYTES + (1 << 20);
/// Length of the checksum.
const SUM_BYTES: usize = 32;
/// Length of the number that tells the length of the head.
const NUMBER_BYTES: usize = 4;

/// A folder with the edges of films.
pub(crate) struct FilmDisk {
    folder: PathBuf,
    bytes_max: u64,
    /// One file is written at a time.
    writing: Mutex<()>,
}

/// The contents of a file besides the bytes of the film.
#[derive(Serialize, Deserialize)]
struct Head {
    length: u64,
    validator: String,
    /// Position and length of each part, in the order of their bytes.
    parts: Vec<(u64, usize)>,
}

impl FilmDisk {
    /// Creates the value; the folder is created when it is first written to.
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, bytes_max, writing: Mutex::default() }
    }

    /// Writes parts of a film. A film without a validator is not kept: nothing would show that it is another one later.
    pub(crate) fn save(&self, version: &FileVersion, parts: &[(u64, Bytes)]) -> io::Result<()> {
        let Some(validator) = version.validator.clone() else { return Ok(()) };
        let places = parts.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        let head = serde_json::to_vec(&Head { length: version.length, validator, parts: places })?;
        let number = u32::try_from(head.len()).map_err(io::Error::other)?.to_le_bytes();
        let pieces = || [&number[..], &head[..]].into_iter().chain(parts.iter().map(|it| &it.1[..]));
        let mut sum = Sha256::new();
        pieces().for_each(|it| sum.update(it));
        let _writing = self.writing.lock();
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.path(version.file);
        let unfinished = path.with_extension(UNFINISHED);
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(&sum.finalize())?;
        for piece in pieces() {
            file.write_all(piece)?;
        }
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        self.trim()
    }

    /// Reads what is kept of a film. A damaged file is deleted.
    pub(crate) fn load(&self, file: Uuid) -> Option<(FileVersion, Vec<(u64, Bytes)>)> {
        let path = self.path(file);
        let opened = File::options().read(true).write(true).open(&path).ok()?;
        let is_possible = opened.metadata().is_ok_and(|it| it.len() <= FILE_BYTES_MAX);
        let content = is_possible.then(|| fs::read(&path).ok()).flatten();
        let Some((head, parts)) = content.and_then(|it| decode(Bytes::from(it))) else {
            // The next session writes it again.
            let _ = fs::remove_file(&path);
            return None;
        };
        // The film that was not watched for the longest time is deleted first; without this, it is a little earlier.
        let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(now_ms()).unwrap_or_default());
        let _ = opened.set_modified(now);
        Some((FileVersion { file, length: head.length, validator: Some(head.validator) }, parts))
    }

    /// Deletes the oldest files until the rest is at most the allowed size, and what is left of interrupted writes.
    fn trim(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (path, metadata) = (entry.path(), entry.metadata()?);
            if path.extension().is_some_and(|it| it == UNFINISHED) {
                fs::remove_file(&path)?;
            } else {
                files.push((metadata.modified()?, metadata.len(), path));
            }
        }
        files.sort();
        let mut n_bytes: u64 = files.iter().map(|it| it.1).sum();
        for (_, length, path) in files {
            if n_bytes <= self.bytes_max {
                break;
            }
            fs::remove_file(&path)?;
            n_bytes -= length;
        }
        Ok(())
    }

    fn path(&self, file: Uuid) -> PathBuf {
        Path::new(&self.folder).join(file.simple().to_string())
    }
}

/// Returns the head and the parts of a file; `None` if it is damaged.
fn decode(content: Bytes) -> Option<(Head, Vec<(u64, Bytes)>)> {
    let sum = content.get(..SUM_BYTES)?;
    let rest = content.slice(SUM_BYTES..);
    if sum != &Sha256::digest(&rest)[..] {
        return None;
    }
    let number = rest.get(..NUMBER_BYTES)?.try_into().ok()?;
    let mut at = NUMBER_BYTES.checked_add(usize::try_from(u32::from_le_bytes(number)).ok()?)?;
    let head: Head = serde_json::from_slice(rest.get(NUMBER_BYTES..at)?).ok()?;
    let mut parts = Vec::new();
    for (position, n_bytes) in &head.parts {
        let end = at.checked_add(*n_bytes)?;
        rest.get(at..end)?;
        parts.push((*position, rest.slice(at..end)));
        at = end;
    }
    (at == rest.len()).then_some((head, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u128, validator: Option<&str>) -> FileVersion {
        let validator = validator.map(str::to_owned);
        FileVersion { file: Uuid::from_u128(number), length: 9_000, validator }
    }

    #[test]
    fn parts_of_a_film_are_read_as_they_were_written_unless_the_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FilmDisk::new(folder.path().join("films"), 1 << 20);
        let film = version(1, Some("a"));
        let parts = [(0, Bytes::from_static(b"beginning")), (8_997, Bytes::from_static(b"end"))];
        assert_eq!(disk.load(film.file), None);
        disk.save(&film, &parts).unwrap();
        assert_eq!(disk.load(film.file), Some((film.clone(), parts.to_vec())));
        let path = disk.path(film.file);
        let content = fs::read(&path).unwrap();
        for at in [0, SUM_BYTES, SUM_BYTES + 10, content.len() - 1] {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert_eq!((disk.load(film.file), path.exists()), (None, false), "byte {at}");
        }
        fs::write(&path, &content[..20]).unwrap();
        assert_eq!(disk.load(film.file), None);
        disk.save(&version(2, None), &parts).unwrap();
        assert_eq!(disk.load(Uuid::from_u128(2)), None, "nothing shows whether it is still the same film");
    }

    #[test]
    fn the_films_that_were_not_watched_for_the_longest_time_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FilmDisk::new(folder.path().to_owned(), 25_000);
        fs::write(folder.path().join("left.part~"), b"of a crash").unwrap();
        for number in 1..=4 {
            let film = version(number, Some("a"));
            disk.save(&film, &[(0, Bytes::from(vec![number as u8; 10_000]))]).unwrap();
            let age = UNIX_EPOCH + Duration::from_secs(number as u64);
            File::options().write(true).open(disk.path(film.file)).unwrap().set_modified(age).unwrap();
            if number == 2 {
                disk.load(Uuid::from_u128(1)).expect("it is kept");
            }
        }
        let kept: Vec<bool> = (1..=4).map(|it| disk.path(Uuid::from_u128(it)).exists()).collect();
        assert_eq!(kept, [true, false, false, true]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
