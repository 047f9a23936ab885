//! The guide channels of channels: links by hand and by matching, and values that channels take over from their guide.

mod from_guide;
mod learn;
mod links;
mod lookup;
mod matching;
#[cfg(test)]
mod tests;
mod view;

use http::StatusCode;
use route_frame::access::ADMIN;
use route_frame::route::Route;

pub(super) use self::links::set_guide;
pub(super) use self::lookup::GuideLookup;

pub(super) fn routes() -> Vec<Route> {
    let matches_one = "Matches a channel with guide channels, and links the one that fits.";
    vec![
        Route::post(
            "/api/channels/channels/match-epg/",
            ADMIN,
            "Matches the selected channels, or all channels without a guide channel, and links those that fit.",
            matching::match_many,
        )
        .with_bulk_body(),
        Route::post("/api/channels/channels/{id}/match-epg/", ADMIN, matches_one, matching::match_one),
        Route::post(
            "/api/channels/channels/{id}/set-epg/",
            ADMIN,
            "Sets or removes the guide channel of a channel.",
            links::set_one,
        )
        .refuses(StatusCode::BAD_REQUEST, "The guide channel does not exist."),
        Route::post(
            "/api/channels/channels/batch-set-epg/",
            ADMIN,
            "Sets or removes the guide channels of channels.",
            links::set_many,
        )
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/set-names-from-epg/",
            ADMIN,
            "Renames channels by their guide channels.",
            from_guide::set_names,
        )
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/set-logos-from-epg/",
            ADMIN,
            "Sets the logos of channels to those of their guide channels.",
            from_guide::set_logos,
        )
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/set-tvg-ids-from-epg/",
            ADMIN,
            "Sets the guide ids of channels to the keys of their guide channels.",
            from_guide::set_tvg_ids,
        )
        .with_bulk_body(),
    ]
}
