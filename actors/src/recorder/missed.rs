//! A part of a recording that comes from the archive of its channel's provider.
//!
//! The archive has the lowest priority: it is read with a connection that is free and that nobody waits for, which is given
//! back as soon as anybody else needs it. What is missing then is read later, from the time that was reached. So far as the
//! clock of the stream tells the time, packets look as if they had arrived when they were broadcast.
//!
//! ```text
//!  not open ─► part ─┬─ the end is reached ─────────────────► whole
//!     ▲   ▲          ├─ it ended, and brought something ─┐
//!     │   └──────────┼───────────────────────────────────┘
//!     └── a pause ◄──┴─ needed by others, lost, nothing new
//! ```

use std::ops::Range;
use std::time::Duration;

use domain::catchup::ArchiveTimes;
use domain::channel::Channel;
use domain::plan::{ArchiveRefusal, TitleCandidate};
use domain::stream_profile::Delivery;
use media::ts::packet::PACKET;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::state::RecorderState;
use crate::clock::now_ms;
use crate::recording_files::file::Arrived;
use crate::recording_files::intake::{BATCH_BYTES_MAX, WRITE_PERIOD};
use crate::vod::{PartClock, PastEvent, PastReader};

/// An archive that ends this near to the wanted end is whole, in milliseconds: addresses have minutes, and clocks differ.
const NEAR_MS: i64 = 3_000;
/// Maximum duration that is asked for, in seconds.
const DURATION_MAX_S: i64 = 8 * 60 * 60;
/// Packets that share a time of arrival, in bytes.
const PIECE_BYTES: usize = 16 * PACKET;
/// A part that brings this many bytes in which its clock stands still does not go on, in bytes.
const IDLE_BYTES_MAX: usize = 64 << 20;
/// Pauses between tries after failures.
const PAUSE_MIN: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Maximum number of failures in a row.
const FAILURES_MAX: u32 = 20;

const REDIRECTED: &str = "the default stream profile sends players to the provider's archive";
const NO_TRANSPORT_STREAM: &str = "the archive does not send a transport stream";

/// The next piece of a part.
pub(super) enum Fetched {
    /// Packets at the times at which they were broadcast. With `is_first` they come from a new connection.
    Packets { arrived: Vec<Arrived>, is_first: bool },
    /// Nothing is missing any more.
    Whole,
    /// The rest may come after a pause.
    Later { pause: Duration, reason: String },
    /// The rest does not come.
    Never { reason: String },
}

/// The reader of a part.
pub(super) struct MissedPart {
    channel: Uuid,
    /// In milliseconds since 1970.
    end: i64,
    clock: PartClock,
    reader: PastReader,
    is_open: bool,
    /// Nothing of the open connection was returned.
    is_first: bool,
    /// Why the open connection ended, once it has.
    ended: Option<Ended>,
    /// Bytes since the clock has moved.
    n_idle: usize,
    n_failures: u32,
}

/// Why a connection ended.
enum Ended {
    Complete,
    Lost(String),
    Needed,
}

impl Drop for MissedPart {
    fn drop(&mut self) {
        self.reader.close();
    }
}

impl MissedPart {
    /// `times` are those of the missing part in milliseconds since 1970.
    pub(super) fn new(shared: &RecorderState, channel: Uuid, times: Range<i64>) -> Self {
        Self {
            channel,
            end: times.end,
            clock: PartClock::new(times.start.div_euclid(1000), times.start, true),
            reader: shared.vod.past_reader(channel),
            is_open: false,
            is_first: true,
            ended: None,
            n_idle: 0,
            n_failures: 0,
        }
    }

    /// Returns what comes next. If the future is dropped, what it had read is lost.
    pub(super) async fn next(&mut self, shared: &RecorderState) -> Fetched {
        loop {
            if !self.is_open {
                if self.end - self.clock.reached_ms() <= NEAR_MS {
                    return Fetched::Whole;
                }
                if let Err(other) = self.open(shared).await {
                    self.reader.close();
                    return other;
                }
            }
            if self.ended.is_none() {
                let arrived = self.read().await;
                if !self.clock.is_transport_stream() {
                    self.close();
                    return Fetched::Never { reason: NO_TRANSPORT_STREAM.to_owned() };
                }
                if !arrived.is_empty() {
                    let is_first = std::mem::replace(&mut self.is_first, false);
                    return Fetched::Packets { arrived, is_first };
                }
            }
            let Some(ended) = self.ended.take() else { continue };
            self.close();
            let has_progressed = self.clock.has_progressed();
            if has_progressed {
                self.n_failures = 0;
            }
            match ended {
                Ended::Needed => return busy(),
                Ended::Complete | Ended::Lost(_) if has_progressed => {}
                Ended::Complete if self.end - self.clock.reached_ms() <= NEAR_MS => {}
                Ended::Complete => return self.failed("the archive has nothing newer".to_owned()),
                Ended::Lost(reason) => return self.failed(reason),
            }
        }
    }

    fn close(&mut self) {
        self.reader.close();
        self.is_open = false;
    }

    async fn open(&mut self, shared: &RecorderState) -> Result<(), Fetched> {
        let never = |reason: String| Fetched::Never { reason };
        let (reached, now) = (self.clock.reached_ms(), now_ms() / 1000);
        let channel = shared.parts.get().and_then(|it| {
            let channels = it.models.channels.load();
            channels.one_by("uuid", self.channel.as_bytes()).cloned()
        });
        let channel = channel.ok_or_else(|| never("the channel was deleted".to_owned()))?;
        let start = reached.div_euclid(1000);
        let duration = (self.end + 999).div_euclid(1000) - start;
        let times = ArchiveTimes { start, duration: duration.clamp(1, DURATION_MAX_S), now };
        let candidates = candidates(shared, &channel, times).map_err(|it| match it {
            NoArchive::Refused(ArchiveRefusal::Future) => self.failed(ArchiveRefusal::Future.to_string()),
            it => never(it.to_string()),
        })?;
        let opening = timeout(shared.env.settings().start_timeout, self.reader.open(&candidates));
        match opening.await {
            Ok(Ok(Some(opened))) => {
                self.clock = PartClock::new(opened.start.unwrap_or(start), reached, true);
                (self.is_open, self.is_first, self.n_idle) = (true, true, 0);
                Ok(())
            }
            Ok(Ok(None)) => Err(busy()),
            Ok(Err(why)) => Err(self.failed(why.to_string())),
            Err(_) => Err(self.failed("the archive did not answer in time".to_owned())),
        }
    }

    /// Reads for some time, or until the connection ends.
    async fn read(&mut self) -> Vec<Arrived> {
        let (mut arrived, mut n_bytes) = (Vec::new(), 0);
        let until = Instant::now() + WRITE_PERIOD;
        while n_bytes < BATCH_BYTES_MAX && self.ended.is_none() {
            let next = match arrived.is_empty() {
                true => self.reader.next().await,
                false => {
                    match timeout(until.saturating_duration_since(Instant::now()), self.reader.next()).await {
                        Ok(next) => next,
                        Err(_) => break,
                    }
                }
            };
            match next {
                PastEvent::Bytes(bytes) => n_bytes += self.pass(&bytes, &mut arrived),
                PastEvent::End => self.ended = Some(Ended::Complete),
                PastEvent::Lost(error) => self.ended = Some(Ended::Lost(error.to_string())),
                PastEvent::Needed => self.ended = Some(Ended::Needed),
            }
        }
        arrived
    }

    /// Adds what the bytes have of the missing part. Returns its size.
    fn pass(&mut self, bytes: &[u8], arrived: &mut Vec<Arrived>) -> usize {
        let (before, mut n_bytes) = (self.clock.clock_ms(), 0);
        for piece in bytes.chunks(PIECE_BYTES) {
            let bytes = self.clock.pass(piece);
            if !self.clock.is_transport_stream() {
                break;
            }
            if self.clock.clock_ms() >= self.end {
                self.ended = Some(Ended::Complete);
                return n_bytes;
            }
            if !bytes.is_empty() {
                n_bytes += bytes.len();
                arrived.push(Arrived { at: self.clock.reached_ms(), bytes });
            }
        }
        self.n_idle = if self.clock.clock_ms() > before { 0 } else { self.n_idle + bytes.len() };
        if !self.clock.is_transport_stream() || self.n_idle > IDLE_BYTES_MAX {
            self.ended = Some(Ended::Lost("its clock stands still".to_owned()));
        }
        n_bytes
    }

    /// Returns what follows a failure.
    fn failed(&mut self, reason: String) -> Fetched {
        self.n_failures += 1;
        if self.n_failures > FAILURES_MAX {
            return Fetched::Never { reason };
        }
        let pause = PAUSE_MIN * 2_u32.saturating_pow(self.n_failures - 1);
        Fetched::Later { pause: pause.min(PAUSE_MAX), reason }
    }
}

impl RecorderState {
    /// Returns whether an archive of a channel has a time in milliseconds since 1970. `now` is in seconds.
    pub(super) fn archive_has(&self, channel: &Channel, times: &Range<i64>, now: i64) -> bool {
        let start = times.start.div_euclid(1000);
        let duration = (times.end.div_euclid(1000) - start).clamp(1, DURATION_MAX_S);
        candidates(self, channel, ArchiveTimes { start, duration, now }).is_ok()
    }
}

/// Returns the wait for a connection. It has no limit of its own: the archive forgets what is too old.
fn busy() -> Fetched {
    Fetched::Later { pause: PAUSE_MIN, reason: "others need all connections of the archive".to_owned() }
}

/// Why a part cannot come from an archive.
#[derive(Debug, thiserror::Error)]
enum NoArchive {
    #[error("{0}")]
    Refused(ArchiveRefusal),
    #[error("{REDIRECTED}")]
    Redirected,
}

fn candidates(
    shared: &RecorderState,
    channel: &Channel,
    times: ArchiveTimes,
) -> Result<Vec<TitleCandidate>, NoArchive> {
    let candidates = shared.env.plans.archive(channel, times, None).map_err(NoArchive::Refused)?;
    match candidates.iter().any(|it| it.candidate.profile == Delivery::Redirect) {
        true => Err(NoArchive::Redirected),
        false => Ok(candidates),
    }
}
