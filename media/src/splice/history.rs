//! The access units that were sent last, by which a source is recognised that sends some of them again. Pure.
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::splice::pace::{JUMP, Ticks};
use crate::ts::clock::{STAMP_MODULUS, distance};
use crate::ts::packet::Packet;
use crate::ts::pes::pes_header;

/// Number of units that are remembered: twenty seconds with fifty pictures a second.
const UNITS_MAX: usize = 1_024;

/// Number of bytes of the elementary stream that identify a unit. So many fit into its first packet, whatever else the
/// multiplexer writes there.
const COMPARED_BYTES: usize = 128;

/// An access unit of the reference stream, as the source sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessUnit {
    /// Decoding time, 33 bits.
    decode: u64,
    /// Hash of its presentation time and its first bytes.
    fingerprint: u64,
}

impl AccessUnit {
    /// Returns the unit that starts in this packet; `None` if its decoding time or its data cannot be read.
    pub(crate) fn from_packet(packet: Packet<'_>) -> Option<Self> {
        if !packet.pusi() || packet.is_scrambled() {
            return None;
        }
        let payload = packet.payload();
        let (stamps, data) = pes_header(payload)?;
        let body = &payload[data..];
        let mut hasher = DefaultHasher::new();
        (stamps.pts, &body[..body.len().min(COMPARED_BYTES)]).hash(&mut hasher);
        Some(AccessUnit { decode: stamps.decode()?, fingerprint: hasher.finish() })
    }
}

/// A unit that was sent.
#[derive(Clone, Copy, Debug)]
struct SentUnit {
    unit: AccessUnit,
    /// Decoding time in the output.
    sent_as: Ticks,
}

/// The newest units of the reference stream that were sent, of sources with one time line.
#[derive(Debug, Default)]
pub(crate) struct SentUnits {
    /// Oldest first.
    units: VecDeque<SentUnit>,
    /// Number of the oldest; units are numbered in the order in which they were sent.
    first: u64,
    /// The unit with which the first of these sources began, whether it was sent or not.
    began_with: Option<AccessUnit>,
    /// Number of sources since the last unit that ended before they sent another one.
    n_repetitions: u32,
}

/// After this many repetitions in a row, the next source is played whatever it sends.
const REPETITIONS_MAX: u32 = 3;

impl SentUnits {
    /// Records a unit that was sent with this decoding time.
    pub(crate) fn push(&mut self, unit: AccessUnit, sent_as: Ticks) {
        if self.units.back().is_some_and(|last| last.unit == unit) {
            // Its packet is sent twice.
            return;
        }
        self.n_repetitions = 0;
        if self.units.len() == UNITS_MAX {
            self.units.pop_front();
            self.first += 1;
        }
        self.units.push_back(SentUnit { unit, sent_as });
    }

    /// Forgets all units, because those of a source with another time line follow, which began with this one.
    pub(crate) fn begin(&mut self, began_with: Option<AccessUnit>) {
        self.first += self.units.len() as u64;
        self.units.clear();
        self.began_with = began_with;
    }

    /// A source has ended before it sent another unit than these.
    pub(crate) fn end_repetition(&mut self) {
        self.n_repetitions += 1;
        if self.n_repetitions >= REPETITIONS_MAX {
            self.begin(None);
        }
    }

    /// Returns whether the first of these sources began with this unit.
    pub(crate) fn began_with(&self, unit: AccessUnit) -> bool {
        self.began_with == Some(unit)
    }

    /// Returns the number of the first such unit from number `from` on, and its decoding time in the output.
    pub(crate) fn find(&self, unit: AccessUnit, from: u64) -> Option<(u64, Ticks)> {
        let n_skipped = from.saturating_sub(self.first) as usize;
        let units = self.units.iter().enumerate().skip(n_skipped);
        let mut same = units.filter(|(_, sent)| sent.unit == unit);
        same.next().map(|(at, sent)| (self.first + at as u64, sent.sent_as))
    }

    /// Returns the decoding time of the last unit in the output.
    pub(crate) fn last_sent_as(&self) -> Option<Ticks> {
        self.units.back().map(|last| last.sent_as)
    }

    /// Returns whether unit `number` is the last one, and this one can follow it.
    pub(crate) fn can_follow(&self, unit: AccessUnit, number: u64) -> bool {
        let is_last = number + 1 == self.first + self.units.len() as u64;
        let step = |last: &SentUnit| distance(last.unit.decode, unit.decode, STAMP_MODULUS);
        is_last && self.units.back().is_some_and(|last| (1..=JUMP).contains(&step(last)))
    }
}
