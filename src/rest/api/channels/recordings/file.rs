//! The file of a recording: ranges, and following one that grows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::byte_range::{ByteRanges, SelectedBytes, content_range, if_range_holds, unsatisfied_range};
use domain::ids::RecordingId;
use domain::recording::Recording;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    IF_RANGE, RANGE,
};
use http::{Method, StatusCode};
use tokio::time::sleep;
use warp::reply::Response as Reply;

use crate::app::App;
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::{Answer, AnswerShape};

/// Bytes that are read at a time.
const BLOCK_BYTES: u64 = 128 * 1024;
/// Wait for more bytes of a file that grows.
const FOLLOW_PERIOD: Duration = Duration::from_millis(300);

/// A file or a part of it: 200, 206 or 416.
pub(crate) struct FileAnswer(Reply);

impl Answer for FileAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(&["video/mp2t", "video/x-matroska", "video/mp4"]);

    fn into_reply(self) -> Reply {
        self.0
    }
}

pub(super) async fn get(call: Call) -> Result<FileAnswer, Refusal> {
    let recording = playable(&call)?;
    let Some(recorded) = recording.file.clone() else { return Err(no_file()) };
    let media_type = match recorded.path.rsplit_once('.').map(|it| it.1) {
        Some("mkv") => "video/x-matroska",
        Some("mp4") => "video/mp4",
        _ => "video/mp2t",
    };
    let Some(folder) = call.app.recorder.folder().cloned() else { return Err(no_file()) };
    let opened = tokio::task::spawn_blocking(move || {
        let Some(file) = folder.open(&recorded.path)? else { return Ok(None) };
        let length = file.metadata()?.len();
        Ok::<_, io::Error>(Some((file, length)))
    });
    let opened = opened.await.map_err(|_| Refusal::fault("open the file of a recording"))?;
    let opened = opened.map_err(|error| Refusal::unavailable(format!("The file cannot be read: {error}")))?;
    let (file, length) = opened.ok_or_else(no_file)?;
    // Whole packets only: the rest of a packet follows when it is written.
    let grows = recording.file.as_ref().is_some_and(|it| it.ended_at.is_none());
    let length = if grows { length - length % 188 } else { length };
    let tag = (!grows).then(|| format!("\"{}-{length}\"", recording.id));
    let text = |name: HeaderName| call.headers.get(name).and_then(|it| it.to_str().ok());
    let ranges = text(RANGE).and_then(ByteRanges::parse);
    let condition = text(IF_RANGE);
    let is_same = condition.is_none_or(|it| tag.as_deref().is_some_and(|tag| if_range_holds(it, tag)));
    let selected = ranges.filter(|_| is_same).map_or(SelectedBytes::Whole, |it| it.select(length));
    let mut answer = FileAnswer(Reply::default());
    let part = match selected {
        SelectedBytes::Unsatisfiable => {
            let detail = format!("the file has {length} bytes");
            let refusal = Refusal::status(StatusCode::RANGE_NOT_SATISFIABLE).with_detail(detail);
            let mut answer = FileAnswer(refusal.into_response());
            answer.set(CONTENT_RANGE, &unsatisfied_range(length));
            return Ok(answer);
        }
        SelectedBytes::Part(part) => {
            answer.set(CONTENT_RANGE, &content_range(&part, length));
            *answer.0.status_mut() = StatusCode::PARTIAL_CONTENT;
            Some(part)
        }
        SelectedBytes::Whole => None,
    };
    // The whole of a file that grows has no length yet.
    let known = part.clone().or_else(|| (!grows).then_some(0..length));
    if call.method != Method::HEAD {
        let (range, follows) = match known.clone() {
            Some(range) => (range, None),
            None => (0..u64::MAX, Some((Arc::clone(&call.app), recording.id))),
        };
        let status = answer.0.status();
        let headers = std::mem::take(answer.0.headers_mut());
        answer.0 = warp::Reply::into_response(warp::reply::stream(blocks(Arc::new(file), range, follows)));
        *answer.0.status_mut() = status;
        answer.0.headers_mut().extend(headers);
    }
    if let Some(range) = known {
        answer.set(CONTENT_LENGTH, &(range.end - range.start).to_string());
    }
    if let Some(tag) = tag {
        answer.set(ETAG, &tag);
    }
    answer.set(CONTENT_TYPE, media_type);
    answer.set(ACCEPT_RANGES, "bytes");
    answer.set(CACHE_CONTROL, "private, no-cache");
    Ok(answer)
}

impl FileAnswer {
    fn set(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers_mut().insert(name, value);
        }
    }
}

/// Returns the recording of the path, if the caller may play it: admins, its owner, and users who may watch its channel.
fn playable(call: &Call) -> Result<Arc<Recording>, Refusal> {
    let recording = call.app.models.recordings.load().get(call.id()?).cloned();
    let recording = recording.ok_or_else(Refusal::unknown::<Recording>)?;
    let channel = call.app.models.channels.load().get(recording.channel.0).cloned();
    let is_permitted = call.is_admin()
        || recording.owner == Some(call.user()?.id)
        || channel.is_some_and(|it| call.can_see(&it));
    if is_permitted { Ok(recording) } else { Err(Refusal::unknown::<Recording>()) }
}

fn no_file() -> Refusal {
    Refusal::not_found("The recording has no file.")
}

/// Reads a range block by block. With `follows`, waits at the end of the file until that recording is over.
fn blocks(
    file: Arc<File>,
    range: std::ops::Range<u64>,
    follows: Option<(Arc<App>, RecordingId)>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    unfold((file, range.start, follows), move |(file, at, follows)| async move {
        loop {
            let wanted = range.end.saturating_sub(at).min(BLOCK_BYTES);
            if wanted == 0 {
                return None;
            }
            // Read before the file: a recording that ends in between has its last bytes already.
            let grows = follows.as_ref().is_some_and(|(app, id)| still_grows(app, *id));
            let of = Arc::clone(&file);
            let read = tokio::task::spawn_blocking(move || {
                let mut block = vec![0; usize::try_from(wanted).unwrap_or(0)];
                let n = of.read_at(&mut block, at)?;
                block.truncate(n);
                Ok(Bytes::from(block))
            });
            match read.await.unwrap_or_else(|_| Err(io::Error::other("a thread for files failed"))) {
                Ok(block) if block.is_empty() && grows => sleep(FOLLOW_PERIOD).await,
                Ok(block) if block.is_empty() => return None,
                Ok(block) => {
                    let next = at + block.len() as u64;
                    return Some((Ok(block), (file, next, follows)));
                }
                Err(error) => return Some((Err(error), (file, range.end, None))),
            }
        }
    })
}

fn still_grows(app: &App, id: RecordingId) -> bool {
    let recording = app.models.recordings.load().get(id.0).cloned();
    let grows = recording.is_some_and(|it| it.file.as_ref().is_some_and(|it| it.ended_at.is_none()));
    grows && !app.is_draining.load(std::sync::atomic::Ordering::Relaxed)
}
