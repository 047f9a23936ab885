//! The past of a channel, from the archive of its provider.
//!
//! `/timeshift/{user}/{password}/{minutes}/{start}/{file}` and `/streaming/timeshift.php` are the addresses that player apps
//! build themselves, as for an Xtream Codes panel. The start is in UTC.
//!
//! ```text
//! unknown channel: 404 ─► no time, no archive: 400 ─► before the archive, or not begun: 404 ─► as for a film
//! ```

use std::sync::Arc;

use actors::{Target, VodTitle, now_ms};
use domain::catchup::{ArchiveTimes, parse_start};
use domain::channel::Channel;
use domain::plan::ArchiveRefusal;
use http::StatusCode;
use resource_derive::Query;

use super::vod::{FileAnswer, Played, file_route, play};
use super::watch::unknown_channel;
use crate::http::reply::Refusal;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;

/// Duration of a programme that the address does not tell, in minutes.
const MINUTES_DEFAULT: i64 = 120;
/// Maximum duration of a part, in minutes.
const MINUTES_MAX: i64 = 480;
/// Maximum length of a parameter, in characters.
const PARAMETER_CHARS_MAX: usize = 100;

/// Returns the routes that only the player port serves.
pub(super) fn routes() -> Vec<Route> {
    let of_path = file_route(
        "/timeshift/{user}/{password}/{minutes}/{start}/{file}",
        Access::PathLogin,
        "Returns a part of the past of a channel to a user. The start is in UTC, such as `2026-01-31:18-30`.",
        of_path,
    );
    let of_query = file_route(
        "/streaming/timeshift.php",
        Access::QueryLogin,
        "Returns a part of the past of a channel to a user.",
        of_query,
    );
    let declared = |it: Route| {
        it.refuses(StatusCode::BAD_REQUEST, "The start is no time, or the channel has no archive.").refuses(
            StatusCode::NOT_FOUND,
            "The channel does not exist, or its archive does not have this part.",
        )
    };
    [of_path, of_query].map(declared).into()
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

async fn of_path(call: Call) -> Result<FileAnswer, Refusal> {
    let (id, start) = (call.id_of("file")?, call.text("start")?.to_owned());
    let minutes = call.text("minutes")?.to_owned();
    serve(call, id, &start, &minutes).await
}

async fn of_query(call: Call, query: ArchiveQuery) -> Result<FileAnswer, Refusal> {
    let (Some(stream), Some(start)) = (query.stream, query.start) else {
        return Err(Refusal::bad_request("the parameters stream and start are needed"));
    };
    let id = stream.strip_suffix(".ts").unwrap_or(&stream).parse().map_err(|_| unknown_channel())?;
    serve(call, id, &start, &query.duration.unwrap_or_default()).await
}

async fn serve(call: Call, id: u32, start: &str, minutes: &str) -> Result<FileAnswer, Refusal> {
    let channel: Arc<Channel> = {
        let channels = call.app.models.channels.load();
        channels.get(id).filter(|it| it.enabled && call.can_see(it)).cloned().ok_or_else(unknown_channel)?
    };
    let start = parse_start(start).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let minutes =
        minutes.trim().parse().ok().filter(|it| *it > 0).unwrap_or(MINUTES_DEFAULT).min(MINUTES_MAX);
    let times = ArchiveTimes { start, duration: minutes * 60, now: now_ms() / 1000 };
    let candidates = call.app.plans.archive(&channel, times).map_err(|refusal| match refusal {
        ArchiveRefusal::NoArchive => Refusal::bad_request(refusal.to_string()),
        ArchiveRefusal::TooOld { .. } | ArchiveRefusal::Future => Refusal::not_found(refusal.to_string()),
    })?;
    let title = VodTitle { target: Target::Archive(channel.uuid), name: channel.name.clone() };
    play(call, Played { title, candidates: candidates.into(), session: None }).await
}
