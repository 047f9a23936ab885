//! Serves a target as an endless transport stream, as fragmented MP4 or as a playlist of HLS, for all routes.
//!
//! ```text
//! HEAD ─► headers at once, opens no stream
//! GET ─► unknown: 404 ─► switchboard ─┬─ Redirect ─► 302
//!                                     ├─ Refused ──► 404 or 503
//!                                     └─ Tail ─┬─ first real chunk ─► 200, body
//!                                              └─ none in time ─────► 503
//! ```
//!
//! Fragments and playlists need a complete segment instead of a chunk.

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::{AskError, SeatRequest, Target, Viewer, WatchRefusal, WatchReply, WatchRequest, may_watch};
use domain::clients::{ALL_IN_USE, all_tuners_in_use};
use domain::ids::UserId;
use domain::output_format::{AllowedFormats, OutputFormat, StreamFormat};
use domain::settings::PROGRAM_START_TIMEOUT;
use domain::source_url::SourceUrl;
use domain::user::{self, User};
use http::header::{CONNECTION, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use media::{EndReason, Tail};
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Content, Handler, MediaType, Route, StreamOrRedirect};
use server::caller::Caller;
use server::reply::{Refusal, TunerError};
use server::stream::{Guard, StreamTail};
use services::auth::{Denied, may_stream_from};
use tokio::time::timeout;
use tracing::info;
use warp::reply::Response as Reply;

use super::catchup;
use super::fragments::{self, fragmented};
use super::hls::{self, HlsPlaylist};
use super::screen::show;
use super::tuner::{TunerSeat, TunersTaken, tuner_count};
use super::vod::FileAnswer;
use crate::context::{PlayerCall, PlayerContext};
use crate::output_profile::{StreamQuery, rendition};
use crate::tuner::TunerSeats;

/// Disables response buffering in reverse proxies.
pub(super) const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A transport stream.
pub(super) struct TransportStream;

impl MediaType for TransportStream {
    const NAME: &'static str = "video/mp2t";
}

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
        .refuses(StatusCode::FORBIDDEN, "The network, or catch-up for this user, is not allowed.")
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
        match catchup::of_live(call, channel, past).await? {
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

/// Serves a playlist of HLS to the user of this call, at an address that plays nothing else.
pub(super) async fn watch_as_hls(call: Call, target: Target, query: StreamQuery) -> Result<Reply, Refusal> {
    check_allowed(&call, OutputFormat::Hls)?;
    check_present(&query)?;
    hls::play(call, target, &query).await
}

/// Opens the channel as it is, for an answer that began with its past.
pub(super) async fn live_tail(call: Call, target: Target) -> Result<(Tail, Guard), Refusal> {
    let unavailable = || Refusal::unavailable("the channel plays at its provider");
    let StreamOrRedirect::Stream(content) =
        serve(call, target, StreamQuery::default(), StreamFormat::Ts).await?
    else {
        return Err(unavailable());
    };
    let reply = content.into_reply();
    let tail = reply.extensions().get::<StreamTail>().and_then(StreamTail::take);
    tail.ok_or_else(unavailable)
}

/// Returns the format of a request: that of the address, of the query, or the preferred one of the user.
fn wanted_format(call: &Call, query: &StreamQuery) -> Result<OutputFormat, Refusal> {
    let asked = call.stream_format().or(query.format());
    // The past of a channel is a transport stream.
    let asked = asked.or_else(|| query.past().map(|_| OutputFormat::Ts));
    let format = asked.unwrap_or_else(|| allowed_formats(call).preferred());
    check_allowed(call, format).map(|()| format)
}

fn allowed_formats(call: &Call) -> AllowedFormats {
    call.user().map_or_else(|_| AllowedFormats::default(), |it| AllowedFormats::from_user(it))
}

/// Refuses a request for the past of a channel in a format that has no past.
fn check_present(query: &StreamQuery) -> Result<(), Refusal> {
    match query.past() {
        Some(_) => Err(Refusal::bad_request(
            "The past of a channel is a transport stream: ask for it at the address with the extension .ts.",
        )),
        None => Ok(()),
    }
}

/// Refuses a user who may not play this format.
fn check_allowed(call: &Call, format: OutputFormat) -> Result<(), Refusal> {
    let allowed = allowed_formats(call);
    if allowed.contains(format) {
        return Ok(());
    }
    let names: Vec<_> = allowed.iter().map(OutputFormat::name).collect();
    let detail = format!("this user may play the formats {} and not {}", names.join(", "), format.name());
    Err(Refusal::status(StatusCode::FORBIDDEN).with_detail(detail).with_tuner_error(TunerError::TuneFailed))
}

async fn serve(
    call: Call,
    target: Target,
    query: StreamQuery,
    format: StreamFormat,
) -> Result<StreamOrRedirect<TransportStream>, Refusal> {
    if !call.player().plans.exists(&target) {
        return Err(unknown_channel());
    }
    let rendition = rendition(call.player(), call.user().ok().map(|it| &**it), &call.caller, target, &query)?;
    if call.method == Method::HEAD {
        let nothing = futures_util::stream::empty::<Result<Vec<u8>, std::io::Error>>();
        let head = warp::reply::stream(nothing);
        return Ok(if format == StreamFormat::Fmp4 { fragmented(head) } else { streaming(head) });
    }
    let user = call.user().ok().cloned();
    let (context, caller) = (Arc::clone(call.player()), call.caller);
    let tuner = match user {
        // Users have limits of their own.
        Some(_) => None,
        None => take_tuner(&context, &caller, target).await?,
    };
    let client_address = caller.address();
    let username = user.as_ref().map(|it| it.username.clone());
    let viewer = Viewer { user: username, address: client_address, agent: caller.agent };
    let is_anonymous = user.is_none();
    let seat = match &user {
        Some(user) => Some(SeatRequest { user: user.id, limit: user.stream_limit }),
        None => anonymous_seat(&context),
    };
    let has_program = rendition.as_ref().is_some_and(|it| it.command.is_some());
    let request = WatchRequest { target, viewer, connection: caller.connection, seat, rendition, format };
    let sound = if request.rendition.is_none() { fragments::sound_of(target) } else { None };
    match context.switchboard.watch(request.clone()).await {
        Ok(WatchReply::Segments { client, viewing }) => {
            check_permitted(&context, user.as_deref(), target, client_address)?;
            let opened = fragments::first(&context, request, viewing, has_program, sound).await;
            let (reader, first, viewing) = opened.inspect_err(|refusal| {
                info!(channel.target = %target, client.id = client, client.address = %client_address, "client received no packets: {refusal}");
            })?;
            let tuner = tuner.map(|it| Box::new(it) as Box<dyn Any + Send + Sync>);
            Ok(fragmented(fragments::body(reader, first, viewing, tuner)))
        }
        Ok(WatchReply::Tail { client, tail }) => {
            check_permitted(&context, user.as_deref(), target, client_address)?;
            let tail = first_packets(&context, target, tail, has_program).await.inspect_err(|refusal| {
                info!(channel.target = %target, client.id = client, client.address = %client_address, "client received no packets: {refusal}");
            })?;
            let mut reply = warp::reply::Response::default();
            let tuner = tuner.map(|it| Box::new(it) as Box<dyn Any + Send>);
            reply.extensions_mut().insert(StreamTail::new(tail, tuner));
            Ok(streaming(reply))
        }
        // The address may contain the credentials of the account.
        Ok(WatchReply::Redirect(_)) if is_anonymous && context.has_users() => Err(needs_login()),
        Ok(WatchReply::Redirect(url)) => redirect(&url),
        Ok(WatchReply::Refused(reason)) => {
            info!(channel.target = %target, client.address = %client_address, "client refused: {reason}");
            Err(no_watch(&reason, is_anonymous))
        }
        Err(error) => Err(no_answer(error)),
    }
}

/// Refuses a viewer who lost the permission while the channel was joined: there was no session yet that could be ended.
pub(super) fn check_permitted(
    context: &PlayerContext,
    user: Option<&User>,
    target: Target,
    address: IpAddr,
) -> Result<(), Refusal> {
    let viewer = user.map_or(user::ANONYMOUS, |it| it.id);
    if may_watch(&context.models, viewer, target) && may_stream_from(&context.models, viewer, address) {
        return Ok(());
    }
    Err(match user {
        Some(user) if !is_active(context, user.id) => Denied::Inactive.into(),
        _ => unknown_channel(),
    })
}

/// Takes a tuner of the emulated device that the caller uses, if it uses one.
async fn take_tuner(
    context: &PlayerContext,
    caller: &Caller,
    target: Target,
) -> Result<Option<TunerSeat>, Refusal> {
    let taken =
        context.states.get::<TunerSeats>().take(caller, target, |it| tuner_count(&context.models, it)).await;
    taken.map_err(|TunersTaken { count }| {
        info!(channel.target = %target, client.address = %caller.address(), count, "client refused: all tuners are in use");
        let detail = format!("all {count} tuners of the emulated device are in use");
        Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
    })
}

/// Returns the seat of a viewer without credentials, if their number is limited, or if they do not see every channel: a
/// session that has to end is ended through its seat. All of them count as one user.
pub(super) fn anonymous_seat(context: &PlayerContext) -> Option<SeatRequest> {
    let limit = context.config.limits.anonymous_viewers_max;
    (limit > 0 || context.has_users()).then_some(SeatRequest { user: user::ANONYMOUS, limit })
}

/// Returns true if the user still exists and is active.
pub(super) fn is_active(context: &PlayerContext, user: UserId) -> bool {
    context.models.users.load().get(user.0).is_some_and(|it| it.is_active)
}

/// Waits for the first real packets, because the status can no longer change after the response has begun. A program
/// that converts the stream starts after it.
async fn first_packets(
    context: &PlayerContext,
    target: Target,
    mut tail: Tail,
    has_program: bool,
) -> Result<Tail, Refusal> {
    let start_timeout = start_timeout(context, has_program);
    match timeout(start_timeout, tail.ready()).await {
        Ok(Ok(())) => Ok(tail),
        Ok(Err(end)) => Err(no_packets(&end)),
        Err(_) => Err(too_late(context, target, start_timeout).await),
    }
}

/// Returns the maximum wait for the beginning of a stream.
pub(super) fn start_timeout(context: &PlayerContext, has_program: bool) -> Duration {
    let program_start = if has_program { PROGRAM_START_TIMEOUT } else { Duration::ZERO };
    context.settings.load().start_timeout + program_start
}

/// Returns the response to a client whose stream did not begin in this time.
pub(super) async fn too_late(context: &PlayerContext, target: Target, waited: Duration) -> Refusal {
    let status = context.switchboard.status(target).await.ok().flatten();
    let cause = status.and_then(|it| it.last_failure).map(|it| format!(": {it}")).unwrap_or_default();
    let detail = format!("no stream of the channel played within {} s{cause}", waited.as_secs_f64());
    Refusal::unavailable(detail).with_tuner_error(TunerError::NoVideoData)
}

/// Returns the response to a client whose tail ended before the first packet.
pub(super) fn no_packets(end: &EndReason) -> Refusal {
    let refusal = Refusal::unavailable(end.to_string());
    match end {
        EndReason::NoSlot(_) => refusal.with_tuner_error(TunerError::AllTunersInUse).retry_soon(),
        EndReason::NothingPlays(_) | EndReason::Silent => refusal.with_tuner_error(TunerError::NoVideoData),
        EndReason::Closed | EndReason::Stopped | EndReason::Kicked | EndReason::TooSlow => {
            refusal.with_tuner_error(TunerError::SystemBusy).retry_soon()
        }
    }
}

/// Returns the response to a client to whom the switchboard did not answer.
pub(super) fn no_answer(error: AskError) -> Refusal {
    match error {
        AskError::Timeout => busy("the gateway did not respond in time"),
        AskError::Gone => busy("the gateway is stopping"),
    }
}

/// Returns the response to a client that was refused.
pub(super) fn no_watch(reason: &WatchRefusal, is_anonymous: bool) -> Refusal {
    let detail = reason.to_string();
    match reason {
        WatchRefusal::Seats { limit } if is_anonymous => no_anonymous_seat(*limit),
        WatchRefusal::NotFound => unknown_channel(),
        WatchRefusal::NoStreams | WatchRefusal::Unplayable(_) => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::TuneFailed)
        }
        WatchRefusal::Full(pool) => {
            let detail =
                format!("{detail}; the longest stream has been playing for {} s", pool.since.as_secs());
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        // Not 403, which players report as a wrong password.
        WatchRefusal::Seats { .. } => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        WatchRefusal::Transcoders { .. } => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        WatchRefusal::NothingPlays(_) => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::NoVideoData)
        }
        WatchRefusal::Stopping => busy("the channel is stopping"),
    }
}

/// Returns the response for a channel that does not exist or that the caller may not see.
pub(super) fn unknown_channel() -> Refusal {
    Refusal::not_found("channel not found").with_tuner_error(TunerError::UnknownChannel)
}

/// Returns the response to a caller without credentials whose channel would be played from its provider.
pub(super) fn needs_login() -> Refusal {
    Refusal::unauthorized("this channel is played directly from its provider, which requires a login")
        .with_tuner_error(TunerError::TuneFailed)
}

fn no_anonymous_seat(limit: u32) -> Refusal {
    Refusal::unavailable(format!("the limit of {limit} viewers without credentials at one time is reached"))
        .with_tuner_error(TunerError::AllTunersInUse)
        .retry_soon()
}

pub(super) fn busy(detail: &str) -> Refusal {
    Refusal::unavailable(detail).with_tuner_error(TunerError::SystemBusy).retry_soon()
}

/// Creates the response of a stream with this body. The connection closes with the stream, because media servers keep
/// idle connections to tuners open.
pub(super) fn streaming(body: impl warp::Reply) -> StreamOrRedirect<TransportStream> {
    let content = Content::from_reply(body.into_response());
    StreamOrRedirect::Stream(content.with_header(ACCEL_BUFFERING, "no").with_header(CONNECTION, "close"))
}

pub(super) fn redirect(url: &SourceUrl) -> Result<StreamOrRedirect<TransportStream>, Refusal> {
    let location = HeaderValue::from_str(url.expose()).map_err(|_| {
        Refusal::unavailable("the URL of the stream is not valid in a Location header")
            .with_tuner_error(TunerError::TuneFailed)
    })?;
    Ok(StreamOrRedirect::Redirect(location))
}

#[cfg(test)]
mod tests {
    use actors::FullPool;
    use route_frame::route::Answer;

    use super::*;

    #[track_caller]
    fn check(refusal: Refusal, status: u16, tuner_error: &str, retry_after: Option<&str>) {
        let response = refusal.into_response();
        let header = |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap());
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(header("x-hdhomerun-error"), Some(tuner_error));
        assert_eq!(header("retry-after"), retry_after);
        assert_eq!(header("content-type"), Some("application/json"));
    }

    #[test]
    fn a_refusal_has_a_tuner_error_and_retry_after_if_a_retry_may_help() {
        let full = FullPool {
            account: "one".to_owned(),
            server_group: None,
            since: Duration::from_secs(90),
            max_streams: 1,
            is_discovered: false,
            n_reserved: 0,
            is_unknown: false,
        };
        check(no_watch(&WatchRefusal::Full(full), false), 503, "805 All Tuners In Use", Some("3"));
        check(no_watch(&WatchRefusal::Seats { limit: 1 }, false), 503, "805 All Tuners In Use", Some("3"));
        check(
            no_watch(&WatchRefusal::Transcoders { limit: 1 }, false),
            503,
            "805 All Tuners In Use",
            Some("3"),
        );
        check(no_watch(&WatchRefusal::Stopping, false), 503, "803 System Busy", Some("3"));
        check(no_watch(&WatchRefusal::NoStreams, false), 503, "806 Tune Failed", None);
        check(no_watch(&WatchRefusal::Unplayable("no".to_owned()), false), 503, "806 Tune Failed", None);
        check(no_watch(&WatchRefusal::NothingPlays("no".to_owned()), false), 503, "807 No Video Data", None);
        check(no_watch(&WatchRefusal::NotFound, false), 404, "801 Unknown Channel", None);
        check(no_packets(&EndReason::NoSlot("full".into())), 503, "805 All Tuners In Use", Some("3"));
        check(no_packets(&EndReason::NothingPlays("404".into())), 503, "807 No Video Data", None);
        check(no_packets(&EndReason::Stopped), 503, "803 System Busy", Some("3"));
    }

    #[test]
    fn the_refusal_of_a_full_account_has_its_name_and_duration() {
        let full = FullPool {
            account: "one".to_owned(),
            server_group: None,
            since: Duration::from_secs(90),
            max_streams: 1,
            is_discovered: false,
            n_reserved: 0,
            is_unknown: false,
        };
        let text = no_watch(&WatchRefusal::Full(full), false).to_string();
        assert!(text.contains("\"one\"") && text.contains("90 s"), "{text}");
    }

    #[test]
    fn a_redirect_to_a_url_that_is_invalid_in_a_header_is_refused() {
        assert!(redirect(&SourceUrl::new("http://a.example/\r\nx: y")).is_err());
        let response = redirect(&SourceUrl::new("http://a.example/1.ts")).unwrap().into_reply();
        assert_eq!(
            (response.status(), &response.headers()["location"]),
            (StatusCode::FOUND, &HeaderValue::from_static("http://a.example/1.ts"))
        );
        assert_eq!(response.headers()["cache-control"], "no-cache, no-store");
    }
}
