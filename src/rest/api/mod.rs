//! The resources, one folder for each area of the API.

mod accounts;
mod backups;
mod channels;
mod core;
mod hdhr;
mod m3u;
mod proxy;
mod root;
mod schema;
mod tuner;

use crate::rest::frame::route::Route;

/// Returns every operation of the API.
pub(super) fn routes() -> Vec<Route> {
    let areas = [
        root::routes(),
        accounts::routes(),
        backups::routes(),
        channels::routes(),
        core::routes(),
        hdhr::routes(),
        m3u::routes(),
        schema::routes(),
        proxy::routes(),
        tuner::routes(),
    ];
    areas.into_iter().flatten().collect()
}
