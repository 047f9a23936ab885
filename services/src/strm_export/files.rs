//! Writes the files of an export: only those that differ, and removes only those that an earlier export wrote.
//!
//! A manifest in the folder lists the files that exports wrote, with what was in them. A file that somebody else wrote or
//! changed is never replaced or removed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::folder::{Entry, ExportFolder};

/// Name of the manifest.
const MANIFEST: &str = ".headwater-export";
/// First line of the manifest.
const MANIFEST_HEAD: &str = "headwater export 1";
/// Number of written files after which the manifest is saved, so that a crash leaves few files that nobody owns.
const SAVE_EVERY: usize = 10_000;

/// The outcome of an export, in numbers of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    pub written: usize,
    pub unchanged: usize,
    pub removed: usize,
    /// Files that could not be written or removed, because somebody else wrote or changed them.
    pub kept: usize,
}

/// Identifies the content of a file, to notice a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    hash: [u8; 16],
    bytes: u64,
}

impl Fingerprint {
    fn from_content(content: &[u8]) -> Self {
        let digest = Sha256::digest(content);
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest[..16]);
        Self { hash, bytes: content.len() as u64 }
    }

    /// Reads what [`Self::push`] has written.
    fn read(hash: &str, bytes: &str) -> Option<Self> {
        let number = u128::from_str_radix(hash, 16).ok().filter(|_| hash.len() == 32)?;
        Some(Self { hash: number.to_be_bytes(), bytes: bytes.parse().ok()? })
    }

    fn push(self, out: &mut String, path: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "{:032x} {} {path}", u128::from_be_bytes(self.hash), self.bytes);
    }
}

/// An export on its way. All methods block.
pub(super) struct ExportFiles {
    folder: ExportFolder,
    /// The files of the earlier export that this one has not put yet.
    earlier: BTreeMap<Box<str>, Fingerprint>,
    /// The manifest of this export so far.
    manifest: String,
    report: ExportReport,
}

impl ExportFiles {
    /// Begins an export into a folder, which is created if it does not exist.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let mut folder = ExportFolder::open(path)?;
        let manifest = folder.read_whole(MANIFEST)?.unwrap_or_default();
        let earlier = read_manifest(&String::from_utf8_lossy(&manifest));
        Ok(Self { folder, earlier, manifest: format!("{MANIFEST_HEAD}\n"), report: ExportReport::default() })
    }

    /// Returns whether an earlier export wrote files that still exist.
    pub(super) fn has_earlier(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// Writes a file, unless it has this content already.
    pub(super) fn put(&mut self, path: &str, content: &str) -> io::Result<()> {
        let wanted = Fingerprint::from_content(content.as_bytes());
        let before = self.earlier.remove(path);
        let is_written = match self.folder.entry(path, true)? {
            Entry::Other => false,
            Entry::Missing => self.write(path, content)?,
            Entry::File(bytes) if before == Some(wanted) && bytes == wanted.bytes => {
                self.report.unchanged += 1;
                true
            }
            Entry::File(_) => match self.folder.read(path)?.map(|it| Fingerprint::from_content(&it)) {
                // After a crash, or after a move of the folder without its manifest.
                Some(present) if present == wanted => {
                    self.report.unchanged += 1;
                    true
                }
                Some(present) if before == Some(present) => self.write(path, content)?,
                _ => false,
            },
        };
        match is_written {
            true => wanted.push(&mut self.manifest, path),
            false => self.report.kept += 1,
        }
        Ok(())
    }

    fn write(&mut self, path: &str, content: &str) -> io::Result<bool> {
        let is_written = self.folder.write(path, content.as_bytes())?;
        if is_written {
            self.report.written += 1;
            if self.report.written.is_multiple_of(SAVE_EVERY) {
                self.save()?;
            }
        }
        Ok(is_written)
    }

    /// Removes the files of the earlier export that this one does not have, and saves the manifest.
    pub(super) fn finish(mut self) -> io::Result<ExportReport> {
        for (path, fingerprint) in std::mem::take(&mut self.earlier) {
            match self.folder.entry(&path, false)? {
                Entry::Missing => {}
                Entry::File(bytes) if bytes == fingerprint.bytes && self.is_own(&path, fingerprint)? => {
                    self.folder.remove(&path)?;
                    self.report.removed += 1;
                }
                Entry::File(_) | Entry::Other => self.report.kept += 1,
            }
        }
        self.save()?;
        Ok(self.report)
    }

    /// Keeps what was written so far in the manifest, after an error.
    pub(super) fn abandon(mut self) {
        // The error that ended the export is the one to report.
        let _ = self.save();
    }

    fn is_own(&mut self, path: &str, fingerprint: Fingerprint) -> io::Result<bool> {
        Ok(self.folder.read(path)?.is_some_and(|it| Fingerprint::from_content(&it) == fingerprint))
    }

    fn save(&mut self) -> io::Result<()> {
        let mut text = self.manifest.clone();
        for (path, fingerprint) in &self.earlier {
            fingerprint.push(&mut text, path);
        }
        match self.folder.write(MANIFEST, text.as_bytes())? {
            true => Ok(()),
            false => Err(io::Error::other("the manifest is not a file")),
        }
    }
}

/// Reads a manifest. Somebody may have changed it, so lines that are not of an export are ignored.
fn read_manifest(text: &str) -> BTreeMap<Box<str>, Fingerprint> {
    let mut lines = text.lines();
    if lines.next() != Some(MANIFEST_HEAD) {
        return BTreeMap::new();
    }
    let read = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let fingerprint = Fingerprint::read(parts.next()?, parts.next()?)?;
        let path = parts.next()?;
        let is_ours = path.contains('/') && (path.ends_with(".strm") || path.ends_with(".nfo"));
        is_ours.then(|| (path.into(), fingerprint))
    };
    lines.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn export(root: &Path, files: &[(&str, &str)]) -> ExportReport {
        let mut export = ExportFiles::begin(root).unwrap();
        for (path, content) in files {
            export.put(path, content).unwrap();
        }
        export.finish().unwrap()
    }

    fn report(written: usize, unchanged: usize, removed: usize, kept: usize) -> ExportReport {
        ExportReport { written, unchanged, removed, kept }
    }

    const ALIEN: (&str, &str) = ("Movies/Alien (1979)/Alien (1979).strm", "http://tv/1\n");
    const ANDOR: (&str, &str) = ("Series/Andor/Season 01/Andor S01E01.strm", "http://tv/2\n");

    #[test]
    fn only_changes_are_written_and_only_own_files_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        assert_eq!(export(root.path(), &[ALIEN, ANDOR]), report(2, 0, 0, 0));
        assert_eq!(fs::read_to_string(path(ALIEN.0)).unwrap(), ALIEN.1);
        let written_at = fs::metadata(path(ALIEN.0)).unwrap().modified().unwrap();
        assert_eq!(export(root.path(), &[ALIEN, ANDOR]), report(0, 2, 0, 0));
        assert_eq!(fs::metadata(path(ALIEN.0)).unwrap().modified().unwrap(), written_at);
        assert_eq!(export(root.path(), &[(ALIEN.0, "http://tv/3\n"), ANDOR]), report(1, 1, 0, 0));
        assert_eq!(fs::read_to_string(path(ALIEN.0)).unwrap(), "http://tv/3\n");

        let subtitle = path("Movies/Alien (1979)/Alien.srt");
        fs::write(&subtitle, "1").unwrap();
        fs::write(path("notes.strm"), "mine").unwrap();
        assert_eq!(export(root.path(), &[]), report(0, 0, 2, 0));
        assert!(subtitle.exists() && path("notes.strm").exists() && !path(ALIEN.0).exists());
        assert!(!path("Series").exists(), "empty folders are removed");
    }

    #[test]
    fn files_that_somebody_else_wrote_or_changed_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        export(root.path(), &[ANDOR]);
        fs::create_dir_all(path("Movies/Alien (1979)")).unwrap();
        fs::write(path(ALIEN.0), "mine").unwrap();
        fs::write(path(ANDOR.0), "changed").unwrap();
        assert_eq!(export(root.path(), &[ALIEN, (ANDOR.0, "http://tv/9\n")]), report(0, 0, 0, 2));
        assert_eq!(export(root.path(), &[]), report(0, 0, 0, 0));
        assert_eq!(fs::read_to_string(path(ALIEN.0)).unwrap(), "mine");
        assert_eq!(fs::read_to_string(path(ANDOR.0)).unwrap(), "changed");
        fs::write(path(ALIEN.0), ALIEN.1).unwrap();
        assert_eq!(export(root.path(), &[ALIEN]), report(0, 1, 0, 0), "the same content is adopted");
        fs::remove_file(path(ALIEN.0)).unwrap();
        assert_eq!(export(root.path(), &[ALIEN]), report(1, 0, 0, 0), "a missing file is written again");
    }

    #[test]
    fn no_link_and_no_manifest_leads_out_of_the_folder() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| root.path().join(name);
        let target = outside.path().join("target.strm");
        fs::write(&target, ALIEN.1).unwrap();
        symlink(outside.path(), path("Series")).unwrap();
        fs::create_dir_all(path("Movies/Alien (1979)")).unwrap();
        symlink(&target, path(ALIEN.0)).unwrap();
        assert_eq!(export(root.path(), &[ALIEN, ANDOR]), report(0, 0, 0, 2));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&target).unwrap(), ALIEN.1);

        let mut forged = format!("{MANIFEST_HEAD}\nrubbish\n");
        let outside_path = target.display().to_string();
        let up = format!("Movies/../..{outside_path}");
        for path in [ALIEN.0, "Series/target.strm", "../target.strm", &outside_path, &up] {
            Fingerprint::from_content(ALIEN.1.as_bytes()).push(&mut forged, path);
        }
        fs::write(path(MANIFEST), forged).unwrap();
        export(root.path(), &[]);
        assert_eq!(fs::read_to_string(&target).unwrap(), ALIEN.1);
        assert!(path(ALIEN.0).is_symlink(), "a link is not a file of an export");
        let mut export = ExportFiles::begin(root.path()).unwrap();
        for wrong in ["../a/b.strm", "/a/b.strm", "Movies//b.strm", "Movies/./b.strm", "Movies/a\0/b.strm"] {
            export.put(wrong, "x").unwrap();
        }
        assert_eq!(export.finish().unwrap(), report(0, 0, 0, 5));
    }

    #[test]
    fn two_exports_do_not_use_a_folder_at_the_same_time() {
        let root = tempfile::tempdir().unwrap();
        let first = ExportFiles::begin(root.path()).unwrap();
        let second = ExportFiles::begin(root.path()).err().unwrap();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(!ExportFiles::begin(root.path()).unwrap().has_earlier());
    }

    #[test]
    fn what_was_written_before_an_error_belongs_to_the_export() {
        let root = tempfile::tempdir().unwrap();
        let mut export_files = ExportFiles::begin(root.path()).unwrap();
        export_files.put(ALIEN.0, ALIEN.1).unwrap();
        export_files.abandon();
        assert_eq!(export(root.path(), &[(ALIEN.0, "http://tv/3\n")]), report(1, 0, 0, 0));
    }
}
