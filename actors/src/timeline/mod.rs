//! What happened to a live channel, line by line: why it switched, why it stopped.
//!
//! One run is one life of a channel, from its first join to its end. Lines are in memory, bounded, and outlive the
//! channel for a while; nothing in them carries an address or a password.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::ids::{ProfileId, StreamId};
use domain::plan::Candidate;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::now_ms;
use crate::plans::Target;

/// Lines kept of one run; the oldest go first.
pub(crate) const ENTRIES_MAX: usize = 200;

/// Runs that are kept after their end; who ended first goes first.
pub(crate) const ENDED_MAX: usize = 100;

/// How long a run is kept after its end.
pub(crate) const ENDED_KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// Characters of a detail; providers have a say in some of them.
const DETAIL_CHARS_MAX: usize = 300;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEntryKind {
    /// A slot was asked for, in order to play one of some streams.
    SlotRequested,
    /// No slot came free.
    NoSlot,
    /// A slot was granted, and its stream is being opened.
    Opening,
    /// A stream ended, or never began.
    Lost,
    /// The first stream of the run plays.
    Started,
    /// The stream that played last plays again.
    Reconnected,
    /// Another stream plays after a loss.
    FailedOver,
    /// Somebody asked for another stream.
    SwitchRequested,
    /// Another stream plays because someone, or a rule, wanted it.
    Switched,
    /// The stream that was asked for does not play.
    SwitchFailed,
    /// The wish for another stream was not followed at all.
    SwitchRefused,
    /// Every stream was tried; the next round begins later.
    Backoff,
    /// The slot was given up for another channel.
    Yielded,
    /// Players were sent to the provider's own address.
    Redirected,
    /// The records of the channel changed.
    PlanChanged,
    /// The last viewer left.
    LastViewerLeft,
    /// There is nothing left to try.
    GaveUp,
    /// The channel ended.
    Ended,
}

/// One line: something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    /// Milliseconds since 1970.
    pub at: i64,
    /// What happened.
    pub kind: RunEntryKind,
    /// The playout's state after it.
    pub state: &'static str,
    /// Why, in one word of a fixed set.
    pub cause: Option<&'static str>,
    /// Why, for people; may be empty.
    pub detail: String,
    /// The stream it is about.
    pub stream: Option<RunEntryStream>,
    /// What the provider answered, where that is why.
    pub upstream_status: Option<u16>,
    /// How long nothing had played.
    pub gap: Option<Duration>,
    /// Bytes the run had taken in by then.
    pub bytes_in: u64,
}

/// A stream, and whose slot it plays with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntryStream {
    /// The stream.
    pub id: StreamId,
    /// Its name.
    pub name: String,
    /// The account's name.
    pub account: String,
    /// The profile of the account.
    pub profile: ProfileId,
}

impl RunEntry {
    pub(crate) fn new(kind: RunEntryKind) -> Self {
        Self {
            at: now_ms(),
            kind,
            state: "",
            cause: None,
            detail: String::new(),
            stream: None,
            upstream_status: None,
            gap: None,
            bytes_in: 0,
        }
    }

    pub(crate) fn about(mut self, candidate: &Candidate) -> Self {
        self.stream = Some(RunEntryStream {
            id: candidate.stream,
            name: candidate.stream_name.clone(),
            account: candidate.pool.account_name.clone(),
            profile: candidate.pool.profile,
        });
        self
    }

    pub(crate) fn cause(self, label: &'static str) -> Self {
        Self { cause: Some(label).filter(|it| !it.is_empty()), ..self }
    }

    pub(crate) fn detail(self, text: impl std::fmt::Display) -> Self {
        Self { detail: text.to_string().chars().take(DETAIL_CHARS_MAX).collect(), ..self }
    }

    pub(crate) fn gap(self, gap_ms: u64) -> Self {
        Self { gap: Some(Duration::from_millis(gap_ms)), ..self }
    }
}

/// One life of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelRun {
    /// What was watched.
    pub target: Target,
    /// Its name at the start.
    pub name: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// The same; `None` while it lives.
    pub ended_at: Option<i64>,
    /// Lines that were dropped to make room.
    pub n_dropped: u64,
    /// The newest lines, oldest first; at most 200.
    pub entries: Vec<RunEntry>,
}

struct Kept {
    target: Target,
    name: String,
    started_at: i64,
    ended: Option<(Instant, i64)>,
    n_dropped: u64,
    entries: VecDeque<RunEntry>,
}

/// The timelines of all runs, those that ended a while ago included.
#[derive(Default)]
pub(crate) struct Timelines {
    /// By the serial of the live channel. Bounded by the live channels and [`ENDED_MAX`].
    runs: Mutex<BTreeMap<u64, Kept>>,
}

impl Timelines {
    /// A run begins. It ends when what this returns is dropped.
    pub(crate) fn begin(self: &Arc<Self>, serial: u64, target: Target, name: &str) -> Timeline {
        let kept = Kept {
            target,
            name: name.to_owned(),
            started_at: now_ms(),
            ended: None,
            n_dropped: 0,
            entries: VecDeque::new(),
        };
        let mut runs = self.runs.lock();
        runs.insert(serial, kept);
        forget(&mut runs);
        Timeline { all: self.clone(), serial }
    }

    /// The runs of a target, newest first.
    pub(crate) fn of(&self, is_wanted: impl Fn(Target) -> bool) -> Vec<ChannelRun> {
        let mut runs = self.runs.lock();
        forget(&mut runs);
        let run = |kept: &Kept| ChannelRun {
            target: kept.target,
            name: kept.name.clone(),
            started_at: kept.started_at,
            ended_at: kept.ended.map(|it| it.1),
            n_dropped: kept.n_dropped,
            entries: kept.entries.iter().cloned().collect(),
        };
        runs.values().rev().filter(|it| is_wanted(it.target)).map(run).collect()
    }
}

/// Lets go of what ended long ago, and of the first to end where there are too many.
fn forget(runs: &mut BTreeMap<u64, Kept>) {
    runs.retain(|_, it| it.ended.is_none_or(|(at, _)| at.elapsed() < ENDED_KEPT_FOR));
    let ended = |(serial, it): (&u64, &Kept)| it.ended.map(|(at, _)| (at, *serial));
    let mut all: Vec<_> = runs.iter().filter_map(ended).collect();
    all.sort_unstable();
    let n_over = all.len().saturating_sub(ENDED_MAX);
    for (_, serial) in &all[..n_over] {
        runs.remove(serial);
    }
}

/// Where a live channel writes its lines.
pub(crate) struct Timeline {
    all: Arc<Timelines>,
    serial: u64,
}

impl Timeline {
    pub(crate) fn write(&self, line: RunEntry) {
        let mut runs = self.all.runs.lock();
        let Some(run) = runs.get_mut(&self.serial) else { return };
        if run.entries.len() >= ENTRIES_MAX {
            run.entries.pop_front();
            run.n_dropped += 1;
        }
        run.entries.push_back(line);
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        let mut runs = self.all.runs.lock();
        if let Some(run) = runs.get_mut(&self.serial) {
            run.ended = Some((Instant::now(), now_ms()));
        }
        forget(&mut runs);
    }
}
