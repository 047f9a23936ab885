//! The pump: follows one source at a time during the life of a live channel, and writes it through the splice into the
//! ring. It may read a second one beside it, of which nothing is written until it is told to follow that one.
//!
//! Participants: the *handle*, with which the channel selects the sources; the *sources*, which deliver bytes; the
//! *splice*, which joins many sources into one stream; the *writer*, the only one of the ring; and the *messages* to the
//! channel about each attempt: `Ready` if it is prepared beside another, `Playing`, any number of `Silent` and
//! `Resumed`, and `Lost`.
//!
//! The pump never blocks on anything but the next event. Bytes of a source that it was not told to follow
//! cannot reach the ring. A source that waits while nobody reads it, such as a program or a recording on a web server,
//! is not read while its programme is too far ahead of the wall clock; commands of the channel and timers are handled
//! meanwhile.

mod clock;
mod handle;
mod pacer;
mod segment_counters;
mod silence;
#[cfg(test)]
mod tests;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, trace};

use crate::error::{Cause, UpstreamError};
use crate::hls::StreamBreak;
use crate::node::RingPosition;
use crate::pump::handle::{CommandReceiver, PumpCommand, PumpShared};
use crate::pump::pacer::Pacer;
use crate::pump::segment_counters::SegmentCounters;
use crate::pump::silence::SilenceMonitor;
use crate::ring::Writer;
use crate::source::payload::PayloadFilter;
use crate::source::{NodeChunk, SegmentStart, Source, Supply};
use crate::splice::{Continuation, Splice, SpliceSettings};
use crate::ts::align::Aligner;
use crate::ts::packet::{Packet, packets};
use crate::ts::picture::PictureReader;
use crate::ts::service_info::{ServiceInfoReader, ServiceInfoSink};

pub use crate::pump::clock::ClockReading;
pub use crate::pump::handle::PumpHandle;

/// Bytes after which the pump yields to other tasks.
const TURN_BYTES: usize = 256 << 10;
/// Bytes of a paced source that are processed at once. One read of a radio stream may contain half a minute.
const PACED_BYTES: usize = 16 << 10;
/// Time for which a live source that plays is not read after everything was read that had arrived. Sources send a few
/// packets at a time; waking up for each of them costs more than processing it, and chunks end no more often than this.
const READ_REST: Duration = Duration::from_millis(20);
/// A source that sends more than this in such a time is read without rest, so that the receive buffer never fills up.
const RESTED_BYTES_MAX: usize = 64 << 10;

/// The time limits of a pump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PumpSettings {
    /// A source is considered lost after this long without a payload packet; a source that sends in bursts of some
    /// seconds, when its next burst is two seconds late.
    pub stall_timeout: Duration,
    /// A source that plays is reported as silent after this long without a payload packet, or later if it usually pauses
    /// for longer.
    pub silence_suspected_after: Duration,
    /// A source is considered lost after this long without packet boundaries.
    pub sync_lost_timeout: Duration,
    /// Interval between chunks of filler in a gap.
    pub filler_interval: Duration,
    /// Time without a chunk after which a gap is filled that begins while the ring mirrors that of another process: until
    /// then another process may continue it, and filler of this one would take the numbers of its chunks.
    pub mirror_filler_delay: Duration,
    /// A gap is filled for at most this long.
    pub give_up_after: Duration,
    /// Longest wait for a random-access point of a new source.
    pub random_access_wait: Duration,
    /// The opening burst of a new source is collected for at most this long.
    pub burst_max: Duration,
    /// The programme clock is compared with the wall clock over this time.
    pub buffering_timeout: Duration,
    /// Maximum lead of the programme of a program over the wall clock. It is not zero, because live sources start with
    /// a burst of past data that lets players start at once; the ring has to hold it.
    pub program_lead_max: Duration,
    /// Maximum lead of another source. One that gets further ahead is not live, and is read at the rate of its
    /// programme. Of a recording, no more is read ahead than half a ring.
    pub lead_max: Duration,
}

impl Default for PumpSettings {
    fn default() -> Self {
        Self {
            stall_timeout: Duration::from_secs(5),
            silence_suspected_after: Duration::from_millis(1_500),
            sync_lost_timeout: Duration::from_secs(1),
            filler_interval: Duration::from_millis(500),
            mirror_filler_delay: Duration::from_secs(3),
            give_up_after: Duration::from_secs(60),
            random_access_wait: Duration::from_secs(1),
            burst_max: Duration::from_millis(300),
            buffering_timeout: Duration::from_secs(15),
            program_lead_max: Duration::from_secs(5),
            lead_max: Duration::from_secs(25),
        }
    }
}

/// A message from the pump. `Ready`, `Playing` and `Lost` are sent at most once per attempt, and `Lost` is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PumpMessage {
    /// The output can continue with the prepared source of this attempt.
    Ready(u64),
    /// The source of this attempt, which plays, has sent no payload for longer than usual.
    Silent {
        /// Number of the attempt.
        attempt: u64,
        /// Time since its last payload.
        silence: Duration,
    },
    /// The source of this attempt, which was silent, sends payload again.
    Resumed(u64),
    /// The first packets of the source of this attempt become readable directly after this message. What a viewer does
    /// after it got them is therefore reported later.
    Playing(u64),
    /// The source of this attempt was lost. Its socket is already closing.
    Lost {
        /// Number of the attempt.
        attempt: u64,
        /// The reason.
        cause: UpstreamError,
    },
}

/// Creates a pump that writes into `writer`, and the handle that selects its source.
///
/// The future completes when every handle is dropped. When it completes or is dropped, it drops its source and the
/// writer; dropping the writer ends the ring. `on_message` is called on the task of the pump and must not block.
/// `guide_data` receives the guide data of the followed sources.
pub fn pump<N>(
    writer: Writer,
    settings: PumpSettings,
    guide_data: Option<Arc<dyn ServiceInfoSink>>,
    on_message: N,
) -> (PumpHandle, impl Future<Output = ()> + Send + 'static)
where
    N: Fn(PumpMessage) + Send + 'static,
{
    let shared = Arc::new(PumpShared::default());
    let handle = PumpHandle::new(shared.clone());
    let splice = Splice::new(SpliceSettings {
        random_access_wait: settings.random_access_wait,
        burst_max: settings.burst_max,
        ..SpliceSettings::default()
    });
    let pump = Pump {
        following: None,
        prepared: None,
        writer,
        splice,
        settings,
        guide_data,
        on_message,
        began: Instant::now(),
        has_played: false,
        recorded_until: None,
        adopted: None,
        is_mirror: false,
        gap: None,
        shared: CommandReceiver::new(shared),
    };
    (handle, pump.run())
}

struct Pump<N> {
    // Dropped first, so that the source is closing before anything else is dropped.
    following: Option<Following>,
    /// The source that is read beside it. Nothing of it is written.
    prepared: Option<Prepared>,
    writer: Writer,
    splice: Splice,
    settings: PumpSettings,
    guide_data: Option<Arc<dyn ServiceInfoSink>>,
    on_message: N,
    /// Start of the time of the splice.
    began: Instant,
    /// Whether anything but filler was written. Before that no gap is filled, and the start of a source is
    /// not a discontinuity.
    has_played: bool,
    /// The time at which the end of the last recording is due. A recording that follows is due after it.
    recorded_until: Option<Instant>,
    /// The life of the ring whose chunks were written last, with their numbers; `None` after other output.
    adopted: Option<u64>,
    /// The last chunk is one of another process, under its number.
    is_mirror: bool,
    gap: Option<Gap>,
    shared: CommandReceiver,
}

/// The current source.
struct Following {
    attempt: u64,
    reader: SourceReader,
    is_playing: bool,
}

/// A source that is read beside the current one.
struct Prepared {
    attempt: u64,
    reader: SourceReader,
    is_ready: bool,
}

/// A source and what is measured of it.
struct SourceReader {
    source: Box<Source>,
    /// Bytes that were read and not processed yet.
    pending: Bytes,
    /// Present if the bytes that were read last begin a segment.
    segment_start: Option<SegmentStart>,
    /// The chunk of another process whose packets were read last.
    chunk: Option<NodeChunk>,
    /// Whether the chunks of another process keep their numbers.
    adopts: Option<bool>,
    aligner: Aligner,
    /// Present if the source arrives in segments.
    counters: Option<SegmentCounters>,
    pacer: Pacer,
    silence: SilenceMonitor,
    payload: PayloadFilter,
    /// Present until the size of the picture is known.
    picture: Option<PictureReader>,
    service_info: ServiceInfoReader,
    unsynced_since: Option<Instant>,
    /// The end of the present rest, which began when everything was read that had arrived.
    rest_until: Option<Instant>,
}

impl SourceReader {
    fn new(source: Box<Source>, pacer: Pacer, settings: &PumpSettings, now: Instant) -> Self {
        let counters = (source.supply() == Supply::Segments).then(SegmentCounters::new);
        Self {
            source,
            pending: Bytes::new(),
            segment_start: None,
            chunk: None,
            adopts: None,
            aligner: Aligner::new(),
            counters,
            pacer,
            silence: SilenceMonitor::new(settings.silence_suspected_after, settings.stall_timeout, now),
            payload: PayloadFilter::default(),
            picture: None,
            service_info: ServiceInfoReader::default(),
            unsynced_since: None,
            rest_until: None,
        }
    }

    /// Returns the next bytes of the source. Cancel-safe.
    async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        if self.pending.is_empty() {
            self.pending = self.source.read().await?;
            self.segment_start = self.source.take_segment_start();
            self.chunk = self.source.take_chunk();
        }
        let n_bytes = if self.pacer.is_paced() { PACED_BYTES } else { usize::MAX };
        Ok(self.pending.split_to(n_bytes.min(self.pending.len())))
    }

    /// Returns what can be read without waiting; `None` if nothing has arrived.
    fn read_now(&mut self) -> Option<Result<Bytes, UpstreamError>> {
        // Nobody is woken for what arrives later: it is read after the rest.
        match pin!(self.read()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        }
    }

    /// Returns the end of the current pause or rest in reading, if there is one.
    fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.rest_until.or_else(|| self.pacer.until(now))
    }

    /// Returns the time at which the source counts as lost.
    fn deadline(&self, settings: &PumpSettings) -> Instant {
        let stall = self.silence.stalled_at();
        self.unsynced_since.map_or(stall, |since| stall.min(since + settings.sync_lost_timeout))
    }

    /// Returns why the source counts as lost at this time, if it does.
    fn loss(&self, settings: &PumpSettings, now: Instant) -> Option<Cause> {
        // What has arrived during a rest is unknown.
        let now = self.rest_until.map_or(now, |it| now.min(it - READ_REST));
        if self.unsynced_since.is_some_and(|it| it + settings.sync_lost_timeout <= now) {
            return Some(Cause::SyncLost);
        }
        let is_stalled = self.silence.stalled_at() <= now;
        is_stalled.then(|| self.payload.cause_of_silence())
    }

    /// Returns how the bytes that were read last relate to those before them, once; `None` if they continue them, at most
    /// with other continuity counters. After a break no packet continues.
    fn take_break(&mut self) -> Option<StreamBreak> {
        let SegmentStart { breaks } = self.segment_start.take()?;
        let Some(breaks) = breaks else {
            if let Some(counters) = &mut self.counters {
                counters.begin_segment(self.aligner.has_partial_packet());
            }
            return None;
        };
        debug!(?breaks, "the segments of a source do not continue");
        self.aligner = Aligner::new();
        self.counters = self.counters.as_ref().map(|_| SegmentCounters::new());
        self.picture = None;
        self.pacer.forget_clock();
        Some(breaks)
    }

    /// Returns the next run of whole packets of the bytes that were read; `None` until more are read.
    fn next_run(&mut self) -> Option<Bytes> {
        let run = self.aligner.next()?;
        Some(match &mut self.counters {
            Some(counters) => counters.run(run),
            None => run,
        })
    }

    /// Notes that a whole chunk of another process was read, and returns whether that ends a silence that was reported.
    fn chunk_was_read(&mut self, now: Instant) -> bool {
        self.unsynced_since = None;
        self.silence.payload(now)
    }

    /// Notes what bytes that were just read show. Returns whether they end a silence that was reported, and the end of
    /// the pause in reading that they lead to.
    fn was_read(&mut self, has_payload: bool, now: Instant) -> (bool, Option<Instant>) {
        let has_resumed = has_payload && self.silence.payload(now);
        self.unsynced_since = if self.aligner.in_sync() { None } else { self.unsynced_since.or(Some(now)) };
        let paused_until = self.pacer.until(now);
        if let Some(until) = paused_until {
            // Time without reading does not count as time without data.
            self.silence.pause(until);
            self.unsynced_since = self.unsynced_since.map(|_| until);
        }
        if has_payload && self.source.supply() == Supply::Segments {
            // Silence begins when everything has played that was received: until then the next segment is not late.
            self.silence.pause(self.pacer.due().max(now));
        }
        (has_resumed, paused_until)
    }
}

/// A period without output after something has played. It ends with the first output of a source, not when a
/// source is followed.
struct Gap {
    began: Instant,
    /// Time of the next filler; `None` after the gap has lasted too long.
    next_filler: Option<Instant>,
}

enum PumpEvent {
    Command(Option<PumpCommand>),
    Read(Result<Bytes, UpstreamError>),
    ReadPrepared(Result<Bytes, UpstreamError>),
    Timer,
}

impl<N: Fn(PumpMessage)> Pump<N> {
    async fn run(mut self) {
        let mut sleep = pin!(sleep_until(self.began));
        let mut n_bytes = 0;
        loop {
            let now = Instant::now();
            if let Some(following) = &mut self.following {
                following.reader.rest_until.take_if(|it| *it <= now);
            }
            let paused_until = self.following.as_ref().and_then(|it| it.reader.paused_until(now));
            let prepared_paused_until = self.prepared.as_ref().and_then(|it| it.reader.paused_until(now));
            let deadline = [self.deadline(), paused_until, prepared_paused_until].into_iter().flatten().min();
            if let Some(deadline) = deadline
                && sleep.deadline() != deadline
            {
                sleep.as_mut().reset(deadline);
            }
            // Commands come before bytes, and bytes before timers. Timers are checked after each event, so a
            // flood of bytes cannot delay them.
            let event = tokio::select! {
                biased;
                command = self.shared.next_command() => PumpEvent::Command(command),
                read = read(self.following.as_mut().map(|it| &mut it.reader)), if paused_until.is_none() => {
                    PumpEvent::Read(read)
                }
                read = read(self.prepared.as_mut().map(|it| &mut it.reader)),
                    if prepared_paused_until.is_none() =>
                {
                    PumpEvent::ReadPrepared(read)
                }
                () = &mut sleep, if deadline.is_some() => PumpEvent::Timer,
            };
            match event {
                PumpEvent::Command(None) => return,
                PumpEvent::Command(Some(PumpCommand::Follow(attempt, source))) => {
                    self.follow(attempt, source)
                }
                PumpEvent::Command(Some(PumpCommand::Prepare(attempt, source))) => {
                    self.prepare(attempt, source)
                }
                PumpEvent::Command(Some(PumpCommand::FollowPrepared(attempt))) => {
                    self.follow_prepared(attempt)
                }
                PumpEvent::Command(Some(PumpCommand::DropPrepared)) => self.drop_prepared(),
                PumpEvent::Command(Some(PumpCommand::Release)) => self.release(),
                PumpEvent::Command(Some(PumpCommand::FillGaps)) => self.end_mirror(Instant::now()),
                PumpEvent::Read(Ok(bytes)) => {
                    n_bytes += bytes.len();
                    self.take(bytes);
                    n_bytes += self.take_arrived();
                }
                PumpEvent::Read(Err(cause)) => self.lose(cause),
                PumpEvent::ReadPrepared(Ok(bytes)) => {
                    n_bytes += bytes.len();
                    self.take_prepared(bytes);
                }
                PumpEvent::ReadPrepared(Err(cause)) => self.lose_prepared(cause),
                // Nothing can be read at present, so the silence of the source is real.
                PumpEvent::Timer => self.check_silence(),
            }
            self.run_timers();
            if n_bytes >= TURN_BYTES {
                n_bytes = 0;
                yield_now().await;
            }
        }
    }

    /// Returns the time of the next timer.
    fn deadline(&self) -> Option<Instant> {
        let splice = self.splice.deadline().map(|it| self.began + it);
        // Nothing is decided about a source during its rest.
        let read = self.following.as_ref().filter(|it| it.reader.rest_until.is_none());
        let source = read.map(|it| it.reader.deadline(&self.settings));
        let silence = read.filter(|it| it.is_playing).and_then(|it| it.reader.silence.deadline());
        let prepared = self.prepared.as_ref().map(|it| it.reader.deadline(&self.settings));
        let ready = self.prepared.as_ref().filter(|it| !it.is_ready);
        let ready = ready.and_then(|_| self.splice.prepared_deadline(self.continuation()));
        let ready = ready.map(|it| self.began + it);
        let filler = self.gap.as_ref().and_then(|it| it.next_filler);
        [self.writer.deadline(), splice, source, silence, prepared, ready, filler].into_iter().flatten().min()
    }

    /// Handles all timers that are due.
    fn run_timers(&mut self) {
        let now = Instant::now();
        if self.splice.deadline().is_some_and(|it| self.began + it <= now) {
            let mut batch = self.writer.batch(now);
            self.splice.tick(now - self.began, &mut batch);
            let has_output = batch.close() > 0;
            self.publish(has_output, now);
        }
        if self.writer.deadline().is_some_and(|it| it <= now) {
            self.writer.flush(now);
        }
        if let Some(cause) = self.following.as_ref().and_then(|it| it.reader.loss(&self.settings, now)) {
            self.lose(cause.into());
        }
        if let Some(cause) = self.prepared.as_ref().and_then(|it| it.reader.loss(&self.settings, now)) {
            self.lose_prepared(cause.into());
        }
        self.report_ready(now);
        self.write_filler(now);
    }

    /// Reports a source that has been silent for longer than usual.
    fn check_silence(&mut self) {
        let is_read = |it: &&mut Following| it.is_playing && it.reader.rest_until.is_none();
        let Some(following) = self.following.as_mut().filter(is_read) else { return };
        if let Some(silence) = following.reader.silence.check(Instant::now()) {
            let attempt = following.attempt;
            debug!(attempt, silence_ms = silence.as_millis() as u64, "source is silent");
            (self.on_message)(PumpMessage::Silent { attempt, silence });
        }
    }

    /// Returns how the output would continue with the prepared source.
    fn continuation(&self) -> Continuation {
        let delivers = |it: &Following| it.is_playing && !it.reader.silence.is_suspected();
        match self.following.as_ref().is_some_and(delivers) {
            true => Continuation::Direct,
            false => Continuation::AfterGap,
        }
    }

    fn follow(&mut self, attempt: u64, source: Box<Source>) {
        self.drop_prepared();
        self.release();
        let reader = self.reader(source);
        self.begin(Following { attempt, reader, is_playing: false });
    }

    fn begin(&mut self, following: Following) {
        let attempt = following.attempt;
        debug!(attempt, source = ?following.reader.source.info(), "pump follows a source");
        self.shared.start_clock(attempt, self.settings.buffering_timeout);
        self.following = Some(following);
    }

    fn prepare(&mut self, attempt: u64, source: Box<Source>) {
        self.drop_prepared();
        debug!(attempt, source = ?source.info(), "pump prepares a source");
        self.splice.prepare();
        let reader = self.reader(source);
        self.prepared = Some(Prepared { attempt, reader, is_ready: false });
    }

    fn drop_prepared(&mut self) {
        if let Some(mut prepared) = self.prepared.take() {
            self.writer.count_input(prepared.reader.source.take_counts());
        }
        self.splice.drop_prepared();
    }

    /// Continues the output with the prepared source. In the usual case it is ready, and there is no gap.
    fn follow_prepared(&mut self, attempt: u64) {
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
                following.reader.picture = self.splice.source_tables().and_then(PictureReader::of);
            }
        }
        if !has_output {
            self.begin_gap();
        }
        self.publish(has_output, now);
    }

    fn reader(&mut self, source: Box<Source>) -> SourceReader {
        let now = Instant::now();
        let pacer = self.pacer(source.supply(), now);
        SourceReader::new(source, pacer, &self.settings, now)
    }

    fn pacer(&mut self, supply: Supply, now: Instant) -> Pacer {
        let PumpSettings { lead_max, program_lead_max, .. } = self.settings;
        let due = self.recorded_until.take().unwrap_or(now);
        match supply {
            Supply::Program => Pacer::new(program_lead_max, now),
            Supply::Segments => Pacer::new(program_lead_max, due),
            Supply::Recording => Pacer::new(lead_max, due).with_bytes_max(self.writer.bytes_max() / 2),
            Supply::Live => Pacer::live(lead_max, now),
        }
    }

    /// Drops the source, whose socket is closing when this returns.
    fn release(&mut self) {
        if self.end_source() {
            self.begin_gap();
        }
    }

    /// Ends the source, if there is one. Returns whether there was one.
    fn end_source(&mut self) -> bool {
        let Some(mut following) = self.following.take() else { return false };
        let reader = &mut following.reader;
        self.writer.count_input(reader.source.take_counts());
        let is_recording = match reader.source.supply() {
            Supply::Recording => true,
            // A playlist with an end, which may be shorter than the lead.
            Supply::Segments => reader.source.is_complete(),
            Supply::Program | Supply::Live => false,
        };
        if is_recording {
            self.recorded_until = Some(reader.pacer.due());
        }
        let (attempt, is_playing) = (following.attempt, following.is_playing);
        drop(following);
        let now = Instant::now();
        self.shared.stop_clock();
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
            let next_filler = Some(now + if self.is_mirror { mirror_filler_delay } else { filler_interval });
            self.gap.get_or_insert(Gap { began: now, next_filler });
            self.writer.begin_gap();
        }
    }

    fn lose(&mut self, cause: UpstreamError) {
        let Some(attempt) = self.following.as_ref().map(|it| it.attempt) else { return };
        self.release();
        debug!(attempt, "pump lost its source: {cause}");
        (self.on_message)(PumpMessage::Lost { attempt, cause });
    }

    fn lose_prepared(&mut self, cause: UpstreamError) {
        let Some(attempt) = self.prepared.as_ref().map(|it| it.attempt) else { return };
        self.drop_prepared();
        debug!(attempt, "pump lost its prepared source: {cause}");
        (self.on_message)(PumpMessage::Lost { attempt, cause });
    }

    /// Passes bytes of the source through the splice into the ring, or a chunk of another process directly.
    fn take(&mut self, bytes: Bytes) {
        let now = Instant::now();
        if let Some(chunk) = self.following.as_mut().and_then(|it| it.reader.chunk.take())
            && self.take_chunk(chunk, now)
        {
            return;
        }
        let Some(Following { attempt, reader, .. }) = &mut self.following else { return };
        let at = now - self.began;
        if let Some(breaks) = reader.take_break() {
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
        reader.pacer.bytes(bytes.len());
        self.writer.count_input(reader.source.take_counts());
        reader.aligner.push(bytes);
        let mut batch = self.writer.batch(now);
        let mut has_payload = false;
        while let Some(run) = reader.next_run() {
            for packet in packets(&run).map(Packet::new) {
                self.splice.packet(packet, at, &mut batch);
                // The splice does not pass these tables on after a change of source.
                if ServiceInfoReader::is_of(packet.pid())
                    && let Some(sink) = self.guide_data.as_deref().filter(|it| it.is_open())
                {
                    let programme = self.splice.source_tables().map(|it| it.pmt.program);
                    reader.service_info.packet(packet, |it| sink.section(programme, it));
                }
                let Some(tables) = self.splice.source_tables() else { continue };
                has_payload |= reader.payload.packet(tables, packet);
                if let Some(picture) = &mut reader.picture {
                    picture.packet(packet);
                }
                // A packet with a clock reference may have no payload.
                if let Some(pcr) = packet.pcr().filter(|_| tables.pmt.pcr_pid == packet.pid()) {
                    self.shared.record_pcr(pcr, packet.discontinuity(), now);
                    reader.pacer.pcr(pcr, packet.discontinuity(), now);
                }
            }
        }
        let has_output = batch.close() > 0;
        // The bursts of a paced source are made by its pauses.
        let is_paced = reader.pacer.is_paced();
        let expected = match is_paced {
            true => reader.source.usual_silence(),
            false => self.shared.silence_to_expect(),
        };
        reader.silence.expect(expected, self.settings.stall_timeout);
        if self.splice.take_table_change() {
            self.shared.set_tables(self.splice.source_tables());
            reader.picture = self.splice.source_tables().and_then(PictureReader::of);
        }
        if let Some(size) = reader.picture.as_ref().and_then(PictureReader::known_size) {
            self.shared.set_picture(size);
            reader.picture = None;
        }
        if is_paced {
            self.writer.keep_longer(reader.pacer.due(), now);
        }
        let (has_resumed, paused_until) = reader.was_read(has_payload, now);
        if let Some(until) = paused_until {
            self.shared.pause(until);
        }
        if has_resumed {
            (self.on_message)(PumpMessage::Resumed(*attempt));
        }
        self.publish(has_output, now);
    }

    /// Takes a chunk of another process. Returns false if it has to pass through the splice.
    fn take_chunk(&mut self, chunk: NodeChunk, now: Instant) -> bool {
        let can_adopt = self.can_adopt(&chunk);
        let Some(Following { reader, .. }) = &mut self.following else { return true };
        // Decided by the first chunk, because the splice may hold packets of the others back.
        if *reader.adopts.get_or_insert(can_adopt) {
            if can_adopt {
                self.adopt(chunk, now);
            }
            return true;
        }
        let is_filler = chunk.chunk.head().filler;
        if is_filler {
            // This ring has filler of its own. That of the origin says that it works.
            reader.chunk_was_read(now);
        }
        is_filler
    }

    /// Returns whether a chunk of another process continues the ring under its own number. Otherwise it is spliced like any
    /// source.
    fn can_adopt(&self, NodeChunk { epoch, continues, chunk, .. }: &NodeChunk) -> bool {
        match self.adopted {
            Some(adopted) => {
                (adopted == *epoch || *continues == Some(adopted))
                    && chunk.head().sequence >= self.writer.next_sequence()
            }
            // Nothing was written yet, so every number is possible.
            None => !self.has_played && self.writer.next_sequence() == 0,
        }
    }

    /// Writes a chunk of another process as it is, so that both rings are the same.
    fn adopt(&mut self, NodeChunk { epoch, mut chunk, n_lost, .. }: NodeChunk, now: Instant) {
        let Some(Following { attempt, reader, is_playing }) = &mut self.following else { return };
        let (attempt, at) = (*attempt, now - self.began);
        let is_filler = chunk.head().filler;
        let continues = *is_playing && chunk.head().sequence == self.writer.next_sequence();
        if !continues {
            self.splice.adopt(chunk.head().tables.as_deref(), &chunk.head().counters);
            self.shared.set_tables(self.splice.source_tables());
            reader.picture = self.splice.source_tables().and_then(PictureReader::of);
        }
        chunk.head.discontinuity |=
            self.adopted.is_some() && chunk.head().sequence != self.writer.next_sequence();
        let mut has_change = false;
        for packet in packets(&chunk.bytes).map(Packet::new) {
            self.splice.adopted_packet(packet, at);
            if ServiceInfoReader::is_of(packet.pid())
                && let Some(sink) = self.guide_data.as_deref().filter(|it| it.is_open())
            {
                let programme = self.splice.source_tables().map(|it| it.pmt.program);
                reader.service_info.packet(packet, |it| sink.section(programme, it));
            }
            if self.splice.take_table_change() {
                has_change = true;
                reader.picture = self.splice.source_tables().and_then(PictureReader::of);
            }
            if let Some(picture) = &mut reader.picture {
                picture.packet(packet);
            }
            if let Some(pcr) = packet.pcr()
                && self.splice.source_tables().is_some_and(|it| it.pmt.pcr_pid == packet.pid())
            {
                self.shared.record_pcr(pcr, packet.discontinuity(), now);
            }
        }
        if has_change {
            self.shared.set_tables(self.splice.source_tables());
        }
        if let Some(size) = reader.picture.as_ref().and_then(PictureReader::known_size) {
            self.shared.set_picture(size);
            reader.picture = None;
        }
        // Filler says that the origin works, although its upstream does not.
        let has_resumed = reader.chunk_was_read(now);
        let has_begun = !is_filler && !std::mem::replace(is_playing, *is_playing || !is_filler);
        (self.adopted, self.is_mirror) = (Some(epoch), true);
        self.shared.set_adopted(RingPosition { epoch, sequence: chunk.head().sequence });
        if let Some(gap) = &mut self.gap {
            // Filler of the origin fills it.
            gap.next_filler = Some(now + self.settings.mirror_filler_delay);
        }
        self.writer.adopt(chunk, n_lost, now);
        if has_resumed {
            (self.on_message)(PumpMessage::Resumed(attempt));
        }
        if has_begun {
            self.announce(attempt);
        }
        self.writer.publish(now);
    }

    /// Takes everything else that has arrived from a live source that plays, and then lets it rest. Returns the number of
    /// bytes.
    fn take_arrived(&mut self) -> usize {
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
                    self.rest();
                    break;
                }
            }
        }
        n_bytes
    }

    fn rest(&mut self) {
        if let Some(Following { reader, .. }) = &mut self.following {
            reader.rest_until = Some(Instant::now() + READ_REST);
        }
    }

    /// Collects bytes of the prepared source. Nothing of them is written.
    fn take_prepared(&mut self, bytes: Bytes) {
        let now = Instant::now();
        let Some(Prepared { reader, .. }) = &mut self.prepared else { return };
        if reader.chunk.take().is_some() {
            reader.adopts = Some(false);
        }
        if reader.take_break().is_some() {
            self.splice.prepare();
        }
        reader.pacer.bytes(bytes.len());
        self.writer.count_input(reader.source.take_counts());
        reader.aligner.push(bytes);
        let at = now - self.began;
        let mut has_payload = false;
        while let Some(run) = reader.next_run() {
            for packet in packets(&run).map(Packet::new) {
                self.splice.prepared_packet(packet, at);
                let Some(tables) = self.splice.prepared_tables() else { continue };
                has_payload |= reader.payload.packet(tables, packet);
                if let Some(pcr) = packet.pcr().filter(|_| tables.pmt.pcr_pid == packet.pid()) {
                    reader.pacer.pcr(pcr, packet.discontinuity(), now);
                }
            }
        }
        reader.was_read(has_payload, now);
    }

    /// Reports once that the output can continue with the prepared source.
    fn report_ready(&mut self, now: Instant) {
        let how = self.continuation();
        let Some(prepared) = self.prepared.as_mut().filter(|it| !it.is_ready) else { return };
        if self.splice.is_prepared(how, now - self.began) {
            prepared.is_ready = true;
            debug!(attempt = prepared.attempt, "prepared source is ready");
            (self.on_message)(PumpMessage::Ready(prepared.attempt));
        }
    }

    /// Makes the chunks readable that have ended. `has_output`: the current source has just sent something.
    fn publish(&mut self, has_output: bool, now: Instant) {
        if has_output {
            self.adopted = None;
            self.diverge();
        }
        let following = self.following.as_mut().filter(|it| has_output && !it.is_playing);
        let Some(following) = following else { return self.writer.publish(now) };
        following.is_playing = true;
        let attempt = following.attempt;
        self.announce(attempt);
        // Also what has not ended, so that waiting viewers get the first chunk without waiting until it is full.
        self.writer.flush(now);
    }

    /// Reports the first output of a source, which ends a gap. It must not be readable yet: a viewer that reads it and
    /// leaves would be gone before the channel knows that it plays.
    fn announce(&mut self, attempt: u64) {
        self.has_played = true;
        self.gap = None;
        debug!(attempt, "pump started playing");
        (self.on_message)(PumpMessage::Playing(attempt));
    }

    /// The ring has chunks of its own from now on.
    fn diverge(&mut self) {
        if std::mem::take(&mut self.is_mirror) {
            self.shared.diverged();
        }
    }

    /// No other process continues the ring: a gap is filled at once.
    fn end_mirror(&mut self, now: Instant) {
        self.diverge();
        if let Some(next) = self.gap.as_mut().and_then(|it| it.next_filler.as_mut()) {
            *next = now.min(*next);
        }
    }

    /// Writes filler in a gap, to keep players connected.
    fn write_filler(&mut self, now: Instant) {
        let Some(gap) = self.gap.as_mut().filter(|it| it.next_filler.is_some_and(|it| it <= now)) else {
            return;
        };
        let is_over = now - gap.began > self.settings.give_up_after;
        gap.next_filler = (!is_over).then(|| now + self.settings.filler_interval);
        if is_over {
            return;
        }
        self.diverge();
        self.writer.filler(now);
        trace!("filler written");
    }
}

/// Reads the next bytes of a source; waits for ever without one.
async fn read(reader: Option<&mut SourceReader>) -> Result<Bytes, UpstreamError> {
    match reader {
        Some(reader) => reader.read().await,
        None => pending().await,
    }
}
