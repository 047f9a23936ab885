//! The tables of a guide file, which are in memory while it is used, and the footer that leads to them.

use serde::{Deserialize, Serialize};

use super::bytes::ByteReader;

/// The first bytes of a guide file, and of its footer. The last one is the version of the format.
pub(super) const MAGIC: [u8; 8] = *b"HWGUIDE\x01";
/// Maximum number of programmes of a file.
pub const PROGRAMMES_MAX: u32 = 1 << 25;
/// Programmes in a block of times.
pub(super) const TIMES_PER_BLOCK: u32 = 8192;
/// Bytes of a programme in a block of times: start and stop.
pub(super) const TIME_BYTES: usize = 8;
/// Maximum size of a block, for reading.
const BLOCK_BYTES_MAX: u32 = 2 * 1024 * 1024;
/// Maximum size of the tables, for reading: more than [`PROGRAMMES_MAX`] programmes in a cell each need.
const TABLES_BYTES_MAX: u64 = 1 << 30;

/// Places of all blocks in a file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct GuideTables {
    /// Sorted by guide channel and start.
    pub(super) cells: Vec<CellEntry>,
    /// Sorted by id.
    pub(super) channels: Vec<ChannelEntry>,
    /// Offset of each block of times.
    pub(super) times: Vec<u64>,
    pub(super) words: Vec<WordBlock>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct CellEntry {
    pub(super) offset: u64,
    pub(super) n_bytes: u32,
    /// Number of its first programme; programmes are counted in the order of the file.
    pub(super) first: u32,
    /// Start of its first programme, and latest end of one; seconds since 2000.
    pub(super) start: u32,
    pub(super) stop: u32,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ChannelEntry {
    pub(super) id: u32,
    /// Its first cell.
    pub(super) cell: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WordBlock {
    pub(super) offset: u64,
    pub(super) n_bytes: u32,
    /// The first word in the block, after the number of its field. The block before may end with the same word.
    pub(super) first: Box<[u8]>,
}

/// The end of a guide file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) source: u32,
    pub(super) n_programmes: u32,
    pub(super) generation: u64,
    pub(super) tables_offset: u64,
    pub(super) tables_bytes: u64,
}

impl Footer {
    pub(super) const BYTES: usize = 44;

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.source.to_le_bytes());
        out.extend_from_slice(&self.n_programmes.to_le_bytes());
        for number in [self.generation, self.tables_offset, self.tables_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the footer of a file with this size.
    pub(super) fn decode(bytes: &[u8], n_bytes: u64) -> Option<Self> {
        let mut input = ByteReader(bytes);
        let magic = input.bytes(MAGIC.len())?;
        let footer = Self {
            source: input.u32()?,
            n_programmes: input.u32()?,
            generation: input.u64()?,
            tables_offset: input.u64()?,
            tables_bytes: input.u64()?,
        };
        let checked = bytes.len().checked_sub(4)?;
        let is_valid = input.u32()? == crc32fast::hash(&bytes[..checked])
            && input.is_empty()
            && magic == MAGIC
            && footer.n_programmes <= PROGRAMMES_MAX
            && footer.tables_bytes <= TABLES_BYTES_MAX
            && footer.tables_offset.checked_add(footer.tables_bytes)?.checked_add(4 + Self::BYTES as u64)?
                == n_bytes;
        is_valid.then_some(footer)
    }
}

impl GuideTables {
    pub(super) fn encode(&self) -> Vec<u8> {
        // Encoding numbers and bytes into memory does not fail.
        rmp_serde::to_vec(self).unwrap_or_default()
    }

    /// Decodes the tables of a file with this many programmes, whose blocks end before `end`.
    pub(crate) fn decode(bytes: &[u8], n_programmes: u32, end: u64) -> Option<Self> {
        let tables: Self = rmp_serde::from_slice(bytes).ok()?;
        tables.is_valid(n_programmes, end).then_some(tables)
    }

    /// Returns whether all places are in the file and in order, so that readers need not check them.
    fn is_valid(&self, n_programmes: u32, end: u64) -> bool {
        let is_in_file = |offset: u64, n_bytes: u32| {
            n_bytes <= BLOCK_BYTES_MAX
                && offset >= MAGIC.len() as u64
                && offset.checked_add(u64::from(n_bytes) + 4).is_some_and(|it| it <= end)
        };
        let n_cells = self.cells.len();
        let are_cells_valid =
            self.cells.iter().all(|it| is_in_file(it.offset, it.n_bytes) && it.first < n_programmes)
                && self.cells.is_sorted_by(|a, b| a.first < b.first)
                && self.cells.first().is_none_or(|it| it.first == 0)
                && self.cells.is_empty() == (n_programmes == 0);
        let are_channels_valid = self.channels.iter().all(|it| (it.cell as usize) < n_cells)
            && self.channels.is_sorted_by(|a, b| a.id < b.id && a.cell < b.cell)
            && self.channels.first().is_none_or(|it| it.cell == 0)
            && self.channels.is_empty() == (n_cells == 0);
        let are_times_valid = self.times.len() == n_programmes.div_ceil(TIMES_PER_BLOCK) as usize
            && (0..).zip(&self.times).all(|(at, offset)| is_in_file(*offset, times_bytes(at, n_programmes)));
        let are_words_valid = self.words.iter().all(|it| is_in_file(it.offset, it.n_bytes))
            && self.words.is_sorted_by(|a, b| a.first <= b.first);
        are_cells_valid && are_channels_valid && are_times_valid && are_words_valid
    }
}

/// Returns the size of a block of times.
pub(super) fn times_bytes(at: u32, n_programmes: u32) -> u32 {
    let n = n_programmes.saturating_sub(at.saturating_mul(TIMES_PER_BLOCK)).min(TIMES_PER_BLOCK);
    n * TIME_BYTES as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> GuideTables {
        let cell = |offset, first| CellEntry { offset, n_bytes: 10, first, start: 0, stop: 9 };
        GuideTables {
            cells: vec![cell(8, 0), cell(22, 3), cell(36, 4)],
            channels: vec![ChannelEntry { id: 1, cell: 0 }, ChannelEntry { id: 7, cell: 2 }],
            times: vec![50],
            words: vec![WordBlock { offset: 94, n_bytes: 2, first: b"\x00news".as_slice().into() }],
        }
    }

    #[test]
    fn tables_are_decoded_as_they_were_encoded() {
        let bytes = tables().encode();
        let found = GuideTables::decode(&bytes, 5, 100).unwrap();
        assert_eq!(format!("{found:?}"), format!("{:?}", tables()));
        let footer =
            Footer { source: 3, n_programmes: 5, generation: 9, tables_offset: 100, tables_bytes: 60 };
        let bytes = footer.encode();
        assert_eq!(bytes.len(), Footer::BYTES);
        let size = 160 + 4 + Footer::BYTES as u64;
        assert_eq!(Footer::decode(&bytes, size), Some(footer));
        assert_eq!(Footer::decode(&bytes, size + 1), None);
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(Footer::decode(&wrong, size), None, "byte {at}");
        }
    }

    #[test]
    fn tables_that_lead_out_of_the_file_or_are_not_in_order_are_refused() {
        assert!(tables().is_valid(5, 100));
        let is_valid = |change: &dyn Fn(&mut GuideTables)| {
            let mut changed = tables();
            change(&mut changed);
            changed.is_valid(5, 100)
        };
        assert!(!is_valid(&|it| it.cells[2].offset = u64::MAX));
        assert!(!is_valid(&|it| it.cells[2].n_bytes = 90));
        assert!(!is_valid(&|it| it.cells[0].first = 1));
        assert!(!is_valid(&|it| it.cells[1].first = 4));
        assert!(!is_valid(&|it| it.cells[2].first = 5));
        assert!(!is_valid(&|it| it.cells.clear()));
        assert!(!is_valid(&|it| it.channels[1].cell = 3));
        assert!(!is_valid(&|it| it.channels[1].id = 1));
        assert!(!is_valid(&|it| it.channels[0].cell = 1));
        assert!(!is_valid(&|it| it.channels.clear()));
        assert!(!is_valid(&|it| it.times.clear()));
        assert!(!is_valid(&|it| it.times[0] = 0));
        assert!(!is_valid(&|it| it.words[0].offset = 95));
        assert!(!tables().is_valid(4, 100) && !tables().is_valid(5, 99));
    }
}
