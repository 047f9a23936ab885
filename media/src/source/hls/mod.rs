//! HTTP Live Streaming: a source that requests playlists and segments, and delivers the packets of the segments.
//!
//! Participants: the *machine* (`crate::hls`), which decides what is requested next; the *driver*, which requests it; the
//! *client*, which has the only connection, and the permit; the *decryptor*; and the *outlet*, through which pieces of
//! segments reach the reader of the source.

mod client;
mod decrypt;
mod driver;
mod outlet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;

use self::client::HlsClient;
pub(super) use self::client::NamedTarget;
use self::driver::{Driver, FirstPlaylist};
use self::outlet::Outlet;
pub(crate) use self::outlet::SegmentStart;
use crate::error::{Cause, UpstreamError};
use crate::meter::InputCounts;
use crate::source::cookies::CookieJar;
use crate::source::http::HttpUpstream;
use crate::source::request::OpenRequest;
use crate::source::upstream::Upstream;

/// Maximum number of bytes that are read ahead of a segment.
const READ_BYTES_MAX: usize = 64 << 10;
/// The usual silence of a source whose segments have an unknown duration.
const SILENCE_UNKNOWN: Duration = Duration::from_secs(2);
/// Longest silence that is usual.
const SILENCE_MAX: Duration = Duration::from_secs(6);

/// An HLS stream that is read.
pub(super) struct HlsSource {
    driver: Pin<Box<dyn Future<Output = (HlsClient, UpstreamError)> + Send>>,
    outlet: Outlet,
    /// The client and the reason, after the driver has ended.
    end: Option<(HlsClient, UpstreamError)>,
    /// The pieces that were read ahead, and the number of their bytes.
    ahead: VecDeque<(Option<SegmentStart>, Bytes)>,
    n_bytes_ahead: usize,
    /// The start of a segment, if the piece that was returned last begins one.
    start: Option<SegmentStart>,
    /// The counts when [`Self::take_counts`] was called last.
    reported: InputCounts,
}

/// A response that is a playlist, whose body was read in part.
pub(super) struct PlaylistResponse {
    pub(super) early: Vec<Bytes>,
    pub(super) requested: NamedTarget,
    pub(super) found: NamedTarget,
    pub(super) cookies: CookieJar,
}

impl HlsSource {
    /// Creates the source of a playlist that arrives over this connection. Nothing happens until it is read.
    pub(super) fn new(
        http: HttpUpstream,
        upstream: &Upstream,
        request: &OpenRequest,
        response: PlaylistResponse,
    ) -> Self {
        let PlaylistResponse { early, requested, found, cookies } = response;
        let outlet = Outlet::default();
        let http = http.with_read_bytes(READ_BYTES_MAX);
        let limits = upstream.settings.variant_limits;
        let secrets_for = requested.target.clone();
        let client = HlsClient::new(http, upstream.clone(), request.clone(), secrets_for, cookies);
        let first = FirstPlaylist { early, requested, found };
        let driver = Driver::new(client, outlet.clone(), limits, request.table_hints(), &first);
        Self {
            driver: Box::pin(driver.run(first)),
            outlet,
            end: None,
            ahead: VecDeque::new(),
            n_bytes_ahead: 0,
            start: None,
            reported: InputCounts::default(),
        }
    }

    /// Reads the next bytes, starting with those that were read ahead. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        let (start, bytes) = match self.pop_ahead() {
            Some(piece) => piece,
            None => self.next_piece().await?,
        };
        self.start = start;
        Ok(bytes)
    }

    /// Reads the next bytes and keeps them for [`Self::read`], with at most `bytes_max` of those before them. Cancel-safe.
    pub(super) async fn read_ahead(&mut self, bytes_max: usize) -> Result<Bytes, UpstreamError> {
        let piece = self.next_piece().await?;
        let bytes = piece.1.clone();
        self.n_bytes_ahead += bytes.len();
        self.ahead.push_back(piece);
        while self.n_bytes_ahead > bytes_max && self.ahead.len() > 1 {
            self.pop_ahead();
        }
        Ok(bytes)
    }

    fn pop_ahead(&mut self) -> Option<(Option<SegmentStart>, Bytes)> {
        let piece = self.ahead.pop_front()?;
        self.n_bytes_ahead -= piece.1.len();
        Some(piece)
    }

    async fn next_piece(&mut self) -> Result<(Option<SegmentStart>, Bytes), UpstreamError> {
        poll_fn(|cx| {
            loop {
                if let Some(piece) = self.outlet.take() {
                    return Poll::Ready(Ok(piece));
                }
                if let Some((_, error)) = &self.end {
                    return Poll::Ready(Err(error.clone()));
                }
                match self.driver.as_mut().poll(cx) {
                    Poll::Ready(end) => self.end = Some(end),
                    Poll::Pending if self.outlet.has_piece() => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// Returns what was counted since the last call.
    pub(super) fn take_counts(&mut self) -> InputCounts {
        let counts = self.outlet.counts();
        counts.since(std::mem::replace(&mut self.reported, counts))
    }

    /// Returns the start of the segment that the bytes that were returned last begin; `None` if they begin none.
    pub(super) fn take_segment_start(&mut self) -> Option<SegmentStart> {
        self.start.take()
    }

    /// Returns whether the stream was a recording, and was read to its end.
    pub(super) fn is_whole(&self) -> bool {
        self.end.as_ref().is_some_and(|it| *it.1.cause() == Cause::Ended)
    }

    /// Returns the silence that is usual after everything has played that was received: until the playlist is requested
    /// again.
    pub(super) fn usual_silence(&self) -> Duration {
        let target = self.outlet.target();
        target.map_or(SILENCE_UNKNOWN, |it| (it / 2 + Duration::from_secs(1)).min(SILENCE_MAX))
    }

    /// Returns the reason of the last failure.
    pub(super) fn last_error(&self) -> Option<UpstreamError> {
        self.outlet.error()
    }

    /// Returns the connection with its permit, and the position of the variant that a program would play, if the source has
    /// ended.
    pub(super) fn into_http(self) -> Option<(HttpUpstream, Option<u32>)> {
        self.end.map(|(client, _)| (client.http, client.variant))
    }
}
