//! `/api/epg/current-programs/`: the programmes that run now.

use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::GuideChannelId;
use domain::lineup::visible;
use resource_derive::Body;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use server::field_errors::NO_FIELD;
use server::reply::Refusal;
use services::guide::{ChannelGuide, GuideReader, read_guide};
use uuid::Uuid;

use super::programs::{GridProgramView, ProgramView};
use crate::context::RestCall;
use crate::seen::SeenThings;

/// Maximum number of channels of a request.
const CHANNELS_MAX: usize = 2_000;
/// Maximum number of guide channels of a request.
const GUIDE_CHANNELS_MAX: usize = 50;

/// Selects channels or guide channels.
#[derive(Clone, Debug, Body)]
#[resource(name = "CurrentPrograms")]
pub(crate) struct CurrentQuery {
    /// UUIDs of channels. Channels that the user may not watch are left out.
    #[field(items_max = CHANNELS_MAX)]
    channel_uuids: Option<Vec<Uuid>>,
    /// Instead of channels: ids of guide channels.
    #[field(items_max = GUIDE_CHANNELS_MAX, example = "[7]")]
    epg_data_ids: Option<Vec<GuideChannelId>>,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Lists the programmes that run now, each with the next one.";
    vec![Route::post("/api/epg/current-programs/", STREAMER, summary, current).that_reads().with_bulk_body()]
}

/// Leaves channels out that have no running programme.
async fn current(call: Call, query: CurrentQuery) -> Result<Vec<GridProgramView>, Refusal> {
    let guides = call.rest().guide.guides.reader();
    match (query.channel_uuids, query.epg_data_ids) {
        (Some(uuids), None) => {
            let (channels, limits) = (call.rest().models.channels.load(), call.view_limits());
            let found = uuids.iter().filter_map(|it| channels.one_by("uuid", it.as_bytes()));
            let found = found.filter(|it| visible(&limits, it));
            let channels: Vec<Arc<Channel>> = found.cloned().collect();
            read_guide(move || Ok(programmes_of_channels(&guides, &channels))).await
        }
        (None, Some(ids)) => {
            let (links, seen) = (guides.links(), SeenThings::new(&call));
            let is_readable = |id: &GuideChannelId| seen.is_all() || seen.shows(links.channels_of(*id));
            let ids: Vec<_> = ids.into_iter().filter(is_readable).collect();
            read_guide(move || Ok(programmes_of_guide_channels(&guides, &ids))).await
        }
        _ => {
            let message = "Provide either channel_uuids or epg_data_ids, and not both.";
            Err(Refusal::field(NO_FIELD, message))
        }
    }
}

fn programmes_of_channels(guides: &GuideReader, channels: &[Arc<Channel>]) -> Vec<GridProgramView> {
    let running = |channel: &Arc<Channel>| {
        let guide = guides.channel_guide(channel)?;
        let tvg_id = match guide.is_generated() {
            true => channel.uuid.to_string(),
            false => guide.guide_channel.key.clone(),
        };
        Some(GridProgramView { channel_uuid: Some(channel.uuid), ..running(guides, &guide, &tvg_id)? })
    };
    channels.iter().filter_map(running).collect()
}

fn programmes_of_guide_channels(guides: &GuideReader, ids: &[GuideChannelId]) -> Vec<GridProgramView> {
    let running = |id: &GuideChannelId| {
        let guide = guides.file_guide(*id)?;
        let running = running(guides, &guide, &guide.guide_channel.key)?;
        Some(GridProgramView { epg_data_id: Some(*id), ..running })
    };
    ids.iter().filter_map(running).collect()
}

/// Returns the running programme of a guide, with the next one.
fn running(guides: &GuideReader, guide: &ChannelGuide, tvg_id: &str) -> Option<GridProgramView> {
    let (running, next) = guide.now_and_next(guides.now);
    let next = next.map(|it| ProgramView::new(&it, tvg_id));
    Some(GridProgramView { next, ..GridProgramView::new(&running?, tvg_id) })
}
