//! The store refuses writes while the disk cannot take them, and goes on by itself once it can.
//!
//! ```text
//!            too little room              failed disk operation, or a start on a full disk
//!   WRITABLE ───────────────► REFUSING   WRITABLE ──────────────────────► REFUSING, the disk is unknown
//!      ▲                         │          ▲                                 │
//!      └──── room again ─────────┘          └── the files were copied, and ───┘
//!                                               the copy opened complete
//! ```
//!
//! Writes stop while some room is left, because sled cannot go on after a failed write: its memory and its file may
//! differ then, and a failed sync may have lost what a later one reports as written. So the files are copied, which
//! writes all bytes again, and the copy is opened and compared with the commit file as after a restart. A change whose
//! write failed is in the copy or not; readers, views and subscribers get the state of the copy.
//!
//! A start on a full disk reads a copy in memory. Then the database itself is opened, as that start would have done, or a
//! copy of it if it was not stopped properly.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::changes::Change;
use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::Disk;
use crate::engine::folder::{database_folder, open_copy, remove_folder, sync_whole};
use crate::engine::space::{SpaceMonitor, ensure_room};
use crate::engine::state::State;
use crate::error::{Error, Result, StopReason};
use crate::recovery::open::open_database;
use crate::write::start::{LoadedDatabase, load_and_clean};
use crate::write::writer::{Job, Next, Refusing, Worth, Writer};

/// Pause before the next try to write again. It doubles with each copy that failed although there was room: the memory
/// of a database whose writes fail cannot be freed.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 500 });
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Tries to replace the state while no reader scans, and the pause between them.
const SWAP_TRIES: u32 = 200;
const SWAP_PAUSE: Duration = Duration::from_millis(10);

impl Writer {
    /// Refuses a write while the disk cannot take it.
    pub(crate) fn ensure_writable(&mut self) -> Result<()> {
        if self.is_disk_unknown() {
            return self.ensure_not_stopped();
        }
        let room = {
            let _operation = self.shared.disk_watch.begin();
            ensure_room(&self.shared.folder, "write", 0)
        };
        match room {
            Ok(()) => {
                self.go_on();
                Ok(())
            }
            Err(error) => {
                self.refuse(&error, false);
                self.ensure_not_stopped()
            }
        }
    }

    /// Returns true after a failed disk operation, when sled must not be used any more.
    pub(crate) fn is_disk_unknown(&self) -> bool {
        self.refusing.as_ref().is_some_and(|it| it.is_unknown)
    }

    pub(crate) fn ensure_not_stopped(&self) -> Result<()> {
        self.shared.stop.borrow().clone().map_or(Ok(()), |why| Err(Error::Stopped(why)))
    }

    /// Refuses all further writes after a failed disk operation, because the content of the disk is unknown then.
    pub(crate) fn stop_after<T>(&mut self, done: &Result<T>) {
        if let Err(error) = done {
            self.refuse(error, true);
        }
    }

    /// Refuses all further writes. If the disk is unknown, until the database was read again.
    pub(crate) fn refuse(&mut self, error: &Error, is_unknown: bool) {
        self.abandon_compaction();
        self.worth = Worth::No;
        let refusing = self.refusing.get_or_insert_with(|| Refusing {
            is_unknown,
            try_at: Instant::now() + PAUSE,
            pause: PAUSE,
        });
        refusing.is_unknown |= is_unknown;
        let reason = StopReason::new(error);
        self.shared.stop.send_if_modified(|stop| {
            let is_new = stop.as_ref().is_none_or(|it| it.fault != reason.fault);
            if stop.as_ref() != Some(&reason) {
                tracing::error!("the store refuses writes: {}; {}", reason.cause, reason.advice());
                *stop = Some(reason);
            }
            is_new
        });
    }

    fn go_on(&mut self) {
        if self.refusing.take().is_some() {
            tracing::info!("the store accepts writes again");
            self.shared.stop.send_replace(None);
        }
    }

    /// Waits for a job, or until it is time to try again what failed.
    pub(crate) fn wait_for_job(&self, timer: &Runtime, jobs: &mut mpsc::Receiver<Job>) -> Next {
        let resume_at = self.refusing.as_ref().map(|it| it.try_at);
        let others = [self.follow_again_at, self.compaction_at()];
        let Some(retry_at) = resume_at.into_iter().chain(others.into_iter().flatten()).min() else {
            return jobs.blocking_recv().map_or(Next::End, Next::Job);
        };
        timer.block_on(async {
            tokio::select! {
                job = jobs.recv() => job.map_or(Next::End, Next::Job),
                () = tokio::time::sleep_until(retry_at) => Next::Retry,
            }
        })
    }

    /// Tries to write again, if it is time.
    pub(crate) fn try_to_resume(&mut self) {
        let Some(refusing) = self.refusing.as_mut().filter(|it| Instant::now() >= it.try_at) else { return };
        if refusing.is_unknown {
            let shared = Arc::clone(&self.shared);
            let was_in_memory = shared.disk().is_ok_and(|it| it.is_in_memory());
            let reloaded = {
                // Those who wait for the writer need not wait for a copy that takes long.
                let _operation = shared.disk_watch.begin();
                self.reload()
            };
            match reloaded {
                Ok((change, is_sealing)) => {
                    self.go_on();
                    self.notify(change);
                    // What the start left out.
                    if was_in_memory && let Err(error) = self.compact_if_needed(is_sealing) {
                        tracing::warn!("failed to compact the store: {error}");
                    }
                }
                Err(error) => {
                    let has_room = !matches!(error, Error::NoRoom { .. });
                    self.refuse(&error, true);
                    if has_room && let Some(refusing) = self.refusing.as_mut() {
                        refusing.pause = (refusing.pause * 2).min(PAUSE_MAX);
                    }
                }
            }
        } else {
            drop(self.ensure_writable());
        }
        if let Some(refusing) = self.refusing.as_mut() {
            refusing.try_at = Instant::now() + refusing.pause;
        }
    }

    /// Opens the database or a copy of it, and replaces everything in memory by its content. Returns also whether it contained
    /// secrets that were not encrypted.
    fn reload(&mut self) -> Result<(Change, bool)> {
        let shared = Arc::clone(&self.shared);
        // Not flushed: after some failures sled would wait for ever, and everything answered is on the disk.
        let old = shared.disk()?;
        let Some((mut commit_file, mark)) = CommitFile::open(&shared.folder)? else {
            let what = "the commit file is missing".to_owned();
            return Err(Error::Damaged { at: shared.folder.clone(), what });
        };
        // A compaction that failed at its last step may have been switched to.
        let current = database_folder(&shared.folder, mark.generation);
        let (new, mark) = if old.is_in_memory() {
            match mark.closed {
                Some(_) => ensure_room(&shared.folder, "write", 0)?,
                None => ensure_room(&shared.folder, "copy the database", old.bytes())?,
            }
            open_database(&shared.folder, mark, &mut commit_file, &shared.vault, &self.formats)?
        } else {
            ensure_room(&shared.folder, "copy the database", old.bytes())?;
            let generation = mark.generation.max(self.generation) + 1;
            let new = open_copy(&current, &database_folder(&shared.folder, generation))?;
            (new, CommitMark { generation, ..mark })
        };
        let generation = mark.generation;
        let folder = database_folder(&shared.folder, generation);
        let new = new.watched_by(&shared.disk_watch);
        let LoadedDatabase { state, last, is_sealing } = load_and_clean(&shared, &new, &mark)?;
        sync_whole(&folder)?;
        // If this write fails, it is unknown which of the two databases the commit file names.
        new.keep();
        commit_file.write(&shared.mark(generation, &state))?;
        let version = state.commit;
        self.swap(state, new)?;
        self.commit_file = commit_file;
        self.last = self.last.max(last);
        self.generation = generation;
        self.space_monitor = SpaceMonitor::default();
        self.load_log()?;
        // The stages are not in the copy; their bulk writes get an error.
        self.stages.clear();
        self.leftovers.clear();
        old.remove_with_last_reader();
        if current != old.folder() && current != folder {
            drop(remove_folder(&current));
        }
        let all = shared.schema.record_types.iter().map(|it| it.name);
        Ok((Change::all(version, all), is_sealing))
    }

    /// Replaces state and database while no reader scans, because a scan reads blocks that the copy may not have.
    fn swap(&self, mut state: State, new: Disk) -> Result<()> {
        let new = Arc::new(new);
        for _ in 0..SWAP_TRIES {
            let mut current = self.shared.state.write();
            if self.shared.n_scans.load(Ordering::SeqCst) == 0 {
                // Ids that were reserved are not assigned again.
                for (after, before) in state.directories.iter_mut().zip(&current.directories) {
                    after.next_id = after.next_id.max(before.next_id);
                }
                *self.shared.cache.lock() = Default::default();
                *self.shared.disk.write() = Some(new);
                *current = state;
                return Ok(());
            }
            drop(current);
            std::thread::sleep(SWAP_PAUSE);
        }
        Err(Error::disk("replace the database", "it is being read"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::changes::ChangeMessage;
    use crate::engine::memory_copy::names;
    use crate::error::Fault;
    use crate::record::{CollectionKind, Record, Schema, Sharing};
    use crate::small_disk::SmallDisk;
    use crate::store::Store;

    /// Longest wait for a condition.
    const WAIT_MAX: Duration = Duration::from_secs(60);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Note {
        id: u32,
        text: String,
    }

    impl Record for Note {
        const COLLECTION: &'static str = "notes";
        const SHARING: Sharing = Sharing::Local;

        fn id(&self) -> u32 {
            self.id
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Item {
        id: u32,
        text: String,
    }

    impl Record for Item {
        const COLLECTION: &'static str = "items";
        const SHARING: Sharing = Sharing::Local;
        const KIND: CollectionKind = CollectionKind::Paged;

        fn id(&self) -> u32 {
            self.id
        }
    }

    fn note(id: u32) -> Note {
        // Deflate and sled cannot make it smaller.
        let text =
            (0..2_000).map(|at| format!("{:08x}", crc32fast::hash(&[id, at].map(u32::to_be_bytes).concat())));
        Note { id, text: text.collect() }
    }

    fn put(store: &Store, id: u32) -> Result<()> {
        store.write_blocking(move |write| write.put(&note(id)))
    }

    fn schema() -> Schema {
        Schema::new().with::<Note>().with::<Item>()
    }

    fn open(disk: &SmallDisk) -> Store {
        Store::open(&disk.0.join("store"), &disk.0.join("key"), schema()).unwrap()
    }

    fn databases(folder: &Path) -> usize {
        crate::engine::folder::database_folders(&folder.join("store")).unwrap().len()
    }

    #[test]
    fn writes_go_on_by_themselves_when_a_full_disk_has_room_again_and_nothing_answered_is_lost() {
        let disk = SmallDisk::new(24);
        let store = open(&disk);
        let table = store.table::<Note>().unwrap();
        let mut interrupted = store.bulk_write::<Item>(0).unwrap();
        let item = |id: u32| Item { id, text: note(id).text };
        (1..=90).try_for_each(|id| interrupted.put(&item(id))).unwrap();
        let other_data = disk.fill(16);
        let mut n_answered = 0;
        let error = (1..).find_map(|id| match put(&store, id) {
            Ok(()) => {
                n_answered = id;
                None
            }
            Err(error) => Some(error),
        });
        assert!(matches!(&error, Some(Error::Stopped(why)) if why.fault == Fault::Full), "{error:?}");
        assert!(n_answered > 10, "{n_answered}");
        assert_eq!(store.stop_reason().borrow().as_ref().map(|it| it.fault), Some(Fault::Full));
        // sled may refuse reads as well, also the one by which the table follows the last commit; what is in memory goes
        // on.
        let in_memory = match store.collection::<Note>().get(n_answered) {
            Ok(found) => {
                assert_eq!(found, Some(note(n_answered)));
                n_answered
            }
            Err(_) => n_answered - 1,
        };
        assert_eq!(table.load().get(in_memory).map(|it| &**it), Some(&note(in_memory)));

        fs::remove_file(other_data).unwrap();
        let deadline = Instant::now() + WAIT_MAX;
        while put(&store, 5_000).is_err() {
            assert!(
                Instant::now() < deadline,
                "the store does not go on: {:?}",
                store.stop_reason().borrow()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(*store.stop_reason().borrow(), None);
        // What its earlier part wrote is not in the copy.
        let again = interrupted.put(&item(91)).and_then(|()| interrupted.commit(|_, _| Ok(())));
        assert!(matches!(again, Err(Error::Interrupted)), "{again:?}");
        let complete = |store: &Store| {
            let notes = store.collection::<Note>();
            (1..=n_answered).chain([5_000]).for_each(|id| assert_eq!(notes.get(id).unwrap(), Some(note(id))));
            assert_eq!(store.collection::<Item>().len(), 0);
            // The write that failed may be there.
            assert!((n_answered as usize + 1..=n_answered as usize + 2).contains(&notes.len()));
        };
        complete(&store);
        assert_eq!(table.load().len(), store.collection::<Note>().len());
        assert_eq!(table.load().get(5_000).map(|it| it.id), Some(5_000));
        drop((store, table));
        assert_eq!(databases(&disk.0), 1);
        complete(&open(&disk));
    }

    fn wait_until_writable(store: &Store, id: u32) {
        let deadline = Instant::now() + WAIT_MAX;
        while put(store, id).is_err() {
            assert!(
                Instant::now() < deadline,
                "the store does not go on: {:?}",
                store.stop_reason().borrow()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(*store.stop_reason().borrow(), None);
    }

    /// Leaves the store of a disk as a kill does.
    fn kill(disk: &SmallDisk, store: Store) {
        let (folder, killed) = (disk.0.join("store"), disk.0.join("killed"));
        assert!(Command::new("cp").arg("-r").args([&folder, &killed]).status().unwrap().success());
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
        fs::rename(killed, folder).unwrap();
    }

    // The gateway did not start on a full disk, not even after a clean stop.
    #[test]
    fn a_store_on_a_full_disk_is_read_from_a_copy_and_goes_on_when_there_is_room() {
        for is_killed in [false, true] {
            let disk = SmallDisk::new(32);
            let folder = disk.0.join("store");
            let store = open(&disk);
            (1..=50).try_for_each(|id| put(&store, id)).unwrap();
            let mut bulk = store.bulk_write::<Item>(0).unwrap();
            (1..=90).try_for_each(|id| bulk.put(&Item { id, text: note(id).text })).unwrap();
            bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
            let version = store.version();
            let complete = |store: &Store| {
                (1..=50)
                    .for_each(|id| assert_eq!(store.collection::<Note>().get(id).unwrap(), Some(note(id))));
                assert_eq!(store.collection::<Item>().len_of(0), 90);
                assert_eq!(store.collection::<Item>().get(90).unwrap().unwrap().text, note(90).text);
            };
            if is_killed {
                kill(&disk, store)
            } else {
                drop(store)
            }
            let other_data = disk.fill_up();

            // Also once more after a stop, and after a kill that left a folder behind.
            let has_left_nothing = || names(&folder).unwrap().iter().all(|it| !it.exists());
            for n in 0..3 {
                if n > 0 {
                    fs::create_dir_all(names(&folder).unwrap()[0].join("blobs")).unwrap();
                }
                let store = open(&disk);
                assert!(has_left_nothing(), "start {n}");
                assert_eq!(store.stop_reason().borrow().as_ref().map(|it| it.fault), Some(Fault::Full));
                assert_eq!(store.version(), version);
                complete(&store);
                assert_eq!(store.table::<Note>().unwrap().load().len(), 50);
                let refused = put(&store, 51);
                let is_full = matches!(&refused, Err(Error::Stopped(why)) if why.fault == Fault::Full);
                assert!(is_full, "{refused:?}");
                assert!(store.bulk_write::<Item>(0).is_err());
                assert!(store.statistics().disk_bytes > 0);
            }

            let store = open(&disk);
            let table = store.table::<Note>().unwrap();
            let mut changes = store.changes();
            fs::remove_file(other_data).unwrap();
            wait_until_writable(&store, 5_000);
            complete(&store);
            assert_eq!((table.load().len(), table.load().get(5_000).map(|it| it.id)), (51, Some(5_000)));
            let first = changes.try_next();
            assert!(matches!(first, Some(ChangeMessage::Changed(it)) if it.version == version));
            kill(&disk, store);
            let store = open(&disk);
            complete(&store);
            assert_eq!(store.collection::<Note>().len(), 51);
            assert!(databases(&disk.0) == 1 && has_left_nothing());
        }
    }

    #[test]
    fn a_first_start_on_a_full_disk_and_a_store_without_its_database_are_refused() {
        let disk = SmallDisk::new(8);
        let try_open = || Store::open(&disk.0.join("store"), &disk.0.join("key"), schema()).map(drop);
        let other_data = disk.fill_up();
        let refused = try_open().unwrap_err();
        assert!(refused.to_string().ends_with("the disk is full"), "{refused}");
        fs::remove_file(&other_data).unwrap();
        try_open().unwrap();
        fs::remove_file(disk.0.join("store/db-000001/db")).unwrap();
        disk.fill_up();
        let refused = try_open().unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    }

    #[test]
    fn compaction_is_refused_without_room_for_the_new_database_and_writes_go_on() {
        let disk = SmallDisk::new(12);
        let store = open(&disk);
        (1..=100).try_for_each(|id| put(&store, id)).unwrap();
        disk.fill(disk.available_mib() - 2);
        let before = store.version();
        let refused = store.compact();
        assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?} {:?}", store.statistics());
        assert_eq!(store.version(), before);
        put(&store, 101).unwrap();
        assert_eq!(databases(&disk.0), 1);
    }

    #[test]
    fn an_import_is_refused_without_room_for_it_and_writes_go_on() {
        let disk = SmallDisk::new(48);
        let store = open(&disk);
        let import = || {
            let mut bulk = store.bulk_write::<Item>(0)?;
            (1..=400).try_for_each(|id| bulk.put(&Item { id, text: note(id).text }))?;
            bulk.commit(|_, _| Ok(()))
        };
        import().unwrap();
        let other_data = disk.fill(disk.available_mib() - 3);
        let refused: Result<()> = import();
        assert!(matches!(refused, Err(Error::NoRoom { what: "begin the import", .. })), "{refused:?}");
        assert_eq!(*store.stop_reason().borrow(), None);
        put(&store, 1).unwrap();
        assert_eq!(store.collection::<Item>().len(), 400);
        fs::remove_file(other_data).unwrap();
        import().unwrap();
    }

    #[test]
    fn a_first_import_is_refused_without_room_for_what_it_expects_to_write() {
        let disk = SmallDisk::new(48);
        let store = open(&disk);
        disk.fill(disk.available_mib() - 3);
        let refused = store.sized_bulk_write::<Item>(0, 4 << 20).map(drop);
        let is_named = |it: &Error| matches!(it, Error::NoRoom { what: "begin the import", .. });
        assert!(refused.as_ref().is_err_and(is_named), "{refused:?}");
        assert_eq!(*store.stop_reason().borrow(), None);
        // A smaller one has enough, and nothing is left of the other.
        drop(store.sized_bulk_write::<Item>(0, 1 << 20).unwrap());
        put(&store, 1).unwrap();
    }

    #[test]
    fn check_needs_no_room_in_the_data_folder() {
        let disk = SmallDisk::new(8);
        let store = open(&disk);
        (1..=100).try_for_each(|id| put(&store, id)).unwrap();
        drop(store);
        disk.fill(disk.available_mib());
        let report = crate::check(&disk.0.join("store"), &disk.0.join("key"), &schema()).unwrap();
        assert!(report.is_ok(), "{report}");
        assert_eq!(report.records["notes"], 100);
    }

    #[test]
    fn a_read_only_file_system_is_named_and_not_called_damage() {
        let disk = SmallDisk::new(8);
        drop(open(&disk));
        let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk.0).status();
        assert!(remount.unwrap().success());
        let error = Store::open(&disk.0.join("store"), &disk.0.join("key"), schema()).err().unwrap();
        assert!(matches!(error, Error::Disk { fault: Fault::ReadOnly, .. }), "{error}");
        assert!(error.to_string().ends_with("the file system is read-only"), "{error}");
    }

    /// Something that a thread does with a store.
    type Work = Box<dyn FnOnce(&Store) -> Result<()> + Send>;

    #[test]
    fn nobody_waits_for_a_disk_that_hangs_and_everything_goes_on_when_it_answers() {
        let store = Store::temporary(schema()).unwrap();
        put(&store, 1).unwrap();
        store.set_disk_timeout(Duration::from_millis(20));
        let mut stop_reason = store.stop_reason();
        let mut wait_for = |is_hanging: bool| {
            let is_as_expected = |it: &Option<StopReason>| {
                it.as_ref().is_some_and(|it| it.fault == Fault::Hanging) == is_hanging
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            drop(runtime.block_on(stop_reason.wait_for(is_as_expected)).unwrap());
        };
        let is_refused = |done: &Result<()>| {
            assert!(matches!(done, Err(Error::Stopped(why)) if why.fault == Fault::Hanging), "{done:?}");
        };
        // The writer waits in the middle of a write, with others behind it.
        let (go_on, waiting) = std::sync::mpsc::channel::<()>();
        let (began, begun) = std::sync::mpsc::channel::<()>();
        let in_thread = |work: Work| {
            let store = store.clone();
            std::thread::spawn(move || work(&store))
        };
        let writing = in_thread(Box::new(move |store| {
            store.write_blocking(move |write| {
                began.send(()).unwrap();
                waiting.recv().unwrap();
                write.put(&note(2))
            })
        }));
        begun.recv().unwrap();
        let queued = [
            in_thread(Box::new(|store| put(store, 3))),
            in_thread(Box::new(|store| store.bulk_write::<Item>(7).map(drop))),
        ];
        let operation = store.shared().disk_watch.begin();
        wait_for(true);
        is_refused(&writing.join().unwrap());
        queued.into_iter().for_each(|it| is_refused(&it.join().unwrap()));
        is_refused(&put(&store, 4));
        assert!(store.statistics().hanging_for > Duration::ZERO);
        assert_eq!(store.collection::<Note>().get(1).unwrap(), Some(note(1)));

        drop(operation);
        go_on.send(()).unwrap();
        wait_for(false);
        put(&store, 5).unwrap();
        assert_eq!(store.statistics().hanging_for, Duration::ZERO);
        // The write that had begun was made, and the others were not.
        assert_eq!(store.collection::<Note>().ids(), [1, 2, 5]);
        assert!(store.bulk_write::<Item>(7).is_ok(), "the import that nobody waits for is in progress");
    }

    #[test]
    fn closing_does_not_wait_for_a_disk_that_hangs() {
        let store = Store::temporary(schema()).unwrap();
        let (hang, hanging) = std::sync::mpsc::channel::<()>();
        let writing = {
            let store = store.clone();
            std::thread::spawn(move || {
                store.write_blocking(move |_| hanging.recv().map_err(|_| Error::Closed))
            })
        };
        let started = Instant::now();
        store.close();
        assert!(started.elapsed() < WAIT_MAX);
        drop(hang);
        writing.join().unwrap().unwrap_err();
    }
}
