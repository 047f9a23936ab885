//! `/api/channels/channels/{id}/streams/stats/`: measurements of the streams of a channel.

use domain::ids::StreamId;
use resource_derive::{Query, View};
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;

use super::filters::find_visible;
use crate::api::channels::streams::{StreamStatsView, health_of};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

/// Selects measurements.
#[derive(Debug, Query)]
pub(crate) struct StatsFilters {
    /// Only streams that were measured after this time.
    since: Option<Time>,
    /// Ids of streams of the channel, separated by commas.
    #[field(items_max = 1000)]
    ids: Option<Vec<StreamId>>,
}

/// The measurements of a stream.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "StreamStatsOfChannel")]
pub(crate) struct StreamStatsOfChannelView {
    /// Id of the stream.
    #[field(example = "7")]
    id: StreamId,
    /// Values measured while the stream played; `null` if it was never measured.
    stream_stats: Option<StreamStatsView>,
    /// When the stream was measured.
    stream_stats_updated_at: Option<Time>,
}

pub(super) async fn stats_of_channel(
    call: Call,
    (filters, paging): (StatsFilters, WholeOrPages),
) -> Result<Page<StreamStatsOfChannelView>, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let is_wanted = |it: &StreamId| filters.ids.as_ref().is_none_or(|ids| ids.contains(it));
    let streams: Vec<StreamId> = channel.streams.iter().copied().filter(is_wanted).collect();
    let health = health_of(call.rest(), streams.iter().copied());
    let views = streams.into_iter().map(|id| {
        let health = health.get(&id);
        StreamStatsOfChannelView {
            id,
            stream_stats: health.and_then(StreamStatsView::new),
            stream_stats_updated_at: health.and_then(|it| it.measured_at).map(Time),
        }
    });
    let is_new = |it: &StreamStatsOfChannelView| {
        filters.since.is_none_or(|since| it.stream_stats_updated_at.is_some_and(|at| at.0 > since.0))
    };
    paging.page_from(&call, views.filter(is_new).collect())
}
