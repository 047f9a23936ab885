//! The one thread that writes.
//!
//! It takes what waits, lets each function fill the same overlay (a function that fails leaves no trace in it), and
//! commits the overlay: one slice if it is small, several if it is not. Several slices are *staged* first: their
//! values get a version that nobody reads, and one last slice makes them current by crossing out the stage's mark.
//! What they replace is swept afterwards, a slice at a time, between other writes.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};

use crate::changes::{Change, ChangedIds, CollectionChange, IDS_MAX};
use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::{Disk, SLICE_WEIGHT_MAX, Slice};
use crate::engine::shared::Shared;
use crate::engine::space::Watch;
use crate::engine::state::{At, Group};
use crate::engine::value::{Place, Value};
use crate::error::{Error, Result};
use crate::read::view::{Keep, Kept};
use crate::store::Reader;
use crate::write::memory_update::MemoryUpdate;
use crate::write::{Overlay, Write};

/// Most single records or twenty times as many blocks in one write; more is for [`BulkWrite`](crate::BulkWrite).
pub(crate) const WRITE_WEIGHT_MAX: usize = 10_000;

/// Replaced values that may wait to be swept. More of them are swept before the next job, idle or not.
const LEFTOVERS_MAX: usize = 10_000;

/// Tells the caller how it went, once it is durable.
pub(crate) type Answer = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// A caller's function. `None` if it failed, which the caller knows already.
pub(crate) type Fill = Box<dyn FnOnce(&mut Write<'_>) -> Option<Answer> + Send>;

/// What the writer can be asked for.
pub(crate) enum Job {
    Write(Fill),
    /// A bulk write of one owner begins. The answer is the number of its stage.
    Stage {
        noun: usize,
        owner: u64,
        reply: oneshot::Sender<Result<u64>>,
    },
    /// ChangedIds for a bulk write: the first of this many.
    Reserve {
        noun: usize,
        n: u32,
        reply: oneshot::Sender<Result<u32>>,
    },
    /// A piece of a bulk write.
    Staged {
        slice: Slice,
        reply: oneshot::Sender<Result<()>>,
    },
    /// The bulk write is complete: this group takes the place of the present one.
    Land {
        stage: u64,
        group: Box<Group>,
        fill: LandFill,
    },
    /// The bulk write will not be completed.
    Abandon {
        stage: u64,
        keys: Vec<Vec<u8>>,
    },
    Keep(Keep),
    Compact(oneshot::Sender<Result<()>>),
    Close,
}

/// The function that lands with a bulk write; it is given the ids that others touched meanwhile.
pub(crate) type LandFill = Box<dyn FnOnce(Result<(&mut Write<'_>, &[u32])>) -> Option<Answer> + Send>;

/// A bulk write that has not landed.
struct Open {
    noun: usize,
    owner: u64,
    touched: BTreeSet<u32>,
}

pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commit_file: CommitFile,
    pub(crate) generation: u64,
    /// The last number given to a commit or a stage.
    pub(crate) last: u64,
    /// Keys of replaced values, in the order in which they have to go.
    pub(crate) leftovers: BTreeSet<Vec<u8>>,
    stages: BTreeMap<u64, Open>,
    kept: Vec<Kept>,
    pub(crate) watch: Watch,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, commit_file: CommitFile, generation: u64, last: u64) -> Self {
        Self {
            shared,
            commit_file,
            generation,
            last,
            leftovers: BTreeSet::new(),
            stages: BTreeMap::new(),
            kept: Vec::new(),
            watch: Watch::default(),
        }
    }

    pub(crate) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut next = None;
        loop {
            let job = match next.take() {
                Some(job) => job,
                // Between two jobs there is time to sweep.
                None => match jobs.try_recv() {
                    Ok(job) => job,
                    Err(mpsc::error::TryRecvError::Disconnected) => break,
                    Err(mpsc::error::TryRecvError::Empty) if self.sweep_one_slice() => continue,
                    Err(mpsc::error::TryRecvError::Empty) => match jobs.blocking_recv() {
                        Some(job) => job,
                        None => break,
                    },
                },
            };
            while self.leftovers.len() > LEFTOVERS_MAX && self.sweep_one_slice() {}
            match job {
                Job::Write(fill) => next = self.group(fill, &mut jobs),
                Job::Stage { noun, owner, reply } => drop(reply.send(self.stage(noun, owner))),
                Job::Reserve { noun, n, reply } => drop(reply.send(self.reserve(noun, n))),
                Job::Staged { slice, reply } => drop(reply.send(self.staged(slice))),
                Job::Land { stage, group, fill } => self.land(stage, *group, fill),
                Job::Abandon { stage, keys } => {
                    self.stages.remove(&stage);
                    self.leftovers.extend(keys);
                    self.leftovers.insert(Place::Stage(stage).key());
                }
                Job::Keep(keep) => self.kept.extend(keep(&Reader::new(&self.shared))),
                Job::Compact(reply) => {
                    drop(reply.send(self.may_write().and_then(|()| self.compact())));
                }
                Job::Close => break,
            }
            self.watch_space();
        }
        // What was flushed is safe already; this only spares the next start some work.
        if let Err(error) = self.shared.disk().sync() {
            tracing::warn!("the store did not sync at its end: {error}");
        }
    }

    /// Runs a function and what waits behind it, and commits all of it at once. Gives back the first job that is
    /// something else.
    fn group(&mut self, first: Fill, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        let shared = Arc::clone(&self.shared);
        let mut write = Write { shared: &shared, overlay: Overlay::default() };
        let mut answers = Vec::new();
        let mut fill = Some(first);
        let mut next = None;
        while let Some(fill_one) = fill.take() {
            let before = write.overlay.clone();
            let filled = catch_unwind(AssertUnwindSafe(|| fill_one(&mut write)));
            // A caller whose function panicked hears of it because its answer is dropped.
            let weight = write.overlay.weight();
            match filled.ok().flatten() {
                Some(answer) if weight - before.weight().min(weight) > WRITE_WEIGHT_MAX => {
                    write.overlay = before;
                    answer(Err(Error::TooLarge { what: "a write", size: weight, max: WRITE_WEIGHT_MAX }));
                }
                Some(answer) => answers.push(answer),
                None => write.overlay = before,
            }
            if write.overlay.weight() >= SLICE_WEIGHT_MAX {
                break;
            }
            match jobs.try_recv() {
                Ok(Job::Write(another)) => fill = Some(another),
                Ok(other) => next = Some(other),
                Err(_) => {}
            }
        }
        let done = self.commit(write.overlay, None);
        answer_all(answers, &done);
        next
    }

    pub(crate) fn may_write(&self) -> Result<()> {
        self.shared.stopped.lock().clone().map_or(Ok(()), |why| Err(Error::Stopped(why)))
    }

    /// After a failure on the way to the disk nobody knows what is there.
    pub(crate) fn stop_after<T>(&self, done: &Result<T>) {
        if let Err(error) = done {
            tracing::error!("the store takes no more writes: {error}");
            self.shared.stopped.lock().get_or_insert(error.to_string());
        }
    }

    fn commit(&mut self, overlay: Overlay, stage: Option<u64>) -> Result<()> {
        if overlay.is_empty() && stage.is_none() {
            return Ok(());
        }
        self.may_write()?;
        let done = self.commit_now(overlay, stage);
        self.stop_after(&done);
        let change = done?;
        self.tell(change);
        Ok(())
    }

    fn commit_now(&mut self, overlay: Overlay, stage: Option<u64>) -> Result<Change> {
        let shared = Arc::clone(&self.shared);
        let disk = shared.disk();
        let collections = self.touched(&overlay);
        // Small enough for one slice? Removing a replaced block weighs one.
        let n_replaced: usize = {
            let state = shared.state.read();
            let n_blocks = |key: &(usize, u64)| {
                state.directories[key.0].groups.get(&key.1).map_or(0, |it| it.blocks.len())
            };
            overlay.groups.keys().map(n_blocks).sum()
        };
        let mut batch = Batch { disk: &disk, slice: Slice::default(), is_staged: false };
        let mut version = None;
        if stage.is_some() || overlay.weight() + n_replaced > SLICE_WEIGHT_MAX || is_heavy(&overlay) {
            let number = match stage {
                Some(number) => number,
                None => self.stage_mark()?,
            };
            version = Some(number);
            batch.is_staged = true;
        }
        self.last += 1;
        let commit = self.last;
        let mut plan = MemoryUpdate::default();
        let mut last_slice = Slice::default();
        self.put_singles(&overlay, commit, version, &mut batch, &mut plan)?;
        self.replace_groups(&overlay, commit, version, &mut batch, &mut last_slice, &mut plan)?;
        self.put_blocks(&overlay, commit, version, &mut batch, &mut plan)?;
        if let Some(version) = version {
            batch.send()?;
            // Not only removed: who has to search the bare file can tell this stage from one that never landed.
            let mark = Place::Stage(version);
            last_slice.put(mark.key(), gone(&mark, commit));
            plan.leftovers.push(mark.key());
        } else {
            last_slice = batch.slice;
        }
        for (noun, next) in &overlay.counters {
            let place = Place::Counter(shared.noun(*noun).name.to_owned());
            let payload = next.to_be_bytes().to_vec();
            last_slice.put(place.key(), Value { key: place.key(), commit, is_gone: false, payload }.encode());
        }
        last_slice.put(Place::Meta.key(), meta(&shared, commit)?);
        let replaced: Vec<_> =
            overlay.groups.into_iter().map(|(key, group)| (key, Arc::unwrap_or_clone(group))).collect();
        let counts = {
            // Readers see the old state or the new one, on the disk as in memory.
            let mut state = shared.state.write();
            disk.apply(last_slice)?;
            plan.apply(&mut state.directories, replaced, &overlay.places, &overlay.pairs);
            for (noun, next) in &overlay.counters {
                state.directories[*noun].next_id = *next;
            }
            state.commit = commit;
            counts(&shared, &state.directories)
        };
        self.leftovers.extend(plan.leftovers);
        disk.sync()?;
        let (format, generation) = (shared.format, self.generation);
        self.commit_file.write(&CommitMark { format, generation, commit, counts })?;
        Ok(Change { version: commit, collections })
    }

    /// Under which version a value is written: over the present one if there is one.
    fn version_for(&self, commit: u64, present: Option<u64>, place: &Place) -> u64 {
        match present {
            Some(version) => version,
            // Something older lies there still; it must not count again after a crash.
            None if self.has_leftovers(place) => commit,
            None => 0,
        }
    }

    fn has_leftovers(&self, place: &Place) -> bool {
        let stem = place.stem();
        self.leftovers.range(stem.clone()..).next().is_some_and(|key| key.starts_with(&stem))
    }

    /// Takes a present value away, in a commit that is one slice.
    fn remove(&self, place: &Place, commit: u64, slice: &mut Slice, plan: &mut MemoryUpdate) {
        if self.has_leftovers(place) {
            slice.put(place.key(), gone(place, commit));
            plan.leftovers.push(place.key());
        } else {
            slice.remove(place.key());
        }
    }

    fn put_singles(
        &self,
        overlay: &Overlay,
        commit: u64,
        staged: Option<u64>,
        batch: &mut Batch<'_>,
        plan: &mut MemoryUpdate,
    ) -> Result<()> {
        for ((noun, id), bytes) in &overlay.singles {
            let present = self.shared.state.read().directories[*noun].singles.get(id).map(|it| it.version);
            let place = |version| self.shared.single_place(*noun, *id, version);
            let at = match (staged, bytes) {
                (Some(staged), Some(bytes)) => {
                    let value = self.shared.seal(*noun, &place(staged), commit, bytes)?;
                    plan.leftovers.extend(present.map(|version| place(version).key()));
                    Some(batch.put(&place(staged), commit, value)?)
                }
                (Some(staged), None) => {
                    if let Some(present) = present {
                        batch.put(&place(staged), commit, gone(&place(staged), commit))?;
                        plan.leftovers.extend([place(present).key(), place(staged).key()]);
                    }
                    None
                }
                (None, Some(bytes)) => {
                    let version = self.version_for(commit, present, &place(0));
                    let value = self.shared.seal(*noun, &place(version), commit, bytes)?;
                    Some(batch.put(&place(version), commit, value)?)
                }
                (None, None) => {
                    if let Some(present) = present {
                        self.remove(&place(present), commit, &mut batch.slice, plan);
                    }
                    None
                }
            };
            plan.singles.push((*noun, *id, at));
        }
        Ok(())
    }

    /// Takes away what lies where a group is replaced. The new blocks lie there already, or come after this.
    fn replace_groups(
        &self,
        overlay: &Overlay,
        commit: u64,
        staged: Option<u64>,
        batch: &mut Batch<'_>,
        last_slice: &mut Slice,
        plan: &mut MemoryUpdate,
    ) -> Result<()> {
        for ((noun, owner), new) in &overlay.groups {
            let old = {
                let state = self.shared.state.read();
                state.directories[*noun].groups.get(owner).map(|it| it.blocks.clone()).unwrap_or_default()
            };
            for (number, at) in old {
                let place = |version| self.shared.block_place(*noun, *owner, number, version);
                let present = place(at.version);
                // A block that this write itself fills counts as there.
                let is_refilled =
                    overlay.blocks.get(&(*noun, *owner, number)).is_some_and(|it| !it.records.is_empty());
                let is_new = new.blocks.contains_key(&number) || is_refilled;
                match staged {
                    None if is_refilled => plan.present.push(((*noun, *owner, number), at.version)),
                    None => self.remove(&present, commit, &mut batch.slice, plan),
                    Some(staged) if at.version < staged => {
                        plan.leftovers.push(present.key());
                        if !is_new {
                            batch.put(&place(staged), commit, gone(&place(staged), commit))?;
                            plan.leftovers.push(place(staged).key());
                        }
                    }
                    // Made by a small write after the stage began: it must not count above the new one.
                    Some(_) if is_new => last_slice.remove(present.key()),
                    Some(_) => {
                        last_slice.put(present.key(), gone(&present, commit));
                        plan.leftovers.push(present.key());
                    }
                }
            }
        }
        Ok(())
    }

    fn put_blocks(
        &self,
        overlay: &Overlay,
        commit: u64,
        staged: Option<u64>,
        batch: &mut Batch<'_>,
        plan: &mut MemoryUpdate,
    ) -> Result<()> {
        for ((noun, owner, number), block) in &overlay.blocks {
            let place = |version| self.shared.block_place(*noun, *owner, *number, version);
            let present = match overlay.groups.get(&(*noun, *owner)) {
                Some(group) => group.blocks.get(number).map(|it| it.version),
                None => {
                    let state = self.shared.state.read();
                    let group = state.directories[*noun].groups.get(owner);
                    group.and_then(|it| it.blocks.get(number)).map(|it| it.version)
                }
            };
            let is_gone = block.records.is_empty();
            let at = match staged {
                Some(staged) if is_gone => {
                    if let Some(present) = present {
                        batch.put(&place(staged), commit, gone(&place(staged), commit))?;
                        plan.leftovers.extend([place(present).key(), place(staged).key()]);
                    }
                    None
                }
                Some(staged) => {
                    let bytes = self.shared.seal(*noun, &place(staged), commit, &block.encode())?;
                    let replaced = present.filter(|version| *version != staged);
                    plan.leftovers.extend(replaced.map(|version| place(version).key()));
                    Some(batch.put(&place(staged), commit, bytes)?)
                }
                None if is_gone => {
                    if let Some(present) = present {
                        self.remove(&place(present), commit, &mut batch.slice, plan);
                    }
                    None
                }
                None => {
                    let replaced =
                        plan.present.iter().find(|it| it.0 == (*noun, *owner, *number)).map(|it| it.1);
                    let version = self.version_for(commit, present.or(replaced), &place(0));
                    let bytes = self.shared.seal(*noun, &place(version), commit, &block.encode())?;
                    Some(batch.put(&place(version), commit, bytes)?)
                }
            };
            plan.blocks.push(((*noun, *owner, *number), at));
        }
        Ok(())
    }

    fn touched(&mut self, overlay: &Overlay) -> Vec<CollectionChange> {
        let mut by_noun: BTreeMap<usize, ChangedIds> = BTreeMap::new();
        for (noun, _) in overlay.groups.keys() {
            by_noun.insert(*noun, ChangedIds::Many);
        }
        for (noun, id) in overlay.singles.keys().chain(overlay.places.keys()) {
            let ids = by_noun.entry(*noun).or_insert_with(|| ChangedIds::Few(Vec::new()));
            match ids {
                ChangedIds::Few(few) if few.len() < IDS_MAX => few.push(*id),
                _ => *ids = ChangedIds::Many,
            }
        }
        for open in self.stages.values_mut() {
            let state = self.shared.state.read();
            for ((_, id), place) in overlay.places.range((open.noun, 0)..=(open.noun, u32::MAX)) {
                let was_here = state.directories[open.noun].locate(*id).is_some_and(|it| it.0 == open.owner);
                if was_here || place.is_some_and(|it| it.0 == open.owner) {
                    open.touched.insert(*id);
                }
            }
        }
        let name = |noun: usize| self.shared.noun(noun).name;
        by_noun.into_iter().map(|(noun, ids)| CollectionChange { collection: name(noun), ids }).collect()
    }

    /// Views first, so that who is answered finds its own change in them.
    fn tell(&mut self, change: Change) {
        let reader = Reader::new(&self.shared);
        self.kept.retain_mut(|kept| {
            if !kept.collections.iter().any(|it| change.of(it).is_some()) {
                return true;
            }
            match catch_unwind(AssertUnwindSafe(|| (kept.follow)(&reader, &change))) {
                Ok(Ok(is_held)) => is_held,
                Ok(Err(error)) => {
                    tracing::error!("a view of the store stays behind: {error}");
                    true
                }
                Err(_) => {
                    tracing::error!("a view of the store panicked and stays behind");
                    true
                }
            }
        });
        // Nobody may be listening.
        drop(self.shared.changes.send(Arc::new(change)));
    }

    fn stage_mark(&mut self) -> Result<u64> {
        self.last += 1;
        let place = Place::Stage(self.last);
        let value = Value { key: place.key(), commit: self.last, is_gone: false, payload: Vec::new() };
        let mut slice = Slice::default();
        slice.put(place.key(), value.encode());
        // The mark is in the log before anything that belongs to it.
        self.shared.disk().apply(slice)?;
        Ok(self.last)
    }

    fn stage(&mut self, noun: usize, owner: u64) -> Result<u64> {
        self.may_write()?;
        if self.stages.values().any(|it| (it.noun, it.owner) == (noun, owner)) {
            return Err(Error::Busy(self.shared.noun(noun).name));
        }
        let number = self.stage_mark();
        self.stop_after(&number);
        let number = number?;
        self.stages.insert(number, Open { noun, owner, touched: BTreeSet::new() });
        Ok(number)
    }

    /// ChangedIds are taken in memory; they are written with the first commit after. Until then nobody has seen them.
    fn reserve(&mut self, noun: usize, n: u32) -> Result<u32> {
        let mut state = self.shared.state.write();
        let first = state.directories[noun].next_id;
        let next = first.checked_add(n).ok_or(Error::NoIdLeft(self.shared.noun(noun).name))?;
        state.directories[noun].next_id = next;
        Ok(first)
    }

    fn staged(&mut self, slice: Slice) -> Result<()> {
        self.may_write()?;
        let disk = self.shared.disk();
        let done = disk.apply(slice).and_then(|()| disk.flush());
        self.stop_after(&done);
        done
    }

    fn land(&mut self, stage: u64, group: Group, fill: LandFill) {
        let shared = Arc::clone(&self.shared);
        let Some(open) = self.stages.get(&stage) else {
            drop(fill(Err(Error::Closed)));
            return;
        };
        let (noun, owner) = (open.noun, open.owner);
        let elsewhere = {
            let state = shared.state.read();
            let mut others = state.directories[noun].groups.iter().filter(|it| *it.0 != owner);
            others.find_map(|(_, other)| group.has_in_common(other))
        };
        if let Some(by) = elsewhere {
            drop(fill(Err(Error::Taken { collection: shared.noun(noun).name, index: "id", by })));
            return;
        }
        let touched: Vec<u32> = open.touched.iter().copied().collect();
        let mut write = Write { shared: &shared, overlay: Overlay::default() };
        write.overlay.counters.insert(noun, shared.state.read().directories[noun].next_id);
        write.replace_group(noun, owner, group);
        let filled = catch_unwind(AssertUnwindSafe(|| fill(Ok((&mut write, &touched)))));
        if let Some(answer) = filled.ok().flatten() {
            // From here on it is no longer open: what fails now stops the store.
            self.stages.remove(&stage);
            let done = self.commit(write.overlay, Some(stage));
            answer_all(vec![answer], &done);
        }
    }

    /// Removes some of what was replaced. False if there is nothing to do.
    fn sweep_one_slice(&mut self) -> bool {
        if self.leftovers.is_empty()
            || self.shared.n_passes.load(Ordering::SeqCst) > 0
            || self.may_write().is_err()
        {
            return false;
        }
        let done = sweep(&self.shared.disk(), &mut self.leftovers);
        self.stop_after(&done);
        done.is_ok()
    }
}

/// A slice of leftovers, oldest versions first.
pub(crate) fn sweep(disk: &Disk, leftovers: &mut BTreeSet<Vec<u8>>) -> Result<()> {
    let mut slice = Slice::default();
    while slice.weight() < SLICE_WEIGHT_MAX
        && let Some(key) = leftovers.pop_first()
    {
        slice.remove(key);
    }
    disk.apply(slice).and_then(|()| disk.flush())
}

/// Values on their way to the disk, a slice at a time if they are staged.
pub(crate) struct Batch<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) slice: Slice,
    pub(crate) is_staged: bool,
}

impl Batch<'_> {
    fn put(&mut self, place: &Place, commit: u64, value: Vec<u8>) -> Result<At> {
        let key = place.key();
        let at = At::new(place.version(), commit, &key, value.len());
        self.add(key, value)?;
        Ok(at)
    }

    pub(crate) fn add(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        let weight = Slice::weight_of(&key, value.len());
        if self.is_staged && self.slice.weight() + weight > SLICE_WEIGHT_MAX {
            self.send()?;
        }
        self.slice.put(key, value);
        Ok(())
    }

    pub(crate) fn send(&mut self) -> Result<()> {
        self.disk.apply(std::mem::take(&mut self.slice))?;
        self.disk.flush()
    }
}

fn is_heavy(overlay: &Overlay) -> bool {
    let bytes: usize = overlay.singles.values().flatten().map(|it| it.len()).sum();
    bytes > SLICE_WEIGHT_MAX * 8 * 1024 && overlay.singles.len() + overlay.blocks.len() > 1
}

fn gone(place: &Place, commit: u64) -> Vec<u8> {
    Value { key: place.key(), commit, is_gone: true, payload: Vec::new() }.encode()
}

/// The value that says which commit was the last: format and a proof of the key.
pub(crate) fn meta(shared: &Shared, commit: u64) -> Result<Vec<u8>> {
    let mut payload = vec![shared.format];
    payload.extend(shared.vault.seal_bytes(b"meta", b"headwater")?);
    Ok(Value { key: Place::Meta.key(), commit, is_gone: false, payload }.encode())
}

pub(crate) fn counts(
    shared: &Shared,
    directories: &[crate::engine::state::Directory],
) -> BTreeMap<String, u64> {
    let names = shared.schema.nouns.iter().map(|it| it.name.to_owned());
    names.zip(directories.iter().map(|it| it.len() as u64)).collect()
}

fn answer_all(answers: Vec<Answer>, done: &Result<()>) {
    for answer in answers {
        answer(match done {
            Ok(()) => Ok(()),
            Err(Error::Stopped(why)) => Err(Error::Stopped(why.clone())),
            Err(error) => Err(Error::Stopped(error.to_string())),
        });
    }
}
