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
//! due when the previous source was lost, plus the time until its arrival. `programme.rs` keeps the streams of a source
//! together when its clock jumps.
//!
//! ```text
//!             first packet             start point found
//!   (new) ──────────────▶ Gathering ───────────────────────▶ Forwarding
//!                            ▲                                  │
//!                            └───────────── change ─────────────┘
//! ```
//!
//! The picture of a source begins at a random-access point. If the previous source has ended before one comes, the other
//! streams start without it, and the picture is *held* (`hold.rs`): nothing of it is sent but its clock.
//!
//! A source may begin with its past. If that was sent already (`history.rs`), the output continues after the last access
//! unit (`overlap.rs`). Otherwise the past is awaited, and only what fills the gap is sent.
//!
//! While one source is forwarded, the next one may be gathered beside it. Nothing of that one is sent until
//! [`Splice::take_over`].
mod forward;
mod gather;
mod history;
mod hold;
mod leading;
mod output;
mod overlap;
mod pace;
mod pids;
mod programme;
mod settings;
#[cfg(test)]
mod tests;
mod timeline;
mod units;

use std::time::Duration;

use self::forward::Forwarder;
use self::gather::{Gathering, StartPoint};
pub use self::hold::PictureEvent;
use self::output::Output;
pub use self::settings::SpliceSettings;
use crate::groups::GroupLength;
use crate::ts::packet::{Packet, PacketSink};
use crate::ts::table_reader::{TableHints, TableReader};
use crate::ts::tables::Tables;

/// Joins sources into one conformant transport stream.
///
/// Time is a `Duration` since any fixed moment and must not decrease.
#[derive(Debug)]
pub struct Splice {
    settings: SpliceSettings,
    output: Output,
    phase: Phase,
    beside: Option<Beside>,
    /// Facts about the tables of the present source.
    hints: TableHints,
    /// The distance of its random-access points.
    group: GroupLength,
}

/// The next source, gathered while the present one is forwarded.
#[derive(Debug)]
struct Beside {
    gathering: Gathering,
    /// The start point that was found, if it did not become too old.
    start: Option<StartPoint>,
}

/// The way in which the output continues with another source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The present source still delivers: time stamps continue directly after its last ones.
    Direct,
    /// The present source is silent or gone: time stamps step forward by the length of the gap.
    AfterGap,
}

/// A random-access point this old is new enough to report that a source is ready, and to start there.
const READY_AGE_MAX: Duration = Duration::from_millis(500);
const START_AGE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Phase {
    Gathering(Gathering),
    Forwarding(Forwarder),
}

impl Splice {
    /// Creates a splice without a source.
    pub fn new(settings: SpliceSettings) -> Self {
        let hints = TableHints::default();
        let phase = Phase::Gathering(Gathering::new(&hints, GroupLength::default()));
        Splice { settings, output: Output::new(), phase, beside: None, hints, group: GroupLength::default() }
    }

    /// Sets what is known of the tables of the source whose first packet comes next.
    pub fn set_hints(&mut self, hints: &TableHints) {
        self.hints = hints.clone();
        if let Phase::Gathering(gathering) = &mut self.phase {
            gathering.reader = TableReader::from_hints(hints);
        }
    }

    /// Announces that the next packets come from another source, or from the same one after a reconnect. What is
    /// complete of the previous source is passed to `out`; frames that are not complete and packets of a source that
    /// has not started are dropped.
    pub fn change(&mut self, now: Duration, out: &mut impl PacketSink) {
        tracing::trace!(now_ms = now.as_millis(), "change of source");
        self.gather(Gathering::new(&self.hints, self.group), out);
    }

    /// Announces that the next packets have other streams or times, although nothing is missing between them and the last
    /// ones: the output continues directly, whenever they arrive.
    pub fn change_directly(&mut self, now: Duration, out: &mut impl PacketSink) {
        tracing::trace!(now_ms = now.as_millis(), "change within a source");
        self.gather(Gathering::directly_after(&self.hints, self.group), out);
    }

    fn gather(&mut self, next: Gathering, out: &mut impl PacketSink) {
        match std::mem::replace(&mut self.phase, Phase::Gathering(next)) {
            Phase::Forwarding(forwarder) => forwarder.finish(&mut self.output, out),
            Phase::Gathering(gathering) if gathering.is_repetition() => {
                self.output.sent_units.end_repetition()
            }
            Phase::Gathering(_) => {}
        }
    }

    /// Announces that the next packets come from the splice of another process, and are sent as they are by
    /// [`Splice::adopted_packet`]. These are the state of its output before them. May be called again after a loss.
    pub fn adopt(&mut self, tables: Option<&Tables>, counters: &[(u16, u8)]) {
        self.beside = None;
        self.phase = Phase::Forwarding(Forwarder::adopt(tables, counters, &self.settings, &mut self.output));
    }

    /// Records a packet that is sent as it is, so that the output can continue after it with another source.
    pub fn adopted_packet(&mut self, packet: Packet<'_>, now: Duration) {
        if let Phase::Forwarding(forwarder) = &mut self.phase {
            forwarder.adopted(packet, now, &mut self.output);
        }
    }

    /// Sets what is known of the random-access points of the present source, or of the one whose first packet comes next.
    pub fn set_group(&mut self, group: GroupLength) {
        self.group = group;
        if let Phase::Gathering(gathering) = &mut self.phase {
            gathering.group = group;
        }
    }

    /// Sets whether the source whose first packet comes next is a recording: it may send the same twice, and nothing of it
    /// may be missing.
    pub fn set_recording(&mut self, is_recording: bool) {
        if let Phase::Gathering(gathering) = &mut self.phase {
            gathering.set_recording(is_recording);
        }
    }

    /// Does the same for the source that is gathered beside the present one.
    pub fn set_prepared_recording(&mut self, is_recording: bool) {
        if let Some(beside) = &mut self.beside {
            beside.gathering.set_recording(is_recording);
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

    /// Returns whether the current source has sent nothing yet but what was sent before it.
    pub fn is_repetition(&self) -> bool {
        matches!(&self.phase, Phase::Gathering(gathering) if gathering.is_repetition())
    }

    /// Returns what has happened to the picture of the current source since the last call.
    pub fn take_picture_event(&mut self) -> Option<PictureEvent> {
        match &mut self.phase {
            Phase::Gathering(_) => None,
            Phase::Forwarding(forwarder) => forwarder.take_picture_event(),
        }
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

    /// Begins to gather another source, of whose tables and random-access points this is known, beside the present one.
    pub fn prepare(&mut self, hints: &TableHints, group: GroupLength) {
        self.beside = Some(Beside { gathering: Gathering::new(hints, group), start: None });
    }

    /// Drops everything that was gathered beside the present source.
    pub fn drop_prepared(&mut self) {
        self.beside = None;
    }

    /// Adds one packet of the source that is gathered beside the present one.
    pub fn prepared_packet(&mut self, packet: Packet<'_>, now: Duration) {
        let Some(Beside { gathering, start }) = &mut self.beside else { return };
        let before = (gathering.held.len(), gathering.n_table_changes);
        gathering.hold(packet, now, &self.settings);
        if gathering.held.len() < before.0 || gathering.n_table_changes != before.1 {
            // Packets were dropped, or are examined again, so the start point has become invalid.
            *start = None;
        }
    }

    /// Returns the tables of the source that is gathered beside the present one, once they are known.
    pub fn prepared_tables(&self) -> Option<&Tables> {
        self.beside.as_ref()?.gathering.reader.tables()
    }

    /// Returns whether the output can continue with the source that is gathered beside the present one. To be called
    /// after its packets, and at [`Splice::prepared_deadline`].
    pub fn is_prepared(&mut self, how: Continuation, now: Duration) -> bool {
        let Self { beside: Some(beside), output, settings, .. } = self else { return false };
        match how {
            Continuation::Direct => {
                beside.start = beside.gathering.continuation(now, READY_AGE_MAX, output, settings);
            }
            Continuation::AfterGap if beside.start.is_none() => {
                beside.start = beside.gathering.try_start(now, output, settings);
            }
            Continuation::AfterGap => {}
        }
        beside.start.is_some()
    }

    /// Returns when [`Splice::is_prepared`] must be called; `None` while only a packet can change its result.
    pub fn prepared_deadline(&self, how: Continuation) -> Option<Duration> {
        let beside = self.beside.as_ref().filter(|it| it.start.is_none())?;
        match how {
            Continuation::Direct => beside.gathering.continuation_deadline(&self.settings),
            Continuation::AfterGap => beside.gathering.deadline(&self.settings, false),
        }
    }

    /// Continues the output with the source that was gathered beside the present one, which has ended with
    /// [`Splice::change`]. If it is not ready, its start point is searched for as for any source.
    pub fn take_over(&mut self, how: Continuation, now: Duration, out: &mut impl PacketSink) {
        let Some(Beside { mut gathering, start }) = self.beside.take() else { return };
        let (output, settings) = (&mut self.output, &self.settings);
        let start = match how {
            Continuation::Direct => gathering
                .find_continuation(output)
                .or_else(|| gathering.continuation(now, START_AGE_MAX, output, settings)),
            Continuation::AfterGap => start.filter(|it| !it.is_direct),
        };
        let start = start.or_else(|| gathering.try_start(now, output, settings));
        self.phase = Phase::Gathering(gathering);
        self.start(start, out);
    }

    fn start(&mut self, start: Option<StartPoint>, out: &mut impl PacketSink) {
        let Some(start) = start else { return };
        let placeholder = Phase::Gathering(Gathering::new(&self.hints, self.group));
        if let Phase::Gathering(gathering) = std::mem::replace(&mut self.phase, placeholder) {
            self.phase =
                Phase::Forwarding(Forwarder::start(gathering, &start, &self.settings, &mut self.output, out));
        }
    }
}
