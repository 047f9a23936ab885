//! Back-ups of the store and the uploaded files: made on request or by schedule, kept in the data folder, and restored.
//!
//! Reading order: this file (tasks and tokens), `pending.rs` (how a restored store replaces the present one),
//! `schedule.rs`.

mod pending;
mod report;
mod schedule;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use actors::{Events, now_ms};
use config::DataFolder;
use data_encoding::HEXLOWER;
use domain::event::{Event, EventBody};
use domain::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use media::{BlockingError, spawn_blocking};
use parking_lot::Mutex;
use sha2::Sha256;
use storage::backup::{
    Archive, BackupError, BackupFile, BackupSecret, KeyKind, UnlockedArchive, create_backup,
};
use storage::{Error, Models};
use tokio::sync::watch;
use tracing::{info, warn};
use uuid::Uuid;

pub use self::pending::PendingRestore;
pub use self::schedule::follow as follow_schedule;
use crate::auth::random;
use crate::disk_space::DiskSpace;
use crate::files::{Files, Folder};

/// Back-ups and restorations that may wait or run at a time.
const UNFINISHED_MAX: usize = 4;
/// Finished tasks whose result can still be read.
const TASKS_MAX: usize = 64;
/// Time for clients to read the result of a restoration, and for viewers to be told, before the gateway restarts.
const RESTART_PAUSE: Duration = Duration::from_secs(3);
/// A token for a download is valid for one to two of these periods, in milliseconds.
const TOKEN_PERIOD_MS: i64 = 5 * 60 * 1000;
/// Room that is left on the disk beside a back-up or a restored store, in bytes.
const ROOM_BYTES: u64 = 256 << 20;
/// Ending of the name of every archive.
pub(crate) const ENDING: &str = ".tar.gz";
/// Beginning of the names of scheduled back-ups, which the schedule removes when there are too many.
const SCHEDULED: &str = "headwater-scheduled-";
const REQUESTED: &str = "headwater-backup-";

/// The back-ups of one gateway. Clones share them.
#[derive(Clone)]
pub struct Backups(Arc<Inner>);

struct Inner {
    models: Models,
    files: Files,
    folder: DataFolder,
    events: Events,
    /// Whether the store belongs to the data folder; that of `play` and `demo` does not.
    is_enabled: AtomicBool,
    /// Whether the gateway restarts by itself when asked.
    can_restart: AtomicBool,
    restart: watch::Sender<bool>,
    /// The newest last.
    tasks: Mutex<VecDeque<Arc<Task>>>,
    /// Held while a task works.
    working: tokio::sync::Mutex<()>,
    /// Signs the tokens for status and download.
    token_key: [u8; 32],
    /// Why the last scheduled back-up failed.
    schedule_failure: Mutex<Option<String>>,
}

/// A back-up or a restoration that was requested.
pub struct Task {
    pub id: Uuid,
    state: Mutex<TaskState>,
}

/// The progress of a task.
#[derive(Clone, Debug)]
pub enum TaskState {
    Pending,
    Running,
    /// A back-up was made: its name and its size in bytes.
    Made {
        name: String,
        n_bytes: u64,
    },
    /// A back-up replaces the store at the next start.
    Restored {
        name: String,
        restarts_now: bool,
    },
    /// The reason, without credentials.
    Failed(String),
}

/// Reason why a task was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRefusal {
    /// The store is temporary.
    Disabled,
    /// Too many tasks wait.
    TooMany,
}

impl Task {
    pub fn state(&self) -> TaskState {
        self.state.lock().clone()
    }

    fn is_unfinished(&self) -> bool {
        matches!(*self.state.lock(), TaskState::Pending | TaskState::Running)
    }
}

/// An archive in the data folder.
#[derive(Clone, Debug)]
pub struct StoredBackup {
    pub name: String,
    pub n_bytes: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// `None` if the file is not an archive.
    pub key_kind: Option<KeyKind>,
    pub program: Option<String>,
}

impl Backups {
    pub fn new(models: Models, files: Files, folder: DataFolder, events: Events) -> Self {
        Backups(Arc::new(Inner {
            models,
            files,
            folder,
            events,
            is_enabled: AtomicBool::new(false),
            can_restart: AtomicBool::new(false),
            restart: watch::Sender::new(false),
            tasks: Mutex::default(),
            working: tokio::sync::Mutex::default(),
            token_key: random(),
            schedule_failure: Mutex::default(),
        }))
    }

    /// Declares that the store is that of the data folder, so that it can be backed up and restored.
    pub fn enable(&self) {
        self.0.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Waits until a restoration wants the gateway to restart. Without this call, a restoration waits for the next start.
    pub async fn restart_requested(&self) {
        self.0.can_restart.store(true, Ordering::Relaxed);
        let mut restart = self.0.restart.subscribe();
        // An error is impossible, because this handle holds the sender.
        let _ = restart.wait_for(|it| *it).await;
    }

    /// Restarts the gateway, to use a store that was prepared, as soon as it has started.
    pub fn restart(&self) {
        self.0.restart.send_replace(true);
    }

    /// Returns why the last scheduled back-up failed.
    pub fn schedule_failure(&self) -> Option<String> {
        self.0.schedule_failure.lock().clone()
    }

    /// Returns whether a back-up replaces the store at the next start. Blocks.
    pub fn is_restore_pending(&self) -> bool {
        PendingRestore::new(&self.0.folder).name().is_some()
    }

    /// Begins a back-up, encrypted under the passphrase or else under the key file.
    pub fn create(&self, passphrase: Option<Secret>) -> Result<Arc<Task>, TaskRefusal> {
        self.begin(move |inner| inner.make_requested(passphrase))
    }

    /// Begins to restore a verified archive of this name.
    pub fn restore(&self, name: String, archive: UnlockedArchive) -> Result<Arc<Task>, TaskRefusal> {
        self.begin(move |inner| {
            inner.ensure_room("restore the back-up", 4 * inner.size_of(&name))?;
            let pending = PendingRestore::new(&inner.folder);
            pending.prepare(&archive, &inner.folder.key(), &name)?;
            let restarts_now = inner.can_restart.load(Ordering::Relaxed);
            info!(
                backup = name,
                restarts_now, "a back-up was verified and replaces the store at the next start"
            );
            let body = EventBody::RestorePending { backup: name.clone(), restarts_now };
            inner.events.emit(Event { at: now_ms(), body });
            Ok(TaskState::Restored { name, restarts_now })
        })
    }

    /// Runs work on a thread that may block, after the work that was begun earlier.
    fn begin(
        &self,
        work: impl FnOnce(&Inner) -> Result<TaskState, BackupError> + Send + 'static,
    ) -> Result<Arc<Task>, TaskRefusal> {
        if !self.0.is_enabled.load(Ordering::Relaxed) {
            return Err(TaskRefusal::Disabled);
        }
        let task = Arc::new(Task { id: Uuid::new_v4(), state: Mutex::new(TaskState::Pending) });
        {
            let mut tasks = self.0.tasks.lock();
            if tasks.iter().filter(|it| it.is_unfinished()).count() >= UNFINISHED_MAX {
                return Err(TaskRefusal::TooMany);
            }
            if tasks.len() >= TASKS_MAX {
                tasks.pop_front();
            }
            tasks.push_back(Arc::clone(&task));
        }
        let (inner, running) = (Arc::clone(&self.0), Arc::clone(&task));
        actors::spawn(async move {
            let _working = inner.working.lock().await;
            *running.state.lock() = TaskState::Running;
            let worker = Arc::clone(&inner);
            let state = task_end(spawn_blocking(move || work(&worker)).await);
            let restarts_now = matches!(state, TaskState::Restored { restarts_now: true, .. });
            *running.state.lock() = state;
            if restarts_now {
                tokio::time::sleep(RESTART_PAUSE).await;
                inner.restart.send_replace(true);
            }
        });
        Ok(task)
    }

    /// Returns a task by its id, as long as its result is kept.
    pub fn task(&self, id: &str) -> Option<Arc<Task>> {
        let id = Uuid::try_parse(id).ok()?;
        self.0.tasks.lock().iter().find(|it| it.id == id).cloned()
    }

    pub fn task_token(&self, task: &Task) -> String {
        self.token(&["task", &task.id.to_string()])
    }

    pub fn is_task_token(&self, task: &Task, token: &str) -> bool {
        self.is_token(&["task", &task.id.to_string()], token)
    }

    pub fn download_token(&self, name: &str) -> String {
        self.token(&["download", name, &(now_ms() / TOKEN_PERIOD_MS).to_string()])
    }

    pub fn is_download_token(&self, name: &str, token: &str) -> bool {
        let now = now_ms() / TOKEN_PERIOD_MS;
        [now, now - 1].iter().any(|it| self.is_token(&["download", name, &it.to_string()], token))
    }

    fn mac(&self, parts: &[&str]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0.token_key).expect("any length is valid");
        for part in parts {
            mac.update(part.as_bytes());
            mac.update(b"\0");
        }
        mac
    }

    fn token(&self, parts: &[&str]) -> String {
        let code = self.mac(parts).finalize().into_bytes();
        HEXLOWER.encode(&code[..16])
    }

    fn is_token(&self, parts: &[&str], token: &str) -> bool {
        let digits = token.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let code: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        code.filter(|it| it.len() == 16).is_some_and(|it| self.mac(parts).verify_truncated_left(&it).is_ok())
    }

    /// Lists the archives, the newest first. Blocks.
    pub fn list(&self) -> io::Result<Vec<StoredBackup>> {
        self.0.list()
    }

    /// Opens an archive by its name. Blocks.
    pub fn open(&self, name: &str) -> Option<Result<Archive, BackupError>> {
        let path = self.0.files.path(Folder::Backups, name).ok().filter(|it| it.is_file())?;
        Some(Archive::open(&path))
    }

    /// Opens the file of an archive. Blocks.
    pub fn file(&self, name: &str) -> Option<File> {
        File::open(self.0.files.path(Folder::Backups, name).ok()?).ok()
    }

    /// Deletes an archive. Returns false if no archive has this name. Blocks.
    pub fn delete(&self, name: &str) -> io::Result<bool> {
        let Ok(path) = self.0.files.path(Folder::Backups, name) else { return Ok(false) };
        match path.is_file() {
            true => self.0.files.remove(Folder::Backups, name).map(|()| true),
            false => Ok(false),
        }
    }

    /// Stores an uploaded archive after it was checked as far as possible without its secret, and returns it. Blocks.
    pub fn upload(&self, file_name: Option<&str>, content: File) -> Result<StoredBackup, BackupError> {
        let name = self.0.free_name(&upload_name(file_name));
        let io = |source| BackupError::Io { what: "store the back-up", source };
        self.0.files.save(Folder::Backups, &name, content).map_err(io)?;
        let path = self.0.files.path(Folder::Backups, &name).map_err(io)?;
        let checked = Archive::open(&path).and_then(|archive| match archive.manifest().key_kind() {
            KeyKind::Passphrase => Ok(()),
            KeyKind::KeyFile => match archive.unlock(&self.own_key()?) {
                // Of another installation.
                Err(BackupError::WrongKeyFile) => Ok(()),
                unlocked => unlocked.map(drop),
            },
        });
        match checked {
            Ok(()) => self.0.stored(name).map_err(io),
            Err(error) => {
                self.0.files.remove(Folder::Backups, &name).map_err(io)?;
                Err(error)
            }
        }
    }

    /// Returns the secret of this installation. Blocks.
    pub fn own_key(&self) -> Result<BackupSecret, BackupError> {
        BackupSecret::from_key_file(&self.0.folder.key())
    }
}

/// Returns the state of a task whose work has ended, or could not begin.
fn task_end(done: Result<Result<TaskState, BackupError>, BlockingError>) -> TaskState {
    let reason = match done {
        Ok(Ok(state)) => return state,
        Ok(Err(error)) => error.to_string(),
        Err(error) => without_result(error),
    };
    warn!("failed to complete a back-up or a restoration: {reason}");
    TaskState::Failed(reason)
}

/// Returns why a back-up has no result.
fn without_result(error: BlockingError) -> String {
    match error {
        BlockingError::Panicked => "internal error".to_owned(),
        BlockingError::NoThread | BlockingError::Stopping => format!("it could not begin: {error}"),
    }
}

impl Inner {
    fn make(&self, beginning: &str, passphrase: Option<Secret>) -> Result<TaskState, BackupError> {
        self.ensure_room("make a back-up", 2 * self.models.store.statistics().live_bytes)?;
        let secret = match passphrase {
            Some(passphrase) => BackupSecret::Passphrase(passphrase),
            None => BackupSecret::from_key_file(&self.folder.key())?,
        };
        let io = |source| BackupError::Io { what: "store the back-up", source };
        let uploads = uploaded_files(&self.files).map_err(io)?;
        let now = jiff::Timestamp::from_millisecond(now_ms()).unwrap_or_default();
        let name = self.free_name(&format!("{beginning}{}{ENDING}", now.strftime("%Y.%m.%d.%H.%M.%S")));
        let n_bytes = self.files.create(Folder::Backups, &name, |file| {
            create_backup(&self.models.store, &uploads, &secret, now.as_millisecond(), file)?;
            file.metadata().map(|it| it.len()).map_err(io)
        })?;
        info!(backup = name, bytes = n_bytes, "made a back-up");
        Ok(TaskState::Made { name, n_bytes })
    }

    /// Returns the name, or a variant of it that no archive has.
    fn free_name(&self, name: &str) -> String {
        let stem = name.strip_suffix(ENDING).unwrap_or(name);
        let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{stem}-{n}{ENDING}")));
        let is_free = |name: &String| self.files.path(Folder::Backups, name).is_ok_and(|it| !it.exists());
        names.take(10_000).find(is_free).unwrap_or_else(|| format!("{}{ENDING}", Uuid::new_v4()))
    }

    fn size_of(&self, name: &str) -> u64 {
        let path = self.files.path(Folder::Backups, name).ok();
        path.and_then(|it| fs::metadata(it).ok()).map_or(0, |it| it.len())
    }

    fn ensure_room(&self, what: &'static str, n_bytes: u64) -> Result<(), BackupError> {
        let needed = n_bytes.saturating_add(ROOM_BYTES);
        match DiskSpace::read(self.folder.root()) {
            Some(DiskSpace { available, .. }) if available < needed => {
                Err(Error::NoRoom { what, needed, available }.into())
            }
            _ => Ok(()),
        }
    }

    fn list(&self) -> io::Result<Vec<StoredBackup>> {
        let names = self.files.names(Folder::Backups)?;
        let archives = names.into_iter().filter(|it| it.ends_with(ENDING));
        // One that was deleted meanwhile is left out.
        let mut found: Vec<_> = archives.filter_map(|it| self.stored(it).ok()).collect();
        found.sort_by(|a, b| (b.created_at, &b.name).cmp(&(a.created_at, &a.name)));
        Ok(found)
    }

    fn stored(&self, name: String) -> io::Result<StoredBackup> {
        let path = self.files.path(Folder::Backups, &name)?;
        let facts = fs::metadata(&path)?;
        let written = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let manifest = Archive::open(&path).ok().map(|it| it.manifest().clone());
        Ok(StoredBackup {
            name,
            n_bytes: facts.len(),
            created_at: manifest.as_ref().map_or(written.as_millis() as i64, |it| it.created_at),
            key_kind: manifest.as_ref().map(|it| it.key_kind()),
            program: manifest.map(|it| it.program),
        })
    }
}

/// Lists the uploaded files that belong to a back-up.
pub fn uploaded_files(files: &Files) -> io::Result<Vec<BackupFile>> {
    let mut found = Vec::new();
    for folder in Folder::UPLOADS {
        for name in files.names(folder)? {
            let path = files.path(folder, &name)?;
            // Playlists contain addresses of providers.
            let is_sealed = folder == Folder::Playlists;
            found.push(BackupFile { folder: folder.name(), name, path, is_sealed });
        }
    }
    Ok(found)
}

/// Returns a valid name of an archive for the name of an uploaded file, which may be anything.
fn upload_name(file_name: Option<&str>) -> String {
    /// Leaves room for the ending and a number.
    const CHARS_MAX: usize = 100;
    let name = file_name.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.strip_suffix(ENDING).unwrap_or(name);
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let stem: String = stem.chars().filter(is_plain).take(CHARS_MAX).collect();
    match stem.trim_start_matches('.') {
        "" => format!("uploaded{ENDING}"),
        stem => format!("{stem}{ENDING}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The task stayed in the state `running` when the system had no thread for it.
    #[test]
    fn a_back_up_without_a_thread_has_failed_and_says_why() {
        let TaskState::Failed(reason) = task_end(Err(BlockingError::NoThread)) else {
            panic!("it has not failed")
        };
        assert!(reason.contains("could not begin") && reason.contains("no thread"), "{reason}");
        let internal = task_end(Err(BlockingError::Panicked));
        assert!(matches!(internal, TaskState::Failed(reason) if reason == "internal error"));
    }

    #[test]
    fn an_uploaded_archive_gets_a_plain_name() {
        for (sent, expected) in [
            (None, "uploaded.tar.gz"),
            (Some("a.tar.gz"), "a.tar.gz"),
            (Some("../../etc/passwd"), "passwd.tar.gz"),
            (Some("C:\\x\\my backup (1).tar.gz"), "mybackup1.tar.gz"),
            (Some("...."), "uploaded.tar.gz"),
            (Some(".hidden.tar.gz"), "hidden.tar.gz"),
        ] {
            assert_eq!(upload_name(sent), expected, "{sent:?}");
        }
        assert!(upload_name(Some(&"x".repeat(500))).len() < 128);
    }
}
