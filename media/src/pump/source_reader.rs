//! Reads one source of a pump, and decides from what was read whether the source pauses, rests, is silent or is lost.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tracing::debug;

use crate::error::{Cause, UpstreamError};
use crate::hls::StreamBreak;
use crate::pump::clock::ClockMonitor;
use crate::pump::handle::SeenOfStream;
use crate::pump::pacer::Pacer;
use crate::pump::rhythm::Rhythm;
use crate::pump::segment_counters::SegmentCounters;
use crate::pump::settings::PumpSettings;
use crate::pump::silence::SilenceMonitor;
use crate::pump::source_details::SourceDetails;
use crate::pump::stream_watch::{StreamWatch, WatchReport};
use crate::source::payload::PayloadFilter;
use crate::source::{NodeChunk, SegmentStart, Source, Supply};
use crate::ts::align::Aligner;

/// Bytes of a paced source that are processed at once. One read of a radio stream may contain half a minute.
const PACED_BYTES: usize = 16 << 10;
/// Time for which a live source that plays is not read after everything was read that had arrived. Sources send a few
/// packets at a time; waking up for each of them costs more than processing it, and chunks end no more often than this.
const READ_REST: Duration = Duration::from_millis(20);

/// Time for which a source is expected to send in the rhythm of the last connection to its stream.
const RHYTHM_INHERITED: Duration = Duration::from_secs(60);

/// A source and what is measured of it.
pub(super) struct SourceReader {
    pub(super) source: Box<Source>,
    /// Connections with the same key are of the same stream.
    pub(super) key: u64,
    /// Measures the programme clock until the source is followed; then the handles of the pump share it.
    pub(super) clock: Option<ClockMonitor>,
    /// Silence to expect because of the last connection to this stream, and the end of that.
    inherited: (Duration, Instant),
    /// Bytes that were read and not processed yet.
    pending: Bytes,
    /// Present if the bytes that were read last begin a segment.
    segment_start: Option<SegmentStart>,
    /// The chunk of another process whose packets were read last.
    pub(super) chunk: Option<NodeChunk>,
    /// Whether the chunks of another process keep their numbers.
    pub(super) adopts: Option<bool>,
    aligner: Aligner,
    /// Present if the source arrives in segments.
    counters: Option<SegmentCounters>,
    pub(super) pacer: Pacer,
    pub(super) silence: SilenceMonitor,
    pub(super) payload: PayloadFilter,
    pub(super) details: SourceDetails,
    pub(super) watch: StreamWatch,
    /// The properties of the stream that the handles know.
    pub(super) seen: SeenOfStream,
    /// Whether a segment has begun since the last judgement of what is missing.
    has_segment_begun: bool,
    unsynced_since: Option<Instant>,
    /// The end of the present rest, which began when everything was read that had arrived.
    rest_until: Option<Instant>,
}

impl SourceReader {
    pub(super) fn new(
        source: Box<Source>,
        key: u64,
        rhythm: Rhythm,
        pacer: Pacer,
        settings: &PumpSettings,
        now: Instant,
    ) -> Self {
        let counters = (source.supply() == Supply::Segments).then(SegmentCounters::new);
        let PumpSettings { silence_suspected_after, stall_timeout, .. } = *settings;
        let mut silence =
            SilenceMonitor::new(silence_suspected_after, stall_timeout, rhythm.longest_pause, now);
        silence.expect(rhythm.silence_to_expect, stall_timeout);
        Self {
            source,
            key,
            clock: None,
            inherited: (rhythm.silence_to_expect, now + RHYTHM_INHERITED),
            pending: Bytes::new(),
            segment_start: None,
            chunk: None,
            adopts: None,
            aligner: Aligner::new(),
            counters,
            pacer,
            silence,
            payload: PayloadFilter::default(),
            details: SourceDetails::default(),
            watch: StreamWatch::new(settings.picture_timeout, settings.sound_timeout),
            seen: SeenOfStream::default(),
            has_segment_begun: false,
            unsynced_since: None,
            rest_until: None,
        }
    }

    /// Sets the silence to expect: what the bursts of this connection show, or those of the last one to this stream.
    pub(super) fn expect_silence(&mut self, measured: Duration, stall_timeout: Duration, now: Instant) {
        // The bursts of a paced source are made by its pauses.
        let expected = match self.pacer.is_paced() {
            true => self.source.usual_silence(),
            false => measured.max(self.inherited_silence(now)),
        };
        self.silence.expect(expected, stall_timeout);
    }

    fn inherited_silence(&self, now: Instant) -> Duration {
        let (silence, until) = self.inherited;
        if now < until { silence } else { Duration::ZERO }
    }

    /// Returns the rhythm for the next connection to this stream, if this one has a rhythm of its own.
    pub(super) fn rhythm(&self, clock: Option<&ClockMonitor>, now: Instant) -> Option<Rhythm> {
        if self.source.supply() != Supply::Live || self.pacer.is_paced() || self.adopts == Some(true) {
            return None;
        }
        let measured = clock.and_then(ClockMonitor::learned_silence).unwrap_or_default();
        Some(Rhythm {
            silence_to_expect: measured.max(self.inherited_silence(now)),
            longest_pause: self.silence.longest_pause(),
        })
    }

    /// Returns the next bytes of the source. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        if self.pending.is_empty() {
            self.pending = self.source.read().await?;
            self.segment_start = self.source.take_segment_start();
            self.chunk = self.source.take_chunk();
        }
        let n_bytes = if self.pacer.is_paced() { PACED_BYTES } else { usize::MAX };
        Ok(self.pending.split_to(n_bytes.min(self.pending.len())))
    }

    /// Returns what can be read without waiting; `None` if nothing has arrived.
    pub(super) fn read_now(&mut self) -> Option<Result<Bytes, UpstreamError>> {
        // Nobody is woken for what arrives later: it is read after the rest.
        match pin!(self.read()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        }
    }

    /// Begins a rest. It ends with [`Self::end_rest`].
    pub(super) fn rest(&mut self, now: Instant) {
        self.rest_until = Some(now + READ_REST);
    }

    /// Ends the rest, if it is over.
    pub(super) fn end_rest(&mut self, now: Instant) {
        self.rest_until.take_if(|it| *it <= now);
    }

    /// Returns whether the source rests, so that nothing is known of what has arrived.
    pub(super) fn rests(&self) -> bool {
        self.rest_until.is_some()
    }

    /// Returns the end of the current pause or rest in reading, if there is one.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.rest_until.or_else(|| self.pacer.until(now))
    }

    /// Returns the time at which the source counts as lost.
    pub(super) fn deadline(&self, settings: &PumpSettings) -> Instant {
        let stall = self.silence.stalled_at();
        self.unsynced_since.map_or(stall, |since| stall.min(since + settings.sync_lost_timeout))
    }

    /// Returns why the source counts as lost at this time, if it does.
    pub(super) fn loss(&self, settings: &PumpSettings, now: Instant) -> Option<Cause> {
        // What has arrived during a rest is unknown.
        let now = self.rest_until.map_or(now, |it| now.min(it - READ_REST));
        if self.unsynced_since.is_some_and(|it| it + settings.sync_lost_timeout <= now) {
            return Some(Cause::SyncLost);
        }
        let is_stalled = self.silence.stalled_at() <= now;
        is_stalled.then(|| self.payload.cause_of_silence())
    }

    /// Returns whether the source has an end, up to which it is due at the rate of its programme.
    pub(super) fn is_recording(&self) -> bool {
        match self.source.supply() {
            Supply::Recording => true,
            // A playlist with an end, which may be shorter than the lead.
            Supply::Segments => self.source.is_complete(),
            Supply::Program | Supply::Radio | Supply::Live => false,
        }
    }

    /// Returns whether the source has an end, or is sent so fast that it was taken for a recording.
    pub(super) fn counts_as_recording(&self) -> bool {
        self.is_recording() || self.source.supply() == Supply::Live && self.pacer.is_paced()
    }

    /// Returns how the bytes that were read last relate to those before them, once; `None` if they continue them, at most
    /// with other continuity counters. After a break no packet continues.
    pub(super) fn take_break(&mut self) -> Option<StreamBreak> {
        let SegmentStart { breaks } = self.segment_start.take()?;
        self.has_segment_begun = true;
        let Some(breaks) = breaks else {
            if let Some(counters) = &mut self.counters {
                counters.begin_segment(self.aligner.has_partial_packet());
            }
            return None;
        };
        debug!(?breaks, "the segments of a source do not continue");
        self.aligner = Aligner::new();
        self.counters = self.counters.as_ref().map(|_| SegmentCounters::new());
        self.details.end_picture();
        self.pacer.forget_clock();
        Some(breaks)
    }

    /// Returns what has changed about the parts that the source lacks, one change at a time.
    pub(super) fn take_report(&mut self) -> Option<WatchReport> {
        match self.source.supply() {
            Supply::Live | Supply::Program | Supply::Radio => self.watch.check(),
            // Some packagers write all video of a segment, and then all sound.
            Supply::Segments if self.has_segment_begun && !self.source.is_complete() => {
                let report = self.watch.check();
                self.has_segment_begun = report.is_some();
                report
            }
            // A film may have no sound for a while.
            Supply::Segments | Supply::Recording => None,
        }
    }

    /// Takes bytes that were read, for [`Self::next_run`].
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.pacer.bytes(bytes.len());
        self.aligner.push(bytes);
    }

    /// Returns the next run of whole packets of the bytes that were taken; `None` until more are taken.
    pub(super) fn next_run(&mut self) -> Option<Bytes> {
        let run = self.aligner.next()?;
        Some(match &mut self.counters {
            Some(counters) => counters.run(run),
            None => run,
        })
    }

    /// Notes that a whole chunk of another process was read, and returns whether that ends a silence that was reported.
    pub(super) fn chunk_was_read(&mut self, now: Instant) -> bool {
        self.unsynced_since = None;
        self.silence.payload(now)
    }

    /// Notes what bytes that were just read show. Returns whether they end a silence that was reported, and the end of
    /// the pause in reading that they lead to.
    pub(super) fn was_read(&mut self, has_payload: bool, now: Instant) -> (bool, Option<Instant>) {
        let has_resumed = has_payload && self.silence.payload(now);
        self.unsynced_since = if self.aligner.in_sync() { None } else { self.unsynced_since.or(Some(now)) };
        let paused_until = self.pacer.until(now);
        if let Some(until) = paused_until {
            // Time without reading does not count as time without data.
            self.silence.pause(until);
            self.unsynced_since = self.unsynced_since.map(|_| until);
        }
        if has_payload && matches!(self.source.supply(), Supply::Segments | Supply::Radio) {
            // Silence begins when everything has played that was received: until then the next piece is not late.
            self.silence.pause(self.pacer.due().max(now));
        }
        (has_resumed, paused_until)
    }
}
