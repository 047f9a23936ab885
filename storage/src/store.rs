//! `Store`: opens and closes a store, and gives access to reads and writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::changes::{Change, Changes};
use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::Disk;
use crate::engine::folder::{database_folders, lock, remove_folder};
use crate::engine::shared::Shared;
use crate::engine::statistics::StoreStatistics;
use crate::engine::vault::Vault;
use crate::error::{Error, Result, StopReason};
use crate::folders::create_folder;
use crate::read::collection::{Collection, record_digest};
use crate::read::table::{self, Table};
use crate::read::view::{self, Built, Reader, RegisterView, View};
use crate::record::{CollectionKind, Record, Schema};
use crate::recovery::migration::{FORMATS, Formats, refuse_newer};
use crate::recovery::scan::COPY_FOLDER;
use crate::write::Write;
use crate::write::bulk::{BulkWrite, EncodedBulk};
use crate::write::handle::WriterHandle;
use crate::write::reply::Returned;
use crate::write::start::Start;
use crate::write::writer::Job;

/// Maximum wait for reads in progress before the folder is unlocked.
const RELEASE_MAX: Duration = Duration::from_secs(10);
const RELEASE_PAUSE: Duration = Duration::from_millis(5);

/// A handle of an open store. Clones share one store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: WriterHandle,
}

/// Returns what the function of a write returned, once its changes are durable.
async fn take_when_durable<R, E: From<Error>>(
    done: impl Future<Output = Result<bool>>,
    for_caller: Returned<R, E>,
) -> Result<R, E> {
    done.await?;
    for_caller.take()
}

impl Store {
    /// Opens the store in a folder, or creates it. Takes a while; blocks.
    ///
    /// If the disk is full, an existing store is read from a copy in memory. It refuses writes then until there is room: see
    /// [`Store::stop_reason`].
    ///
    /// The key file is outside of the store. It is created together with the store and required ever after.
    pub fn open(folder: &Path, key_file: &Path, schema: Schema) -> Result<Self> {
        Self::open_as(folder, key_file, schema, &FORMATS)
    }

    pub(crate) fn open_as(folder: &Path, key_file: &Path, schema: Schema, formats: &Formats) -> Result<Self> {
        create_folder(folder, 0o777).map_err(|error| Error::disk("create the folder of the store", error))?;
        let lock = lock(folder)?;
        let vault = |is_new: bool| Vault::open(key_file, is_new);
        Self::start(folder, lock, vault, schema, None, formats)
    }

    /// Creates a store that is removed by [`Store::close`] or with its last handle. Its key is never written to disk.
    pub fn temporary(schema: Schema) -> Result<Self> {
        let n = getrandom::u64().map_err(|error| Error::disk("get random bytes from the system", error))?;
        let folder = std::env::temp_dir().join(format!("headwater-{}-{n:016x}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| Error::disk("create the folder of the store", error))?;
        let lock = lock(&folder)?;
        Self::start(&folder, lock, |_| Vault::ephemeral(), schema, Some(folder.clone()), &FORMATS)
    }

    fn start(
        folder: &Path,
        lock: File,
        vault: impl Fn(bool) -> Result<Vault>,
        schema: Schema,
        temporary: Option<PathBuf>,
        formats: &Formats,
    ) -> Result<Self> {
        let (commit_file, mark) = match CommitFile::open(folder)? {
            Some(opened) => opened,
            None => {
                if let Some(database) = database_folders(folder)?.first() {
                    let what = format!("the commit file of the database {} is missing", database.display());
                    return Err(Error::Damaged { at: folder.to_owned(), what });
                }
                let mark = CommitMark::first(formats.now);
                (CommitFile::create(folder, &mark)?, mark)
            }
        };
        refuse_newer(&mark, formats)?;
        // No commit was ever acknowledged, so a first start may have been interrupted: start over.
        let is_new = mark.commit == 0;
        let vault = vault(is_new)?;
        // An interrupted check leaves its copy behind.
        remove_folder(&folder.join(COPY_FOLDER))?;
        let start = Start { folder, lock: &lock, schema: &schema, vault: &vault, formats };
        let writer = match is_new {
            true => start.create(commit_file, &mark)?,
            false => start.open()?,
        };
        let store =
            Self { shared: Arc::clone(&writer.shared), writer: WriterHandle::start(writer, temporary)? };
        store.statistics();
        Ok(store)
    }

    /// Returns the folder of the store. That of a temporary store is deleted with everything in it at the end of the store.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Returns the folder of the store, unless the store is temporary.
    pub fn lasting_folder(&self) -> Option<&Path> {
        (!self.writer.is_temporary()).then_some(&*self.shared.folder)
    }

    /// Sets the time after which an operation of the disk counts as hanging; 10 s before that. Then
    /// [`Store::stop_reason`] says so, and those who wait for a write get an error, until the operation returns. A write
    /// that had not begun by then is not made.
    pub fn set_disk_timeout(&self, limit: Duration) {
        self.shared.disk_watch.set_limit(limit);
    }

    /// Returns typed access to the records of one type.
    ///
    /// # Panics
    /// When the type is not in the schema.
    pub fn collection<T: Record>(&self) -> Collection<'_, T> {
        Collection::new(&self.shared)
    }

    /// Returns a digest of a record as it is stored: it changes with every change of the record, and with nothing else. `None`
    /// without the record.
    ///
    /// # Panics
    /// When the collection is not in the schema.
    pub fn digest(&self, collection: &str, id: u32) -> Result<Option<u64>> {
        record_digest(&self.shared, collection, id)
    }

    /// Runs a function on the writer's thread and commits its changes atomically. Returns once they are durable. The
    /// function must not block.
    ///
    /// Dropping the future does not cancel the write.
    pub fn write<R, E, F>(&self, fill: F) -> impl Future<Output = Result<R, E>> + Send + use<'_, R, E, F>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (returned, for_caller) = Returned::new();
        let done = self.writer.write(Box::new(move |write| returned.set(fill(write))));
        take_when_durable(done, for_caller)
    }

    /// Does the same as [`Store::write`], on a thread that may block.
    pub fn write_blocking<R, E, F>(&self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (returned, for_caller) = Returned::new();
        self.writer.write_blocking(Box::new(move |write| returned.set(fill(write))))?;
        for_caller.take()
    }

    /// Begins to replace all records of one owner of a paged collection. Blocks. Refused if the disk has no room for as
    /// many bytes as the owner has now.
    pub fn bulk_write<T: Record>(&self, owner: u64) -> Result<BulkWrite<T>> {
        self.sized_bulk_write(owner, 0)
    }

    /// Does the same as [`Store::bulk_write`] for records that will take about this many bytes. Refused if the disk has no
    /// room for them.
    pub fn sized_bulk_write<T: Record>(&self, owner: u64, n_bytes: u64) -> Result<BulkWrite<T>> {
        BulkWrite::begin(self.writer.clone(), Arc::clone(&self.shared), owner, n_bytes)
    }

    /// Returns `n` ids that no record of the collection ever had. Blocks.
    pub(crate) fn reserve_ids<T: Record>(&self, n: u32) -> Result<std::ops::Range<u32>> {
        let type_number = self.shared.schema.number(T::COLLECTION);
        let first = self.writer.request(|reply| Job::ReserveIds { type_number, n, reply })?;
        Ok(first..first.saturating_add(n))
    }

    /// Begins to replace all records of an owner by encoded ones. `is_applied` if it applies a commit of the log.
    pub(crate) fn encoded_bulk(
        &self,
        type_number: usize,
        owner: u64,
        is_applied: bool,
    ) -> Result<EncodedBulk> {
        EncodedBulk::begin(self.writer.clone(), Arc::clone(&self.shared), type_number, owner, 0, is_applied)
    }

    pub(crate) fn writer(&self) -> &WriterHandle {
        &self.writer
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Subscribes to all commits from now on.
    pub fn changes(&self) -> Changes {
        Changes { receiver: self.shared.changes.subscribe() }
    }

    /// Creates a value in memory that follows these collections. `build` runs on the writer's thread: first without a
    /// previous value, later with the previous value and the change. It should be quick. After an error the value stays as
    /// it is, and `build` is called again soon. Blocks.
    pub fn view<T, F>(&self, collections: &'static [&'static str], mut build: F) -> Result<View<T>>
    where
        T: Send + Sync + 'static,
        F: FnMut(&Reader<'_>, Option<(&T, &Change)>) -> Result<T> + Send + 'static,
    {
        let build = move |reader: &Reader<'_>, before: Option<(&T, &Change)>| {
            build(reader, before).map(|value| Built { value, is_behind: false })
        };
        self.register(collections, build)
    }

    fn register<T, F>(&self, collections: &'static [&'static str], mut build: F) -> Result<View<T>>
    where
        T: Send + Sync + 'static,
        F: FnMut(&Reader<'_>, Option<(&T, &Change)>) -> Result<Built<T>> + Send + 'static,
    {
        let (returned, for_caller) = Returned::new();
        self.register_view(Box::new(move |reader| {
            let (view, registered) = view::create(collections, build(reader, None)?, build);
            returned.set(Ok::<_, Error>(view));
            Ok(registered)
        }))?;
        for_caller.take()
    }

    fn register_view(&self, register: RegisterView) -> Result<()> {
        self.writer.request(|reply| Job::RegisterView { register, reply })
    }

    /// Creates a copy of a whole collection in memory that follows every commit before the commit is answered. Each
    /// call creates another copy: call it once and clone the view. Blocks.
    ///
    /// For single records only, up to some ten thousands; a paged collection does not compile.
    pub fn table<T: Record>(&self) -> Result<View<Table<T>>> {
        const { assert!(matches!(T::KIND, CollectionKind::Single), "a table is for single records") };
        self.register(const { &[T::COLLECTION] }, table::build)
    }

    /// Returns the number of the last commit. It increases with each commit, with gaps, and survives reopening.
    pub fn version(&self) -> u64 {
        self.shared.state.read().commit
    }

    /// Rewrites the database so that it contains the current values only. Other writes wait. Blocks.
    pub fn compact(&self) -> Result<()> {
        self.writer.request(Job::Compact)
    }

    /// Returns the present figures. While the disk hangs, those are the last ones from before, because the locks may be
    /// held and the folder may not be readable.
    pub fn statistics(&self) -> StoreStatistics {
        let hanging_for = self.shared.disk_watch.hanging_for();
        let mut last = self.shared.last_statistics.lock();
        if let (Some(hanging_for), Some(last)) = (hanging_for, *last) {
            return StoreStatistics { hanging_for, ..last };
        }
        match (self.shared.disk(), *last) {
            // The last ones before the folder was released.
            (Err(_), Some(last)) => last,
            (disk, _) => *last.insert(self.present_statistics(disk.ok().as_deref())),
        }
    }

    fn present_statistics(&self, disk: Option<&Disk>) -> StoreStatistics {
        let (n_slices, slice_weight_max) = disk.map(Disk::slices).unwrap_or_default();
        let (version, live_bytes, n_set_aside) = {
            let state = self.shared.state.read();
            (state.commit, state.live_bytes(), state.set_aside.len())
        };
        StoreStatistics {
            version,
            n_slices,
            slice_weight_max,
            live_bytes,
            disk_bytes: disk.map(Disk::bytes).unwrap_or_default(),
            cache_bytes: self.shared.cache.lock().bytes(),
            n_set_aside,
            is_compacting: self.shared.is_compacting.load(Ordering::Relaxed),
            n_compactions: self.shared.n_compactions.load(Ordering::Relaxed),
            n_reads: self.shared.n_reads.load(Ordering::Relaxed),
            last_commit_age: self.shared.committed_at.lock().elapsed(),
            hanging_for: Duration::ZERO,
        }
    }

    /// Returns the reason why writes are refused, and follows it. `None` while they are accepted.
    pub fn stop_reason(&self) -> watch::Receiver<Option<StopReason>> {
        self.shared.stop.subscribe()
    }

    /// Names the damaged records and blocks that were set aside at this or an earlier start; the store opened without
    /// them. Only of record types that [may be missed](Record::MAY_BE_MISSED). Each stays listed until it was written again.
    pub fn set_aside(&self) -> Vec<String> {
        self.shared.state.read().set_aside.iter().map(ToString::to_string).collect()
    }

    /// Waits for the submitted writes and stops the writer: later writes are refused, reads still work. The folder is
    /// unlocked once the last handle is dropped. Blocks for ten seconds at most, also if the disk hangs; no answered
    /// write is lost then.
    pub fn close(&self) {
        self.writer.close();
    }

    /// Closes the store and unlocks its folder, although there are other handles: reads that need the disk get
    /// [`Error::Closed`] from now on, views in memory stay as they are. Another process can open the store then. Blocks as
    /// long as [`Store::close`], and until the reads in progress have ended.
    ///
    /// Returns false if the folder stays locked, because the disk hangs or has failed.
    pub fn release(&self) -> bool {
        if !self.writer.close() {
            return false;
        }
        let mut disk = self.shared.disk.write().take();
        let deadline = Instant::now() + RELEASE_MAX;
        while let Some(shared) = disk {
            disk = match Arc::try_unwrap(shared) {
                Ok(disk) if disk.has_failed() => return false,
                Ok(disk) => {
                    drop(disk);
                    None
                }
                Err(_) if Instant::now() > deadline => return false,
                Err(shared) => {
                    std::thread::sleep(RELEASE_PAUSE);
                    Some(shared)
                }
            };
        }
        self.shared.lock.lock().take();
        true
    }
}
