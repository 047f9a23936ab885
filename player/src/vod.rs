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

use std::sync::Arc;

use actors::{Target, VodAnswer, VodBody, VodHead, VodRefusal, VodRequest, VodTitle};
use domain::ids::{AccountId, EpisodeId, RecordingId};
use domain::plan::{TitleCandidate, TitleVersion, title_problem};
use domain::recording::Recording;
use domain::user::UserLevel;
use domain::vod::{Episode, RelationId, Title, TitleKind};
use http::{Method, StatusCode};
use resource_derive::Query;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Handler, Route};
use server::reply::Refusal;
use services::auth::Denied;
use tracing::info;
use warp::reply::Response as Reply;

use super::answers::{FileAnswer, body_reply};
use super::ranges::{if_range, ranges};
use super::recordings::file::FileSelection;
use super::refusals::no_file;
use super::seat::{seat_request, viewer};
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
        .refuses(StatusCode::FORBIDDEN, "The user may not watch at this time of the day.")
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
    if let Some(recording) = recordings::find_by_number(&call, number) {
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
    if let Some(recording) = recordings::find_by_number(&call, number) {
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
    reply.map(FileAnswer::from_file)
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
            return Err(unknown_title());
        }
        let versions: Vec<TitleVersion> = versions.into_iter().map(|it| it.1).collect();
        if candidates.is_empty()
            && let Some(problem) = title_problem(&versions)
        {
            let name = &self.name;
            return Err(Refusal::unavailable(format!("failed to play \"{name}\": {problem}")));
        }
        if candidates.is_empty()
            && other_nodes::has_account(call.player(), versions.iter().map(|it| it.account))
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
///
/// # Errors
/// The user may not watch now.
pub(super) fn request(call: &Call, played: Played) -> Result<VodRequest, Refusal> {
    let Played { title, candidates, session } = played;
    Ok(VodRequest {
        title,
        candidates,
        viewer: viewer(call),
        connection: call.caller.connection.clone(),
        seat: seat_request(call)?,
        session: session.map(|it| it.chars().take(SESSION_CHARS_MAX).collect()),
        ranges: ranges(&call.headers),
        if_range: if_range(&call.headers).map(str::to_owned),
    })
}

/// Answers with the requested bytes. All permissions have been checked except the stream limit of the user.
pub(super) async fn play(call: Call, played: Played) -> Result<FileAnswer, Refusal> {
    play_request(&call, request(&call, played)?, FileAnswer::stream).await
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
            VodHead::File(facts) => Ok(FileAnswer::from_title(Reply::default(), &facts, None)),
            VodHead::Stream => Ok(FileAnswer::stream_head()),
            VodHead::Redirect(to) => FileAnswer::redirect(user.is_some(), &to),
        };
    }
    let answer = context.vod.get(request).await.map_err(refused)?;
    // A user who was deactivated in the meantime had no seat yet that could be ended.
    if user.is_some_and(|it| !context.is_active(it.id)) {
        return Err(Denied::Inactive.into());
    }
    match answer {
        VodAnswer::Whole(facts, body) => Ok(FileAnswer::from_title(body_reply(body), &facts, None)),
        VodAnswer::Part(facts, part, body) => {
            Ok(FileAnswer::from_title(body_reply(body), &facts, Some(&part)))
        }
        VodAnswer::Stream(body) => Ok(of_stream(body)),
        VodAnswer::Unsatisfiable(facts) => Ok(FileAnswer::unsatisfiable(facts.length)),
        VodAnswer::Redirect(to) => FileAnswer::redirect(user.is_some(), &to),
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
        VodAnswer::Unsatisfiable(facts) => Ok(FileAnswer::unsatisfiable(facts.length)),
        VodAnswer::Redirect(to) => FileAnswer::redirect(call.user().is_ok(), &to),
    }
}

/// Maximum length of the name of a session.
const SESSION_CHARS_MAX: usize = 100;

fn unknown_title() -> Refusal {
    Refusal::not_found("title not found")
}
