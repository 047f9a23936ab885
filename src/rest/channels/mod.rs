//! `/api/channels/`: channels, the streams that play them, and how both are sorted.

mod groups;

use super::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [groups::routes()].into_iter().flatten().collect()
}
