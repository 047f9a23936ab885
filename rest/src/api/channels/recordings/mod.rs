//! `/api/channels/recordings/`: recordings of channels.
//!
//! A change is a change of the record, which the recorder follows: it notices at most half a second later that a recording
//! was ended, moved or removed.

mod access;
mod after;
mod after_view;
mod checks;
mod file;
mod forecast;
#[cfg(test)]
mod forecast_tests;
mod program_id;
mod programme;
mod storage;
#[cfg(test)]
mod tests;
mod view;

use ::storage::{Models, Write};
use actors::{now_ms, remember_deleted};
use domain::ids::{ChannelId, RecordingId};
use domain::recording::{PRIORITY_DEFAULT, RECORDINGS_MAX, Recording, RecordingInput, RecordingStatus};
use domain::user::UserLevel;
use domain::user_group::ADD_RECORDING;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, Access, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use serde_json::json;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

pub(super) use self::access::{check_may_schedule, dvr_settings};
use self::access::{may_see, seen};
pub(super) use self::checks::{channel_of, clamp_priority};
use self::checks::{check, check_past, check_times, conflict};
use self::program_id::ProgramId;
use self::programme::{apply_properties, guide_programme};
pub(super) use self::view::PADDING_SECONDS_MIN;
use self::view::{NewRecording, RecordingEdit, RecordingView};
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{RecordCall, find, refuse_if};

choice!(RecordingStatus {
    Scheduled = "scheduled",
    Recording = "recording",
    Completed = "completed",
    Stopped = "stopped",
    Interrupted = "interrupted",
    Failed = "failed",
});

choice!(
    /// The orders of the list of recordings.
    enum ByTime {
        Id = "id",
        Start = "start_time",
        End = "end_time",
    }
);

/// Filters of the list of recordings.
#[derive(Debug, Query)]
struct Filters {
    /// Statuses, separated by commas.
    #[field(items_max = 6)]
    status: Option<Vec<Named<RecordingStatus>>>,
    /// Id of the channel.
    channel_id: Option<ChannelId>,
    /// Part of the title or of the name of the channel, regardless of case.
    search: Option<Search>,
    /// Order of the list; by start by default.
    ordering: Option<Ordering<ByTime>>,
}

/// Moves the end of a recording.
#[derive(Debug, Body)]
pub(crate) struct ExtendRecording {
    /// Minutes that are added to the end.
    #[field(at_least = 1, at_most = 1440, example = "15")]
    extra_minutes: u32,
}

/// Selects upcoming recordings.
#[derive(Debug, Body)]
pub(crate) struct UpcomingSelection {
    /// Ids of recordings; without them, all upcoming ones that the caller may change.
    #[field(items_max = RECORDINGS_MAX)]
    ids: Option<Vec<u32>>,
}

/// The number of recordings that were removed.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RemovedRecordingsView {
    /// Always true.
    success: bool,
    /// Recordings that were removed. Those that run or are over are kept.
    #[field(example = "2")]
    removed: usize,
}

const LIST: &str = "/api/channels/recordings/";
const ONE: &str = "/api/channels/recordings/{id}/";
const FORECAST: &str = "/api/channels/recordings/forecast/";
const STORAGE: &str = "/api/channels/recordings/storage/";
const STOP: &str = "/api/channels/recordings/{id}/stop/";
const EXTEND: &str = "/api/channels/recordings/{id}/extend/";
const COMSKIP: &str = "/api/channels/recordings/{id}/comskip/";
const ARTWORK: &str = "/api/channels/recordings/{id}/artwork/";
const REFRESH_ARTWORK: &str = "/api/channels/recordings/{id}/refresh-artwork/";
const METADATA: &str = "/api/channels/recordings/{id}/update-metadata/";
const FILE: &str = "/api/channels/recordings/{id}/file/";
const HLS: &str = "/api/channels/recordings/{id}/hls/";
const HLS_FILE: &str = "/api/channels/recordings/{id}/hls/index.m3u8";
const HLS_SEGMENTS: &str = "/api/channels/recordings/{id}/hls/recording.ts";
const DELETE_UPCOMING: &str = "/api/channels/recordings/bulk-delete-upcoming/";

pub(super) fn routes() -> Vec<Route> {
    const NOT_ALLOWED: &str = "Non-admins schedule recordings only if the settings allow it.";
    const OVER: &str = "The recording is over, or has not begun.";
    let changes = [
        Route::post(LIST, STANDARD, "Creates a recording.", create).refuses(StatusCode::CONFLICT, KNOWN),
        Route::put(ONE, STANDARD, "Updates a recording. Fields may be left out.", update),
        Route::patch(ONE, STANDARD, "Partially updates a recording.", update),
        Route::delete(ONE, STANDARD, "Deletes a recording and its file. One that runs ends.", delete),
        Route::post(STOP, STANDARD, "Ends a running recording and keeps its file.", stop)
            .refuses(StatusCode::CONFLICT, OVER),
        Route::post(EXTEND, STANDARD, "Changes the end of a recording.", extend)
            .refuses(StatusCode::CONFLICT, "The recording is over."),
        Route::post(
            COMSKIP,
            STANDARD,
            "Starts a search for commercials in the file.",
            after::find_commercials,
        )
        .refuses(StatusCode::CONFLICT, "The file is not complete, or a search waits or runs already."),
        Route::post(
            REFRESH_ARTWORK,
            STANDARD,
            "Replaces the picture of a recording by that of its programme or channel.",
            after::refresh_artwork,
        )
        .refuses(StatusCode::CONFLICT, "The file is not complete, or the picture is being fetched already."),
        Route::post(
            METADATA,
            STANDARD,
            "Updates the programme of a recording. Without a field, from the guide.",
            programme::update_metadata,
        )
        .refuses(StatusCode::CONFLICT, "The guide does not know the programme."),
        Route::post(
            DELETE_UPCOMING,
            STANDARD,
            "Deletes upcoming recordings. Those that run or are over are kept.",
            delete_upcoming,
        )
        .with_bulk_body(),
    ];
    let reads = [
        Route::get(
            FORECAST,
            STANDARD,
            "Returns which upcoming recordings will have a connection.",
            forecast::get,
        ),
        Route::get(
            STORAGE,
            ADMIN,
            "Returns the folder of recordings, its room, and who uses it.",
            storage::get,
        ),
        Route::get(LIST, STANDARD, "Lists recordings. Non-admins find their own.", list),
        Route::get(ONE, STANDARD, "Returns a recording.", retrieve),
        Route::get(
            ARTWORK,
            Access::FromHeaderOrQuery(UserLevel::Streamer),
            "Returns the picture of a recording.",
            after::artwork,
        )
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current image."),
        file_route(FILE),
        file_route(HLS_SEGMENTS),
        hls_route(HLS),
        hls_route(HLS_FILE),
    ];
    let changes = changes.map(|it| it.refuses(StatusCode::FORBIDDEN, NOT_ALLOWED));
    reads.into_iter().chain(changes).map(|it| it.also_with(ADD_RECORDING)).collect()
}

fn file_route(path: &'static str) -> Route {
    let access = Access::FromHeaderOrQuery(UserLevel::Streamer);
    let summary = "Returns the file of a recording, whole or in part. One that runs is followed to its end.";
    Route::get(path, access, summary, file::get)
        .refuses_plainly(StatusCode::PARTIAL_CONTENT, "The requested part, with `Content-Range`.")
        .refuses(StatusCode::RANGE_NOT_SATISFIABLE, "No requested byte exists.")
}

fn hls_route(path: &'static str) -> Route {
    let access = Access::FromHeaderOrQuery(UserLevel::Streamer);
    let summary = "Returns the file of a recording as an HLS playlist, which grows with it.";
    Route::get(path, access, summary, file::hls)
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<RecordingView>, Refusal> {
    let recordings = call.rest().models.recordings.load();
    let may_see = may_see(&call)?;
    let is_wanted = |it: &Recording| {
        may_see(it)
            && filters.status.as_ref().is_none_or(|all| all.iter().any(|status| it.status == status.0))
            && filters.channel_id.is_none_or(|channel| it.channel == channel)
            && matches(filters.search.as_ref(), [it.title(), &it.channel_name])
    };
    let mut found: Vec<_> = recordings.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByTime::Start));
    ordering.sort_by(&mut found, |it| match ordering.by {
        ByTime::Id => (i64::from(it.id.0), 0),
        ByTime::Start => (it.start, it.id.0),
        ByTime::End => (it.end, it.id.0),
    });
    paging.render(&call, &found)
}

async fn retrieve(call: Call) -> Result<RecordingView, Refusal> {
    call.render(&*seen(&call)?)
}

async fn create(call: Call, new: NewRecording) -> Result<Created<RecordingView>, Refusal> {
    check_may_schedule(&call)?;
    let (now, settings) = (now_ms(), dvr_settings(&call));
    let n_recordings = call.rest().models.recordings.load().len();
    refuse_if(n_recordings >= RECORDINGS_MAX, "There are too many recordings. Delete some first.")?;
    let mut errors = FieldErrors::default();
    let program = new.program_id.flatten();
    let guide = match &program {
        Some(ProgramId(id)) => guide_programme(&call, id, new.channel_id.or(new.channel)).await?,
        None => None,
    };
    let channel = match new.channel_id.or(new.channel) {
        Some(id) => channel_of(&call, id).map_err(|reason| errors.add("channel_id", reason)).ok(),
        None => {
            errors.add("channel_id", "This field is required.");
            None
        }
    };
    let mut time = |name: &'static str, sent: Option<i64>| {
        if sent.is_none() {
            errors.add(name, "This field is required.");
        }
        sent.unwrap_or_default()
    };
    let start = time("start_time", new.start_time.map(|it| it.0).or(guide.as_ref().map(|it| it.start)));
    let end = time("end_time", new.end_time.map(|it| it.0).or(guide.as_ref().map(|it| it.end)));
    let mut programme = guide.as_ref().map(|it| it.programme.clone());
    if let Some(ProgramId(id)) = program {
        programme.get_or_insert_default().id = Some(id);
    }
    if let Some(properties) = new.custom_properties.flatten() {
        apply_properties(&mut programme, &properties)
            .unwrap_or_else(|reason| errors.add("custom_properties", reason));
    }
    if new.status.is_some_and(|it| it.0 != RecordingStatus::Scheduled) {
        errors.add("status", "A new recording is scheduled.");
    }
    errors.or(())?;
    let Some(channel) = channel else { return Err(Refusal::bug()) };
    let owner = call.owner()?;
    let mut recording = Recording {
        programme,
        padding_before: new.padding_before.unwrap_or(settings.padding().0),
        padding_after: new.padding_after.unwrap_or(settings.padding().1),
        priority: new.priority.map_or(PRIORITY_DEFAULT, clamp_priority),
        owner,
        protected: new.protected.unwrap_or(false),
        ..Recording::new(RecordingId(0), channel.id, channel.uuid, &*channel.name, start..end, now)
    };
    match recording.ends_at() <= now && recording.end > recording.start {
        // The guide does not move what is over.
        true => check_past(&call, &channel, &recording, now)?,
        false => {
            check(&recording, now)?;
            recording.followed = guide.and_then(|it| it.followed_by(&recording));
        }
    }
    let models = call.rest().models.clone();
    call.create(move |write, id| {
        check_unknown(write, &models, &recording)?;
        Ok(Recording { id: RecordingId(id), ..recording })
    })
    .await
}

const KNOWN: &str = "The airing is recorded or planned already. `id` is the recording.";

/// Refuses a recording of an airing that the user records or has planned, also on another channel.
fn check_unknown(write: &Write<'_>, models: &Models, recording: &Recording) -> Result<(), Refusal> {
    let is_it = |it: &Recording| !it.status.is_final() && it.is_of_same_airing(recording);
    let of_channel = write.by::<Recording>("channel", recording.channel.0.to_be_bytes())?;
    let known = of_channel.into_iter().find(is_it);
    if let Some(it) = known {
        return Err(known_airing(&it, recording));
    }
    let (elsewhere, first_unseen) = {
        let recordings = models.recordings.load();
        let elsewhere: Vec<_> = recordings.iter().filter(|it| is_it(it)).map(|it| it.id.0).collect();
        (elsewhere, recordings.iter().map(|it| it.id.0).max().map_or(0, |it| it.saturating_add(1)))
    };
    for id in elsewhere {
        if let Some(it) = write.get::<Recording>(id)?.filter(is_it) {
            return Err(known_airing(&it, recording));
        }
    }
    // The model does not have those of the writes just before this one.
    match write.all_from::<Recording>(first_unseen)?.iter().find(|it| is_it(it)) {
        Some(it) => Err(known_airing(it, recording)),
        None => Ok(()),
    }
}

fn known_airing(known: &Recording, recording: &Recording) -> Refusal {
    let place = match known.channel == recording.channel {
        true => String::new(),
        false => format!(", on the channel \"{}\"", known.channel_name),
    };
    let detail = format!("The recording {} is of the same airing{place}.", known.id);
    Refusal::status(StatusCode::CONFLICT).with_body(json!({ "detail": detail, "id": known.id.0 }))
}

async fn update(call: Call, edit: RecordingEdit) -> Result<RecordingView, Refusal> {
    check_may_schedule(&call)?;
    let present = seen(&call)?.channel;
    // Clients send whole records back, so the channel of the record is accepted although it may be deleted.
    let channel = edit.channel_id.or(edit.channel).map(|id| (id, channel_of(&call, id)));
    let guide = match edit.program_id.as_ref().and_then(Option::as_ref) {
        Some(ProgramId(id)) => {
            let of = edit.channel_id.or(edit.channel).unwrap_or(present);
            guide_programme(&call, id, Some(of)).await?
        }
        None => None,
    };
    call.update(move |_, recording: &mut Recording| {
        let now = now_ms();
        let before = recording.clone();
        if let Some((id, found)) = channel
            && id != recording.channel
        {
            let channel = found.map_err(|reason| Refusal::field("channel_id", reason))?;
            recording.channel = channel.id;
            recording.channel_name.clone_from(&channel.name);
            recording.channel_uuid = channel.uuid;
        }
        recording.start = edit.start_time.map_or(recording.start, |it| it.0);
        recording.end = edit.end_time.map_or(recording.end, |it| it.0);
        recording.padding_before = edit.padding_before.unwrap_or(recording.padding_before);
        recording.padding_after = edit.padding_after.unwrap_or(recording.padding_after);
        recording.priority = edit.priority.map_or(recording.priority, clamp_priority);
        recording.protected = edit.protected.unwrap_or(recording.protected);
        if let Some(program) = edit.program_id {
            let id = program.map(|it| it.0);
            if recording.programme.as_ref().and_then(|it| it.id.clone()) != id {
                recording.followed = guide.as_ref().and_then(|it| it.followed_by(recording));
                recording.programme = guide.map(|it| it.programme);
                if id.is_some() {
                    recording.programme.get_or_insert_default().id = id;
                }
            }
        }
        if let Some(Some(properties)) = edit.custom_properties {
            let applied = apply_properties(&mut recording.programme, &properties);
            applied.map_err(|reason| Refusal::field("custom_properties", reason))?;
        }
        check_times(recording, &before, now)?;
        if let Some(status) = edit.status.map(|it| it.0).filter(|it| *it != recording.status) {
            end_as(recording, status, now)?;
        }
        recording.updated_at = now;
        Ok(())
    })
    .await
}

/// Gives a recording the status that a client wants: `completed` in every state, and `stopped` while it runs.
fn end_as(recording: &mut Recording, status: RecordingStatus, now: i64) -> Result<(), Refusal> {
    let input = match status {
        RecordingStatus::Completed => RecordingInput::Complete,
        RecordingStatus::Stopped => RecordingInput::Stop,
        _ => return Err(Refusal::field("status", "Only completed and stopped can be set.")),
    };
    if status == RecordingStatus::Stopped && recording.status != RecordingStatus::Recording {
        return Err(Refusal::field("status", format!("The recording is {}.", recording.status)));
    }
    let ended = recording.apply(input, Some(ENDED_BY_USER.to_owned()), now);
    ended.map_err(|wrong| Refusal::field("status", format!("The recording is {}.", wrong.0)))
}

/// Reason of the status of recordings that users end.
const ENDED_BY_USER: &str = "ended by a user";

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    check_may_schedule(&call)?;
    seen(&call)?;
    let (id, recorder) = (call.id()?, call.rest().recordings.recorder.clone());
    let removed = call.write(move |write| {
        let recording = find::<Recording>(write, id)?;
        write.remove::<Recording>(id)?;
        remember_deleted(write, &recording)?;
        recorder.leave_files(write, &recording)?;
        let report = recorder.report_removal(write, &recording)?;
        Ok((recording, report))
    });
    let (removed, report) = removed.await?;
    report.announce();
    call.rest().recordings.recorder.remove_file(&removed).await;
    Ok(NoContent)
}

async fn stop(call: Call) -> Result<RecordingView, Refusal> {
    check_may_schedule(&call)?;
    seen(&call)?;
    call.update(|_, recording: &mut Recording| {
        let now = now_ms();
        // One that has not begun is deleted instead, unless it waits for its first packet.
        let is_waiting = recording.status == RecordingStatus::Scheduled && recording.begins_at() <= now;
        if recording.status != RecordingStatus::Recording && !is_waiting {
            return Err(conflict(recording));
        }
        let stopped = recording.apply(RecordingInput::Stop, Some(ENDED_BY_USER.to_owned()), now);
        stopped.map_err(|_| conflict(recording))
    })
    .await
}

async fn extend(call: Call, by: ExtendRecording) -> Result<RecordingView, Refusal> {
    check_may_schedule(&call)?;
    seen(&call)?;
    call.update(move |_, recording: &mut Recording| {
        let now = now_ms();
        if recording.status.is_final() || recording.ends_at() <= now {
            return Err(conflict(recording));
        }
        recording.end = recording.end.saturating_add(i64::from(by.extra_minutes) * 60_000);
        recording.updated_at = now;
        check(recording, now)
            .map_err(|_| Refusal::field("extra_minutes", "A recording can last 48 hours at most."))
    })
    .await
}

async fn delete_upcoming(call: Call, selection: UpcomingSelection) -> Result<RemovedRecordingsView, Refusal> {
    check_may_schedule(&call)?;
    let may_see = may_see(&call)?;
    let recordings = call.rest().models.recordings.load();
    let ids: Vec<u32> = match selection.ids {
        Some(ids) => ids.into_iter().filter(|id| recordings.get(*id).is_some_and(|it| may_see(it))).collect(),
        None => recordings.iter().filter(|it| may_see(it)).map(|it| it.id.0).collect(),
    };
    call.write(move |write| {
        let (now, mut removed) = (now_ms(), 0);
        for id in ids {
            // Read again: one may have begun meanwhile, and an id may be listed twice.
            let recording = write.get::<Recording>(id)?;
            let is_upcoming = |it: &Recording| {
                it.status == RecordingStatus::Scheduled && it.file.is_none() && it.begins_at() > now
            };
            if let Some(recording) = recording.filter(is_upcoming) {
                write.remove::<Recording>(id)?;
                remember_deleted(write, &recording)?;
                removed += 1;
            }
        }
        Ok(RemovedRecordingsView { success: true, removed })
    })
    .await
}
