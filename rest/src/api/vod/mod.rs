//! `/api/vod/`: films, series and episodes over all accounts.
//!
//! Every user reads the titles that the user may see, with one rule for lists, details, favourites, players and exports
//! ([`services::titles::SeenTitles`]). Only admins change titles, and read addresses of providers.

mod categories;
mod completion;
mod edit;
mod episodes;
mod exports;
mod favorites;
mod filters;
mod images;
mod logo_delete;
mod progress;
mod providers;
mod regroup;
mod stale;
#[cfg(test)]
mod tests;
mod titles;
mod updates;
mod view;

use route_frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    let routes = [
        titles::routes(),
        edit::routes(),
        regroup::routes(),
        stale::routes(),
        updates::routes(),
        completion::routes(),
        episodes::routes(),
        providers::routes(),
        categories::routes(),
        images::routes(),
        logo_delete::routes(),
        favorites::routes(),
        progress::routes(),
        exports::routes(),
    ];
    routes.into_iter().flatten().collect()
}
