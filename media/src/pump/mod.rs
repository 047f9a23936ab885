//! The pump: for the life of a live channel it follows one source at a time, through the splice, into the ring.
//!
//! Dramatis personae: the *handle*, with which the channel says what to follow; the *source*, from which
//! bytes come; the *splice*, which makes one stream of many sources; the *writer*, the ring's only one; and
//! the *news*, told at most once each per attempt: `Playing`, then `Lost`.
//!
//! The pump waits for nothing but the next thing to happen. Bytes of a source that it was not told to
//! follow cannot reach the ring. A source that waits for its reader, which is a program, is not read while its
//! programme is ahead of the wall clock; what the channel says is heard meanwhile, and time goes on.

mod clock;
mod handle;
mod hold;
#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod tests;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, trace};

use crate::error::{Cause, UpstreamError};
use crate::pump::handle::{PumpEnd, Shared, Wanted};
use crate::pump::hold::Hold;
use crate::ring::Writer;
use crate::source::Source;
use crate::source::payload::PayloadWatch;
use crate::splice::{Splice, SpliceSettings};
use crate::ts::align::Aligner;
use crate::ts::packet::{Packet, packets};

pub use crate::pump::clock::ClockReading;
pub use crate::pump::handle::PumpHandle;

/// After how many bytes the pump lets others have the thread.
const TURN_BYTES: usize = 256 << 10;
/// The output buffer is given back when a burst made it larger than this.
const OUT_BYTES_KEPT: usize = 1 << 20;

/// How patient the pump is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PumpSettings {
    /// Longest time without a payload packet before a source is lost.
    pub stall_timeout: Duration,
    /// Longest time without packet boundaries before a source is lost.
    pub sync_lost_timeout: Duration,
    /// Time between two pieces of filler in a gap.
    pub filler_interval: Duration,
    /// Longest time for which a gap is filled.
    pub give_up_after: Duration,
    /// Longest wait for a random-access point of a new source.
    pub random_access_wait: Duration,
    /// Longest time for which the opening burst of a new source is collected.
    pub burst_max: Duration,
    /// Over how long the programme clock is held against the wall clock.
    pub buffering_timeout: Duration,
    /// How far the programme of a source that waits for its reader may be ahead of the wall clock. A live source begins
    /// with a burst of its past, with which players start at once, so it is not zero; the ring has to hold it.
    pub ahead_max: Duration,
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
            ahead_max: Duration::from_secs(5),
        }
    }
}

/// What a pump tells. At most one of each per attempt, and `Lost` is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PumpMessage {
    /// The first packets of this attempt's source are in the ring.
    Playing(u64),
    /// This attempt's source is no more; its socket is closing already.
    Lost {
        /// Whose source it was.
        attempt: u64,
        /// Why.
        cause: UpstreamError,
    },
}

/// A pump that writes into `writer`, and the handle with which it is told what to follow.
///
/// The future ends when every handle is dropped; ending or being dropped, it drops the writer (the ring
/// ends) and the source it follows. `news` is called on the pump's task and must not block.
pub fn pump<N>(
    writer: Writer,
    settings: PumpSettings,
    news: N,
) -> (PumpHandle, impl Future<Output = ()> + Send + 'static)
where
    N: Fn(PumpMessage) + Send + 'static,
{
    let shared = Arc::new(Shared::default());
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
        news,
        began: Instant::now(),
        out: BytesMut::new(),
        has_played: false,
        gap: None,
        shared: PumpEnd::new(shared),
    };
    (handle, pump.run())
}

struct Pump<N> {
    // The source first: it is closing before anything else is torn down.
    following: Option<Following>,
    writer: Writer,
    splice: Splice,
    settings: PumpSettings,
    news: N,
    /// The splice's time counts from here.
    began: Instant,
    /// What the splice has put out and the ring has not.
    out: BytesMut,
    /// Something real is or was in the ring: only then is a gap filled, and only then is the next
    /// source's beginning a discontinuity.
    has_played: bool,
    gap: Option<Gap>,
    shared: PumpEnd,
}

/// The one source that is followed.
struct Following {
    attempt: u64,
    source: Box<Source>,
    aligner: Aligner,
    watch: PayloadWatch,
    /// `None` for a source that would lose what is not read in time.
    hold: Option<Hold>,
    /// When payload came last. While the source is held it is the end of that: nothing can come before.
    last_payload: Instant,
    unsynced_since: Option<Instant>,
    is_playing: bool,
}

impl Following {
    /// Until when it is not read.
    fn held_until(&self, now: Instant) -> Option<Instant> {
        self.hold.as_ref().and_then(|it| it.until(now))
    }
}

/// A time without a source, after something has played.
struct Gap {
    began: Instant,
    /// Nothing more is written once the gap has lasted too long.
    next_filler: Option<Instant>,
}

enum Happened {
    Told(Option<Wanted>),
    Read(Result<Bytes, UpstreamError>),
    TimeCame,
}

impl<N: Fn(PumpMessage)> Pump<N> {
    async fn run(mut self) {
        let mut sleep = pin!(sleep_until(self.began));
        let mut n_bytes = 0;
        loop {
            let held_until = self.following.as_ref().and_then(|it| it.held_until(Instant::now()));
            let deadline = [self.deadline(), held_until].into_iter().flatten().min();
            if let Some(deadline) = deadline
                && sleep.deadline() != deadline
            {
                sleep.as_mut().reset(deadline);
            }
            // What the channel says comes before bytes, and bytes before timers; timers are looked at
            // after each event, so a flood of bytes cannot hold them up.
            let happened = tokio::select! {
                biased;
                told = self.shared.told() => Happened::Told(told),
                read = read(&mut self.following), if held_until.is_none() => Happened::Read(read),
                () = &mut sleep, if deadline.is_some() => Happened::TimeCame,
            };
            match happened {
                Happened::Told(None) => return,
                Happened::Told(Some(Wanted::Follow(attempt, source))) => self.follow(attempt, source),
                Happened::Told(Some(Wanted::Release)) => self.leave(),
                Happened::Read(Ok(bytes)) => {
                    n_bytes += bytes.len();
                    self.take(bytes);
                }
                Happened::Read(Err(cause)) => self.lose(cause),
                Happened::TimeCame => {}
            }
            self.keep_time();
            if n_bytes >= TURN_BYTES {
                n_bytes = 0;
                yield_now().await;
            }
        }
    }

    /// When something is to be done at the latest, if nothing happens before.
    fn deadline(&self) -> Option<Instant> {
        let splice = self.splice.deadline().map(|it| self.began + it);
        let source = self.following.as_ref().map(|it| {
            let stall = it.last_payload + self.settings.stall_timeout;
            it.unsynced_since.map_or(stall, |since| stall.min(since + self.settings.sync_lost_timeout))
        });
        let filler = self.gap.as_ref().filter(|_| self.following.is_none()).and_then(|it| it.next_filler);
        [self.writer.deadline(), splice, source, filler].into_iter().flatten().min()
    }

    /// Does what is due.
    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.splice.deadline().is_some_and(|it| self.began + it <= now) {
            self.splice.tick(now - self.began, &mut self.out);
            self.write(now);
        }
        if self.writer.deadline().is_some_and(|it| it <= now) {
            self.writer.flush(now);
        }
        if let Some(following) = &self.following {
            let has_lost_sync =
                following.unsynced_since.is_some_and(|it| it + self.settings.sync_lost_timeout <= now);
            if has_lost_sync {
                self.lose(Cause::SyncLost.into());
            } else if following.last_payload + self.settings.stall_timeout <= now {
                self.lose(Cause::Stall.into());
            }
        }
        self.fill(now);
    }

    fn follow(&mut self, attempt: u64, source: Box<Source>) {
        self.leave();
        debug!(attempt, source = ?source.info(), "pump follows");
        self.shared.begin_clock(attempt, self.settings.buffering_timeout);
        let now = Instant::now();
        self.following = Some(Following {
            attempt,
            hold: source.waits_for_its_reader().then(|| Hold::new(self.settings.ahead_max, now)),
            source,
            aligner: Aligner::new(),
            watch: PayloadWatch::default(),
            last_payload: now,
            unsynced_since: None,
            is_playing: false,
        });
    }

    /// Lets go of the source, whose socket is closing when this returns.
    fn leave(&mut self) {
        let Some(following) = self.following.take() else { return };
        drop(following);
        let now = Instant::now();
        self.shared.end_clock();
        // Here and not when the next one comes: what was collected of this one must not come out.
        self.splice.change(now - self.began);
        self.writer.flush(now);
        if self.has_played {
            // A source that never played does not end the gap in which it was tried.
            let gap = self.gap.get_or_insert(Gap { began: now, next_filler: None });
            gap.next_filler = Some(now + self.settings.filler_interval);
        }
    }

    fn lose(&mut self, cause: UpstreamError) {
        let Some(attempt) = self.following.as_ref().map(|it| it.attempt) else { return };
        self.leave();
        debug!(attempt, "pump lost its source: {cause}");
        (self.news)(PumpMessage::Lost { attempt, cause });
    }

    /// Carries bytes of the source into the ring.
    fn take(&mut self, bytes: Bytes) {
        let now = Instant::now();
        let Some(following) = &mut self.following else { return };
        following.aligner.push(bytes);
        let at = now - self.began;
        while let Some(run) = following.aligner.next() {
            for packet in packets(&run) {
                if following.watch.packet(packet) {
                    following.last_payload = now;
                }
                // A packet that carries the clock need not carry anything else.
                let clock_pid = following.watch.tables().map(|it| it.pmt.pcr_pid);
                let header = Packet::new(packet);
                if let Some(pcr) = header.pcr().filter(|_| clock_pid == Some(header.pid())) {
                    self.shared.clock(pcr, header.discontinuity(), now);
                    if let Some(hold) = &mut following.hold {
                        hold.pcr(pcr, header.discontinuity(), now);
                    }
                }
                self.splice.packet(packet, at, &mut self.out);
            }
        }
        if following.watch.take_news() {
            self.shared.tables(following.watch.tables());
        }
        following.unsynced_since =
            if following.aligner.in_sync() { None } else { following.unsynced_since.or(Some(now)) };
        if let Some(until) = following.held_until(now) {
            // Time in which we do not read is no time in which nothing comes.
            following.last_payload = until;
            following.unsynced_since = following.unsynced_since.map(|_| until);
            self.shared.held(until);
        }
        self.write(now);
    }

    /// Puts what the splice made into the ring.
    fn write(&mut self, now: Instant) {
        if self.out.is_empty() {
            return;
        }
        let Some(following) = self.following.as_mut() else {
            self.out.clear();
            return;
        };
        let is_first = !following.is_playing;
        if is_first && self.has_played {
            self.writer.discontinuity_next();
        }
        self.writer.push_packets(&self.out, now);
        self.out.clear();
        if self.out.capacity() > OUT_BYTES_KEPT {
            self.out = BytesMut::new();
        }
        if is_first {
            following.is_playing = true;
            let attempt = following.attempt;
            // At once, so that whoever waits for the first chunk need not wait for a full one.
            self.writer.flush(now);
            self.has_played = true;
            self.gap = None;
            debug!(attempt, "pump plays");
            (self.news)(PumpMessage::Playing(attempt));
        }
    }

    /// Keeps players connected while there is nothing to play.
    fn fill(&mut self, now: Instant) {
        if self.following.is_some() {
            return;
        }
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

/// The next bytes of the source; never, when none is followed.
async fn read(following: &mut Option<Following>) -> Result<Bytes, UpstreamError> {
    match following {
        Some(following) => following.source.read().await,
        None => pending().await,
    }
}
