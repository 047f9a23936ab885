//! `/api/channels/`: channels, their streams, their groups, the lineups and personal playlists that select them,
//! recordings, and the rules that make them.

#[expect(
    clippy::module_inception,
    reason = "the path is /api/channels/channels/, and the file has the name of the resource"
)]
mod channels;
mod dvr;
mod group_cleanup;
mod groups;
mod guide_aliases;
mod lineups;
mod logos;
mod pattern;
mod personal;
mod recording_rules;
mod recordings;
pub(super) mod streams;
pub(in crate::api) mod undo;
pub(super) mod values;

use route_frame::route::Route;

pub(crate) use self::channels::rows::ChannelRowCache;
pub use self::channels::{ChannelKeys, ChannelMaker};
pub(crate) use self::recording_rules::DeletedRules;

pub(super) fn routes() -> Vec<Route> {
    let routes = [
        channels::routes(),
        dvr::routes(),
        groups::routes(),
        group_cleanup::routes(),
        guide_aliases::routes(),
        lineups::routes(),
        logos::routes(),
        personal::routes(),
        recording_rules::routes(),
        recordings::routes(),
        streams::routes(),
        undo::routes(),
    ];
    routes.into_iter().flatten().collect()
}
