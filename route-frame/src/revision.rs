//! Revisions of single records: the entity tag of an answer, and the condition that a record is still as the client knows
//! it (RFC 9110, `If-Match`).

use http::header::{HeaderValue, IF_MATCH};
use http::{HeaderMap, StatusCode};
use server::reply::Refusal;

/// The stored record that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordKey {
    pub(super) collection: &'static str,
    pub(super) id: u32,
}

/// The condition of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IfMatch {
    /// The record exists.
    Any,
    /// The record has one of these digests.
    These(Vec<u64>),
}

impl IfMatch {
    /// Reads the condition of a request, if it has one. Tags in another form than [`tag`] gives match nothing. Proxies that
    /// compress answers make tags weak; the record is the same.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(IF_MATCH);
        let mut tags = values.iter().flat_map(|it| it.as_bytes().split(|it| *it == b',')).peekable();
        tags.peek()?;
        let tags: Vec<&[u8]> = tags.map(<[u8]>::trim_ascii).collect();
        if tags.contains(&&b"*"[..]) {
            return Some(Self::Any);
        }
        Some(Self::These(tags.into_iter().filter_map(digest_of).collect()))
    }

    /// Checks the condition. Without the record, the handler answers.
    ///
    /// # Errors
    /// The record is another one than the client knows: 412.
    pub(super) fn check(&self, digest: Option<u64>) -> Result<(), Refusal> {
        match (self, digest) {
            (Self::These(known), Some(digest)) if !known.contains(&digest) => Err(changed()),
            _ => Ok(()),
        }
    }
}

fn changed() -> Refusal {
    Refusal::status(StatusCode::PRECONDITION_FAILED).with_detail("The record has changed since it was read.")
}

/// Returns the entity tag of a record.
pub(super) fn tag(digest: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{digest:016x}\"")).expect("digits are valid in a header")
}

fn digest_of(tag: &[u8]) -> Option<u64> {
    let tag = tag.strip_prefix(b"W/").unwrap_or(tag);
    let digits = tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok().filter(|_| digits.len() == 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_tags_weak_ones_lists_and_any() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IF_MATCH, HeaderValue::from_static(value));
            }
            IfMatch::from_headers(&headers)
        };
        let one = "\"000000000000002a\"";
        assert_eq!(tag(42), one);
        assert_eq!(of(&[]), None);
        for (values, matches) in [
            (&[one][..], true),
            (&["W/\"000000000000002a\""], true),
            (&["\"x\", \"000000000000002a\""], true),
            (&["\"x\"", one], true),
            (&["*"], true),
            (&["\"000000000000002b\""], false),
            (&["\"2a\""], false),
            (&["000000000000002a"], false),
            (&[""], false),
        ] {
            assert_eq!(of(values).unwrap().check(Some(42)).is_ok(), matches, "{values:?}");
            assert!(of(values).unwrap().check(None).is_ok(), "{values:?}");
        }
    }
}
