//! The work on the file of a recording after its end: requests for it, and its state in answers.

use actors::now_ms;
use domain::comskip::{COMMERCIALS_MAX, Commercial};
use domain::recording::{ComskipWork, Recording, RemuxFormat, RemuxWork, WorkState};
use http::StatusCode;
use resource_derive::View;
use serde::Serialize;

use super::view::RecordingView;
use super::{check_may_schedule, conflict, seen};
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::value::{Named, choice};

choice!(
    /// The states of a search for commercials.
    enum ComskipState {
        Queued = "queued",
        Running = "running",
        Completed = "completed",
        NoneFound = "none_found",
        Failed = "failed",
    }
);

impl ComskipState {
    pub(super) fn of(work: &ComskipWork) -> Self {
        match work.state {
            WorkState::Queued => Self::Queued,
            WorkState::Running => Self::Running,
            WorkState::Completed if work.commercials.is_empty() => Self::NoneFound,
            WorkState::Completed => Self::Completed,
            WorkState::Failed => Self::Failed,
        }
    }
}

/// A search for commercials in the file of a recording.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecordingComskip")]
pub(crate) struct ComskipView {
    /// State. While a search is queued or runs, the results are those of an earlier one.
    #[field(example = "completed")]
    status: Named<ComskipState>,
    /// Why the search failed.
    reason: Option<String>,
    /// The commercials, in order.
    #[field(items_max = COMMERCIALS_MAX)]
    commercials: Vec<CommercialView>,
    /// Path of the list of commercials (EDL) below the folder of recordings.
    edl_file: Option<String>,
}

/// A part of a recording with commercials.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecordingCommercial")]
pub(crate) struct CommercialView {
    /// Seconds from the start of the file.
    #[field(example = "620.5")]
    start: f64,
    /// The same of its end.
    #[field(example = "980.25")]
    end: f64,
}

impl ComskipView {
    pub(super) fn of(work: &ComskipWork) -> Self {
        let seconds = |it: u64| it as f64 / 1000.0;
        let commercial = |it: &Commercial| CommercialView { start: seconds(it.start), end: seconds(it.end) };
        Self {
            status: Named(ComskipState::of(work)),
            reason: work.reason.clone(),
            commercials: work.commercials.iter().map(commercial).collect(),
            edl_file: work.edl.clone(),
        }
    }
}

choice!(RemuxFormat { Mkv = "mkv", Mp4 = "mp4" });

choice!(WorkState {
    Queued = "queued",
    Running = "running",
    Completed = "completed",
    Failed = "failed",
});

/// The conversion of the file of a recording to another container.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecordingRemux")]
pub(crate) struct RemuxView {
    /// State. The file is the transport stream until the conversion is completed.
    #[field(example = "completed")]
    status: Named<WorkState>,
    /// The container.
    #[field(example = "mkv")]
    format: Named<RemuxFormat>,
    /// Why the conversion failed; the transport stream is kept then.
    reason: Option<String>,
}

impl RemuxView {
    pub(super) fn of(work: &RemuxWork) -> Self {
        Self { status: Named(work.state), format: Named(work.format), reason: work.reason.clone() }
    }
}

/// Queues a search for commercials.
pub(super) async fn find_commercials(call: Call) -> Result<RecordingView, Refusal> {
    check_may_schedule(&call)?;
    seen(&call)?;
    call.update(|_, recording: &mut Recording| {
        if recording.file.is_none() {
            return Err(conflict(recording));
        }
        if !recording.has_whole_file() {
            return Err(refused("The recording has not ended."));
        }
        match recording.after.queue_comskip(now_ms()) {
            true => Ok(()),
            false => Err(refused("A search for commercials waits or runs already.")),
        }
    })
    .await
}

fn refused(detail: &str) -> Refusal {
    Refusal::status(StatusCode::CONFLICT).with_detail(detail.to_owned())
}
