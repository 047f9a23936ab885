//! Control of what is being watched: on this node, and on all nodes of a cluster.
//!
//! ```text
//!   REST ── control ──┬─▶ perform      on this node
//!                     └─▶ OtherNodes ──▶ `POST /node/v1/control` of the other nodes ──▶ perform_for there
//! ```
//!
//! A client is disconnected by the node that its id names ([`is_client_of`]), a channel is switched by the node that has its
//! source, and stopped on all.

use actors::{
    AskError, ChannelStatus, StopOutcome, SwitchOutcome, SwitchTo, Switchboard, Target, VodSessionInfo,
    is_played_address,
};
use domain::cluster::client_ids::is_client_of;
use domain::ids::StreamId;
use domain::user::UserLevel;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use server::reply::Refusal;
use tracing::{info, warn};
use uuid::Uuid;

use crate::context::NodeContext;
use crate::peers::{OtherNode, OtherNodes};

/// An order of an admin, for one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Stop a live channel, and disconnect its clients.
    Stop(Uuid),
    /// The same, if another node has the source.
    StopEdge(Uuid),
    /// Disconnect a client of a live channel.
    Kick { channel: Uuid, client: u64 },
    /// Switch a live channel to its next stream, or to a certain one.
    Switch { channel: Uuid, to: Option<StreamId> },
    /// End the requests of a player of a film or an episode.
    EndFilm(u64),
    /// End the requests of a player of the past of a channel.
    EndPast(u64),
}

/// The outcome on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controlled {
    /// Nothing of the kind plays on the node.
    NotHere,
    Stopped {
        name: String,
        state: String,
        clients: usize,
    },
    /// A client of a live channel was disconnected.
    Kicked,
    /// The channel plays on the node, and has no such client there.
    NoSuchClient,
    Switched(Switched),
    SwitchFailed {
        name: String,
        before: Option<StreamId>,
        playing: Option<StreamId>,
        reason: String,
    },
    SwitchBusy,
    NoSuchStream,
    /// The node with this name has the source of the channel.
    AtNode(String),
    /// A player of a film, an episode or the past was disconnected from this.
    Ended(Uuid),
    /// The channel did not answer in time.
    Unanswered,
    /// The node with this name was asked, and did not answer. It may have carried the order out.
    NodeUnanswered(String),
}

/// The outcome of an order in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub done: Controlled,
    /// The names of the nodes that carried the order out. Empty without a cluster.
    pub nodes: Vec<String>,
}

/// A channel that plays another stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    pub name: String,
    pub stream: StreamId,
    pub previous: Option<StreamId>,
    pub gap_ms: u64,
    pub stream_name: Option<String>,
    /// Without parts that may be credentials.
    pub url: Option<String>,
}

impl Controlled {
    /// Returns whether another node may know more.
    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::NotHere | Self::NoSuchClient | Self::AtNode(_))
    }
}

/// Carries out an order of the admin with these credentials, on the nodes that it concerns.
///
/// # Errors
/// A channel of this node did not answer in time, or the gateway is stopping.
pub async fn control(context: &NodeContext, headers: &HeaderMap, order: Order) -> Result<Outcome, AskError> {
    let Some(nodes) = context.node().map(|it| &it.others) else {
        return Ok(Outcome { done: perform(context, order).await?, nodes: Vec::new() });
    };
    let cluster = InCluster { context, nodes, headers };
    match order {
        Order::Stop(channel) | Order::StopEdge(channel) => cluster.stop(channel).await,
        Order::Switch { .. } => cluster.first(order, nodes.running()).await,
        Order::Kick { client, .. } | Order::EndFilm(client) | Order::EndPast(client) => {
            let serve = nodes.running().into_iter().filter(|it| is_client_of(client, it.id)).collect();
            cluster.first(order, serve).await
        }
    }
}

/// The means of an order that concerns several nodes.
struct InCluster<'a> {
    context: &'a NodeContext,
    nodes: &'a OtherNodes,
    headers: &'a HeaderMap,
}

impl InCluster<'_> {
    /// Carries out an order here, or else on the first of the others that can.
    async fn first(&self, order: Order, others: Vec<OtherNode>) -> Result<Outcome, AskError> {
        let own = perform(self.context, order).await?;
        if !own.is_elsewhere() {
            return Ok(Outcome { done: own, nodes: vec![self.nodes.own_name()] });
        }
        let mut asking: FuturesUnordered<_> = others.iter().map(|it| self.pass(it, order)).collect();
        let mut unanswered = None;
        while let Some((name, done)) = asking.next().await {
            match done {
                Controlled::NodeUnanswered(_) => unanswered = Some(done),
                it if it.is_elsewhere() => {}
                done => return Ok(Outcome { done, nodes: vec![name] }),
            }
        }
        Ok(Outcome { done: unanswered.unwrap_or(own), nodes: Vec::new() })
    }

    /// Stops a channel on all nodes: on those that read it from another one first, so that none takes over.
    async fn stop(&self, channel: Uuid) -> Result<Outcome, AskError> {
        let mut stopped = Stopped::default();
        let others = self.nodes.running();
        let asking = join_all(others.iter().map(|it| self.pass(it, Order::StopEdge(channel))));
        let (own, answers) = tokio::join!(perform(self.context, Order::StopEdge(channel)), asking);
        let own = own?;
        let is_origin_here = matches!(own, Controlled::AtNode(_));
        stopped.add(self.nodes.own_name(), own);
        let mut origins = Vec::new();
        for (node, (name, done)) in others.iter().zip(answers) {
            if matches!(done, Controlled::AtNode(_)) {
                origins.push(node);
            }
            stopped.add(name, done);
        }
        if is_origin_here {
            stopped.add(self.nodes.own_name(), perform(self.context, Order::Stop(channel)).await?);
        }
        for (name, done) in join_all(origins.into_iter().map(|it| self.pass(it, Order::Stop(channel)))).await
        {
            stopped.add(name, done);
        }
        Ok(stopped.outcome())
    }

    async fn pass(&self, node: &OtherNode, order: Order) -> (String, Controlled) {
        let passed = self.nodes.pass(node, self.headers, order).await;
        let done = passed.unwrap_or_else(|error| {
            warn!(node = node.name, "failed to pass an order to another node: {error}");
            Controlled::NodeUnanswered(node.name.clone())
        });
        (node.name.clone(), done)
    }
}

/// The nodes on which a channel was stopped.
#[derive(Default)]
struct Stopped {
    done: Option<Controlled>,
    nodes: Vec<String>,
    unanswered: Option<Controlled>,
}

impl Stopped {
    fn add(&mut self, node: String, outcome: Controlled) {
        match (outcome, &mut self.done) {
            (Controlled::Stopped { clients: more, .. }, Some(Controlled::Stopped { clients, .. })) => {
                *clients += more;
                self.nodes.push(node);
            }
            (outcome @ Controlled::Stopped { .. }, done) => {
                *done = Some(outcome);
                self.nodes.push(node);
            }
            (it @ (Controlled::NodeUnanswered(_) | Controlled::Unanswered), _) => self.unanswered = Some(it),
            _ => {}
        }
    }

    /// Returns the outcome. That of a node without an answer counts more: viewers may go on watching there.
    fn outcome(self) -> Outcome {
        let done = self.unanswered.or(self.done).unwrap_or(Controlled::NotHere);
        Outcome { done, nodes: self.nodes }
    }
}

/// Carries out an order that another node has passed on, if the credentials in its headers are those of an admin.
///
/// # Errors
/// They are not.
pub async fn perform_for(
    context: &NodeContext,
    headers: &HeaderMap,
    order: Order,
) -> Result<Controlled, Refusal> {
    let user = context.auth.user_of(headers)?.ok_or_else(Refusal::no_credentials)?;
    if !user.may(UserLevel::Admin) {
        return Err(Refusal::no_permission());
    }
    // The id of an address has a meaning only on the node that gave it.
    if let Order::Switch { to: Some(id), .. } = order
        && is_played_address(id)
    {
        return Ok(Controlled::NoSuchStream);
    }
    let done = perform(context, order).await.unwrap_or(Controlled::Unanswered);
    if !done.is_elsewhere() {
        info!(user = user.username, ?order, "carried out an order from another node");
    }
    Ok(done)
}

/// Carries out an order on this node.
///
/// # Errors
/// A channel did not answer in time, or the gateway is stopping.
async fn perform(context: &NodeContext, order: Order) -> Result<Controlled, AskError> {
    let switchboard = &context.switchboard;
    match order {
        Order::Stop(uuid) | Order::StopEdge(uuid) => {
            let Some((target, before)) = live(switchboard, uuid).await? else {
                return Ok(Controlled::NotHere);
            };
            if let Some(node) =
                before.node.as_ref().filter(|it| it.is_origin && matches!(order, Order::StopEdge(_)))
            {
                return Ok(Controlled::AtNode(node.origin.to_string()));
            }
            if switchboard.stop(target).await? == StopOutcome::NotLive {
                return Ok(Controlled::NotHere);
            }
            // The channel handles messages in order: once it answers, or has ended, it has stopped.
            switchboard.status(target).await?;
            let (state, clients) = (before.state.to_owned(), before.clients.len());
            Ok(Controlled::Stopped { name: before.name, state, clients })
        }
        Order::Kick { channel, client } => {
            let Some((target, _)) = live(switchboard, channel).await? else { return Ok(Controlled::NotHere) };
            let is_gone = switchboard.kick(target, client).await?;
            Ok(if is_gone { Controlled::Kicked } else { Controlled::NoSuchClient })
        }
        Order::Switch { channel, to } => {
            let Some((target, before)) = live(switchboard, channel).await? else {
                return Ok(Controlled::NotHere);
            };
            switch(switchboard, target, before, to.map_or(SwitchTo::Next, SwitchTo::Stream)).await
        }
        Order::EndFilm(id) => {
            Ok(context.vod.stop_session(id).map_or(Controlled::NotHere, |it| Controlled::Ended(it.uuid())))
        }
        Order::EndPast(id) => {
            let is_it = |it: &VodSessionInfo| it.id == id && matches!(it.title.target, Target::Archive(_));
            let ended = if context.vod.all_sessions().iter().any(is_it) {
                context.vod.stop_session(id)
            } else {
                context.time_shift.stop_session(id)
            };
            Ok(ended.map_or(Controlled::NotHere, |it| Controlled::Ended(it.uuid())))
        }
    }
}

async fn switch(
    switchboard: &Switchboard,
    target: Target,
    before: ChannelStatus,
    to: SwitchTo,
) -> Result<Controlled, AskError> {
    let name = before.name;
    let (stream, previous, gap_ms) = match switchboard.switch(target, to).await? {
        SwitchOutcome::Switched { stream, previous, gap_ms } => (stream, previous, gap_ms),
        SwitchOutcome::Failed { playing, reason } => {
            return Ok(Controlled::SwitchFailed { name, before: before.playing, playing, reason });
        }
        SwitchOutcome::Busy => return Ok(Controlled::SwitchBusy),
        SwitchOutcome::NotLive => return Ok(Controlled::NotHere),
        SwitchOutcome::AtNode(node) => return Ok(Controlled::AtNode(node.to_string())),
        SwitchOutcome::NoSuchStream => return Ok(Controlled::NoSuchStream),
    };
    // Gets the name of the new stream, which may have failed again since.
    let after = switchboard.status(target).await?;
    let now = after.and_then(|it| it.stream).filter(|it| it.id == stream);
    let url = now.as_ref().map(|it| it.url.to_string());
    let stream_name = now.map(|it| it.name);
    Ok(Controlled::Switched(Switched { name, stream, previous, gap_ms, stream_name, url }))
}

/// Returns the live channel or preview with a UUID, and its status; `None` if it does not play here.
///
/// # Errors
/// The channel does not answer in time, or the gateway is stopping.
pub async fn live(
    switchboard: &Switchboard,
    uuid: Uuid,
) -> Result<Option<(Target, ChannelStatus)>, AskError> {
    let channel = Target::Channel(uuid);
    if let Some(status) = switchboard.status(channel).await? {
        return Ok(Some((channel, status)));
    }
    // The UUID of a preview does not contain the id of its stream.
    let all = switchboard.overview().await?;
    let Some(found) = all.into_iter().find(|it| it.target.uuid() == uuid) else { return Ok(None) };
    let status = found.status.ok_or(AskError::Timeout)?;
    Ok(Some((found.target, status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_outcomes_have_one_form_on_all_nodes() {
        let channel = Uuid::from_u128(7);
        for (order, text) in [
            (Order::Stop(channel), format!(r#"{{"stop":"{channel}"}}"#)),
            (
                Order::Kick { channel, client: 1 << 50 },
                format!(r#"{{"kick":{{"channel":"{channel}","client":{}}}}}"#, 1u64 << 50),
            ),
            (
                Order::Switch { channel, to: Some(StreamId(3)) },
                format!(r#"{{"switch":{{"channel":"{channel}","to":3}}}}"#),
            ),
            (Order::EndFilm(4), r#"{"end_film":4}"#.to_owned()),
            (Order::EndPast(5), r#"{"end_past":5}"#.to_owned()),
        ] {
            assert_eq!(serde_json::to_string(&order).unwrap(), text);
            assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
        }
        assert_eq!(serde_json::to_string(&Controlled::NotHere).unwrap(), r#""not_here""#);
        assert_eq!(
            serde_json::to_string(&Controlled::AtNode("attic".to_owned())).unwrap(),
            r#"{"at_node":"attic"}"#
        );
    }

    #[test]
    fn a_channel_that_stops_on_several_nodes_had_the_clients_of_all() {
        let stopped =
            |clients| Controlled::Stopped { name: "News".to_owned(), state: "playing".to_owned(), clients };
        let check = |outcomes: &[(&str, Controlled)], done: Controlled, nodes: &[&str]| {
            let mut all = Stopped::default();
            outcomes.iter().cloned().for_each(|(node, outcome)| all.add(node.to_owned(), outcome));
            let nodes = nodes.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(all.outcome(), Outcome { done, nodes });
        };
        let lost = || Controlled::NodeUnanswered("b".to_owned());
        check(&[("a", stopped(2)), ("b", stopped(3))], stopped(5), &["a", "b"]);
        check(&[("a", Controlled::NotHere), ("b", stopped(3))], stopped(3), &["b"]);
        check(&[("a", Controlled::NotHere), ("b", Controlled::NotHere)], Controlled::NotHere, &[]);
        // Viewers may go on watching there.
        check(&[("a", stopped(2)), ("b", lost())], lost(), &["a"]);
    }
}
