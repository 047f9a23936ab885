//! Bulk writes on the side of the writer: stages that replace all records of one owner.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::disk::Slice;
use crate::engine::space::ensure_room;
use crate::engine::state::Partition;
use crate::engine::value::{DiskKey, Value};
use crate::error::{Error, Result};
use crate::write::Write;
use crate::write::reply::Reply;
use crate::write::writer::{OpenStage, StageFill, Writer, answer_all};

impl Writer {
    /// Writes the mark of a new stage and returns its number.
    pub(crate) fn stage_mark(&mut self) -> Result<u64> {
        self.last += 1;
        let disk_key = DiskKey::Stage(self.last);
        let key = disk_key.encode();
        let value = Value::new(key.clone(), self.last, Vec::new());
        let mut slice = Slice::default();
        slice.put(key, value.encode());
        // The log of sled keeps the order: the mark precedes everything that belongs to it.
        self.shared.disk()?.apply(slice)?;
        Ok(self.last)
    }

    /// `n_bytes` is what the caller expects to write.
    pub(crate) fn begin_stage(
        &mut self,
        type_number: usize,
        owner: u64,
        n_bytes: u64,
        is_applied: bool,
    ) -> Result<u64> {
        self.ensure_writable()?;
        if let Some(refusal) = self.refusal_for(type_number).filter(|_| !is_applied) {
            return Err(refusal);
        }
        // An import usually replaces the records of its owner by about as many.
        let present = {
            let state = self.shared.state.read();
            state.directories[type_number].partitions.get(&owner).map_or(0, Partition::bytes)
        };
        ensure_room(&self.shared.folder, "begin the import", present.max(n_bytes))?;
        let is_other =
            |it: &OpenStage| (it.type_number, it.owner) == (type_number, owner) && !it.is_cancelled;
        if self.stages.values().any(is_other) {
            return Err(Error::Busy(self.shared.record_type(type_number).name));
        }
        let number = self.stage_mark();
        self.stop_after(&number);
        let number = number?;
        self.stages.insert(
            number,
            OpenStage { type_number, owner, changed: BTreeSet::new(), is_applied, is_cancelled: false },
        );
        Ok(number)
    }

    /// Reserves ids in memory. The next commit makes the counter durable; until then the ids are used nowhere.
    pub(crate) fn reserve_ids(&mut self, type_number: usize, n: u32) -> Result<u32> {
        if let Some(refusal) = self.refusal_for(type_number) {
            return Err(refusal);
        }
        let mut state = self.shared.state.write();
        let first = state.directories[type_number].next_id;
        let next = first.checked_add(n).ok_or(Error::NoIdLeft(self.shared.record_type(type_number).name))?;
        state.directories[type_number].next_id = next;
        Ok(first)
    }

    pub(crate) fn write_staged(&mut self, stage: u64, slice: Slice) -> Result<()> {
        self.ensure_writable()?;
        // Without its mark, a stage would look current after a restart.
        let Some(open) = self.stages.get(&stage) else { return Err(Error::Interrupted) };
        if open.is_cancelled {
            return Err(Error::NotWriter);
        }
        let disk = self.shared.disk()?;
        let done = disk.apply(slice).and_then(|()| disk.flush());
        self.stop_after(&done);
        done
    }

    /// Makes the staged partition current, together with the changes of `fill`.
    pub(crate) fn commit_stage(&mut self, stage: u64, partition: Partition, fill: StageFill, reply: Reply) {
        let shared = Arc::clone(&self.shared);
        let Some(open) = self.stages.get(&stage) else {
            return reply.refuse(Error::Interrupted);
        };
        if open.is_cancelled {
            return reply.refuse(Error::NotWriter);
        }
        let (type_number, owner) = (open.type_number, open.owner);
        let other_owner_has = {
            let state = shared.state.read();
            let mut others = state.directories[type_number].partitions.iter().filter(|it| *it.0 != owner);
            others.find_map(|(_, other)| partition.common_id(other))
        };
        if let Some(by) = other_owner_has {
            let collection = shared.record_type(type_number).name;
            return reply.refuse(Error::Taken { collection, index: "id", by });
        }
        let changed: Vec<u32> = open.changed.iter().copied().collect();
        let mut write = Write::new(&shared);
        write.overlay.counters.insert(type_number, shared.state.read().directories[type_number].next_id);
        write.replace_partition(type_number, owner, partition);
        let filled = catch_unwind(AssertUnwindSafe(|| reply.answer(|| fill(&mut write, &changed))));
        if let Some(answer) = filled.ok().flatten() {
            let open = self.stages.remove(&stage);
            let done = self.commit(write.overlay, Some(stage));
            // The log refused it. After a failure of the disk all stages are lost.
            if done.is_err() && !self.is_disk_unknown() {
                self.stages.extend(open.map(|it| (stage, it)));
            }
            answer_all(vec![answer], &done);
        }
    }

    /// Queues the values of a cancelled stage to be swept, and its mark after them.
    pub(crate) fn abandon_stage(&mut self, stage: u64, keys: Vec<Vec<u8>>) {
        if self.stages.remove(&stage).is_none() {
            return;
        }
        self.leftovers.extend(keys);
        self.leftovers.insert(DiskKey::Stage(stage).encode());
    }
}
