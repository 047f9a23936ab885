//! The cause of a response that is not a success, from its headers and from the beginning of its body.

use std::time::Duration;

use http::{HeaderMap, Response};
use tokio::time::{Instant, timeout_at};

use super::http::HttpUpstream;
use crate::error::{Cause, is_refusal};

/// Maximum number of bytes of a body that are read for a reason.
const BODY_BYTES_MAX: usize = 2 * 1024;
/// Maximum time for these bytes.
const BODY_TIME_MAX: Duration = Duration::from_millis(300);
/// Header with the error of a network tuner, such as `805 All Tuners In Use`.
const TUNER_ERROR: &str = "x-hdhomerun-error";
/// Parts of texts that say that the region of the caller is the reason.
const REGION_WORDS: [&str; 14] = [
    "geo-block",
    "geoblock",
    "geo block",
    "geo-restrict",
    "georestrict",
    "geo restrict",
    "your country",
    "your region",
    "your location",
    "your area",
    "this country",
    "this region",
    "region restrict",
    "region lock",
];

/// Returns the cause of a response that is not a success. Reads the beginning of its body only if a reason may be in it.
pub(super) async fn refusal_cause(http: &mut HttpUpstream, response: &Response<()>) -> Cause {
    let status = response.status().as_u16();
    if let Some(code) = tuner_code(response.headers()) {
        return Cause::Tuner { status, code };
    }
    if may_be_region(status) && names_region(&beginning_of_body(http).await) {
        return Cause::Region(status);
    }
    Cause::Status(status)
}

fn may_be_region(status: u16) -> bool {
    is_refusal(status) && status != 429
}

/// Returns the code of a network tuner: the number at the beginning of the header.
fn tuner_code(headers: &HeaderMap) -> Option<u16> {
    let text = headers.get(TUNER_ERROR)?.to_str().ok()?.trim();
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..n_digits].parse().ok().filter(|it| (800..=899).contains(it))
}

async fn beginning_of_body(http: &mut HttpUpstream) -> Vec<u8> {
    let until = Instant::now() + BODY_TIME_MAX;
    let mut body = Vec::new();
    while body.len() < BODY_BYTES_MAX {
        let Ok(Ok(Some(bytes))) = timeout_at(until, http.read()).await else { break };
        body.extend_from_slice(&bytes[..bytes.len().min(BODY_BYTES_MAX - body.len())]);
    }
    body
}

/// Returns whether a body says that the region of the caller is the reason. Tags of HTML do not count.
fn names_region(body: &[u8]) -> bool {
    let mut is_tag = false;
    let text = String::from_utf8_lossy(body).to_lowercase();
    let without_tags = text.chars().filter_map(|it| {
        let was_tag = is_tag;
        is_tag = it == '<' || (is_tag && it != '>');
        match it {
            '<' => Some(' '),
            '>' if was_tag => None,
            _ => (!is_tag).then_some(it),
        }
    });
    let text: String = without_tags.collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    REGION_WORDS.iter().any(|it| text.contains(it))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_code_of_a_tuner_is_the_number_at_the_beginning_of_its_header() {
        for (text, expected) in [
            ("805 All Tuners In Use", Some(805)),
            ("805", Some(805)),
            (" 807 No Video Data", Some(807)),
            ("899x", Some(899)),
            ("900", None),
            ("799 x", None),
            ("All Tuners In Use", None),
            ("99999999999999999999", None),
            ("-805", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(
                "x-hdhomerun-error".parse().unwrap(),
                HeaderValue::from_static(text),
            )]);
            assert_eq!(tuner_code(&headers), expected, "{text}");
        }
        assert_eq!(tuner_code(&HeaderMap::new()), None);
    }

    #[test]
    fn a_body_names_the_region_only_in_words_about_the_caller() {
        for (body, expected) in [
            ("Geo-blocked", true),
            ("{\"error\": \"GEOBLOCK\"}", true),
            ("<h1>Not available in <b>your</b> country</h1>", true),
            ("This content is region locked.", true),
            ("not available\n  in   your region", true),
            ("Forbidden", false),
            ("<div class=\"your region\">Forbidden</div>", false),
            ("Your subscription has expired", false),
            ("Maximum number of connections reached", false),
            ("", false),
            ("<your region", false),
        ] {
            assert_eq!(names_region(body.as_bytes()), expected, "{body}");
        }
        assert!(!names_region(&[0xFF, b'<', 0xC3, b'>', 0x80]));
    }
}
