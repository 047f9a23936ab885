//! Files for players, whole or in part: the headers `Range` and `If-Range` of requests, and the answers 200, 206 and 416.

use std::ops::Range;

use domain::byte_range::{ByteRanges, SelectedBytes, content_range, if_range_holds, unsatisfied_range};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    IF_RANGE, RANGE,
};
use http::{HeaderMap, StatusCode};
use server::reply::Refusal;
use warp::reply::Response as Reply;

/// The content depends on the user, and may change.
const CACHING: &str = "private, no-cache";

/// A file that players seek in.
pub(super) struct RangedFile<'a> {
    pub(super) media_type: &'static str,
    /// Length in bytes. Of a file that grows, its length now.
    pub(super) length: u64,
    /// Changes with the content; `None` if nobody knows it.
    pub(super) tag: Option<&'a str>,
    /// Whether bytes are still added. The whole file has no length then.
    pub(super) grows: bool,
}

impl RangedFile<'_> {
    /// Returns the part that a request selects; `None` for the whole file. A player that requests everything of a file that
    /// grows gets the whole file, because a part ends where the file ends now.
    ///
    /// # Errors
    /// The answer 416: no requested byte exists.
    pub(super) fn part(&self, headers: &HeaderMap) -> Result<Option<Range<u64>>, Box<Reply>> {
        let is_same = if_range(headers).is_none_or(|it| self.tag.is_some_and(|tag| if_range_holds(it, tag)));
        let everything = SelectedBytes::Part(0..u64::MAX);
        let counts = |it: &ByteRanges| is_same && !(self.grows && it.select(u64::MAX) == everything);
        match ranges(headers).filter(counts).map_or(SelectedBytes::Whole, |it| it.select(self.length)) {
            SelectedBytes::Whole => Ok(None),
            SelectedBytes::Part(part) => Ok(Some(part)),
            SelectedBytes::Unsatisfiable => Err(Box::new(unsatisfiable(self.length))),
        }
    }

    /// Sets status and headers of the answer with a part, or with the whole file.
    pub(super) fn describe(&self, reply: &mut Reply, part: Option<&Range<u64>>) {
        let sent = match part {
            Some(part) => {
                *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
                set(reply, CONTENT_RANGE, &content_range(part, self.length));
                Some(part.end - part.start)
            }
            None => (!self.grows).then_some(self.length),
        };
        if let Some(sent) = sent {
            set(reply, CONTENT_LENGTH, &sent.to_string());
        }
        if let Some(tag) = self.tag {
            set(reply, ETAG, tag);
        }
        set(reply, CONTENT_TYPE, self.media_type);
        set(reply, ACCEPT_RANGES, "bytes");
        set(reply, CACHE_CONTROL, CACHING);
    }
}

/// Sets the headers of a transport stream without length and ranges.
pub(super) fn describe_stream(reply: &mut Reply) {
    set(reply, CONTENT_TYPE, "video/mp2t");
    set(reply, ACCEPT_RANGES, "none");
    set(reply, CACHE_CONTROL, CACHING);
}

/// Returns the answer 416 of a file with this length.
pub(super) fn unsatisfiable(length: u64) -> Reply {
    let refusal = Refusal::status(StatusCode::RANGE_NOT_SATISFIABLE)
        .with_detail(format!("the file has {length} bytes"));
    let mut reply = refusal.into_response();
    set(&mut reply, CONTENT_RANGE, &unsatisfied_range(length));
    set(&mut reply, ACCEPT_RANGES, "bytes");
    reply
}

/// Returns the ranges that a request names. Those that are malformed are ignored.
pub(super) fn ranges(headers: &HeaderMap) -> Option<ByteRanges> {
    ByteRanges::parse(headers.get(RANGE)?.to_str().ok()?)
}

/// Returns the condition of the ranges of a request.
pub(super) fn if_range(headers: &HeaderMap) -> Option<&str> {
    headers.get(IF_RANGE)?.to_str().ok()
}

fn set(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"1\"";

    fn answer(file: &RangedFile<'_>, headers: &[(HeaderName, &str)]) -> Reply {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        match file.part(&headers) {
            Ok(part) => {
                let mut reply = Reply::default();
                file.describe(&mut reply, part.as_ref());
                reply
            }
            Err(reply) => *reply,
        }
    }

    /// Checks the status, the length and the range of an answer.
    fn check(
        file: &RangedFile<'_>,
        headers: &[(HeaderName, &str)],
        status: u16,
        length: Option<&str>,
        range: Option<&str>,
    ) {
        let reply = answer(file, headers);
        let text = |name: HeaderName| reply.headers().get(name).map(|it: &HeaderValue| it.to_str().unwrap());
        assert_eq!(reply.status(), status, "{headers:?}");
        assert_eq!(text(CONTENT_RANGE), range, "{headers:?}");
        assert_eq!(text(ACCEPT_RANGES), Some("bytes"), "{headers:?}");
        if status != 416 {
            assert_eq!((text(CONTENT_LENGTH), text(ETAG)), (length, file.tag), "{headers:?}");
        }
    }

    #[test]
    fn a_file_is_answered_whole_or_in_part() {
        let file = RangedFile { media_type: "video/mp4", length: 100, tag: Some(TAG), grows: false };
        check(&file, &[], 200, Some("100"), None);
        check(&file, &[(RANGE, "bytes=10-19")], 206, Some("10"), Some("bytes 10-19/100"));
        check(&file, &[(RANGE, "bytes=-5")], 206, Some("5"), Some("bytes 95-99/100"));
        check(&file, &[(RANGE, "bytes=0-")], 206, Some("100"), Some("bytes 0-99/100"));
        check(&file, &[(RANGE, "bytes=100-")], 416, None, Some("bytes */100"));
        check(&file, &[(RANGE, "pages=1-2")], 200, Some("100"), None);
        check(&file, &[(RANGE, "bytes=10-19"), (IF_RANGE, TAG)], 206, Some("10"), Some("bytes 10-19/100"));
        check(&file, &[(RANGE, "bytes=10-19"), (IF_RANGE, "\"2\"")], 200, Some("100"), None);
    }

    #[test]
    fn a_file_that_grows_has_no_length_but_its_parts_have() {
        let file = RangedFile { media_type: "video/mp2t", length: 100, tag: None, grows: true };
        check(&file, &[], 200, None, None);
        check(&file, &[(RANGE, "bytes=90-")], 206, Some("10"), Some("bytes 90-99/100"));
        check(&file, &[(RANGE, "bytes=90-"), (IF_RANGE, TAG)], 200, None, None);
        check(&file, &[(RANGE, "bytes=0-")], 200, None, None);
        check(&file, &[(RANGE, "bytes=0-99")], 206, Some("100"), Some("bytes 0-99/100"));
    }
}
