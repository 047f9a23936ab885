//! The chunk at which a tail starts to read, and the packets that are sent before that chunk.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::chunk::ChunkHead;
use crate::ts::packet::{PAT_PID, PacketBytes, discontinuity_packet};
use crate::ts::tables::Tables;

/// The rule that selects the first chunk of a tail. A tail never starts at filler or before the newest filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinPoint {
    /// The newest random-access point that is at least `behind` old, otherwise the oldest one. Without
    /// random-access points, the oldest chunk.
    Live {
        /// Distance to the newest chunk, so that a player can fill its buffer.
        behind: Duration,
    },
    /// The chunk with this number, otherwise the oldest chunk after it. A tail waits for a chunk that is not
    /// written yet.
    At(u64),
    /// The oldest random-access point, otherwise the oldest chunk.
    Oldest,
}

/// The random-access points of a ring at which a tail can start, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RandomAccessPoints(VecDeque<(u64, Instant)>);

impl RandomAccessPoints {
    /// Adds the newest random-access point.
    pub(crate) fn push(&mut self, sequence: u64, arrived: Instant) {
        self.0.push_back((sequence, arrived));
    }

    /// Removes the points before `sequence`, which have left the ring.
    pub(crate) fn remove_before(&mut self, sequence: u64) {
        while self.0.front().is_some_and(|it| it.0 < sequence) {
            self.0.pop_front();
        }
    }

    /// Removes all points, because no tail starts before filler.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn oldest(&self) -> Option<u64> {
        self.0.front().map(|it| it.0)
    }

    pub(crate) fn newest(&self) -> Option<u64> {
        self.0.back().map(|it| it.0)
    }

    /// Returns the newest point that is at least `behind` old, otherwise the oldest.
    pub(crate) fn live(&self, behind: Duration, now: Instant) -> Option<u64> {
        let n_old = self.0.partition_point(|it| now.saturating_duration_since(it.1) >= behind);
        self.0.get(n_old.saturating_sub(1)).map(|it| it.0)
    }
}

/// Returns the PAT and PMT packets for a tail that starts with the chunk of this head.
///
/// Their continuity counters end just before the chunk, so that the tables in the stream continue them. The
/// result is empty while no tables are known; then they follow in the stream.
pub(crate) fn preamble(head: &ChunkHead) -> Bytes {
    concat(&tables_before(head).into_iter().flatten().collect::<Vec<_>>())
}

/// Returns the preamble of a tail that was overrun: one packet per PID declares the discontinuity before any
/// other packet on that PID. This includes PIDs that no table of the programme announces, such as those of service
/// tables.
pub(crate) fn preamble_after_overrun(head: &ChunkHead) -> Bytes {
    let mut packets = Vec::new();
    for table in tables_before(head) {
        if let Some(first) = table.first() {
            let view = crate::ts::packet::Packet::new(first);
            packets.push(discontinuity_packet(view.pid(), view.cc().wrapping_sub(1)));
        }
        packets.extend(table);
    }
    let tables = head.tables.as_deref();
    let is_done = |pid: u16| tables.is_some_and(|it| pid == PAT_PID || pid == it.pmt_pid);
    // A stream that was announced and has not begun has no counter yet.
    let announced = tables.into_iter().flat_map(Tables::pids).filter(|pid| head.counter(*pid).is_none());
    let others = head.counters.iter().copied().chain(announced.map(|pid| (pid, 0)));
    packets.extend(others.filter(|it| !is_done(it.0)).map(|(pid, cc)| discontinuity_packet(pid, cc)));
    concat(&packets)
}

/// Returns the packets of PAT and PMT. Each table ends with the last continuity counter before the chunk.
fn tables_before(head: &ChunkHead) -> [Vec<PacketBytes>; 2] {
    let Some(tables) = &head.tables else { return [Vec::new(), Vec::new()] };
    let ending = |packets: &dyn Fn(u8) -> Vec<PacketBytes>, pid| {
        let last = head.counter(pid).unwrap_or(0);
        let n_packets = packets(0).len() as u8;
        packets(last.wrapping_sub(n_packets).wrapping_add(1))
    };
    [
        ending(&|cc| tables.pat.packets(cc), PAT_PID),
        ending(&|cc| tables.pmt.packets(tables.pmt_pid, cc), tables.pmt_pid),
    ]
}

fn concat(packets: &[PacketBytes]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(size_of_val(packets));
    packets.iter().for_each(|it| bytes.extend_from_slice(it));
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds points at these seconds and selects one at second 10.
    #[track_caller]
    fn check(points: &[u64], behind: u64, expected: Option<u64>) {
        let start = Instant::now();
        let mut all = RandomAccessPoints::default();
        for second in points {
            all.push(*second, start + Duration::from_secs(*second));
        }
        let now = start + Duration::from_secs(10);
        assert_eq!(all.live(Duration::from_secs(behind), now), expected, "{points:?}, {behind} s behind");
    }

    #[test]
    fn a_live_tail_starts_at_the_newest_point_that_is_old_enough_or_at_the_oldest() {
        check(&[], 2, None);
        check(&[9], 2, Some(9));
        check(&[8, 9], 2, Some(8));
        check(&[2, 4, 6, 8, 9], 2, Some(8));
        check(&[2, 4, 6, 9], 2, Some(6));
        check(&[9, 10], 2, Some(9));
        check(&[2, 4, 6, 10], 0, Some(10));
        check(&[2, 4], 30, Some(2));
    }
}
