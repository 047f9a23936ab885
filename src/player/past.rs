//! A part of the past that goes on: the parts that follow it, and then the channel as it is.
//!
//! Nobody knows the length of such an answer, so it has no ranges. How far the viewer is follows from the clock of the
//! stream, and the next part is asked for from there:
//!
//! ```text
//! part ─► end or cut ─┬─ nothing new came ─┬─ nearly live ─► the channel
//!                     │                    └─ else ────────► the answer ends
//!                     ├─ the present ──────────────────────► the channel
//!                     └─ else ─────────────────────────────► next part, without what was sent already
//! ```

use std::future::Future;
use std::io;
use std::pin::Pin;

use actors::{VodBody, now_ms};
use bytes::{Bytes, BytesMut};
use domain::catchup::ArchiveTimes;
use futures_util::Stream;
use futures_util::stream::{StreamExt, poll_fn, unfold};
use media::{PACKET, PCR_HZ, Packet, Tail, pcr_step};
use tracing::info;

use crate::http::reply::Refusal;
use crate::http::stream::Guard;

/// A viewer who is this near to the present goes on with the channel, in seconds.
const NEAR_S: i64 = 15;
/// The same if the archive has nothing newer: providers add to it some minutes late.
const ARCHIVE_LAG_S: i64 = 300;
/// A part that brings less than this is the end of the archive, in seconds.
const PROGRESS_MIN_S: i64 = 3;
/// Maximum time for which a key frame is awaited after what was sent already, in seconds.
const KEY_FRAME_WAIT_S: i64 = 10;
/// Maximum number of parts in one answer.
const PARTS_MAX: usize = 1_000;
/// Maximum duration that is asked for, in seconds.
const DURATION_MAX_S: i64 = super::catchup::MINUTES_MAX * 60;

/// The future of what is opened.
pub(super) type Opening<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens what the answer continues with. The previous part was closed.
pub(super) trait Continuation: Send + 'static {
    /// Opens a part; `None` if there is none.
    fn part(&mut self, times: ArchiveTimes) -> Opening<'_, Option<OpenedPart>>;

    /// Opens the channel as it is.
    fn live(&mut self) -> Opening<'_, Result<(Tail, Guard), Refusal>>;
}

/// An opened part.
pub(super) struct OpenedPart {
    pub(super) body: VodBody,
    /// Where the provider begins, in seconds since 1970: the wanted start, or the beginning of its minute.
    pub(super) begins_at: i64,
}

/// The continuation of an answer.
pub(super) struct WantedPast {
    /// The start, in seconds since 1970.
    pub(super) start: i64,
    /// The end, in seconds since 1970.
    pub(super) end: i64,
    /// Whether the channel follows at the present.
    pub(super) goes_live: bool,
}

/// Returns the bytes of a part, and of everything that follows it.
pub(super) fn follow(
    wanted: WantedPast,
    first: OpenedPart,
    next: impl Continuation,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let OpenedPart { body, begins_at } = first;
    let clock = PartClock::new(begins_at, wanted.start * 1000, false);
    let past = Past { wanted, next, clock, phase: Phase::Part(body), n_parts: 1 };
    unfold(past, |mut past| async move { past.next().await.map(|it| (it, past)) })
}

struct Past<C> {
    wanted: WantedPast,
    next: C,
    clock: PartClock,
    phase: Phase,
    n_parts: usize,
}

enum Phase {
    Part(VodBody),
    Live { tail: Tail, _guard: Guard },
    Over,
}

/// Why a part is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartEnd {
    Complete,
    Cut,
}

impl<C: Continuation> Past<C> {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match &mut self.phase {
                Phase::Part(body) => {
                    let end = match poll_fn(|cx| Pin::new(&mut *body).poll_next(cx)).next().await {
                        Some(Ok(bytes)) => match self.clock.pass(&bytes) {
                            passed if passed.is_empty() => continue,
                            passed => return Some(Ok(passed)),
                        },
                        Some(Err(_)) => PartEnd::Cut,
                        None => PartEnd::Complete,
                    };
                    // Closed before anything else is opened.
                    self.phase = Phase::Over;
                    if !self.advance().await && end == PartEnd::Cut {
                        return Some(Err(io::Error::other("the rest of the part is not available")));
                    }
                }
                Phase::Live { tail, .. } => match tail.chunk().await {
                    Ok(bytes) => return Some(Ok(bytes)),
                    Err(end) => {
                        self.phase = Phase::Over;
                        return end.is_abrupt().then(|| Err(io::Error::other(end.to_string())));
                    }
                },
                Phase::Over => return None,
            }
        }
    }

    /// Opens what follows the part that ended. Returns whether there is anything.
    async fn advance(&mut self) -> bool {
        let (reached, now) = (self.clock.reached_ms(), now_ms());
        let missing = now - reached;
        let step = after_part(&self.wanted, reached, now, self.clock.has_progressed());
        if step == Step::Part && self.n_parts < PARTS_MAX {
            self.n_parts += 1;
            let start = reached / 1000;
            let until = if self.wanted.goes_live { self.wanted.end.max(now / 1000) } else { self.wanted.end };
            let duration = (until - start).clamp(1, DURATION_MAX_S);
            let times = ArchiveTimes { start, duration, now: now / 1000 };
            if let Some(OpenedPart { body, begins_at }) = self.next.part(times).await {
                self.clock = PartClock::new(begins_at, reached, true);
                self.phase = Phase::Part(body);
                return true;
            }
        }
        let is_near = self.wanted.goes_live && missing <= ARCHIVE_LAG_S * 1000;
        if step == Step::End || !is_near {
            return false;
        }
        match self.next.live().await {
            Ok((tail, guard)) => {
                self.phase = Phase::Live { tail, _guard: guard };
                true
            }
            Err(refusal) => {
                info!("the past of a channel does not go on live: {refusal}");
                false
            }
        }
    }
}

/// The part, the channel or the end that follows a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Part,
    Live,
    End,
}

/// Decides what follows a part that ended at `reached`. Times are in milliseconds since 1970.
fn after_part(wanted: &WantedPast, reached: i64, now: i64, has_progressed: bool) -> Step {
    let missing = if wanted.goes_live { now - reached } else { wanted.end * 1000 - reached };
    match (wanted.goes_live, has_progressed) {
        _ if missing <= NEAR_S * 1000 => {
            if wanted.goes_live {
                Step::Live
            } else {
                Step::End
            }
        }
        (_, true) => Step::Part,
        (true, false) if missing <= ARCHIVE_LAG_S * 1000 => Step::Live,
        (_, false) => Step::End,
    }
}

/// Follows the clock of a part, and leaves out what was sent before. Other streams than transport streams pass unchanged
/// and have no clock.
struct PartClock {
    /// Milliseconds since 1970.
    begins_at: i64,
    /// The time that the viewer had reached before the part, in milliseconds since 1970.
    before: i64,
    /// Whether packets before that time are left out.
    skips: bool,
    /// The beginning of a packet.
    rest: BytesMut,
    /// The PID of the clock, and its last value.
    last: Option<(u16, u64)>,
    /// Time since the first value, in ticks of the PCR.
    ticks: u64,
    is_transport_stream: bool,
}

impl PartClock {
    fn new(begins_at: i64, before: i64, skips: bool) -> Self {
        let begins_at = begins_at * 1000;
        let skips = skips && begins_at < before;
        let (rest, last) = (BytesMut::new(), None);
        Self { begins_at, before, skips, rest, last, ticks: 0, is_transport_stream: true }
    }

    /// Returns how far the part is, in milliseconds since 1970.
    fn reached_ms(&self) -> i64 {
        self.clock_ms().max(self.before)
    }

    /// Returns the time that the clock shows, in milliseconds since 1970.
    fn clock_ms(&self) -> i64 {
        self.begins_at.saturating_add(i64::try_from(self.ticks / (PCR_HZ / 1000)).unwrap_or(i64::MAX))
    }

    /// Returns whether the part brought anything new.
    fn has_progressed(&self) -> bool {
        self.is_transport_stream && self.reached_ms() - self.before >= PROGRESS_MIN_S * 1000
    }

    /// Takes the next bytes, and returns those to be sent: whole packets.
    fn pass(&mut self, bytes: &[u8]) -> Bytes {
        self.rest.extend_from_slice(bytes);
        if !self.is_transport_stream {
            return self.rest.split().freeze();
        }
        let mut n_left_out = 0;
        let whole = self.rest.len() / PACKET * PACKET;
        let mut at = 0;
        while at < whole {
            let Some(packet) = self.rest[at..].first_chunk().map(Packet::new) else { break };
            if !packet.has_sync() {
                self.is_transport_stream = false;
                self.skips = false;
                let passed = self.rest.split_off(n_left_out);
                self.rest.clear();
                return passed.freeze();
            }
            let (pid, pcr) = (packet.pid(), packet.pcr());
            let (is_break, is_key_frame) = (packet.discontinuity(), packet.random_access());
            if let Some(pcr) = pcr {
                match self.last {
                    Some((clock, last)) if clock == pid => {
                        self.ticks += pcr_step(last, pcr, is_break).unwrap_or(0);
                        self.last = Some((pid, pcr));
                    }
                    None => self.last = Some((pid, pcr)),
                    Some(_) => {}
                }
            }
            if self.skips {
                let new = self.clock_ms() - self.before;
                self.skips = new < 0 || !is_key_frame && new < KEY_FRAME_WAIT_S * 1000;
                if self.skips {
                    n_left_out = at + PACKET;
                }
            }
            at += PACKET;
        }
        let mut passed = self.rest.split_to(whole);
        passed.split_off(n_left_out).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: u8 = 0x47;
    const CLOCK: u16 = 256;

    /// Returns a packet with the clock at this second, or without a clock.
    fn packet(second: Option<u64>, is_key_frame: bool) -> Vec<u8> {
        let mut packet = vec![0xFF; PACKET];
        packet[..6].copy_from_slice(&[SYNC, (CLOCK >> 8) as u8, CLOCK as u8, 0x30, 7, 0]);
        packet[5] |= if is_key_frame { 0x40 } else { 0 };
        if let Some(second) = second {
            let base = second * 90_000;
            packet[5] |= 0x10;
            packet[6..10].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
            packet[10..12].copy_from_slice(&[((base & 1) << 7) as u8, 0]);
        }
        packet
    }

    /// Returns one packet for each second, of which every fourth one begins with a key frame.
    fn seconds(range: std::ops::Range<u64>) -> Vec<u8> {
        range.flat_map(|it| packet(Some(it), it % 4 == 0)).collect()
    }

    #[test]
    fn the_clock_of_a_part_tells_how_far_the_viewer_is() {
        let mut clock = PartClock::new(1_000, 1_000_000, false);
        let all = [seconds(50..60), packet(None, false), seconds(2_000..2_005)].concat();
        // Pieces do not end with packets.
        let passed: Vec<u8> = all.chunks(100).flat_map(|it| clock.pass(it)).collect();
        assert!(passed == all, "every byte is passed on");
        assert_eq!(clock.reached_ms(), 1_013_000, "a jump takes no time");
        assert!(clock.has_progressed());
    }

    #[test]
    fn what_the_viewer_had_is_left_out_up_to_the_next_key_frame() {
        // The provider begins at the minute, six seconds before what the viewer had.
        let mut clock = PartClock::new(1_000, 1_006_000, true);
        let all = seconds(100..120);
        let passed: Vec<u8> = all.chunks(1_000).flat_map(|it| clock.pass(it)).collect();
        assert!(passed == all[8 * PACKET..], "{} of {} bytes", passed.len(), all.len());
        assert_eq!(clock.reached_ms(), 1_019_000);
        // Nothing new: the archive ends where the viewer is.
        let mut same = PartClock::new(1_000, 1_006_000, true);
        assert!(same.pass(&seconds(100..107)).is_empty() && !same.has_progressed());
    }

    #[test]
    fn other_streams_pass_and_tell_no_time() {
        let mut clock = PartClock::new(1_000, 1_006_000, true);
        let text = b"#EXTM3U\n".repeat(100);
        let passed: Vec<u8> = text.chunks(300).flat_map(|it| clock.pass(it)).collect();
        assert!(passed == text && !clock.has_progressed());
    }

    #[test]
    fn after_a_part_follows_the_next_one_the_channel_or_the_end() {
        let live = |missing: i64, has_progressed| {
            let wanted = WantedPast { start: 0, end: 9_000, goes_live: true };
            after_part(&wanted, 1_000_000 - missing * 1000, 1_000_000, has_progressed)
        };
        assert_eq!((live(10, true), live(10, false)), (Step::Live, Step::Live));
        assert_eq!((live(200, true), live(200, false)), (Step::Part, Step::Live));
        assert_eq!((live(900, true), live(900, false)), (Step::Part, Step::End));
        let past = |missing: i64, has_progressed| {
            let wanted = WantedPast { start: 0, end: 1_000, goes_live: false };
            after_part(&wanted, 1_000_000 - missing * 1000, 5_000_000, has_progressed)
        };
        assert_eq!((past(10, true), past(200, true), past(200, false)), (Step::End, Step::Part, Step::End));
    }
}
