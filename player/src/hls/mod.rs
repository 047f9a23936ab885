//! HLS for viewers of live channels.
//!
//! `/live/{user}/{password}/{id}.m3u8` and `/proxy/hls/{uuid}/index.m3u8` answer with a master playlist, whose one address
//! leads to a session. Everything else is below `/proxy/hls/session/{token}/`: the token stands for the viewer, so that
//! playlists contain no credentials and players repeat none. A player that asks for the master playlist again gets the
//! session that it has.
//!
//! ```text
//! master playlist ─► login or network ─► session, with a seat ─► first segment ─► 200
//! .../index.m3u8 ──► session? 404, 403 ─► wait for _HLS_msn, _HLS_part ─► 200
//! .../{segment} ───► session? 404, 403 ─► in the window? 404 ─► 304, 206, 200
//! ```

mod master;
mod reload;
mod segments;

use std::io::Write;

use actors::{HlsRefusal, HlsRequest, HlsSession, SessionEnd, SessionUse, Target};
use bytes::Bytes;
use domain::output_format::{OutputFormat, StreamFormat};
use domain::user::UserLevel;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, SET_COOKIE, VARY};
use http::{Method, StatusCode};
use media::{PlaylistRequest, SegmentName, SegmentNames, WindowError};
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, MediaType, Route};
use server::WarpBody;
use server::encoding::accepts_gzip;
use server::reply::{Refusal, TunerError};
use tracing::info;
use warp::reply::Response as Reply;

use self::reload::ReloadQuery;
use super::answers::redirect;
use super::endless_stream::is_for_users;
use super::formats::{check_allowed, check_present};
use super::output_profile::{StreamQuery, rendition, sound_for_browsers};
use super::recordings::hls::HlsPlaylist;
use super::refusals::{busy, needs_login, no_answer, no_packets, no_watch, too_late, unknown_channel};
use super::seat::{NewCookie, check_permitted, seat_request, sent_cookie, viewer};
use crate::context::PlayerCall;

/// Name of the media playlist of a session.
const MEDIA_PLAYLIST: &str = "index.m3u8";
/// Playlists shorter than this have little that repeats.
const COMPRESSED_BYTES_MIN: usize = 256;

/// Returns the routes of this module, for both ports.
pub(super) fn routes() -> Vec<Route> {
    let index = Route::get(
        "/proxy/hls/{uuid}/index.m3u8",
        Access::TitleOrNetworks(UserLevel::Streamer),
        "Plays a channel with HLS.",
        index,
    );
    let of_session = Route::get(
        "/proxy/hls/session/{token}/{name}",
        Access::Anyone,
        "Returns the media playlist of a session of HLS (`index.m3u8`), or a segment, a part or the initialisation \
            segment that it names. The token in the address stands for the viewer.",
        session_file,
    );
    vec![
        index
            .for_any_origin()
            .refuses(StatusCode::NOT_FOUND, "The channel does not exist, or the caller may not see it.")
            .refuses(StatusCode::FORBIDDEN, "The network is not allowed, or HLS or this time of the day is not allowed for this user.")
            .refuses(StatusCode::BAD_REQUEST, "The past of a channel is not played with HLS.")
            .refuses(
                StatusCode::SERVICE_UNAVAILABLE,
                "No stream of the channel plays, or no connection is free. `Retry-After` is sent if another try may help.",
            ),
        of_session
            .for_any_origin()
            .refuses_plainly(StatusCode::PARTIAL_CONTENT, "The requested part of a segment, with `Content-Range`.")
            .refuses_plainly(StatusCode::NOT_MODIFIED, "The client has the segment.")
            .refuses(StatusCode::BAD_REQUEST, "The requested segment is too far ahead.")
            .refuses(StatusCode::FORBIDDEN, "The viewer was disconnected. The answer has the reason.")
            .refuses(
                StatusCode::NOT_FOUND,
                "The session does not exist or has ended, or the segment has left the playlist.",
            )
            .refuses(StatusCode::RANGE_NOT_SATISFIABLE, "No requested byte exists.")
            .refuses(StatusCode::SERVICE_UNAVAILABLE, "The requested segment did not come in time."),
    ]
}

/// The answer with a master playlist.
struct MasterAnswer(Reply);

impl Answer for MasterAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::StreamOrRedirect(&[HlsPlaylist::NAME]);

    fn into_reply(self) -> Reply {
        self.0
    }
}

/// The answer with a playlist or with media of a session.
struct SessionAnswer(Reply);

impl Answer for SessionAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(&[HlsPlaylist::NAME, "video/mp2t", "video/mp4"]);

    fn into_reply(self) -> Reply {
        self.0
    }
}

async fn index(call: Call, query: StreamQuery) -> Result<MasterAnswer, Refusal> {
    let uuid = call.uuid()?;
    {
        let channels = call.player().models.channels.load();
        channels.one_by("uuid", uuid.as_bytes()).filter(|it| call.can_see(it)).ok_or_else(unknown_channel)?;
    }
    check_allowed(&call, OutputFormat::Hls)?;
    check_present(&query)?;
    play(call, Target::Channel(uuid), &query).await.map(MasterAnswer)
}

/// Answers with the master playlist of a session: that of the player if it has one, else a new one. All permissions have
/// been checked except the stream limit of the user.
pub(super) async fn play(call: Call, target: Target, query: &StreamQuery) -> Result<Reply, Refusal> {
    let context = call.player();
    if !context.plans.exists(&target) {
        return Err(unknown_channel());
    }
    let user = call.user().ok().cloned();
    let rendition = rendition(context, user.as_deref(), &call.caller, target, query)?;
    if call.method == Method::HEAD {
        return Ok(playlist_reply(&call, String::new()));
    }
    let format = query.hls_format(&call.caller.agent);
    let has_program = rendition.as_ref().is_some_and(|it| it.command.is_some());
    let wait = context.start_timeout(has_program);
    let address = call.caller.address();
    let mut viewer = viewer(&call);
    // A player without a user is recognised by a cookie when it asks for another channel.
    let asks_for_cookie = user.is_none() && viewer.identity.cookie.is_none();
    let new_cookie = asks_for_cookie.then(NewCookie::new).flatten();
    if let Some(new) = &new_cookie {
        viewer.identity.cookie = Some(new.hash);
    }
    let request = HlsRequest {
        target,
        viewer,
        peer: call.caller.connection.peer,
        seat: seat_request(&call)?,
        other_sound: match rendition {
            Some(_) => None,
            None => sound_for_browsers(target).ok(),
        },
        rendition,
        format,
        may_change_container: query.leaves_container_open(),
        start_timeout: wait,
        per_address_max: context.config.limits.connections_per_address_max,
    };
    let is_anonymous = user.is_none();
    let session = match context.hls_sessions.open(request).await {
        Ok(session) => session,
        Err(HlsRefusal::Redirect(to)) if is_for_users(context, is_anonymous, &to) => {
            return Err(needs_login());
        }
        Err(HlsRefusal::Redirect(to)) => return redirect(&to.url).map(Answer::into_reply),
        Err(refusal) => {
            info!(channel.target = %target, client.address = %address, "client refused: {refusal}");
            return Err(match refusal {
                HlsRefusal::Watch(reason) => no_watch(&reason, is_anonymous),
                HlsRefusal::NoMedia(end) => no_packets(&end),
                HlsRefusal::NoAnswer(error) => no_answer(error),
                HlsRefusal::TooLate => too_late(context, target, wait).await,
                HlsRefusal::Ended(end) => ended(Some(end)),
                HlsRefusal::Busy => busy("too many players of HLS"),
                HlsRefusal::Redirect(_) => busy("the channel plays at its provider"),
            });
        }
    };
    if let Err(refusal) = check_permitted(context, user.as_deref(), target, address) {
        session.end_now();
        return Err(refusal);
    }
    session.set_low_latency(format == StreamFormat::LowLatencyHls);
    // Without scheme and host, so that a proxy in front of the gateway cannot make it wrong.
    let media = format!("{}/proxy/hls/session/{}/{MEDIA_PLAYLIST}", call.base_path(), session.token());
    let text = master::write(&session.window().description(), session.window().container(), &media);
    let mut reply = playlist_reply(&call, text);
    // A session that had been there has the cookie of its first request.
    if let Some(new) = new_cookie.filter(|it| session.viewer().identity.cookie == Some(it.hash)) {
        reply.headers_mut().insert(SET_COOKIE, new.header);
    }
    Ok(reply)
}

async fn session_file(call: Call, query: ReloadQuery) -> Result<SessionAnswer, Refusal> {
    let session = call.player().hls_sessions.find(call.text("token")?).map_err(ended)?;
    let request = session.begin(&call.caller.connection).map_err(|end| match end {
        Some(end) => ended(Some(end)),
        None => busy("this player has too many requests at the same time"),
    })?;
    call.note_place(session.viewer().user.is_some())?;
    session.sent_cookie(sent_cookie(&call.headers));
    let name = call.text("name")?;
    if name == MEDIA_PLAYLIST {
        return media_playlist(&call, &session, &request, &query).await.map(SessionAnswer);
    }
    let window = session.window();
    let name = SegmentName::parse(name, window.container()).ok_or_else(no_segment)?;
    let body = match name {
        SegmentName::Segment(number) => window.segment(number),
        SegmentName::Part(number, part) => request.waiting(window.part(number, part)).await,
        SegmentName::Init(version) => {
            let bytes = window.init(version).ok_or_else(no_segment)?;
            return Ok(SessionAnswer(segments::init(&call, version, bytes, request)));
        }
    };
    let body = body.ok_or_else(no_segment)?;
    Ok(SessionAnswer(segments::answer(&call, name, &body, request)))
}

/// Answers with the media playlist, once it contains what the player waits for.
async fn media_playlist(
    call: &Call,
    session: &HlsSession,
    request: &SessionUse,
    query: &ReloadQuery,
) -> Result<Reply, Refusal> {
    let (sequence, part) = query.wanted()?;
    let window = session.window();
    if let Some(sequence) = sequence {
        match request.waiting(window.wait_for(sequence, part)).await {
            // A playlist that has ended is sent as it is.
            Ok(()) | Err(WindowError::Ended(_)) => {}
            Err(error @ WindowError::TooFarAhead) => {
                return Err(Refusal::bad_request(format!("failed to {error}")));
            }
            Err(error) => return Err(Refusal::unavailable(format!("failed to {error}")).retry_soon()),
        }
    }
    if window.awaits_key_frame() {
        // What comes of it shows in the playlist.
        let _ = request.waiting(window.ready()).await;
    }
    let playlist = window.playlist(&PlaylistRequest {
        low_latency: session.format() == StreamFormat::LowLatencyHls,
        skip: query.skips(),
        names: SegmentNames::default(),
    });
    let mut text =
        playlist.map_err(|error| Refusal::unavailable(format!("failed to {error}")).retry_soon())?.text;
    if session.is_over() {
        // The player plays what it has, as a viewer of a stream does.
        text.push_str("#EXT-X-ENDLIST\n");
    }
    Ok(playlist_reply(call, text))
}

/// Creates the reply with a playlist, compressed if that helps and the client accepts it.
fn playlist_reply(call: &Call, text: String) -> Reply {
    let is_compressed = text.len() >= COMPRESSED_BYTES_MIN && accepts_gzip(&call.headers);
    let packed = is_compressed.then(|| gzip(text.as_bytes())).flatten();
    let is_compressed = packed.is_some();
    let body = packed.unwrap_or_else(|| Bytes::from(text));
    let mut reply = Reply::new(WarpBody::from(body));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HlsPlaylist::NAME));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    reply
}

fn gzip(text: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 2), Compression::fast());
    encoder.write_all(text).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn no_segment() -> Refusal {
    Refusal::not_found("The session has no such segment; it may have left the playlist.")
}

/// Returns the response to a player whose session has ended.
fn ended(end: Option<SessionEnd>) -> Refusal {
    let again = "ask for the playlist of the channel again";
    match end {
        None => Refusal::not_found(format!("This session does not exist or has ended; {again}.")),
        Some(end @ (SessionEnd::Expired | SessionEnd::Channel(_))) => {
            Refusal::not_found(format!("This session has ended because {end}; {again}."))
        }
        Some(end @ SessionEnd::Ended(_)) => Refusal::status(StatusCode::FORBIDDEN)
            .with_detail(format!("This session has ended: {end}."))
            .with_tuner_error(TunerError::TuneFailed),
        Some(SessionEnd::Stopping) => busy("the gateway is stopping"),
    }
}
