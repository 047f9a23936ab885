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

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;

use self::client::HlsClient;
pub(super) use self::client::NamedTarget;
use self::driver::{Driver, FirstPlaylist};
use self::outlet::Outlet;
use crate::error::{Cause, UpstreamError};
use crate::hls::StreamBreak;
use crate::meter::InputCounts;
use crate::source::cookies::CookieJar;
use crate::source::http::HttpUpstream;
use crate::source::{OpenRequest, Upstream};

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
    /// The relation of the piece that was returned last to the data before it.
    breaks: Option<StreamBreak>,
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
        let driver = Driver::new(client, outlet.clone(), limits, &first);
        Self {
            driver: Box::pin(driver.run(first)),
            outlet,
            end: None,
            breaks: None,
            reported: InputCounts::default(),
        }
    }

    /// Reads the next bytes. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        poll_fn(|cx| {
            loop {
                if let Some((breaks, bytes)) = self.outlet.take() {
                    self.breaks = breaks;
                    return Poll::Ready(Ok(bytes));
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

    /// Returns how the bytes that were returned last relate to those before them; `None` if they continue them.
    pub(super) fn take_break(&mut self) -> Option<StreamBreak> {
        self.breaks.take()
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

    /// Returns the connection with its permit, if the source has ended.
    pub(super) fn into_http(self) -> Option<HttpUpstream> {
        self.end.map(|it| it.0.http)
    }
}
