//! Serves a target as a transport stream, as fragmented MP4 or as a playlist of HLS, or a part of its past, for all routes.

use actors::Target;
use domain::clients::{ALL_IN_USE, all_tuners_in_use};
use domain::output_format::{OutputFormat, StreamFormat};
use http::StatusCode;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Handler, MediaType, Route, StreamOrRedirect};
use server::reply::Refusal;
use warp::reply::Response as Reply;

use super::answers::{FileAnswer, TransportStream};
use super::endless_stream::serve;
use super::formats::{check_present, wanted_format};
use super::output_profile::StreamQuery;
use super::recordings::hls::HlsPlaylist;
use super::screen::show;
use super::tuner::TunerSeats;
use super::{catchup, hls};
use crate::context::PlayerCall;

/// The answer of a live address: the channel, in one of the formats, or a part of its past.
pub(super) enum StreamAnswer {
    Live(StreamOrRedirect<TransportStream>),
    Playlist(Reply),
    Past(FileAnswer),
}

impl Answer for StreamAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape =
        AnswerShape::StreamOrRedirect(&[TransportStream::NAME, "video/mp4", HlsPlaylist::NAME]);

    fn into_reply(self) -> Reply {
        match self {
            Self::Live(answer) => answer.into_reply(),
            Self::Playlist(reply) => reply,
            Self::Past(answer) => answer.into_reply(),
        }
    }
}

/// Returns a route whose handler calls [`watch`], and whose refusals can be shown on the screen. Pages of any origin may read the answers, so that browser players work
/// on other pages.
pub(super) fn stream_route<Args>(
    path: &'static str,
    access: Access,
    summary: &'static str,
    handler: impl Handler<Args, Answer = StreamAnswer>,
) -> Route {
    let route = Route::get(path, access, summary, handler).for_any_origin().refuses(
        StatusCode::SERVICE_UNAVAILABLE,
        "No stream of the channel plays, or no connection is free. The header `X-HDHomeRun-Error` has the reason, and \
            `Retry-After` is sent if another try may help.",
    );
    let route = catchup::declared(route)
        .refuses(
            StatusCode::FORBIDDEN,
            "The network, or catch-up or this time of the day for this user, is not allowed.",
        )
        .refuses_plainly(StatusCode::PARTIAL_CONTENT, "The requested part of the past, with `Content-Range`.")
        .refuses(StatusCode::RANGE_NOT_SATISFIABLE, "No requested byte of that part exists.")
        .refuses(StatusCode::BAD_GATEWAY, "No provider delivers that part. The answer has the reason.");
    route.on_refusal(|call, refusal| Box::pin(show(call, refusal)))
}

/// Serves `target` to the user of this call, or to a caller without one, with the output profile that the query selects,
/// or that follows from user and user agent. All permissions have been checked except the stream limit of the user.
pub(super) async fn watch(
    mut call: Call,
    target: Target,
    query: StreamQuery,
) -> Result<StreamAnswer, Refusal> {
    let format = wanted_format(&call, &query)?;
    if format != OutputFormat::Ts {
        check_present(&query)?;
    }
    if format == OutputFormat::Hls {
        return hls::play(call, target, &query).await.map(StreamAnswer::Playlist);
    }
    if let (Target::Channel(uuid), Some(past)) = (target, query.past()) {
        let channel = catchup::visible(&call, |it| it.one_by("uuid", uuid.as_bytes()))?;
        match catchup::play_from_live_address(call, channel, past).await? {
            Ok(answer) => return Ok(StreamAnswer::Past(answer)),
            Err(of_present) => call = of_present,
        }
    }
    let all_in_use = match call.player().states.get::<TunerSeats>().is_client(&call.caller) {
        true => all_tuners_in_use(&call.caller.agent),
        false => ALL_IN_USE,
    };
    let all_in_use = StatusCode::from_u16(all_in_use).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let format = if format == OutputFormat::Mp4 { StreamFormat::Fmp4 } else { StreamFormat::Ts };
    let served = serve(call, target, query, format).await;
    served.map(StreamAnswer::Live).map_err(|it| it.all_in_use_as(all_in_use))
}
