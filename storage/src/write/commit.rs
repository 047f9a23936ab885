//! Commits: writing an overlay to the disk and making it current and durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::changes::{Change, ChangedIds, CollectionChange, IDS_MAX};
use crate::engine::disk::{SLICE_WEIGHT_MAX, Slice};
use crate::engine::shared::Shared;
use crate::engine::slice_writer::SliceWriter;
use crate::engine::value::{DiskKey, Location, Value};
use crate::error::Result;
use crate::write::memory_update::MemoryUpdate;
use crate::write::overlay::Overlay;
use crate::write::writer::Writer;

/// Values of more bytes than this in one commit are staged.
const SLICE_BYTES_MAX: usize = SLICE_WEIGHT_MAX * 8 * 1024;

impl Writer {
    /// Commits an overlay, with the stage of a bulk write if there is one. Returns once it is durable.
    pub(crate) fn commit(&mut self, mut overlay: Overlay, stage: Option<u64>) -> Result<()> {
        if overlay.is_empty() && stage.is_none() {
            return Ok(());
        }
        self.ensure_writable()?;
        self.log_commit(&mut overlay)?;
        let done = self.commit_now(overlay, stage);
        self.stop_after(&done);
        if done.is_err() {
            self.log_failed();
        }
        let change = done?;
        *self.shared.committed_at.lock() = Instant::now();
        self.notify(change);
        // After the views: who waits for a position finds the commit in them.
        self.publish_log_status();
        Ok(())
    }

    fn commit_now(&mut self, mut overlay: Overlay, stage: Option<u64>) -> Result<Change> {
        let shared = Arc::clone(&self.shared);
        let disk = shared.disk()?;
        let collections = self.changed_collections(&overlay);
        // Decides whether one slice is enough. The removal of a replaced block weighs one.
        let n_replaced: usize = {
            let state = shared.state.read();
            let n_blocks = |key: &(usize, u64)| {
                state.directories[key.0].partitions.get(&key.1).map_or(0, |it| it.blocks.len())
            };
            overlay.partitions.keys().map(n_blocks).sum()
        };
        let mut version = None;
        if stage.is_some() || overlay.weight() + n_replaced > SLICE_WEIGHT_MAX || is_heavy(&overlay) {
            // Also beside the stage of a bulk write: large writes since that stage began have later versions, which must
            // not become current again after a crash.
            version = Some(self.stage_mark()?);
        }
        let mut writer = match version {
            Some(_) => SliceWriter::staged(&disk),
            None => SliceWriter::one_slice(&disk),
        };
        self.last += 1;
        let commit = self.last;
        let mut update = MemoryUpdate::default();
        let mut last_slice = Slice::default();
        if let Some(version) = version {
            self.outdo_later_versions(&mut overlay, commit, version, &mut writer, &mut update)?;
        }
        self.put_singles(&overlay, commit, version, &mut writer, &mut update)?;
        self.replace_partitions(&overlay, commit, version, &mut writer, &mut update)?;
        self.put_blocks(&overlay, commit, version, &mut writer, &mut update)?;
        if let Some(version) = version {
            writer.send()?;
            // A tombstone instead of a removal, so that salvage from the bare file can tell a complete stage from an
            // incomplete one.
            for stage_key in stage.into_iter().chain([version]).map(DiskKey::Stage) {
                last_slice.put(stage_key.encode(), tombstone(&stage_key, commit));
                update.leftovers.push(stage_key.encode());
            }
        } else {
            last_slice = writer.slice;
        }
        for (type_number, next) in &overlay.counters {
            let disk_key = DiskKey::Counter(shared.record_type(*type_number).name.to_owned());
            let payload = next.to_be_bytes().to_vec();
            last_slice.put(disk_key.encode(), Value::new(disk_key.encode(), commit, payload).encode());
        }
        let is_healed = |it: &&DiskKey| overlay.heals(&shared.schema, it);
        let healed: Vec<DiskKey> = shared.state.read().set_aside.iter().filter(is_healed).cloned().collect();
        for disk_key in &healed {
            last_slice.remove(DiskKey::SetAside(Box::new(disk_key.clone())).encode());
        }
        last_slice.put(DiskKey::Meta.encode(), meta(&shared, commit)?);
        let replaced: Vec<_> = overlay
            .partitions
            .into_iter()
            .map(|(key, partition)| (key, Arc::unwrap_or_clone(partition)))
            .collect();
        let mark = {
            // Under the lock, so that readers see either the old state or the new one, on the disk and in memory.
            let mut state = shared.state.write();
            if let Some(kept) = &mut *shared.kept.lock() {
                kept.keep(&disk, &last_slice);
            }
            disk.apply(last_slice)?;
            update.apply(&mut state.directories, replaced, &overlay.places, &overlay.pairs);
            for (type_number, next) in &overlay.counters {
                state.directories[*type_number].next_id = *next;
                state.directories[*type_number].counter_commit = Some(commit);
            }
            state.commit = commit;
            state.set_aside.retain(|it| !healed.contains(it));
            shared.mark(self.generation, &state)
        };
        self.leftovers.extend(update.leftovers);
        disk.sync()?;
        self.write_mark(&mark)?;
        Ok(Change { version: commit, collections })
    }

    /// Returns the version under which a small commit writes a value: that of the present value, which it overwrites, if
    /// there is one.
    fn version_for(&self, commit: u64, present: Option<u64>, disk_key: &DiskKey) -> u64 {
        match present {
            Some(version) => version,
            // An older value still exists and must not become current again after a crash.
            None if self.has_leftovers(disk_key) => commit,
            None => 0,
        }
    }

    fn has_leftovers(&self, disk_key: &DiskKey) -> bool {
        let stem = disk_key.stem();
        self.leftovers.range(stem.clone()..).next().is_some_and(|key| key.starts_with(&stem))
    }

    /// Removes a present value, in a commit of one slice.
    fn remove(&self, disk_key: &DiskKey, commit: u64, slice: &mut Slice, update: &mut MemoryUpdate) {
        if self.has_leftovers(disk_key) {
            slice.put(disk_key.encode(), tombstone(disk_key, commit));
            update.leftovers.push(disk_key.encode());
        } else {
            slice.remove(disk_key.encode());
        }
    }

    /// Writes blocks of a bulk write again, under the version of this commit, if a later version than that of their stage
    /// is on the disk: small writes since the stage began leave such values and tombstones.
    fn outdo_later_versions(
        &self,
        overlay: &mut Overlay,
        commit: u64,
        version: u64,
        writer: &mut SliceWriter<'_>,
        update: &mut MemoryUpdate,
    ) -> Result<()> {
        let shared = &self.shared;
        for ((type_number, owner), partition) in &mut overlay.partitions {
            let present: BTreeMap<u32, u64> = {
                let state = shared.state.read();
                let present = state.directories[*type_number].partitions.get(owner);
                present.map_or_else(BTreeMap::new, |it| {
                    it.blocks.iter().map(|it| (*it.0, it.1.version)).collect()
                })
            };
            let disk_key = |number, version| shared.block_key(*type_number, *owner, number, version);
            let is_outdone = |it: &(u32, Location)| {
                let later = disk_key(it.0, it.1.version + 1).encode()..=disk_key(it.0, u64::MAX).encode();
                present.get(&it.0).is_some_and(|present| *present > it.1.version)
                    || self.leftovers.range(later).next().is_some()
            };
            let outdone: Vec<_> =
                partition.blocks.iter().map(|it| (*it.0, *it.1)).filter(is_outdone).collect();
            for (number, at) in outdone {
                let staged = disk_key(number, at.version);
                let missing = || shared.missing_block(*type_number, number);
                let bytes = shared.disk()?.get(&staged.encode())?.ok_or_else(missing)?;
                let payload = Value::decode_at(&staged.encode(), &bytes)?.payload;
                let now = disk_key(number, version);
                let value = Value::new(now.encode(), commit, payload).encode();
                let at = writer.put(&now, commit, value)?;
                Arc::make_mut(partition).blocks.insert(number, at);
                update.leftovers.push(staged.encode());
            }
        }
        Ok(())
    }

    fn put_singles(
        &self,
        overlay: &Overlay,
        commit: u64,
        staged: Option<u64>,
        writer: &mut SliceWriter<'_>,
        update: &mut MemoryUpdate,
    ) -> Result<()> {
        for ((type_number, id), bytes) in &overlay.singles {
            let present =
                self.shared.state.read().directories[*type_number].singles.get(id).map(|it| it.version);
            let disk_key = |version| self.shared.single_key(*type_number, *id, version);
            let at = match (staged, bytes) {
                (Some(staged), Some(bytes)) => {
                    let value = self.shared.seal(*type_number, &disk_key(staged), commit, bytes)?;
                    update.leftovers.extend(present.map(|version| disk_key(version).encode()));
                    Some(writer.put(&disk_key(staged), commit, value)?)
                }
                (Some(staged), None) => {
                    if let Some(present) = present {
                        writer.put(&disk_key(staged), commit, tombstone(&disk_key(staged), commit))?;
                        update.leftovers.extend([disk_key(present).encode(), disk_key(staged).encode()]);
                    }
                    None
                }
                (None, Some(bytes)) => {
                    let version = self.version_for(commit, present, &disk_key(0));
                    let value = self.shared.seal(*type_number, &disk_key(version), commit, bytes)?;
                    Some(writer.put(&disk_key(version), commit, value)?)
                }
                (None, None) => {
                    if let Some(present) = present {
                        self.remove(&disk_key(present), commit, &mut writer.slice, update);
                    }
                    None
                }
            };
            update.singles.push((*type_number, *id, at));
        }
        Ok(())
    }

    /// Removes the old blocks of replaced partitions. The new blocks are already written, or are written after this.
    fn replace_partitions(
        &self,
        overlay: &Overlay,
        commit: u64,
        staged: Option<u64>,
        writer: &mut SliceWriter<'_>,
        update: &mut MemoryUpdate,
    ) -> Result<()> {
        for ((type_number, owner), new) in &overlay.partitions {
            let old = {
                let state = self.shared.state.read();
                state.directories[*type_number]
                    .partitions
                    .get(owner)
                    .map(|it| it.blocks.clone())
                    .unwrap_or_default()
            };
            for (number, at) in old {
                let disk_key = |version| self.shared.block_key(*type_number, *owner, number, version);
                let present = disk_key(at.version);
                // A block that this write itself refills still exists afterwards.
                let is_refilled = overlay
                    .blocks
                    .get(&(*type_number, *owner, number))
                    .is_some_and(|it| !it.records.is_empty());
                let is_new = new.blocks.contains_key(&number) || is_refilled;
                match staged {
                    None if is_refilled => update.present.push(((*type_number, *owner, number), at.version)),
                    None => self.remove(&present, commit, &mut writer.slice, update),
                    Some(staged) => {
                        update.leftovers.push(present.encode());
                        if !is_new {
                            writer.put(&disk_key(staged), commit, tombstone(&disk_key(staged), commit))?;
                            update.leftovers.push(disk_key(staged).encode());
                        }
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
        writer: &mut SliceWriter<'_>,
        update: &mut MemoryUpdate,
    ) -> Result<()> {
        for ((type_number, owner, number), block) in &overlay.blocks {
            let disk_key = |version| self.shared.block_key(*type_number, *owner, *number, version);
            let present = match overlay.partitions.get(&(*type_number, *owner)) {
                Some(partition) => partition.blocks.get(number).map(|it| it.version),
                None => {
                    let state = self.shared.state.read();
                    let partition = state.directories[*type_number].partitions.get(owner);
                    partition.and_then(|it| it.blocks.get(number)).map(|it| it.version)
                }
            };
            let is_tombstone = block.records.is_empty();
            let at = match staged {
                Some(staged) if is_tombstone => {
                    if let Some(present) = present {
                        writer.put(&disk_key(staged), commit, tombstone(&disk_key(staged), commit))?;
                        update.leftovers.extend([disk_key(present).encode(), disk_key(staged).encode()]);
                    }
                    None
                }
                Some(staged) => {
                    let bytes = self.shared.seal(*type_number, &disk_key(staged), commit, &block.encode())?;
                    let replaced = present.filter(|version| *version != staged);
                    update.leftovers.extend(replaced.map(|version| disk_key(version).encode()));
                    Some(writer.put(&disk_key(staged), commit, bytes)?)
                }
                None if is_tombstone => {
                    if let Some(present) = present {
                        self.remove(&disk_key(present), commit, &mut writer.slice, update);
                    }
                    None
                }
                None => {
                    let replaced = update
                        .present
                        .iter()
                        .find(|it| it.0 == (*type_number, *owner, *number))
                        .map(|it| it.1);
                    let version = self.version_for(commit, present.or(replaced), &disk_key(0));
                    let bytes =
                        self.shared.seal(*type_number, &disk_key(version), commit, &block.encode())?;
                    Some(writer.put(&disk_key(version), commit, bytes)?)
                }
            };
            update.blocks.push(((*type_number, *owner, *number), at));
        }
        Ok(())
    }

    /// Lists the changed ids per collection, and adds them to the open stages that they concern.
    fn changed_collections(&mut self, overlay: &Overlay) -> Vec<CollectionChange> {
        let mut by_noun: BTreeMap<usize, ChangedIds> = BTreeMap::new();
        for (type_number, _) in overlay.partitions.keys() {
            by_noun.insert(*type_number, ChangedIds::Many);
        }
        for (type_number, id) in overlay.singles.keys().chain(overlay.places.keys()) {
            let ids = by_noun.entry(*type_number).or_insert_with(|| ChangedIds::Few(Vec::new()));
            match ids {
                ChangedIds::Few(few) if few.len() < IDS_MAX => few.push(*id),
                _ => *ids = ChangedIds::Many,
            }
        }
        for open in self.stages.values_mut() {
            let state = self.shared.state.read();
            for ((_, id), disk_key) in
                overlay.places.range((open.type_number, 0)..=(open.type_number, u32::MAX))
            {
                let was_here =
                    state.directories[open.type_number].locate(*id).is_some_and(|it| it.0 == open.owner);
                if was_here || disk_key.is_some_and(|it| it.0 == open.owner) {
                    open.changed.insert(*id);
                }
            }
        }
        let name = |type_number: usize| self.shared.record_type(type_number).name;
        by_noun
            .into_iter()
            .map(|(type_number, ids)| CollectionChange { collection: name(type_number), ids })
            .collect()
    }
}

/// Returns whether several records are together too many bytes for one slice.
fn is_heavy(overlay: &Overlay) -> bool {
    let bytes: usize = overlay.singles.values().flatten().map(|it| it.len()).sum();
    bytes > SLICE_BYTES_MAX && overlay.singles.len() + overlay.blocks.len() > 1
}

fn tombstone(disk_key: &DiskKey, commit: u64) -> Vec<u8> {
    Value::tombstone(disk_key.encode(), commit).encode()
}

/// Encodes the value that records the last commit, the format, and a proof of the key file.
pub(crate) fn meta(shared: &Shared, commit: u64) -> Result<Vec<u8>> {
    let mut payload = vec![shared.format];
    payload.extend(shared.vault.seal(b"meta", b"headwater")?);
    Ok(Value::new(DiskKey::Meta.encode(), commit, payload).encode())
}
