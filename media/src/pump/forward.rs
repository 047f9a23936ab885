//! The way of bytes from the source that plays, through the splice, into the ring.

use bytes::Bytes;
use tokio::time::Instant;
use tracing::debug;

use crate::hls::StreamBreak;
use crate::pump::handle::SeenOfStream;
use crate::pump::message::{Lack, PumpMessage};
use crate::pump::stream_watch::WatchReport;
use crate::pump::{Following, Pump};
use crate::source::Supply;
use crate::splice::PictureEvent;
use crate::ts::packet::{Packet, packets};

/// A source that sends more than this during a rest is read without rest, so that the receive buffer never fills up.
const RESTED_BYTES_MAX: usize = 64 << 10;

/// The results of the packets of one read.
#[derive(Default)]
struct Forwarded {
    /// Whether anything was written into the ring.
    has_output: bool,
    /// Whether a part of the programme was read.
    has_payload: bool,
}

impl Pump {
    /// Passes bytes of the source through the splice into the ring, or a chunk of another process directly.
    pub(super) fn take(&mut self, bytes: Bytes) {
        let now = Instant::now();
        if let Some(chunk) = self.following.as_mut().and_then(|it| it.reader.chunk.take())
            && self.take_chunk(chunk, now)
        {
            return;
        }
        self.break_output(now);
        let Forwarded { has_output, has_payload } = self.forward_packets(bytes, now);
        self.share_details();
        self.update_timing(has_payload, now);
        self.publish(has_output, now);
        self.report_lacks();
    }

    /// Takes everything else that has arrived from a live source that plays, and then lets it rest. Returns the number of
    /// bytes.
    pub(super) fn take_arrived(&mut self) -> usize {
        let mut n_bytes = 0;
        while let Some(Following { reader, is_playing: true, .. }) = &mut self.following
            && reader.source.supply() == Supply::Live
            && !reader.pacer.is_paced()
            && n_bytes < RESTED_BYTES_MAX
        {
            match reader.read_now() {
                Some(Ok(bytes)) => {
                    n_bytes += bytes.len();
                    self.take(bytes);
                }
                Some(Err(cause)) => self.lose(cause),
                None => {
                    // Before the rest, because nobody can tell during it.
                    self.check_silence();
                    if let Some(Following { reader, .. }) = &mut self.following {
                        reader.rest(Instant::now());
                    }
                    break;
                }
            }
        }
        n_bytes
    }

    /// Ends the output before bytes that do not continue those before them.
    fn break_output(&mut self, now: Instant) {
        let Some(breaks) = self.following.as_mut().and_then(|it| it.reader.take_break()) else { return };
        let at = now - self.began;
        self.splice.set_group(self.writer.group());
        let mut batch = self.writer.batch(now);
        match breaks {
            StreamBreak::NewTimeline => self.splice.change_directly(at, &mut batch),
            StreamBreak::Gap => self.splice.change(at, &mut batch),
        }
        batch.close();
        self.writer.flush(now);
        if self.has_played {
            self.writer.discontinuity_next();
        }
    }

    /// Cuts bytes into packets, passes each through the splice into the ring, and reads what it shows of its source.
    fn forward_packets(&mut self, bytes: Bytes, now: Instant) -> Forwarded {
        let Some(Following { reader, .. }) = &mut self.following else { return Forwarded::default() };
        self.writer.count_input(reader.source.take_counts());
        if let Some(title) = reader.source.take_title() {
            self.shared.set_title(title);
        }
        self.splice.set_recording(reader.counts_as_recording());
        reader.push(bytes);
        let at = now - self.began;
        let guide_data = self.guide_data.as_deref();
        let mut batch = self.writer.batch(now);
        let mut has_payload = false;
        let mut is_repetition = self.splice.is_repetition();
        while let Some(run) = reader.next_run() {
            for packet in packets(&run).map(Packet::new) {
                self.splice.packet(packet, at, &mut batch);
                if is_repetition && !self.splice.is_repetition() {
                    is_repetition = false;
                    // What follows is due when it would have been without a change of source.
                    reader.pacer.set_due(self.paced_until.map_or(now, |it| it.max(now)));
                }
                let tables = self.splice.source_tables();
                reader.details.guide_packet(packet, tables, guide_data);
                let Some(tables) = tables else { continue };
                has_payload |= reader.payload.packet(tables, packet);
                reader.watch.packet(packet);
                reader.details.picture_packet(packet);
                // A packet with a clock reference may have no payload.
                if let Some(pcr) = tables.clock_reference(packet) {
                    self.shared.record_pcr(pcr, packet.discontinuity(), now);
                    reader.pacer.pcr(pcr, packet.discontinuity(), now);
                    reader.watch.pcr(pcr, packet.discontinuity());
                }
            }
        }
        Forwarded { has_output: batch.close() > 0, has_payload }
    }

    /// Gives new tables of the source, size and rate of its pictures once they are known, and what its pictures show to the handles.
    fn share_details(&mut self) {
        let Some(Following { reader, .. }) = &mut self.following else { return };
        if self.splice.take_table_change() {
            self.shared.set_tables(self.splice.source_tables());
            reader.details.begin_tables(self.splice.source_tables());
            reader.watch.set_tables(self.splice.source_tables());
        }
        if let Some(size) = reader.details.take_picture_size() {
            self.shared.set_picture(size);
        }
        if let Some(rate) = reader.details.take_frame_rate() {
            self.shared.set_frame_rate(rate);
        }
        let seen = SeenOfStream { group: self.writer.group(), moves: reader.watch.has(Lack::Motion) };
        if reader.seen != seen {
            reader.seen = seen;
            self.shared.set_seen(reader.key, seen);
        }
    }

    /// Decides after a read how long the source may be silent, whether it pauses, and how long its chunks are kept.
    fn update_timing(&mut self, has_payload: bool, now: Instant) {
        let Some(Following { attempt, reader, .. }) = &mut self.following else { return };
        let is_paced = reader.pacer.is_paced();
        if reader.watch.lacks(Lack::Picture) {
            // The clock may have ended together with the picture.
            self.shared.pause(now);
        }
        reader.expect_silence(self.shared.silence_to_expect(), self.settings.stall_timeout, now);
        if is_paced {
            self.writer.keep_longer(reader.pacer.due(), now);
        } else {
            // A viewer who got the past of a live source stays that far behind, also when the next connection sends none.
            self.live_lead = self.live_lead.max(reader.pacer.due().saturating_duration_since(now));
            self.writer.keep_longer(now + self.live_lead, now);
        }
        let (has_resumed, paused_until) = reader.was_read(has_payload, now);
        if let Some(until) = paused_until {
            self.shared.pause(until);
        }
        if has_resumed {
            (self.on_message)(PumpMessage::Resumed(*attempt));
        }
    }

    /// Reports the parts that the source lacks, once it plays.
    fn report_lacks(&mut self) {
        let Some(Following { attempt, reader, is_playing: true }) = &mut self.following else { return };
        while let Some(report) = reader.take_report() {
            let attempt = *attempt;
            debug!(attempt, ?report, "a part of the programme has ended or begun");
            (self.on_message)(match report {
                WatchReport::Lacks { lack, never } => PumpMessage::Lacks { attempt, lack, never },
                WatchReport::Complete(lack) => PumpMessage::Complete { attempt, lack },
            });
        }
    }

    /// Makes the chunks readable that have ended. `has_output`: the current source has just sent something.
    pub(super) fn publish(&mut self, has_output: bool, now: Instant) {
        if has_output {
            self.mirror.forget();
            self.diverge();
        }
        let following = self.following.as_mut().filter(|it| has_output && !it.is_playing);
        let Some(following) = following else {
            self.report_picture();
            return self.writer.publish(now);
        };
        following.is_playing = true;
        let attempt = following.attempt;
        self.announce(attempt);
        self.report_picture();
        // Also what has not ended, so that waiting viewers get the first chunk without waiting until it is full.
        self.writer.flush(now);
    }

    /// Reports how the picture of a source that replaces another begins.
    fn report_picture(&mut self) {
        let Some(attempt) = self.following.as_ref().map(|it| it.attempt) else { return };
        let Some(event) = self.splice.take_picture_event() else { return };
        debug!(attempt, ?event, "picture of a new source");
        if event == PictureEvent::NoKeyFrame {
            // New viewers must not wait for a point that does not come.
            self.writer.allow_joins();
        }
        (self.on_message)(PumpMessage::Picture { attempt, event });
    }

    /// Reports the first output of a source, which ends a gap. It must not be readable yet: a viewer that reads it and
    /// leaves would be gone before the channel knows that it plays.
    pub(super) fn announce(&mut self, attempt: u64) {
        self.has_played = true;
        self.gap = None;
        debug!(attempt, "pump started playing");
        (self.on_message)(PumpMessage::Playing(attempt));
    }
}
