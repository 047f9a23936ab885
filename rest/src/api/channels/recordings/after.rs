//! Requests for work on the file of a recording after its end, and its picture.

use actors::now_ms;
use domain::recording::{AfterRecording, Recording};
use http::StatusCode;
use player::context::PlayerCall;
use player::recordings::picture::picture;
use route_frame::call::Call;
use server::reply::Refusal;

use super::access::{check_may_schedule, seen};
use super::checks::conflict;
use super::file::playable;
use super::view::RecordingView;
use crate::images::Image;
use crate::record::RecordCall;

/// Returns the picture.
pub(super) async fn artwork(call: Call) -> Result<Image, Refusal> {
    let recording = playable(&call)?;
    let none = || Refusal::not_found("The recording has no picture.");
    let bytes = picture(call.player(), &recording).await?.ok_or_else(none)?;
    Image::new(bytes, &call.headers).ok_or_else(none)
}

/// Queues the picture again.
pub(super) async fn refresh_artwork(call: Call) -> Result<RecordingView, Refusal> {
    queue(call, AfterRecording::queue_artwork, "The picture is being fetched already.").await
}

/// Queues a search for commercials.
pub(super) async fn find_commercials(call: Call) -> Result<RecordingView, Refusal> {
    if !seen(&call)?.earlier_parts.is_empty() {
        return Err(refused("Several nodes have recorded parts of it, each a file of its own."));
    }
    queue(call, AfterRecording::queue_comskip, "A search for commercials waits or runs already.").await
}

/// Queues work on a file that is whole. `waits` is the refusal if the work is queued already.
async fn queue(
    call: Call,
    add: fn(&mut AfterRecording, i64) -> bool,
    waits: &'static str,
) -> Result<RecordingView, Refusal> {
    check_may_schedule(&call)?;
    seen(&call)?;
    call.update(move |_, recording: &mut Recording| {
        if recording.file.is_none() {
            return Err(conflict(recording));
        }
        if !recording.has_whole_file() {
            return Err(refused("The recording has not ended."));
        }
        match add(&mut recording.after, now_ms()) {
            true => Ok(()),
            false => Err(refused(waits)),
        }
    })
    .await
}

fn refused(detail: &str) -> Refusal {
    Refusal::status(StatusCode::CONFLICT).with_detail(detail.to_owned())
}
