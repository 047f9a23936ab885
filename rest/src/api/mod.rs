//! The resources, one folder for each area of the API.

pub(crate) mod accounts;
mod backups;
mod channels;
mod connect;
mod core;
mod demo;
mod epg;
mod hdhr;
mod m3u;
mod plugins;
mod proxy;
mod root;
mod schema;
mod text;
mod tuner;
mod vod;

use route_frame::route::Route;

pub use self::accounts::avatar::check as check_avatar;
pub use self::accounts::pictures::PICTURE_BYTES_MAX;
pub use self::channels::{ChannelKeys, ChannelMaker};
pub(crate) use self::channels::{ChannelRowCache, DeletedRules};
pub use self::proxy::{pushed_channel, pushed_past_stats, pushed_stats};

/// Returns every operation of the API.
pub(super) fn routes() -> Vec<Route> {
    let areas = [
        root::routes(),
        accounts::routes(),
        backups::routes(),
        channels::routes(),
        connect::routes(),
        core::routes(),
        demo::routes(),
        epg::routes(),
        hdhr::routes(),
        m3u::routes(),
        plugins::routes(),
        schema::routes(),
        proxy::routes(),
        tuner::routes(),
        vod::routes(),
    ];
    areas.into_iter().flatten().collect()
}
