//! The changes of a live channel that are reported.

use std::sync::Arc;
use std::time::Duration;

use domain::event::StreamRef;
use domain::plan::Candidate;
use domain::playout::{AttemptReason, Lack, SwitchRefusal};
use media::error::UpstreamError;
use media::ring::EndReason;
use media::source::SourceNote;
use media::splice::PictureEvent;

use super::history::GapSummary;
use crate::channel::WatchRefusal;
use crate::channel::clients::DepartedClient;
use crate::slots::FullPool;
use crate::viewer::Viewer;

/// A change of a live channel. [`report`](super::report) writes it to the log, the timeline, the counters and the events.
pub(super) enum ChannelChange {
    /// A slot was requested for an attempt.
    SlotRequested { why: AttemptReason },
    /// No slot came free in time. `begins_to_wait`: viewers have watched the channel, and wait for a slot from now on.
    NoSlot { full: FullPool, begins_to_wait: bool },
    /// The channel gives its slot to another one. `is_replaced`: its only viewer asked for the other channel.
    Yielded { is_replaced: bool },
    /// A slot was granted, and the stream is being opened. `is_speculative`: because the one that plays is silent or
    /// lacks a part.
    Opening { candidate: Candidate, is_speculative: bool },
    /// The source that plays has been silent for longer than usual.
    Silent { candidate: Candidate, silence: Duration },
    /// The source that was silent sends again.
    Resumed { candidate: Candidate, silence: Duration },
    /// The source that plays goes on without this part. `never`: it has not come yet.
    Lacks { candidate: Candidate, lack: Lack, never: bool },
    /// The source that plays has this part again.
    Complete { candidate: Candidate, lack: Lack },
    /// The source that plays lacks a part, and plays on because no other one can help.
    PlaysLacking { candidate: Candidate, cause: UpstreamError },
    /// The picture of a source that replaces another begins later than its sound, or damaged.
    Picture { candidate: Candidate, event: PictureEvent },
    /// A source was opened that plays, but has something that a person should know.
    Noted { candidate: Candidate, note: SourceNote },
    /// The programme clock of the source fell behind the wall clock.
    TooSlow { behind: Duration },
    /// An attempt failed, or the source that played was lost.
    Lost { candidate: Candidate, cause: UpstreamError, was_playing: bool },
    /// Waiting clients were sent to the provider.
    Redirected { candidate: Candidate },
    /// The first source since the start plays. `took` is the time since the first join.
    Started { stream: StreamRef, took: Option<Duration> },
    /// The stream that played last plays again.
    Reconnected { stream: StreamRef, gap: GapSummary },
    /// Another stream plays after a loss.
    FailedOver { from: StreamRef, to: StreamRef, gap: GapSummary },
    /// Another stream plays because of a manual switch, or because the channel returned to a preferred stream.
    Switched { from: StreamRef, to: StreamRef, is_manual: bool, gap: GapSummary },
    /// A manual switch was requested. The candidate is known for a switch to a certain stream.
    SwitchRequested { candidate: Option<Candidate> },
    /// A manual switch failed.
    SwitchFailed { reason: String },
    /// A manual switch was not begun.
    SwitchRefused { why: SwitchRefusal },
    /// Every stream was tried; the next round starts after this delay.
    Backoff { delay: Duration },
    /// This node is the origin of the channel in the cluster.
    Originates { epoch: u64 },
    /// Another node is the origin.
    Pulling { node: Arc<str>, epoch: u64 },
    /// The ring of the origin is shown. `took` is the time since the first join, at the first source.
    Pulled { node: Arc<str>, took: Option<Duration>, gap: GapSummary },
    /// The connection to the origin is lost.
    PullLost { node: Arc<str>, cause: UpstreamError, has_played: bool },
    /// The origin has not answered for a second.
    OriginUnreachable { node: Arc<str>, cause: UpstreamError },
    /// The plan has other content than before.
    PlanChanged,
    /// The channel ends because nothing can be played.
    GaveUp { refusal: WatchRefusal },
    /// A client joined.
    ClientJoined { id: u64, viewer: Viewer },
    /// A client left.
    ClientLeft(DepartedClient),
    /// The last client left; the channel ends after this delay.
    LastViewerLeft { delay: Duration },
    /// The channel ends on request.
    Ended { end: EndReason },
    /// The channel ended because of a defect, or together with its parent.
    Failed,
    /// The channel is gone, and all its clients with it.
    Stopped,
}

/// Returns a stream as events name it.
pub(super) fn stream_ref(candidate: &Candidate) -> StreamRef {
    StreamRef {
        id: candidate.stream,
        name: candidate.stream_name.clone(),
        url: candidate.url.clone(),
        profile_used: candidate.profile,
        account_name: candidate.pool.account_name.clone(),
    }
}
