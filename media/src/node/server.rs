//! Answers requests for rings over any stream.

use std::any::Any;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

use super::body::RingBody;
use super::{RING_AFTER, RING_CONTENT_TYPE, RING_PATH, RingPosition, TARGET_BYTES_MAX};
use crate::ring::Ring;

/// Time in which the head of a request has to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that takes nothing for this long is closed: frames are due at least every second.
const STUCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Finds the rings that other processes may read.
pub trait RingDirectory: Send + Sync + 'static {
    /// Returns the ring of a target, if it plays here.
    fn find(&self, target: &str) -> Option<FoundRing>;

    /// Returns the counters of all connections.
    fn meter(&self) -> Arc<NodeMeter>;
}

/// A ring that plays here.
pub struct FoundRing {
    /// The ring.
    pub ring: Ring,
    /// The number of its life.
    pub epoch: u64,
    /// The last chunk of an earlier life that the ring continues, with the same numbers.
    pub continues: Option<RingPosition>,
    /// Dropped when the response ends.
    pub guard: Option<Box<dyn Any + Send + Sync>>,
}

/// The counters of connections that read rings.
#[derive(Debug, Default)]
pub struct NodeMeter {
    bytes: AtomicU64,
    skips: AtomicU64,
    skipped_bytes: AtomicU64,
}

impl NodeMeter {
    /// Returns the bytes of chunks that were sent.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns how often a reader was too slow.
    pub fn skips(&self) -> u64 {
        self.skips.load(Ordering::Relaxed)
    }

    /// Returns the bytes that readers lost by that.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn sent(&self, n_bytes: u64) {
        self.bytes.fetch_add(n_bytes, Ordering::Relaxed);
    }

    pub(super) fn skipped(&self, n_bytes: u64) {
        self.skips.fetch_add(1, Ordering::Relaxed);
        self.skipped_bytes.fetch_add(n_bytes, Ordering::Relaxed);
    }
}

/// The body of an answer.
pub type RingReply = UnsyncBoxBody<Bytes, Infallible>;

/// Notices that a connection takes nothing of its answer. One for each connection.
#[derive(Clone, Debug, Default)]
pub struct RingProgress(Arc<AtomicU64>);

impl RingProgress {
    /// Ends when an answer has begun and nothing more was taken of it for too long. The connection has to be closed then.
    pub async fn stuck(&self) {
        let mut before = 0;
        loop {
            sleep(STUCK_TIMEOUT).await;
            let now = self.0.load(Ordering::Relaxed);
            if now != 0 && now == before {
                return;
            }
            before = now;
        }
    }
}

/// Serves one connection until it ends. The stream is trusted: its client may read every ring of the
/// directory.
///
/// # Errors
/// The connection broke, or takes nothing.
pub async fn serve_rings<S>(stream: S, directory: Arc<dyn RingDirectory>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let progress = RingProgress::default();
    let of_body = progress.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answer_ring(request.method(), request.uri(), &*directory, &of_body);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        // One response for each connection: the next request would wait for the end of a channel.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = connection => served.map_err(io::Error::other),
        () = progress.stuck() => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Answers one request, for servers that answer others too: no other request may follow on the same connection, and the
/// connection has to be closed when [`RingProgress::stuck`] ends. The client is trusted as in [`serve_rings`].
pub fn answer_ring(
    method: &Method,
    uri: &Uri,
    directory: &dyn RingDirectory,
    progress: &RingProgress,
) -> Response<RingReply> {
    let Some((target, after)) = parse(method, uri) else {
        return refuse(StatusCode::BAD_REQUEST);
    };
    let Some(FoundRing { ring, epoch, continues, guard }) = directory.find(target) else {
        return refuse(StatusCode::NOT_FOUND);
    };
    // Other numbers of another life say nothing about this one.
    let is_continued = |it: &RingPosition| {
        continues.is_some_and(|last| it.epoch == last.epoch && it.sequence <= last.sequence)
    };
    let after = after.filter(|it| it.epoch == epoch || is_continued(it));
    let Ok(reader) = ring.chunks_after(after.map(|it| it.sequence)) else {
        return refuse(StatusCode::CONFLICT);
    };
    let body = RingBody::new(reader, epoch, directory.meter(), Arc::clone(&progress.0), guard);
    let mut response = Response::new(body.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(RING_CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
    if let Some(value) = after.and_then(|it| http::HeaderValue::from_str(&it.to_string()).ok()) {
        headers.insert(RING_AFTER, value);
    }
    response
}

fn refuse(status: StatusCode) -> Response<RingReply> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Returns the target and the position that a request names.
fn parse<'a>(method: &Method, uri: &'a Uri) -> Option<(&'a str, Option<RingPosition>)> {
    if method != Method::GET {
        return None;
    }
    let target = uri.path().strip_prefix(RING_PATH).filter(|it| is_target(it))?;
    let after = match uri.query() {
        None => None,
        Some(query) => Some(query.strip_prefix("after=")?.parse().ok()?),
    };
    Some((target, after))
}

/// Returns whether a text can be a target in an address.
pub(crate) fn is_target(text: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b':');
    (1..=TARGET_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}
