//! `/proxy/ts/stream/{uuid}`: a channel; `/proxy/ts/stream/{number}`: a preview of a single stream, for admins.
//!
//! ```text
//! {uuid} ─► credentials ─┬─ none ────► network not allowed: 403, channel not for everyone: 404
//!                        ├─ invalid ─► 401
//!                        └─ valid ───► channel not visible: 404, no free seat: 503
//! {number} ─► no valid credentials or ?token=: 401 ─► not an admin: 403
//! ```

use actors::Target;
use domain::ids::StreamId;
use domain::user::UserLevel;
use route_frame::access::Access;
use route_frame::call::{Call, Parameters};
use route_frame::route::Route;
use server::reply::Refusal;
use uuid::Uuid;

use super::output_profile::StreamQuery;
use super::refusals::unknown_channel;
use super::watch::{StreamAnswer, stream_route, watch};
use crate::context::PlayerCall;

/// Returns the route of this module. It ignores a suffix `.ts`, other query parameters and `Range`.
pub(super) fn routes() -> Vec<Route> {
    let access = Access::Depends {
        on: access,
        description: "A UUID is a channel: it requires a user or an allowed network. A number is a stream, which \
            administrators can preview.",
    };
    vec![stream_route("/proxy/ts/stream/{target}", access, "Plays a channel or previews a stream.", play)]
}

/// Returns the access to a target. One that cannot be parsed is treated like an unknown channel.
fn access(parameters: &Parameters) -> Access {
    match parameters.text("target").and_then(target) {
        Some(Target::Stream(_)) => Access::FromHeaderOrQuery(UserLevel::Admin),
        Some(
            Target::Channel(_)
            | Target::Movie(_)
            | Target::Episode(_)
            | Target::Archive(_)
            | Target::Recording(_),
        )
        | None => Access::UsersOrNetworks(UserLevel::Streamer),
    }
}

async fn play(call: Call, query: StreamQuery) -> Result<StreamAnswer, Refusal> {
    let target = target(call.text("target")?).ok_or_else(unknown_channel)?;
    if let Target::Channel(uuid) = target {
        let channels = call.player().models.channels.load();
        let channel = channels.one_by("uuid", uuid.as_bytes());
        channel.filter(|it| call.can_see(it)).ok_or_else(unknown_channel)?;
    }
    watch(call, target, query).await
}

/// Parses a target: a uuid is a channel, and a number is a stream.
fn target(name: &str) -> Option<Target> {
    let name = name.strip_suffix(".ts").unwrap_or(name);
    let is_number = name.bytes().all(|it| it.is_ascii_digit());
    let number = || name.parse().ok().filter(|_| is_number).map(|it| Target::Stream(StreamId(it)));
    // Try the uuid first: one that consists of digits, with leading zeros, could also be parsed as a number.
    name.parse::<Uuid>().ok().map(Target::Channel).or_else(number)
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
