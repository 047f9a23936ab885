//! `/api/accounts/`: authentication and users.
//!
//! `tokens` (login), `logins` (logins by device), `setup` (the first admin), `api_keys`, `users` (for admins), `me` (the caller's own account).
//! `properties` holds the custom properties of a user, two of which the gateway interprets.

mod api_keys;
mod logins;
mod me;
mod passwords;
mod properties;
mod setup;
mod tokens;
mod users;

use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [tokens::routes(), logins::routes(), setup::routes(), api_keys::routes(), me::routes(), users::routes()]
        .into_iter()
        .flatten()
        .collect()
}
