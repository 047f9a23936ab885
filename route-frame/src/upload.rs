//! Uploaded files.
//!
//! A file arrives as a part of a `multipart/form-data` body, whose other parts are the fields of the body as texts, or
//! as a body of its own. It is written to an unnamed file in the data folder, which disappears with the request.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::StatusCode;
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::files::Files;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::input::{FileInput, Input, Inputs, RequestInput};

/// Name of the part with the file. A part with another name is the file as well if it has a file name.
pub const FILE: &str = "file";

/// Maximum number of parts of a body.
pub const PARTS_MAX: usize = 100;
/// Maximum size of all fields beside the file, in bytes.
const FIELDS_BYTES_MAX: u64 = 64 << 10;
/// Size of the boundaries and headers of a body with the maximum number of parts, in bytes.
const FRAME_BYTES_MAX: u64 = 64 << 10;

/// A file that a caller has sent. Clones share the file.
#[derive(Clone, Debug)]
pub struct Upload(Arc<Uploaded>);

#[derive(Debug)]
struct Uploaded {
    file_name: Option<String>,
    n_bytes: u64,
    file: File,
}

impl Upload {
    /// Returns the name that the caller gave the file. It is untrusted: never a path.
    pub fn file_name(&self) -> Option<&str> {
        self.0.file_name.as_deref()
    }

    /// Returns the size in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.0.n_bytes
    }

    /// Returns the file, at its start. Copies of one upload share their position. Blocks.
    pub fn open(&self) -> io::Result<File> {
        let mut file = self.0.file.try_clone()?;
        file.rewind()?;
        Ok(file)
    }

    /// Returns the content. Only for files with a small maximum size. Blocks.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Input for Upload {
    fn inputs() -> Inputs {
        Inputs { file: Some(FileInput::Required), ..Inputs::default() }
    }

    fn read(input: &RequestInput) -> Result<Self, FieldErrors> {
        input.file.clone().ok_or_else(|| FieldErrors::required(FILE))
    }
}

impl Input for Option<Upload> {
    fn inputs() -> Inputs {
        Inputs { file: Some(FileInput::Optional), ..Inputs::default() }
    }

    fn read(input: &RequestInput) -> Result<Self, FieldErrors> {
        Ok(input.file.clone())
    }
}

/// Limits of one upload.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadLimits {
    /// Maximum size of the file, in bytes.
    pub(super) bytes_max: u64,
    /// Maximum time without a byte from the caller.
    pub(super) silence_max: Duration,
}

/// Reads a `multipart/form-data` body into its fields and its file.
pub(super) async fn read_multipart(
    content_type: &str,
    files: &Files,
    limits: UploadLimits,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<(Value, Option<Upload>), Refusal> {
    let boundary = multer::parse_boundary(content_type).map_err(|error| malformed(&error, limits))?;
    let whole_max = limits.bytes_max.saturating_add(FIELDS_BYTES_MAX + FRAME_BYTES_MAX);
    let constraints = Constraints::new().size_limit(
        SizeLimit::new().whole_stream(whole_max).per_field(limits.bytes_max.max(FIELDS_BYTES_MAX)),
    );
    let body = body.map_ok(|mut part| part.copy_to_bytes(part.remaining()));
    let body = std::pin::pin!(pause_after_data(body));
    let mut parts = Multipart::with_constraints(body, boundary, constraints);
    let (mut fields, mut fields_bytes, mut file) = (Map::new(), 0, None);
    for _ in 0..=PARTS_MAX {
        let next = timeout(limits.silence_max, parts.next_field()).await.map_err(|_| silent())?;
        let Some(mut part) = next.map_err(|error| malformed(&error, limits))? else {
            return Ok((Value::Object(fields), file));
        };
        let name = part.name().unwrap_or_default().to_owned();
        if name != FILE && part.file_name().is_none() {
            let value = read_text(&mut part, limits, &mut fields_bytes).await?;
            add(&mut fields, name, value);
        } else if file.is_none() {
            file = Some(read_file(part, files, limits).await?);
        } else {
            return Err(Refusal::fields(FieldErrors::new(FILE, "Send one file only.")));
        }
    }
    Err(Refusal::bad_request(format!("A multipart body has at most {PARTS_MAX} parts.")))
}

/// Returns a stream that, after each run of data, asks to be polled again before it says what comes next.
///
/// multer polls its stream twice while it looks for the first boundary, and looks at the data between the polls only: if
/// the second poll brings the rest of the body together with its end, multer 3.1.0 reports "incomplete multipart stream"
/// although it has everything. Behind this function, a poll that brings the end brings no data. The fault and a correction
/// are known upstream: <https://github.com/rwf2/multer/pull/70>. This function can go with the first version in which
/// `a_multipart_body_is_read_however_it_arrives` passes without it.
fn pause_after_data<T, E>(body: impl Stream<Item = Result<T, E>>) -> impl Stream<Item = Result<T, E>> {
    let mut body = Box::pin(body.fuse());
    let mut has_data = false;
    stream::poll_fn(move |context| match body.as_mut().poll_next(context) {
        Poll::Ready(Some(item)) => {
            has_data = true;
            Poll::Ready(Some(item))
        }
        // The end is kept by `fuse`.
        _ if std::mem::take(&mut has_data) => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        other => other,
    })
}

/// Adds a field. A repeated name becomes a list, as browsers send lists.
fn add(fields: &mut Map<String, Value>, name: String, value: String) {
    let value = Value::from(value);
    match fields.get_mut(&name) {
        None => {
            fields.insert(name, value);
        }
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

async fn read_text(
    part: &mut Field<'_>,
    limits: UploadLimits,
    fields_bytes: &mut u64,
) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    while let Some(chunk) = next_chunk(part, limits).await? {
        *fields_bytes += chunk.len() as u64;
        if *fields_bytes > FIELDS_BYTES_MAX {
            return Err(too_large(FIELDS_BYTES_MAX));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| Refusal::bad_request("A field of the multipart body is not UTF-8."))
}

async fn read_file(mut part: Field<'_>, files: &Files, limits: UploadLimits) -> Result<Upload, Refusal> {
    let file_name = part.file_name().map(str::to_owned);
    let mut spool = Spool::create(files, limits)?;
    while let Some(chunk) = next_chunk(&mut part, limits).await? {
        spool.write(&chunk).await?;
    }
    spool.finish(file_name).await
}

async fn next_chunk(part: &mut Field<'_>, limits: UploadLimits) -> Result<Option<Bytes>, Refusal> {
    let chunk = timeout(limits.silence_max, part.chunk()).await.map_err(|_| silent())?;
    chunk.map_err(|error| malformed(&error, limits))
}

/// Reads a body that is the file itself.
pub(super) async fn read_whole(
    files: &Files,
    limits: UploadLimits,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Option<Upload>, Refusal> {
    let mut spool = Spool::create(files, limits)?;
    let mut body = std::pin::pin!(body);
    while let Some(part) = timeout(limits.silence_max, body.next()).await.map_err(|_| silent())? {
        let mut part = part.map_err(|_| Refusal::bad_request("The body ended early."))?;
        spool.write(&part.copy_to_bytes(part.remaining())).await?;
    }
    if spool.n_bytes == 0 {
        return Ok(None);
    }
    spool.finish(None).await.map(Some)
}

/// The file of an upload while it arrives.
struct Spool {
    file: tokio::fs::File,
    n_bytes: u64,
    bytes_max: u64,
}

impl Spool {
    fn create(files: &Files, limits: UploadLimits) -> Result<Self, Refusal> {
        let file = files.unnamed().map_err(|error| disk_refused(&error))?;
        Ok(Spool { file: tokio::fs::File::from_std(file), n_bytes: 0, bytes_max: limits.bytes_max })
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.n_bytes += bytes.len() as u64;
        if self.n_bytes > self.bytes_max {
            return Err(too_large(self.bytes_max));
        }
        self.file.write_all(bytes).await.map_err(|error| disk_refused(&error))
    }

    async fn finish(mut self, file_name: Option<String>) -> Result<Upload, Refusal> {
        self.file.flush().await.map_err(|error| disk_refused(&error))?;
        let file = self.file.into_std().await;
        Ok(Upload(Arc::new(Uploaded { file_name, n_bytes: self.n_bytes, file })))
    }
}

fn silent() -> Refusal {
    Refusal::status(StatusCode::REQUEST_TIMEOUT)
}

fn too_large(bytes_max: u64) -> Refusal {
    Refusal::too_large(usize::try_from(bytes_max).unwrap_or(usize::MAX))
}

/// 503: the data folder cannot hold the file.
fn disk_refused(error: &io::Error) -> Refusal {
    tracing::warn!(%error, "cannot store an uploaded file in the data folder");
    Refusal::unavailable("The file cannot be stored: the data folder refuses it.")
}

fn malformed(error: &multer::Error, limits: UploadLimits) -> Refusal {
    match error {
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => {
            too_large(limits.bytes_max)
        }
        error => Refusal::bad_request(format!("The multipart body cannot be read: {error}.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BYTES_MAX: u64 = 1000;
    const MULTIPART_X: &str = "multipart/form-data; boundary=X";

    /// A body that arrives in these pieces. Before each piece and before the end, that many polls find nothing.
    fn arriving(
        pieces: Vec<Bytes>,
        n_pending: Vec<usize>,
    ) -> impl Stream<Item = Result<Bytes, warp::Error>> + Send {
        let mut pieces = pieces.into_iter();
        let mut n_pending = n_pending.into_iter();
        let mut left = n_pending.next().unwrap_or(0);
        stream::poll_fn(move |context| {
            if left > 0 {
                left -= 1;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            left = n_pending.next().unwrap_or(0);
            Poll::Ready(pieces.next().map(Ok))
        })
    }

    /// Returns all lists of this length of numbers below `end`.
    fn lists(length: usize, end: usize) -> Vec<Vec<usize>> {
        let digits = |n: usize| (0..length).map(|at| n / end.pow(at as u32) % end).collect();
        (0..end.pow(length as u32)).map(digits).collect()
    }

    // multer gave up on one upload in 300, when the body followed the head in a packet of its own: its end came between two
    // polls that multer does in one step.
    #[tokio::test(start_paused = true)]
    async fn a_multipart_body_is_read_however_it_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path());
        let limits = UploadLimits { bytes_max: BYTES_MAX, silence_max: Duration::from_secs(1) };
        let disposition = "Content-Disposition: form-data; name=";
        let body = format!(
            "--X\r\n{disposition}\"a\"\r\n\r\n1\r\n-\r\n--X\r\n{disposition}\"b\"\r\n\r\n\r\n--X--\r\n"
        );
        let body = Bytes::from(body);
        let read = async |cuts: &[usize], n_pending: &Vec<usize>, body: &Bytes| {
            let ends = cuts.iter().copied().chain([body.len()]);
            let starts = std::iter::once(0).chain(cuts.iter().copied());
            let pieces = starts.zip(ends).map(|(start, end)| body.slice(start..end)).collect();
            let arriving = arriving(pieces, n_pending.clone());
            read_multipart(MULTIPART_X, &files, limits, arriving).await.map(|it| it.0)
        };
        let expected = json!({ "a": "1\r\n-", "b": "" });
        let check = async |cuts: &[usize], n_pending: &Vec<usize>| {
            let fields = read(cuts, n_pending, &body).await;
            assert!(
                fields.is_ok_and(|it| it == expected),
                "cut at {cuts:?}, polls that find nothing: {n_pending:?}"
            );
        };
        for n_pending in lists(2, 4) {
            check(&[], &n_pending).await;
        }
        for cut in 0..=body.len() {
            for n_pending in lists(3, 3) {
                check(&[cut], &n_pending).await;
            }
            for second in ((cut + 1)..body.len()).step_by(5) {
                for n_pending in [vec![0, 1, 1, 1], vec![1, 0, 0, 0], vec![1, 1, 0, 0]] {
                    check(&[cut, second], &n_pending).await;
                }
            }
        }
        let every: Vec<usize> = (1..body.len()).collect();
        for n in 0..3 {
            check(&every, &vec![n; body.len() + 1]).await;
        }
        // A body that is cut off stays an error.
        for end in 0..(body.len() - "\r\n".len()) {
            for n_pending in lists(3, 3) {
                let fields = read(&[end / 2], &n_pending, &body.slice(..end)).await;
                assert!(fields.is_err(), "cut off at {end}, polls that find nothing: {n_pending:?}");
            }
        }
    }
}
