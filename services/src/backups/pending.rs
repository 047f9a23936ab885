//! A restored store that replaces the present one at the next start.
//!
//! The restored store and the uploaded files are built in the folder `restore` of the data folder. The file `ready` marks
//! them as complete. The next start moves the present store aside, moves the restored one into its place, opens it, and
//! only then removes the old one. Each step is a rename, and a start after a power cut goes on with the step that is
//! missing.
//!
//! A node of a cluster replaces its store alone in this way, by a snapshot. Then the start also moves the records of this node
//! from the old store into the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use config::DataFolder;
use domain::cluster::certificate::{ClusterAuthority, NodeCertificate, SealedKeys};
use domain::cluster::token::JoinTicket;
use domain::cluster::version::{ClusterVersion, FIRST_VERSION, PLUGIN_VALUES_VERSION, SERVICE_KEYS_VERSION};
use domain::plugin::PluginValue;
use domain::service_key::ServiceKey;
use storage::backup::{BackupError, UnlockedArchive};
use storage::guide::GUIDES_FOLDER;
use storage::log::{LogKeys, LogPosition, copy_local_records, copy_records, restore_snapshot};
use storage::records::schema;
use storage::{Record, Store, create_folder};
use tracing::warn;

use crate::files::{Files, Folder};
use crate::written_version::written;

/// Folders of the data folder that a restoration replaces, each with the name of the old one beside the new one.
const REPLACED: [(&str, &str); 3] =
    [("store", "old-store"), ("uploads", "old-uploads"), (GUIDES_FOLDER, "old-guides")];

/// Collections that a restored store of a node takes from the present one: who belongs to the cluster is not a matter of
/// back-ups, which could admit a removed node again. Nor is what they write.
const CLUSTER_RECORDS: [&str; 5] = [
    ClusterAuthority::COLLECTION,
    NodeCertificate::COLLECTION,
    SealedKeys::COLLECTION,
    JoinTicket::COLLECTION,
    ClusterVersion::COLLECTION,
];
const SNAPSHOT_NAME: &str = "snapshot of the cluster";

/// The folder of a restoration.
#[derive(Clone, Debug)]
pub struct PendingRestore {
    root: PathBuf,
}

impl PendingRestore {
    pub fn new(folder: &DataFolder) -> Self {
        PendingRestore { root: folder.root().to_owned() }
    }

    fn folder(&self) -> PathBuf {
        self.root.join("restore")
    }

    fn ready_file(&self) -> PathBuf {
        self.folder().join("ready")
    }

    /// Present if the store is a snapshot of the cluster.
    fn snapshot_file(&self) -> PathBuf {
        self.folder().join("snapshot")
    }

    /// Returns the name of the back-up that replaces the store at the next start.
    pub fn name(&self) -> Option<String> {
        fs::read_to_string(self.ready_file()).ok()
    }

    /// Restores an archive beside the present store, which is not changed. Replaces an earlier restoration that has not
    /// been used. Blocks.
    ///
    /// # Errors
    /// If the archive cannot be restored. Nothing is pending then.
    pub fn prepare(&self, archive: &UnlockedArchive, key_file: &Path, name: &str) -> Result<(), BackupError> {
        self.replaces(|| self.restore(archive, key_file).and_then(|()| self.mark_ready(name)))
    }

    /// Does the same on a node of a cluster. The restored store belongs to no log, and has the authority and the certificates of
    /// the present one, which must not be in use. Blocks.
    ///
    /// # Errors
    /// The same, and if not all nodes could read what the back-up contains.
    pub fn prepare_for_node(
        &self,
        archive: &UnlockedArchive,
        key_file: &Path,
        name: &str,
    ) -> Result<(), BackupError> {
        let restore = || {
            let present = Store::open(&self.root.join("store"), key_file, schema())?;
            if needed_version(archive) > written(&present)? {
                return Err(BackupError::NotFinalized);
            }
            self.restore(archive, key_file)?;
            let restored = Store::open(&self.folder().join("store"), key_file, schema())?;
            copy_records(&present, &restored, &CLUSTER_RECORDS)?;
            restored.close();
            present.close();
            self.mark_ready(name)
        };
        self.replaces(restore)
    }

    /// Restores a snapshot of the cluster beside the present store, which it replaces at the next start. Files stay as they
    /// are, and the records of this node are kept. Returns the position of the snapshot. Blocks.
    ///
    /// # Errors
    /// If the snapshot cannot be restored. Nothing is pending then.
    pub fn prepare_snapshot(
        &self,
        path: &Path,
        keys: &LogKeys,
        key_file: &Path,
    ) -> Result<LogPosition, BackupError> {
        self.replaces(|| {
            let folder = self.folder();
            create_folder(&folder, 0o700).map_err(io_error("create a folder"))?;
            let mut save = |_: &str, _: &str, _: &[u8]| Ok(());
            let store = folder.join("store");
            let position = restore_snapshot(path, keys, &store, key_file, &schema(), &mut save)?;
            File::create(self.snapshot_file()).map_err(io_error("create a file"))?;
            self.mark_ready(SNAPSHOT_NAME)?;
            Ok(position)
        })
    }

    /// Replaces an earlier restoration that has not been used.
    fn replaces<R>(&self, prepare: impl FnOnce() -> Result<R, BackupError>) -> Result<R, BackupError> {
        self.discard().map_err(io_error("remove an earlier restoration"))?;
        prepare().inspect_err(|_| {
            // The next restoration removes it otherwise.
            let _ = self.discard();
        })
    }

    fn restore(&self, archive: &UnlockedArchive, key_file: &Path) -> Result<(), BackupError> {
        let folder = self.folder();
        let create = |path: &Path| create_folder(path, 0o700);
        create(&folder)
            .and_then(|()| create(&folder.join("uploads")))
            // Empty: the numbers of guide files can be those of other guides in another store.
            .and_then(|()| create(&folder.join(GUIDES_FOLDER)))
            .map_err(io_error("create a folder"))?;
        let files = Files::new(&folder);
        let mut save = |folder: &str, name: &str, part: &[u8]| append(&files, folder, name, part);
        archive.restore(&folder.join("store"), key_file, &schema(), &mut save)
    }

    /// Marks the restoration as complete.
    fn mark_ready(&self, name: &str) -> Result<(), BackupError> {
        let folder = self.folder();
        let complete = || {
            sync_below(&folder)?;
            let unfinished = folder.join("ready.part");
            let mut file = File::create(&unfinished)?;
            file.write_all(name.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, self.ready_file())?;
            sync(&folder)?;
            sync(&self.root)
        };
        complete().map_err(io_error("complete the restoration"))
    }

    /// Removes a restoration, also an incomplete one.
    pub fn discard(&self) -> io::Result<()> {
        // First, so that no part of it is ever used.
        match fs::remove_file(self.ready_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
            Ok(()) => sync(&self.folder())?,
        }
        match fs::remove_dir_all(self.folder()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves the restored folders into their places, and the present ones aside. Returns false if nothing is pending, or
    /// if a gateway is using the present store. Can be repeated after every interruption.
    pub fn swap(&self) -> io::Result<bool> {
        let mut unlimited = usize::MAX;
        self.swap_until(&mut unlimited)
    }

    /// Swaps with at most this many renames, for tests of interruptions.
    fn swap_until(&self, n_renames: &mut usize) -> io::Result<bool> {
        if self.name().is_none() {
            return Ok(false);
        }
        let Some(_lock) = self.lock_store()? else { return Ok(false) };
        for (name, old_name) in REPLACED {
            let (present, new) = (self.root.join(name), self.folder().join(name));
            let old = self.folder().join(old_name);
            if new.exists() && present.exists() {
                self.rename(&present, &old, n_renames)?;
            }
            if new.exists() {
                self.rename(&new, &present, n_renames)?;
            }
        }
        Ok(true)
    }

    /// After a swap with a snapshot: gives the new store the records of this node. Blocks.
    pub(crate) fn keep_records_of_node(&self, store: &Store, key_file: &Path) {
        let old = self.folder().join("old-store");
        if !self.snapshot_file().exists() || !old.exists() {
            return;
        }
        let kept = Store::open(&old, key_file, schema()).and_then(|old| {
            copy_local_records(&old, store)?;
            old.close();
            Ok(())
        });
        // They say how streams and integrations were lately; the configuration is complete.
        if let Err(error) = kept {
            warn!("the records of this node alone were lost with its old store: {error}");
        }
    }

    /// Moves the old folders back into their places, because the restored store cannot be opened.
    pub(crate) fn roll_back(&self) -> io::Result<()> {
        let mut unlimited = usize::MAX;
        for (name, old_name) in REPLACED {
            let (present, new) = (self.root.join(name), self.folder().join(name));
            let old = self.folder().join(old_name);
            if old.exists() {
                if present.exists() {
                    self.rename(&present, &new, &mut unlimited)?;
                }
                self.rename(&old, &present, &mut unlimited)?;
            }
        }
        self.discard()
    }

    fn rename(&self, from: &Path, to: &Path, n_renames: &mut usize) -> io::Result<()> {
        *n_renames = n_renames.checked_sub(1).ok_or_else(|| io::Error::other("interrupted"))?;
        fs::rename(from, to)?;
        sync(&self.root)?;
        sync(&self.folder())
    }

    /// Locks the present store, or returns `None` if a gateway is using it.
    fn lock_store(&self) -> io::Result<Option<Option<File>>> {
        let path = self.root.join("store").join("lock");
        let file = match File::options().write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(None)),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Some(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Returns the version of the cluster that a back-up needs: a snapshot names each collection that ever had records.
fn needed_version(archive: &UnlockedArchive) -> u32 {
    let added =
        [(PluginValue::COLLECTION, PLUGIN_VALUES_VERSION), (ServiceKey::COLLECTION, SERVICE_KEYS_VERSION)];
    let collections = archive.manifest().collections.iter().filter(|it| it.next_id > 1);
    let needed = collections.filter_map(|it| added.iter().find(|added| added.0 == it.name));
    needed.map(|it| it.1).max().unwrap_or(FIRST_VERSION)
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> BackupError {
    move |source| BackupError::Io { what, source }
}

/// Adds a part to an uploaded file of the restoration.
fn append(files: &Files, folder: &str, name: &str, part: &[u8]) -> io::Result<()> {
    let folder = Folder::UPLOADS.into_iter().find(|it| it.name() == folder);
    let folder = folder.ok_or_else(|| io::Error::other("the back-up has an unknown folder of files"))?;
    let path = files.path(folder, name)?;
    if let Some(parent) = path.parent() {
        create_folder(parent, 0o700)?;
    }
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(part)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn sync_below(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_below(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    sync(folder)
}

#[cfg(test)]
mod tests {
    use domain::group::Group;
    use domain::health::StreamHealth;
    use domain::ids::{GroupId, StreamId};
    use domain::plugin::PluginKey;
    use domain::secret::Secret;
    use storage::backup::{Archive, BackupSecret, create_backup};
    use storage::log::create_snapshot;
    use storage::records::{remove_plugin_values, set_plugin_value, set_service_key};
    use tempfile::TempDir;

    use super::*;
    use crate::open_store::open_store;

    /// A data folder whose store has a group of this name, and an uploaded logo.
    fn data(name: &str) -> (TempDir, DataFolder) {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(&parent.path().join("data"));
        let store = open_store(&folder).unwrap();
        put(&store, name);
        store.close();
        Files::new(folder.root()).save(Folder::Logos, "a.png", name.as_bytes()).unwrap();
        fs::create_dir(folder.root().join(GUIDES_FOLDER)).unwrap();
        fs::write(folder.root().join(GUIDES_FOLDER).join("1-1.guide"), name).unwrap();
        (parent, folder)
    }

    fn put(store: &Store, name: &str) {
        let group = Group::new(GroupId(1), name);
        store.write_blocking(move |write| write.put(&group)).unwrap();
    }

    fn group(store: &Store) -> String {
        store.collection::<Group>().get(1).unwrap().unwrap().name
    }

    fn logo(folder: &DataFolder) -> String {
        let path = Files::new(folder.root()).path(Folder::Logos, "a.png").unwrap();
        fs::read_to_string(path).unwrap()
    }

    fn n_guide_files(folder: &DataFolder) -> usize {
        fs::read_dir(folder.root().join(GUIDES_FOLDER)).unwrap().count()
    }

    /// Makes a back-up of a folder.
    fn backup(from: &DataFolder) -> UnlockedArchive {
        let path = from.root().join("backup.tar.gz");
        let store = open_store(from).unwrap();
        let secret = BackupSecret::Passphrase(Secret::new("p"));
        let uploads = crate::backups::uploaded_files(&Files::new(from.root())).unwrap();
        create_backup(&store, &uploads, &secret, 0, &mut File::create(&path).unwrap()).unwrap();
        store.close();
        Archive::open(&path).unwrap().unlock(&secret).unwrap()
    }

    /// A folder with the content `now`, in which the content `then` is pending.
    fn pending() -> (TempDir, DataFolder, PendingRestore) {
        let (_other, from) = data("then");
        let archive = backup(&from);
        let (parent, folder) = data("now");
        let pending = PendingRestore::new(&folder);
        pending.prepare(&archive, &folder.key(), "backup.tar.gz").unwrap();
        (parent, folder, pending)
    }

    #[test]
    fn a_pending_restoration_replaces_store_and_files_at_the_next_start() {
        let (_parent, folder, pending) = pending();
        assert_eq!((pending.name().as_deref(), logo(&folder).as_str()), (Some("backup.tar.gz"), "now"));
        let store = open_store(&folder).unwrap();
        assert_eq!((group(&store), logo(&folder)), ("then".to_owned(), "then".to_owned()));
        assert!(pending.name().is_none() && !pending.folder().exists());
        store.close();
        drop(store);
        assert_eq!(group(&open_store(&folder).unwrap()), "then");
    }

    #[test]
    fn a_power_cut_at_any_step_of_the_swap_ends_with_the_restored_store() {
        for n_renames in 0..6 {
            let (_parent, folder, pending) = pending();
            let mut left = n_renames;
            assert!(pending.swap_until(&mut left).is_err(), "{n_renames}");
            let store = open_store(&folder).unwrap();
            assert_eq!((group(&store), logo(&folder)), ("then".to_owned(), "then".to_owned()), "{n_renames}");
            assert!(!pending.folder().exists() && n_guide_files(&folder) == 0);
        }
    }

    #[test]
    fn a_restored_store_that_cannot_be_opened_is_given_up_and_the_old_one_opens() {
        let (_parent, folder, pending) = pending();
        fs::remove_file(pending.folder().join("store").join("commit")).ok();
        for file in fs::read_dir(pending.folder().join("store")).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                fs::write(path, b"damaged").unwrap();
            }
        }
        let store = open_store(&folder).unwrap();
        assert_eq!((group(&store), logo(&folder)), ("now".to_owned(), "now".to_owned()));
        assert!(pending.name().is_none() && n_guide_files(&folder) == 1);
    }

    #[test]
    fn a_snapshot_replaces_the_store_alone_and_the_records_of_the_node_move_into_it() {
        let (_parent, folder) = data("now");
        let health = StreamHealth { losses: 7, ..StreamHealth::new(StreamId(3)) };
        let expected = health.clone();
        let store = open_store(&folder).unwrap();
        store.write_blocking(move |write| write.put(&health)).unwrap();
        let keys = LogKeys::new().unwrap();
        let path = folder.root().join("a.snapshot");
        {
            let (_other, from) = data("then");
            let store = open_store(&from).unwrap();
            store.begin_log(uuid::Uuid::from_u128(1), 9).unwrap();
            create_snapshot(&store, &[], &keys, 0, &mut File::create(&path).unwrap()).unwrap();
        }
        let pending = PendingRestore::new(&folder);
        let wrong = pending.prepare_snapshot(&path, &LogKeys::new().unwrap(), &folder.key());
        assert!(wrong.is_err() && pending.name().is_none(), "{wrong:?}");
        let position = pending.prepare_snapshot(&path, &keys, &folder.key()).unwrap();
        assert_eq!(group(&store), "now", "the present store is not touched");
        store.close();
        drop(store);
        let store = open_store(&folder).unwrap();
        assert_eq!(
            (group(&store), logo(&folder), n_guide_files(&folder)),
            ("then".to_owned(), "now".to_owned(), 1)
        );
        assert_eq!(store.log_status().borrow().as_ref().unwrap().position, position);
        assert_eq!(store.collection::<StreamHealth>().all().unwrap(), [expected]);
        assert!(!pending.folder().exists());
    }

    #[test]
    fn a_back_up_with_values_of_plugins_is_restored_on_a_node_after_the_upgrade_of_all() {
        let (_other, from) = data("then");
        let (_parent, folder) = data("now");
        let pending = PendingRestore::new(&folder);
        let restored = |archive: &UnlockedArchive| pending.prepare_for_node(archive, &folder.key(), "name");
        restored(&backup(&from)).unwrap();
        let store = open_store(&from).unwrap();
        let used = |write: &mut storage::Write<'_>| {
            let plugin = PluginKey::from_folder("demo").unwrap();
            set_plugin_value(write, &plugin, "a".to_owned(), Some(Secret::new("1")))?;
            remove_plugin_values(write, &plugin)
        };
        store.write_blocking(used).unwrap();
        store.close();
        drop(store);
        let archive = backup(&from);
        assert!(matches!(restored(&archive), Err(BackupError::NotFinalized)));
        assert!(pending.name().is_none());
        let store = Store::open(&folder.root().join("store"), &folder.key(), schema()).unwrap();
        let finalized = ClusterVersion { version: PLUGIN_VALUES_VERSION };
        store.write_blocking(move |write| write.put(&finalized)).unwrap();
        store.close();
        drop(store);
        restored(&archive).unwrap();
        // Keys for services came later.
        let store = open_store(&from).unwrap();
        let key = Some(Secret::new("1"));
        store.write_blocking(move |write| set_service_key(write, ServiceKey::TMDB, key)).unwrap();
        store.close();
        drop(store);
        assert!(matches!(restored(&backup(&from)), Err(BackupError::NotFinalized)));
    }

    #[test]
    fn a_store_in_use_is_not_swapped() {
        let (_parent, folder, pending) = pending();
        let key = folder.key();
        let store = Store::open(&folder.root().join("store"), &key, schema()).unwrap();
        assert!(!pending.swap().unwrap());
        assert_eq!(group(&store), "now");
        assert!(open_store(&folder).err().unwrap().to_string().contains("already running"));
        assert!(pending.name().is_some(), "still pending");
    }

    #[test]
    fn an_incomplete_restoration_is_never_used() {
        let (_parent, folder, pending) = pending();
        fs::remove_file(pending.ready_file()).unwrap();
        assert_eq!(group(&open_store(&folder).unwrap()), "now");
    }
}
