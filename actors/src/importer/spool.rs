//! What a list says, kept until all of it was read: compressed and in memory.
//!
//! A list is looked at as a whole before anything of it is taken, and half a million entries as values would take some
//! hundred bytes each. They are not put into a file, because addresses carry passwords.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of a chunk before it is compressed. Larger ones compress little better.
const CHUNK_BYTES: usize = 256 * 1024;

/// Compressed bytes of one spool. Half a million entries as providers write them take about a twentieth of it.
const BYTES_MAX: usize = 256 << 20;

/// Values, read in the order in which they came.
pub(crate) struct Spool<T> {
    chunks: Vec<Vec<u8>>,
    /// What is not compressed yet.
    open: Vec<u8>,
    bytes: usize,
    len: usize,
    value: std::marker::PhantomData<fn(T) -> T>,
}

impl<T> Default for Spool<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), open: Vec::new(), bytes: 0, len: 0, value: std::marker::PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned> Spool<T> {
    /// Adds a value.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) fn push(&mut self, value: &T) -> io::Result<()> {
        serde_json::to_writer(&mut self.open, value)?;
        self.open.push(b'\n');
        self.len += 1;
        if self.open.len() >= CHUNK_BYTES { self.close_chunk() } else { Ok(()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn close_chunk(&mut self) -> io::Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(CHUNK_BYTES / 8), Compression::fast());
        encoder.write_all(&self.open)?;
        let mut chunk = encoder.finish()?;
        chunk.shrink_to_fit();
        self.open.clear();
        self.bytes += chunk.len();
        if self.bytes > BYTES_MAX {
            return Err(io::Error::other("there is no room for a list of this size"));
        }
        self.chunks.push(chunk);
        Ok(())
    }

    /// Goes through all values, as often as it is wanted.
    ///
    /// # Errors
    /// What `see` says ends it. That a value does not read would be an error of ours.
    pub(crate) fn for_each<E: From<io::Error>>(
        &self,
        mut see: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        for chunk in &self.chunks {
            let mut bytes = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
            DeflateDecoder::new(&chunk[..]).read_to_end(&mut bytes)?;
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
    fn what_goes_in_comes_out_in_order_and_again() {
        let value = |it: u32| (it, format!("http://provider.example/live/user/password/{it}.ts"));
        let mut spool = Spool::default();
        (0..20_000).for_each(|it| spool.push(&value(it)).unwrap());
        assert!(spool.chunks.len() > 2 && !spool.open.is_empty(), "both kinds of place are in use");
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
    fn whoever_looks_through_may_stop() {
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
