//! Reporting: every change of a live channel is one value, and one function writes it everywhere.

use std::sync::Arc;
use std::time::Duration;

use domain::event::{ChannelRef, Event, EventBody, StreamRef};
use domain::plan::Candidate;
use domain::playout::{AttemptReason, SwitchRefusal};
use media::error::{Cause, UpstreamError};
use media::ring::EndReason;
use tracing::{debug, error, info, warn};

use super::State;
use super::history::GapSummary;
use crate::channel::WatchRefusal;
use crate::channel::clients::{DepartedClient, client_ref};
use crate::clock::now_ms;
use crate::slots::FullPool;
use crate::timeline::{RunEntry, RunEntryKind};
use crate::viewer::Viewer;

/// The end reason of a channel that ended without a request.
pub(super) const FAILED: &str = "the channel failed";

/// A change of a live channel. [`State::report`] writes it to the log, the timeline, the counters and the events.
pub(super) enum ChannelChange {
    /// A slot was requested for an attempt.
    SlotRequested { why: AttemptReason },
    /// No slot came free in time. `begins_to_wait`: viewers have watched the channel, and wait for a slot from now on.
    NoSlot { full: FullPool, begins_to_wait: bool },
    /// The channel gives its slot to another one. `is_replaced`: its only viewer asked for the other channel.
    Yielded { is_replaced: bool },
    /// A slot was granted, and the stream is being opened. `is_speculative`: because the one that plays is silent.
    Opening { candidate: Candidate, is_speculative: bool },
    /// The source that plays has been silent for longer than usual.
    Silent { candidate: Candidate, silence: Duration },
    /// The source that was silent sends again.
    Resumed { candidate: Candidate, silence: Duration },
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

impl State {
    /// Reports a change: one log line, one timeline entry, the counters, and one event, as far as the change has
    /// them. Nothing else in a live channel writes to any of these.
    pub(super) fn report(&mut self, change: ChannelChange) {
        let target = self.context.target;
        let name = self.upstream.name();
        let name = &*name;
        match change {
            ChannelChange::SlotRequested { why } => {
                self.write(RunEntry::new(RunEntryKind::SlotRequested).cause(match why {
                    AttemptReason::Start => "start",
                    AttemptReason::Failover => "failover",
                    AttemptReason::Switch => "switch",
                    AttemptReason::Silence => "silence",
                }));
            }
            ChannelChange::NoSlot { full, begins_to_wait } => {
                debug!(channel.target = %target, channel.name = name, account = full.account, "no slot came free");
                let refusal = WatchRefusal::Full(full);
                if begins_to_wait {
                    info!(
                        channel.target = %target, channel.name = name,
                        "channel waits for a connection to its provider: {refusal}"
                    );
                }
                self.write(RunEntry::new(RunEntryKind::NoSlot).detail(refusal));
            }
            ChannelChange::Yielded { is_replaced } => {
                info!(channel.target = %target, channel.name = name, "channel gives its slot to another channel");
                let cause = if is_replaced { "same_device" } else { "nobody_watches" };
                self.write(RunEntry::new(RunEntryKind::Yielded).cause(cause));
            }
            ChannelChange::Silent { candidate, silence } => {
                let silence_ms = silence.as_millis() as u64;
                info!(
                    channel.target = %target, channel.name = name, stream.id = %candidate.stream,
                    stream.name = candidate.stream_name, account = candidate.pool.account_name, silence_ms,
                    "source is silent"
                );
                let detail = format_args!("no video or audio for {silence_ms} ms");
                self.write(RunEntry::new(RunEntryKind::Silent).about(&candidate).detail(detail));
            }
            ChannelChange::Resumed { candidate, silence } => {
                let silence_ms = silence.as_millis() as u64;
                info!(
                    channel.target = %target, channel.name = name, stream.id = %candidate.stream,
                    stream.name = candidate.stream_name, account = candidate.pool.account_name, silence_ms,
                    "source sends again"
                );
                let detail = format_args!("after {silence_ms} ms");
                self.write(RunEntry::new(RunEntryKind::Resumed).about(&candidate).detail(detail));
            }
            ChannelChange::Opening { candidate, is_speculative } => {
                if is_speculative {
                    self.context.env.registry.speculative_openings.add_one();
                }
                debug!(
                    channel.target = %target, channel.name = name, stream.id = %candidate.stream,
                    stream.name = candidate.stream_name, account = candidate.pool.account_name,
                    "channel opens a stream"
                );
                self.write(RunEntry::new(RunEntryKind::Opening).about(&candidate));
            }
            ChannelChange::TooSlow { behind } => {
                let behind_ms = behind.as_millis() as u64;
                debug!(channel.target = %target, channel.name = name, behind_ms, "source is too slow");
            }
            ChannelChange::Lost { candidate, cause, was_playing } => {
                self.context.env.registry.source_failed(cause.label());
                if let Some(more) = self.history.repeated_failures.add(candidate.stream, cause.label()) {
                    let what =
                        if was_playing { "channel lost its source" } else { "failed to open a stream" };
                    warn!(
                        channel.target = %target, channel.name = name, stream.id = %candidate.stream,
                        stream.name = candidate.stream_name, account = candidate.pool.account_name,
                        cause = cause.label(), "{what}: {cause}{more}"
                    );
                }
                let mut entry =
                    RunEntry::new(RunEntryKind::Lost).about(&candidate).cause(cause.label()).detail(&cause);
                if let Cause::Status(status) = cause.cause() {
                    entry.upstream_status = Some(*status);
                }
                self.write(entry);
            }
            ChannelChange::Redirected { candidate } => {
                self.write(RunEntry::new(RunEntryKind::Redirected).about(&candidate));
            }
            ChannelChange::Started { stream, took } => {
                if let Some(took) = took {
                    self.context.env.registry.started_after(took);
                }
                info!(
                    channel.target = %target, channel.name = name, stream.id = %stream.id,
                    stream.name = stream.name, account = stream.account_name, "channel plays"
                );
                self.write_playing(RunEntry::new(RunEntryKind::Started));
                self.emit(|channel| EventBody::ChannelStart { channel, stream });
            }
            ChannelChange::Reconnected { stream, gap: GapSummary { gap_ms, cause } } => {
                self.context.env.registry.reconnects.add_one();
                self.context.env.registry.gap_of(Duration::from_millis(gap_ms));
                info!(
                    channel.target = %target, channel.name = name, stream.id = %stream.id,
                    stream.name = stream.name, account = stream.account_name, gap_ms, "channel reconnected"
                );
                self.write_playing(RunEntry::new(RunEntryKind::Reconnected).cause(cause).gap(gap_ms));
                let cause = cause.to_owned();
                self.emit(|channel| EventBody::ChannelReconnect { channel, stream, cause, gap_ms });
            }
            ChannelChange::FailedOver { from, to, gap: GapSummary { gap_ms, cause } } => {
                self.history.failed_over();
                self.context.env.registry.failovers.add_one();
                self.context.env.registry.gap_of(Duration::from_millis(gap_ms));
                warn!(
                    channel.target = %target, channel.name = name, stream.from = %from.id,
                    stream.to = %to.id, stream.name = to.name, account = to.account_name, gap_ms,
                    "channel failed over"
                );
                let detail = format_args!("from stream {}", from.id);
                self.write_playing(
                    RunEntry::new(RunEntryKind::FailedOver).cause(cause).gap(gap_ms).detail(detail),
                );
                let cause = cause.to_owned();
                self.emit(|channel| EventBody::ChannelFailover { channel, from, to, cause, gap_ms });
            }
            ChannelChange::Switched { from, to, is_manual, gap: GapSummary { gap_ms, .. } } => {
                let cause = if is_manual { "manual" } else { "preferred" };
                if is_manual {
                    self.context.env.registry.switches.add_one();
                }
                info!(
                    channel.target = %target, channel.name = name, stream.from = %from.id,
                    stream.to = %to.id, stream.name = to.name, account = to.account_name, cause, gap_ms,
                    "channel switched"
                );
                let detail = format_args!("from stream {}", from.id);
                self.write_playing(RunEntry::new(RunEntryKind::Switched).gap(gap_ms).detail(detail));
                let cause = cause.to_owned();
                self.emit(|channel| EventBody::StreamSwitch { channel, from, to, cause, gap_ms });
            }
            ChannelChange::SwitchRequested { candidate } => {
                let entry = RunEntry::new(RunEntryKind::SwitchRequested).cause("manual");
                self.write(match &candidate {
                    Some(candidate) => entry.about(candidate),
                    None => entry,
                });
            }
            ChannelChange::SwitchFailed { reason } => {
                self.write_playing(RunEntry::new(RunEntryKind::SwitchFailed).detail(&reason));
                warn!(channel.target = %target, channel.name = name, "switch failed: {reason}");
            }
            ChannelChange::SwitchRefused { why } => {
                self.write(RunEntry::new(RunEntryKind::SwitchRefused).cause(match why {
                    SwitchRefusal::Busy => "busy",
                    SwitchRefusal::NoSuchCandidate => "no_such_stream",
                }));
            }
            ChannelChange::Backoff { delay } => {
                let delay_ms = delay.as_millis() as u64;
                debug!(channel.target = %target, channel.name = name, delay_ms, "channel waits before the next round");
                let detail = format_args!("the next round is in {delay_ms} ms");
                self.write(RunEntry::new(RunEntryKind::Backoff).detail(detail));
            }
            ChannelChange::Originates { epoch } => {
                debug!(channel.target = %target, channel.name = name, epoch, "this node is the origin of a channel");
                self.write(RunEntry::new(RunEntryKind::Originates));
            }
            ChannelChange::Pulling { node, epoch } => {
                debug!(channel.target = %target, channel.name = name, node = %node, epoch, "channel pulls from its origin");
                self.write(RunEntry::new(RunEntryKind::Pulling).detail(format_args!("node {node}")));
            }
            ChannelChange::Pulled { node, took, gap: GapSummary { gap_ms, cause } } => {
                if let Some(took) = took {
                    self.context.env.registry.started_after(took);
                }
                info!(channel.target = %target, channel.name = name, node = %node, gap_ms, "channel plays from its origin");
                let entry = RunEntry::new(RunEntryKind::Pulled).detail(format_args!("node {node}"));
                self.write(if gap_ms > 0 { entry.cause(cause).gap(gap_ms) } else { entry });
            }
            ChannelChange::PullLost { node, cause, has_played } => {
                // An origin that accepts connections and has nothing to show is tried often.
                if !has_played {
                    return;
                }
                warn!(
                    channel.target = %target, channel.name = name, node = %node, cause = cause.label(),
                    "channel lost its origin: {cause}"
                );
                let entry = RunEntry::new(RunEntryKind::PullLost).cause(cause.label());
                self.write(entry.detail(format_args!("node {node}: {cause}")));
            }
            ChannelChange::OriginUnreachable { node, cause } => {
                warn!(
                    channel.target = %target, channel.name = name, node = %node, cause = cause.label(),
                    "the origin of a channel does not answer: {cause}"
                );
                let entry = RunEntry::new(RunEntryKind::OriginUnreachable).cause(cause.label());
                self.write(entry.detail(format_args!("node {node}: {cause}")));
            }
            ChannelChange::PlanChanged => self.write(RunEntry::new(RunEntryKind::PlanChanged)),
            ChannelChange::GaveUp { refusal } => {
                warn!(channel.target = %target, channel.name = name, "channel gives up: {refusal}");
                self.write(RunEntry::new(RunEntryKind::GaveUp).detail(&refusal));
                let (error_message, stream) = (refusal.to_string(), self.history.last_stream().cloned());
                self.emit(|channel| EventBody::ChannelError { channel, error_message, stream });
            }
            ChannelChange::ClientJoined { id, viewer } => {
                info!(
                    channel.target = %target, channel.name = name, client.id = id,
                    client.address = %viewer.address, client.agent = %viewer.agent,
                    user.name = viewer.user.as_deref(), "client joined"
                );
                let client = client_ref(id, &viewer);
                self.emit(|channel| EventBody::ClientConnect { channel, client });
            }
            ChannelChange::ClientLeft(client) => {
                info!(
                    channel.target = %target, channel.name = name, client.id = client.id,
                    client.address = %client.viewer.address, user.name = client.viewer.user.as_deref(),
                    client.bytes = client.bytes, client.missed_bytes = client.missed_bytes,
                    reason = client.reason, "client left"
                );
                self.emit(|_| client.event);
            }
            ChannelChange::LastViewerLeft { delay } => {
                let detail = format_args!("ends after {} ms", delay.as_millis());
                self.write(RunEntry::new(RunEntryKind::LastViewerLeft).detail(detail));
            }
            ChannelChange::Ended { end } => {
                self.write(RunEntry::new(RunEntryKind::Ended).cause(end_label(&end)).detail(&end));
            }
            ChannelChange::Failed => {
                error!(
                    channel.target = %target, channel.name = name,
                    "a live channel ended because of a defect or with its parent"
                );
                self.write(RunEntry::new(RunEntryKind::Ended).cause("failed"));
            }
            ChannelChange::Stopped => {
                let runtime_seconds = self.history.uptime().as_secs();
                let total_bytes = self.upstream.ring().meter().bytes_in();
                for (stream, cause, more) in self.history.repeated_failures.take() {
                    let (n, seconds) = (more.n, more.seconds);
                    warn!(
                        channel.target = %target, channel.name = name, stream.id = %stream, cause,
                        "the stream failed {n} more times in {seconds} s"
                    );
                }
                info!(
                    channel.target = %target, channel.name = name, runtime_seconds, total_bytes,
                    "channel stopped"
                );
                if self.history.has_played() {
                    let stream = self.history.last_stream().cloned();
                    let reason = self.history.end_reason().to_owned();
                    self.emit(|channel| EventBody::ChannelStop {
                        channel,
                        stream,
                        reason,
                        runtime_seconds,
                        total_bytes,
                    });
                }
            }
        }
    }

    /// Reports the end of the channel after the departure of the remaining clients; does nothing the second time.
    pub(super) fn report_stop(&mut self) {
        if !self.history.claim_stop_report() {
            return;
        }
        let mut reason = "the channel ended";
        if self.history.end_reason().is_empty() {
            reason = FAILED;
            self.history.ends(FAILED.to_owned());
            self.report(ChannelChange::Failed);
        }
        for client in self.audience.remove_all(&self.channel_ref(), reason) {
            self.report(ChannelChange::ClientLeft(client));
        }
        self.report(ChannelChange::Stopped);
    }

    pub(super) fn channel_ref(&self) -> ChannelRef {
        self.upstream.channel_ref()
    }

    fn emit(&self, body: impl FnOnce(ChannelRef) -> EventBody) {
        let body = body(self.channel_ref());
        self.context.env.events.emit(Event { at: now_ms(), body });
    }

    fn write(&self, entry: RunEntry) {
        let (state, bytes_in) = (self.state_name(), self.upstream.ring().meter().bytes_in());
        self.history.write(RunEntry { state, bytes_in, ..entry });
    }

    /// Writes an entry about the stream that plays.
    fn write_playing(&self, entry: RunEntry) {
        self.write(match self.upstream.playing() {
            Some(candidate) => entry.about(candidate),
            None => entry,
        });
    }
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

/// Returns the label of an end for the timeline.
fn end_label(end: &EndReason) -> &'static str {
    match end {
        EndReason::Closed => "nobody_watches",
        EndReason::Stopped => "stopped",
        EndReason::NoSlot(_) => "no_slot",
        EndReason::NothingPlays(_) => "nothing_plays",
        EndReason::Silent => "silent",
        EndReason::Kicked => "kicked",
        EndReason::TooSlow => "too_slow",
    }
}
