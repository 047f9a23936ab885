//! `/live/{user}/{password}/{file}` and the short form without `live`: a channel for players with credentials in the
//! URL. The file is the id of the channel, with or without an extension: `.ts`, `.m3u8` for HLS, `.mp4` for fragmented MP4.
//! Any other file does not exist.
//!
//! Player apps build these URLs themselves, as for an Xtream Codes panel. They are therefore served to every network,
//! and the response to a wrong password is the same as to an unknown user.

use actors::Target;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;

use super::output_profile::StreamQuery;
use super::refusals::unknown_channel;
use super::watch::{StreamAnswer, stream_route, watch};
use crate::context::PlayerCall;

/// Returns the routes of this module.
pub(super) fn routes() -> Vec<Route> {
    let route = |path, summary| stream_route(path, Access::PathLogin, summary, play);
    vec![
        route("/live/{user}/{password}/{stream_file}", "Plays a channel for a user."),
        route("/{user}/{password}/{stream_file}", "Plays a channel for a user, at a shorter address."),
    ]
}

async fn play(call: Call, query: StreamQuery) -> Result<StreamAnswer, Refusal> {
    let uuid = {
        let id = call.id_of("stream_file")?;
        let channels = call.player().models.channels.load();
        channels.get(id).filter(|it| call.can_see(it)).map(|it| it.uuid)
    };
    let target = Target::Channel(uuid.ok_or_else(unknown_channel)?);
    watch(call, target, query).await
}
