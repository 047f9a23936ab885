//! The file of a recording, and its playlist for players of HLS.

use std::sync::Arc;

use actors::VisibleRecordings;
use domain::recording::Recording;
use http::StatusCode;
use player::context::PlayerCall;
use player::recordings::file::{FileSelection, MEDIA_TYPES};
use player::recordings::hls::{HlsPlaylist, playlist};
use player::recordings::parts::answer;
use resource_derive::Query;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Content};
use server::reply::Refusal;
use warp::reply::Response as Reply;

use crate::context::RestCall;

/// Maximum length of a parameter, in characters.
const PARAMETER_CHARS_MAX: usize = 100;

/// A file or a part of it: 200, 206 or 416.
pub(crate) struct FileAnswer(Reply);

impl Answer for FileAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(MEDIA_TYPES);

    fn into_reply(self) -> Reply {
        self.0
    }
}

/// Selects a part of the file by time.
#[derive(Debug, Default, Query)]
pub(super) struct FileQuery {
    /// Seconds since the start of the file, or a time such as `2026-01-31T18:30:00Z`. The answer begins at the last packet
    /// before it at which playing can begin; ranges count from there.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "90")]
    start: Option<String>,
    /// Selects the copy without commercials, which only plays from its begin.
    #[field(example = "true")]
    cut: Option<bool>,
    /// Number of a part, if several nodes have made the recording, from 1. Without it, all parts follow one another.
    #[field(example = "1")]
    part: Option<u32>,
}

/// The token of the address, which the addresses in the playlist have too.
#[derive(Debug, Default, Query)]
pub(super) struct HlsQuery {
    /// Access token.
    token: Option<String>,
}

pub(super) async fn get(call: Call, query: FileQuery) -> Result<FileAnswer, Refusal> {
    let (recording, is_copy) = (playable(&call)?, query.cut == Some(true));
    if is_copy && query.start.is_some() {
        return Err(Refusal::field("start", "The copy without commercials plays from its begin."));
    }
    let selection = FileSelection { start: query.start.as_deref(), part: query.part, is_copy };
    answer(&call, &recording, selection, None).await.map(FileAnswer)
}

pub(super) async fn hls(call: Call, query: HlsQuery) -> Result<Content<HlsPlaylist>, Refusal> {
    let recording = playable(&call)?;
    let token = query.token.map(|it| {
        let pair = url::form_urlencoded::Serializer::new(String::new()).append_pair("token", &it).finish();
        format!("?{pair}")
    });
    // Players refuse segments whose names have another extension.
    let file = format!("recording.ts{}", token.unwrap_or_default());
    Ok(Content::new(playlist(call.player(), &recording, &file).await?)
        .with_header(http::header::CACHE_CONTROL, "no-cache"))
}

/// Returns the recording of the path, if the caller may play it.
pub(super) fn playable(call: &Call) -> Result<Arc<Recording>, Refusal> {
    let recording = call.rest().models.recordings.load().get(call.id()?).cloned();
    let visible = VisibleRecordings::new(&call.rest().models, Some(&**call.identity()?));
    recording.filter(|it| visible.shows(it)).ok_or_else(Refusal::unknown::<Recording>)
}
