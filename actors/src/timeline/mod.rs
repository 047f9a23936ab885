//! The recorded steps of live channels: reasons of switches and stops.
//!
//! A run is one life of a channel, from its first join to its end. Entries are in memory, bounded, and outlive the
//! channel for a while; they contain neither addresses nor passwords.

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

/// Maximum number of entries of one run; the oldest are dropped first.
pub(crate) const ENTRIES_MAX: usize = 200;

/// Maximum number of ended runs; the one that ended first is dropped first.
pub(crate) const ENDED_MAX: usize = 100;

/// Time for which an ended run is record.
pub(crate) const ENDED_KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// Maximum number of characters of a detail, because some contain text of providers.
const DETAIL_CHARS_MAX: usize = 300;

/// The kind of a timeline entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEntryKind {
    /// A slot was requested for one of some streams.
    SlotRequested,
    /// No slot came free.
    NoSlot,
    /// A slot was granted, and its stream is being opened.
    Opening,
    /// A stream ended, or could not be opened.
    Lost,
    /// The stream that plays sends nothing for longer than usual; another one may be opened beside it.
    Silent,
    /// The stream that was silent sends again.
    Resumed,
    /// The stream that plays goes on without its picture or its sound.
    Lacking,
    /// The stream that plays has it again.
    Complete,
    /// The first stream of the run plays.
    Started,
    /// The stream that played last plays again.
    Reconnected,
    /// Another stream plays after a loss.
    FailedOver,
    /// The sound of another stream, or of the same one again, plays; its picture follows at the next key frame.
    PictureAwaited,
    /// The picture that was awaited begins with a key frame.
    PictureBegan,
    /// The picture of another stream, or of the same one again, begins without a key frame.
    NoKeyFrame,
    /// A manual switch was requested.
    SwitchRequested,
    /// Another stream plays because of a manual switch or a rule.
    Switched,
    /// The requested stream does not play.
    SwitchFailed,
    /// The requested switch was not begun.
    SwitchRefused,
    /// Every stream was tried; the next round starts later.
    Backoff,
    /// The slot was given to another channel.
    Yielded,
    /// Players were redirected to the provider.
    Redirected,
    /// This node opens the streams, for other nodes of the cluster too.
    Originates,
    /// Another node opens the streams, and this one connects to it.
    Pulling,
    /// The stream of another node is shown.
    Pulled,
    /// The connection to the other node ended.
    PullLost,
    /// The other node does not answer.
    OriginUnreachable,
    /// A source was opened that plays, but has something that a person should know.
    SourceNote,
    /// The records of the channel changed.
    PlanChanged,
    /// The last viewer left.
    LastViewerLeft,
    /// Nothing is left to try.
    GaveUp,
    /// The channel ended.
    Ended,
}

/// An entry of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    /// Milliseconds since 1970.
    pub at: i64,
    /// The kind of the entry.
    pub kind: RunEntryKind,
    /// The state of the playout after the step.
    pub state: &'static str,
    /// The cause, from a fixed set of labels.
    pub cause: Option<&'static str>,
    /// The cause, for people; may be empty.
    pub detail: String,
    /// The stream that the entry is about.
    pub stream: Option<RunEntryStream>,
    /// HTTP status of the provider, if it is the cause.
    pub upstream_status: Option<u16>,
    /// Length of the gap without a source.
    pub gap: Option<Duration>,
    /// Bytes that the run had received by then.
    pub bytes_in: u64,
}

/// The stream of an entry, with its account.
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

/// One run of a channel, from its first join to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelRun {
    /// Watched target.
    pub target: Target,
    /// Name of the target at the start.
    pub name: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// End in milliseconds since 1970; `None` while the channel is live.
    pub ended_at: Option<i64>,
    /// Number of entries that were dropped.
    pub n_dropped: u64,
    /// The newest entries, oldest first; at most 200.
    pub entries: Vec<RunEntry>,
}

struct RunRecord {
    target: Target,
    name: String,
    started_at: i64,
    ended: Option<(Instant, i64)>,
    n_dropped: u64,
    entries: VecDeque<RunEntry>,
}

/// The timelines of all runs, including those that ended recently.
#[derive(Default)]
pub(crate) struct Timelines {
    /// Runs by the serial of the live channel. Bounded by the live channels and [`ENDED_MAX`].
    runs: Mutex<BTreeMap<u64, RunRecord>>,
}

impl Timelines {
    /// Begins a run. It ends when the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>, serial: u64, target: Target, name: &str) -> Timeline {
        let record = RunRecord {
            target,
            name: name.to_owned(),
            started_at: now_ms(),
            ended: None,
            n_dropped: 0,
            entries: VecDeque::new(),
        };
        let mut runs = self.runs.lock();
        runs.insert(serial, record);
        drop_old(&mut runs);
        Timeline { all: self.clone(), serial }
    }

    /// Returns the runs of the wanted targets, newest first.
    pub(crate) fn runs(&self, is_wanted: impl Fn(Target) -> bool) -> Vec<ChannelRun> {
        let mut runs = self.runs.lock();
        drop_old(&mut runs);
        let run = |record: &RunRecord| ChannelRun {
            target: record.target,
            name: record.name.clone(),
            started_at: record.started_at,
            ended_at: record.ended.map(|it| it.1),
            n_dropped: record.n_dropped,
            entries: record.entries.iter().cloned().collect(),
        };
        runs.values().rev().filter(|it| is_wanted(it.target)).map(run).collect()
    }
}

/// Drops runs that ended long ago, and the oldest ones above the maximum.
fn drop_old(runs: &mut BTreeMap<u64, RunRecord>) {
    runs.retain(|_, it| it.ended.is_none_or(|(at, _)| at.elapsed() < ENDED_KEPT_FOR));
    let ended = |(serial, it): (&u64, &RunRecord)| it.ended.map(|(at, _)| (at, *serial));
    let mut all: Vec<_> = runs.iter().filter_map(ended).collect();
    all.sort_unstable();
    let n_over = all.len().saturating_sub(ENDED_MAX);
    for (_, serial) in &all[..n_over] {
        runs.remove(serial);
    }
}

/// The timeline of one live channel.
pub(crate) struct Timeline {
    all: Arc<Timelines>,
    serial: u64,
}

impl Timeline {
    pub(crate) fn write(&self, entry: RunEntry) {
        let mut runs = self.all.runs.lock();
        let Some(run) = runs.get_mut(&self.serial) else { return };
        if run.entries.len() >= ENTRIES_MAX {
            run.entries.pop_front();
            run.n_dropped += 1;
        }
        run.entries.push_back(entry);
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        let mut runs = self.all.runs.lock();
        if let Some(run) = runs.get_mut(&self.serial) {
            run.ended = Some((Instant::now(), now_ms()));
        }
        drop_old(&mut runs);
    }
}
