//! Films, episodes and the past of channels on nodes that may not open their accounts: edge nodes, and full nodes that an
//! account does not name.
//!
//! Such a node passes the request of its player to a full node, which authenticates the player, counts its stream, and answers
//! as it would answer a player of its own. The bytes are passed on as they arrive.
//!
//! ```text
//! player ─► this node ─► full node ─┬─ may open it ─► provider
//!              ▲  └────► the next ◄─┴─ may not, or is busy: 421
//!              └─ none is left: 503
//! ```

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use domain::origin::Origin;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyDataStream, BodyExt, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use media::Connection;
use server::ApiHandler;
use server::accept::LocalAddr;
use server::caller::PassedBy;
use server::reply::Refusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tracing::{info, warn};
use warp::reply::Response as Reply;

use super::answer::{NodeBody, passed_on};
use super::forward::{FORWARD_HEADER, Forwarded, connection_id, describe};
use super::peers::OtherNode;
use super::recordings::NodeAnswer;
use super::time_limits::PLAY_ANSWER_TIMEOUT;
use crate::context::NodeContext;

/// The requests of players on the node port: their path follows.
pub(super) const PLAY_PATH: &str = "/node/v1/play/";
/// Maximum number of players of other nodes that this one serves. They leave connections of the port for everything else.
const PLAYERS_MAX: usize = 512;

/// The answer of a node that may not open the accounts of a title, or serves too many players: another node may.
pub const ASK_ANOTHER: StatusCode = StatusCode::MISDIRECTED_REQUEST;

/// Serves players of other nodes.
pub struct PlayForNodes {
    handler: ApiHandler,
    free: Arc<Semaphore>,
}

impl PlayForNodes {
    /// `handler` has the routes of players.
    pub fn new(handler: ApiHandler) -> Self {
        Self { handler, free: Arc::new(Semaphore::new(PLAYERS_MAX)) }
    }

    /// Answers the player of another node, which authenticates here as it would there.
    pub(super) async fn answer(
        &self,
        role: Option<NodeRole>,
        (peer, local): (SocketAddr, SocketAddr),
        mut request: Request<Incoming>,
    ) -> Response<NodeBody> {
        let context = request.headers_mut().remove(FORWARD_HEADER);
        let context = context.and_then(|it| serde_json::from_slice::<Forwarded>(it.as_bytes()).ok());
        let path = request.uri().path_and_query().and_then(|it| it.as_str().strip_prefix("/node/v1/play"));
        let uri = path.and_then(|it| it.parse::<Uri>().ok());
        let (Some(context), Some(uri)) = (context, uri) else {
            warn!("the request of a player of another node is invalid");
            return passed_on(Refusal::bad_request("the request of the node is invalid").into_response());
        };
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            return passed_on(Refusal::status(ASK_ANOTHER).into_response());
        };
        *request.uri_mut() = uri;
        let connection = Arc::new(Connection::new(connection_id(), peer));
        let extensions = request.extensions_mut();
        extensions.insert(Arc::clone(&connection));
        extensions.insert(LocalAddr(context.local.unwrap_or(local)));
        extensions.insert(context.origin);
        extensions.insert(if role == Some(NodeRole::Full) { PassedBy::FullNode } else { PassedBy::EdgeNode });
        let reply = (self.handler)(request).await;
        reply.map(|body| with_connection(body, connection, permit))
    }
}

/// Returns a body that fails as soon as the connection is cancelled, such as when an admin disconnects its player.
fn with_connection<B>(body: B, connection: Arc<Connection>, permit: OwnedSemaphorePermit) -> NodeBody
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static> + Send + 'static,
{
    let body = Box::pin(BodyDataStream::new(body));
    let frames = unfold(Some((body, connection, permit)), async |state| {
        let (mut body, connection, permit) = state?;
        let next = tokio::select! {
            biased;
            () = connection.cancel.cancelled() => {
                return Some((Err(io::Error::other("the player was disconnected")), None));
            }
            next = body.next() => next?,
        };
        match next {
            Ok(bytes) => {
                connection.meter.wrote(bytes.len());
                Some((Ok(Frame::data(bytes)), Some((body, connection, permit))))
            }
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The request of a player.
pub struct PlayerRequest<'a> {
    pub method: &'a Method,
    pub path_and_query: &'a str,
    pub headers: &'a HeaderMap,
    pub origin: Origin,
    /// Identifies the player: all its requests go to the same node, where they share one connection to the provider.
    pub player: &'a str,
}

/// Passes the request of a player to full nodes, one after another, until one may answer it.
///
/// # Errors
/// None of them answers, or may open the accounts.
pub async fn play_elsewhere(context: &NodeContext, request: PlayerRequest<'_>) -> Result<Reply, Refusal> {
    let Some(node) = context.node() else { return Err(Refusal::bug()) };
    let mut nodes = node.others.full();
    let is_silent: Vec<_> = nodes.iter().map(|it| it.id).filter(|it| node.statuses.is_silent(*it)).collect();
    nodes.sort_by_key(|it| (is_silent.contains(&it.id), place(request.player, it.id)));
    let mut n_refused = 0;
    for other in &nodes {
        let answer = match ask(context, other, &request).await {
            Ok(answer) => answer,
            Err(PassError::Unreachable(reason)) => {
                warn!(node = other.name, "a node does not play for a player of this one: {reason}");
                node.statuses.set_silent(other.id);
                continue;
            }
            // It may still be opening something.
            Err(PassError::Late) => {
                let text = format!("The node {} does not answer in time.", other.name);
                return Err(Refusal::unavailable(text).retry_soon());
            }
        };
        if answer.status() == ASK_ANOTHER {
            n_refused += 1;
            continue;
        }
        return Ok(answer.into_reply(()));
    }
    info!(asked = nodes.len(), refused = n_refused, "no node plays for a player of this one");
    let text = match n_refused {
        0 => "No full node of the cluster can be reached at present.",
        _ => "No node that runs may open the accounts that have it.",
    };
    Err(Refusal::unavailable(text).retry_soon())
}

/// Why a node did not answer.
enum PassError {
    Unreachable(String),
    Late,
}

async fn ask(
    context: &NodeContext,
    node: &OtherNode,
    player: &PlayerRequest<'_>,
) -> Result<NodeAnswer, PassError> {
    let unreachable = |error: &dyn std::fmt::Display| PassError::Unreachable(error.to_string());
    let others = &context.node().ok_or(PassError::Late)?.others;
    let path = player.path_and_query.trim_start_matches('/');
    let request = Request::builder().method(player.method).uri(format!("{PLAY_PATH}{path}"));
    let mut request = request.body(Full::default()).map_err(|it| unreachable(&it))?;
    let client = Forwarded { origin: player.origin, local: None }.header();
    let client = client.ok_or_else(|| unreachable(&"the client has no JSON form"))?;
    *request.headers_mut() = player.headers.clone();
    describe(request.headers_mut(), client);
    // Bodies of players, such as forms, are not passed on.
    request.headers_mut().remove(CONTENT_LENGTH);
    request.headers_mut().remove(CONTENT_TYPE);
    match timeout(PLAY_ANSWER_TIMEOUT, others.open(node, request)).await {
        Ok(Ok((response, connection))) => Ok(NodeAnswer::new(response, connection)),
        Ok(Err(reason)) => Err(PassError::Unreachable(reason)),
        Err(_) => Err(PassError::Late),
    }
}

/// Returns the place of a node among those that play for a player. It depends on no other node, so that most players keep
/// theirs when one is lost.
fn place(player: &str, node: NodeId) -> u64 {
    let mut hasher = DefaultHasher::new();
    (player, node.0).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_spread_and_keep_their_node_when_another_one_is_lost() {
        let first = |player: u32, nodes: &[u32]| {
            let player = format!("user{player} 192.0.2.7");
            nodes.iter().copied().min_by_key(|it| place(&player, NodeId(*it))).unwrap()
        };
        let mut n_of = [0; 3];
        for player in 0..300 {
            let node = first(player, &[0, 1, 2]);
            n_of[node as usize] += 1;
            let left: Vec<_> = (0..3).filter(|it| *it != (node + 1) % 3).collect();
            assert_eq!(first(player, &left), node);
        }
        assert!(n_of.iter().all(|it| *it > 50), "{n_of:?}");
    }
}
