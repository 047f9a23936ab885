//! `/live/{user}/{password}/{channel id}` and the short form without `live`: a channel for players with credentials in
//! the URL.
//!
//! Player apps build these URLs themselves, as for an Xtream Codes panel. They are therefore served to every network,
//! and the response to a wrong password is the same as to an unknown user.

use std::sync::Arc;

use actors::Target;
use domain::ids::ChannelId;
use domain::user;
use http::Method;
use percent_encoding::percent_decode_str;
use warp::Filter;
use warp::path::Tail;
use warp::reply::Response as Reply;

use super::watch::{METHODS, for_any_origin, preflight, unknown_channel, watch};
use crate::app::App;
use crate::http::caller::{Caller, caller};
use crate::http::reply::Refusal;
use crate::http::{Routes, method};

/// The fields of a URL. It contains a password and must never be printed.
struct LiveRequest {
    username: String,
    password: String,
    channel: ChannelId,
}

/// Builds the route `/live/{user}/{password}/{channel id}[.ts]` for GET, HEAD and OPTIONS.
pub(super) fn route(app: Arc<App>) -> Routes {
    warp::path("live").and(stream(app, parse)).boxed()
}

/// Builds the route `/{user}/{password}/{channel id}[.ts]`. It must come last, because any path of three segments
/// matches.
pub(super) fn short_route(app: Arc<App>) -> Routes {
    stream(app, |path| parse(path).filter(|it| !user::is_reserved(&it.username))).boxed()
}

/// Builds a route for the paths that `read` accepts. It reads the rest of the path in one piece, because warp's filter
/// for a single segment logs its value.
fn stream(app: Arc<App>, read: fn(&str) -> Option<LiveRequest>) -> Routes {
    warp::path::tail()
        .and_then(move |path: Tail| {
            std::future::ready(read(path.as_str()).ok_or_else(warp::reject::not_found))
        })
        .and(method(METHODS))
        .and(caller())
        .then(move |request: LiveRequest, method: Method, caller: Caller| {
            let app = Arc::clone(&app);
            async move { for_any_origin(answer(&app, request, &method, caller).await) }
        })
        .boxed()
}

/// Parses a percent-encoded `{user}/{password}/{channel id}[.ts]` with an optional trailing slash. Returns `None` for
/// anything else, including other formats, before a login is attempted.
fn parse(path: &str) -> Option<LiveRequest> {
    let mut segments = path.strip_suffix('/').unwrap_or(path).split('/');
    let mut next = || percent_decode_str(segments.next()?).decode_utf8().ok().filter(|it| !it.is_empty());
    let (username, password, file) = (next()?, next()?, next()?);
    let is_whole = segments.next().is_none();
    let channel = channel_id(&file).filter(|_| is_whole)?;
    Some(LiveRequest { username: username.into_owned(), password: password.into_owned(), channel })
}

/// Returns the channel id of a file name, with or without `.ts`. Other extensions are other formats.
fn channel_id(name: &str) -> Option<ChannelId> {
    let number = name.strip_suffix(".ts").unwrap_or(name);
    let is_number = number.bytes().all(|it| it.is_ascii_digit());
    number.parse().ok().filter(|_| is_number).map(ChannelId)
}

async fn answer(app: &App, request: LiveRequest, method: &Method, caller: Caller) -> Result<Reply, Refusal> {
    if method == Method::OPTIONS {
        return Ok(preflight());
    }
    let LiveRequest { username, password, channel } = request;
    let user = app.auth.player(&username, &password, caller.address(), &caller.agent).await?;
    let uuid = {
        let channels = app.models.channels.load();
        channels.get(channel.0).filter(|it| user::can_see(&user, it)).map(|it| it.uuid)
    };
    let target = Target::Channel(uuid.ok_or_else(unknown_channel)?);
    watch(app, target, Some(&user), method, caller).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_percent_decoded_and_a_plus_stays_a_plus() {
        let read = |path: &str| parse(path).map(|it| (it.username, it.password, it.channel.0));
        let anna = |password: &str| Some(("anna".to_owned(), password.to_owned(), 7));
        for (path, expected) in [
            ("anna/pw/7.ts", anna("pw")),
            ("anna/pw/7", anna("pw")),
            ("anna/pw/7.ts/", anna("pw")),
            ("%61nna/p%2Fw%20x/7", anna("p/w x")),
            ("anna/p+w/7", anna("p+w")),
            ("anna/p%2Bw/7", anna("p+w")),
            ("anna/%C3%A4/7", anna("ä")),
            ("anna/pw/7.ts//", None),
            ("anna/pw/7/8", None),
            ("anna/pw", None),
            ("anna//7", None),
            ("/anna/pw/7", None),
            ("anna/%ff/7", None),
            ("", None),
            ("///", None),
        ] {
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn a_channel_is_identified_by_its_id_alone() {
        for (name, expected) in [
            ("7", Some(7)),
            ("7.ts", Some(7)),
            ("0007.ts", Some(7)),
            ("7.m3u8", None),
            ("7.mp4", None),
            ("7.ts.ts", None),
            ("+7", None),
            ("-1", None),
            ("7.0", None),
            ("4294967296", None),
            ("abc.ts", None),
            (".ts", None),
            ("", None),
        ] {
            assert_eq!(channel_id(name).map(|it| it.0), expected, "{name}");
        }
    }
}
