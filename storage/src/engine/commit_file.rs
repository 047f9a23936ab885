//! The commit file: records the last acknowledged commit, outside of the database.
//!
//! sled silently opens a missing or truncated database file as a new or shorter database. The commit file therefore
//! holds the number of the last durable commit, the number of records and a sum over all current values, which are
//! compared when the store opens.
//!
//! The file has two halves that are written in turn, each with a checksum: a power failure during a write leaves the
//! other half intact. It also names the generation of the database, so that one write replaces the database after a
//! compaction or a migration.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::encoding;
use crate::engine::folder::sync_parent;
use crate::error::{Error, Result};

pub(crate) const FILE: &str = "commit";
const MAGIC: [u8; 4] = *b"HwC1";
/// The version of this program.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// Size of each half, in bytes.
const HALF: usize = 8 * 1024;

/// The content of the commit file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitMark {
    /// Format of the store as a whole. Files of the first format do not have this field.
    #[serde(default = "first_format")]
    pub(crate) format: u8,
    /// Generation of the database; determines its folder.
    pub(crate) generation: u64,
    /// The last acknowledged commit; 0 before the first.
    pub(crate) commit: u64,
    /// Number of records per collection after that commit.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Sum over the keys and commits of all current values per collection after that commit, so that an overwrite that
    /// sled lost is noticed. Not known of a salvaged store before its first start.
    #[serde(default)]
    pub(crate) sums: Option<BTreeMap<String, u64>>,
    /// Version of the program that wrote this.
    #[serde(default)]
    pub(crate) program: String,
    /// Checksum of the database after a clean stop. `None` while the store is open, and after a crash.
    #[serde(default)]
    pub(crate) closed: Option<u32>,
}

fn first_format() -> u8 {
    1
}

impl CommitMark {
    /// The mark of a store without commits.
    pub(crate) fn first(format: u8) -> Self {
        Self {
            format,
            generation: 1,
            commit: 0,
            counts: BTreeMap::new(),
            sums: None,
            program: PROGRAM.to_owned(),
            closed: None,
        }
    }
}

/// The part of a mark that every later version keeps.
#[derive(Deserialize)]
struct MarkHead {
    format: u8,
    program: String,
}

/// Returns whether this is the version of a later program.
pub(crate) fn is_later_program(program: &str) -> bool {
    let numbers = |version: &str| {
        let numbers: Vec<u64> = version.split(['.', '-', '+']).map_while(|it| it.parse().ok()).collect();
        numbers
    };
    numbers(program) > numbers(PROGRAM)
}

/// The open commit file.
#[derive(Debug)]
pub(crate) struct CommitFile {
    file: File,
    next_half: u64,
    serial: u64,
}

impl CommitFile {
    /// Opens the commit file. Returns `None` if it does not exist.
    pub(crate) fn open(folder: &Path) -> Result<Option<(Self, CommitMark)>> {
        let path = folder.join(FILE);
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::disk("open the commit file", error)),
        };
        let mut marks = Vec::with_capacity(2);
        for half in 0..2 {
            let mut bytes = vec![0; HALF];
            match file.read_exact_at(&mut bytes, half * HALF as u64) {
                Ok(()) => marks.extend(parse(&bytes).map(|(serial, mark)| (serial, half, mark))),
                // A file that is too short is damaged.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(Error::disk("read the commit file", error)),
            }
        }
        let Some((serial, half, mark)) = marks.into_iter().max_by_key(|(serial, ..)| *serial) else {
            return Err(Error::Damaged {
                at: folder.to_owned(),
                what: "the commit file cannot be read, so missing records cannot be detected".to_owned(),
            });
        };
        Ok(Some((Self { file, next_half: 1 - half, serial }, mark)))
    }

    /// Creates the file atomically.
    pub(crate) fn create(folder: &Path, mark: &CommitMark) -> Result<Self> {
        let create = || {
            let (path, draft) = (folder.join(FILE), folder.join("commit.new"));
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&draft)?;
            file.set_len(2 * HALF as u64)?;
            // Both halves are allocated on the disk, so that later writes change no metadata.
            file.write_all_at(&vec![0; 2 * HALF], 0)?;
            file.write_all_at(&encode(1, mark), 0)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            sync_parent(&path)?;
            Ok::<_, std::io::Error>(file)
        };
        let file = create().map_err(|error| Error::disk("create the commit file", error))?;
        Ok(Self { file, next_half: 1, serial: 1 })
    }

    /// Writes the mark; returns once it is durable.
    pub(crate) fn write(&mut self, mark: &CommitMark) -> Result<()> {
        let bytes = encode(self.serial + 1, mark);
        if bytes.len() > HALF {
            return Err(Error::TooLarge { what: "the commit file", size: bytes.len(), max: HALF });
        }
        self.file
            .write_all_at(&bytes, self.next_half * HALF as u64)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::disk("write the commit file", error))?;
        self.serial += 1;
        self.next_half = 1 - self.next_half;
        Ok(())
    }
}

fn encode(serial: u64, mark: &CommitMark) -> Vec<u8> {
    encode_body(serial, &rmp_serde::to_vec_named(mark).expect("numbers and names can be encoded"))
}

fn encode_body(serial: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 20);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&serial.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(body.len()).expect("a commit mark is a few KiB").to_be_bytes());
    bytes.extend_from_slice(body);
    let checksum = crc32fast::hash(&bytes[8..]);
    bytes[4..8].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Option<(u64, CommitMark)> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, checked) = rest.split_first_chunk::<4>()?;
    let (serial, rest) = checked.split_first_chunk::<8>()?;
    let (length, body) = rest.split_first_chunk::<4>()?;
    let body = body.get(..u32::from_be_bytes(*length) as usize)?;
    let is_whole =
        *magic == MAGIC && crc32fast::hash(&checked[..8 + 4 + body.len()]) == u32::from_be_bytes(*checksum);
    // A mark of a later format may have another shape; it is only refused.
    let later = || {
        let head = encoding::decode::<MarkHead>(body).ok()?;
        Some(CommitMark { program: head.program, ..CommitMark::first(head.format) })
    };
    let mark = is_whole.then(|| encoding::decode(body).ok().or_else(later))??;
    Some((u64::from_be_bytes(*serial), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(commit: u64) -> CommitMark {
        let counts = BTreeMap::from([("channels".to_owned(), commit * 2)]);
        CommitMark { commit, counts, ..CommitMark::first(1) }
    }

    #[test]
    fn the_commit_file_returns_the_last_mark() {
        let folder = tempfile::tempdir().unwrap();
        assert!(CommitFile::open(folder.path()).unwrap().is_none());
        let mut commit_file = CommitFile::create(folder.path(), &mark(0)).unwrap();
        for commit in 1..6 {
            commit_file.write(&mark(commit)).unwrap();
            assert_eq!(CommitFile::open(folder.path()).unwrap().unwrap().1, mark(commit));
        }
        let (mut again, _) = CommitFile::open(folder.path()).unwrap().unwrap();
        again.write(&mark(6)).unwrap();
        assert_eq!(CommitFile::open(folder.path()).unwrap().unwrap().1, mark(6));
    }

    #[test]
    fn a_mark_of_another_shape_still_names_its_format_and_program() {
        #[derive(Serialize)]
        struct Later {
            format: u8,
            program: &'static str,
            generation: &'static str,
        }
        let body =
            rmp_serde::to_vec_named(&Later { format: 9, program: "7.1.0", generation: "other" }).unwrap();
        let (_, mark) = parse(&encode_body(3, &body)).unwrap();
        assert_eq!((mark.format, &*mark.program, mark.commit), (9, "7.1.0", 0));
        assert!(is_later_program("7.1.0") && is_later_program(&format!("{PROGRAM}.1")));
        assert!(!is_later_program(PROGRAM) && !is_later_program("") && !is_later_program("0.0.9"));
    }

    #[test]
    fn a_torn_write_leaves_the_previous_mark_and_two_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut commit_file = CommitFile::create(folder.path(), &mark(1)).unwrap();
        commit_file.write(&mark(2)).unwrap();
        let path = folder.path().join(FILE);
        let file = File::options().write(true).open(&path).unwrap();
        // The second half of the file holds the second mark; part of it was never written.
        file.write_all_at(&[0xee; 30], HALF as u64 + 20).unwrap();
        assert_eq!(CommitFile::open(folder.path()).unwrap().unwrap().1, mark(1));
        file.write_all_at(&[0xee; 30], 20).unwrap();
        assert!(matches!(CommitFile::open(folder.path()), Err(Error::Damaged { .. })));
        fs::write(&path, b"").unwrap();
        assert!(matches!(CommitFile::open(folder.path()), Err(Error::Damaged { .. })));
    }
}
