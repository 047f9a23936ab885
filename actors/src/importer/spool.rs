//! Spools the entries of a playlist until all of it was read: compressed and in memory.
//!
//! A playlist is checked as a whole before anything is written, and half a million entries as values would take some
//! hundred bytes each. They are not written to a file, because addresses contain passwords.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Size of a block before compression, in bytes. Larger blocks compress little better.
const BLOCK_BYTES: usize = 256 * 1024;

/// Maximum compressed size of a spool, in bytes. Half a million typical entries take about a twentieth of it.
const BYTES_MAX: usize = 256 << 20;

/// A list of values, read in the order in which they were added.
pub(crate) struct Spool<T> {
    blocks: Vec<Vec<u8>>,
    /// Values that are not compressed yet.
    open: Vec<u8>,
    bytes: usize,
    len: usize,
    value: std::marker::PhantomData<fn(T) -> T>,
}

impl<T> Default for Spool<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), open: Vec::new(), bytes: 0, len: 0, value: std::marker::PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned> Spool<T> {
    /// Adds a value.
    ///
    /// # Errors
    /// The spool is full.
    pub(crate) fn push(&mut self, value: &T) -> io::Result<()> {
        serde_json::to_writer(&mut self.open, value)?;
        self.open.push(b'\n');
        self.len += 1;
        if self.open.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn close_block(&mut self) -> io::Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(BLOCK_BYTES / 8), Compression::fast());
        encoder.write_all(&self.open)?;
        let mut block = encoder.finish()?;
        block.shrink_to_fit();
        self.open.clear();
        self.bytes += block.len();
        if self.bytes > BYTES_MAX {
            return Err(io::Error::other("the playlist is too large for the memory limit of an import"));
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Calls `see` for every value; can be called repeatedly.
    ///
    /// # Errors
    /// An error of `see` stops the iteration. A value that cannot be decoded is a defect.
    pub(crate) fn for_each<E: From<io::Error>>(
        &self,
        mut see: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        for block in &self.blocks {
            let mut bytes = Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 4);
            DeflateDecoder::new(&block[..]).read_to_end(&mut bytes)?;
            read_values(&bytes, &mut see)?;
        }
        read_values(&self.open, &mut see)
    }
}

fn read_values<T: DeserializeOwned, E: From<io::Error>>(
    bytes: &[u8],
    see: &mut impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    for value in serde_json::Deserializer::from_slice(bytes).into_iter() {
        see(value.map_err(io::Error::from)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order_and_repeatedly() {
        let value = |it: u32| (it, format!("http://provider.example/live/user/password/{it}.ts"));
        let mut spool = Spool::default();
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

    #[test]
    fn an_error_stops_the_iteration() {
        let mut spool = Spool::default();
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
