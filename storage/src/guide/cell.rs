//! Cells: consecutive programmes of one guide channel, compressed together.
//!
//! A stored cell has the sizes of its two parts, and then both parts, compressed with LZ4: the insides of all programmes,
//! and for each programme its start since the one before, its duration, and the length of its inside, as varints.

use super::bytes::{ByteReader, put_varint};
use super::{nearest_seconds, unix_of};

/// A cell ends when its programmes have this many bytes. Larger ones take less room on the disk, and longer to read one
/// programme: a search for a phrase reads one cell per programme.
pub(super) const CELL_BYTES: usize = 4 * 1024;
/// Maximum size of a cell that is decoded. A cell may have one programme of the maximum size more than [`CELL_BYTES`].
const DECODED_BYTES_MAX: usize = 1024 * 1024;

/// A programme in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgrammeRef<'a> {
    /// Unix seconds.
    pub start: i64,
    /// Unix seconds; after the start.
    pub stop: i64,
    /// The inside of its XMLTV element.
    pub inner: &'a str,
}

/// The programmes of a cell that overlap a window of time.
#[derive(Debug)]
pub struct GuideCell {
    entries: Vec<Entry>,
    text: String,
    /// Seconds since 2000.
    from: u32,
    until: u32,
}

#[derive(Debug)]
struct Entry {
    start: u32,
    stop: u32,
    /// End of the inside in the text.
    end: usize,
}

impl GuideCell {
    /// Keeps only programmes that overlap this window, in Unix seconds.
    pub(super) fn within(mut self, from: i64, until: i64) -> Self {
        (self.from, self.until) = (nearest_seconds(from), nearest_seconds(until));
        self
    }

    /// Iterates over the programmes, by start.
    pub fn iter(&self) -> impl Iterator<Item = ProgrammeRef<'_>> {
        let mut begin = 0;
        self.entries.iter().filter_map(move |it| {
            let inner = self.text.get(std::mem::replace(&mut begin, it.end)..it.end)?;
            let is_within = it.start < self.until && it.stop > self.from;
            is_within.then(|| ProgrammeRef { start: unix_of(it.start), stop: unix_of(it.stop), inner })
        })
    }

    /// Returns the inside of the programme at a position of the whole cell.
    pub(super) fn inner_at(&self, at: usize) -> Option<&str> {
        let begin = at.checked_sub(1).map_or(Some(0), |it| Some(self.entries.get(it)?.end))?;
        self.text.get(begin..self.entries.get(at)?.end)
    }
}

/// Collects the programmes of a cell.
#[derive(Default)]
pub(super) struct CellBuilder {
    text: Vec<u8>,
    heads: Vec<u8>,
    /// Number of programmes.
    pub(super) n: u32,
    /// Start of the first programme; seconds since 2000, as all times here.
    pub(super) start: u32,
    last_start: u32,
    /// The latest end of a programme.
    pub(super) stop: u32,
}

impl CellBuilder {
    /// Adds a programme that starts after all others.
    pub(super) fn push(&mut self, start: u32, stop: u32, inner: &[u8]) {
        if self.n == 0 {
            self.start = start;
        }
        put_varint(&mut self.heads, start - self.last_start);
        put_varint(&mut self.heads, stop - start);
        put_varint(&mut self.heads, inner.len() as u32);
        self.text.extend_from_slice(inner);
        self.n += 1;
        self.last_start = start;
        self.stop = self.stop.max(stop);
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= CELL_BYTES
    }

    /// Writes the stored form into `out`, which it replaces, and starts over.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        let n_text = self.text.len() as u32;
        self.text.append(&mut self.heads);
        out.clear();
        out.extend_from_slice(&(self.text.len() as u32).to_le_bytes());
        out.extend_from_slice(&n_text.to_le_bytes());
        let size_max = lz4_flex::block::get_maximum_output_size(self.text.len());
        out.resize(8 + size_max, 0);
        // The output is as large as it can become.
        let n = lz4_flex::block::compress_into(&self.text, &mut out[8..]).unwrap_or_default();
        out.truncate(8 + n);
        self.text.clear();
        (self.n, self.start, self.last_start, self.stop) = (0, 0, 0, 0);
    }
}

/// Decodes a stored cell. The error says what is wrong.
pub(crate) fn decode(stored: &[u8]) -> Result<GuideCell, &'static str> {
    let mut input = ByteReader(stored);
    let sizes = input.u32().zip(input.u32()).ok_or("a cell is too short")?;
    let (n, n_text) = (sizes.0 as usize, sizes.1 as usize);
    if n > DECODED_BYTES_MAX || n_text > n {
        return Err("a cell has an invalid size");
    }
    let mut text = vec![0; n];
    let n_found = lz4_flex::block::decompress_into(input.0, &mut text);
    if n_found.ok() != Some(n) {
        return Err("a cell cannot be decompressed");
    }
    let heads = text.split_off(n_text);
    let text = String::from_utf8(text).map_err(|_| "a cell is not valid UTF-8")?;
    let entries = decode_heads(&heads, &text).ok_or("a cell has invalid programmes")?;
    Ok(GuideCell { entries, text, from: 0, until: u32::MAX })
}

fn decode_heads(heads: &[u8], text: &str) -> Option<Vec<Entry>> {
    let mut input = ByteReader(heads);
    // A programme takes at least three bytes, so the memory is bounded by the size of the cell.
    let mut entries = Vec::with_capacity(heads.len() / 3);
    let (mut start, mut end) = (0u32, 0usize);
    while !input.is_empty() {
        start = start.checked_add(input.varint()?)?;
        let stop = start.checked_add(input.varint()?)?;
        end = end.checked_add(input.varint()? as usize)?;
        if !text.is_char_boundary(end) {
            return None;
        }
        entries.push(Entry { start, stop, end });
    }
    (end == text.len()).then_some(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cell_returns_its_programmes(
            programmes in proptest::collection::vec((1..90_000u32, 1..90_000u32, "\\PC{0,60}"), 1..40),
            from in 0..900_000i64,
            length in 0..90_000i64,
        ) {
            let mut builder = CellBuilder::default();
            let mut all = Vec::new();
            let mut start = 0;
            for (pause, duration, inner) in &programmes {
                start += pause;
                builder.push(start, start + duration, inner.as_bytes());
                all.push(ProgrammeRef { start: unix_of(start), stop: unix_of(start + duration), inner });
            }
            prop_assert_eq!((builder.n as usize, unix_of(builder.start)), (all.len(), all[0].start));
            let mut stored = Vec::new();
            builder.finish(&mut stored);
            let cell = decode(&stored).unwrap();
            prop_assert_eq!(cell.iter().collect::<Vec<_>>(), all.clone());
            for (at, it) in all.iter().enumerate() {
                prop_assert_eq!(cell.inner_at(at), Some(it.inner));
            }
            prop_assert_eq!(cell.inner_at(all.len()), None);
            let from = unix_of(0) + from;
            all.retain(|it| it.start < from + length && it.stop > from);
            let cell = cell.within(from, from + length);
            prop_assert_eq!(cell.iter().collect::<Vec<_>>(), all);
        }

        #[test]
        fn other_bytes_are_refused_or_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(cell) = decode(&bytes) {
                prop_assert!(cell.iter().count() <= cell.entries.len());
            }
        }
    }
}
