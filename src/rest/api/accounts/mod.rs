//! `/api/accounts/`: who somebody is, and who there is.
//!
//! `tokens` (logging in), `setup` (the first admin), `api_keys`, `users` (all of them, for admins), `me` (oneself).
//! What programs keep with a user, and what the gateway takes out of it, is in `properties`.

mod api_keys;
mod me;
mod properties;
mod setup;
mod tokens;
mod users;

use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [tokens::routes(), setup::routes(), api_keys::routes(), me::routes(), users::routes()]
        .into_iter()
        .flatten()
        .collect()
}
