//! Which sources a pump reads: follows, prepares, ends and loses them.

use tokio::time::Instant;
use tracing::debug;

use crate::error::UpstreamError;
use crate::pump::clock::ClockMonitor;
use crate::pump::gap::FillerGap;
use crate::pump::handle::KnownStream;
use crate::pump::message::{Lack, PumpMessage};
use crate::pump::pacer::Pacer;
use crate::pump::rhythm::Rhythm;
use crate::pump::settings::PumpSettings;
use crate::pump::source_reader::SourceReader;
use crate::pump::{Following, Prepared, Pump};
use crate::source::{Source, Supply};

impl Pump {
    pub(super) fn follow(&mut self, attempt: u64, stream: KnownStream, source: Box<Source>) {
        self.drop_prepared();
        self.release();
        self.groups.know(stream);
        let reader = self.reader(stream.key, source);
        self.begin(Following { attempt, reader, is_playing: false });
    }

    pub(super) fn prepare(
        &mut self,
        attempt: u64,
        stream: KnownStream,
        needs: Option<Lack>,
        source: Box<Source>,
    ) {
        self.drop_prepared();
        debug!(attempt, source = ?source.info(), "pump prepares a source");
        self.groups.know(stream);
        self.splice.prepare(source.hints(), self.groups.get(stream.key));
        let mut reader = self.reader(stream.key, source);
        // The bursts of a paced source are made by its pauses.
        let window = self.settings.buffering_timeout;
        reader.clock = (!reader.pacer.is_paced()).then(|| ClockMonitor::new(attempt, window));
        self.prepared = Some(Prepared { attempt, needs, reader, is_ready: false });
    }

    pub(super) fn drop_prepared(&mut self) {
        if let Some(mut prepared) = self.prepared.take() {
            self.writer.count_input(prepared.reader.source.take_counts());
            let clock = prepared.reader.clock.take();
            self.learn_rhythm(&prepared.reader, clock.as_ref());
        }
        self.splice.drop_prepared();
    }

    /// Continues the output with the prepared source. In the usual case it is ready, and there is no gap.
    pub(super) fn follow_prepared(&mut self, attempt: u64) {
        let Some(Prepared { attempt, reader, .. }) = self.prepared.take_if(|it| it.attempt == attempt) else {
            return;
        };
        let how = self.continuation();
        self.end_source();
        self.begin(Following { attempt, reader, is_playing: false });
        let now = Instant::now();
        let mut batch = self.writer.batch(now);
        self.splice.take_over(how, now - self.began, &mut batch);
        let has_output = batch.close() > 0;
        if self.splice.take_table_change() {
            self.shared.set_tables(self.splice.source_tables());
            if let Some(following) = &mut self.following {
                following.reader.details.begin_tables(self.splice.source_tables());
            }
        }
        if !has_output {
            self.begin_gap();
        }
        self.publish(has_output, now);
    }

    /// Drops the source, whose socket is closing when this returns.
    pub(super) fn release(&mut self) {
        if self.end_source() {
            self.begin_gap();
        }
    }

    pub(super) fn lose(&mut self, cause: UpstreamError) {
        let Some(attempt) = self.following.as_ref().map(|it| it.attempt) else { return };
        self.release();
        debug!(attempt, "pump lost its source: {cause}");
        (self.on_message)(PumpMessage::Lost { attempt, cause });
    }

    pub(super) fn lose_prepared(&mut self, cause: UpstreamError) {
        let Some(attempt) = self.prepared.as_ref().map(|it| it.attempt) else { return };
        self.drop_prepared();
        debug!(attempt, "pump lost its prepared source: {cause}");
        (self.on_message)(PumpMessage::Lost { attempt, cause });
    }

    fn begin(&mut self, mut following: Following) {
        let attempt = following.attempt;
        debug!(attempt, source = ?following.reader.source.info(), "pump follows a source");
        self.splice.set_hints(following.reader.source.hints());
        let group = self.groups.get(following.reader.key);
        self.splice.set_group(group);
        self.writer.measure_groups(group);
        let clock = following.reader.clock.take();
        self.shared.start_clock(
            clock.unwrap_or_else(|| ClockMonitor::new(attempt, self.settings.buffering_timeout)),
        );
        self.following = Some(following);
    }

    /// Ends the source, if there is one. Returns whether there was one.
    fn end_source(&mut self) -> bool {
        let Some(mut following) = self.following.take() else { return false };
        let reader = &mut following.reader;
        self.writer.count_input(reader.source.take_counts());
        if reader.is_recording() {
            self.recorded_until = Some(reader.pacer.due());
        }
        if following.is_playing {
            let pacer = &following.reader.pacer;
            self.paced_until = pacer.is_paced().then(|| pacer.due());
        }
        let (attempt, is_playing) = (following.attempt, following.is_playing);
        let clock = self.shared.stop_clock();
        self.learn_rhythm(&following.reader, clock.as_ref());
        self.groups.learn(following.reader.key, self.writer.group());
        drop(following);
        let now = Instant::now();
        // Here and not at the next source, because what is complete of this source is due now.
        let mut batch = self.writer.batch(now);
        self.splice.change(now - self.began, &mut batch);
        if batch.close() > 0 && !is_playing {
            self.announce(attempt);
        }
        self.writer.flush(now);
        if self.has_played {
            // The packets of the next source start a chunk that declares the break.
            self.writer.discontinuity_next();
        }
        true
    }

    /// From now on there is no output.
    fn begin_gap(&mut self) {
        if self.has_played {
            let now = Instant::now();
            // A source that never played does not end the gap.
            let PumpSettings { filler_interval, mirror_filler_delay, .. } = self.settings;
            let filler_delay = if self.mirror.is_last() { mirror_filler_delay } else { filler_interval };
            self.gap.get_or_insert_with(|| FillerGap::new(now, filler_delay));
            self.writer.begin_gap();
        }
    }

    fn reader(&mut self, key: u64, source: Box<Source>) -> SourceReader {
        let now = Instant::now();
        let rhythm = self.rhythm(key, now);
        let pacer = self.pacer(source.supply(), now);
        SourceReader::new(source, key, rhythm, pacer, &self.settings, now)
    }

    /// Returns the rhythm that the next connection to this stream inherits: that of the one that is read, or of the last.
    fn rhythm(&self, key: u64, now: Instant) -> Rhythm {
        let reader = self.following.as_ref().map(|it| &it.reader).filter(|it| it.key == key);
        let present = reader.and_then(|it| self.shared.look_at_clock(|clock| it.rhythm(clock, now)));
        present.unwrap_or_else(|| self.rhythms.get(key, now))
    }

    /// Keeps the rhythm of a connection that ends.
    fn learn_rhythm(&mut self, reader: &SourceReader, clock: Option<&ClockMonitor>) {
        let now = Instant::now();
        if let Some(rhythm) = reader.rhythm(clock, now) {
            self.rhythms.learn(reader.key, rhythm, now);
        }
    }

    fn pacer(&mut self, supply: Supply, now: Instant) -> Pacer {
        let PumpSettings { lead_max, program_lead_max, .. } = self.settings;
        let due = self.recorded_until.take().unwrap_or(now);
        match supply {
            Supply::Program | Supply::Radio => Pacer::new(program_lead_max, now),
            Supply::Segments => Pacer::new(program_lead_max, due),
            Supply::Recording => Pacer::new(lead_max, due).with_bytes_max(self.writer.bytes_max() / 2),
            Supply::Live => Pacer::live(lead_max, now),
        }
    }
}
