//! The packets of a file at which playing can begin, and the index that keeps them.
//!
//! An index is a head, which says of which file it is, and an entry for each point. A damaged one is read up to the first
//! entry that is not possible.

use super::clock::{PCR_HZ, PCR_MODULUS};
use super::packet::{NULL_PID, PACKET, PAT_PID, Packet, packets};
use super::random_access::RandomAccess;
use super::table_reader::TableReader;

/// Maximum number of entries of an index: those of the longest recording.
pub const POINTS_MAX: usize = 400_000;
/// Maximum size of an index, in bytes.
pub const INDEX_BYTES_MAX: usize = INDEX_HEAD_BYTES + POINTS_MAX * INDEX_ENTRY_BYTES;
/// Size of the head of an index, in bytes.
pub const INDEX_HEAD_BYTES: usize = 16;
/// Size of an entry: the number of the packet with a flag, and the milliseconds.
pub const INDEX_ENTRY_BYTES: usize = 16;
/// First bytes of an index, followed by the number of the file.
const MAGIC: [u8; 8] = *b"hwindex1";
/// Set in the number of a packet that is followed by the tables.
const HAS_TABLES: u64 = 1 << 63;
/// A point with a later time is not possible: 30 days, in milliseconds.
const TIME_MAX: u64 = 30 * 24 * 60 * 60 * 1000;
/// Minimum time between two points, in ticks of the clock.
const SPACING: u64 = PCR_HZ / 2;
const TICKS_PER_MS: u64 = PCR_HZ / 1000;

/// A packet at which playing can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// Position in the file, in bytes: a multiple of the size of a packet.
    pub offset: u64,
    /// Time since the start of the file, in milliseconds.
    pub time: u64,
    /// Whether the tables of the programme begin here. Otherwise a player needs those of the start of the file first.
    pub has_tables: bool,
}

/// Finds points in the packets of a file, one after the other.
#[derive(Debug, Default)]
pub struct PointFinder {
    tables: TableReader,
    access: Option<RandomAccess>,
    /// The last value of the clock.
    clock: Option<u64>,
    /// Time since the start of the file, in ticks of the clock.
    ticks: u64,
    /// Position of the next packet.
    offset: u64,
    /// Position of the tables, if no packet of the picture has come since.
    tables_at: Option<u64>,
    has_map: bool,
    /// Position of the last point, and its time in ticks of the clock.
    last: Option<(u64, u64)>,
}

impl PointFinder {
    /// Continues after a point. `head` is the start of the file, which has the tables.
    pub fn after(point: Option<AccessPoint>, head: &[u8]) -> Self {
        let mut finder = Self::default();
        if let Some(point) = point {
            for packet in packets(head) {
                finder.tables.packet(Packet::new(packet));
            }
            finder.access = finder.tables.tables().and_then(RandomAccess::new);
            finder.offset = point.offset;
            finder.ticks = point.time.saturating_mul(TICKS_PER_MS);
            finder.last = Some((point.offset, finder.ticks));
        }
        finder
    }

    /// Returns the time since the start of the file, in milliseconds.
    pub fn milliseconds(&self) -> u64 {
        self.ticks / TICKS_PER_MS
    }

    /// Returns the position of the next packet in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next packet of the file. Returns a point that ends with it.
    pub fn packet(&mut self, packet: Packet<'_>) -> Option<AccessPoint> {
        let at = self.offset;
        self.offset += PACKET as u64;
        if !packet.is_valid() {
            return None;
        }
        if self.tables.packet(packet) {
            self.access = self.tables.tables().and_then(RandomAccess::new);
        }
        let pid = packet.pid();
        if pid == PAT_PID {
            if packet.pusi() {
                (self.tables_at, self.has_map) = (Some(at), false);
            }
            return None;
        }
        let tables = self.tables.tables()?;
        if pid == tables.pmt_pid {
            self.has_map = true;
            return None;
        }
        let clock_pid = tables.pmt.pcr_pid;
        if let Some(pcr) = packet.pcr().filter(|_| pid == clock_pid || clock_pid == NULL_PID) {
            let step = self.clock.map_or(0, |last| (pcr + PCR_MODULUS - last) % PCR_MODULUS);
            // Clocks of recordings never go back; a step of half a period would be one.
            self.ticks = self.ticks.saturating_add(if step < PCR_MODULUS / 2 { step } else { 0 });
            self.clock = Some(pcr);
        }
        let access = self.access.filter(|it| it.pid() == pid)?;
        let is_after = |at: u64| self.last.is_none_or(|last| last.0 < at);
        let tables_at = self.tables_at.take().filter(|it| self.has_map && is_after(*it));
        let is_spaced = self.last.is_none_or(|last| self.ticks.saturating_sub(last.1) >= SPACING);
        if !is_spaced || !access.is_start(packet) {
            return None;
        }
        let offset = tables_at.unwrap_or(at);
        self.last = Some((offset, self.ticks));
        Some(AccessPoint { offset, time: self.milliseconds(), has_tables: tables_at.is_some() })
    }
}

/// Returns the head of the index of the file with this number.
pub fn index_head(file: u64) -> [u8; INDEX_HEAD_BYTES] {
    let mut head = [0; INDEX_HEAD_BYTES];
    head[..MAGIC.len()].copy_from_slice(&MAGIC);
    head[MAGIC.len()..].copy_from_slice(&file.to_le_bytes());
    head
}

/// Adds the entry of a point.
pub fn push_entry(entries: &mut Vec<u8>, point: AccessPoint) {
    let number = point.offset / PACKET as u64;
    let number = if point.has_tables { number | HAS_TABLES } else { number };
    entries.extend_from_slice(&number.to_le_bytes());
    entries.extend_from_slice(&point.time.to_le_bytes());
}

/// Reads the index of the file with this number and length, up to the first entry that is not possible. The index of another
/// file has no points.
pub fn read_index(bytes: &[u8], file: u64, length: u64) -> Vec<AccessPoint> {
    let Some(entries) = bytes.strip_prefix(&index_head(file)) else { return Vec::new() };
    let mut points: Vec<AccessPoint> = Vec::new();
    for entry in entries.as_chunks::<INDEX_ENTRY_BYTES>().0.iter().take(POINTS_MAX) {
        let (number, time) = entry.split_at(INDEX_ENTRY_BYTES / 2);
        let value = |it: &[u8]| it.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        let (number, time) = (value(number), value(time));
        let offset = (number & !HAS_TABLES).saturating_mul(PACKET as u64);
        let is_next = points.last().is_none_or(|it| it.offset < offset && it.time <= time);
        if !is_next || offset >= length || time > TIME_MAX {
            break;
        }
        points.push(AccessPoint { offset, time, has_tables: number & HAS_TABLES != 0 });
    }
    points
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_index_is_read_up_to_the_first_entry_that_is_not_possible() {
        let at = |packet: u64, time: u64| AccessPoint {
            offset: packet * 188,
            time,
            has_tables: packet.is_multiple_of(2),
        };
        let good = [at(0, 0), at(7, 600), at(8, 600), at(90, 1_300)];
        let read = |points: &[AccessPoint]| {
            let mut bytes = index_head(5).to_vec();
            points.iter().for_each(|it| push_entry(&mut bytes, *it));
            // The last entry is torn.
            push_entry(&mut bytes, at(99, 2_000));
            bytes.truncate(bytes.len() - 1);
            assert_eq!(read_index(&bytes, 6, 100 * 188), []);
            read_index(&bytes, 5, 100 * 188)
        };
        assert_eq!(read(&good), good);
        let has_tables = false;
        let overflow = AccessPoint { offset: u64::MAX - 1, time: 900, has_tables };
        let late = AccessPoint { offset: 9 * 188, time: u64::MAX, has_tables };
        for bad in [at(6, 900), at(8, 900), at(9, 500), at(100, 900), overflow, late] {
            let points: Vec<_> = good[..3].iter().copied().chain([bad, at(91, 1_400)]).collect();
            assert_eq!(read(&points), good[..3], "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_points_in_order(
            entries in proptest::collection::vec(any::<u8>(), 0..400),
            has_head in any::<bool>(),
            length in 0_u64..1 << 40,
        ) {
            let mut bytes = if has_head { index_head(1).to_vec() } else { Vec::new() };
            bytes.extend_from_slice(&entries);
            let points = read_index(&bytes, 1, length);
            prop_assert!(points.iter().all(|it| it.offset < length && it.offset.is_multiple_of(PACKET as u64)));
            prop_assert!(points.is_sorted_by(|a, b| a.offset < b.offset && a.time <= b.time));
        }
    }
}
