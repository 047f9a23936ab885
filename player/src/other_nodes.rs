//! What this node of a cluster may not read from a provider: other nodes play it for the players here.
//!
//! See [`play`](node::play).

use actors::Target;
use domain::channel::Channel;
use domain::cluster::token::NodeRole;
use domain::ids::AccountId;
use domain::plan::TitleCandidate;
use domain::stream_profile::Delivery;
use http::Method;
use node::play::{ASK_ANOTHER, PlayerRequest, play_elsewhere};
use route_frame::call::Call;
use server::caller::PassedBy;
use server::reply::Refusal;
use warp::reply::Response as Reply;

use super::answers::FileAnswer;
use crate::context::{PlayerCall, PlayerContext};

/// Returns whether this is an edge node, which has no accounts, films or streams.
pub fn is_edge(context: &PlayerContext) -> bool {
    context.nodes.node().is_some_and(|it| it.trust.role() == NodeRole::Edge)
}

/// Returns whether only other nodes may use one of these accounts.
pub(super) fn has_account(context: &PlayerContext, accounts: impl IntoIterator<Item = AccountId>) -> bool {
    if context.nodes.node().is_none() {
        return false;
    }
    let (all, conditions) = (context.models.accounts.load(), context.plans.conditions());
    let is_elsewhere =
        |id: AccountId| all.get(id.0).is_some_and(|it| it.is_active && !conditions.may_use(it));
    accounts.into_iter().any(is_elsewhere)
}

/// Returns whether only other nodes may read the archive of one of the streams of a channel.
pub(super) fn has_archive(context: &PlayerContext, channel: &Channel) -> bool {
    let plan = || context.plans.plan(&Target::Channel(channel.uuid));
    context.nodes.node().is_some() && plan().is_some_and(|it| it.n_elsewhere > 0)
}

/// Lets another node play. See [`pass`].
pub(super) async fn play(call: &Call) -> Result<FileAnswer, Refusal> {
    pass(call).await.map(FileAnswer::from_file)
}

/// Lets another node answer. A request that another node has passed on is not passed on again: that node asks the next one.
pub(super) async fn pass(call: &Call) -> Result<Reply, Refusal> {
    if call.caller.passed_by.is_some() {
        return Err(Refusal::status(ASK_ANOTHER));
    }
    let user = call.user().map(|it| it.username.clone()).unwrap_or_default();
    let request = PlayerRequest {
        // What a form had is in the query.
        method: if call.method == Method::HEAD { &Method::HEAD } else { &Method::GET },
        path_and_query: &call.path_and_query(),
        headers: &call.headers,
        origin: call.caller.origin,
        player: &format!("{user} {}", call.caller.address()),
    };
    play_elsewhere(&call.player().nodes, request).await
}

/// Returns candidates for a caller. Through an edge node, the gateway reads the files instead of a redirection, because no
/// address of a provider may reach an edge node.
pub(super) fn deliverable(call: &Call, mut candidates: Vec<TitleCandidate>) -> Vec<TitleCandidate> {
    for it in &mut candidates {
        it.candidate.profile = delivery(call.caller.passed_by, it.candidate.profile);
    }
    candidates
}

fn delivery(passed_by: Option<PassedBy>, delivery: Delivery) -> Delivery {
    match (passed_by, delivery) {
        (Some(PassedBy::EdgeNode), Delivery::Redirect) => Delivery::Proxy,
        _ => delivery,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_node_is_not_redirected_to_a_provider() {
        assert_eq!(delivery(Some(PassedBy::EdgeNode), Delivery::Redirect), Delivery::Proxy);
        for passed_by in [None, Some(PassedBy::FullNode)] {
            assert_eq!(delivery(passed_by, Delivery::Redirect), Delivery::Redirect);
        }
    }
}
