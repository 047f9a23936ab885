//! `/api/core/`: settings and state of the whole gateway.

mod audit;
mod settings;
mod stream_profiles;
mod system_events;
mod trials;
mod version;

use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    let routes = [
        audit::routes(),
        settings::routes(),
        stream_profiles::routes(),
        system_events::routes(),
        trials::routes(),
        version::routes(),
    ];
    routes.into_iter().flatten().collect()
}
