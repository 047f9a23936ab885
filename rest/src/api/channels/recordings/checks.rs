//! Checks of recordings before they are written.

use std::sync::Arc;

use domain::catchup::ArchiveTimes;
use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::recording::{Recording, RecordingStatus, WrongField};
use http::StatusCode;
use route_frame::call::Call;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use crate::api::channels::values::no_such;
use crate::context::RestCall;

/// Returns the refusal of an operation that the status of a recording prevents.
pub(super) fn conflict(recording: &Recording) -> Refusal {
    let detail = match recording.status {
        RecordingStatus::Scheduled => "The recording has not begun.".to_owned(),
        status => format!("The recording is {status}."),
    };
    Refusal::status(StatusCode::CONFLICT).with_detail(detail)
}

/// Checks the fields of a recording whose end is to come.
pub(super) fn check(recording: &Recording, now: i64) -> Result<(), Refusal> {
    refuse_fields(recording.check(now).err().unwrap_or_default())
}

/// Checks the times of a changed recording: what has been recorded does not change.
pub(super) fn check_times(recording: &Recording, before: &Recording, now: i64) -> Result<(), Refusal> {
    let beginning = |it: &Recording| (it.channel, it.start, it.padding_before);
    let end = |it: &Recording| (it.end, it.padding_after);
    let (has_moved, has_other_end) =
        (beginning(recording) != beginning(before), end(recording) != end(before));
    if !has_moved && !has_other_end && recording.priority == before.priority {
        return Ok(());
    }
    if before.status.is_final() && (has_moved || has_other_end) {
        return Err(Refusal::field("end_time", "The recording is over."));
    }
    if before.status == RecordingStatus::Recording && has_moved {
        return Err(Refusal::field("start_time", "The recording has begun."));
    }
    match has_moved || has_other_end {
        true => check(recording, now),
        false => Ok(()),
    }
}

/// Checks a new recording whose time is over: an archive has to have it, and the caller may watch the past.
pub(super) fn check_past(
    call: &Call,
    channel: &Channel,
    recording: &Recording,
    now: i64,
) -> Result<(), Refusal> {
    refuse_fields(recording.check_past().err().unwrap_or_default())?;
    let refuse =
        |reason: String| Refusal::field("start_time", format!("The past cannot be recorded: {reason}."));
    if !call.may_catch_up() {
        return Err(refuse("catch-up is off for this user".to_owned()));
    }
    let (start, now) = (recording.begins_at().div_euclid(1000), now / 1000);
    let duration = (recording.ends_at() - recording.begins_at()) / 1000;
    let found = call.rest().live.plans.archive(channel, ArchiveTimes { start, duration, now }, None);
    found.map(|_| ()).map_err(|refusal| refuse(refusal.to_string()))
}

fn refuse_fields(wrong: Vec<WrongField>) -> Result<(), Refusal> {
    let mut errors = FieldErrors::default();
    for wrong in wrong {
        errors.add(wrong.field, wrong.reason);
    }
    Ok(errors.or(())?)
}

/// The limits of the field are checked before.
pub(in crate::api::channels) fn clamp_priority(priority: u32) -> u8 {
    u8::try_from(priority).unwrap_or(u8::MAX)
}

/// Returns a channel that the caller may see, or the message for one that does not exist.
pub(in crate::api::channels) fn channel_of(call: &Call, id: ChannelId) -> Result<Arc<Channel>, String> {
    let channel = call.rest().models.channels.load().get(id.0).cloned();
    let is_listed = call.listed();
    channel.filter(|it| is_listed(it)).ok_or_else(|| no_such(id))
}
