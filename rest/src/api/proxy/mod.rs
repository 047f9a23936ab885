//! `/proxy/ts/`, `/proxy/vod/` and `/proxy/catchup/`: status and control of live channels, films, episodes and catch-up. `player` serves the streams
//! themselves.

mod catchup;
mod catchup_view;
mod connection;
mod control;
mod live;
mod live_facts;
mod live_push;
mod live_view;
mod status;
mod timeline;
mod vod;
mod vod_view;

use http::StatusCode;
use route_frame::route::Route;

pub use self::catchup_view::pushed_past_stats;
pub use self::live_push::pushed_channel;
pub(super) use self::status::visible_targets;
pub use self::vod_view::pushed_stats;

pub(super) fn routes() -> Vec<Route> {
    let routes = [status::routes(), control::routes(), timeline::routes(), vod::routes(), catchup::routes()];
    let timeout = |route: Route| {
        route.refuses(
            StatusCode::GATEWAY_TIMEOUT,
            "The channel does not answer in time. The result is unknown.",
        )
    };
    routes.into_iter().flatten().map(timeout).collect()
}
