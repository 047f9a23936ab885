//! A part of the past that goes on: the parts that follow it, and then the channel as it is.
//!
//! Nobody knows the length of such an answer, so it has no ranges. How far the viewer is follows from the clock of the
//! stream, and the next part is asked for from there:
//!
//! ```text
//! part ─► end or cut ─┬─ nothing newer ─┬─ nearly live ──► the channel
//!                     │                 └─ else ─────────► the answer ends
//!                     ├─ the present ──────────────────────► the channel
//!                     └─ else ─────────────────────────────► next part, without what was sent already
//! ```

use std::future::Future;
use std::io;
use std::pin::Pin;

use actors::{PartClock, now_ms};
use bytes::Bytes;
use domain::catchup::{ArchiveTimes, MINUTES_MAX};
use futures_util::Stream;
use futures_util::stream::{StreamExt, unfold};
use media::Tail;
use server::reply::Refusal;
use server::stream::Guard;
use tracing::info;

/// A viewer who is this near to the present goes on with the channel, in seconds.
const NEAR_S: i64 = 15;
/// The same if the archive has nothing newer: providers add to it some minutes late.
const ARCHIVE_LAG_S: i64 = 300;
/// Maximum number of parts in a row that were cut and brought nothing new.
const CUTS_MAX: usize = 3;
/// Maximum number of parts in one answer.
const PARTS_MAX: usize = 1_000;
/// Maximum duration that is asked for, in seconds.
const DURATION_MAX_S: i64 = MINUTES_MAX * 60;

/// The future of what is opened.
pub(super) type Opening<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens what the answer continues with. The previous part was closed.
pub(super) trait Continuation: Send + 'static {
    /// Opens a part; `None` if there is none.
    fn part(&mut self, times: ArchiveTimes) -> Opening<'_, Option<OpenedPart>>;

    /// Opens the channel as it is.
    fn live(&mut self) -> Opening<'_, Result<(Tail, Guard), Refusal>>;
}

/// The bytes of a part. Closed when it is dropped.
pub(super) type PartBody = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// An opened part.
pub(super) struct OpenedPart {
    pub(super) body: PartBody,
    /// Where it begins, in seconds since 1970: the wanted start, or the beginning of its minute.
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
    let past = Past { wanted, next, clock, phase: Phase::Part(body), n_parts: 1, n_cuts: 0 };
    unfold(past, |mut past| async move { past.next().await.map(|it| (it, past)) })
}

struct Past<C> {
    wanted: WantedPast,
    next: C,
    clock: PartClock,
    phase: Phase,
    n_parts: usize,
    /// Cuts since a part brought something new.
    n_cuts: usize,
}

enum Phase {
    Part(PartBody),
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
                    let end = match body.next().await {
                        Some(Ok(bytes)) => match self.clock.pass(&bytes) {
                            passed if passed.is_empty() => continue,
                            passed => return Some(Ok(passed)),
                        },
                        Some(Err(_)) => PartEnd::Cut,
                        None => PartEnd::Complete,
                    };
                    // Closed before anything else is opened.
                    self.phase = Phase::Over;
                    if !self.advance(end).await && end == PartEnd::Cut {
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
    async fn advance(&mut self, end: PartEnd) -> bool {
        let (reached, now) = (self.clock.reached_ms(), now_ms());
        let has_progressed = self.clock.has_progressed();
        self.n_cuts = if has_progressed { 0 } else { self.n_cuts + 1 };
        // What follows a cut is there, unless every try is cut.
        let was_cut = end == PartEnd::Cut && self.clock.is_transport_stream() && self.n_cuts <= CUTS_MAX;
        let mut has_more = (has_progressed || was_cut) && self.n_parts < PARTS_MAX;
        loop {
            match after_part(&self.wanted, reached, now, has_more) {
                Step::End => return false,
                Step::Live => return self.go_live().await,
                Step::Part if self.open_part(reached, now).await => return true,
                // The archive has nothing newer.
                Step::Part => has_more = false,
            }
        }
    }

    /// Opens the next part of the archive. Returns whether there is one.
    async fn open_part(&mut self, reached: i64, now: i64) -> bool {
        self.n_parts += 1;
        let start = reached / 1000;
        let until = if self.wanted.goes_live { self.wanted.end.max(now / 1000) } else { self.wanted.end };
        let duration = (until - start).clamp(1, DURATION_MAX_S);
        let times = ArchiveTimes { start, duration, now: now / 1000 };
        let Some(OpenedPart { body, begins_at }) = self.next.part(times).await else { return false };
        self.clock = PartClock::new(begins_at, reached, true);
        self.phase = Phase::Part(body);
        true
    }

    /// Goes on with the channel as it is. Returns whether it plays.
    async fn go_live(&mut self) -> bool {
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

/// Decides what follows a part that ended at `reached`. `has_more` is false if the archive had nothing newer. Times are in
/// milliseconds since 1970.
fn after_part(wanted: &WantedPast, reached: i64, now: i64, has_more: bool) -> Step {
    let goal = if wanted.goes_live { now } else { wanted.end * 1000 };
    let near = if has_more { NEAR_S } else { ARCHIVE_LAG_S };
    match (wanted.goes_live, goal - reached <= near * 1000) {
        (true, true) => Step::Live,
        (false, true) => Step::End,
        (_, false) if has_more => Step::Part,
        (_, false) => Step::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
