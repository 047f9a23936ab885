//! The guide channels of channels: links by hand and by matching, and values that channels take over from their guide.

mod from_guide;
mod learn;
mod links;
mod matching;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::ids::GuideChannelId;
use http::StatusCode;
use route_frame::access::ADMIN;
use route_frame::route::Route;
use storage::Models;

pub(super) use self::links::set_guide;

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

/// All guide channels, and which of them counts for a channel.
pub(super) struct GuideLookup {
    index: Arc<GuideIndex>,
    order: SourceOrder,
}

impl GuideLookup {
    pub(super) fn new(models: &Models) -> Self {
        let sources = models.guide_sources.load();
        Self { index: models.guide.load(), order: SourceOrder::new(sources.iter().map(|it| &**it)) }
    }

    /// Returns the linked guide channel, if it exists.
    pub(super) fn linked(&self, channel: &Channel) -> Option<GuideChannelId> {
        channel.guide_channel.filter(|it| self.index.get(*it).is_some())
    }

    /// Returns the guide channel whose programmes a channel shows.
    pub(super) fn guide_channel(&self, channel: &Channel) -> Option<&Arc<GuideChannel>> {
        self.index.shown_channel(channel, &self.order)
    }

    /// Returns its id.
    pub(super) fn shown(&self, channel: &Channel) -> Option<GuideChannelId> {
        self.guide_channel(channel).map(|it| it.id)
    }

    fn get(&self, id: GuideChannelId) -> Option<&Arc<GuideChannel>> {
        self.index.get(id)
    }
}
