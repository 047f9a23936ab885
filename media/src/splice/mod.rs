//! Joins one source after the other into one transport stream with continuous counters, PIDs, tables and time stamps.
//! Pure: packets and time in, packets out.
//!
//! The first source passes unchanged. From the first [`Splice::change`] on, the output remains the same transport
//! stream, whatever the next source looks like. The packets of each source are *gathered* (`gather.rs`) until a start
//! point is found, then *forwarded* (`forward.rs`) to the *output* (`output.rs`), whose state outlives all sources.
//! Forwarded packets wait until the frame that they belong to is complete (`units.rs`), so that a source ends with whole
//! frames.
//!
//! `pace.rs` relates programme time to wall time: the newest packet of a source belongs at the programme time that was
//! due when the previous source was lost, plus the time until its arrival.
//!
//! ```text
//!             first packet             start point found
//!   (new) ──────────────▶ Gathering ───────────────────────▶ Forwarding
//!                            ▲                                  │
//!                            └───────────── change ─────────────┘
//! ```
mod forward;
mod gather;
mod leading;
mod output;
mod pace;
mod pids;
mod settings;
#[cfg(test)]
mod tests;
mod timeline;
mod units;

use std::time::Duration;

use self::forward::Forwarder;
use self::gather::{Gathering, StartPoint};
use self::output::Output;
pub use self::settings::SpliceSettings;
use crate::ts::packet::{Packet, PacketSink};
use crate::ts::table_reader::TableReader;
use crate::ts::tables::Tables;

/// Joins sources into one conformant transport stream.
///
/// Time is a `Duration` since any fixed moment and must not decrease.
#[derive(Debug)]
pub struct Splice {
    settings: SpliceSettings,
    output: Output,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Gathering(Gathering),
    Forwarding(Forwarder),
}

impl Splice {
    /// Creates a splice without a source.
    pub fn new(settings: SpliceSettings) -> Self {
        Splice { settings, output: Output::new(), phase: Phase::Gathering(Gathering::new()) }
    }

    /// Announces that the next packets come from another source, or from the same one after a reconnect. What is
    /// complete of the previous source is passed to `out`; frames that are not complete and packets of a source that
    /// has not started are dropped.
    pub fn change(&mut self, now: Duration, out: &mut impl PacketSink) {
        tracing::trace!(now_ms = now.as_millis(), "change of source");
        if let Phase::Forwarding(forwarder) =
            std::mem::replace(&mut self.phase, Phase::Gathering(Gathering::new()))
        {
            forwarder.finish(&mut self.output, out);
        }
    }

    /// Adds one packet that arrived at `now` and passes the resulting output packets to `out`.
    pub fn packet(&mut self, packet: Packet<'_>, now: Duration, out: &mut impl PacketSink) {
        match &mut self.phase {
            Phase::Forwarding(forwarder) => forwarder.packet(packet, now, &mut self.output, out),
            Phase::Gathering(gathering) => {
                let start = gathering.packet(packet, now, &mut self.output, &self.settings);
                self.start(start, out);
            }
        }
    }

    /// Informs the splice that time has passed without a packet. To be called at [`Splice::deadline`].
    pub fn tick(&mut self, now: Duration, out: &mut impl PacketSink) {
        if let Phase::Gathering(gathering) = &mut self.phase {
            let start = gathering.try_start(now, &mut self.output, &self.settings);
            self.start(start, out);
        }
    }

    /// Returns when [`Splice::tick`] must be called; `None` while only a packet can change the state.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Gathering(gathering) => gathering.deadline(&self.settings, self.output.tables.is_none()),
            Phase::Forwarding(_) => None,
        }
    }

    /// Returns whether the output of the current source has started.
    pub fn is_forwarding(&self) -> bool {
        matches!(self.phase, Phase::Forwarding(_))
    }

    /// Returns the tables of the current source, once they are known.
    pub fn source_tables(&self) -> Option<&Tables> {
        match &self.phase {
            Phase::Gathering(gathering) => gathering.reader.tables(),
            Phase::Forwarding(forwarder) => forwarder.reader.tables(),
        }
    }

    /// Returns whether the tables of the current source have changed since the last call.
    pub fn take_table_change(&mut self) -> bool {
        let reader: &mut TableReader = match &mut self.phase {
            Phase::Gathering(gathering) => &mut gathering.reader,
            Phase::Forwarding(forwarder) => &mut forwarder.reader,
        };
        reader.take_change()
    }

    fn start(&mut self, start: Option<StartPoint>, out: &mut impl PacketSink) {
        let Some(start) = start else { return };
        let placeholder = Phase::Gathering(Gathering::new());
        if let Phase::Gathering(gathering) = std::mem::replace(&mut self.phase, placeholder) {
            self.phase =
                Phase::Forwarding(Forwarder::start(gathering, &start, &self.settings, &mut self.output, out));
        }
    }
}
