//! What happens, told as it happens: the WebSocket at `/ws/`.
//!
//! *Dramatis personae*: the **route** (here) knows who asks before there is a socket; a **session** (`session.rs`) is
//! one open socket and the one place that writes to it; its **access** (`access.rs`) says when the user may no longer
//! see what they saw; the **hub** (`hub.rs`) makes every frame once for all sessions (`frames.rs`), from statistics it
//! takes once a second (`statistics.rs`), and runs only while somebody listens.
//!
//! No session has a queue of its own. All share one line of the newest happenings, of which a slow reader loses the
//! oldest and hears how many, and of the statistics there is only the newest.

mod access;
mod frames;
mod heartbeat;
mod hub;
mod places;
mod session;
mod statistics;

use std::sync::Arc;

use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{Method, StatusCode};
use media::Connection;
use warp::reply::Response as Reply;
use warp::ws::Ws;
use warp::{Filter, Rejection};

use self::access::{Access, BEARER};
use self::hub::Hub;
use self::places::Places;
use self::session::Session;
use crate::app::App;
use crate::auth::Denied;
use crate::http::accept::Stay;
use crate::http::reply::Refusal;
use crate::http::{Routes, method};

/// Bytes of a message from the other side, at most. Nobody has much to say to us.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// State that all sockets share.
struct Shared {
    app: Arc<App>,
    hub: Hub,
    places: Places,
}

/// A connection that wants to become a socket.
struct Knock {
    headers: HeaderMap,
    query: String,
    connection: Arc<Connection>,
    stay: Stay,
    /// `None` when what was asked is no upgrade.
    ws: Option<Ws>,
}

/// `/ws/`, for both doors.
pub(crate) fn route(app: Arc<App>) -> Routes {
    let shared = Arc::new(Shared { hub: Hub::new(Arc::clone(&app)), app, places: Places::default() });
    warp::path("ws")
        .and(warp::path::end())
        .and(method("GET"))
        .and(knock())
        .map(move |_: Method, knock: Knock| open(&shared, knock).unwrap_or_else(Refusal::into_response))
        .boxed()
}

fn knock() -> impl Filter<Extract = (Knock,), Error = Rejection> + Clone {
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let ws = warp::ws().map(Some).or(warp::any().map(|| None)).unify();
    warp::header::headers_cloned()
        .and(query)
        .and(warp::ext::get::<Arc<Connection>>())
        .and(warp::ext::get::<Stay>())
        .and(ws)
        .map(|headers, query, connection, stay, ws| Knock { headers, query, connection, stay, ws })
}

/// Who asks is known before the upgrade, so that whoever may not hears 401 as everywhere else.
fn open(shared: &Shared, knock: Knock) -> Result<Reply, Refusal> {
    let Knock { headers, query, connection, stay, ws } = knock;
    let credentials = access::credentials(&headers, &query);
    let credentials = credentials.ok_or(Denied::Nobody)?;
    let access = Access::of(&shared.app, credentials)?;
    let Some(ws) = ws else { return Ok(no_upgrade()) };
    let place = shared.places.take(access.user().id);
    let place = place.ok_or_else(|| Refusal::unavailable("too many sockets of this user are open"))?;

    let session = Session::new(shared.hub.clone(), Arc::clone(&shared.app), access, connection, place);
    // Counted from now on, not from the first frame on: a door that closes meanwhile waits for this one, too.
    let counted = stay.token();
    let ws = ws.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    let upgraded = ws.on_upgrade(move |socket| async move {
        let _counted = counted;
        session.run(socket, &stay).await;
    });
    let mut reply = warp::Reply::into_response(upgraded);
    if access::offers_bearer(&headers) {
        reply.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(BEARER));
    }
    Ok(reply)
}

fn no_upgrade() -> Reply {
    let refusal = Refusal::status(StatusCode::UPGRADE_REQUIRED).with_detail("this is a WebSocket");
    let mut reply = refusal.into_response();
    reply.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    reply
}
