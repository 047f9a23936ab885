//! Where a tail begins, and the packets made for it there.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::chunk::ChunkHead;
use crate::ts::packet::{PAT_PID, PacketBytes, discontinuity_packet};

/// Where a tail begins. Filler is never where one begins, and nobody begins before the newest filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinPoint {
    /// At the newest random-access point that is at least this old, else at the oldest there is; where there is
    /// none at all, at the oldest chunk.
    Live {
        /// How far behind the newest chunk to begin, so that a player has something to buffer.
        behind: Duration,
    },
    /// At the chunk with this number, else at the oldest after it; waits for one that is still to come.
    At(u64),
    /// At the oldest random-access point, else at the oldest chunk.
    Oldest,
}

/// The random-access points of a ring at which a tail may begin, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Points(VecDeque<(u64, Instant)>);

impl Points {
    /// A random-access point came.
    pub(crate) fn push(&mut self, sequence: u64, arrived: Instant) {
        self.0.push_back((sequence, arrived));
    }

    /// Everything before `sequence` has left the ring.
    pub(crate) fn forget_before(&mut self, sequence: u64) {
        while self.0.front().is_some_and(|it| it.0 < sequence) {
            self.0.pop_front();
        }
    }

    /// Filler came: nobody begins before it.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn oldest(&self) -> Option<u64> {
        self.0.front().map(|it| it.0)
    }

    pub(crate) fn newest(&self) -> Option<u64> {
        self.0.back().map(|it| it.0)
    }

    /// The newest that is at least `behind` old, else the oldest.
    pub(crate) fn live(&self, behind: Duration, now: Instant) -> Option<u64> {
        let n_old = self.0.partition_point(|it| now.saturating_duration_since(it.1) >= behind);
        self.0.get(n_old.saturating_sub(1)).map(|it| it.0)
    }
}

/// PAT and PMT for a tail that begins with the chunk of this head. Their counters are the last before it, so
/// that the tables that follow continue them. Empty where no tables are known yet: they are in what follows.
pub(crate) fn preamble(head: &ChunkHead) -> Bytes {
    joined(&tables_before(head).into_iter().flatten().collect::<Vec<_>>())
}

/// The same for a tail that lost its place: one packet per PID declares the break before anything else is sent
/// on that PID.
pub(crate) fn preamble_after_overrun(head: &ChunkHead) -> Bytes {
    let Some(tables) = &head.tables else { return Bytes::new() };
    let mut packets = Vec::new();
    for table in tables_before(head) {
        if let Some(first) = table.first() {
            let view = crate::ts::packet::Packet::new(first);
            packets.push(discontinuity_packet(view.pid(), view.cc().wrapping_sub(1)));
        }
        packets.extend(table);
    }
    let others = tables.pids().filter(|it| *it != PAT_PID && *it != tables.pmt_pid);
    packets.extend(others.map(|pid| discontinuity_packet(pid, head.counter(pid).unwrap_or(0))));
    joined(&packets)
}

/// The packets of PAT and PMT, each table ending with the last counter before the chunk.
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

fn joined(packets: &[PacketBytes]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(size_of_val(packets));
    packets.iter().for_each(|it| bytes.extend_from_slice(it));
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points at these seconds; the choice is made at second 10.
    #[track_caller]
    fn check(points: &[u64], behind: u64, expected: Option<u64>) {
        let start = Instant::now();
        let mut all = Points::default();
        for second in points {
            all.push(*second, start + Duration::from_secs(*second));
        }
        let now = start + Duration::from_secs(10);
        assert_eq!(all.live(Duration::from_secs(behind), now), expected, "{points:?}, {behind} s behind");
    }

    #[test]
    fn a_live_tail_begins_at_the_newest_point_that_is_old_enough_else_at_the_oldest() {
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
