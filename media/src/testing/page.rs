//! A complete response of a provider that keeps its connection open for the next request, such as a playlist or a segment.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::provider::SeenRequest;

/// A response with a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestPage {
    /// The status.
    pub status: u16,
    /// Further header lines, each with its CR LF.
    pub headers: String,
    /// The body.
    pub body: Bytes,
    /// Time before the response.
    pub delay: Duration,
    /// Whether the provider heeds ranges.
    pub has_ranges: bool,
    /// The connection is closed after this many bytes of a body.
    pub cut_after: Option<usize>,
    /// Whether the connection is closed after the response, as its head says.
    pub is_closing: bool,
    /// Whether the connection is closed after the response, although its head does not say so.
    pub closes_unexpectedly: bool,
    /// A cookie without which the response is 403.
    pub cookie: Option<String>,
}

impl TestPage {
    /// A response of a provider without faults.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            headers: String::new(),
            body: body.into(),
            delay: Duration::ZERO,
            has_ranges: true,
            cut_after: None,
            is_closing: false,
            closes_unexpectedly: false,
            cookie: None,
        }
    }

    /// Sends the response. Returns whether the connection stays open.
    pub(super) async fn send(
        &self,
        request: &SeenRequest,
        out: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<bool> {
        sleep(self.delay).await;
        let has_cookie = |it: &String| request.header("cookie").is_some_and(|sent| sent.contains(it));
        if !self.cookie.as_ref().is_none_or(has_cookie) {
            out.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await?;
            return Ok(true);
        }
        let length = self.body.len();
        let range = request.header("range").filter(|_| self.has_ranges);
        let range = range.and_then(|it| it.strip_prefix("bytes=")?.split_once('-'));
        let (status, part, declared) = match range {
            None => (self.status, 0..length, String::new()),
            Some((first, last)) => {
                let start = first.parse::<usize>().unwrap_or(0).min(length);
                let end = last.parse::<usize>().map_or(length, |it| (it + 1).min(length)).max(start);
                let last = end.saturating_sub(1);
                (206, start..end, format!("Content-Range: bytes {start}-{last}/{length}\r\n"))
            }
        };
        let closing = if self.is_closing { "Connection: close\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n{declared}{closing}{}\r\n",
            part.len(),
            self.headers
        );
        out.write_all(head.as_bytes()).await?;
        let sent = part.start..part.end.min(part.start.saturating_add(self.cut_after.unwrap_or(length)));
        out.write_all(&self.body[sent]).await?;
        Ok(!self.is_closing && !self.closes_unexpectedly && self.cut_after.is_none())
    }
}
