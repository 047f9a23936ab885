//! The source that is read beside the one that plays: collects its packets until the output can continue with it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tracing::debug;

use crate::pump::clock::ClockMonitor;
use crate::pump::message::{Lack, PumpMessage};
use crate::pump::{Following, Prepared, Pump};
use crate::splice::Continuation;
use crate::ts::packet::{Packet, packets};

impl Prepared {
    /// Returns whether only the splice decides when it is ready.
    pub(super) fn may_be_ready(&self) -> bool {
        !self.is_ready && self.needs.is_none_or(|it| self.reader.watch.has(it))
    }
}

impl Pump {
    /// Collects bytes of the prepared source. Nothing of them is written.
    pub(super) fn take_prepared(&mut self, bytes: Bytes) {
        let now = Instant::now();
        let Some(Prepared { reader, .. }) = &mut self.prepared else { return };
        if reader.chunk.take().is_some() {
            reader.adopts = Some(false);
        }
        if reader.take_break().is_some() {
            self.splice.prepare(reader.source.hints(), self.groups.get(reader.key));
        }
        self.writer.count_input(reader.source.take_counts());
        self.splice.set_prepared_recording(reader.counts_as_recording());
        reader.push(bytes);
        let at = now - self.began;
        let mut has_payload = false;
        while let Some(run) = reader.next_run() {
            for packet in packets(&run).map(Packet::new) {
                self.splice.prepared_packet(packet, at);
                let Some(tables) = self.splice.prepared_tables() else { continue };
                has_payload |= reader.payload.packet(tables, packet);
                reader.watch.packet(packet);
                if let Some(pcr) = tables.clock_reference(packet) {
                    reader.pacer.pcr(pcr, packet.discontinuity(), now);
                    reader.watch.pcr(pcr, packet.discontinuity());
                    if let Some(clock) = &mut reader.clock {
                        clock.pcr(pcr, packet.discontinuity(), now);
                    }
                }
            }
        }
        reader.watch.set_tables(self.splice.prepared_tables());
        let measured = reader.clock.as_ref().map_or(Duration::ZERO, ClockMonitor::silence_to_expect);
        reader.expect_silence(measured, self.settings.stall_timeout, now);
        reader.was_read(has_payload, now);
    }

    /// Reports once that the output can continue with the prepared source.
    pub(super) fn report_ready(&mut self, now: Instant) {
        let how = self.continuation();
        let Some(prepared) = self.prepared.as_mut().filter(|it| it.may_be_ready()) else { return };
        if self.splice.is_prepared(how, now - self.began) {
            prepared.is_ready = true;
            debug!(attempt = prepared.attempt, "prepared source is ready");
            (self.on_message)(PumpMessage::Ready(prepared.attempt));
        }
    }

    /// Returns how the output would continue with the prepared source.
    pub(super) fn continuation(&self) -> Continuation {
        // After the last picture, if that is long ago, would leave out the sound since then.
        let delivers = |it: &Following| {
            it.is_playing && !it.reader.silence.is_suspected() && !it.reader.watch.lacks(Lack::Picture)
        };
        match self.following.as_ref().is_some_and(delivers) {
            true => Continuation::Direct,
            false => Continuation::AfterGap,
        }
    }
}
