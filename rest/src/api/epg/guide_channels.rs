//! `/api/epg/epgdata/`: the channels as guide sources name them.

use std::collections::HashSet;
use std::sync::Arc;

use domain::guide::channel::GuideChannel;
use domain::ids::{GuideChannelId, GuideSourceId};
use resource_derive::{Query, View};
use route_frame::access::STANDARD;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;
use services::guide::GuideLinks;

use super::programs::ImageAddresses;
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::seen::SeenThings;

/// A channel as a guide source names it.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "EPGData")]
pub(crate) struct GuideChannelView {
    /// Assigned by the gateway; stays the same over refreshes.
    #[field(example = "7")]
    id: GuideChannelId,
    /// Id of the channel in the guide source.
    #[field(example = "news.example")]
    tvg_id: String,
    /// Preferred name.
    #[field(example = "News")]
    name: String,
    /// URL of the logo. Users other than admins see no credentials in it.
    icon_url: Option<String>,
    /// Id of the guide source.
    #[field(example = "1")]
    epg_source: GuideSourceId,
}

/// Filters of the list of guide channels.
#[derive(Debug, Query)]
struct Filters {
    /// Ids of guide channels, separated by commas.
    #[field(items_max = 10_000)]
    ids: Option<Vec<GuideChannelId>>,
    /// Id of a guide source.
    epg_source: Option<GuideSourceId>,
    /// Part of a name or of the id in the guide source, regardless of case.
    search: Option<Search>,
    /// Part of a name, regardless of case.
    name: Option<Search>,
    /// Part of the id in the guide source, regardless of case.
    tvg_id: Option<Search>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<ByName>>,
}

const LIST: &str = "/api/epg/epgdata/";
const ONE: &str = "/api/epg/epgdata/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists guide channels: an array, or a page if one is requested.", list),
        Route::get(ONE, STANDARD, "Returns a guide channel.", retrieve),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<GuideChannelView>, Refusal> {
    let index = call.rest().models.guide.load();
    let seen = SeenGuides::new(&call);
    let ids: Option<HashSet<GuideChannelId>> = filters.ids.map(HashSet::from_iter);
    let has_name = |search: Option<&Search>, channel: &GuideChannel| match search {
        None => true,
        Some(search) => channel.names.iter().any(|it| search.matches(it)),
    };
    let is_wanted = |channel: &GuideChannel| {
        filters.epg_source.is_none_or(|it| channel.source == it)
            && ids.as_ref().is_none_or(|it| it.contains(&channel.id))
            && matches(filters.tvg_id.as_ref(), [&channel.key])
            && has_name(filters.name.as_ref(), channel)
            && (matches(filters.search.as_ref(), [&channel.key])
                || has_name(filters.search.as_ref(), channel))
            && seen.shows(channel.id)
    };
    let mut found: Vec<&Arc<GuideChannel>> = index.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Id));
    ordering.sort(&mut found, |it| it.id, |it| it.name());
    let addresses = ImageAddresses::new(&call);
    paging.render_with(&call, &found, |it| GuideChannelView::new(it, addresses))
}

async fn retrieve(call: Call) -> Result<GuideChannelView, Refusal> {
    let index = call.rest().models.guide.load();
    let channel = index.get(GuideChannelId(call.id()?));
    let channel = channel.filter(|it| SeenGuides::new(&call).shows(it.id));
    let channel = channel.ok_or_else(Refusal::unknown::<GuideChannel>)?;
    Ok(GuideChannelView::new(channel, ImageAddresses::new(&call)))
}

/// The guide channels that a caller may see.
struct SeenGuides {
    seen: SeenThings,
    links: Arc<GuideLinks>,
}

impl SeenGuides {
    fn new(call: &Call) -> Self {
        Self { seen: SeenThings::new(call), links: call.rest().guide.guides.reader().links() }
    }

    fn shows(&self, id: GuideChannelId) -> bool {
        self.seen.is_all() || self.seen.shows(self.links.channels_of(id))
    }
}

impl GuideChannelView {
    pub(super) fn new(channel: &GuideChannel, addresses: ImageAddresses) -> Self {
        Self {
            id: channel.id,
            tvg_id: channel.key.clone(),
            name: channel.name().to_owned(),
            icon_url: channel.icon.as_deref().map(|it| addresses.shown(it)),
            epg_source: channel.source,
        }
    }
}
