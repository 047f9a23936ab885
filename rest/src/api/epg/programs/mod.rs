//! `/api/epg/programs/`: the programmes of all guides.

mod bulk;
mod detail;
mod poster;
mod results;
mod search;
mod shown;
mod values;
mod view;
mod written;

use std::sync::Arc;

use domain::channel::Channel;
use domain::lineup::visible;
use domain::user_group::VIEW_CHANNEL;
use http::StatusCode;
use route_frame::access::{ADMIN, Access, STANDARD, STREAMER};
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;
use services::guide::{EntryId, read_guide};

use self::detail::ProgramDetailView;
use self::search::{Pages, SearchQuery};
pub(super) use self::values::ImageAddresses;
use self::values::unknown;
pub(super) use self::view::{GridProgramView, ProgramView};
use crate::context::RestCall;
use crate::list::Page;
use crate::seen::SeenThings;

const LIST: &str = "/api/epg/programs/";
const BULK: &str = "/api/epg/programs/bulk/";
const SEARCH: &str = "/api/epg/programs/search/";
const ONE: &str = "/api/epg/programs/{program}/";
const POSTER: &str = "/api/epg/programs/{program}/poster/";

pub(super) fn routes() -> Vec<Route> {
    const NOT_WRITTEN: &str = "The guide source is not of the kind `written`.";
    vec![
        Route::get(LIST, STANDARD, "Lists programmes, with the filters of the search.", list)
            .also_with(VIEW_CHANNEL),
        Route::post(
            LIST,
            ADMIN,
            "Creates a programme in a guide source of the kind `written`.",
            written::create,
        )
        .refuses(StatusCode::BAD_REQUEST, NOT_WRITTEN),
        Route::post(
            BULK,
            ADMIN,
            "Updates many programmes of a guide source of the kind `written`: all of them or none.",
            bulk::write,
        )
        .with_bulk_body()
        .refuses(StatusCode::BAD_REQUEST, NOT_WRITTEN),
        Route::get(
            SEARCH,
            STREAMER,
            "Lists the programmes that match a search. Users of level 0 find those of visible channels.",
            search::search,
        ),
        Route::get(
            ONE,
            STREAMER,
            "Returns a programme with all details. Users of level 0 see those of visible channels.",
            retrieve,
        ),
        Route::put(
            ONE,
            ADMIN,
            "Replaces a programme of a guide source of the kind `written`.",
            written::update,
        )
        .refuses(StatusCode::BAD_REQUEST, NOT_WRITTEN),
        Route::patch(
            ONE,
            ADMIN,
            "Partially updates a programme of a guide source of the kind `written`.",
            written::update,
        )
        .refuses(StatusCode::BAD_REQUEST, NOT_WRITTEN),
        Route::delete(
            ONE,
            ADMIN,
            "Deletes a programme of a guide source of the kind `written`.",
            written::delete,
        )
        .refuses(StatusCode::BAD_REQUEST, NOT_WRITTEN),
        Route::get(
            POSTER,
            Access::Anyone,
            "Returns the image of a programme, or a placeholder.",
            poster::image,
        )
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current image."),
    ]
}

async fn list(call: Call, (query, paging): (SearchQuery, Pages)) -> Result<Page<ProgramView>, Refusal> {
    let (count, found) = search::find(&call, query, &paging).await?;
    let views = found.iter().map(|it| ProgramView::new(&it.entry, &it.guide_channel.key)).collect();
    paging.envelope(&call, count, views)
}

async fn retrieve(call: Call) -> Result<ProgramDetailView, Refusal> {
    let id: EntryId = call.text("program")?.parse().map_err(|()| unknown())?;
    let (guides, limits) = (call.rest().guide.guides.reader(), call.view_limits());
    let (context, seen) = (Arc::clone(call.rest()), SeenThings::new(&call));
    let (entry, tvg_id) = read_guide(move || match id {
        EntryId::Stored(id, minutes) => {
            let is_seen = |it: &Channel| visible(&limits, it);
            let (guide_channel, entry) = guides.stored(id, minutes, &is_seen).ok_or_else(unknown)?;
            if seen.shows_programme(&guides, guide_channel.id, &entry) {
                Ok((entry, guide_channel.key.clone()))
            } else {
                Err(unknown())
            }
        }
        EntryId::Generated(channel, start) => {
            let channel = context.models.channels.load().get(channel.0).cloned();
            let channel = channel.filter(|it| seen.sees(it)).ok_or_else(unknown)?;
            let (_, entry) = guides.generated(&channel, start).ok_or_else(unknown)?;
            Ok((entry, channel.uuid.to_string()))
        }
    })
    .await?;
    Ok(ProgramDetailView::new(&call, &entry, tvg_id))
}
