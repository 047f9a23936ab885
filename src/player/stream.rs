//! `/proxy/ts/stream/{uuid}`: a channel; `/proxy/ts/stream/{number}`: one stream alone, for admins.
//!
//! ```text
//! {uuid} ─► credentials shown ─┬─ none ─► network 403
//!                              ├─ bad ──► 401
//!                              └─ good ─► seen by the user 404, a seat 503
//! {number} ─► credentials, or ?token= 401 ─► level 403
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

/// What is read of the query; the rest is nothing to us.
#[derive(Debug, Default, Deserialize)]
struct Query {
    /// An access token, for players that can send no headers. A secret: an address with it is not logged.
    token: Option<String>,
}

/// GET, HEAD and OPTIONS. A suffix `.ts`, a trailing slash, query parameters and `Range` mean nothing here.
pub(super) fn route(app: Arc<App>) -> Routes {
    warp::path!("proxy" / "ts" / "stream" / ..)
        .and(segment())
        .and(warp::path::end())
        .and(method(METHODS))
        .and(warp::header::headers_cloned())
        // A query that cannot be read shows no token.
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

/// What a name means. Channels and streams have two kinds of names that cannot be taken for each other.
fn target(name: &str) -> Option<Target> {
    let name = name.strip_suffix(".ts").unwrap_or(name);
    let is_number = name.bytes().all(|it| it.is_ascii_digit());
    let number = || name.parse().ok().filter(|_| is_number).map(|it| Target::Stream(StreamId(it)));
    // First: a uuid may be all digits, and is then too long for a number but for its zeros.
    name.parse::<Uuid>().ok().map(Target::Channel).or_else(number)
}

/// Who watches a channel: a user who shows who they are, from anywhere, or anybody of the networks that are allowed.
fn viewer(app: &App, headers: &HeaderMap, caller: &Caller) -> Result<Option<Arc<User>>, Refusal> {
    let user = app.auth.user_of(headers)?;
    if user.is_none() && !app.config.stream_networks.contains(caller.address()) {
        return Err(app.blocked.refuse(caller, "stream"));
    }
    Ok(user)
}

/// Who previews a stream. The networks that need no credentials do not count here.
fn admin(app: &App, headers: &HeaderMap, query: Query) -> Result<Arc<User>, Refusal> {
    let user = match (app.auth.user_of(headers)?, query.token) {
        (Some(user), _) => user,
        (None, Some(token)) => app.auth.user_of_token(&token)?,
        (None, None) => return Err(Denied::Nobody.into()),
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
