//! What readers and the writer have in common.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::broadcast;

use crate::changes::Change;
use crate::engine::block::Block;
use crate::engine::disk::Disk;
use crate::engine::state::{At, State};
use crate::engine::value::{Place, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::record::{Noun, Schema};

/// What inflated blocks may take of the memory.
const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) struct Shared {
    pub(crate) folder: PathBuf,
    pub(crate) schema: Schema,
    /// Of the store as a whole, as it is written.
    pub(crate) format: u8,
    /// Written by the writer alone, together with the slice that makes a commit current.
    pub(crate) state: RwLock<State>,
    /// Changes when the store is rewritten.
    pub(crate) disk: RwLock<Arc<Disk>>,
    pub(crate) vault: Vault,
    pub(crate) cache: Mutex<Cache>,
    pub(crate) changes: broadcast::Sender<Arc<Change>>,
    /// Readers that go through a whole collection. While there is one, nothing replaced is swept.
    pub(crate) n_passes: AtomicUsize,
    /// Set when a write failed in the middle.
    pub(crate) stopped: Mutex<Option<String>>,
    /// Held as long as the store is open.
    pub(crate) _lock: File,
}

impl Shared {
    pub(crate) fn noun(&self, number: usize) -> &Noun {
        &self.schema.nouns[number]
    }

    pub(crate) fn disk(&self) -> Arc<Disk> {
        self.disk.read().clone()
    }

    pub(crate) fn single_place(&self, noun: usize, id: u32, version: u64) -> Place {
        Place::Single { collection: self.noun(noun).name.to_owned(), id, version }
    }

    pub(crate) fn block_place(&self, noun: usize, owner: u64, block: u32, version: u64) -> Place {
        Place::Block { collection: self.noun(noun).name.to_owned(), owner, block, version }
    }

    /// The bytes of a value as they go to the disk, encrypted where the noun wants it.
    pub(crate) fn seal(&self, noun: usize, place: &Place, commit: u64, payload: &[u8]) -> Result<Vec<u8>> {
        let payload = match self.noun(noun).is_sealed {
            true => self.vault.seal_bytes(&place.stem(), payload)?,
            false => payload.to_vec(),
        };
        Ok(Value { key: place.key(), commit, is_gone: false, payload }.encode())
    }

    pub(crate) fn unseal(&self, noun: usize, place: &Place, value: &Value) -> Result<Vec<u8>> {
        match self.noun(noun).is_sealed {
            true => self.vault.unseal_bytes(&place.stem(), &value.payload),
            false => Ok(value.payload.clone()),
        }
    }

    /// `None` if nothing lies there.
    fn read(&self, noun: usize, place: &Place) -> Result<Option<Vec<u8>>> {
        let key = place.key();
        let Some(bytes) = self.disk().get(&key)? else { return Ok(None) };
        let value = Value::of_key(&key, &bytes)?;
        self.unseal(noun, place, &value).map(Some)
    }

    /// The encoded single record of this version.
    pub(crate) fn single(&self, noun: usize, id: u32, version: u64) -> Result<Vec<u8>> {
        let place = self.single_place(noun, id, version);
        self.read(noun, &place)?.ok_or_else(|| self.missing(noun, id))
    }

    /// `None` if the block was replaced and swept in the meantime.
    pub(crate) fn block(&self, noun: usize, owner: u64, block: u32, at: At) -> Result<Option<Arc<Block>>> {
        let key = (noun, owner, block, at.commit);
        if let Some(found) = self.cache.lock().get(&key) {
            return Ok(Some(found));
        }
        let place = self.block_place(noun, owner, block, at.version);
        let Some(payload) = self.read(noun, &place)? else { return Ok(None) };
        let found = Arc::new(Block::decode(&payload)?);
        self.cache.lock().put(key, Arc::clone(&found));
        Ok(Some(found))
    }

    /// The same for who reads everything once: what the cache has stays there.
    pub(crate) fn block_uncached(
        &self,
        noun: usize,
        owner: u64,
        block: u32,
        at: At,
    ) -> Result<Option<Block>> {
        let place = self.block_place(noun, owner, block, at.version);
        self.read(noun, &place)?.map(|payload| Block::decode(&payload)).transpose()
    }

    pub(crate) fn missing(&self, noun: usize, id: u32) -> Error {
        Error::DamagedRecord(format!("{} {id} is missing", self.noun(noun).name))
    }

    /// Keeps replaced values where they are until the pass is dropped.
    pub(crate) fn pass(&self) -> Pass<'_> {
        self.n_passes.fetch_add(1, Ordering::SeqCst);
        Pass(self)
    }
}

/// A reader on its way through a whole collection.
pub(crate) struct Pass<'a>(&'a Shared);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.n_passes.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Noun, owner, block, and the commit that wrote it: a block that is written again is another one.
type CacheKey = (usize, u64, u32, u64);

/// Inflated blocks, the oldest leaves first.
#[derive(Default)]
pub(crate) struct Cache {
    blocks: HashMap<CacheKey, Arc<Block>>,
    order: VecDeque<(CacheKey, usize)>,
    bytes: usize,
}

impl Cache {
    fn get(&self, key: &CacheKey) -> Option<Arc<Block>> {
        self.blocks.get(key).cloned()
    }

    fn put(&mut self, key: CacheKey, block: Arc<Block>) {
        // What records and their vectors take beside the bytes themselves.
        let bytes = block.bytes() + 24 * block.records.len();
        if self.blocks.insert(key, block).is_none() {
            self.order.push_back((key, bytes));
            self.bytes += bytes;
        }
        while self.bytes > CACHE_BYTES_MAX {
            let Some((oldest, bytes)) = self.order.pop_front() else { break };
            self.blocks.remove(&oldest);
            self.bytes -= bytes;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
