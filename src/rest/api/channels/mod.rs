//! `/api/channels/`: channels, the streams that play them, and how both are sorted.

#[expect(
    clippy::module_inception,
    reason = "the address is /api/channels/channels/, and the noun is the address"
)]
mod channels;
mod groups;
mod streams;
pub(super) mod values;

use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [channels::routes(), groups::routes(), streams::routes()].into_iter().flatten().collect()
}
