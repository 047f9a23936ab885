//! The body of a response: the frames of a ring.

use std::any::Any;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep};

use super::FrameEncoder;
use super::server::NodeMeter;
use crate::ring::{ChunkReader, ReadChunk};

/// Time without a chunk after which an `alive` frame is sent.
const ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// Sends the chunks of a ring, as far as the connection takes them.
pub(super) struct RingBody {
    reader: ChunkReader,
    encoder: FrameEncoder,
    /// The bytes that are sent next.
    ready: VecDeque<Bytes>,
    /// The number that the next chunk has if none is missing.
    expected: Option<u64>,
    alive: Pin<Box<Sleep>>,
    has_ended: bool,
    meter: Arc<NodeMeter>,
    /// Increases whenever the connection takes something.
    progress: Arc<AtomicU64>,
    /// Dropped with the response, which informs its creator.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl RingBody {
    pub(super) fn new(
        reader: ChunkReader,
        epoch: u64,
        meter: Arc<NodeMeter>,
        progress: Arc<AtomicU64>,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        Self {
            reader,
            encoder: FrameEncoder::new(),
            ready: VecDeque::from([FrameEncoder::prologue(epoch)]),
            expected: None,
            alive: Box::pin(sleep(ALIVE_INTERVAL)),
            has_ended: false,
            meter,
            progress,
            _guard: guard,
        }
    }

    fn chunk(&mut self, ReadChunk { chunk, n_lost }: ReadChunk) {
        let head = chunk.head();
        if self.expected.is_some_and(|it| it != head.sequence) {
            self.ready.push_back(FrameEncoder::skip(n_lost));
            if n_lost > 0 {
                self.meter.skipped(n_lost);
                tracing::debug!(n_lost, "a reader of the ring was too slow");
            }
        }
        self.expected = Some(head.sequence + 1);
        let age = Instant::now().saturating_duration_since(head.arrived);
        self.ready.push_back(self.encoder.chunk(head, chunk.len(), age));
        self.ready.push_back(chunk.bytes());
        self.meter.sent(chunk.len() as u64);
    }
}

impl Body for RingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        this.progress.fetch_add(1, Ordering::Relaxed);
        loop {
            if let Some(bytes) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.has_ended {
                return Poll::Ready(None);
            }
            match this.reader.poll_next(cx) {
                Poll::Ready(Ok(read)) => this.chunk(read),
                Poll::Ready(Err(end)) => {
                    this.ready.push_back(FrameEncoder::end(&end));
                    this.has_ended = true;
                    continue;
                }
                Poll::Pending => {
                    ready!(this.alive.as_mut().poll(cx));
                    this.ready.push_back(FrameEncoder::alive());
                }
            }
            this.alive.as_mut().reset(Instant::now() + ALIVE_INTERVAL);
        }
    }
}
