//! `/api/core/`: what concerns the gateway as a whole.

mod settings;
mod stream_profiles;
mod version;

use super::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [settings::routes(), stream_profiles::routes(), version::routes()].into_iter().flatten().collect()
}
