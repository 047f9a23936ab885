//! `/proxy/ts/timeline`: why a channel switched, why it stopped.

use actors::{ChannelRun, RunEntry, RunEntryKind};
use domain::ids::{ProfileId, StreamId};
use uuid::Uuid;

use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::view;
use crate::rest::frame::route::{ADMIN, Route};
use crate::rest::frame::value::{Named, Time, choice};

view! {
    /// What happened to a channel lately.
    ChannelTimeline {
        /// The channel's uuid.
        channel_id: Uuid,
        /// Its name.
        channel_name: String [example("News")],
        /// From the first viewer to the end of the channel, each; the newest first. The last one may still be going on.
        runs: Vec<TimelineRun>,
        /// How many runs there are.
        count: usize [example("1")],
    }
}

view! {
    /// One life of a channel.
    TimelineRun {
        /// When it was first asked for.
        started_at: Time,
        /// When it ended; null while it goes on.
        ended_at: Option<Time>,
        /// Entries that are no longer kept; they were older than all others.
        dropped: u64 [example("0")],
        /// What happened, oldest first.
        entries: Vec<TimelineEntry>,
    }
}

view! {
    /// Something that happened to a channel.
    TimelineEntry {
        /// When.
        timestamp: Time,
        /// What.
        event: Named<RunEntryKind> [example("lost")],
        /// The state of the channel after it.
        state: &'static str [example("opening")],
        /// Why, in one word of a fixed set.
        cause: Option<&'static str> [example("stall")],
        /// Why, for people; may be empty.
        detail: String [example("video and audio stopped")],
        /// The stream that it is about.
        stream_id: Option<StreamId> [example("7")],
        /// Its name.
        stream_name: Option<String> [example("News HD")],
        /// The account whose slot it has.
        account_name: Option<String> [example("provider")],
        /// The profile of that account.
        m3u_profile_id: Option<ProfileId> [example("1")],
        /// The status that the provider answered with, where that is why.
        upstream_status: Option<u16> [example("404")],
        /// Milliseconds in which nothing had played.
        gap_ms: Option<u64> [example("2100")],
        /// Bytes that the run had taken in by then.
        bytes_in: u64 [example("7500000")],
    }
}

choice!(RunEntryKind {
    SlotRequested = "asked_for_slot",
    NoSlot = "no_slot",
    Opening = "opening",
    Lost = "lost",
    Started = "started",
    Reconnected = "reconnected",
    FailedOver = "failed_over",
    SwitchRequested = "switch_asked",
    Switched = "switched",
    SwitchFailed = "switch_failed",
    SwitchRefused = "switch_refused",
    Backoff = "resting",
    Yielded = "yielded",
    Redirected = "redirected",
    PlanChanged = "plan_changed",
    LastViewerLeft = "deserted",
    GaveUp = "gave_up",
    Ended = "ended",
});

pub(super) fn routes() -> Vec<Route> {
    let summary = "Shows what happened to a channel that is being watched, or was lately.";
    vec![Route::get("/proxy/ts/timeline/{uuid}", ADMIN, summary, retrieve)]
}

async fn retrieve(call: Call) -> Result<ChannelTimeline, Refusal> {
    let uuid = call.uuid()?;
    let runs = call.app.switchboard.timeline(uuid);
    let newest = runs.first().ok_or_else(|| {
        Refusal::not_found(format!("Nobody watches channel {uuid}, and nobody did lately."))
    })?;
    Ok(ChannelTimeline {
        channel_id: uuid,
        channel_name: newest.name.clone(),
        count: runs.len(),
        runs: runs.into_iter().map(run).collect(),
    })
}

fn run(run: ChannelRun) -> TimelineRun {
    TimelineRun {
        started_at: Time(run.started_at),
        ended_at: run.ended_at.map(Time),
        dropped: run.n_dropped,
        entries: run.entries.into_iter().map(entry).collect(),
    }
}

fn entry(line: RunEntry) -> TimelineEntry {
    TimelineEntry {
        timestamp: Time(line.at),
        event: Named(line.kind),
        state: line.state,
        cause: line.cause,
        detail: line.detail,
        stream_id: line.stream.as_ref().map(|it| it.id),
        account_name: line.stream.as_ref().map(|it| it.account.clone()),
        m3u_profile_id: line.stream.as_ref().map(|it| it.profile),
        stream_name: line.stream.map(|it| it.name),
        upstream_status: line.upstream_status,
        gap_ms: line.gap.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        bytes_in: line.bytes_in,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use uuid::Uuid;

    use crate::rest::frame::testing::Rest;

    #[tokio::test]
    async fn a_channel_that_nobody_watched_lately_has_no_timeline() {
        let rest = Rest::start().await;
        let path = format!("/proxy/ts/timeline/{}", Uuid::from_u128(1));
        let answer = rest.admin("GET", &path, Value::Null).await;
        assert_eq!(answer.status, 404, "{}", answer.text);
    }
}
