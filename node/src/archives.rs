//! The archives of providers on edge nodes, which have no streams: a full node reports how far back the past of each channel
//! can be watched, so that lists are the same on all nodes.

use std::collections::HashMap;
use std::sync::Arc;

use domain::cluster::token::NodeRole;
use domain::ids::ChannelId;
use http::Request;
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::own_node::Node;
use super::peers::OtherNode;
use super::time_limits::{ARCHIVES_ANSWER_TIMEOUT, ARCHIVES_INTERVAL, ARCHIVES_RETRY_PAUSE};
use crate::context::NodeContext;

/// Path on the node port. The query is the version that the node has which asks.
pub(super) const ARCHIVES_PATH: &str = "/node/v1/archives";
/// Maximum size of an answer: that of a million channels.
const ARCHIVES_BYTES_MAX: usize = 16 << 20;

/// The archives of providers, as a full node knows them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeArchives {
    /// Changes with the hours.
    version: u64,
    /// The hours of each channel that has an archive. `None` if the node that asks has this version.
    hours: Option<Vec<(ChannelId, u32)>>,
}

/// Answers an edge node that has sent this query.
pub(super) fn answer(context: &NodeContext, query: Option<&str>) -> NodeArchives {
    let archives = context.archives.load(&context.models);
    let is_known = query.and_then(|it| it.parse().ok()) == Some(archives.version());
    let hours = (!is_known).then(|| archives.provider_hours().collect());
    NodeArchives { version: archives.version(), hours }
}

/// Keeps the archives of an edge node up to date. Returns at once on other nodes.
pub async fn follow_archives(context: Arc<NodeContext>) {
    let Some(node) = context.node().filter(|it| it.trust.role() == NodeRole::Edge) else { return };
    let (mut known, mut is_reported) = (None, false);
    loop {
        match newest(node, known).await {
            Ok(NodeArchives { version, hours }) => {
                if let Some(hours) = hours {
                    context.archives.set_of_full_nodes(hours.into_iter().collect::<HashMap<_, _>>());
                }
                known = Some(version);
                if std::mem::take(&mut is_reported) {
                    info!("a full node reports again which channels have a past");
                }
                sleep(ARCHIVES_INTERVAL).await;
            }
            Err(reason) => {
                if !std::mem::replace(&mut is_reported, true) {
                    warn!(
                        "no full node reports which channels have a past; lists show what was known last: {reason}"
                    );
                }
                sleep(ARCHIVES_RETRY_PAUSE).await;
            }
        }
    }
}

/// Asks full nodes, one after another.
async fn newest(node: &Node, known: Option<u64>) -> Result<NodeArchives, String> {
    let mut reason = "none runs".to_owned();
    for other in node.others.full() {
        match timeout(ARCHIVES_ANSWER_TIMEOUT, ask(node, &other, known)).await {
            Ok(Ok(archives)) => return Ok(archives),
            Ok(Err(error)) => reason = format!("{}: {error}", other.name),
            Err(_) => reason = format!("{}: no answer in time", other.name),
        }
    }
    Err(reason)
}

async fn ask(node: &Node, other: &OtherNode, known: Option<u64>) -> Result<NodeArchives, String> {
    let known = known.map(|it| it.to_string()).unwrap_or_default();
    let request = Request::get(format!("{ARCHIVES_PATH}?{known}"));
    let request = request.body(Full::default()).map_err(|it| it.to_string())?;
    let (_, body) = node.others.exchange(other, request, ARCHIVES_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|it| it.to_string())
}
