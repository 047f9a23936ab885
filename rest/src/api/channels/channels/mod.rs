//! `/api/channels/channels/`, also available under `/api/channels/`: the channels of the lineup.

mod adult;
mod assign_streams;
mod bulk;
mod changed_fields;
mod edit;
mod export;
mod filters;
mod from_stream;
mod guide;
mod merge;
mod numbering;
pub(super) mod numbers;
mod rename;
pub(super) mod rows;
mod selection;
mod stats;
mod udp_output;
mod view;

#[cfg(test)]
mod tests;

use std::iter;
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::user::UserLevel;
use domain::user_group::VIEW_CHANNEL;
use http::StatusCode;
use resource_derive::{Body, Query};
use route_frame::access::{ADMIN, STANDARD, STREAMER};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use server::reply::Refusal;
use uuid::Uuid;

use self::edit::{ChannelEdit, NewChannel, change_channel, create_channel};
use self::filters::{ChannelFilters, find_visible};
pub use self::from_stream::ChannelMaker;
use self::guide::GuideLookup;
pub use self::merge::ChannelKeys;
use self::numbers::Taken;
pub(super) use self::selection::{Selection, too_many};
use self::view::{ChannelLookup, ChannelSummaryView, ChannelView};
use super::streams::{StreamLookup, StreamView, blocking, read};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{Lookup, RecordCall, Render};

/// Form of channels in the answer.
#[derive(Debug, Query)]
pub(crate) struct Form {
    /// If true, channels contain whole streams instead of their ids.
    include_streams: Option<bool>,
}

/// Selects channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChannelsByUuid {
    /// UUIDs of the channels.
    #[field(items_max = 10_000)]
    uuids: Vec<Uuid>,
}

pub(super) fn routes() -> Vec<Route> {
    const CHANNELS: &str = "/api/channels/channels/";
    const CHANNEL: &str = "/api/channels/channels/{id}/";
    let of_one = [one_resource(CHANNELS, CHANNEL), one_resource("/api/channels/", "/api/channels/{id}/")];
    of_one.into_iter().flatten().chain(reading_routes()).chain(bulk_routes()).chain(guide::routes()).collect()
}

fn reading_routes() -> Vec<Route> {
    vec![
        Route::get("/api/channels/channels/ids/", STANDARD, "Lists ids of channels.", ids)
            .also_with(VIEW_CHANNEL),
        Route::get("/api/channels/channels/summary/", STREAMER, "Lists channels in a short form.", summary),
        Route::get(
            "/api/channels/channels/numbers-in-range/",
            STANDARD,
            "Lists the channels whose numbers are in a range.",
            numbering::numbers_in_range,
        )
        .also_with(VIEW_CHANNEL),
        Route::post(
            "/api/channels/channels/by-uuids/",
            STREAMER,
            "Lists the channels with the given UUIDs. Users of level 0 see nothing that refers to providers.",
            by_uuids,
        )
        .that_reads()
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/export/",
            STANDARD,
            "Exports channels as a playlist or as a guide.",
            export::export,
        )
        .that_reads()
        .with_bulk_body(),
        Route::get(
            "/api/channels/channels/{id}/streams/",
            STANDARD,
            "Lists the streams of a channel in the order of failover.",
            streams,
        ),
        Route::get(
            "/api/channels/channels/{id}/udp-output/",
            ADMIN,
            "Returns whether a channel is sent as datagrams at present.",
            udp_output::state,
        ),
        Route::get(
            "/api/channels/channels/{id}/streams/stats/",
            STANDARD,
            "Lists the measurements of the streams of a channel.",
            stats::stats_of_channel,
        ),
    ]
}

/// Operations on many channels. Each can be undone.
fn bulk_routes() -> Vec<Route> {
    let post = Route::post(
        "/api/channels/channels/edit/bulk/",
        ADMIN,
        "Updates many channels with the same values.",
        bulk::edit_all,
    );
    vec![
        Route::post(
            "/api/channels/channels/assign/",
            ADMIN,
            "Assigns consecutive numbers to channels.",
            numbering::assign,
        )
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/assign-streams/",
            ADMIN,
            "Assigns streams to many channels.",
            assign_streams::assign_streams,
        )
        .with_bulk_body(),
        Route::patch(
            "/api/channels/channels/edit/bulk/",
            ADMIN,
            "Updates many channels, each with its own values.",
            bulk::edit_each,
        )
        .with_bulk_body(),
        post.with_bulk_body(),
        Route::post(
            "/api/channels/channels/edit/bulk-regex/",
            ADMIN,
            "Renames many channels by a regular expression.",
            rename::rename,
        )
        .with_bulk_body(),
        Route::post("/api/channels/channels/bulk-delete/", ADMIN, "Deletes channels.", bulk::bulk_delete)
            .with_bulk_body(),
        Route::delete("/api/channels/channels/bulk-delete/", ADMIN, "Deletes channels.", bulk::bulk_remove)
            .with_bulk_body(),
        Route::post(
            "/api/channels/channels/from-stream/",
            ADMIN,
            "Creates a channel from a stream, or adds the stream to a channel.",
            from_stream::from_stream,
        )
        .refuses(StatusCode::NOT_FOUND, "The stream does not exist."),
        Route::post(
            "/api/channels/channels/from-stream/bulk/",
            ADMIN,
            "Creates channels from the given streams, or adds the streams to channels.",
            from_stream::from_streams,
        )
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/reorder/",
            ADMIN,
            "Changes the order of many channels.",
            numbering::reorder_all,
        )
        .with_bulk_body(),
        Route::post(
            "/api/channels/channels/{id}/reorder/",
            ADMIN,
            "Assigns a channel the number after another channel's.",
            numbering::reorder,
        ),
    ]
}

/// Channels are available under two paths.
fn one_resource(list_path: &'static str, path: &'static str) -> Vec<Route> {
    vec![
        Route::get(list_path, STANDARD, "Lists channels.", list).also_with(VIEW_CHANNEL),
        Route::post(list_path, ADMIN, "Creates a channel.", create).with_properties_body(),
        Route::get(path, STANDARD, "Returns a channel.", retrieve).also_with(VIEW_CHANNEL),
        Route::put(path, ADMIN, "Updates a channel.", update).with_properties_body(),
        Route::patch(path, ADMIN, "Partially updates a channel.", update).with_properties_body(),
        Route::delete(path, ADMIN, "Deletes a channel and stops it if it plays.", delete),
    ]
}

async fn list(
    call: Call,
    (filters, (form, paging)): (ChannelFilters, (Form, WholeOrPages)),
) -> Result<Page<ChannelView>, Refusal> {
    let channels = filters.find(&call)?;
    let (offset, limit) = paging.window();
    let on_page = channels.iter().skip(offset).take(limit).map(|it| &**it);
    let lookup = ChannelLookup::with_streams(&call, form.include_streams, on_page).await?;
    let sees_sources = call.identity()?.may(UserLevel::Standard);
    let page = paging.render_with(&call, &channels, |it| shown(it.view(&lookup), sees_sources))?;
    let has_unassigned = channels.iter().any(|it| !lookup.has_guide(it));
    Ok(page.with_unassigned_guides(has_unassigned))
}

async fn ids(call: Call, filters: ChannelFilters) -> Result<Vec<ChannelId>, Refusal> {
    Ok(filters.find(&call)?.iter().map(|it| it.id).collect())
}

async fn summary(
    call: Call,
    (filters, paging): (ChannelFilters, WholeOrPages),
) -> Result<Page<ChannelSummaryView>, Refusal> {
    let guides = GuideLookup::new(&call.rest().models);
    paging.render_with(&call, &filters.find(&call)?, |it| ChannelSummaryView::new(it, &guides))
}

async fn by_uuids(call: Call, body: ChannelsByUuid) -> Result<Vec<ChannelView>, Refusal> {
    let (channels, is_listed) = (call.rest().models.channels.load(), call.listed());
    let lookup = ChannelLookup::load(&call)?;
    let found = body.uuids.iter().filter_map(|it| channels.one_by("uuid", it.as_bytes()));
    let views = found.filter(|it| is_listed(it)).map(|it| it.view(&lookup));
    let sees_sources = call.identity()?.may(UserLevel::Standard);
    Ok(views.map(|it| shown(it, sees_sources)).collect())
}

/// Returns a channel as a caller sees it.
fn shown(view: ChannelView, sees_sources: bool) -> ChannelView {
    if sees_sources { view } else { view.without_sources() }
}

async fn retrieve(call: Call, form: Form) -> Result<ChannelView, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let lookup = ChannelLookup::with_streams(&call, form.include_streams, iter::once(&*channel)).await?;
    Ok(shown(channel.view(&lookup), call.identity()?.may(UserLevel::Standard)))
}

async fn create(call: Call, new: NewChannel) -> Result<Created<ChannelView>, Refusal> {
    let taken = Taken::new(&call.rest().models.channels.load());
    let channel = call.write(move |write| create_channel(write, taken, new.into())).await?;
    Ok(Created(call.render(&channel)?))
}

async fn update(call: Call, edit: ChannelEdit) -> Result<ChannelView, Refusal> {
    let id = call.id()?;
    let channel = call.write(move |write| change_channel(write, id, edit)).await?;
    call.render(&channel)
}

/// The engine follows the store and stops a deleted channel. Clients also send `stop_stream`, which is not needed.
async fn delete(call: Call) -> Result<NoContent, Refusal> {
    call.delete(|_, _: &Channel| Ok(())).await
}

async fn streams(call: Call, paging: WholeOrPages) -> Result<Page<StreamView>, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let context = Arc::clone(call.rest());
    let streams = blocking(move || read(&context, &channel.streams)).await?;
    let lookup = StreamLookup::new(&call, &streams)?;
    paging.render_with(&call, &streams, |it| it.view(&lookup))
}
