//! The work on the file of a recording after its end, in answers.

use domain::comskip::{COMMERCIALS_MAX, Commercial};
use domain::ids::RecordingId;
use domain::recording::{
    ArtworkOrigin, ArtworkWork, ComskipWork, CutWork, RemuxFormat, RemuxWork, WorkState,
};
use resource_derive::View;
use serde::Serialize;

use crate::choice::{Named, choice};
use crate::text_code::TextCodeView;

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
    pub(super) fn new(work: &ComskipWork) -> Self {
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
    /// The code of `reason`, if it has one.
    reason_code: Option<TextCodeView>,
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
    pub(super) fn new(work: &ComskipWork) -> Self {
        let seconds = |it: u64| it as f64 / 1000.0;
        let commercial = |it: &Commercial| CommercialView { start: seconds(it.start), end: seconds(it.end) };
        Self {
            status: Named(ComskipState::new(work)),
            reason: work.reason.clone(),
            reason_code: work.reason.as_deref().and_then(TextCodeView::find),
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
    /// The code of `reason`, if it has one.
    reason_code: Option<TextCodeView>,
}

impl RemuxView {
    pub(super) fn new(work: &RemuxWork) -> Self {
        Self {
            status: Named(work.state),
            format: Named(work.format),
            reason: work.reason.clone(),
            reason_code: work.reason.as_deref().and_then(TextCodeView::find),
        }
    }
}

/// The copy of a recording without its commercials.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecordingCut")]
pub(crate) struct CutView {
    /// State. The recording stays as it is.
    #[field(example = "completed")]
    status: Named<WorkState>,
    /// Why the copy failed.
    reason: Option<String>,
    /// The code of `reason`, if it has one.
    reason_code: Option<TextCodeView>,
    /// Path of the copy below the folder of recordings; `null` until it was checked.
    #[field(example = "TV_Shows/Evening/2031-05-04 20-15 - cut.ts")]
    file_name: Option<String>,
    /// Size of the copy in bytes.
    file_size: Option<u64>,
    /// Path of the copy in this interface.
    #[field(example = "/api/channels/recordings/4/file/?cut=true")]
    file_url: Option<String>,
}

impl CutView {
    pub(super) fn new(work: &CutWork, id: RecordingId) -> Self {
        let file = work.file.as_ref();
        Self {
            status: Named(work.state),
            reason: work.reason.clone(),
            reason_code: work.reason.as_deref().and_then(TextCodeView::find),
            file_name: file.map(|it| it.path.clone()),
            file_size: file.map(|it| it.bytes),
            file_url: file.map(|_| format!("/api/channels/recordings/{id}/file/?cut=true")),
        }
    }
}

choice!(ArtworkOrigin { Programme = "programme", Channel = "channel" });

/// The picture of a recording.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecordingArtwork")]
pub(crate) struct ArtworkView {
    /// State. While a picture is queued, an earlier one stays.
    #[field(example = "completed")]
    status: Named<WorkState>,
    /// Why there is no picture, or no newer one.
    reason: Option<String>,
    /// The code of `reason`, if it has one.
    reason_code: Option<TextCodeView>,
    /// Whether it shows the programme or is the logo of the channel; `null` without a picture.
    origin: Option<Named<ArtworkOrigin>>,
    /// Path of the picture below the folder of recordings.
    #[field(example = "TV_Shows/Evening/2031-05-04 20-15-thumb.jpg")]
    file_name: Option<String>,
    /// Path of the picture in this interface.
    #[field(example = "/api/channels/recordings/4/artwork/")]
    url: Option<String>,
}

impl ArtworkView {
    pub(super) fn new(work: &ArtworkWork, id: RecordingId) -> Self {
        Self {
            status: Named(work.state),
            reason: work.reason.clone(),
            reason_code: work.reason.as_deref().and_then(TextCodeView::find),
            origin: work.path.as_ref().map(|_| Named(work.origin)),
            file_name: work.path.clone(),
            url: artwork_address(work, id),
        }
    }
}

/// Returns the path of the picture in this interface, if there is one.
pub(super) fn artwork_address(work: &ArtworkWork, id: RecordingId) -> Option<String> {
    work.path.as_ref().map(|_| format!("/api/channels/recordings/{id}/artwork/"))
}
