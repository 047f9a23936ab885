//! A list of values, compressed in memory, for imports of more titles than should be in memory.

use std::io;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encoding::{self, Decoder};

/// Size of a block before compression, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// A list of values, read in the order in which they were added.
pub struct PackedList<T> {
    blocks: Vec<Vec<u8>>,
    /// Values that are not compressed yet.
    open: Vec<u8>,
    bytes: usize,
    bytes_max: usize,
    len: usize,
    value: PhantomData<fn(T) -> T>,
}

impl<T: Serialize + DeserializeOwned> PackedList<T> {
    /// Creates a list for at most this many compressed bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { blocks: Vec::new(), open: Vec::new(), bytes: 0, bytes_max, len: 0, value: PhantomData }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// The list is full.
    pub fn push(&mut self, value: &T) -> io::Result<()> {
        encoding::encode(&mut self.open, value).map_err(io::Error::other)?;
        self.len += 1;
        if self.open.len() >= BLOCK_BYTES {
            let block = lz4_flex::compress_prepend_size(&self.open);
            self.open.clear();
            self.bytes += block.len();
            self.blocks.push(block);
        }
        if self.bytes > self.bytes_max {
            let mib = self.bytes_max >> 20;
            return Err(io::Error::other(format!("the list is too large: it may take {mib} MiB of memory")));
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `visit` for every value until it breaks. Can be called repeatedly.
    ///
    /// # Errors
    /// A value that cannot be decoded is a defect.
    pub fn for_each(&self, mut visit: impl FnMut(T) -> ControlFlow<()>) -> io::Result<()> {
        for block in &self.blocks {
            let bytes = lz4_flex::decompress_size_prepended(block).map_err(io::Error::other)?;
            if read_values(&bytes, &mut visit)?.is_break() {
                return Ok(());
            }
        }
        read_values(&self.open, &mut visit).map(drop)
    }
}

fn read_values<T: DeserializeOwned>(
    bytes: &[u8],
    visit: &mut impl FnMut(T) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let mut decoder = Decoder::new(bytes);
    while !decoder.rest().is_empty() {
        let value = T::deserialize(&mut decoder).map_err(io::Error::other)?;
        if visit(value).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_returns_its_values_in_order_until_the_visitor_stops() {
        let mut list = PackedList::<(u32, String)>::new(usize::MAX);
        (0..10_000).for_each(|it| list.push(&(it, format!("value {it}"))).unwrap());
        let mut found = Vec::new();
        list.for_each(|it| {
            found.push(it.0);
            if it.0 == 8_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert!(found.iter().copied().eq(0..=8_000));
        assert_eq!(list.len(), 10_000);
    }

    #[test]
    fn a_full_list_takes_no_more() {
        let mut list = PackedList::<u64>::new(1_000);
        let first_error =
            (0..1_000_000_u64).find(|it| list.push(&it.wrapping_mul(0x9e37_79b9_7f4a_7c15)).is_err());
        assert!(first_error.is_some_and(|it| it < 20_000), "{first_error:?}");
    }
}
