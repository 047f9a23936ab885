//! `/api/epg/`: the programme guide.

mod current;
mod grid;
mod guide_channels;
mod programs;
pub(super) mod sources;
#[cfg(test)]
mod tests;

use route_frame::route::Route;

/// Returns the routes below `/api/epg/`.
pub(super) fn routes() -> Vec<Route> {
    [sources::routes(), guide_channels::routes(), programs::routes(), grid::routes(), current::routes()]
        .into_iter()
        .flatten()
        .collect()
}
