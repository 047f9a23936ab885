//! Spools the entries of a playlist until all of it was read: compressed and in memory.
//!
//! A playlist is checked as a whole before anything is written, and half a million entries as values would take some
//! hundred bytes each. They are not written to a file, because addresses contain passwords.

use std::io;
use std::marker::PhantomData;
use std::sync::mpsc::sync_channel;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde::Serialize;
use serde::de::DeserializeOwned;
use storage::{append_value, take_value};

/// Size of a block before compression, in bytes. Larger blocks compress little better.
const BLOCK_BYTES: usize = 256 * 1024;

/// How much smaller typical entries are when they are compressed.
const COMPRESSION: usize = 6;

/// Maximum compressed size of a spool, in bytes. Half a million typical entries take about a tenth of it.
const BYTES_MAX: u64 = 256 << 20;
/// The share of the usable memory that a spool may take at most, as a divisor. Two imports can run at the same time.
const MEMORY_SHARE: u64 = 16;

/// A list of values, read in the order in which they were added.
pub(crate) struct Spool<T> {
    blocks: Vec<Vec<u8>>,
    /// Values that are not compressed yet.
    open: Vec<u8>,
    bytes: u64,
    bytes_max: u64,
    len: usize,
    value: PhantomData<fn(T) -> T>,
}

/// Returns the maximum compressed size of a spool on a machine with this much usable memory.
pub(crate) fn bytes_max(usable: Option<u64>) -> u64 {
    usable.map_or(BYTES_MAX, |it| (it / MEMORY_SHARE).min(BYTES_MAX))
}

impl<T: Serialize + DeserializeOwned + Send> Spool<T> {
    /// Creates a spool for at most this many compressed bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { blocks: Vec::new(), open: Vec::new(), bytes: 0, bytes_max, len: 0, value: PhantomData }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// The spool is full.
    pub(crate) fn push(&mut self, value: &T) -> io::Result<()> {
        append_value(&mut self.open, value)?;
        self.len += 1;
        if self.open.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the compressed size of all values, in bytes; about, because the last ones are not compressed yet.
    pub(crate) fn compressed_bytes(&self) -> u64 {
        self.bytes + (self.open.len() / COMPRESSION) as u64
    }

    fn close_block(&mut self) -> io::Result<()> {
        let mut block = compress_prepend_size(&self.open);
        block.shrink_to_fit();
        self.open.clear();
        self.bytes += block.len() as u64;
        if self.bytes > self.bytes_max {
            let mib = self.bytes_max >> 20;
            return Err(io::Error::other(format!(
                "the playlist is too large: an import may use {mib} MiB of memory, a share of the machine's"
            )));
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Calls `see` for every value; can be called repeatedly. A thread decodes the next values meanwhile.
    ///
    /// # Errors
    /// An error of `see` stops the iteration. A value that cannot be decoded is a defect.
    pub(crate) fn for_each<E: From<io::Error>>(
        &self,
        mut see: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        std::thread::scope(|scope| {
            let (sender, blocks) = sync_channel(1);
            let decode_all = move || {
                // A receiver that is gone does not want more.
                self.blocks.iter().try_for_each(|it| sender.send(decode(it))).unwrap_or_default();
            };
            let thread = std::thread::Builder::new().name("spool".to_owned());
            match self.blocks.is_empty() || thread.spawn_scoped(scope, decode_all).is_err() {
                true => self.blocks.iter().try_for_each(|it| decode(it)?.into_iter().try_for_each(&mut see)),
                false => blocks.iter().try_for_each(|it| it?.into_iter().try_for_each(&mut see)),
            }
        })?;
        decode_values(&self.open)?.into_iter().try_for_each(see)
    }
}

/// Returns the values of a block.
fn decode<T: DeserializeOwned>(block: &[u8]) -> io::Result<Vec<T>> {
    decode_values(&decompress_size_prepended(block).map_err(io::Error::other)?)
}

fn decode_values<T: DeserializeOwned>(mut bytes: &[u8]) -> io::Result<Vec<T>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(take_value(&mut bytes)?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order_and_repeatedly() {
        let value = |it: u32| (it, format!("http://provider.example/live/user/password/{it}.ts"));
        let mut spool = Spool::new(BYTES_MAX);
        (0..20_000).for_each(|it| spool.push(&value(it)).unwrap());
        assert!(spool.blocks.len() > 2 && !spool.open.is_empty(), "both kinds of place are in use");
        for _ in 0..2 {
            let mut expected = 0..;
            spool
                .for_each(|it: (u32, String)| {
                    assert_eq!(it, value(expected.next().unwrap()));
                    Ok::<_, io::Error>(())
                })
                .unwrap();
            assert_eq!(expected.start as usize, spool.len());
        }
    }

    /// Holds T-load.1.
    #[test]
    fn an_import_may_use_a_share_of_the_memory() {
        const GIB: u64 = 1 << 30;
        for (usable, expected) in [
            (None, 256 << 20),
            (Some(16 * GIB), 256 << 20),
            (Some(GIB), 64 << 20),
            (Some(256 << 20), 16 << 20),
        ] {
            assert_eq!(bytes_max(usable), expected, "{usable:?}");
        }
        let mut spool = Spool::new(10_000);
        let refused = (0..1_000_000_u32).find_map(|it| spool.push(&it.wrapping_mul(0x9e37_79b9)).err());
        assert!(refused.unwrap().to_string().contains("too large"));
        assert!(spool.blocks.iter().map(Vec::len).sum::<usize>() <= 10_000);
    }

    #[test]
    fn an_error_stops_the_iteration() {
        let mut spool = Spool::new(BYTES_MAX);
        spool.push(&1).unwrap();
        spool.push(&2).unwrap();
        let mut seen = Vec::new();
        let stopped = spool.for_each(|it: u32| {
            seen.push(it);
            Err(io::Error::other("enough"))
        });
        assert!(stopped.is_err());
        assert_eq!(seen, [1]);
    }
}
