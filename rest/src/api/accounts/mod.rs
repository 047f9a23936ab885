//! `/api/accounts/`: authentication and users.
//!
//! `tokens` (login), `browser` (login in a browser), `logins` (logins by device), `setup` (the first admin), `api_keys`, `users` (for admins), `me` (the
//! caller's own account), `user_view` and `user_rules` (what both have in common), `user_groups` (groups and permissions), `viewing_times` (allowed hours and the sleep timer), `addresses` (for players), `player_secret`. `properties` holds the custom properties of a user, some
//! of which the gateway interprets, `avatar` the
//! appearance, and `pictures` the uploaded picture.

mod addresses;
mod api_keys;
pub(crate) mod avatar;
mod browser;
mod logins;
mod me;
mod passwords;
pub(crate) mod pictures;
mod player_secret;
mod properties;
mod setup;
mod tokens;
mod user_groups;
mod user_rules;
mod user_view;
mod users;
mod viewing_times;

use route_frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    let routes = [
        tokens::routes(),
        browser::routes(),
        logins::routes(),
        setup::routes(),
        api_keys::routes(),
        me::routes(),
        users::routes(),
        addresses::routes(),
        player_secret::routes(),
        pictures::routes(),
        user_groups::routes(),
    ];
    routes.into_iter().flatten().collect()
}
