//! Answers with segments. They never change, so that browsers and caches keep them.

use std::io;
use std::ops::Range;

use actors::SessionUse;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::Method;
use http::header::{CACHE_CONTROL, ETAG, HeaderValue};
use media::{SegmentBody, SegmentName};
use route_frame::call::Call;
use route_frame::route::client_has;
use server::socket::FileBody;
use warp::Reply as _;
use warp::reply::Response as Reply;

use crate::ranges::RangedFile;

/// The address has the token of a session, in which a number is never used again. Nobody asks for a segment that is older
/// than this.
const CACHING: &str = "public, max-age=600, immutable";
/// Number of viewers from which on a segment is sent from a memory file: writing it costs as much as some of the copies that
/// it saves.
const FILE_VIEWERS_MIN: usize = 8;
/// Bytes that are handed to a connection at once. The session of a client that takes none of them for long ends.
const FRAME_BYTES_MAX: usize = 256 << 10;

/// Answers with an initialisation segment.
pub(super) fn init(call: &Call, version: u32, bytes: Bytes, request: SessionUse) -> Reply {
    let tag = format!("\"init-{version}-{}\"", bytes.len());
    let length = bytes.len();
    reply(call, "video/mp4", &tag, length, request, move |range| vec![bytes.slice(range)])
}

/// Answers with a segment or a part: 200, 206, 304 or 416.
pub(super) fn answer(call: &Call, name: SegmentName, body: &SegmentBody, request: SessionUse) -> Reply {
    // Unique for a session, as the window of a session never changes.
    let tag = match name {
        SegmentName::Segment(number) => format!("\"{number}\""),
        SegmentName::Part(number, part) => format!("\"{number}.{part}\""),
        SegmentName::Init(version) => format!("\"init-{version}\""),
    };
    let media_type = request.session().window().container().content_type();
    let has_file = matches!(name, SegmentName::Segment(_))
        && call.method != Method::HEAD
        && request.session().n_viewers() >= FILE_VIEWERS_MIN
        && body.file().is_some();
    let mut reply = reply(call, media_type, &tag, body.len(), request, |range| slices(body.pieces(), range));
    if has_file && reply.status().is_success() {
        reply.extensions_mut().insert(FileBody(body.clone()));
    }
    reply
}

fn reply(
    call: &Call,
    media_type: &'static str,
    tag: &str,
    length: usize,
    request: SessionUse,
    slices: impl FnOnce(Range<usize>) -> Vec<Bytes>,
) -> Reply {
    let mut reply = Reply::default();
    if let Ok(tag) = HeaderValue::from_str(tag)
        && client_has(&call.headers, &tag)
    {
        *reply.status_mut() = http::StatusCode::NOT_MODIFIED;
        reply.headers_mut().insert(ETAG, tag);
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(CACHING));
        return reply;
    }
    let file = RangedFile { media_type, length: length as u64, tag: Some(tag), grows: false };
    let part = match file.part(&call.headers) {
        Ok(part) => part,
        Err(unsatisfiable) => return *unsatisfiable,
    };
    if call.method != Method::HEAD {
        let range = part.clone().unwrap_or(0..length as u64);
        // A part of the segment, so that both fit.
        let slices = slices(range.start as usize..range.end as usize);
        reply = warp::reply::stream(frames(slices, request)).into_response();
    }
    file.describe(&mut reply, part.as_ref());
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(CACHING));
    reply
}

/// Returns the bytes of a range, without copying them.
fn slices(pieces: &[Bytes], range: Range<usize>) -> Vec<Bytes> {
    let mut slices = Vec::with_capacity(pieces.len());
    let mut at = 0;
    for piece in pieces {
        let (from, to) = (range.start.max(at), range.end.min(at + piece.len()));
        if from < to {
            slices.push(piece.slice(from - at..to - at));
        }
        at += piece.len();
    }
    slices
}

/// Hands the bytes to the connection in frames of bounded size, and counts them.
fn frames(slices: Vec<Bytes>, request: SessionUse) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    let slices = slices.into_iter();
    unfold((slices, Bytes::new(), request), async |(mut slices, mut rest, request)| {
        if rest.is_empty() {
            rest = slices.next()?;
        }
        let frame = rest.split_to(rest.len().min(FRAME_BYTES_MAX));
        request.sent(frame.len());
        Some((Ok(frame), (slices, rest, request)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_out_of_the_pieces() {
        let pieces = [Bytes::from_static(b"abc"), Bytes::from_static(b"defg"), Bytes::from_static(b"h")];
        for (range, expected) in [
            (0..8, &["abc", "defg", "h"][..]),
            (1..4, &["bc", "d"]),
            (3..7, &["defg"]),
            (7..8, &["h"]),
            (4..4, &[]),
        ] {
            let found = slices(&pieces, range.clone());
            assert_eq!(found, expected.iter().map(|it| it.as_bytes()).collect::<Vec<_>>(), "{range:?}");
        }
    }
}
