//! Files of the data folder that all nodes have: uploads, and the programmes of guides.
//!
//! ```text
//!   upload at the writer ─▶ object store ─▶ SharedFile ─▶ record that names the file ─▶ answer
//!                                              │ log
//!   other nodes: a named file is missing ◀─────┘  fetch; also on use
//! ```
//!
//! A file is fetched if a record names it and there is a [`SharedFile`] of it. The node that writes the configuration also
//! shares files that it has from before the cluster, and guides that it imported, and removes what nothing names.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, fs, io};

use actors::{FileError, FileExchange, digest_of, now_ms};
use domain::account::{Account, PlaylistLocation};
use domain::cluster::shared_file::SharedFile;
use domain::guide::source::GuideSource;
use domain::guide::state::GuideState;
use domain::ids::GuideSourceId;
use domain::logo::Logo;
use domain::plugin::Plugin;
use domain::undo::UndoEntry;
use domain::user::User;
use media::spawn_blocking;
use parking_lot::Mutex;
use services::files::{AVATARS_PATH, COMSKIP_CONFIG, Files, Folder, UNFINISHED};
use storage::guide::{GuideFiles, parse_file_name};
use storage::{ChangeMessage, Changes, Models, Record, Table, View, create_folder};
use tokio::sync::{RwLock, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::time_limits::{
    CLEAN_UP_INTERVAL, FILES_RETRY_PAUSE, FILES_RETRY_PAUSE_MAX, GATHER_TIME, UNNAMED_TIME,
};
use super::trust::NodeTrust;

/// Maximum number of files that are fetched at a time.
const FETCHES_MAX: usize = 4;

/// The folder of guide files in the records.
const PROGRAMMES: &str = "programmes";

/// The collections that name files.
const NAMING: [&str; 8] = [
    Account::COLLECTION,
    GuideSource::COLLECTION,
    GuideState::COLLECTION,
    Logo::COLLECTION,
    Plugin::COLLECTION,
    SharedFile::COLLECTION,
    UndoEntry::COLLECTION,
    User::COLLECTION,
];

/// A file that nodes share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shared {
    Upload(Folder, String),
    /// The programmes of a source.
    Programmes(GuideSourceId, u64),
}

impl Shared {
    /// Returns the file of a record; `None` if a later version wrote it.
    fn from_record(record: &SharedFile) -> Option<Self> {
        if record.folder == PROGRAMMES {
            return parse_file_name(&record.name).map(|it| Self::Programmes(it.0, it.1));
        }
        let folder = Folder::UPLOADS.into_iter().find(|it| it.name() == record.folder)?;
        Some(Self::Upload(folder, record.name.clone()))
    }

    fn folder(&self) -> &'static str {
        match self {
            Self::Upload(folder, _) => folder.name(),
            Self::Programmes(..) => PROGRAMMES,
        }
    }

    /// Returns whether it can contain logins at providers, or is for full nodes only.
    fn is_secret(&self) -> bool {
        matches!(self, Self::Upload(Folder::Playlists | Folder::Guides | Folder::Plugins, _))
    }
}

/// The shared files of this node.
pub struct SharedFiles {
    exchange: FileExchange,
    trust: Arc<NodeTrust>,
    models: Models,
    records: View<Table<SharedFile>>,
    files: Files,
    guides: GuideFiles,
    fetches: Semaphore,
    /// Held for reading while a file is shared, and for writing while objects without a record are removed.
    sharing: RwLock<()>,
    /// Objects that had no record the last time.
    unnamed: Mutex<HashSet<String>>,
    /// Uploads that were not complete the last time.
    unfinished: Mutex<HashSet<String>>,
    /// Problems that were logged.
    reported: Mutex<HashSet<String>>,
}

impl fmt::Debug for SharedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFiles").finish_non_exhaustive()
    }
}

impl SharedFiles {
    /// Reads the records. Blocks.
    ///
    /// # Errors
    /// If the store is closed.
    pub(super) fn new(
        exchange: FileExchange,
        trust: Arc<NodeTrust>,
        models: Models,
        files: Files,
        guides: GuideFiles,
    ) -> Result<Self, storage::Error> {
        let records = models.store.table()?;
        Ok(Self {
            exchange,
            trust,
            models,
            records,
            files,
            guides,
            fetches: Semaphore::new(FETCHES_MAX),
            sharing: RwLock::default(),
            unnamed: Mutex::default(),
            unfinished: Mutex::default(),
            reported: Mutex::default(),
        })
    }

    /// Shares and fetches until the store is closed.
    pub(super) async fn run(self: Arc<Self>) {
        let mut changes = self.models.store.changes();
        let (mut pause, mut clean_up) = (FILES_RETRY_PAUSE, Instant::now() + CLEAN_UP_INTERVAL);
        // Whether this node has compared the object store with the records since it writes.
        let mut is_compared = false;
        loop {
            let writes = self.models.store.writes_shared();
            let mut is_complete = self.reconcile(writes).await;
            is_compared &= writes;
            if writes && !is_compared {
                is_compared = self.share_lost().await;
                is_complete &= is_compared;
            }
            if Instant::now() >= clean_up {
                self.clean_up(writes).await;
                clean_up = Instant::now() + CLEAN_UP_INTERVAL;
                is_compared = false;
            }
            let until = if is_complete { clean_up } else { (Instant::now() + pause).min(clean_up) };
            pause = if is_complete { FILES_RETRY_PAUSE } else { (pause * 2).min(FILES_RETRY_PAUSE_MAX) };
            match self.changed(&mut changes, until, writes).await {
                Some(true) => pause = FILES_RETRY_PAUSE,
                Some(false) => {}
                None => return,
            }
        }
    }

    /// Waits until records that name files have changed, or this node begins to write (`true`), or until a time. `None`: the
    /// store was closed.
    async fn changed(&self, changes: &mut Changes, until: Instant, writes: bool) -> Option<bool> {
        let mut status = self.models.store.log_status();
        loop {
            if self.models.store.writes_shared() != writes {
                return Some(true);
            }
            let message = tokio::select! {
                message = timeout_at(until, changes.next()) => message,
                changed = status.changed() => {
                    changed.ok()?;
                    continue;
                }
            };
            match message {
                Err(_) => return Some(false),
                Ok(ChangeMessage::Closed) => return None,
                Ok(ChangeMessage::Changed(it)) if NAMING.iter().all(|name| it.ids(name).is_none()) => {}
                Ok(_) => break,
            }
        }
        sleep(GATHER_TIME).await;
        while changes.try_next().is_some() {}
        Some(true)
    }

    /// Returns the files that records name.
    fn named(&self) -> HashSet<Shared> {
        let models = &self.models;
        let upload = |folder| move |name: String| Shared::Upload(folder, name);
        let accounts = models.accounts.load();
        let playlists = accounts.iter().filter_map(|it| match &it.list {
            PlaylistLocation::Upload(name) => Some(name.clone()),
            _ => None,
        });
        let mut named: HashSet<_> = playlists.map(upload(Folder::Playlists)).collect();
        let sources = models.guide_sources.load();
        named.extend(sources.iter().filter_map(|it| it.file.clone()).map(upload(Folder::Guides)));
        let logos = models.logos.load();
        named.extend(logos.iter().filter_map(|it| it.file.clone()).map(upload(Folder::Logos)));
        let undo = models.undo.load();
        named.extend(undo.iter().flat_map(|it| it.files.clone()).map(upload(Folder::Logos)));
        let users = models.users.load();
        let pictures =
            users.iter().filter_map(|it| it.avatar.get("url")?.as_str()?.strip_prefix(AVATARS_PATH));
        named.extend(pictures.map(str::to_owned).map(upload(Folder::Avatars)));
        named.insert(Shared::Upload(Folder::Comskip, COMSKIP_CONFIG.to_owned()));
        let plugins = models.plugins.load();
        named.extend(plugins.iter().filter_map(|it| it.archive.clone()).map(upload(Folder::Plugins)));
        let states = models.guide_states.load();
        let states = states.iter().filter(|it| it.generation > 0);
        named.extend(states.map(|it| Shared::Programmes(it.source, it.generation)));
        // Other names are not those of shared files.
        named.retain(|it| self.path(it).is_ok());
        named
    }

    fn name(file: &Shared, path: &std::path::Path) -> String {
        match file {
            Shared::Upload(_, name) => name.clone(),
            Shared::Programmes(..) => {
                path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned()
            }
        }
    }

    fn path(&self, file: &Shared) -> io::Result<PathBuf> {
        match file {
            Shared::Upload(folder, name) => self.files.path(*folder, name),
            Shared::Programmes(source, generation) => Ok(self.guides.path(*source, *generation)),
        }
    }

    fn record(&self, file: &Shared) -> Option<Arc<SharedFile>> {
        let path = self.path(file).ok()?;
        let key = format!("{}/{}", file.folder(), Self::name(file, &path));
        self.records.load().one_by("path", key).cloned()
    }

    /// Writes a file to the object store, and its record.
    pub(crate) async fn share(&self, file: &Shared) -> Result<(), FileError> {
        let _no_removal = self.sharing.read().await;
        let path = self.path(file)?;
        let is_secret = file.is_secret();
        let stored = self.exchange.put(&self.trust.data_keys(), &path, is_secret).await?;
        let record = SharedFile {
            id: 0,
            folder: file.folder().to_owned(),
            name: Self::name(file, &path),
            digest: stored.digest,
            bytes: stored.bytes,
            is_secret,
            object: stored.name,
            shared_at: now_ms(),
        };
        let former = self.former(file);
        let ids: Vec<_> = former.iter().map(|it| it.id).collect();
        let writing = self.models.store.write(move |write| {
            let before = write.by::<SharedFile>("path", record.path())?.into_iter().next();
            let id = match before {
                Some(before) => before.id,
                None => write.next_id::<SharedFile>()?,
            };
            ids.into_iter().try_for_each(|it| write.remove::<SharedFile>(it).map(drop))?;
            write.put(&SharedFile { id, ..record })
        });
        writing.await?;
        for former in former {
            if let Err(error) = self.exchange.remove(&former.object).await {
                // It has no record any more, and is removed later.
                debug!("failed to remove a guide from the object store: {error}");
            }
        }
        Ok(())
    }

    /// Returns the files of programmes that this one replaces. A source can have a new one each second.
    fn former(&self, file: &Shared) -> Vec<Arc<SharedFile>> {
        let Shared::Programmes(source, generation) = file else { return Vec::new() };
        let is_former = |it: &SharedFile| match Shared::from_record(it) {
            Some(Shared::Programmes(of, number)) => of == *source && number < *generation,
            _ => false,
        };
        self.records.load().iter().filter(|it| is_former(it)).cloned().collect()
    }

    /// Shares files again that have a record and are not in the object store: it lost them, or it is another one. Returns
    /// whether none is left.
    async fn share_lost(&self) -> bool {
        let names: HashSet<_> = match self.exchange.names().await {
            Ok(names) => names.into_iter().collect(),
            Err(error) => {
                self.report(&format!("failed to list the shared files: {error}"));
                return false;
            }
        };
        let mut is_complete = true;
        for file in self.named() {
            let Some(record) = self.record(&file) else { continue };
            if names.contains(&record.object) || !self.is_present(&file, None).await.unwrap_or(false) {
                continue;
            }
            if let Err(error) = self.share(&file).await {
                self.report(&format!("failed to share a file again: {error}"));
                is_complete = false;
            }
        }
        is_complete
    }

    /// Makes this node and the others have what records name. Returns whether nothing is left to do.
    async fn reconcile(&self, writes: bool) -> bool {
        let mut is_complete = true;
        for file in self.named() {
            let done = self.reconcile_file(&file, writes).await;
            is_complete &= done.unwrap_or_else(|error| {
                let name = self.path(&file).map(|it| Self::name(&file, &it)).unwrap_or_default();
                self.report(&format!("failed to share {}/{name} with other nodes: {error}", file.folder()));
                false
            });
        }
        if is_complete {
            self.reported.lock().clear();
        }
        is_complete
    }

    /// Returns whether nothing is left to do.
    async fn reconcile_file(&self, file: &Shared, writes: bool) -> Result<bool, FileError> {
        if let Shared::Programmes(source, generation) = file {
            self.guides.reserve(*source, *generation);
        }
        if self.record(file).is_some() {
            self.fetch_missing(file).await?;
            return Ok(true);
        }
        let has_file = self.is_present(file, None).await?;
        match (writes, has_file, file) {
            // From before the cluster, or imported just now.
            (true, true, _) => self.share(file).await.map(|()| true),
            (true, false, Shared::Programmes(source, _)) => {
                // Of a node that was lost before it could share it, or about to be taken into use here.
                self.guides.mark_missing(*source);
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Returns whether this node has a file, with the content of its record if that can change.
    async fn is_present(&self, file: &Shared, record: Option<&SharedFile>) -> io::Result<bool> {
        let path = self.path(file)?;
        match (file, record) {
            (Shared::Programmes(source, generation), _) => {
                Ok(self.guides.file(*source).is_some_and(|it| it.generation() >= *generation))
            }
            // The one that writes has it from its clients.
            (Shared::Upload(Folder::Comskip, _), Some(record)) if !self.models.store.writes_shared() => {
                let digest = spawn_blocking(move || digest_of(&path)).await.map_err(io::Error::other)?;
                Ok(digest.is_ok_and(|it| it.0 == record.digest))
            }
            _ => tokio::fs::try_exists(path).await,
        }
    }

    /// Fetches a file that this node does not have and may read. Without a record it stays missing.
    pub(crate) async fn fetch_missing(&self, file: &Shared) -> Result<(), FileError> {
        let Some(record) = self.record(file) else { return Ok(()) };
        let keys = self.trust.data_keys();
        if (record.is_secret && keys.provider.is_none()) || self.is_present(file, Some(&record)).await? {
            return Ok(());
        }
        let Ok(_one_of_some) = self.fetches.acquire().await else { return Ok(()) };
        // Another request may have fetched it meanwhile.
        if self.is_present(file, Some(&record)).await? {
            return Ok(());
        }
        let unfinished = match file {
            Shared::Upload(folder, _) => {
                let folder = self.files.folder(*folder);
                let of_folder = folder.clone();
                spawn_blocking(move || create_folder(&of_folder, 0o700))
                    .await
                    .map_err(io::Error::other)??;
                folder.join(format!("{}.{UNFINISHED}", Uuid::new_v4()))
            }
            Shared::Programmes(..) => self.guides.unfinished_path()?,
        };
        let fetched = self.exchange.fetch(&keys, &record, &unfinished).await;
        if fetched.is_err() {
            // The file may not exist yet; the first error is the one to report.
            let _ = tokio::fs::remove_file(&unfinished).await;
        }
        fetched?;
        let (path, guides, file) = (self.path(file)?, self.guides.clone(), file.clone());
        let taking = spawn_blocking(move || match file {
            Shared::Upload(..) => take(&unfinished, &path).map_err(FileError::from),
            Shared::Programmes(source, generation) => Ok(guides.receive(source, generation, &unfinished)?),
        });
        taking.await.map_err(io::Error::other)?
    }

    /// Removes what no record names any more.
    async fn clean_up(&self, writes: bool) {
        let done = if writes { self.clean_up_shared().await } else { self.clean_up_own().await };
        if let Err(error) = done {
            self.report(&format!("failed to remove files that nothing uses: {error}"));
        }
    }

    /// Removes records of files that nothing names for some time, and objects that had no record twice.
    async fn clean_up_shared(&self) -> Result<(), FileError> {
        let _nothing_shared = self.sharing.write().await;
        let named = self.named();
        let since = now_ms() - UNNAMED_TIME.as_millis() as i64;
        let records = self.records.load();
        // What a later version shares stays.
        let is_unused = |it: &SharedFile| {
            it.shared_at < since && Shared::from_record(it).is_some_and(|it| !named.contains(&it))
        };
        let unused: Vec<_> = records.iter().filter(|it| is_unused(it)).map(|it| it.id).collect();
        if !unused.is_empty() {
            info!(files = unused.len(), "removing shared files that nothing uses");
            let removing = self.models.store.write(move |write| {
                unused.into_iter().try_for_each(|it| write.remove::<SharedFile>(it).map(drop))
            });
            removing.await?;
        }
        let records = self.records.load();
        let used: HashSet<&str> = records.iter().map(|it| it.object.as_str()).collect();
        let names = self.exchange.names().await?.into_iter();
        let unnamed: HashSet<_> = names.filter(|it| !used.contains(it.as_str())).collect();
        let before = std::mem::replace(&mut *self.unnamed.lock(), unnamed.clone());
        for name in unnamed.intersection(&before) {
            self.exchange.remove(name).await?;
        }
        // Uploads that a node did not finish; one takes minutes at most.
        let unfinished: HashSet<_> = self.exchange.unfinished().await?.into_iter().collect();
        let before = std::mem::replace(&mut *self.unfinished.lock(), unfinished.clone());
        for id in unfinished.intersection(&before) {
            self.exchange.remove_unfinished(id).await?;
        }
        Ok(())
    }

    /// Removes old uploads of this node that nothing names: the node that writes has removed them.
    async fn clean_up_own(&self) -> Result<(), FileError> {
        self.unnamed.lock().clear();
        self.unfinished.lock().clear();
        let (named, files, guides) = (self.named(), self.files.clone(), self.guides.clone());
        let states = self.models.guide_states.load();
        let removing = spawn_blocking(move || {
            let folders = Folder::UPLOADS.into_iter().filter(|it| *it != Folder::Comskip);
            for folder in folders {
                for name in files.names(folder)? {
                    let path = files.path(folder, &name)?;
                    let changed = fs::metadata(&path).and_then(|it| it.modified())?;
                    let age = SystemTime::now().duration_since(changed).unwrap_or_default();
                    if age > UNNAMED_TIME && !named.contains(&Shared::Upload(folder, name.clone())) {
                        files.remove(folder, &name)?;
                    }
                }
            }
            for source in guides.present().into_keys().filter(|it| states.get(it.0).is_none()) {
                guides.remove(source);
            }
            Ok::<_, io::Error>(())
        });
        Ok(removing.await.map_err(io::Error::other)??)
    }

    /// Logs a problem once, until all files are there.
    pub(crate) fn report(&self, problem: &str) {
        if self.reported.lock().insert(problem.to_owned()) {
            warn!("{problem}");
        }
    }
}

/// Gives a complete and durable file its name. Blocks.
fn take(unfinished: &std::path::Path, path: &std::path::Path) -> io::Result<()> {
    fs::rename(unfinished, path)?;
    let parent = path.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::File::open(parent)?.sync_all()
}
