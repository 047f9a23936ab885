//! `/proxy/ts/timeline`: the history of a live channel.

use actors::RunEntryKind;
use domain::ids::{ProfileId, StreamId};
use node::timelines::{ChannelTimelines, NodeRun, NodeRunEntry, timeline};
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use uuid::Uuid;

use crate::choice::{Choice, Named, choice};
use crate::context::RestCall;
use crate::text_code::TextCodeView;

/// Recent history of a channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelTimelineView {
    /// UUID of the channel.
    channel_id: Uuid,
    /// Name of the channel.
    #[field(example = "News")]
    channel_name: String,
    /// Runs from the first viewer to the end of the channel, the newest first. The newest one may be active.
    runs: Vec<TimelineRunView>,
    /// Number of runs.
    #[field(example = "1")]
    count: usize,
    /// Names of the nodes that do not answer, whose entries are not included; empty without a cluster.
    #[field(example = "cellar")]
    missing_nodes: Vec<String>,
}

/// One run of a channel. In a cluster, what several nodes did at the same time is one run.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TimelineRunView {
    /// When the channel was first requested.
    started_at: Time,
    /// When the run ended; `null` while it is active.
    ended_at: Option<Time>,
    /// Number of older entries that were discarded.
    #[field(example = "0")]
    dropped: u64,
    /// Names of the nodes that played the channel; empty without a cluster.
    #[field(example = "attic")]
    nodes: Vec<String>,
    /// Entries, the oldest first. The clocks of nodes may differ.
    entries: Vec<TimelineEntryView>,
}

/// An entry of the history of a channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TimelineEntryView {
    /// Time of the entry.
    timestamp: Time,
    /// Name of the node whose entry it is; `null` without a cluster.
    #[field(example = "attic")]
    node: Option<String>,
    /// Type of entry.
    #[field(example = "lost")]
    event: Named<RunEntryKind>,
    /// State of the channel afterwards.
    #[field(example = "opening")]
    state: String,
    /// Reason in one word of a fixed set.
    #[field(example = "stall")]
    cause: Option<String>,
    /// Reason for people; may be empty.
    #[field(example = "video and audio stopped")]
    detail: String,
    /// The code of `detail`, if it has one.
    detail_code: Option<TextCodeView>,
    /// Id of the stream.
    #[field(example = "7")]
    stream_id: Option<StreamId>,
    /// Name of the stream.
    #[field(example = "News HD")]
    stream_name: Option<String>,
    /// Name of the account whose slot the stream uses.
    #[field(example = "provider")]
    account_name: Option<String>,
    /// Id of the account profile.
    #[field(example = "1")]
    m3u_profile_id: Option<ProfileId>,
    /// HTTP status of the provider, if it is the reason.
    #[field(example = "404")]
    upstream_status: Option<u16>,
    /// Milliseconds without a stream before the entry.
    #[field(example = "2100")]
    gap_ms: Option<u64>,
    /// Number of bytes that the run had received.
    #[field(example = "7500000")]
    bytes_in: u64,
}

choice!(RunEntryKind {
    SlotRequested = "asked_for_slot",
    NoSlot = "no_slot",
    Opening = "opening",
    Lost = "lost",
    Silent = "silent",
    Resumed = "resumed",
    Lacking = "lacking",
    Complete = "complete",
    Started = "started",
    Reconnected = "reconnected",
    FailedOver = "failed_over",
    PictureAwaited = "picture_awaited",
    PictureBegan = "picture_began",
    NoKeyFrame = "no_key_frame",
    SwitchRequested = "switch_asked",
    Switched = "switched",
    SwitchFailed = "switch_failed",
    SwitchRefused = "switch_refused",
    Backoff = "resting",
    Yielded = "yielded",
    Redirected = "redirected",
    Originates = "originates",
    Pulling = "pulling",
    Pulled = "pulled",
    PullLost = "pull_lost",
    OriginUnreachable = "origin_unreachable",
    SourceNote = "source_note",
    PlanChanged = "plan_changed",
    LastViewerLeft = "deserted",
    GaveUp = "gave_up",
    Ended = "ended",
});

pub(super) fn routes() -> Vec<Route> {
    let summary = "Returns the history of a channel that plays or played recently.";
    vec![Route::get("/proxy/ts/timeline/{uuid}", ADMIN, summary, retrieve)]
}

async fn retrieve(call: Call) -> Result<ChannelTimelineView, Refusal> {
    let uuid = call.uuid()?;
    let ChannelTimelines { runs, missing } = timeline(&call.rest().nodes, uuid).await;
    let newest = runs.first().ok_or_else(|| {
        let mut text = format!("Channel {uuid} is not playing and was not played recently.");
        if !missing.is_empty() {
            text.push_str(&format!(" These nodes do not answer: {}.", missing.join(", ")));
        }
        Refusal::not_found(text)
    })?;
    Ok(ChannelTimelineView {
        channel_id: uuid,
        channel_name: newest.name.clone(),
        count: runs.len(),
        runs: runs.into_iter().map(run).collect(),
        missing_nodes: missing,
    })
}

fn run(run: NodeRun) -> TimelineRunView {
    TimelineRunView {
        started_at: Time(run.started_at),
        ended_at: run.ended_at.map(Time),
        dropped: run.n_dropped,
        nodes: run.nodes,
        entries: run.entries.into_iter().filter_map(entry).collect(),
    }
}

/// Returns an entry; `None` for one of a later version.
fn entry(entry: NodeRunEntry) -> Option<TimelineEntryView> {
    Some(TimelineEntryView {
        timestamp: Time(entry.at),
        node: entry.node,
        event: Named(RunEntryKind::from_name(&entry.kind)?),
        state: entry.state,
        cause: entry.cause,
        detail_code: TextCodeView::find(&entry.detail),
        detail: entry.detail,
        stream_id: entry.stream.as_ref().map(|it| it.id),
        account_name: entry.stream.as_ref().map(|it| it.account.clone()),
        m3u_profile_id: entry.stream.as_ref().map(|it| it.profile),
        stream_name: entry.stream.map(|it| it.name),
        upstream_status: entry.upstream_status,
        gap_ms: entry.gap_ms,
        bytes_in: entry.bytes_in,
    })
}

#[cfg(test)]
mod tests {
    use node::timelines::kind_name;
    use serde_json::Value;

    use super::*;
    use crate::testing::Rest;

    #[test]
    fn clients_and_nodes_know_a_kind_by_the_same_name() {
        for name in RunEntryKind::NAMES {
            assert_eq!(kind_name(RunEntryKind::from_name(name).unwrap()), *name);
        }
    }

    #[tokio::test]
    async fn an_idle_channel_has_no_timeline() {
        let rest = Rest::start().await;
        let path = format!("/proxy/ts/timeline/{}", Uuid::from_u128(1));
        let answer = rest.admin("GET", &path, Value::Null).await;
        assert_eq!(answer.status, 404, "{}", answer.text);
    }
}
