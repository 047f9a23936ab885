//! `/api/channels/channels/`, and the same under `/api/channels/`: the channels of the lineup.

mod bulk;
mod edit;
mod filters;
mod from_stream;
mod numbers;
mod view;

#[cfg(test)]
mod tests;

use domain::channel::Channel;
use domain::ids::ChannelId;
use http::StatusCode;
use uuid::Uuid;

use self::edit::ChannelEdit;
pub(super) use self::filters::visible;
use self::filters::{ChannelFilters, find_visible};
use self::numbers::Taken;
use self::view::{ChannelRecord, ChannelSummary, ChannelViews};
use super::streams::{StreamRecord, StreamViews, blocking, read};
use crate::http::reply::Refusal;
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::list::{Page, WholeOrPages};
use crate::rest::frame::record::{body, query};
use crate::rest::frame::route::{ADMIN, Created, Done, Route, STANDARD};

query! {
    /// How channels are shown.
    Shown {
        /// Streams themselves in the place of their ids, if this is true.
        include_streams: bool,
    }
}

body! {
    /// Which channels.
    ChannelsByUuid {
        /// Their UUIDs.
        uuids: Vec<Uuid> [required(), items_max(10_000)],
    }
}

pub(super) fn routes() -> Vec<Route> {
    const CHANNELS: &str = "/api/channels/channels/";
    const CHANNEL: &str = "/api/channels/channels/{id}/";
    let of_one = [one_resource(CHANNELS, CHANNEL), one_resource("/api/channels/", "/api/channels/{id}/")];
    let others = vec![
        Route::get("/api/channels/channels/ids/", STANDARD, "Lists ids of channels.", ids),
        Route::get("/api/channels/channels/summary/", STANDARD, "Lists channels in short.", summary),
        Route::get(
            "/api/channels/channels/numbers-in-range/",
            STANDARD,
            "Says which channels have numbers of a range.",
            bulk::numbers_in_range,
        ),
        Route::post(
            "/api/channels/channels/by-uuids/",
            STANDARD,
            "Shows the channels of these UUIDs.",
            by_uuids,
        ),
        Route::post("/api/channels/channels/assign/", ADMIN, "Numbers channels in a row.", bulk::assign),
        Route::patch("/api/channels/channels/edit/bulk/", ADMIN, "Changes many channels.", bulk::edit_many),
        Route::post("/api/channels/channels/bulk-delete/", ADMIN, "Deletes channels.", bulk::bulk_delete),
        Route::delete("/api/channels/channels/bulk-delete/", ADMIN, "Deletes channels.", bulk::bulk_remove),
        Route::post(
            "/api/channels/channels/from-stream/",
            ADMIN,
            "Makes a channel of a stream.",
            from_stream::from_stream,
        )
        .refuses(StatusCode::NOT_FOUND, "There is no such stream."),
        Route::post(
            "/api/channels/channels/from-stream/bulk/",
            ADMIN,
            "Makes a channel of each of these streams.",
            from_stream::from_streams,
        ),
        Route::get(
            "/api/channels/channels/{id}/streams/",
            STANDARD,
            "Lists the streams of a channel in the order in which they are tried.",
            streams,
        ),
        Route::post(
            "/api/channels/channels/{id}/reorder/",
            ADMIN,
            "Gives a channel the number after another one's.",
            bulk::reorder,
        ),
    ];
    of_one.into_iter().flatten().chain(others).collect()
}

/// The interface has two paths for channels.
fn one_resource(list_path: &'static str, path: &'static str) -> Vec<Route> {
    vec![
        Route::get(list_path, STANDARD, "Lists channels.", list),
        Route::post(list_path, ADMIN, "Makes a channel.", create),
        Route::get(path, STANDARD, "Shows a channel.", retrieve),
        Route::put(path, ADMIN, "Changes a channel.", update),
        Route::patch(path, ADMIN, "Changes a channel.", update),
        Route::delete(path, ADMIN, "Deletes a channel, and ends it where it plays.", remove),
    ]
}

async fn list(
    call: Call,
    (filters, (shown, paging)): (ChannelFilters, (Shown, WholeOrPages)),
) -> Result<Page<ChannelRecord>, Refusal> {
    let channels = filters.find(&call);
    let (offset, limit) = paging.window();
    let on_page = channels.iter().skip(offset).take(limit).map(|it| &**it);
    let views = ChannelViews::with_streams(&call, shown.include_streams, on_page).await?;
    paging.of(&call, &channels, |it| views.channel(it))
}

async fn ids(call: Call, filters: ChannelFilters) -> Result<Vec<ChannelId>, Refusal> {
    Ok(filters.find(&call).iter().map(|it| it.id).collect())
}

async fn summary(call: Call, filters: ChannelFilters) -> Result<Vec<ChannelSummary>, Refusal> {
    Ok(filters.find(&call).iter().map(|it| ChannelSummary::of(it)).collect())
}

async fn by_uuids(call: Call, body: ChannelsByUuid) -> Result<Vec<ChannelRecord>, Refusal> {
    let channels = call.app.models.channels.load();
    let views = ChannelViews::of(&call);
    let uuids = body.uuids.unwrap_or_default();
    let found = uuids.iter().filter_map(|it| channels.one_by("uuid", it.as_bytes()));
    Ok(found.filter(|it| visible(&call, it)).map(|it| views.channel(it)).collect())
}

async fn retrieve(call: Call, shown: Shown) -> Result<ChannelRecord, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let views = ChannelViews::with_streams(&call, shown.include_streams, std::iter::once(&*channel)).await?;
    Ok(views.channel(&channel))
}

async fn create(call: Call, edit: ChannelEdit) -> Result<Created<ChannelRecord>, Refusal> {
    let taken = Taken::of(&call.app.models.channels.load());
    let channel = call.write(move |write| edit.make(write, taken)).await?;
    Ok(Created(ChannelViews::of(&call).channel(&channel)))
}

async fn update(call: Call, edit: ChannelEdit) -> Result<ChannelRecord, Refusal> {
    let id = call.id()?;
    let channel = call.write(move |write| edit.change(write, id)).await?;
    Ok(ChannelViews::of(&call).channel(&channel))
}

/// The engine follows the store: a channel that is gone ends where it plays. So `stop_stream`, which clients send, says
/// nothing new.
async fn remove(call: Call) -> Result<Done, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        find::<Channel>(write, id)?;
        write.remove::<Channel>(id)?;
        Ok(Done)
    })
    .await
}

async fn streams(call: Call) -> Result<Vec<StreamRecord>, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let app = call.app.clone();
    let streams = blocking(move || read(&app, &channel.streams)).await?;
    let views = StreamViews::of(&call)?;
    Ok(streams.iter().map(|it| views.stream(it)).collect())
}
