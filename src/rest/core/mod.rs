//! `/api/core/`: what concerns the gateway as a whole.

mod version;

use super::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [version::routes()].into_iter().flatten().collect()
}
