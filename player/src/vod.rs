//! Films and episodes as files that players seek in.
//!
//! `/movie/{user}/{password}/{name}` and `/series/{user}/{password}/{name}` are the addresses that player apps build
//! themselves, as for an Xtream Codes panel: the name is an id with any extension or none. `/proxy/vod/{kind}/{uuid}` is
//! for everybody else. Each request is answered where it arrives; nobody is redirected to an address of a session.
//!
//! ```text
//! unknown, not visible: 404 ─► HEAD: length from memory, or a request for one byte
//!                           └► GET ─┬─ 302 to the provider, if the stream profile says so
//!                                   ├─ 416, 502, 503
//!                                   └─ first byte ─► 200 or 206
//! ```

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use actors::{
    SeatRequest, Target, Viewer, VodAnswer, VodBody, VodFacts, VodHead, VodRefusal, VodRequest, VodTitle,
};
use bytes::Bytes;
use domain::ids::{AccountId, EpisodeId, RecordingId};
use domain::plan::{TitleCandidate, TitleVersion};
use domain::recording::Recording;
use domain::source_url::SourceUrl;
use domain::user::UserLevel;
use domain::vod::{Episode, RelationId, Title, TitleKind};
use futures_util::stream::poll_fn;
use futures_util::{Stream, StreamExt};
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use resource_derive::Query;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Handler, Route};
use server::reply::Refusal;
use services::auth::Denied;
use tracing::info;
use warp::reply::Response as Reply;

use super::ranges::{RangedFile, describe_stream, if_range, ranges, unsatisfiable};
use super::recordings::parts::FileSelection;
use super::watch::{ACCEL_BUFFERING, anonymous_seat, is_active};
use super::{other_nodes, recordings};
use crate::context::PlayerCall;

/// Returns the routes that only the player port serves.
pub(super) fn routes() -> Vec<Route> {
    vec![
        file_route(
            "/movie/{user}/{password}/{name}",
            Access::PathLogin,
            "Returns a film for a user, whole or in part. The name is its id, with any extension or none.",
            movie,
        ),
        file_route(
            "/series/{user}/{password}/{name}",
            Access::PathLogin,
            "Returns an episode for a user, whole or in part. The name is its id, with any extension or none.",
            episode,
        ),
    ]
}

/// Returns the routes that both ports serve.
pub(super) fn api_routes() -> Vec<Route> {
    let access = Access::TitleOrNetworks(UserLevel::Streamer);
    vec![
        file_route(
            "/proxy/vod/{kind}/{uuid}",
            access,
            "Returns a film (`movie`), an episode (`episode` or `series`) or a recording (`recording`), whole or in part.",
            by_uuid,
        ),
        file_route(
            "/proxy/vod/{kind}/{uuid}/{session}",
            access,
            "Returns a film or an episode to a player that names its session.",
            by_uuid,
        ),
    ]
}

pub(super) fn file_route<Args>(
    path: &'static str,
    access: Access,
    summary: &'static str,
    handler: impl Handler<Args, Answer = FileAnswer>,
) -> Route {
    Route::get(path, access, summary, handler)
        .for_any_origin()
        .refuses_plainly(StatusCode::PARTIAL_CONTENT, "The requested part, with `Content-Range`.")
        .refuses(StatusCode::RANGE_NOT_SATISFIABLE, "No requested byte exists.")
        .refuses(StatusCode::BAD_GATEWAY, "No provider delivers the file. The answer has the reason.")
        .refuses(
            StatusCode::SERVICE_UNAVAILABLE,
            "No connection is free. `Retry-After` is sent if another try may help.",
        )
}

/// Selects the version of a title. Other parameters are ignored, because players add their own.
#[derive(Debug, Default, Query)]
struct VodQuery {
    /// Id of the file at the provider.
    #[field(example = "4711")]
    stream_id: Option<String>,
    /// Id of the account that the file is read from.
    #[field(example = "1")]
    m3u_account_id: Option<AccountId>,
    /// Any text by which a player distinguishes its requests from those of others with the same address and program.
    session_id: Option<String>,
    /// Of a recording: seconds since the start of the file, or a time, from which it plays.
    start: Option<String>,
    /// Of a recording: number of a part, if several nodes have made it, from 1. Without it, all parts follow one another.
    part: Option<u32>,
    /// Access token, or the token of the address that `/api/vod/` returned for the title.
    #[expect(dead_code, reason = "read by the check of the access")]
    token: Option<String>,
}

async fn movie(call: Call, query: VodQuery) -> Result<FileAnswer, Refusal> {
    let number = number(&call)?;
    if let Some(recording) = recordings::of_number(&call, number) {
        return recorded(&call, &recording, &query).await;
    }
    if other_nodes::is_edge(call.player()) {
        return other_nodes::play(&call).await;
    }
    let found = call.player().models.vod.by_stream_id(TitleKind::Movie, number)?;
    let (title, relation) = found.ok_or_else(unknown_title)?;
    serve(call, Wanted::movie(title, relation), query).await
}

async fn episode(call: Call, query: VodQuery) -> Result<FileAnswer, Refusal> {
    let number = number(&call)?;
    if let Some(recording) = recordings::of_number(&call, number) {
        return recorded(&call, &recording, &query).await;
    }
    if other_nodes::is_edge(call.player()) {
        return other_nodes::play(&call).await;
    }
    let episode = call.player().models.vod.episode(EpisodeId(number))?.ok_or_else(unknown_title)?;
    let wanted = Wanted::episode(&call, episode)?;
    serve(call, wanted, query).await
}

async fn by_uuid(call: Call, query: VodQuery) -> Result<FileAnswer, Refusal> {
    let (uuid, titles) = (call.uuid()?, &call.player().models.vod);
    if call.text("kind")? == "recording" {
        let recording = RecordingId::from_uuid(uuid).and_then(|id| recordings::find(&call, id));
        return recorded(&call, &*recording.ok_or_else(unknown_title)?, &query).await;
    }
    if other_nodes::is_edge(call.player()) {
        return other_nodes::play(&call).await;
    }
    let wanted = match call.text("kind")? {
        "movie" => Wanted::movie(titles.by_uuid(TitleKind::Movie, uuid)?.ok_or_else(unknown_title)?, None),
        "episode" | "series" => {
            Wanted::episode(&call, titles.episode_by_uuid(uuid)?.ok_or_else(unknown_title)?)?
        }
        _ => return Err(unknown_title()),
    };
    serve(call, wanted, query).await
}

/// Plays a recording; with the extension `.m3u8`, for players of HLS.
async fn recorded(call: &Call, recording: &Recording, query: &VodQuery) -> Result<FileAnswer, Refusal> {
    let name = call.text_if_any("name").and_then(|it| it.strip_suffix(".m3u8"));
    let reply = match name {
        Some(number) => recordings::play_as_hls(call, recording, &format!("{number}.ts")).await,
        None => {
            let start = query.start.as_deref();
            let selection = FileSelection { start, part: query.part, ..FileSelection::default() };
            recordings::play(call, recording, selection).await
        }
    };
    reply.map(FileAnswer::of_file)
}

/// Returns the id in a name such as `7.mkv`.
fn number(call: &Call) -> Result<u32, Refusal> {
    let name = call.text("name")?;
    let digits = name.split_once('.').map_or(name, |it| it.0);
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or_else(unknown_title)
}

/// The film or episode of a request.
struct Wanted {
    target: Target,
    name: String,
    /// The film, or the series of the episode.
    title: Title,
    /// The version that the address names.
    relation: Option<RelationId>,
    episode: Option<Episode>,
}

impl Wanted {
    fn movie(title: Title, relation: Option<RelationId>) -> Self {
        let (target, name) = (Target::Movie(title.uuid), title.name().to_owned());
        Self { target, name, title, relation, episode: None }
    }

    fn episode(call: &Call, episode: Episode) -> Result<Self, Refusal> {
        let series = call.player().models.vod.get(episode.series)?.ok_or_else(unknown_title)?;
        let (season, number) = (episode.season, episode.number);
        let name = format!("{} S{season:02}E{number:02}", series.name());
        let target = Target::Episode(episode.uuid);
        Ok(Self { target, name, title: series, relation: None, episode: Some(episode) })
    }

    /// Returns the files that can be played: first those of the version that is named or preferred, then the others. `None`:
    /// only other nodes of the cluster may play them.
    fn candidates(&self, call: &Call, query: &VodQuery) -> Result<Option<Arc<[TitleCandidate]>>, Refusal> {
        let seen = call.seen_titles();
        if !seen.shows(&self.title) {
            return Err(unknown_title());
        }
        let relations: Vec<_> = seen.relations(&self.title).collect();
        let named = self.relation.and_then(|id| relations.iter().find(|it| it.id == id));
        let label = named.or(relations.first()).and_then(|it| it.label.as_deref()).unwrap_or_default();
        let is_preferred = |id: RelationId| {
            let relation = relations.iter().find(|it| it.id == id);
            relation.is_some_and(|it| it.label.as_deref().unwrap_or_default().eq_ignore_ascii_case(label))
        };
        let mut versions: Vec<(bool, TitleVersion)> = match &self.episode {
            None => {
                let named_first = named.copied().into_iter();
                let others = relations.iter().copied().filter(|it| Some(it.id) != named.map(|it| it.id));
                named_first
                    .chain(others)
                    .map(|it| (is_preferred(it.id), TitleVersion::from_movie(it)))
                    .collect()
            }
            Some(episode) => {
                let offers =
                    episode.offers.iter().filter(|it| relations.iter().any(|of| of.id == it.relation));
                offers.map(|it| (is_preferred(it.relation), TitleVersion::from_episode(it))).collect()
            }
        };
        versions.retain(|(_, it)| {
            query.m3u_account_id.is_none_or(|id| it.account == id)
                && query.stream_id.as_ref().is_none_or(|id| it.provider_id == *id)
        });
        let mut candidates = Vec::new();
        for preferred in [true, false] {
            let group: Vec<_> =
                versions.iter().filter(|it| it.0 == preferred).map(|it| it.1.clone()).collect();
            candidates.extend(call.player().plans.title(&self.name, &group));
        }
        if candidates.is_empty() && versions.is_empty() {
            Err(unknown_title())
        } else if candidates.is_empty()
            && other_nodes::has_account(call.player(), versions.iter().map(|it| it.1.account))
        {
            Ok(None)
        } else {
            Ok(Some(other_nodes::deliverable(call, candidates).into()))
        }
    }
}

async fn serve(call: Call, wanted: Wanted, query: VodQuery) -> Result<FileAnswer, Refusal> {
    let Some(candidates) = wanted.candidates(&call, &query)? else { return other_nodes::play(&call).await };
    let session = call.text_if_any("session").map(str::to_owned).or(query.session_id);
    let title = VodTitle { target: wanted.target, name: wanted.name };
    play(call, Played { title, candidates, session }).await
}

/// A title that is played: a film, an episode, or a part of the past of a channel.
pub(super) struct Played {
    pub(super) title: VodTitle,
    pub(super) candidates: Arc<[TitleCandidate]>,
    /// Distinguishes players with the same address and program.
    pub(super) session: Option<String>,
}

/// Returns the request of a caller for the ranges in its headers.
pub(super) fn request(call: &Call, played: Played) -> VodRequest {
    let Played { title, candidates, session } = played;
    let (user, caller) = (call.user().ok(), &call.caller);
    let viewer = Viewer {
        user: user.map(|it| it.username.clone()),
        address: caller.address(),
        agent: caller.agent.clone(),
    };
    let seat = match user {
        Some(user) => Some(SeatRequest { user: user.id, limit: user.stream_limit }),
        None => anonymous_seat(call.player()),
    };
    VodRequest {
        title,
        candidates,
        viewer,
        connection: caller.connection.clone(),
        seat,
        session: session.map(|it| it.chars().take(SESSION_CHARS_MAX).collect()),
        ranges: ranges(&call.headers),
        if_range: if_range(&call.headers).map(str::to_owned),
    }
}

/// Answers with the requested bytes. All permissions have been checked except the stream limit of the user.
pub(super) async fn play(call: Call, played: Played) -> Result<FileAnswer, Refusal> {
    play_request(&call, request(&call, played), FileAnswer::stream).await
}

/// Answers a request; `of_stream` makes the answer of a stream of unknown length.
pub(super) async fn play_request(
    call: &Call,
    request: VodRequest,
    of_stream: impl FnOnce(VodBody) -> FileAnswer,
) -> Result<FileAnswer, Refusal> {
    let (user, context) = (call.user().ok(), call.player());
    let (target, client_address) = (request.title.target, call.caller.address());
    let refused = |reason: VodRefusal| {
        info!(vod.target = %target, client.address = %client_address, "client refused: {reason}");
        no_file(&reason)
    };
    if call.method == Method::HEAD {
        return match context.vod.head(request).await.map_err(refused)? {
            VodHead::File(facts) => Ok(FileAnswer::of_title(Reply::default(), &facts, None)),
            VodHead::Stream => Ok(FileAnswer::stream_head()),
            VodHead::Redirect(url) => redirect(user.is_some(), &url),
        };
    }
    let answer = context.vod.get(request).await.map_err(refused)?;
    // A user who was deactivated in the meantime had no seat yet that could be ended.
    if user.is_some_and(|it| !is_active(context, it.id)) {
        return Err(Denied::Inactive.into());
    }
    match answer {
        VodAnswer::Whole(facts, body) => Ok(FileAnswer::of_title(of_body(body), &facts, None)),
        VodAnswer::Part(facts, part, body) => Ok(FileAnswer::of_title(of_body(body), &facts, Some(&part))),
        VodAnswer::Stream(body) => Ok(of_stream(body)),
        VodAnswer::Unsatisfiable(facts) => Ok(FileAnswer(unsatisfiable(facts.length))),
        VodAnswer::Redirect(url) => redirect(user.is_some(), &url),
    }
}

/// Answers a request without ranges with what `of_stream` makes of the bytes.
pub(super) async fn play_endless(
    call: &Call,
    request: VodRequest,
    of_stream: impl FnOnce(VodBody) -> FileAnswer,
) -> Result<FileAnswer, Refusal> {
    let (target, client_address) = (request.title.target, call.caller.address());
    let refused = |reason: VodRefusal| {
        info!(vod.target = %target, client.address = %client_address, "client refused: {reason}");
        no_file(&reason)
    };
    match call.player().vod.get(request).await.map_err(refused)? {
        VodAnswer::Whole(_, body) | VodAnswer::Part(_, _, body) | VodAnswer::Stream(body) => {
            Ok(of_stream(body))
        }
        VodAnswer::Unsatisfiable(facts) => Ok(FileAnswer(unsatisfiable(facts.length))),
        VodAnswer::Redirect(url) => redirect(call.user().is_ok(), &url),
    }
}

/// Maximum length of the name of a session.
const SESSION_CHARS_MAX: usize = 100;

/// The address may contain the credentials of the account, so that only users get it.
fn redirect(is_user: bool, url: &SourceUrl) -> Result<FileAnswer, Refusal> {
    if !is_user {
        let detail = "this title is played directly from its provider, which requires a login";
        return Err(Refusal::unauthorized(detail));
    }
    let location = HeaderValue::from_str(url.expose());
    let location = location.map_err(|_| {
        Refusal::status(StatusCode::BAD_GATEWAY)
            .with_detail("the URL of the file is not valid in a Location header")
    })?;
    let mut reply = Reply::default();
    *reply.status_mut() = StatusCode::FOUND;
    reply.headers_mut().insert(LOCATION, location);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    Ok(FileAnswer(reply))
}

fn unknown_title() -> Refusal {
    Refusal::not_found("title not found")
}

/// Returns the response to a client that was refused.
pub(super) fn no_file(reason: &VodRefusal) -> Refusal {
    let detail = reason.to_string();
    match reason {
        VodRefusal::NoVersions => Refusal::unavailable(detail),
        VodRefusal::Upstream(_) | VodRefusal::Changing => {
            Refusal::status(StatusCode::BAD_GATEWAY).with_detail(detail)
        }
        VodRefusal::Full(pool) => {
            let seconds = pool.since.as_secs();
            Refusal::unavailable(format!("{detail}; the longest connection has been open for {seconds} s"))
                .retry_soon()
        }
        // Not 403, which players report as a wrong password.
        VodRefusal::Seats { .. }
        | VodRefusal::Ended
        | VodRefusal::Busy
        | VodRefusal::NoAnswer
        | VodRefusal::Stopping => Refusal::unavailable(detail).retry_soon(),
    }
}

/// A file or a part of it: 200, 206 or 416; or 302 to the provider.
pub(super) struct FileAnswer(Reply);

impl FileAnswer {
    /// Returns the answer with a file of the gateway.
    pub(super) fn of_file(mut reply: Reply) -> Self {
        reply.headers_mut().insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        Self(reply)
    }

    /// A title, or a part of it.
    fn of_title(mut reply: Reply, facts: &VodFacts, part: Option<&Range<u64>>) -> Self {
        let VodFacts { content_type, length, ref tag } = *facts;
        let file = RangedFile { media_type: content_type, length, tag: Some(tag), grows: false };
        file.describe(&mut reply, part);
        Self::of_file(reply)
    }

    /// A title that a program reads: a transport stream without length and ranges.
    fn stream(body: VodBody) -> Self {
        Self::of_stream(of_body(body))
    }

    pub(super) fn stream_head() -> Self {
        Self::of_stream(Reply::default())
    }

    /// A transport stream without length and ranges.
    pub(super) fn of_bytes(bytes: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        // Not locked: the body has to be a value that threads can share.
        let mut bytes = Mutex::new(Box::pin(bytes));
        let bytes = poll_fn(move |cx| bytes.get_mut().as_mut().poll_next(cx));
        Self::of_stream(warp::Reply::into_response(warp::reply::stream(bytes)))
    }

    fn of_stream(mut reply: Reply) -> Self {
        describe_stream(&mut reply);
        Self::of_file(reply)
    }
}

fn of_body(mut body: VodBody) -> Reply {
    let bytes = poll_fn(move |cx| Pin::new(&mut body).poll_next(cx));
    let bytes = bytes.map(|it| it.map_err(io::Error::other));
    warp::Reply::into_response(warp::reply::stream(bytes))
}

impl Answer for FileAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::StreamOrRedirect(&["video/*"]);

    fn into_reply(self) -> Reply {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use actors::FullPool;

    use super::*;

    #[test]
    fn a_refusal_tells_whether_another_try_may_help() {
        let full = FullPool {
            account: "one".to_owned(),
            server_group: None,
            since: std::time::Duration::from_secs(90),
            max_streams: 1,
            is_discovered: false,
            n_reserved: 0,
            is_unknown: false,
        };
        for (reason, status, retry_after) in [
            (VodRefusal::Full(full), 503, Some("3")),
            (VodRefusal::Seats { limit: 1 }, 503, Some("3")),
            (VodRefusal::Stopping, 503, Some("3")),
            (VodRefusal::NoVersions, 503, None),
            (VodRefusal::Changing, 502, None),
        ] {
            let response = no_file(&reason).into_response();
            let retry = response.headers().get("retry-after").map(|it| it.to_str().unwrap());
            assert_eq!((response.status().as_u16(), retry), (status, retry_after), "{reason}");
        }
    }

    #[test]
    fn only_users_are_redirected_to_a_provider() {
        let url = SourceUrl::new("http://u:p@a.example/movie/1.mkv");
        let Err(refusal) = redirect(false, &url) else { panic!("it is refused") };
        assert_eq!(refusal.into_response().status(), StatusCode::UNAUTHORIZED);
        let reply = redirect(true, &url).unwrap_or_else(|it| panic!("{it}")).into_reply();
        assert_eq!(
            (reply.status(), &reply.headers()["location"]),
            (StatusCode::FOUND, &HeaderValue::from_static("http://u:p@a.example/movie/1.mkv"))
        );
        assert!(reply.headers()["cache-control"].to_str().unwrap().contains("no-store"));
    }
}
