//! Counters, PIDs, tables and time stamps carried over a change of source. Pure: packets and time in, packets out.
//!
//! The first source passes as it is; from the first [`Splice::change`] on, the output stays the transport stream that
//! it was, whatever the next source looks like. Each source is *gathered* (`gather.rs`) until there is a place to
//! begin, then *carried* (`carry.rs`) onto the *output* (`output.rs`), whose state outlives all sources.
//!
//! Programme time and wall time are tied together in `pace.rs`: the programme that is due when a source is lost, plus
//! the time until the next one speaks, is where the next one's newest packet belongs.
//!
//! ```text
//!             first packet            place to begin found
//!   (new) ──────────────▶ Gathering ───────────────────────▶ Carrying
//!                            ▲                                  │
//!                            └───────────── change ─────────────┘
//! ```
mod carry;
mod gather;
mod output;
mod pace;
mod pids;
#[cfg(test)]
mod tests;
mod timeline;

use std::time::Duration;

use bytes::BytesMut;

use self::carry::Carrier;
use self::gather::{Begin, Gathering};
use self::output::Output;
use crate::ts::packet::PacketBytes;

/// How long the splice waits, and how much it keeps meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpliceSettings {
    /// Longest wait for a random-access point, from the source's first payload on.
    pub random_access_wait: Duration,
    /// Longest time a source's opening burst is collected, from its first payload on.
    pub burst_max: Duration,
    /// Most memory for packets held before the output of a source begins.
    pub held_bytes_max: usize,
}

impl Default for SpliceSettings {
    fn default() -> Self {
        SpliceSettings {
            random_access_wait: Duration::from_secs(1),
            burst_max: Duration::from_millis(300),
            held_bytes_max: 8 << 20,
        }
    }
}

/// Carries one source after the other into one conformant transport stream.
///
/// Time is a `Duration` since any moment that stays the same; it must not go back.
#[derive(Debug)]
pub struct Splice {
    settings: SpliceSettings,
    output: Output,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Gathering(Gathering),
    Carrying(Carrier),
}

impl Splice {
    /// A splice that has seen no source yet.
    pub fn new(settings: SpliceSettings) -> Self {
        Splice { settings, output: Output::new(), phase: Phase::Gathering(Gathering::new()) }
    }

    /// Packets from here on come from another source, or from the same one connected anew. What was held of the
    /// source before is dropped.
    pub fn change(&mut self, now: Duration) {
        tracing::trace!(now_ms = now.as_millis(), "another source");
        self.phase = Phase::Gathering(Gathering::new());
    }

    /// Takes one packet that arrived at `now`; what can be sent because of it is appended to `out`, always whole
    /// packets.
    pub fn packet(&mut self, packet: &PacketBytes, now: Duration, out: &mut BytesMut) {
        match &mut self.phase {
            Phase::Carrying(carrier) => carrier.packet(packet, now, &mut self.output, out),
            Phase::Gathering(gathering) => {
                let begin = gathering.packet(packet, now, &mut self.output, &self.settings);
                self.begin(begin, out);
            }
        }
    }

    /// Time went on without a packet. To be called at [`Splice::deadline`].
    pub fn tick(&mut self, now: Duration, out: &mut BytesMut) {
        if let Phase::Gathering(gathering) = &mut self.phase {
            let begin = gathering.try_begin(now, &mut self.output, &self.settings);
            self.begin(begin, out);
        }
    }

    /// When [`Splice::tick`] is to be called at the latest; `None` while only a packet can change anything.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Gathering(gathering) => gathering.deadline(&self.settings, self.output.tables.is_none()),
            Phase::Carrying(_) => None,
        }
    }

    /// The output of the present source has begun.
    pub fn is_through(&self) -> bool {
        matches!(self.phase, Phase::Carrying(_))
    }

    fn begin(&mut self, begin: Option<Begin>, out: &mut BytesMut) {
        let Some(begin) = begin else { return };
        let nothing = Phase::Gathering(Gathering::new());
        if let Phase::Gathering(gathering) = std::mem::replace(&mut self.phase, nothing) {
            self.phase = Phase::Carrying(Carrier::begin(gathering, &begin, &mut self.output, out));
        }
    }
}
