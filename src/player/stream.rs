//! `/proxy/ts/stream/{uuid}`: a channel; `/proxy/ts/stream/{number}`: a preview of a single stream, for admins.
//!
//! ```text
//! {uuid} ─► credentials ─┬─ none ────► network not allowed: 403
//!                        ├─ invalid ─► 401
//!                        └─ valid ───► channel not visible: 404, no free seat: 503
//! {number} ─► no valid credentials or ?token=: 401 ─► not an admin: 403
//! ```

use std::sync::Arc;

use actors::Target;
use domain::ids::StreamId;
use domain::user::{self, User, UserLevel};
use http::{HeaderMap, Method};
use serde::Deserialize;
use uuid::Uuid;
use warp::Filter;
use warp::reply::Response as Reply;

use super::watch::{METHODS, for_any_origin, preflight, unknown_channel, watch};
use crate::app::App;
use crate::auth::Denied;
use crate::http::caller::{Caller, caller};
use crate::http::reply::Refusal;
use crate::http::{Routes, method, segment};

/// Recognised query parameters; others are ignored.
#[derive(Debug, Default, Deserialize)]
struct Query {
    /// Access token, for players that cannot send headers. A URL with this secret is not logged.
    token: Option<String>,
}

/// Builds the route for GET, HEAD and OPTIONS. It ignores a suffix `.ts`, a trailing slash, other query parameters and
/// `Range`.
pub(super) fn route(app: Arc<App>) -> Routes {
    warp::path!("proxy" / "ts" / "stream" / ..)
        .and(segment())
        .and(warp::path::end())
        .and(method(METHODS))
        .and(warp::header::headers_cloned())
        // A malformed query has no token.
        .and(warp::query::<Query>().or(warp::any().map(Query::default)).unify())
        .and(caller())
        .then(move |name: String, method: Method, headers: HeaderMap, query: Query, caller: Caller| {
            let app = Arc::clone(&app);
            async move { for_any_origin(answer(&app, &name, &method, &headers, query, caller).await) }
        })
        .boxed()
}

async fn answer(
    app: &App,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
    query: Query,
    caller: Caller,
) -> Result<Reply, Refusal> {
    if method == Method::OPTIONS {
        return Ok(preflight());
    }
    let target = target(name);
    let user = match target {
        Some(Target::Stream(_)) => Some(admin(app, headers, query)?),
        _ => viewer(app, headers, &caller)?,
    };
    let target = target.ok_or_else(unknown_channel)?;
    if let (Target::Channel(uuid), Some(user)) = (target, &user) {
        let channels = app.models.channels.load();
        let channel = channels.one_by("uuid", uuid.as_bytes());
        channel.filter(|it| user::can_see(user, it)).ok_or_else(unknown_channel)?;
    }
    watch(app, target, user.as_deref(), method, caller).await
}

/// Parses a target: a uuid is a channel, and a number is a stream.
fn target(name: &str) -> Option<Target> {
    let name = name.strip_suffix(".ts").unwrap_or(name);
    let is_number = name.bytes().all(|it| it.is_ascii_digit());
    let number = || name.parse().ok().filter(|_| is_number).map(|it| Target::Stream(StreamId(it)));
    // Try the uuid first: one that consists of digits, with leading zeros, could also be parsed as a number.
    name.parse::<Uuid>().ok().map(Target::Channel).or_else(number)
}

/// Returns the user who watches a channel: with credentials from any network, or `None` without credentials from an
/// allowed network.
fn viewer(app: &App, headers: &HeaderMap, caller: &Caller) -> Result<Option<Arc<User>>, Refusal> {
    let user = app.auth.user_of(headers)?;
    if user.is_none() && !app.config.stream_networks.contains(caller.address()) {
        return Err(app.network_refusals.refuse(caller, "stream"));
    }
    Ok(user)
}

/// Returns the admin who previews a stream. Credentials are required on every network.
fn admin(app: &App, headers: &HeaderMap, query: Query) -> Result<Arc<User>, Refusal> {
    let user = match (app.auth.user_of(headers)?, query.token) {
        (Some(user), _) => user,
        (None, Some(token)) => app.auth.user_of_token(&token)?,
        (None, None) => return Err(Denied::NoCredentials.into()),
    };
    if user.may(UserLevel::Admin) { Ok(user) } else { Err(Refusal::forbidden()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_stream_and_a_uuid_a_channel() {
        let uuid = "00000000-0000-0000-0000-000000000007";
        let channel = Some(Target::Channel(Uuid::from_u128(7)));
        for (name, expected) in [
            ("7", Some(Target::Stream(StreamId(7)))),
            ("7.ts", Some(Target::Stream(StreamId(7)))),
            (uuid, channel),
            (&uuid.replace('-', ""), channel), // digits only
            (&format!("{uuid}.ts"), channel),
            ("+7", None),
            ("-7", None),
            ("4294967296", None),
            ("7.m3u8", None),
            ("", None),
            (".ts", None),
            ("seven", None),
        ] {
            assert_eq!(target(name), expected, "{name}");
        }
    }
}
