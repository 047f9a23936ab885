//! The file of a recording: ranges, following one that grows, and starting at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::catchup::parse_start;
use domain::ids::RecordingId;
use domain::recording::Recording;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::{HeaderMap, Method, StatusCode};
use media::spawn_blocking;
use server::reply::Refusal;
use tokio::time::sleep;
use warp::reply::Response as Reply;

use crate::context::PlayerContext;
use crate::ranges::RangedFile;
use crate::seat::Held;

/// Bytes that are read at a time.
const BLOCK_BYTES: u64 = 128 * 1024;
/// Wait for more bytes of a file that grows.
const FOLLOW_PERIOD: Duration = Duration::from_millis(300);
/// Size of a packet of a transport stream, in bytes.
pub(super) const PACKET_BYTES: u64 = 188;
/// A start that is a smaller number is one in seconds since the start of the file.
const SECONDS_MAX: f64 = 1e8;

/// Returns the extension of the file of a recording.
pub fn extension_of(recording: &Recording) -> &str {
    let path = recording.file.as_ref().map_or("", |it| it.path.as_str());
    path.rsplit_once('.').map_or("ts", |it| it.1)
}

/// The media types of files of recordings.
pub const MEDIA_TYPES: &[&str] = &["video/mp2t", "video/x-matroska", "video/mp4"];

fn media_type(recording: &Recording) -> &'static str {
    match extension_of(recording) {
        "mkv" => "video/x-matroska",
        "mp4" => "video/mp4",
        _ => "video/mp2t",
    }
}

/// Returns whether packets are still added to the file.
pub fn grows(recording: &Recording) -> bool {
    recording.file.as_ref().is_some_and(|it| it.ended_at.is_none())
}

pub fn no_file() -> Refusal {
    Refusal::not_found("The recording has no file.")
}

pub fn unreadable(error: &io::Error) -> Refusal {
    Refusal::unavailable(format!("The file cannot be read: {error}"))
}

/// The bytes of an answer: the packets with the tables of the programme if the part of the file lacks them, then the file
/// from a position on.
pub(super) struct Source {
    pub(super) tables: Bytes,
    pub(super) from: u64,
    pub(super) file: File,
}

impl Source {
    /// Reads up to `n` bytes at a position. Empty at the end of the file. Blocks.
    fn read(&self, at: u64, n: u64) -> io::Result<Bytes> {
        let n_tables = self.tables.len() as u64;
        if at < n_tables {
            let rest = self.tables.slice(usize::try_from(at).unwrap_or(0)..);
            let length = usize::try_from(n).unwrap_or(usize::MAX).min(rest.len());
            return Ok(rest.slice(..length));
        }
        let mut block = vec![0; usize::try_from(n).unwrap_or(0)];
        let n = self.file.read_at(&mut block, self.from + (at - n_tables))?;
        block.truncate(n);
        Ok(Bytes::from(block))
    }
}

/// A request for the file of a recording, of a player here or of another node.
#[derive(Clone, Copy)]
pub struct FileRequest<'a> {
    pub context: &'a Arc<PlayerContext>,
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
}

/// The file of a recording that is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSelection<'a> {
    /// The time to begin at.
    pub start: Option<&'a str>,
    /// Number of a part, from 1; `None` for all of them.
    pub part: Option<u32>,
    /// The copy without commercials.
    pub is_copy: bool,
}

/// Opens the file of a recording on this node. Returns it with its size in bytes; `None` if it is gone.
pub(super) async fn open(
    context: &PlayerContext,
    recording: &Recording,
) -> Result<Option<(File, u64)>, Refusal> {
    let Some(recorded) = recording.file.clone() else { return Ok(None) };
    let Some(folder) = context.recorder.folder().cloned() else { return Ok(None) };
    let opened = spawn_blocking(move || {
        let Some(file) = folder.open(&recorded.path)? else { return Ok(None) };
        let length = file.metadata()?.len();
        Ok::<_, io::Error>(Some((file, length)))
    });
    let opened = opened.await.map_err(|_| Refusal::fault("open the file of a recording"))?;
    opened.map_err(|error| unreadable(&error))
}

/// Answers with the file of a recording on this node: 200, 206 or 416. The content of one that runs is followed to its end.
pub async fn serve(
    request: &FileRequest<'_>,
    recording: &Recording,
    selection: FileSelection<'_>,
    held: Option<Held>,
) -> Result<Reply, Refusal> {
    let copy = match selection.is_copy {
        true => {
            let none = || Refusal::not_found("The recording has no copy without commercials.");
            Some(recording.without_commercials().ok_or_else(none)?)
        }
        false => None,
    };
    let recording = copy.as_ref().unwrap_or(recording);
    let (file, length) = open(request.context, recording).await?.ok_or_else(no_file)?;
    let begin = match selection.start {
        Some(text) => Some(begin(request.context, recording, text).await?),
        None => None,
    };
    let (tables, from) = begin.unwrap_or_default();
    // Whole packets only: the rest of a packet follows when it is written.
    let grows = grows(recording);
    let length = if grows { length - length % PACKET_BYTES } else { length };
    let length = tables.len() as u64 + length.saturating_sub(from);
    let tag = (!grows).then(|| format!("\"{}-{from}-{length}\"", recording.id));
    let served = RangedFile { media_type: media_type(recording), length, tag: tag.as_deref(), grows };
    let part = match served.part(request.headers) {
        Ok(part) => part,
        Err(unsatisfiable) => return Ok(*unsatisfiable),
    };
    let mut reply = Reply::default();
    if *request.method != Method::HEAD {
        // The whole of a file that grows has no end yet.
        let (range, follows) = match part.clone() {
            Some(part) => (part, None),
            None if grows => (0..u64::MAX, Some((Arc::clone(request.context), recording.id))),
            None => (0..length, None),
        };
        let source = Arc::new(Source { tables, from, file });
        reply = warp::Reply::into_response(warp::reply::stream(blocks(source, range, follows, held)));
    }
    served.describe(&mut reply, part.as_ref());
    Ok(reply)
}

/// Returns the tables and the position from which the file plays at a time: a random-access point.
async fn begin(context: &PlayerContext, recording: &Recording, text: &str) -> Result<(Bytes, u64), Refusal> {
    let wrong = || Refusal::field("start", "Neither seconds since the start nor a time.");
    let started_at = recording.file.as_ref().map_or(0, |it| it.started_at);
    let time = match text.trim().parse::<f64>() {
        Ok(seconds) if (0.0..SECONDS_MAX).contains(&seconds) => (seconds * 1000.0) as u64,
        _ => {
            let instant = parse_start(text).map_err(|_| wrong())?.saturating_mul(1000);
            u64::try_from(instant.saturating_sub(started_at)).unwrap_or(0)
        }
    };
    if media_type(recording) != "video/mp2t" {
        return Err(Refusal::field("start", "Only transport streams are played from a time."));
    }
    let index = context.recorder.index(recording).await.map_err(|error| unreadable(&error))?;
    let index = index.ok_or_else(no_file)?;
    // A file that has just begun has no point yet.
    let Some(point) = index.at(time) else { return Ok((Bytes::new(), 0)) };
    if time > index.duration {
        let detail = format!("the recording has {} s", index.duration / 1000);
        return Err(Refusal::status(StatusCode::RANGE_NOT_SATISFIABLE).with_detail(detail));
    }
    Ok((if point.has_tables { Bytes::new() } else { index.tables.clone() }, point.offset))
}

/// Reads a range block by block. With `follows`, waits at the end of the file until that recording is over.
pub(super) fn blocks(
    source: Arc<Source>,
    range: std::ops::Range<u64>,
    follows: Option<(Arc<PlayerContext>, RecordingId)>,
    held: Option<Held>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    unfold((source, range.start, follows, held), move |(source, at, follows, held)| async move {
        loop {
            let wanted = range.end.saturating_sub(at).min(BLOCK_BYTES);
            if wanted == 0 {
                return None;
            }
            // Read before the file: a recording that ends in between has its last bytes already.
            let grows = follows.as_ref().is_some_and(|(context, id)| still_grows(context, *id));
            let of = Arc::clone(&source);
            let read = spawn_blocking(move || of.read(at, wanted));
            match read.await.unwrap_or_else(|_| Err(io::Error::other("a thread for files failed"))) {
                Ok(block) if block.is_empty() && grows => sleep(FOLLOW_PERIOD).await,
                Ok(block) if block.is_empty() => return None,
                Ok(block) => {
                    let next = at + block.len() as u64;
                    return Some((Ok(block), (source, next, follows, held)));
                }
                Err(error) => return Some((Err(error), (source, range.end, None, held))),
            }
        }
    })
}

fn still_grows(context: &PlayerContext, id: RecordingId) -> bool {
    let recording = context.models.recordings.load().get(id.0).cloned();
    recording.is_some_and(|it| grows(&it)) && !context.is_draining()
}
