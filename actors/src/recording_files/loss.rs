//! Whether the file that a recording writes is still the one that others find at its path.
//!
//! An open file can be written although it was deleted, moved or replaced: the packets go to a file that nobody finds, and
//! no write fails. A file that somebody truncated gets a hole instead of what it had.

use std::fmt;
use std::fs::File;
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use tokio::time::Instant;

use super::folder::{FolderError, RecordingsFolder};

/// How often the path is looked up. The open file itself is looked at before each write.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// How a file that is written was lost, with everything in it or a part of it. `Display` gives the reason of the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLoss {
    Deleted,
    /// It has another path. Its packets may still be there, but no longer belong to the recording.
    Moved,
    /// Another thing has its path.
    Replaced,
    /// It is shorter than it was.
    Truncated,
    /// It was not there when the recording continued, such as after a power cut.
    Missing,
}

impl fmt::Display for FileLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deleted => "the file was deleted while it was recorded, and what was in it is lost",
            Self::Moved => {
                "the file was moved or renamed while it was recorded, and what was in it is lost for the recording"
            }
            Self::Replaced => {
                "the file was replaced by another one while it was recorded, and what was in it is lost"
            }
            Self::Truncated => {
                "the file was truncated while it was recorded, and what was cut off is lost"
            }
            Self::Missing => {
                "the file was missing when the recording continued, and what was in it is lost"
            }
        })
    }
}

/// The path of a file that is written.
pub(crate) struct FilePlace {
    folder: RecordingsFolder,
    path: String,
    /// When the path was looked up last.
    looked_at: Instant,
}

impl FilePlace {
    pub(crate) fn new(folder: RecordingsFolder, path: String) -> Self {
        Self { folder, path, looked_at: Instant::now() }
    }

    /// Returns how the open file, to which `length` bytes were written, was lost; `None` if it was not, or if that is not
    /// known now: a disk that is not mounted may come back. The path is looked up if the open file shows a loss, if some
    /// time has passed, or with `is_thorough`. Blocks.
    pub(crate) fn loss(&mut self, file: &File, length: u64, is_thorough: bool) -> Option<FileLoss> {
        // A disk that fails reports the error at the next write.
        let open = fstat(file).ok()?;
        let is_short = u64::try_from(open.st_size).is_ok_and(|it| it < length);
        let is_deleted = open.st_nlink == 0;
        let now = Instant::now();
        let is_due = is_thorough || now.duration_since(self.looked_at) >= LOOK_PERIOD;
        if !is_short && !is_deleted && !is_due {
            return None;
        }
        self.looked_at = now;
        let found = match self.folder.status(&self.path) {
            Ok(found) => found,
            // One of its folders is something else now.
            Err(FolderError::Path) => None,
            Err(_) if is_deleted => None,
            Err(_) => return None,
        };
        match found {
            None if is_deleted => Some(FileLoss::Deleted),
            None => Some(FileLoss::Moved),
            Some(found) if (found.st_dev, found.st_ino) == (open.st_dev, open.st_ino) => {
                is_short.then_some(FileLoss::Truncated)
            }
            Some(found) => {
                // Some file systems give a file another number later. Another file hardly has the same size.
                let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
                let is_same = is_file && !is_deleted && found.st_size == open.st_size;
                (!is_same).then_some(FileLoss::Replaced)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt, symlink};
    use std::path::Path;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_way_to_lose_a_file_is_noticed_and_no_other_change() {
        let check = async |change: &dyn Fn(&Path), expected: Option<FileLoss>, at_once: bool| {
            let parent = tempfile::tempdir().unwrap();
            let folder = RecordingsFolder::new(parent.path().join("recordings"));
            folder.mark().unwrap();
            let (file, path) = folder.create("Show/One", "ts").unwrap();
            file.write_all_at(&[0x47; 1_000], 0).unwrap();
            let mut place = FilePlace::new(folder, path);
            assert_eq!(place.loss(&file, 1_000, true), None);
            change(&parent.path().join("recordings"));
            assert_eq!(place.loss(&file, 1_000, false), expected.filter(|_| at_once));
            tokio::time::advance(LOOK_PERIOD).await;
            assert_eq!(place.loss(&file, 1_000, false), expected);
        };
        let rename = |from: &Path, to: &Path| fs::rename(from, to).unwrap();
        use FileLoss::{Deleted, Moved, Replaced, Truncated};
        check(&|_| {}, None, false).await;
        check(&|it| fs::write(it.join("Show/Two.ts"), "x").unwrap(), None, false).await;
        check(&|it| fs::hard_link(it.join("Show/One.ts"), it.join("copy.ts")).unwrap(), None, false).await;
        check(&|it| fs::remove_file(it.join("Show/One.ts")).unwrap(), Some(Deleted), true).await;
        check(&|it| fs::remove_dir_all(it.join("Show")).unwrap(), Some(Deleted), true).await;
        check(&|it| fs::remove_dir_all(it).unwrap(), Some(Deleted), true).await;
        let cut = |it: &Path, length| {
            File::options().write(true).open(it.join("Show/One.ts")).unwrap().set_len(length).unwrap();
        };
        check(&|it| cut(it, 0), Some(Truncated), true).await;
        check(&|it| cut(it, 999), Some(Truncated), true).await;
        check(&|it| rename(&it.join("Show/One.ts"), &it.join("Show/Two.ts")), Some(Moved), false).await;
        check(&|it| rename(&it.join("Show/One.ts"), &it.join("../One.ts")), Some(Moved), false).await;
        check(&|it| rename(&it.join("Show"), &it.join("Other")), Some(Moved), false).await;
        let moved_folder = |it: &Path| {
            rename(&it.join("Show"), &it.join("../Show"));
            symlink(it.join("../Show"), it.join("Show")).unwrap();
        };
        check(&moved_folder, Some(Moved), false).await;
        let moved_file = |it: &Path| {
            rename(&it.join("Show/One.ts"), &it.join("One.ts"));
            symlink(it.join("One.ts"), it.join("Show/One.ts")).unwrap();
        };
        check(&moved_file, Some(Replaced), false).await;
        let over = |it: &Path| {
            fs::write(it.join("other"), [0x47; 1_000]).unwrap();
            rename(&it.join("other"), &it.join("Show/One.ts"));
        };
        check(&over, Some(Replaced), true).await;
        let swapped = |it: &Path| {
            rename(&it.join("Show/One.ts"), &it.join("One.ts"));
            fs::write(it.join("Show/One.ts"), "other").unwrap();
        };
        check(&swapped, Some(Replaced), false).await;
        // The disk may come back with the file.
        check(&|it| rename(it, &it.with_extension("unmounted")), None, false).await;
    }
}
