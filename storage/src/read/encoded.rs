//! Reads of the encoded records of one collection, for all record types.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::engine::shared::Shared;
use crate::engine::state::{Directory, pair_of};
use crate::engine::value::Location;
use crate::error::Result;
use crate::record::{CollectionKind, Key, fingerprint};

/// Receives encoded records, until it returns false.
type Visit<'a> = &'a mut dyn FnMut(&[u8]) -> Result<bool>;

/// The committed records of one type, encoded.
pub(crate) struct EncodedCollection<'a> {
    shared: &'a Shared,
    type_number: usize,
}

impl<'a> EncodedCollection<'a> {
    pub(crate) fn new(shared: &'a Shared, type_number: usize) -> Self {
        Self { shared, type_number }
    }

    fn kind(&self) -> CollectionKind {
        self.shared.record_type(self.type_number).kind
    }

    fn directory<R>(&self, look: impl FnOnce(&Directory) -> R) -> R {
        look(&self.shared.state.read().directories[self.type_number])
    }

    pub(crate) fn len(&self) -> usize {
        self.directory(Directory::len)
    }

    /// Reads a record. Does not call `visit` if it does not exist.
    pub(crate) fn read(&self, id: u32, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // The lock is held during the read, so that no commit changes the value in between.
        let state = self.shared.state.read();
        let directory = &state.directories[self.type_number];
        match self.kind() {
            CollectionKind::Single => {
                let Some(at) = directory.singles.get(&id).copied() else { return Ok(()) };
                let bytes = self.shared.single(self.type_number, id, at.version)?;
                drop(state);
                visit(&bytes)
            }
            CollectionKind::Paged => {
                let Some((owner, number)) = directory.locate(id) else { return Ok(()) };
                let at = directory.partitions[&owner].blocks[&number];
                let block = self.shared.block(self.type_number, owner, number, at)?;
                drop(state);
                let missing = || self.shared.missing(self.type_number, id);
                let block = block.ok_or_else(missing)?;
                visit(block.get(id).ok_or_else(missing)?)
            }
        }
    }

    /// Returns the commit that last wrote the record or its block.
    pub(crate) fn stamp(&self, id: u32) -> Option<u64> {
        let kind = self.kind();
        self.directory(|it| match kind {
            CollectionKind::Single => it.singles.get(&id).map(|it| it.commit),
            CollectionKind::Paged => {
                let (owner, number) = it.locate(id)?;
                it.partitions.get(&owner)?.blocks.get(&number).map(|it| it.commit)
            }
        })
    }

    /// Returns a hash of the blocks of an owner and of the commits that wrote them.
    pub(crate) fn fingerprint_of(&self, owner: u64) -> u64 {
        self.directory(|it| {
            let blocks = it.partitions.get(&owner).into_iter().flat_map(|it| &it.blocks);
            fingerprint(blocks.map(|(number, at)| (*number, at.commit)))
        })
    }

    /// Lists the ids of the records that may have this key, in order. The caller compares the records, because different
    /// values can have the same hash.
    pub(crate) fn candidates(&self, key: &Key) -> Vec<u32> {
        let half = pair_of(key);
        let mut ids: Vec<u32> = self.directory(|it| {
            let paged = it.partitions.values().flat_map(|it| it.index.with(half));
            it.index.with(half).chain(paged).collect()
        });
        ids.sort_unstable();
        ids
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.directory(|it| {
            let paged = it.partitions.values().flat_map(|it| it.ids.iter().map(|it| it.0));
            it.singles.keys().copied().chain(paged).collect()
        });
        ids.sort_unstable();
        ids
    }

    /// Returns whether damaged blocks of such an owner were set aside, and nothing has replaced them yet.
    pub(crate) fn misses(&self, is_owner: impl Fn(u64) -> bool) -> bool {
        self.shared.state.read().misses(self.shared.record_type(self.type_number).name, is_owner)
    }

    pub(crate) fn has_id_in(&self, ids: &RangeInclusive<u32>) -> bool {
        self.directory(|it| it.partitions.values().any(|it| it.ids.has_in(ids)))
    }

    pub(crate) fn owner_of(&self, id: u32) -> Option<u64> {
        self.directory(|it| it.locate(id)).map(|it| it.0)
    }

    pub(crate) fn owners(&self) -> Vec<u64> {
        self.directory(|it| it.partitions.keys().copied().collect())
    }

    pub(crate) fn len_of(&self, owner: u64) -> usize {
        self.directory(|it| it.partitions.get(&owner).map_or(0, |it| it.ids.len()))
    }

    /// Visits all records: single ones by id, paged ones by owner and block.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self.kind() {
            CollectionKind::Single => self.ids().into_iter().try_for_each(|id| self.read(id, visit)),
            CollectionKind::Paged => self
                .owners()
                .into_iter()
                .try_for_each(|owner| self.while_of(owner, &mut |bytes| visit(bytes).map(|()| true))),
        }
    }

    /// Visits the records of one owner, in the order of blocks.
    pub(crate) fn while_of(&self, owner: u64, visit: Visit<'_>) -> Result<()> {
        let _scan = self.shared.begin_scan();
        let blocks =
            self.directory(|it| it.partitions.get(&owner).map(|it| it.blocks.clone()).unwrap_or_default());
        self.while_in(owner, blocks, None, visit)
    }

    /// Does the same for the records with some ids. Blocks without any of them are not read.
    pub(crate) fn while_of_ids(
        &self,
        owner: u64,
        is_wanted: &dyn Fn(u32) -> bool,
        visit: Visit<'_>,
    ) -> Result<()> {
        let _scan = self.shared.begin_scan();
        let blocks = self.directory(|it| {
            let partition = it.partitions.get(&owner)?;
            let wanted = partition.ids.iter().filter(|(id, _)| is_wanted(*id));
            Some(wanted.filter_map(|(_, block)| Some((block, *partition.blocks.get(&block)?))).collect())
        });
        self.while_in(owner, blocks.unwrap_or_default(), Some(is_wanted), visit)
    }

    fn while_in(
        &self,
        owner: u64,
        blocks: BTreeMap<u32, Location>,
        is_wanted: Option<&dyn Fn(u32) -> bool>,
        visit: Visit<'_>,
    ) -> Result<()> {
        for (number, at) in blocks {
            // A missing block was emptied and removed.
            let Some(block) = self.shared.block_uncached(self.type_number, owner, number, at)? else {
                continue;
            };
            for (id, bytes) in &block.records {
                if is_wanted.is_none_or(|is_wanted| is_wanted(*id)) && !visit(bytes)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
