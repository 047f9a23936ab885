//! The data folder, which contains the store and its key file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use domain::account::{Account, PlaylistLocation};
use domain::guide::source::GuideSource;
use storage::Store;
use storage::records::schema;
use tracing::{error, info, warn};

use crate::backups::PendingRestore;
use crate::files::{Files, Folder};

/// Folder of all persistent data. The key file is beside the store and not in it, so that a copy of the store alone
/// reveals no password.
#[derive(Clone, Debug)]
pub(crate) struct DataFolder {
    root: PathBuf,
}

/// Error while opening the data folder.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error(
        "cannot use the data folder {}: {source}; choose a writable folder with --data-dir", root.display()
    )]
    Folder { root: PathBuf, source: io::Error },
    /// The message already names the file and the remedy.
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

    /// Returns the path of the file of this node of a cluster.
    pub(crate) fn node(&self) -> PathBuf {
        self.root.join("node.json")
    }

    /// Returns the path of the socket over which commands reach the running gateway.
    pub(crate) fn control_socket(&self) -> PathBuf {
        self.root.join("control.sock")
    }

    /// Opens the store, or creates and initialises a new one. Blocks.
    pub(crate) fn open(&self) -> Result<Store, DataError> {
        let unusable = |source| DataError::Folder { root: self.root.clone(), source };
        let pending = PendingRestore::of(self);
        let name = pending.name().unwrap_or_default();
        let is_restored = pending.swap().map_err(unusable)?;
        self.create().map_err(unusable)?;
        let store = match Store::open(&self.store(), &self.key(), schema()) {
            Err(error) if is_restored => {
                error!(backup = name, "the restored store cannot be opened, so the old one is used: {error}");
                pending.roll_back().map_err(unusable)?;
                Store::open(&self.store(), &self.key(), schema())?
            }
            opened => opened?,
        };
        if is_restored {
            pending.keep_records_of_node(&store, &self.key());
            info!(backup = name, "the store was replaced");
        }
        // Nobody else uses the folder now. What is left of an interrupted restoration is of no use.
        pending.discard().map_err(unusable)?;
        // In a cluster, the node that writes the configuration does it.
        if store.writes_shared() {
            complete(&store)?;
        }
        self.remove_leftovers(&store)?;
        Ok(store)
    }

    /// Removes what a crash can leave: uploaded playlists and guides that nothing uses, and uploads that were not
    /// finished. Nobody else may use the folder.
    fn remove_leftovers(&self, store: &Store) -> Result<(), DataError> {
        let accounts = store.collection::<Account>().all()?;
        let guides = store.collection::<GuideSource>().all()?;
        let is_used = |folder, name: &str| match folder {
            Folder::Guides => guides.iter().any(|it| it.file.as_deref() == Some(name)),
            _ => accounts.iter().any(|it| matches!(&it.list, PlaylistLocation::Upload(used) if used == name)),
        };
        let files = Files::new(&self.root);
        let removed = Folder::UPLOADS.into_iter().try_for_each(|it| files.remove_unfinished(it));
        let removed = removed.and_then(|()| {
            [Folder::Playlists, Folder::Guides].into_iter().try_for_each(|folder| {
                let names = files.names(folder)?.into_iter();
                names.filter(|it| !is_used(folder, it)).try_for_each(|it| files.remove(folder, &it))
            })
        });
        // They only take room.
        if let Err(error) = removed {
            warn!("failed to remove uploads that nothing uses: {error}");
        }
        Ok(())
    }

    /// Creates the data folder itself, if it does not exist.
    pub(crate) fn create_root(&self) -> Result<(), DataError> {
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
        created.map_err(|source| DataError::Folder { root: self.root.clone(), source })
    }

    /// Creates the folders with access for the owner only, and checks that they are writable, because later errors do
    /// not name the folder.
    fn create(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.store())?;
        File::options().create(true).append(true).open(self.store().join("lock")).map(drop)
    }
}

/// Adds the records that every store needs, and completes those of earlier versions. Blocks.
pub(crate) fn complete(store: &Store) -> Result<(), storage::Error> {
    storage::seed(store)?;
    storage::link_logos(store)?;
    storage::drop_unused_stream_ids(store)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use domain::account::AccountProfile;
    use domain::guide::source::GuideSourceKind;
    use domain::ids::{AccountId, GuideSourceId, ProfileId};

    use super::*;

    #[test]
    fn uploads_that_nothing_uses_are_removed_at_the_next_start() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(parent.path());
        let store = folder.open().unwrap();
        let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
        let list = PlaylistLocation::Upload("used.m3u".to_owned());
        let account = Account::new(AccountId(2), "uploaded", list, profile, 0);
        let mut guide = GuideSource::new(GuideSourceId(1), "uploaded", GuideSourceKind::Xmltv, 0);
        guide.file = Some("used.xmltv".to_owned());
        let written = store.write_blocking(move |write| write.put(&account).and_then(|()| write.put(&guide)));
        written.unwrap();
        drop(store);
        let files = Files::new(parent.path());
        for name in ["used.m3u", "left.m3u"] {
            files.save(Folder::Playlists, name, &b"#EXTM3U"[..]).unwrap();
        }
        for name in ["used.xmltv", "left.xmltv"] {
            files.save(Folder::Guides, name, &b"<tv/>"[..]).unwrap();
        }
        files.save(Folder::Avatars, "a.png", &b"x"[..]).unwrap();
        let unfinished = files.folder(Folder::Avatars).join("b.part~");
        fs::write(&unfinished, "x").unwrap();
        drop(folder.open().unwrap());
        assert_eq!(files.names(Folder::Playlists).unwrap(), ["used.m3u"]);
        assert_eq!(files.names(Folder::Guides).unwrap(), ["used.xmltv"]);
        assert_eq!(files.names(Folder::Avatars).unwrap(), ["a.png"]);
        assert!(!unfinished.exists());
    }

    #[test]
    fn only_the_owner_can_access_a_new_data_folder_and_its_key() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(&parent.path().join("a/b"));
        drop(folder.open().unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.root()), mode(&folder.key())), (0o700, 0o600));
        drop(folder.open().unwrap());
    }

    #[test]
    fn the_error_for_an_unusable_folder_names_it_and_the_option() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = DataFolder::new(file.path()).open().err().unwrap().to_string();
        assert!(
            error.contains(&file.path().display().to_string()) && error.contains("--data-dir"),
            "{error}"
        );
    }
}
