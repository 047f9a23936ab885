//! The commit file: what was acknowledged, written down beside the database.
//!
//! sled opens a database whose file is missing or cut as if it were new or shorter, without a word. So the number of
//! the last durable commit and the counts of records stand in a file of our own, which is compared at open.
//!
//! The file has two places that are written in turn, each with a checksum: a write that is torn by a power failure
//! leaves the other one whole. It also names the folder of the database, so that a rewritten store takes the place of
//! the old one in a single step.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::engine::vault::sync_parent;
use crate::error::{Error, Result};

pub(crate) const FILE: &str = "commit";
const MAGIC: [u8; 4] = *b"HwC1";
const PLACE: usize = 8 * 1024;

/// What the commit file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitMark {
    /// Of the store as a whole. The first one was not written down.
    #[serde(default = "first_format")]
    pub(crate) format: u8,
    /// Which folder the database is in.
    pub(crate) generation: u64,
    /// The last commit that was acknowledged; 0 while nothing ever was.
    pub(crate) commit: u64,
    /// Records per collection after that commit.
    pub(crate) counts: BTreeMap<String, u64>,
}

fn first_format() -> u8 {
    1
}

impl CommitMark {
    /// Of a store in which nothing was committed yet.
    pub(crate) fn first(format: u8) -> Self {
        Self { format, generation: 1, commit: 0, counts: BTreeMap::new() }
    }
}

/// The open commit file.
#[derive(Debug)]
pub(crate) struct CommitFile {
    file: File,
    next_place: u64,
    serial: u64,
}

impl CommitFile {
    /// `None` where there is no commit file.
    pub(crate) fn open(folder: &Path) -> Result<Option<(Self, CommitMark)>> {
        let path = folder.join(FILE);
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::disk("open the commit file", error)),
        };
        let found = (0..2).filter_map(|place| {
            let mut bytes = vec![0; PLACE];
            file.read_exact_at(&mut bytes, place * PLACE as u64).ok()?;
            let (serial, mark) = parse(&bytes)?;
            Some((serial, place, mark))
        });
        let Some((serial, place, mark)) = found.max_by_key(|(serial, ..)| *serial) else {
            return Err(Error::Damaged {
                at: folder.to_owned(),
                what: "the commit file cannot be read, so nobody can tell whether records are missing"
                    .to_owned(),
            });
        };
        Ok(Some((Self { file, next_place: 1 - place, serial }, mark)))
    }

    /// Makes the file, whole or not at all.
    pub(crate) fn create(folder: &Path, mark: &CommitMark) -> Result<Self> {
        let make = || {
            let (path, draft) = (folder.join(FILE), folder.join("commit.new"));
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&draft)?;
            file.set_len(2 * PLACE as u64)?;
            // Both places are really on the disk, so later writes change no metadata.
            file.write_all_at(&vec![0; 2 * PLACE], 0)?;
            file.write_all_at(&encode(1, mark), 0)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            sync_parent(&path)?;
            Ok::<_, std::io::Error>(file)
        };
        let file = make().map_err(|error| Error::disk("make the commit file", error))?;
        Ok(Self { file, next_place: 1, serial: 1 })
    }

    /// Returns once the mark is on the disk.
    pub(crate) fn write(&mut self, mark: &CommitMark) -> Result<()> {
        let bytes = encode(self.serial + 1, mark);
        if bytes.len() > PLACE {
            return Err(Error::TooLarge { what: "the commit file", size: bytes.len(), max: PLACE });
        }
        self.file
            .write_all_at(&bytes, self.next_place * PLACE as u64)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::disk("write the commit file", error))?;
        self.serial += 1;
        self.next_place = 1 - self.next_place;
        Ok(())
    }
}

fn encode(serial: u64, mark: &CommitMark) -> Vec<u8> {
    let body = rmp_serde::to_vec_named(mark).expect("numbers and names are written without error");
    let mut bytes = Vec::with_capacity(body.len() + 20);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&serial.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(body.len()).expect("a few names").to_be_bytes());
    bytes.extend_from_slice(&body);
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
    let mark = is_whole.then(|| rmp_serde::from_slice(body).ok())??;
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
    fn the_commit_file_tells_the_last_statement() {
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
    fn a_torn_write_leaves_the_statement_before_it_and_two_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut commit_file = CommitFile::create(folder.path(), &mark(1)).unwrap();
        commit_file.write(&mark(2)).unwrap();
        let path = folder.path().join(FILE);
        let file = File::options().write(true).open(&path).unwrap();
        // The second place has the second mark; half of it never arrived.
        file.write_all_at(&[0xee; 30], PLACE as u64 + 20).unwrap();
        assert_eq!(CommitFile::open(folder.path()).unwrap().unwrap().1, mark(1));
        file.write_all_at(&[0xee; 30], 20).unwrap();
        assert!(matches!(CommitFile::open(folder.path()), Err(Error::Damaged { .. })));
        fs::write(&path, b"").unwrap();
        assert!(matches!(CommitFile::open(folder.path()), Err(Error::Damaged { .. })));
    }
}
