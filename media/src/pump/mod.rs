//! The pump: reads one source at a time during the life of a live channel, and writes through the splice into
//! the ring.
//!
//! Participants: the *handle*, with which the channel selects the source; the *source*, which delivers bytes;
//! the *splice*, which joins many sources into one stream; the *writer*, the only one of the ring; and the
//! *messages* to the channel, at most one of each per attempt: `Playing`, then `Lost`.
//!
//! The pump never blocks on anything but the next event. Bytes of a source that it was not told to follow
//! cannot reach the ring. A source that waits while nobody reads it, such as a program or a recording on a web server,
//! is not read while its programme is too far ahead of the wall clock; commands of the channel and timers are handled
//! meanwhile.

mod clock;
mod handle;
mod pacer;
#[cfg(test)]
mod tests;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, trace};

use crate::error::{Cause, UpstreamError};
use crate::pump::handle::{CommandReceiver, PumpCommand, PumpShared};
use crate::pump::pacer::Pacer;
use crate::ring::Writer;
use crate::source::payload::PayloadFilter;
use crate::source::{Source, Supply};
use crate::splice::{Splice, SpliceSettings};
use crate::ts::align::Aligner;
use crate::ts::packet::{Packet, packets};

pub use crate::pump::clock::ClockReading;
pub use crate::pump::handle::PumpHandle;

/// Bytes after which the pump yields to other tasks.
const TURN_BYTES: usize = 256 << 10;
/// Bytes of a paced source that are processed at once. One read of a radio stream may contain half a minute.
const PACED_BYTES: usize = 16 << 10;

/// The time limits of a pump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PumpSettings {
    /// A source is considered lost after this long without a payload packet; a source that sends in bursts of some
    /// seconds, when its next burst is two seconds late.
    pub stall_timeout: Duration,
    /// A source is considered lost after this long without packet boundaries.
    pub sync_lost_timeout: Duration,
    /// Interval between chunks of filler in a gap.
    pub filler_interval: Duration,
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
            sync_lost_timeout: Duration::from_secs(1),
            filler_interval: Duration::from_millis(500),
            give_up_after: Duration::from_secs(60),
            random_access_wait: Duration::from_secs(1),
            burst_max: Duration::from_millis(300),
            buffering_timeout: Duration::from_secs(15),
            program_lead_max: Duration::from_secs(5),
            lead_max: Duration::from_secs(25),
        }
    }
}

/// A message from the pump. At most one of each kind is sent per attempt, and `Lost` is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PumpMessage {
    /// The first packets of the source of this attempt are in the ring.
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
pub fn pump<N>(
    writer: Writer,
    settings: PumpSettings,
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
        writer,
        splice,
        settings,
        on_message,
        began: Instant::now(),
        has_played: false,
        recorded_until: None,
        gap: None,
        shared: CommandReceiver::new(shared),
    };
    (handle, pump.run())
}

struct Pump<N> {
    // Dropped first, so that the source is closing before anything else is dropped.
    following: Option<Following>,
    writer: Writer,
    splice: Splice,
    settings: PumpSettings,
    on_message: N,
    /// Start of the time of the splice.
    began: Instant,
    /// Whether anything but filler was written. Before that no gap is filled, and the start of a source is
    /// not a discontinuity.
    has_played: bool,
    /// The time at which the end of the last recording is due. A recording that follows is due after it.
    recorded_until: Option<Instant>,
    gap: Option<Gap>,
    shared: CommandReceiver,
}

/// The current source.
struct Following {
    attempt: u64,
    source: Box<Source>,
    /// Bytes that were read and not processed yet.
    pending: Bytes,
    aligner: Aligner,
    pacer: Pacer,
    /// Time of the last payload. While the source is paused, the end of the pause, because nothing can arrive
    /// before.
    last_payload: Instant,
    /// The source is lost after this long without payload.
    silence_max: Duration,
    payload: PayloadFilter,
    unsynced_since: Option<Instant>,
    is_playing: bool,
}

impl Following {
    /// Returns the next bytes of the source. Cancel-safe.
    async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        if self.pending.is_empty() {
            self.pending = self.source.read().await?;
        }
        let n_bytes = if self.pacer.is_paced() { PACED_BYTES } else { usize::MAX };
        Ok(self.pending.split_to(n_bytes.min(self.pending.len())))
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
    Timer,
}

impl<N: Fn(PumpMessage)> Pump<N> {
    async fn run(mut self) {
        let mut sleep = pin!(sleep_until(self.began));
        let mut n_bytes = 0;
        loop {
            let paused_until = self.following.as_ref().and_then(|it| it.pacer.until(Instant::now()));
            let deadline = [self.deadline(), paused_until].into_iter().flatten().min();
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
                read = read(&mut self.following), if paused_until.is_none() => PumpEvent::Read(read),
                () = &mut sleep, if deadline.is_some() => PumpEvent::Timer,
            };
            match event {
                PumpEvent::Command(None) => return,
                PumpEvent::Command(Some(PumpCommand::Follow(attempt, source))) => {
                    self.follow(attempt, source)
                }
                PumpEvent::Command(Some(PumpCommand::Release)) => self.release(),
                PumpEvent::Read(Ok(bytes)) => {
                    n_bytes += bytes.len();
                    self.take(bytes);
                }
                PumpEvent::Read(Err(cause)) => self.lose(cause),
                PumpEvent::Timer => {}
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
        let source = self.following.as_ref().map(|it| {
            let stall = it.last_payload + it.silence_max;
            it.unsynced_since.map_or(stall, |since| stall.min(since + self.settings.sync_lost_timeout))
        });
        let filler = self.gap.as_ref().and_then(|it| it.next_filler);
        [self.writer.deadline(), splice, source, filler].into_iter().flatten().min()
    }

    /// Handles all timers that are due.
    fn run_timers(&mut self) {
        let now = Instant::now();
        if self.splice.deadline().is_some_and(|it| self.began + it <= now) {
            let mut batch = self.writer.batch(now);
            self.splice.tick(now - self.began, &mut batch);
            if batch.commit() > 0 {
                self.report_playing(now);
            }
        }
        if self.writer.deadline().is_some_and(|it| it <= now) {
            self.writer.flush(now);
        }
        if let Some(following) = &self.following {
            let has_lost_sync =
                following.unsynced_since.is_some_and(|it| it + self.settings.sync_lost_timeout <= now);
            if has_lost_sync {
                self.lose(Cause::SyncLost.into());
            } else if following.last_payload + following.silence_max <= now {
                let cause = following.payload.cause_of_silence();
                self.lose(cause.into());
            }
        }
        self.write_filler(now);
    }

    fn follow(&mut self, attempt: u64, source: Box<Source>) {
        self.release();
        debug!(attempt, source = ?source.info(), "pump reads a source");
        self.shared.start_clock(attempt, self.settings.buffering_timeout);
        let now = Instant::now();
        self.following = Some(Following {
            attempt,
            pacer: self.pacer(source.supply(), now),
            source,
            pending: Bytes::new(),
            aligner: Aligner::new(),
            last_payload: now,
            silence_max: self.settings.stall_timeout,
            payload: PayloadFilter::default(),
            unsynced_since: None,
            is_playing: false,
        });
    }

    fn pacer(&mut self, supply: Supply, now: Instant) -> Pacer {
        let PumpSettings { lead_max, program_lead_max, .. } = self.settings;
        let due = self.recorded_until.take().unwrap_or(now);
        match supply {
            Supply::Program => Pacer::new(program_lead_max, now),
            Supply::Recording => Pacer::new(lead_max, due).with_bytes_max(self.writer.bytes_max() / 2),
            Supply::Live => Pacer::live(lead_max, now),
        }
    }

    /// Drops the source, whose socket is closing when this returns.
    fn release(&mut self) {
        let Some(following) = self.following.take() else { return };
        if following.source.supply() == Supply::Recording {
            self.recorded_until = Some(following.pacer.due());
        }
        drop(following);
        let now = Instant::now();
        self.shared.stop_clock();
        // Here and not at the next source, because what is complete of this source is due now.
        let mut batch = self.writer.batch(now);
        self.splice.change(now - self.began, &mut batch);
        batch.commit();
        self.writer.flush(now);
        if self.has_played {
            // The packets of the next source start a chunk that declares the break.
            self.writer.discontinuity_next();
            // A source that never played does not end the gap.
            let next_filler = Some(now + self.settings.filler_interval);
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

    /// Passes bytes of the source through the splice into the ring.
    fn take(&mut self, bytes: Bytes) {
        let now = Instant::now();
        let Some(following) = &mut self.following else { return };
        following.pacer.bytes(bytes.len());
        following.aligner.push(bytes);
        let at = now - self.began;
        let mut batch = self.writer.batch(now);
        while let Some(run) = following.aligner.next() {
            for packet in packets(&run).map(Packet::new) {
                self.splice.packet(packet, at, &mut batch);
                let Some(tables) = self.splice.source_tables() else { continue };
                if following.payload.packet(tables, packet) {
                    following.last_payload = now;
                }
                // A packet with a clock reference may have no payload.
                if let Some(pcr) = packet.pcr().filter(|_| tables.pmt.pcr_pid == packet.pid()) {
                    self.shared.record_pcr(pcr, packet.discontinuity(), now);
                    following.pacer.pcr(pcr, packet.discontinuity(), now);
                }
            }
        }
        let has_output = batch.commit() > 0;
        // The bursts of a paced source are made by its pauses.
        let is_paced = following.pacer.is_paced();
        let expected = if is_paced { Duration::ZERO } else { self.shared.silence_to_expect() };
        following.silence_max = self.settings.stall_timeout.max(expected);
        if self.splice.take_table_change() {
            self.shared.set_tables(self.splice.source_tables());
        }
        following.unsynced_since =
            if following.aligner.in_sync() { None } else { following.unsynced_since.or(Some(now)) };
        if is_paced {
            self.writer.keep_longer(following.pacer.due(), now);
        }
        if let Some(until) = following.pacer.until(now) {
            // Time without reading does not count as time without data.
            following.last_payload = until;
            following.unsynced_since = following.unsynced_since.map(|_| until);
            self.shared.pause(until);
        }
        if has_output {
            self.report_playing(now);
        }
    }

    /// Reports the first output of a source, which ends a gap.
    fn report_playing(&mut self, now: Instant) {
        let Some(following) = self.following.as_mut().filter(|it| !it.is_playing) else { return };
        following.is_playing = true;
        let attempt = following.attempt;
        // At once, so that waiting viewers get the first chunk without waiting until it is full.
        self.writer.flush(now);
        self.has_played = true;
        self.gap = None;
        debug!(attempt, "pump started playing");
        (self.on_message)(PumpMessage::Playing(attempt));
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
        self.writer.filler(now);
        trace!("filler written");
    }
}

/// Reads the next bytes of the source; waits for ever without a source.
async fn read(following: &mut Option<Following>) -> Result<Bytes, UpstreamError> {
    match following {
        Some(following) => following.read().await,
        None => pending().await,
    }
}
