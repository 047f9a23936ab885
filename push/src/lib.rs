//! The WebSocket at `/ws/`, which pushes events, record changes and statistics.
//!
//! *Dramatis personae*: the **route** (here) authenticates clients before the connection is upgraded; a **session**
//! (`session.rs`) is one open socket and the only writer to it; its **access** (`access.rs`) detects when the user
//! loses permissions; the **hub** (`hub.rs`) builds every frame once for all sessions (`frames.rs`), reads the
//! statistics once a second (`statistics.rs`), and runs only while at least one session listens.
//!
//! Sessions have no queues. All share one bounded broadcast channel of notifications, where a slow reader loses the
//! oldest and gets their number, and a watch channel with the newest statistics.

mod access;
pub mod context;
mod frames;
mod heartbeat;
mod hub;
mod other_nodes;
mod session;
mod socket_limit;
mod statistics;

use std::sync::Arc;

use config::NetworkClass;
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{Method, StatusCode};
use server::Routes;
use server::accept::ConnectionGuard;
use server::caller::{Caller, caller};
use server::reply::Refusal;
use services::auth::Denied;
use warp::reply::Response as Reply;
use warp::ws::Ws;
use warp::{Filter, Rejection};

use self::access::{Access, BEARER, PATH};
use self::hub::Hub;
pub use self::other_nodes::refreshes_for_others;
use self::session::Session;
use self::socket_limit::SocketLimit;
use crate::context::PushContext;

/// Maximum size of a message from a client, in bytes. Clients only send pings.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// State that all sockets share.
struct Shared {
    context: Arc<PushContext>,
    hub: Hub,
    sockets: SocketLimit,
}

/// A request to open a WebSocket.
struct UpgradeRequest {
    headers: HeaderMap,
    query: String,
    caller: Caller,
    guard: ConnectionGuard,
    /// `None` if the request asks for no upgrade.
    ws: Option<Ws>,
}

/// Builds the route `/ws/`.
pub fn route(context: Arc<PushContext>) -> Routes {
    let sockets = SocketLimit::new(context.sockets_per_user_max);
    let shared = Arc::new(Shared { hub: Hub::new(Arc::clone(&context)), context, sockets });
    warp::path("ws")
        .and(warp::path::end())
        .and(warp::method())
        .and(upgrade_request())
        .map(move |method: Method, request: UpgradeRequest| {
            let reply = match method {
                Method::GET => open(&shared, request),
                _ => Err(Refusal::wrong_method(&method, "GET")),
            };
            reply.unwrap_or_else(Refusal::into_response)
        })
        .boxed()
}

fn upgrade_request() -> impl Filter<Extract = (UpgradeRequest,), Error = Rejection> + Clone {
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let ws = warp::ws().map(Some).or(warp::any().map(|| None)).unify();
    warp::header::headers_cloned()
        .and(query)
        .and(caller())
        .and(warp::ext::get::<ConnectionGuard>())
        .and(ws)
        .map(|headers, query, caller, guard, ws| UpgradeRequest { headers, query, caller, guard, ws })
}

/// Authenticates the client before the connection is upgraded, so that a refused client gets a 401 like everywhere
/// else.
fn open(shared: &Shared, request: UpgradeRequest) -> Result<Reply, Refusal> {
    let UpgradeRequest { headers, query, caller, guard, ws } = request;
    shared.context.networks.check_connect(&caller, NetworkClass::Ui, PATH)?;
    let credentials = access::credentials(&headers, &query);
    let credentials = credentials.ok_or(Denied::NoCredentials)?;
    let access = Access::new(&shared.context, credentials, caller.clone())?;
    caller.place.note_user().map_err(|it| Refusal::unavailable(it.to_string()).retry_soon())?;
    let Some(ws) = ws else { return Ok(no_upgrade()) };
    let permit = shared.sockets.take(access.user().id);
    let permit = permit.map_err(Refusal::unavailable)?;

    let session = Session::new(&shared.hub, Arc::clone(&shared.context), access, caller, permit);
    // Taken now and not at the first frame, so that a server that begins to drain in between waits for this socket.
    let counted = guard.token();
    let ws = ws.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    let upgraded = ws.on_upgrade(move |socket| async move {
        let _counted = counted;
        session.run(socket, &guard).await;
    });
    let mut reply = warp::Reply::into_response(upgraded);
    if access::offers_bearer(&headers) {
        reply.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(BEARER));
    }
    Ok(reply)
}

fn no_upgrade() -> Reply {
    let refusal = Refusal::status(StatusCode::UPGRADE_REQUIRED).with_detail("this address is a WebSocket");
    let mut reply = refusal.into_response();
    reply.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    reply
}
