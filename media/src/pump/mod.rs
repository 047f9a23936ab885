//! The pump: follows one source at a time during the life of a live channel, and writes it through the splice into the
//! ring. It may read a second one beside it, of which nothing is written until it is told to follow that one.
//!
//! Participants: the *handle*, with which the channel selects the sources; the *sources*, which deliver bytes; the
//! *splice*, which joins many sources into one stream; the *writer*, the only one of the ring; and the *messages* to the
//! channel about each attempt: `Ready` if it is prepared beside another, `Playing`, any number of `Silent` and
//! `Resumed`, of `Lacks` and `Complete`, and `Lost`; and `Picture`, if its picture begins later than its sound or damaged.
//!
//! The pump never blocks on anything but the next event. Bytes of a source that it was not told to follow
//! cannot reach the ring. A source that waits while nobody reads it, such as a program or a recording on a web server,
//! is not read while its programme is too far ahead of the wall clock; commands of the channel and timers are handled
//! meanwhile.

mod adopt;
mod clock;
mod forward;
mod gap;
mod group_memory;
mod handle;
mod message;
mod mirror;
mod pacer;
mod prepared;
mod rhythm;
mod segment_counters;
mod settings;
mod silence;
mod source_details;
mod source_reader;
mod sources;
mod still_picture;
mod stream_watch;
#[cfg(test)]
mod tests;

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::{debug, trace};

use crate::error::UpstreamError;
use crate::pump::gap::FillerGap;
use crate::pump::group_memory::GroupMemory;
use crate::pump::handle::{CommandReceiver, PumpCommand, PumpShared};
use crate::pump::mirror::Mirror;
use crate::pump::rhythm::RhythmMemory;
use crate::pump::source_reader::SourceReader;
use crate::ring::Writer;
use crate::splice::{Splice, SpliceSettings};
use crate::ts::service_info::ServiceInfoSink;

pub use crate::pump::clock::ClockReading;
pub use crate::pump::handle::{KnownStream, PumpHandle, SeenOfStream};
pub use crate::pump::message::{Lack, PumpMessage};
pub use crate::pump::settings::PumpSettings;

/// Bytes after which the pump yields to other tasks.
const TURN_BYTES: usize = 256 << 10;

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
        start_lead: settings.start_lead,
        ..SpliceSettings::default()
    });
    let pump = Pump {
        following: None,
        prepared: None,
        writer,
        splice,
        settings,
        guide_data,
        on_message: Box::new(on_message),
        began: Instant::now(),
        has_played: false,
        recorded_until: None,
        paced_until: None,
        live_lead: Duration::ZERO,
        rhythms: RhythmMemory::default(),
        groups: GroupMemory::default(),
        mirror: Mirror::default(),
        gap: None,
        shared: CommandReceiver::new(shared),
    };
    (handle, pump.run())
}

struct Pump {
    // Dropped first, so that the source is closing before anything else is dropped.
    following: Option<Following>,
    /// The source that is read beside it. Nothing of it is written.
    prepared: Option<Prepared>,
    writer: Writer,
    splice: Splice,
    settings: PumpSettings,
    guide_data: Option<Arc<dyn ServiceInfoSink>>,
    on_message: Box<dyn Fn(PumpMessage) + Send>,
    /// Start of the time of the splice.
    began: Instant,
    /// Whether anything but filler was written. Before that no gap is filled, and the start of a source is
    /// not a discontinuity.
    has_played: bool,
    /// The time at which the end of the last recording is due. A recording that follows is due after it.
    recorded_until: Option<Instant>,
    /// The time at which the end of the last source is due that was read no faster than its programme runs.
    paced_until: Option<Instant>,
    /// How much of its past a live source sent ahead, at most, over all sources.
    live_lead: Duration,
    rhythms: RhythmMemory,
    groups: GroupMemory,
    mirror: Mirror,
    /// The present period without output.
    gap: Option<FillerGap>,
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
    /// The part that it must have shown, because the source that plays lacks it.
    needs: Option<Lack>,
    reader: SourceReader,
    is_ready: bool,
}

enum PumpEvent {
    Command(Option<PumpCommand>),
    Read(Result<Bytes, UpstreamError>),
    ReadPrepared(Result<Bytes, UpstreamError>),
    Timer,
}

impl Pump {
    async fn run(mut self) {
        let mut sleep = pin!(sleep_until(self.began));
        let mut n_bytes = 0;
        loop {
            match self.next_event(sleep.as_mut()).await {
                PumpEvent::Command(None) => return,
                PumpEvent::Command(Some(command)) => self.carry_out(command),
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

    /// Waits for a command, for bytes of the sources that may be read now, or for the next timer.
    async fn next_event(&mut self, mut sleep: Pin<&mut Sleep>) -> PumpEvent {
        let now = Instant::now();
        if let Some(following) = &mut self.following {
            following.reader.end_rest(now);
        }
        // A repetition is not written, so it does not come too early.
        let is_paced = |_: &Instant| !self.splice.is_repetition();
        let paused_until =
            self.following.as_ref().and_then(|it| it.reader.paused_until(now)).filter(is_paced);
        let prepared_paused_until = self.prepared.as_ref().and_then(|it| it.reader.paused_until(now));
        let deadline = [self.deadline(), paused_until, prepared_paused_until].into_iter().flatten().min();
        if let Some(deadline) = deadline
            && sleep.deadline() != deadline
        {
            sleep.as_mut().reset(deadline);
        }
        // Commands come before bytes, and bytes before timers. Timers are checked after each event, so a
        // flood of bytes cannot delay them.
        tokio::select! {
            biased;
            command = self.shared.next_command() => PumpEvent::Command(command),
            read = read(self.following.as_mut().map(|it| &mut it.reader)), if paused_until.is_none() => {
                PumpEvent::Read(read)
            }
            read = read(self.prepared.as_mut().map(|it| &mut it.reader)), if prepared_paused_until.is_none() => {
                PumpEvent::ReadPrepared(read)
            }
            () = sleep, if deadline.is_some() => PumpEvent::Timer,
        }
    }

    fn carry_out(&mut self, command: PumpCommand) {
        match command {
            PumpCommand::Follow(attempt, stream, source) => self.follow(attempt, stream, source),
            PumpCommand::Prepare(attempt, stream, needs, source) => {
                self.prepare(attempt, stream, needs, source);
            }
            PumpCommand::FollowPrepared(attempt) => self.follow_prepared(attempt),
            PumpCommand::DropPrepared => self.drop_prepared(),
            PumpCommand::Release => self.release(),
            PumpCommand::FillGaps => self.end_mirror(Instant::now()),
        }
    }

    /// Returns the time of the next timer.
    fn deadline(&self) -> Option<Instant> {
        let splice = self.splice.deadline().map(|it| self.began + it);
        // Nothing is decided about a source during its rest.
        let read = self.following.as_ref().filter(|it| !it.reader.rests());
        let source = read.map(|it| it.reader.deadline(&self.settings));
        let silence = read.filter(|it| it.is_playing).and_then(|it| it.reader.silence.deadline());
        let prepared = self.prepared.as_ref().map(|it| it.reader.deadline(&self.settings));
        let ready = self.prepared.as_ref().filter(|it| it.may_be_ready());
        let ready = ready.and_then(|_| self.splice.prepared_deadline(self.continuation()));
        let ready = ready.map(|it| self.began + it);
        let filler = self.gap.as_ref().and_then(|it| it.next_filler());
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
        let is_read = |it: &&mut Following| it.is_playing && !it.reader.rests();
        let Some(following) = self.following.as_mut().filter(is_read) else { return };
        if let Some(silence) = following.reader.silence.check(Instant::now()) {
            let attempt = following.attempt;
            debug!(attempt, silence_ms = silence.as_millis() as u64, "source is silent");
            (self.on_message)(PumpMessage::Silent { attempt, silence });
        }
    }

    /// Writes filler in a gap, to keep players connected.
    fn write_filler(&mut self, now: Instant) {
        if self.gap.as_mut().is_some_and(|it| it.take_due(&self.settings, now)) {
            self.diverge();
            self.writer.filler(now);
            trace!("filler written");
        }
    }
}

/// Reads the next bytes of a source; waits for ever without one.
async fn read(reader: Option<&mut SourceReader>) -> Result<Bytes, UpstreamError> {
    match reader {
        Some(reader) => reader.read().await,
        None => pending().await,
    }
}
