//! The timelines of a live channel on all nodes: each node has written down what it did itself. They are asked for when
//! somebody looks.

use std::fmt;

use actors::{ChannelRun, RunEntry, RunEntryKind};
use domain::ids::{ProfileId, StreamId};
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tracing::warn;
use uuid::Uuid;

use super::peers::{OtherNode, OtherNodes};
use super::status::known;
use super::time_limits::TIMELINE_ANSWER_TIMEOUT;
use crate::context::NodeContext;

/// Path on the node port. The UUID of a channel follows.
pub(super) const TIMELINE_PATH: &str = "/node/v1/timeline/";
/// Maximum size of the answer of a node.
const TIMELINE_BYTES_MAX: usize = 8 << 20;
/// Maximum number of entries that a node sends. The oldest are left out.
const SENT_MAX: usize = 1_000;
/// Maximum number of entries that are shown. The oldest are left out.
const SHOWN_MAX: usize = 2_000;
/// Maximum number of runs that are shown.
const RUNS_MAX: usize = 100;

/// A life of a channel on one node, from its first viewer to the last one; or on several, at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRun {
    pub name: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// `None` while it is active.
    pub ended_at: Option<i64>,
    /// Number of older entries that are not known any more.
    pub n_dropped: u64,
    /// Names of the nodes; empty without a cluster.
    #[serde(default, skip)]
    pub nodes: Vec<String>,
    /// The oldest first. A node of a later version may send some that this one does not know, which are left out.
    #[serde(deserialize_with = "known")]
    pub entries: Vec<NodeRunEntry>,
}

/// An entry of the timeline of a channel, as nodes send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRunEntry {
    /// Milliseconds since 1970.
    pub at: i64,
    /// Name of the node; `None` without a cluster.
    #[serde(default, skip)]
    pub node: Option<String>,
    pub kind: String,
    pub state: String,
    pub cause: Option<String>,
    pub detail: String,
    pub stream: Option<NodeRunStream>,
    pub upstream_status: Option<u16>,
    pub gap_ms: Option<u64>,
    pub bytes_in: u64,
}

/// The stream of an entry, with its account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRunStream {
    pub id: StreamId,
    pub name: String,
    pub account: String,
    pub profile: ProfileId,
}

impl From<ChannelRun> for NodeRun {
    fn from(it: ChannelRun) -> Self {
        Self {
            name: it.name,
            started_at: it.started_at,
            ended_at: it.ended_at,
            n_dropped: it.n_dropped,
            nodes: Vec::new(),
            entries: it.entries.into_iter().map(NodeRunEntry::from).collect(),
        }
    }
}

impl From<RunEntry> for NodeRunEntry {
    fn from(it: RunEntry) -> Self {
        Self {
            at: it.at,
            node: None,
            kind: kind_name(it.kind).to_owned(),
            state: it.state.to_owned(),
            cause: it.cause.map(str::to_owned),
            detail: it.detail,
            stream: it.stream.map(|it| NodeRunStream {
                id: it.id,
                name: it.name,
                account: it.account,
                profile: it.profile,
            }),
            upstream_status: it.upstream_status,
            gap_ms: it.gap.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            bytes_in: it.bytes_in,
        }
    }
}

/// Returns the name of a kind between nodes, which clients get as well.
pub fn kind_name(kind: RunEntryKind) -> &'static str {
    match kind {
        RunEntryKind::SlotRequested => "asked_for_slot",
        RunEntryKind::NoSlot => "no_slot",
        RunEntryKind::Opening => "opening",
        RunEntryKind::Lost => "lost",
        RunEntryKind::Silent => "silent",
        RunEntryKind::Resumed => "resumed",
        RunEntryKind::Lacking => "lacking",
        RunEntryKind::Complete => "complete",
        RunEntryKind::Started => "started",
        RunEntryKind::Reconnected => "reconnected",
        RunEntryKind::FailedOver => "failed_over",
        RunEntryKind::PictureAwaited => "picture_awaited",
        RunEntryKind::PictureBegan => "picture_began",
        RunEntryKind::NoKeyFrame => "no_key_frame",
        RunEntryKind::SwitchRequested => "switch_asked",
        RunEntryKind::Switched => "switched",
        RunEntryKind::SwitchFailed => "switch_failed",
        RunEntryKind::SwitchRefused => "switch_refused",
        RunEntryKind::Backoff => "resting",
        RunEntryKind::Yielded => "yielded",
        RunEntryKind::Redirected => "redirected",
        RunEntryKind::Originates => "originates",
        RunEntryKind::Pulling => "pulling",
        RunEntryKind::Pulled => "pulled",
        RunEntryKind::PullLost => "pull_lost",
        RunEntryKind::OriginUnreachable => "origin_unreachable",
        RunEntryKind::SourceNote => "source_note",
        RunEntryKind::PlanChanged => "plan_changed",
        RunEntryKind::LastViewerLeft => "deserted",
        RunEntryKind::GaveUp => "gave_up",
        RunEntryKind::Ended => "ended",
    }
}

/// The timeline of a channel.
#[derive(Debug, Default)]
pub struct ChannelTimelines {
    /// The newest first.
    pub runs: Vec<NodeRun>,
    /// Names of the nodes that do not answer.
    pub missing: Vec<String>,
}

/// Returns the timeline of a channel, in a cluster that of all nodes.
pub async fn timeline(context: &NodeContext, channel: Uuid) -> ChannelTimelines {
    let own: Vec<NodeRun> = own_runs(context, channel);
    let Some(node) = context.node() else { return ChannelTimelines { runs: own, missing: Vec::new() } };
    let others = node.others.running();
    let asking = others.iter().map(async |other| {
        let asked = timeout(TIMELINE_ANSWER_TIMEOUT, ask(&node.others, other, channel)).await;
        asked.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    });
    let answers = join_all(asking).await;
    let mut all = named(own, &node.others.own_name());
    let mut missing = Vec::new();
    for (other, answer) in others.iter().zip(answers) {
        match answer {
            Ok(runs) => all.extend(named(runs, &other.name)),
            Err(reason) => {
                warn!(node = other.name, "a node does not send the timeline of a channel: {reason}");
                missing.push(other.name.clone());
            }
        }
    }
    ChannelTimelines { runs: together(all), missing }
}

fn own_runs(context: &NodeContext, channel: Uuid) -> Vec<NodeRun> {
    context.switchboard.timeline(channel).into_iter().map(NodeRun::from).collect()
}

/// Returns what this node sends to others about a channel; `None` for a text that is not a UUID.
pub(super) fn answer(context: &NodeContext, path: &str) -> Option<Vec<NodeRun>> {
    let channel = path.strip_prefix(TIMELINE_PATH).and_then(|it| Uuid::try_parse(it).ok())?;
    let mut runs = own_runs(context, channel);
    shorten(&mut runs, SENT_MAX);
    Some(runs)
}

async fn ask(nodes: &OtherNodes, node: &OtherNode, channel: Uuid) -> Result<Vec<NodeRun>, String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let request = Request::get(format!("{TIMELINE_PATH}{channel}")).body(Full::default());
    let (_, body) = nodes.exchange(node, request.map_err(|it| text(&it))?, TIMELINE_BYTES_MAX).await?;
    let mut runs = serde_json::from_slice(&body).map_err(|it| text(&it))?;
    shorten(&mut runs, SENT_MAX);
    Ok(runs)
}

fn named(mut runs: Vec<NodeRun>, node: &str) -> Vec<NodeRun> {
    for run in &mut runs {
        run.nodes = vec![node.to_owned()];
        run.entries.iter_mut().for_each(|it| it.node = Some(node.to_owned()));
    }
    runs
}

/// Joins the runs of several nodes that overlap in time to one. Returns them newest first.
fn together(mut all: Vec<NodeRun>) -> Vec<NodeRun> {
    all.sort_by_key(|it| it.started_at);
    let mut joined: Vec<NodeRun> = Vec::new();
    for run in all {
        match joined.last_mut() {
            Some(last) if last.ended_at.is_none_or(|end| run.started_at < end) => {
                last.ended_at = last.ended_at.zip(run.ended_at).map(|(one, other)| one.max(other));
                last.n_dropped = last.n_dropped.saturating_add(run.n_dropped);
                last.nodes.extend(run.nodes);
                last.entries.extend(run.entries);
            }
            _ => joined.push(run),
        }
    }
    for run in &mut joined {
        run.nodes.sort_unstable();
        run.nodes.dedup();
        run.entries.sort_by_key(|it| it.at);
    }
    joined.reverse();
    shorten(&mut joined, SHOWN_MAX);
    joined
}

/// Removes the oldest entries above a number, and the oldest runs.
fn shorten(runs: &mut Vec<NodeRun>, entries_max: usize) {
    runs.truncate(RUNS_MAX);
    let mut n_free = entries_max;
    for run in runs {
        let n_over = run.entries.len().saturating_sub(n_free);
        run.entries.drain(..n_over);
        run.n_dropped = run.n_dropped.saturating_add(n_over as u64);
        n_free -= run.entries.len();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(at: i64) -> NodeRunEntry {
        NodeRunEntry {
            at,
            node: None,
            kind: kind_name(RunEntryKind::Lost).to_owned(),
            state: "opening".to_owned(),
            cause: None,
            detail: String::new(),
            stream: None,
            upstream_status: None,
            gap_ms: None,
            bytes_in: 0,
        }
    }

    fn run(started_at: i64, ended_at: Option<i64>, entries: &[i64]) -> NodeRun {
        let entries = entries.iter().copied().map(entry).collect();
        NodeRun { name: "News".to_owned(), started_at, ended_at, n_dropped: 1, nodes: Vec::new(), entries }
    }

    #[test]
    fn runs_of_nodes_at_the_same_time_are_one_with_the_entries_of_all() {
        let mut all = named(vec![run(50, None, &[50, 70]), run(10, Some(20), &[10])], "attic");
        all.extend(named(vec![run(15, Some(30), &[15, 5]), run(60, Some(65), &[60])], "cellar"));
        let joined = together(all);
        let seen: Vec<_> = joined
            .iter()
            .map(|it| {
                let entries = it.entries.iter().map(|it| (it.at, it.node.as_deref().unwrap()));
                (it.started_at, it.ended_at, it.n_dropped, it.nodes.join("+"), entries.collect::<Vec<_>>())
            })
            .collect();
        let both = || "attic+cellar".to_owned();
        let expected = [
            (50, None, 2, both(), vec![(50, "attic"), (60, "cellar"), (70, "attic")]),
            (10, Some(30), 2, both(), vec![(5, "cellar"), (10, "attic"), (15, "cellar")]),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_newest_entries_are_sent() {
        let mut runs = vec![run(50, None, &[50, 51, 52]), run(10, Some(20), &[10, 11])];
        shorten(&mut runs, 4);
        let entries: Vec<Vec<_>> =
            runs.iter().map(|it| it.entries.iter().map(|it| it.at).collect()).collect();
        assert_eq!((entries, runs[1].n_dropped), (vec![vec![50, 51, 52], vec![11]], 2));
    }

    #[test]
    fn what_a_later_version_sends_is_left_out_and_the_rest_is_shown() {
        let mut sent = serde_json::to_value([run(10, None, &[10])]).unwrap();
        sent[0]["later"] = json!(true);
        sent[0]["entries"].as_array_mut().unwrap().push(json!({ "at": "later" }));
        let read: Vec<NodeRun> = serde_json::from_value(sent).unwrap();
        assert_eq!(read, [run(10, None, &[10])]);
    }
}
