//! New folders of data, which a power cut does not take.
//!
//! The entry of a new folder is data of the folder above it: without a sync of that one, a power cut takes the new folder
//! with every file in it, although the files themselves were synced.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::engine::folder::sync_parent;

/// Creates a folder and the missing ones above it with this mode. Each new one is durable when this returns. A folder that
/// exists stays as it is, and costs no sync. Blocks.
///
/// Caches and folders for a moment do not need it.
///
/// # Errors
/// A folder cannot be created, or the disk does not confirm it.
pub fn create_folder(path: &Path, mode: u32) -> io::Result<()> {
    create(path, mode, &sync_entry)
}

fn create(path: &Path, mode: u32, sync: &impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let make = || DirBuilder::new().mode(mode).create(path);
    let made = match (make(), path.parent().filter(|it| !it.as_os_str().is_empty())) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            create(parent, mode, sync)?;
            match make() {
                // Somebody else has just created it, and may not have synced it yet.
                Err(_) if path.is_dir() => Ok(()),
                made => made,
            }
        }
        (Err(_), _) if path.is_dir() => return Ok(()),
        (made, _) => made,
    };
    made?;
    sync(path).inspect_err(|_| {
        // Otherwise the next call would find it and not sync it. The first error is the one to report.
        let _ = fs::remove_dir(path);
    })
}

/// Makes the entry of a new folder durable.
fn sync_entry(folder: &Path) -> io::Result<()> {
    match sync_parent(folder) {
        // The right to create a folder there does not include the right to read there.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(rustix::fs::syncfs(File::open(folder)?)?)
        }
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A back-up in a new folder was confirmed, and a power cut took the folder.
    #[test]
    fn the_entry_of_each_new_folder_is_synced_before_anything_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let synced = RefCell::new(Vec::new());
        let note = |path: &Path| {
            assert_eq!(fs::read_dir(path)?.count(), 0, "{path:?} has something in it");
            synced.borrow_mut().push(path.strip_prefix(root.path()).unwrap().to_owned());
            Ok(())
        };
        for (path, expected) in [("a/b/c", &["a", "a/b", "a/b/c"][..]), ("a/b/c", &[]), ("a/b/d", &["a/b/d"])]
        {
            create(&root.path().join(path), 0o700, &note).unwrap();
            assert_eq!(synced.take(), expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{path}");
            let mode = fs::metadata(root.path().join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        create_folder(&root.path().join("e/f"), 0o755).unwrap();
        assert!(root.path().join("e/f").is_dir());
    }

    #[test]
    fn a_folder_that_is_not_confirmed_or_a_file_in_its_place_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let failing = |_: &Path| Err(io::Error::other("the disk failed"));
        assert_eq!(
            create(&root.path().join("a/b"), 0o700, &failing).unwrap_err().to_string(),
            "the disk failed"
        );
        assert!(!root.path().join("a").exists(), "the next call syncs it");
        fs::write(root.path().join("file"), "").unwrap();
        for path in ["file", "file/a"] {
            assert!(create_folder(&root.path().join(path), 0o700).is_err(), "{path}");
        }
    }
}
