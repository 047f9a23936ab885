//! Opening, closing, and the handle that everyone has.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::changes::{BACKLOG, Change, Changes};
use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::Disk;
use crate::engine::shared::{Cache, Shared};
use crate::engine::state::{Directory, State};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::read::collection::Collection;
use crate::read::table::{self, Table};
use crate::read::view::{self, View};
use crate::record::{CollectionKind, Record, Schema};
use crate::recovery::format::{FORMATS, Formats, bring_up_to_date, refuse_newer};
use crate::recovery::load::shown;
use crate::recovery::scan::COPY;
use crate::write::Write;
use crate::write::bulk::BulkWrite;
use crate::write::start::{database, databases, lock, remove_folder};
use crate::write::writer::{Answer, Job, Writer};

/// Writes that wait for the writer before a caller has to wait to hand in another.
const QUEUE: usize = 256;

/// What is remembered. A handle: clones are the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Job>,
    /// Dropped after the queue, so that it waits for a writer that has nothing left to wait for.
    running: Arc<Running>,
}

/// The writer thread, and the folder if it is to go with the store.
struct Running {
    queue: mpsc::WeakSender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
    temporary: Option<PathBuf>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Handles that bulk writes or waiting callers still have do not keep the store open.
        if let Some(queue) = self.queue.upgrade() {
            drop(queue.try_send(Job::Close));
        }
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            drop(thread.join());
        }
        self.remove_temporary();
    }
}

impl Running {
    /// A temporary store leaves nothing on the disk. What has it open reads on.
    fn remove_temporary(&self) {
        if let Some(folder) = &self.temporary {
            // An error means that it is gone, or that somebody else has taken it over.
            drop(fs::remove_dir_all(folder));
        }
    }
}

/// What one can read with while the writer waits.
pub struct Reader<'a> {
    shared: &'a Shared,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared }
    }

    pub fn collection<T: Record>(&self) -> Collection<'a, T> {
        Collection::new(self.shared)
    }
}

/// Numbers for the metrics page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStatistics {
    /// The number of the last commit.
    pub version: u64,
    /// Slices written since the start, and the weight of the heaviest; see [`StoreStatistics::SLICE_WEIGHT_MAX`].
    pub n_slices: usize,
    pub slice_weight_max: usize,
    /// What the records take of the disk, and what the database does. The second is several times the first when
    /// the store should be rewritten.
    pub live_bytes: u64,
    pub disk_bytes: u64,
    pub cache_bytes: usize,
}

impl StoreStatistics {
    /// A hundred single records, or twenty blocks: as long as one write may keep others and readers waiting.
    pub const SLICE_WEIGHT_MAX: usize = crate::engine::disk::SLICE_WEIGHT_MAX;
}

impl Store {
    /// Opens the store in a folder, or makes one where there is none yet. Takes a while; blocks.
    ///
    /// The key file lies elsewhere; it is made together with the store and has to be there ever after.
    pub fn open(folder: &Path, key_file: &Path, schema: Schema) -> Result<Self> {
        Self::open_as(folder, key_file, schema, &FORMATS)
    }

    pub(crate) fn open_as(folder: &Path, key_file: &Path, schema: Schema, formats: &Formats) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| Error::disk("make the folder of the store", error))?;
        let lock = lock(folder)?;
        let vault = |is_new: bool| Vault::open(key_file, is_new);
        Self::start(folder, lock, vault, schema, None, formats)
    }

    /// A store that is gone with [`Store::close`] or its last handle, under a key that is nowhere written.
    pub fn temporary(schema: Schema) -> Result<Self> {
        let n = getrandom::u64().map_err(|error| Error::disk("get random bytes from the system", error))?;
        let folder = std::env::temp_dir().join(format!("headwater-{}-{n:016x}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| Error::disk("make the folder of the store", error))?;
        let lock = lock(&folder)?;
        Self::start(&folder, lock, |_| Vault::of_the_moment(), schema, Some(folder.clone()), &FORMATS)
    }

    fn start(
        folder: &Path,
        lock: File,
        vault: impl Fn(bool) -> Result<Vault>,
        schema: Schema,
        temporary: Option<PathBuf>,
        formats: &Formats,
    ) -> Result<Self> {
        let (mut commit_file, mut mark) = match CommitFile::open(folder)? {
            Some(found) => found,
            None => {
                if let Some(database) = databases(folder)?.first() {
                    let what = format!("the commit file beside {} is missing", database.display());
                    return Err(Error::Damaged { at: folder.to_owned(), what });
                }
                let mark = CommitMark::first(formats.now);
                (CommitFile::create(folder, &mark)?, mark)
            }
        };
        refuse_newer(&mark, formats)?;
        let database = database(folder, mark.generation);
        // Nothing was ever acknowledged: a first start that did not get to its end.
        let is_new = mark.commit == 0;
        if is_new {
            remove_folder(&database)?;
        } else if !database.join("db").exists() {
            let what = format!("the database {} is missing", database.display());
            return Err(Error::Damaged { at: folder.to_owned(), what });
        }
        let vault = vault(is_new)?;
        // Of a check that was ended half-way.
        remove_folder(&folder.join(COPY))?;
        for other in databases(folder)?.iter().filter(|it| **it != database) {
            remove_folder(other)?;
        }
        let mut disk = Disk::open(&database)?;
        if !is_new {
            (disk, mark) = bring_up_to_date(folder, disk, mark, &mut commit_file, &vault, formats)?;
        }
        let directories = schema.nouns.iter().map(|it| Directory::new(it.kind)).collect();
        let shared = Arc::new(Shared {
            folder: folder.to_owned(),
            schema,
            format: formats.now,
            state: RwLock::new(State { directories, commit: 0, aside: Vec::new() }),
            disk: RwLock::new(Arc::new(disk)),
            vault,
            cache: Mutex::new(Cache::default()),
            changes: broadcast::channel(BACKLOG).0,
            n_passes: 0.into(),
            stopped: Mutex::new(None),
            _lock: lock,
        });
        let mut writer = Writer::new(Arc::clone(&shared), commit_file, mark.generation, 0);
        if is_new {
            writer.begin()?;
        } else {
            writer.load(&mark)?;
        }
        let (queue, jobs) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer.run(jobs))
            .map_err(|error| Error::disk("start the writer's thread", error))?;
        let running = Running { queue: queue.downgrade(), thread: Mutex::new(Some(thread)), temporary };
        Ok(Self { shared, queue, running: Arc::new(running) })
    }

    /// The records of one noun.
    ///
    /// # Panics
    /// When the noun is not in the schema.
    pub fn collection<T: Record>(&self) -> Collection<'_, T> {
        Collection::new(&self.shared)
    }

    /// Runs a function on the writer's thread and makes what it wrote current, whole or not at all. Returns once it
    /// is durable. The function must not wait for anything.
    ///
    /// Dropping the future does not take the write back.
    pub async fn write<R, E, F>(&self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, answer) = write_job(fill);
        if self.queue.send(job).await.is_err() {
            return Err(Error::Closed.into());
        }
        answer.await.unwrap_or_else(|_| Err(self.unanswered().into()))
    }

    /// The same for a thread that may block.
    pub fn write_blocking<R, E, F>(&self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, answer) = write_job(fill);
        if self.queue.blocking_send(job).is_err() {
            return Err(Error::Closed.into());
        }
        answer.blocking_recv().unwrap_or_else(|_| Err(self.unanswered().into()))
    }

    /// Begins to replace all records of one owner of a paged collection. For a thread that may block.
    pub fn bulk_write<T: Record>(&self, owner: u64) -> Result<BulkWrite<T>> {
        BulkWrite::begin(self.clone(), Arc::clone(&self.shared), owner)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Hears of every commit from now on.
    pub fn changes(&self) -> Changes {
        Changes { receiver: self.shared.changes.subscribe() }
    }

    /// A value in memory that follows these collections. `make` runs on the writer's thread, first without and then
    /// with the value before and what changed; it should be quick. For a thread that may block.
    pub fn view<T, F>(&self, collections: &'static [&'static str], mut make: F) -> Result<View<T>>
    where
        T: Send + Sync + 'static,
        F: FnMut(&Reader<'_>, Option<(&T, &Change)>) -> Result<T> + Send + 'static,
    {
        self.ask(|reply| {
            Job::Keep(Box::new(move |reader| {
                let first = catch_unwind(AssertUnwindSafe(|| make(reader, None)));
                match first.unwrap_or(Err(Error::Panicked)) {
                    Ok(first) => {
                        let (view, kept) = view::keep(collections, first, make);
                        reply.send(Ok(view)).is_ok().then_some(kept)
                    }
                    Err(error) => {
                        drop(reply.send(Err(error)));
                        None
                    }
                }
            }))
        })
    }

    /// A copy of a whole collection in memory that follows every commit before that is answered. Every call makes
    /// another copy: make one and clone the view. For a thread that may block.
    ///
    /// Of single records only, up to some ten thousands; another collection does not compile.
    pub fn table<T: Record>(&self) -> Result<View<Table<T>>> {
        const { assert!(matches!(T::KIND, CollectionKind::Single), "a table is for single records") };
        self.view(const { &[T::COLLECTION] }, table::following())
    }

    /// The number of the last commit. Grows with each, with gaps; the same after reopening.
    pub fn version(&self) -> u64 {
        self.shared.state.read().commit
    }

    /// Rewrites the store, so that the disk holds what lives and nothing else. Other writes wait. Blocks.
    pub fn compact(&self) -> Result<()> {
        self.ask(Job::Compact)
    }

    pub fn statistics(&self) -> StoreStatistics {
        let disk = self.shared.disk();
        let (n_slices, slice_weight_max) = disk.slices();
        let (version, live_bytes) = {
            let state = self.shared.state.read();
            (state.commit, state.live_bytes())
        };
        StoreStatistics {
            version,
            n_slices,
            slice_weight_max,
            live_bytes,
            disk_bytes: disk.bytes(),
            cache_bytes: self.shared.cache.lock().bytes(),
        }
    }

    /// Records that did not read when the store was opened, now or before, in words: they are put out of the way and
    /// everything else goes on. Only of nouns that [may be missed](Record::MAY_BE_MISSED).
    pub fn set_aside(&self) -> Vec<String> {
        self.shared.state.read().aside.iter().map(shown).collect()
    }

    /// The secrets of this store.
    pub fn vault(&self) -> &Vault {
        &self.shared.vault
    }

    /// Waits for the writes that were handed in, and ends the writer: later writes are refused, reads go on. The
    /// folder is free once the last handle is dropped. Blocks.
    pub fn close(&self) {
        drop(self.queue.blocking_send(Job::Close));
        if let Some(thread) = self.running.thread.lock().take() {
            drop(thread.join());
        }
        // Not left to the last handle: a process ends without waiting for all who hold one.
        self.running.remove_temporary();
    }

    pub(crate) fn ask<R>(&self, job: impl FnOnce(oneshot::Sender<Result<R>>) -> Job) -> Result<R> {
        let (reply, answer) = oneshot::channel();
        self.queue.blocking_send(job(reply)).map_err(|_| Error::Closed)?;
        answer.blocking_recv().unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Hands in a job and waits for room if there is none. False once the store is closed.
    pub(crate) fn hand_in(&self, job: Job) -> bool {
        self.queue.blocking_send(job).is_ok()
    }

    /// Hands in a job from where one must not wait.
    pub(crate) fn tell(&self, job: Job) {
        if let Err(mpsc::error::TrySendError::Full(job)) = self.queue.try_send(job) {
            let queue = self.queue.clone();
            std::thread::spawn(move || drop(queue.blocking_send(job)));
        }
    }

    pub(crate) fn unanswered(&self) -> Error {
        if self.queue.is_closed() { Error::Closed } else { Error::Panicked }
    }
}

/// What a caller waits for.
type Waiting<R, E> = oneshot::Receiver<Result<R, E>>;

fn write_job<R, E, F>(fill: F) -> (Job, Waiting<R, E>)
where
    F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Job::Write(Box::new(move |write| settle(fill(write), reply))), answer)
}

/// A failure is told at once, a success once it is durable.
pub(crate) fn settle<R, E>(filled: Result<R, E>, reply: oneshot::Sender<Result<R, E>>) -> Option<Answer>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    match filled {
        // Whoever asked may be gone; what was asked is done all the same.
        Ok(done) => Some(Box::new(move |landed| drop(reply.send(landed.map(|()| done).map_err(E::from))))),
        Err(error) => {
            drop(reply.send(Err(error)));
            None
        }
    }
}
