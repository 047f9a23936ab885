//! The ring of another process as a source: whole chunks, with their numbers and heads.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::Empty;
use tokio::time::{Instant, timeout};

use super::http::HttpUpstream;
use crate::chunk::Chunk;
use crate::closer::Closer;
use crate::dial::BoxedSocket;
use crate::error::{Cause, UpstreamError};
use crate::node::{
    FrameDecoder, FrameError, NodeFrame, RING_AFTER, RING_CONTENT_TYPE, RING_PATH, RingPosition, is_target,
};
use crate::permit::Permit;

/// The origin sends something at least every second. After this long without anything, it counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Chunks of filler that may come before the first other one.
const FILLER_MAX: usize = 64;

/// The ring of another process that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRequest {
    /// The target: letters, digits, `-`, `_`, `.` and `:`.
    pub target: String,
    /// The last chunk that is known, after which the origin should begin.
    pub after: Option<RingPosition>,
    /// The origin, for display.
    pub place: String,
}

/// A chunk of the origin.
#[derive(Clone, Debug)]
pub(crate) struct NodeChunk {
    /// The life of the ring that it is from.
    pub(crate) epoch: u64,
    /// The life of the ring that this one continues with the same numbers, as the origin has confirmed.
    pub(crate) continues: Option<u64>,
    pub(crate) chunk: Chunk,
    /// Bytes that are missing before it.
    pub(crate) n_lost: u64,
}

/// A connection to the origin.
pub(super) struct NodeSource {
    http: HttpUpstream,
    decoder: FrameDecoder,
    /// See [`NodeChunk::continues`].
    continues: Option<u64>,
    /// The chunks that were read while opening.
    early: VecDeque<NodeChunk>,
    /// Bytes that are missing before the next chunk.
    n_lost: u64,
    /// The chunk that was returned last.
    last: Option<NodeChunk>,
}

impl NodeSource {
    /// Sends the request over a connected stream, and waits for the head of the response.
    pub(super) async fn attach(
        stream: BoxedSocket,
        request: &NodeRequest,
        permit: Box<dyn Permit>,
        closer: Closer,
    ) -> Result<Self, UpstreamError> {
        let outgoing = outgoing(request)?;
        let mut http = HttpUpstream::over(stream, permit, closer);
        let response = http.send(outgoing).await?;
        if response.status() != StatusCode::OK {
            return Err(Cause::Status(response.status().as_u16()).into());
        }
        if response.headers().get(CONTENT_TYPE).is_none_or(|it| it != RING_CONTENT_TYPE) {
            return Err(Cause::Protocol("the origin does not send a ring".into()).into());
        }
        let is_confirmed = |after: &RingPosition| {
            response
                .headers()
                .get(RING_AFTER)
                .is_some_and(|it| *it.as_bytes() == *after.to_string().as_bytes())
        };
        let continues = request.after.filter(is_confirmed).map(|it| it.epoch);
        let decoder = FrameDecoder::new();
        http.delivers();
        Ok(Self { http, decoder, continues, early: VecDeque::new(), n_lost: 0, last: None })
    }

    /// Waits for the first chunk that is not filler. Cancel-safe; nothing may have been read before.
    pub(super) async fn wait_for_content(&mut self) -> Result<(), UpstreamError> {
        while self.early.back().is_none_or(|it| it.chunk.head().filler) {
            let chunk = self.next().await?;
            self.early.push_back(chunk);
            if self.early.len() > FILLER_MAX {
                self.early.pop_front();
            }
        }
        Ok(())
    }

    /// Returns the packets of the next chunk. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        let chunk = match self.early.pop_front() {
            Some(chunk) => chunk,
            None => self.next().await?,
        };
        let bytes = chunk.chunk.bytes();
        self.last = Some(chunk);
        Ok(bytes)
    }

    /// Returns the chunk whose packets were returned last, once.
    pub(super) fn take_chunk(&mut self) -> Option<NodeChunk> {
        self.last.take()
    }

    async fn next(&mut self) -> Result<NodeChunk, UpstreamError> {
        loop {
            match self.decoder.next(Instant::now()).map_err(|error| invalid(&error))? {
                Some(NodeFrame::Chunk(chunk)) => {
                    let epoch = self.decoder.epoch().unwrap_or_default();
                    let n_lost = std::mem::take(&mut self.n_lost);
                    return Ok(NodeChunk { epoch, continues: self.continues, chunk, n_lost });
                }
                Some(NodeFrame::Skip { n_bytes }) => self.n_lost = self.n_lost.saturating_add(n_bytes),
                Some(NodeFrame::Alive) => {}
                Some(NodeFrame::End(_)) => return Err(Cause::Ended.into()),
                None => {
                    let read = timeout(SILENCE_MAX, self.http.read()).await;
                    let bytes = read.map_err(|_| UpstreamError::new(Cause::Stall))??;
                    let broken = || Cause::Reset("the origin closed the connection".into());
                    self.decoder.push(&bytes.ok_or_else(broken)?);
                }
            }
        }
    }
}

fn outgoing(request: &NodeRequest) -> Result<Request<Empty<Bytes>>, UpstreamError> {
    if !is_target(&request.target) {
        return Err(Cause::Address("the target has characters that are not allowed".into()).into());
    }
    let path = match request.after {
        None => format!("{RING_PATH}{}", request.target),
        Some(after) => format!("{RING_PATH}{}?after={after}", request.target),
    };
    let built = Request::get(path).header(HOST, "origin").body(Empty::new());
    built.map_err(|error| Cause::Address(error.to_string()).into())
}

fn invalid(error: &FrameError) -> UpstreamError {
    Cause::Protocol(format!("the origin: {error}")).into()
}
