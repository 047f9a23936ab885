//! Reporting: every change of a live channel is one value, and [`State::report`] writes it everywhere.

use std::sync::Arc;
use std::time::Duration;

use domain::event::{ChannelRef, Event, EventBody, StreamRef};
use domain::plan::Candidate;
use domain::playout::{AttemptReason, Lack, SwitchRefusal};
use media::error::UpstreamError;
use media::ring::EndReason;
use media::source::SourceNote;
use media::splice::PictureEvent;
use tracing::{debug, error, info, warn};

use super::attempts::lost_part;
use super::change::{ChannelChange, stream_ref};
use super::history::GapSummary;
use super::state::State;
use crate::channel::WatchRefusal;
use crate::channel::clients::{DepartedClient, client_ref};
use crate::clock::now_ms;
use crate::plans::Target;
use crate::slots::FullPool;
use crate::timeline::{RunEntry, RunEntryKind};
use crate::viewer::Viewer;

/// The end reason of a channel that ended without a request.
const FAILED: &str = "the channel failed";

impl State {
    /// Reports a change: one log line, one timeline entry, the counters, and one event, as far as the change has
    /// them. Nothing else in a live channel writes to any of these.
    pub(super) fn report(&mut self, change: ChannelChange) {
        match change {
            ChannelChange::SlotRequested { why } => self.slot_requested(why),
            ChannelChange::NoSlot { full, begins_to_wait } => self.no_slot(full, begins_to_wait),
            ChannelChange::Yielded { is_replaced } => self.yielded(is_replaced),
            ChannelChange::Opening { candidate, is_speculative } => {
                self.opens(&candidate, is_speculative);
            }
            ChannelChange::Silent { candidate, silence } => self.source_silent(&candidate, silence),
            ChannelChange::Resumed { candidate, silence } => self.source_resumed(&candidate, silence),
            ChannelChange::Lacks { candidate, lack, never } => self.source_lacks(&candidate, lack, never),
            ChannelChange::Complete { candidate, lack } => self.source_complete(&candidate, lack),
            ChannelChange::PlaysLacking { candidate, cause } => self.plays_on_lacking(&candidate, &cause),
            ChannelChange::Picture { candidate, event } => self.picture_begins(&candidate, event),
            ChannelChange::Noted { candidate, note } => self.source_noted(&candidate, note),
            ChannelChange::TooSlow { behind } => self.source_slow(behind),
            ChannelChange::Lost { candidate, cause, was_playing } => {
                self.source_lost(&candidate, &cause, was_playing);
            }
            ChannelChange::Redirected { candidate } => {
                self.write(RunEntry::new(RunEntryKind::Redirected).about(&candidate));
            }
            ChannelChange::Started { stream, took } => self.started(stream, took),
            ChannelChange::Reconnected { stream, gap } => self.reconnected(stream, gap),
            ChannelChange::FailedOver { from, to, gap } => self.failed_over(from, to, gap),
            ChannelChange::Switched { from, to, is_manual, gap } => {
                self.switched(from, to, is_manual, gap.gap_ms);
            }
            ChannelChange::SwitchRequested { candidate } => self.switch_requested(candidate.as_ref()),
            ChannelChange::SwitchFailed { reason } => self.switch_failed(&reason),
            ChannelChange::SwitchRefused { why } => self.switch_refused(why),
            ChannelChange::Backoff { delay } => self.backs_off(delay),
            ChannelChange::Originates { epoch } => self.originates(epoch),
            ChannelChange::Pulling { node, epoch } => self.pulling(&node, epoch),
            ChannelChange::Pulled { node, took, gap } => self.pulled(&node, took, gap),
            ChannelChange::PullLost { node, cause, has_played } => self.pull_lost(&node, &cause, has_played),
            ChannelChange::OriginUnreachable { node, cause } => self.origin_unreachable(&node, &cause),
            ChannelChange::PlanChanged => self.write(RunEntry::new(RunEntryKind::PlanChanged)),
            ChannelChange::GaveUp { refusal } => self.gave_up(&refusal),
            ChannelChange::ClientJoined { id, viewer } => self.client_joined(id, &viewer),
            ChannelChange::ClientLeft(client) => self.client_left(client),
            ChannelChange::LastViewerLeft { delay } => {
                let detail = format_args!("ends after {} ms", delay.as_millis());
                self.write(RunEntry::new(RunEntryKind::LastViewerLeft).detail(detail));
            }
            ChannelChange::Ended { end } => {
                self.write(RunEntry::new(RunEntryKind::Ended).cause(end_label(&end)).detail(&end));
            }
            ChannelChange::Failed => self.failed(),
            ChannelChange::Stopped => self.has_stopped(),
        }
    }

    fn slot_requested(&self, why: AttemptReason) {
        self.write(RunEntry::new(RunEntryKind::SlotRequested).cause(match why {
            AttemptReason::Start => "start",
            AttemptReason::Failover => "failover",
            AttemptReason::Switch => "switch",
            AttemptReason::Silence => "silence",
            AttemptReason::Lack(lack) => UpstreamError::new(lost_part(lack)).label(),
        }));
    }

    fn no_slot(&self, full: FullPool, begins_to_wait: bool) {
        let Name { target, name } = self.name();
        debug!(channel.target = %target, channel.name = &*name, account = full.account, "no slot came free");
        let refusal = WatchRefusal::Full(full);
        if begins_to_wait {
            info!(
                channel.target = %target, channel.name = &*name,
                "channel waits for a connection to its provider: {refusal}"
            );
        }
        self.write(RunEntry::new(RunEntryKind::NoSlot).detail(refusal));
    }

    fn yielded(&self, is_replaced: bool) {
        let Name { target, name } = self.name();
        info!(channel.target = %target, channel.name = &*name, "channel gives its slot to another channel");
        let cause = if is_replaced { "same_device" } else { "nobody_watches" };
        self.write(RunEntry::new(RunEntryKind::Yielded).cause(cause));
    }

    fn opens(&self, candidate: &Candidate, is_speculative: bool) {
        let Name { target, name } = self.name();
        if is_speculative {
            self.context.env.registry.speculative_openings.add_one();
        }
        debug!(
            channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
            stream.name = candidate.stream_name, account = candidate.pool.account_name,
            "channel opens a stream"
        );
        self.write(RunEntry::new(RunEntryKind::Opening).about(candidate));
    }

    fn source_silent(&self, candidate: &Candidate, silence: Duration) {
        let Name { target, name } = self.name();
        let silence_ms = silence.as_millis() as u64;
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
            stream.name = candidate.stream_name, account = candidate.pool.account_name, silence_ms,
            "source is silent"
        );
        let detail = format_args!("no video or audio for {silence_ms} ms");
        self.write(RunEntry::new(RunEntryKind::Silent).about(candidate).detail(detail));
    }

    fn source_resumed(&self, candidate: &Candidate, silence: Duration) {
        let Name { target, name } = self.name();
        let silence_ms = silence.as_millis() as u64;
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
            stream.name = candidate.stream_name, account = candidate.pool.account_name, silence_ms,
            "source sends again"
        );
        let detail = format_args!("after {silence_ms} ms");
        self.write(RunEntry::new(RunEntryKind::Resumed).about(candidate).detail(detail));
    }

    fn source_lacks(&self, candidate: &Candidate, lack: Lack, never: bool) {
        let Name { target, name } = self.name();
        let cause = UpstreamError::new(lost_part(lack));
        let what = match lack {
            Lack::Picture | Lack::Sound => "a part of the stream is missing",
            Lack::Motion => "the same pictures come again and again",
        };
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
            stream.name = candidate.stream_name, account = candidate.pool.account_name,
            cause = cause.label(), never, "{what}: {cause}"
        );
        let entry = RunEntry::new(RunEntryKind::Lacking).about(candidate).cause(cause.label());
        self.write(match never {
            true => entry.detail(format_args!("{cause}; it has not come since the start")),
            false => entry.detail(cause),
        });
    }

    fn source_complete(&self, candidate: &Candidate, lack: Lack) {
        let Name { target, name } = self.name();
        let cause = UpstreamError::new(lost_part(lack)).label();
        let what = match lack {
            Lack::Picture | Lack::Sound => "the missing part of the stream is there",
            Lack::Motion => "the picture of the stream moves again",
        };
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
            stream.name = candidate.stream_name, account = candidate.pool.account_name, cause,
            "{what}"
        );
        self.write(RunEntry::new(RunEntryKind::Complete).about(candidate).cause(cause));
    }

    fn plays_on_lacking(&mut self, candidate: &Candidate, cause: &UpstreamError) {
        let (stream, label) = (stream_ref(candidate), cause.label().to_owned());
        self.emit(|channel| EventBody::StreamLacking { channel, stream, cause: label });
        let Name { target, name } = self.name();
        if let Some(more) = self.history.repeated_failures.add(candidate.stream, cause.label()) {
            warn!(
                channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
                stream.name = candidate.stream_name, account = candidate.pool.account_name,
                cause = cause.label(),
                "channel plays on, because no other stream can help: {cause}{more}"
            );
        }
        let detail = "the channel plays on as it is, because no other stream can help";
        self.write(RunEntry::new(RunEntryKind::Lacking).about(candidate).cause(cause.label()).detail(detail));
    }

    fn picture_begins(&self, candidate: &Candidate, event: PictureEvent) {
        let Name { target, name } = self.name();
        let entry = match event {
            PictureEvent::Awaited { at_most } => {
                let seconds = at_most.as_secs_f32();
                RunEntry::new(RunEntryKind::PictureAwaited).detail(format_args!(
                    "sound plays; the picture follows at its next key frame, within {seconds:.1} s at most"
                ))
            }
            PictureEvent::Began { waited } => {
                let seconds = waited.as_secs_f32();
                RunEntry::new(RunEntryKind::PictureBegan).detail(format_args!("after {seconds:.1} s"))
            }
            PictureEvent::NoKeyFrame => {
                info!(
                    channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
                    stream.name = candidate.stream_name, account = candidate.pool.account_name,
                    "the picture begins without a key frame"
                );
                RunEntry::new(RunEntryKind::NoKeyFrame).detail(
                    "no key frame came in time, or the stream has none; \
                     the picture is damaged until it has been refreshed",
                )
            }
        };
        self.write(entry.about(candidate));
    }

    fn source_noted(&self, candidate: &Candidate, note: SourceNote) {
        let Name { target, name } = self.name();
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
            stream.name = candidate.stream_name, account = candidate.pool.account_name, note = note.label(),
            "source differs from what is usual: {note}"
        );
        self.write(RunEntry::new(RunEntryKind::SourceNote).about(candidate).cause(note.label()).detail(note));
    }

    fn source_slow(&self, behind: Duration) {
        let Name { target, name } = self.name();
        let behind_ms = behind.as_millis() as u64;
        debug!(channel.target = %target, channel.name = &*name, behind_ms, "source is too slow");
    }

    fn source_lost(&mut self, candidate: &Candidate, cause: &UpstreamError, was_playing: bool) {
        let Name { target, name } = self.name();
        self.context.env.registry.source_failed(cause.label());
        if let Some(more) = self.history.repeated_failures.add(candidate.stream, cause.label()) {
            let what = if was_playing { "channel lost its source" } else { "failed to open a stream" };
            warn!(
                channel.target = %target, channel.name = &*name, stream.id = %candidate.stream,
                stream.name = candidate.stream_name, account = candidate.pool.account_name,
                cause = cause.label(), "{what}: {cause}{more}"
            );
        }
        let mut entry = RunEntry::new(RunEntryKind::Lost).about(candidate).cause(cause.label()).detail(cause);
        entry.upstream_status = cause.status();
        self.write(entry);
    }

    fn started(&self, stream: StreamRef, took: Option<Duration>) {
        let Name { target, name } = self.name();
        if let Some(took) = took {
            self.context.env.registry.started_after(took);
        }
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %stream.id,
            stream.name = stream.name, account = stream.account_name, "channel plays"
        );
        self.write_playing(RunEntry::new(RunEntryKind::Started));
        self.emit(|channel| EventBody::ChannelStart { channel, stream });
    }

    fn reconnected(&self, stream: StreamRef, GapSummary { gap_ms, cause }: GapSummary) {
        let Name { target, name } = self.name();
        self.context.env.registry.reconnects.add_one();
        self.context.env.registry.gap_of(Duration::from_millis(gap_ms));
        info!(
            channel.target = %target, channel.name = &*name, stream.id = %stream.id,
            stream.name = stream.name, account = stream.account_name, gap_ms, "channel reconnected"
        );
        self.write_playing(RunEntry::new(RunEntryKind::Reconnected).cause(cause).gap(gap_ms));
        let cause = cause.to_owned();
        self.emit(|channel| EventBody::ChannelReconnect { channel, stream, cause, gap_ms });
    }

    fn failed_over(&mut self, from: StreamRef, to: StreamRef, GapSummary { gap_ms, cause }: GapSummary) {
        let Name { target, name } = self.name();
        self.history.failed_over();
        self.context.env.registry.failovers.add_one();
        self.context.env.registry.gap_of(Duration::from_millis(gap_ms));
        warn!(
            channel.target = %target, channel.name = &*name, stream.from = %from.id,
            stream.to = %to.id, stream.name = to.name, account = to.account_name, gap_ms,
            "channel failed over"
        );
        let detail = format_args!("from stream {}", from.id);
        self.write_playing(RunEntry::new(RunEntryKind::FailedOver).cause(cause).gap(gap_ms).detail(detail));
        let cause = cause.to_owned();
        self.emit(|channel| EventBody::ChannelFailover { channel, from, to, cause, gap_ms });
    }

    fn switched(&self, from: StreamRef, to: StreamRef, is_manual: bool, gap_ms: u64) {
        let Name { target, name } = self.name();
        let cause = if is_manual { "manual" } else { "preferred" };
        if is_manual {
            self.context.env.registry.switches.add_one();
        }
        info!(
            channel.target = %target, channel.name = &*name, stream.from = %from.id,
            stream.to = %to.id, stream.name = to.name, account = to.account_name, cause, gap_ms,
            "channel switched"
        );
        let detail = format_args!("from stream {}", from.id);
        self.write_playing(RunEntry::new(RunEntryKind::Switched).gap(gap_ms).detail(detail));
        let cause = cause.to_owned();
        self.emit(|channel| EventBody::StreamSwitch { channel, from, to, cause, gap_ms });
    }

    fn switch_requested(&self, candidate: Option<&Candidate>) {
        let entry = RunEntry::new(RunEntryKind::SwitchRequested).cause("manual");
        self.write(match candidate {
            Some(candidate) => entry.about(candidate),
            None => entry,
        });
    }

    fn switch_failed(&self, reason: &str) {
        let Name { target, name } = self.name();
        self.write_playing(RunEntry::new(RunEntryKind::SwitchFailed).detail(reason));
        warn!(channel.target = %target, channel.name = &*name, "switch failed: {reason}");
    }

    fn switch_refused(&self, why: SwitchRefusal) {
        self.write(RunEntry::new(RunEntryKind::SwitchRefused).cause(match why {
            SwitchRefusal::Busy => "busy",
            SwitchRefusal::NoSuchCandidate => "no_such_stream",
        }));
    }

    fn backs_off(&self, delay: Duration) {
        let Name { target, name } = self.name();
        let delay_ms = delay.as_millis() as u64;
        debug!(channel.target = %target, channel.name = &*name, delay_ms, "channel waits before the next round");
        let detail = format_args!("the next round is in {delay_ms} ms");
        self.write(RunEntry::new(RunEntryKind::Backoff).detail(detail));
    }

    fn originates(&self, epoch: u64) {
        let Name { target, name } = self.name();
        debug!(channel.target = %target, channel.name = &*name, epoch, "this node is the origin of a channel");
        self.write(RunEntry::new(RunEntryKind::Originates));
    }

    fn pulling(&self, node: &str, epoch: u64) {
        let Name { target, name } = self.name();
        debug!(channel.target = %target, channel.name = &*name, node, epoch, "channel pulls from its origin");
        self.write(RunEntry::new(RunEntryKind::Pulling).detail(format_args!("node {node}")));
    }

    fn pulled(&self, node: &str, took: Option<Duration>, GapSummary { gap_ms, cause }: GapSummary) {
        let Name { target, name } = self.name();
        if let Some(took) = took {
            self.context.env.registry.started_after(took);
        }
        info!(channel.target = %target, channel.name = &*name, node, gap_ms, "channel plays from its origin");
        let entry = RunEntry::new(RunEntryKind::Pulled).detail(format_args!("node {node}"));
        self.write(if gap_ms > 0 { entry.cause(cause).gap(gap_ms) } else { entry });
    }

    fn pull_lost(&self, node: &str, cause: &UpstreamError, has_played: bool) {
        // An origin that accepts connections and has nothing to show is tried often.
        if !has_played {
            return;
        }
        let Name { target, name } = self.name();
        warn!(
            channel.target = %target, channel.name = &*name, node, cause = cause.label(),
            "channel lost its origin: {cause}"
        );
        let entry = RunEntry::new(RunEntryKind::PullLost).cause(cause.label());
        self.write(entry.detail(format_args!("node {node}: {cause}")));
    }

    fn origin_unreachable(&self, node: &str, cause: &UpstreamError) {
        let Name { target, name } = self.name();
        warn!(
            channel.target = %target, channel.name = &*name, node, cause = cause.label(),
            "the origin of a channel does not answer: {cause}"
        );
        let entry = RunEntry::new(RunEntryKind::OriginUnreachable).cause(cause.label());
        self.write(entry.detail(format_args!("node {node}: {cause}")));
    }

    fn gave_up(&self, refusal: &WatchRefusal) {
        let Name { target, name } = self.name();
        warn!(channel.target = %target, channel.name = &*name, "channel gives up: {refusal}");
        self.write(RunEntry::new(RunEntryKind::GaveUp).detail(refusal));
        let (error_message, stream) = (refusal.to_string(), self.history.last_stream().cloned());
        self.emit(|channel| EventBody::ChannelError { channel, error_message, stream });
    }

    fn client_joined(&self, id: u64, viewer: &Viewer) {
        let Name { target, name } = self.name();
        info!(
            channel.target = %target, channel.name = &*name, client.id = id,
            client.address = %viewer.address, client.agent = %viewer.agent,
            user.name = viewer.user.as_deref(), "client joined"
        );
        let client = client_ref(id, viewer);
        self.emit(|channel| EventBody::ClientConnect { channel, client });
    }

    fn client_left(&self, client: DepartedClient) {
        let Name { target, name } = self.name();
        info!(
            channel.target = %target, channel.name = &*name, client.id = client.id,
            client.address = %client.viewer.address, user.name = client.viewer.user.as_deref(),
            client.bytes = client.bytes, client.missed_bytes = client.missed_bytes,
            reason = client.reason, "client left"
        );
        self.emit(|_| client.event);
    }

    fn failed(&self) {
        let Name { target, name } = self.name();
        error!(
            channel.target = %target, channel.name = &*name,
            "a live channel ended because of a defect or with its parent"
        );
        self.write(RunEntry::new(RunEntryKind::Ended).cause("failed"));
    }

    fn has_stopped(&mut self) {
        let Name { target, name } = self.name();
        let runtime_seconds = self.history.uptime().as_secs();
        let total_bytes = self.upstream.ring().meter().bytes_in();
        for (stream, cause, more) in self.history.repeated_failures.take() {
            let (n, seconds) = (more.n, more.seconds);
            warn!(
                channel.target = %target, channel.name = &*name, stream.id = %stream, cause,
                "the stream failed {n} more times in {seconds} s"
            );
        }
        info!(
            channel.target = %target, channel.name = &*name, runtime_seconds, total_bytes,
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

    /// Returns the channel as the log names it.
    fn name(&self) -> Name {
        Name { target: self.context.target, name: self.upstream.name() }
    }
}

/// A channel as the log names it.
struct Name {
    target: Target,
    name: Arc<str>,
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
