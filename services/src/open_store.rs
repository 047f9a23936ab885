//! Opens the store of the data folder, and tidies the folder.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use config::DataFolder;
use domain::account::{Account, PlaylistLocation};
use domain::cluster::version::SERVICE_KEYS_VERSION;
use domain::guide::source::GuideSource;
use storage::records::{schema, separate_service_keys};
use storage::{Store, create_folder};
use tracing::{error, info, warn};

use crate::backups::PendingRestore;
use crate::files::{Files, Folder};
use crate::written_version::may_have;

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

/// Opens the store, or creates and initialises a new one. Blocks.
pub fn open_store(folder: &DataFolder) -> Result<Store, DataError> {
    let unusable = |source| DataError::Folder { root: folder.root().to_owned(), source };
    let pending = PendingRestore::new(folder);
    let name = pending.name().unwrap_or_default();
    let is_restored = pending.swap().map_err(unusable)?;
    create_store_folder(folder).map_err(unusable)?;
    let store = match Store::open(&folder.store(), &folder.key(), schema()) {
        Err(error) if is_restored => {
            error!(backup = name, "the restored store cannot be opened, so the old one is used: {error}");
            pending.roll_back().map_err(unusable)?;
            Store::open(&folder.store(), &folder.key(), schema())?
        }
        opened => opened?,
    };
    if is_restored {
        pending.keep_records_of_node(&store, &folder.key());
        info!(backup = name, "the store was replaced");
    }
    // Nobody else uses the folder now. What is left of an interrupted restoration is of no use.
    pending.discard().map_err(unusable)?;
    // In a cluster, the node that writes the configuration does it.
    if store.writes_shared() {
        match complete(&store) {
            // On a full disk. The records are written when there is room: see `store_watch.rs`.
            Err(storage::Error::Stopped(why)) => {
                warn!("records that this version adds are missing until there is room: {why}");
            }
            completed => completed?,
        }
    }
    remove_leftovers(folder, &store)?;
    Ok(store)
}

/// Removes what a crash can leave: uploaded playlists and guides that nothing uses, and uploads and back-ups that were
/// not finished. Nobody else may use the folder.
fn remove_leftovers(folder: &DataFolder, store: &Store) -> Result<(), DataError> {
    let accounts = store.collection::<Account>().all()?;
    let guides = store.collection::<GuideSource>().all()?;
    let is_used = |of, name: &str| match of {
        Folder::Guides => guides.iter().any(|it| it.file.as_deref() == Some(name)),
        _ => accounts.iter().any(|it| matches!(&it.list, PlaylistLocation::Upload(used) if used == name)),
    };
    let files = Files::new(folder.root());
    let removed = Folder::ALL.into_iter().try_for_each(|it| files.remove_unfinished(it));
    let removed = removed.and_then(|()| {
        [Folder::Playlists, Folder::Guides].into_iter().try_for_each(|folder| {
            let names = files.names(folder)?.into_iter();
            names.filter(|it| !is_used(folder, it)).try_for_each(|it| files.remove(folder, &it))
        })
    });
    // They only take room.
    if let Err(error) = removed {
        warn!("failed to remove files that nothing uses: {error}");
    }
    Ok(())
}

/// Creates the data folder itself, if it does not exist.
pub fn create_root(folder: &DataFolder) -> Result<(), DataError> {
    let created = create_folder(folder.root(), 0o700);
    created.map_err(|source| DataError::Folder { root: folder.root().to_owned(), source })
}

/// Creates the folders with access for the owner only, and checks that they are writable, because later errors do
/// not name the folder.
fn create_store_folder(folder: &DataFolder) -> io::Result<()> {
    create_folder(&folder.store(), 0o700)?;
    File::options().create(true).append(true).open(folder.store().join("lock")).map(drop)
}

/// Adds the records that every store needs, and completes those of earlier versions. Blocks.
pub fn complete(store: &Store) -> Result<(), storage::Error> {
    storage::seed(store)?;
    storage::link_logos(store)?;
    storage::drop_unused_stream_ids(store)?;
    if may_have(store, SERVICE_KEYS_VERSION)? {
        store.write_blocking(separate_service_keys)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use domain::account::AccountProfile;
    use domain::guide::source::GuideSourceKind;
    use domain::ids::{AccountId, GuideSourceId, ProfileId};
    use storage::guide::{GUIDES_FOLDER, GuideFiles};

    use super::*;

    /// Environment variable with the data folder of [`child`].
    const FOLDER: &str = "HEADWATER_NEW_FOLDERS";

    #[test]
    #[ignore = "started as a child process by the next test"]
    fn child() {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        let folder = DataFolder::new(Path::new(&folder));
        drop(open_store(&folder).unwrap());
        GuideFiles::open(&folder.root().join(GUIDES_FOLDER)).unwrap();
        for kind in Folder::ALL {
            Files::new(folder.root()).save(kind, "a", &b"x"[..]).unwrap();
        }
    }

    /// The first back-up was confirmed, and a power cut took it with its folder.
    #[test]
    fn a_power_cut_takes_no_new_folder_of_the_data_folder() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().canonicalize().unwrap();
        let (folder, trace) = (root.join("new/data"), root.join("trace"));
        let done = Command::new("strace")
            .args(["-f", "-y", "-qq", "-s", "4096", "-e", "trace=mkdir,mkdirat,fsync", "-o"])
            .arg(&trace)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "open_store::tests::child", "--ignored"])
            .env(FOLDER, &folder)
            .stdout(Stdio::null())
            .status()
            .expect("strace is installed: apt-get install strace");
        assert!(done.success());
        let trace = fs::read_to_string(trace).unwrap();
        let calls: Vec<_> = trace.lines().filter_map(|it| it.split_once(' ')).collect();
        let mut created = Vec::new();
        for (n, (thread, call)) in calls.iter().enumerate() {
            let path =
                call.trim_start().strip_prefix("mkdir").and_then(|it| it.split('"').nth(1)).map(Path::new);
            // The store syncs the folders of its databases when they are complete; its own tests cut the power.
            let store = folder.join("store");
            let is_meant = |it: &&Path| it.starts_with(&root) && (!it.starts_with(&store) || *it == store);
            let Some(path) = path.filter(|it| call.ends_with("= 0") && is_meant(it)) else { continue };
            let next = calls[n + 1..].iter().find(|it| it.0 == *thread).map_or("", |it| it.1.trim_start());
            let above = format!("<{}>", path.parent().unwrap().display());
            assert!(next.starts_with("fsync(") && next.contains(&above), "{call} is followed by {next}");
            created.push(path.strip_prefix(&root).unwrap().display().to_string());
        }
        for name in
            ["new", "new/data", "new/data/store", "new/data/uploads", "new/data/backups", "new/data/guides"]
        {
            assert!(created.iter().any(|it| it == name), "{name} is not in {created:?}");
        }
    }

    /// A back-up that a crash interrupted stayed for ever.
    #[test]
    fn files_that_were_not_finished_are_removed_from_every_folder_at_the_next_start() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(parent.path());
        let files = Files::new(parent.path());
        let paths = Folder::ALL.map(|it| files.folder(it));
        for path in &paths {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join("b.part~"), "x").unwrap();
        }
        files.save(Folder::Backups, "a.tar.gz", &b"x"[..]).unwrap();
        drop(open_store(&folder).unwrap());
        assert!(paths.iter().all(|it| !it.join("b.part~").exists()));
        assert_eq!(files.names(Folder::Backups).unwrap(), ["a.tar.gz"]);
    }

    #[test]
    fn uploads_that_nothing_uses_are_removed_at_the_next_start() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(parent.path());
        let store = open_store(&folder).unwrap();
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
        drop(open_store(&folder).unwrap());
        assert_eq!(files.names(Folder::Playlists).unwrap(), ["used.m3u"]);
        assert_eq!(files.names(Folder::Guides).unwrap(), ["used.xmltv"]);
        assert_eq!(files.names(Folder::Avatars).unwrap(), ["a.png"]);
        assert!(!unfinished.exists());
    }

    #[test]
    fn only_the_owner_can_access_a_new_data_folder_and_its_key() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(&parent.path().join("a/b"));
        drop(open_store(&folder).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.root()), mode(&folder.key())), (0o700, 0o600));
        drop(open_store(&folder).unwrap());
    }

    #[test]
    fn the_error_for_an_unusable_folder_names_it_and_the_option() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = open_store(&DataFolder::new(file.path())).err().unwrap().to_string();
        assert!(
            error.contains(&file.path().display().to_string()) && error.contains("--data-dir"),
            "{error}"
        );
    }
}
