//! A file of a provider, which it sends from any byte on.

use std::ops::Range;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::provider::SeenRequest;

/// Bytes that are sent at once.
const PIECE_BYTES: u64 = 16 << 10;

/// A file and the way in which a provider sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFile {
    /// Length of the file.
    pub length: u64,
    /// Determines the content, together with the position.
    pub seed: u8,
    /// The entity tag with its quotes, if the provider sends one.
    pub tag: Option<String>,
    /// Whether the provider heeds ranges. Otherwise it always sends the whole file.
    pub has_ranges: bool,
    /// The connection is closed after this many bytes of a body.
    pub cut_after: Option<u64>,
    /// Time before the response.
    pub delay: Duration,
}

impl TestFile {
    /// A file of a provider without faults.
    pub fn new(length: u64, seed: u8) -> Self {
        let tag = Some(format!("\"{seed}\""));
        Self { length, seed, tag, has_ranges: true, cut_after: None, delay: Duration::ZERO }
    }

    /// Returns the content of a part.
    pub fn bytes(&self, part: Range<u64>) -> Vec<u8> {
        part.map(|it| (it ^ (it >> 8) ^ (it >> 16).wrapping_mul(31)) as u8 ^ self.seed).collect()
    }

    pub(super) async fn send(
        &self,
        request: &SeenRequest,
        out: &mut (impl AsyncWrite + Unpin),
    ) -> std::io::Result<()> {
        sleep(self.delay).await;
        let range = request.header("range").filter(|_| self.has_ranges);
        let range = range.and_then(|it| it.strip_prefix("bytes=")?.split_once('-'));
        let (status, part) = match range {
            None => ("200 OK", 0..self.length),
            Some((first, last)) => {
                let start: u64 = first.parse().unwrap_or(0);
                let end = last.parse::<u64>().map_or(self.length, |it| (it + 1).min(self.length));
                if start >= end {
                    let head = format!(
                        "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n",
                        self.length
                    );
                    return out.write_all(head.as_bytes()).await;
                }
                ("206 Partial Content", start..end)
            }
        };
        let n_bytes = part.end - part.start;
        let mut head =
            format!("HTTP/1.1 {status}\r\nContent-Type: video/mp4\r\nContent-Length: {n_bytes}\r\n");
        if let Some(tag) = &self.tag {
            head.push_str(&format!("ETag: {tag}\r\n"));
        }
        if range.is_some() {
            let last = part.end - 1;
            head.push_str(&format!("Content-Range: bytes {}-{last}/{}\r\n", part.start, self.length));
        }
        out.write_all(format!("{head}\r\n").as_bytes()).await?;
        let end = self.cut_after.map_or(part.end, |it| part.end.min(part.start + it));
        let mut at = part.start;
        while at < end {
            let next = end.min(at + PIECE_BYTES);
            out.write_all(&self.bytes(at..next)).await?;
            at = next;
        }
        Ok(())
    }
}
