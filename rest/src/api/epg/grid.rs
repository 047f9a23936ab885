//! `/api/epg/grid/`: the programmes of channels in a span of time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::{ChannelId, GroupId};
use domain::lineup::visible_by_groups;
use resource_derive::{Query, View};
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::guide::{ChannelGuide, GuideEntry, GuideKey, GuideReader, read_guide};

use super::programs::GridProgramView;
use crate::context::RestCall;

/// Part of the grid before now and after now, in seconds, if no times are given.
const BEFORE: i64 = 60 * 60;
const AFTER: i64 = 24 * 60 * 60;
/// Maximum length of the grid, in seconds: two weeks.
const SPAN_MAX: i64 = 14 * AFTER;
/// Maximum number of programmes in an answer.
const PROGRAMMES_MAX: usize = 50_000;
/// Maximum number of categories of a programme. Some guides have dozens, and an answer has many programmes.
const CATEGORIES_MAX: usize = 8;
/// Maximum number of channels that a request names.
const CHANNELS_MAX: usize = 1_000;

/// The grid.
#[derive(Debug, Query)]
struct GridQuery {
    /// Start of the grid; an hour ago by default.
    #[field(example = "2031-05-04T07:00:00Z")]
    start: Option<Time>,
    /// End of the grid; 25 hours after its start by default.
    #[field(example = "2031-05-04T13:00:00Z")]
    end: Option<Time>,
    /// Ids of channels, separated by commas; all that the caller may watch by default. Unknown ones are ignored.
    #[field(items_max = CHANNELS_MAX, example = "[1, 2]")]
    channels: Option<Vec<ChannelId>>,
}

/// The programmes of channels in a span of time.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "GuideGrid")]
pub(crate) struct GridView {
    /// The programmes, those of one guide channel after the other, by their start. A channel without a guide has none.
    data: Vec<GridProgramView>,
}

/// The programmes that some channels share.
struct GridRow {
    guide: ChannelGuide,
    tvg_id: String,
    channels: Vec<ChannelId>,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Lists the programmes of channels in a span of time.";
    vec![Route::get("/api/epg/grid/", STREAMER, summary, grid)]
}

async fn grid(call: Call, query: GridQuery) -> Result<GridView, Refusal> {
    let guides = call.rest().guide.guides.reader();
    let (from, until) = span(&query, guides.now)?;
    let wanted: Option<HashSet<ChannelId>> = query.channels.map(HashSet::from_iter);
    let (channels, limits) = (call.rest().models.channels.load(), call.view_limits());
    let groups = call.rest().models.groups.load();
    read_guide(move || {
        let is_wanted = |it: &&Arc<Channel>| wanted.as_ref().is_none_or(|ids| ids.contains(&it.id));
        let place = |id: GroupId| groups.get(id.0).map_or(u32::MAX, |it| it.place());
        let channels = visible_by_groups(&limits, channels.iter().filter(is_wanted), place);
        let mut data = Vec::new();
        for row in rows(&guides, &channels) {
            let found = row.guide.programmes(from, until);
            if data.len() + found.len() > PROGRAMMES_MAX {
                let message = format!(
                    "The grid has more than {PROGRAMMES_MAX} programmes. Choose a shorter time, or name fewer channels."
                );
                return Err(Refusal::field("channels", message));
            }
            data.extend(found.iter().map(|it| row.view(it)));
        }
        Ok(GridView { data })
    })
    .await
}

/// Returns start and end of the grid, in seconds since 1970.
fn span(query: &GridQuery, now: i64) -> Result<(i64, i64), Refusal> {
    let seconds = |it: Time| it.0.div_euclid(1000);
    let from = query.start.map_or(now - BEFORE, seconds);
    let until = query.end.map_or(from.saturating_add(BEFORE + AFTER), seconds);
    if until <= from {
        return Err(Refusal::field("end", "The end must be after the start."));
    }
    if until.saturating_sub(from) > SPAN_MAX {
        return Err(Refusal::field("end", "The grid covers at most 14 days."));
    }
    Ok((from, until))
}

/// Returns the guides of these channels. Channels with the same programmes at the same times share a row.
fn rows(guides: &GuideReader, channels: &[&Arc<Channel>]) -> Vec<GridRow> {
    let mut rows: Vec<GridRow> = Vec::new();
    let mut by_guide: HashMap<GuideKey, usize> = HashMap::new();
    for channel in channels {
        let Some(guide) = guides.channel_guide(channel) else { continue };
        if guide.is_generated() {
            let tvg_id = channel.uuid.to_string();
            rows.push(GridRow { guide, tvg_id, channels: vec![channel.id] });
            continue;
        }
        let at = *by_guide.entry(guide.key()).or_insert(rows.len());
        match rows.get_mut(at) {
            Some(row) => row.channels.push(channel.id),
            None => {
                let tvg_id = guide.guide_channel.key.clone();
                rows.push(GridRow { guide, tvg_id, channels: vec![channel.id] });
            }
        }
    }
    rows
}

impl GridRow {
    fn view(&self, entry: &GuideEntry) -> GridProgramView {
        let channel_ids = Some(self.channels.clone());
        let programme = entry.programme();
        let categories = programme.categories().take(CATEGORIES_MAX).map(str::to_owned).collect();
        GridProgramView {
            channel_ids,
            categories: Some(categories),
            ..GridProgramView::new(entry, &self.tvg_id)
        }
    }
}
