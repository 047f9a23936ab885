//! The data folder: where the store and its key file lie.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use storage::Store;
use storage::records::schema;

/// Where everything lies that survives a restart. The key file is beside the store and not in it, so that a copy of
/// the store alone tells nobody a password.
#[derive(Clone, Debug)]
pub(crate) struct DataFolder {
    root: PathBuf,
}

/// Why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error(
        "the data folder {} cannot be used: {source}; name one that can be written to with --data-dir", root.display()
    )]
    Folder { root: PathBuf, source: io::Error },
    /// Names file and remedy by itself.
    #[error(transparent)]
    Store(#[from] storage::Error),
}

impl DataFolder {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.root.join("key")
    }

    /// Opens the store, or makes one where there was none, and puts in what no store is without. Blocks.
    pub(crate) fn open(&self) -> Result<Store, DataError> {
        self.make().map_err(|source| DataError::Folder { root: self.root.clone(), source })?;
        let store = Store::open(&self.store(), &self.key(), schema())?;
        storage::seed(&store)?;
        Ok(store)
    }

    /// Makes the folders, for their owner alone, and sees whether they can be written to: what fails later names no
    /// folder.
    fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.store())?;
        File::options().create(true).append(true).open(self.store().join("lock")).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_new_data_folder_and_its_key_are_for_their_owner_alone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(&parent.path().join("a/b"));
        drop(folder.open().unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.root()), mode(&folder.key())), (0o700, 0o600));
        drop(folder.open().unwrap());
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_named_with_what_to_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = DataFolder::new(file.path()).open().err().unwrap().to_string();
        assert!(
            error.contains(&file.path().display().to_string()) && error.contains("--data-dir"),
            "{error}"
        );
    }
}
