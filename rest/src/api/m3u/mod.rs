//! `/api/m3u/`: playlist accounts, their profiles, filters, groups, server
//! groups, slots and refreshes.
//!
//! The credentials of a provider are secret: URLs, header values, patterns and custom properties are visible to admins
//! only.

mod account_groups;
mod accounts;
mod built_in;
mod device;
mod edit;
mod expiry;
mod files;
mod filters;
mod guide;
mod guide_offers;
mod local_hosts;
mod location;
mod logins;
#[cfg(test)]
mod panel_tests;
mod preview;
mod profiles;
pub(super) mod refresh;
mod replace;
mod server_groups;
mod slots;
#[cfg(test)]
mod tests;
pub(super) mod text;
mod view;
pub(in crate::api) mod vod;

use route_frame::route::Route;

pub(in crate::api) use self::account_groups::AccountGroupView;
pub(in crate::api) use self::edit::headers_of;

pub(super) fn routes() -> Vec<Route> {
    let parts = [
        accounts::routes(),
        account_groups::routes(),
        files::routes(),
        filters::routes(),
        guide_offers::routes(),
        local_hosts::routes(),
        logins::routes(),
        preview::routes(),
        profiles::routes(),
        refresh::routes(),
        replace::routes(),
        server_groups::routes(),
        slots::routes(),
        vod::routes(),
    ];
    parts.into_iter().flatten().collect()
}
