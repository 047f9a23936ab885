//! `/live/{user}/{password}/{channel id}` and the short form without `live`: a channel for players that log in by the
//! address.
//!
//! Player apps make these addresses themselves, of what they know of a panel. So they are answered from any network,
//! and a wrong password looks the same as an unknown user.

use actors::Target;
use domain::ids::ChannelId;
use domain::user;
use http::Method;
use warp::reply::Response as Reply;
use warp::{Filter, Rejection};

use super::PlayerParts;
use super::watch::{METHODS, for_any_origin, preflight, unknown_channel, watch};
use crate::http::caller::{Caller, caller};
use crate::http::reply::Refusal;
use crate::http::{Routes, method, segment};

/// Who wants to watch what, as the address says. Has a password in it: it is never printed.
struct Asked {
    username: String,
    password: String,
    channel: ChannelId,
}

/// `/live/{user}/{password}/{channel id}[.ts]`. GET, HEAD and OPTIONS.
pub(super) fn route(parts: PlayerParts) -> Routes {
    warp::path("live").and(stream(parts)).boxed()
}

/// `/{user}/{password}/{channel id}[.ts]`. To be tried last: anything of three segments looks like it.
pub(super) fn short_route(parts: PlayerParts) -> Routes {
    let not_ours = warp::path::peek().and_then(|path: warp::path::Peek| async move {
        match path.segments().next() {
            Some(first) if !user::is_reserved(first) => Ok(()),
            _ => Err(warp::reject::not_found()),
        }
    });
    not_ours.untuple_one().and(stream(parts)).boxed()
}

fn stream(parts: PlayerParts) -> Routes {
    asked()
        .and(method(METHODS))
        .and(caller())
        .then(move |asked: Asked, method: Method, caller: Caller| {
            let parts = parts.clone();
            async move { for_any_origin(answer(&parts, asked, &method, caller).await) }
        })
        .boxed()
}

/// The rest of the path. What names no channel is not our route: nobody logs in for it.
fn asked() -> impl Filter<Extract = (Asked,), Error = Rejection> + Clone {
    segment().and(segment()).and(segment()).and(warp::path::end()).and_then(
        |username: String, password: String, name: String| async move {
            let channel = channel_id(&name).ok_or_else(warp::reject::not_found)?;
            Ok::<_, Rejection>(Asked { username, password, channel })
        },
    )
}

/// The channel a file name means: its number, with or without `.ts`. Other extensions are other formats.
fn channel_id(name: &str) -> Option<ChannelId> {
    let number = name.strip_suffix(".ts").unwrap_or(name);
    let is_number = number.bytes().all(|it| it.is_ascii_digit());
    number.parse().ok().filter(|_| is_number).map(ChannelId)
}

async fn answer(
    parts: &PlayerParts,
    asked: Asked,
    method: &Method,
    caller: Caller,
) -> Result<Reply, Refusal> {
    if method == Method::OPTIONS {
        return Ok(preflight());
    }
    let Asked { username, password, channel } = asked;
    let user = parts.auth.player(&username, &password, caller.address(), &caller.agent).await?;
    let channels = parts.models.channels.load();
    let channel = channels.get(channel.0).filter(|it| user::sees(&user, it)).ok_or_else(unknown_channel)?;
    watch(parts, Target::Channel(channel.uuid), Some(&user), method, caller).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_named_by_its_number_and_nothing_else() {
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
