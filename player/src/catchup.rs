//! The past of a channel, from what the gateway has kept itself, or from the archive of its provider.
//!
//! `/timeshift/{user}/{password}/{minutes}/{start}/{file}` and `/streaming/timeshift.php` are the addresses that player apps
//! build themselves, as for an Xtream Codes panel; `?utc=` at a live address is what playlists offer them.
//! `/proxy/catchup/{uuid}` is for everybody else. The start is in UTC.
//!
//! ```text
//! unknown channel: 404 ─► not allowed: 403 ─► no time, no archive: 400 ─► before the archive, or not begun: 404
//! ─┬─ the own time-shift has it ─► its files
//!  └─ else ──────────────────────► as for a film
//! ```

use std::sync::Arc;

use actors::{PastPart, Target, VodAnswer, VodTitle, may_watch, now_ms};
use domain::catchup::{ArchiveTimes, MINUTES_DEFAULT, MINUTES_MAX, parse_start};
use domain::channel::Channel;
use domain::plan::{ArchiveRefusal, ArchivedProgramme, TitleCandidate};
use domain::stream_profile::Delivery;
use domain::user::{ANONYMOUS, UserLevel};
use http::{Method, StatusCode};
use media::Tail;
use resource_derive::Query;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;
use server::stream::Guard;
use services::guide::read_guide;
use tracing::info;

use super::answers::{FileAnswer, title_bytes};
use super::endless_stream::live_tail;
use super::other_nodes;
use super::output_profile::WantedPart;
use super::past::{Continuation, OpenedPart, Opening, WantedPast, follow};
use super::refusals::unknown_channel;
use super::timeshift::{self, PlayedPart};
use super::vod::{Played, file_route, play_endless, play_request, request};
use crate::context::{PlayerCall, PlayerContext};

/// Maximum length of a parameter, in characters.
const PARAMETER_CHARS_MAX: usize = 100;

/// Returns the routes that only the player port serves.
pub(super) fn routes() -> Vec<Route> {
    let by_path = file_route(
        "/timeshift/{user}/{password}/{minutes}/{start}/{file}",
        Access::PathLogin,
        "Returns a part of the past of a channel to a user. The start is in UTC, such as `2026-01-31:18-30`.",
        by_path,
    );
    let by_query = file_route(
        "/streaming/timeshift.php",
        Access::QueryLogin,
        "Returns a part of the past of a channel to a user.",
        by_query,
    );
    [by_path, by_query].map(|it| declared(it).refuses(StatusCode::FORBIDDEN, NOT_ALLOWED)).into()
}

/// Returns the routes that both ports serve.
pub(super) fn api_routes() -> Vec<Route> {
    let by_uuid = file_route(
        "/proxy/catchup/{uuid}",
        Access::TitleOrNetworks(UserLevel::Streamer),
        "Returns a part of the past of a channel.",
        by_uuid,
    );
    vec![declared(by_uuid)]
}

const NOT_ALLOWED: &str = "The user may not watch the past of channels.";

/// Declares the refusals of a part of the past.
pub(super) fn declared(route: Route) -> Route {
    route
        .refuses(StatusCode::BAD_REQUEST, "The start is invalid, or the channel has no archive.")
        .refuses(StatusCode::NOT_FOUND, "The channel does not exist, or its archive does not have this part.")
}

/// The part of the past that a player app asks for.
#[derive(Debug, Default, Query)]
struct ArchiveQuery {
    /// Id of the channel, also with `.ts`.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "7")]
    stream: Option<String>,
    /// Start in UTC: `2026-01-31:18-30`, ISO 8601, or seconds since 1970.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "2026-01-31:18-30")]
    start: Option<String>,
    /// Duration in minutes; 120 without it, at most 480.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "60")]
    duration: Option<String>,
}

/// The part of the past that a browser or an own app asks for.
#[derive(Debug, Default, Query)]
struct UuidQuery {
    /// Start in UTC: ISO 8601, seconds since 1970, or `2026-01-31:18-30`.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "2026-01-31T18:30:00Z")]
    start: Option<String>,
    /// Duration in minutes; 120 without it, at most 480.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "60")]
    duration: Option<String>,
    /// Any text by which a player distinguishes its requests from those of others with the same address and program.
    session_id: Option<String>,
    /// Access token, or the token of the address that `/api/catchup/sessions/` returned.
    #[expect(dead_code, reason = "read by the check of the access")]
    token: Option<String>,
}

async fn by_path(call: Call) -> Result<FileAnswer, Refusal> {
    let id = call.id_of("file")?;
    let channel = visible(&call, |it| it.get(id))?;
    let part = WantedTime::parse(call.text("start")?, call.text("minutes")?)?;
    serve(call, channel, part, None).await
}

async fn by_query(call: Call, query: ArchiveQuery) -> Result<FileAnswer, Refusal> {
    let (Some(stream), Some(start)) = (query.stream, query.start) else {
        return Err(Refusal::bad_request("the parameters stream and start are needed"));
    };
    let id: u32 = stream.strip_suffix(".ts").unwrap_or(&stream).parse().map_err(|_| unknown_channel())?;
    let channel = visible(&call, |it| it.get(id))?;
    let part = WantedTime::parse(&start, &query.duration.unwrap_or_default())?;
    serve(call, channel, part, None).await
}

async fn by_uuid(call: Call, query: UuidQuery) -> Result<FileAnswer, Refusal> {
    let uuid = call.uuid()?;
    let channel = visible(&call, |it| it.one_by("uuid", uuid.as_bytes()))?;
    let start = query.start.ok_or_else(|| Refusal::bad_request("the parameter start is needed"))?;
    let part = WantedTime::parse(&start, &query.duration.unwrap_or_default())?;
    serve(call, channel, part, query.session_id).await
}

/// Serves the part of the past that the query of a live address asks for. Returns the call for a start that is not in the
/// past: the channel plays as it is.
pub(super) async fn play_from_live_address(
    call: Call,
    channel: Arc<Channel>,
    wanted: WantedPart<'_>,
) -> Result<Result<FileAnswer, Call>, Refusal> {
    let start = parse_start(wanted.start).map_err(|error| Refusal::bad_request(error.to_string()))?;
    if start >= now_ms() / 1000 {
        return Ok(Err(call));
    }
    // Players that know no end leave out the parameter, or leave its placeholder as it is.
    let seconds = wanted.duration.and_then(|it| it.trim().parse().ok());
    let seconds = seconds.or_else(|| parse_start(wanted.end?).ok()?.checked_sub(start));
    let seconds = seconds.filter(|it| *it > 0).unwrap_or(MINUTES_DEFAULT * 60).min(MINUTES_MAX * 60);
    serve(call, channel, WantedTime { start, seconds }, None).await.map(Ok)
}

/// A part of the past.
#[derive(Debug, Clone, Copy)]
struct WantedTime {
    /// In seconds since 1970.
    start: i64,
    seconds: i64,
}

impl WantedTime {
    fn parse(start: &str, minutes: &str) -> Result<Self, Refusal> {
        let start = parse_start(start).map_err(|error| Refusal::bad_request(error.to_string()))?;
        let minutes = minutes.trim().parse().ok().filter(|it| *it > 0).unwrap_or(MINUTES_DEFAULT);
        Ok(Self { start, seconds: minutes.min(MINUTES_MAX) * 60 })
    }
}

/// Returns the channel that `find` finds, if the caller may watch it.
pub fn visible(
    call: &Call,
    find: impl Fn(&storage::Table<Channel>) -> Option<&Arc<Channel>>,
) -> Result<Arc<Channel>, Refusal> {
    let channels = call.player().models.channels.load();
    find(&channels).filter(|it| call.can_see(it)).cloned().ok_or_else(unknown_channel)
}

/// Where a part of the past comes from.
pub enum PastSource {
    /// The gateway has kept it.
    Own(PastPart),
    Provider(Vec<TitleCandidate>),
    /// Only other nodes of the cluster may read the archive, or know it.
    OtherNode,
}

/// Checks that the caller may watch this part of the past, and finds who has it: the gateway if it has all of it, then a
/// provider, then the gateway as far as it goes.
pub async fn source_of(call: &Call, channel: &Channel, times: ArchiveTimes) -> Result<PastSource, Refusal> {
    if !call.may_catch_up() {
        return Err(Refusal::status(StatusCode::FORBIDDEN).with_detail("catch-up is off for this user"));
    }
    let own = timeshift::find(call.player(), channel, times).await;
    if own.is_none() && other_nodes::is_edge(call.player()) {
        return Ok(PastSource::OtherNode);
    }
    let programme = programme_of(call.player(), channel, times.start).await;
    let archive = || -> Result<_, ArchiveRefusal> {
        let candidates = call.player().plans.archive(channel, times, programme.as_ref())?;
        Ok(other_nodes::deliverable(call, candidates))
    };
    match own {
        Some(own) if own.is_whole() => Ok(PastSource::Own(own)),
        Some(own) => Ok(archive().map_or(PastSource::Own(own), PastSource::Provider)),
        None => match archive() {
            Ok(candidates) => Ok(PastSource::Provider(candidates)),
            Err(ArchiveRefusal::NoArchive) if other_nodes::has_archive(call.player(), channel) => {
                Ok(PastSource::OtherNode)
            }
            Err(refusal) => Err(refuse(call.player(), channel, refusal)),
        },
    }
}

fn refuse(context: &PlayerContext, channel: &Channel, refusal: ArchiveRefusal) -> Refusal {
    match refusal {
        ArchiveRefusal::NoArchive => {
            timeshift::not_kept(context, channel).unwrap_or_else(|| Refusal::bad_request(refusal.to_string()))
        }
        ArchiveRefusal::TooOld { .. } | ArchiveRefusal::Future | ArchiveRefusal::NoProgramme => {
            Refusal::not_found(refusal.to_string())
        }
    }
}

/// Returns the programme at a time, if an archive of the channel uses it and the guide names it for archives.
async fn programme_of(context: &Arc<PlayerContext>, channel: &Channel, at: i64) -> Option<ArchivedProgramme> {
    if !context.plans.archive_uses_programme(channel) {
        return None;
    }
    let (context, channel) = (Arc::clone(context), channel.clone());
    let found = read_guide(move || Ok(context.guides.reader().archived_programme(&channel, at))).await;
    found.ok().flatten()
}

async fn serve(
    call: Call,
    channel: Arc<Channel>,
    part: WantedTime,
    session: Option<String>,
) -> Result<FileAnswer, Refusal> {
    let now = now_ms() / 1000;
    let end = part.start.saturating_add(part.seconds);
    let times = ArchiveTimes { start: part.start, duration: part.seconds, now };
    let candidates = match source_of(&call, &channel, times).await? {
        PastSource::Own(own) => {
            let played = PlayedPart { part: own, start: part.start, session };
            return serve_own(call, channel, played, end).await;
        }
        PastSource::Provider(candidates) => candidates,
        PastSource::OtherNode => return other_nodes::play(&call).await,
    };
    let begins_at = candidates.first().and_then(|it| it.start).unwrap_or(part.start);
    let goes_live = end >= now && !is_redirected(&candidates);
    let wanted = WantedPast { start: part.start, end, goes_live };
    let rest = Rest { call: call.clone(), channel: channel.clone(), session: session.clone() };
    let played = played(&channel, candidates, session);
    let of_stream = |body| {
        FileAnswer::from_bytes(follow(
            wanted,
            OpenedPart { body: Box::pin(title_bytes(body)), begins_at },
            rest,
        ))
    };
    let mut request = request(&call, played)?;
    if goes_live {
        if call.method == Method::HEAD {
            return Ok(FileAnswer::stream_head());
        }
        // Nobody knows the length.
        request.ranges = None;
        return play_endless(&call, request, of_stream).await;
    }
    play_request(&call, request, of_stream).await
}

/// Serves what the gateway has kept. A part whose end is to come goes on into the live channel.
async fn serve_own(
    call: Call,
    channel: Arc<Channel>,
    played: PlayedPart,
    end: i64,
) -> Result<FileAnswer, Refusal> {
    if played.part.length().is_some() {
        return timeshift::file(&call, &channel, played).await.map(FileAnswer::from_file);
    }
    if call.method == Method::HEAD {
        return Ok(FileAnswer::stream_head());
    }
    let wanted = WantedPast { start: played.start, end, goes_live: true };
    let rest = Rest { call: call.clone(), channel: channel.clone(), session: played.session.clone() };
    let opened = timeshift::open(&call, &channel, played).await?;
    Ok(FileAnswer::from_bytes(follow(wanted, opened, rest)))
}

fn is_redirected(candidates: &[TitleCandidate]) -> bool {
    candidates.first().is_some_and(|it| it.candidate.profile == Delivery::Redirect)
}

fn played(channel: &Channel, candidates: Vec<TitleCandidate>, session: Option<String>) -> Played {
    let title = VodTitle { target: Target::Archive(channel.uuid), name: channel.name.clone() };
    Played { title, candidates: candidates.into(), session }
}

/// The continuation of the answer to a caller.
struct Rest {
    call: Call,
    channel: Arc<Channel>,
    session: Option<String>,
}

impl Rest {
    /// Returns the channel, if the caller may still watch it.
    fn visible(&self) -> Option<Arc<Channel>> {
        let models = &self.call.player().models;
        let viewer = self.call.user().map_or(ANONYMOUS, |it| it.id);
        let uuid = self.channel.uuid;
        let channel = models.channels.load().one_by("uuid", uuid.as_bytes()).cloned();
        channel.filter(|_| may_watch(models, viewer, Target::Channel(uuid)))
    }
}

impl Continuation for Rest {
    fn part(&mut self, times: ArchiveTimes) -> Opening<'_, Option<OpenedPart>> {
        Box::pin(async move {
            let channel = self.visible()?;
            let programme = programme_of(self.call.player(), &channel, times.start).await;
            let candidates = self.call.player().plans.archive(&channel, times, programme.as_ref()).ok()?;
            let candidates = other_nodes::deliverable(&self.call, candidates);
            let begins_at = candidates.first()?.start?;
            let mut request = request(&self.call, played(&channel, candidates, self.session.clone())).ok()?;
            request.ranges = None;
            match self.call.player().vod.get(request).await {
                Ok(VodAnswer::Whole(_, body) | VodAnswer::Stream(body)) => {
                    Some(OpenedPart { body: Box::pin(title_bytes(body)), begins_at })
                }
                Ok(_) => None,
                Err(refusal) => {
                    info!(channel.name = channel.name, "the past of a channel does not go on: {refusal}");
                    None
                }
            }
        })
    }

    fn live(&mut self) -> Opening<'_, Result<(Tail, Guard), Refusal>> {
        Box::pin(async move {
            let channel = self.visible().ok_or_else(unknown_channel)?;
            live_tail(self.call.clone(), Target::Channel(channel.uuid)).await
        })
    }
}
