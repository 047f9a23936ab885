//! The checks of webhooks: methods and headers.

use crate::ids::IntegrationId;
use crate::secret::Secret;

/// Maximum number of own headers of a webhook.
pub const HEADERS_MAX: usize = 32;
/// Maximum size of the name and the value of a header together, in bytes.
pub const HEADER_BYTES_MAX: usize = 4 * 1024;
/// The methods of webhooks; the first one is the default.
pub const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "GET", "DELETE"];

/// Headers that the connection or the signature needs. They cannot be set.
const RESERVED: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "date",
];

/// A fault of a header, as a message for its author. It does not repeat the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("there are at most {HEADERS_MAX} headers")]
    TooMany,
    #[error("{0:?} is not the name of a header")]
    Name(String),
    #[error("the header {0:?} is set by the gateway")]
    Reserved(String),
    #[error("the value of the header {0:?} contains characters that are not allowed")]
    Value(String),
    #[error("the header {0:?} is longer than {HEADER_BYTES_MAX} bytes")]
    TooLong(String),
    #[error("the header {0:?} is there twice")]
    Twice(String),
}

/// Checks the headers of a webhook.
///
/// # Errors
/// Names the first header that cannot be sent.
pub fn check_headers(headers: &[(String, Secret)]) -> Result<(), HeaderError> {
    if headers.len() > HEADERS_MAX {
        return Err(HeaderError::TooMany);
    }
    for (n, (name, value)) in headers.iter().enumerate() {
        let value = value.expose();
        if name.len() + value.len() > HEADER_BYTES_MAX {
            return Err(HeaderError::TooLong(shown(name)));
        }
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(HeaderError::Name(shown(name)));
        }
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&&*lower) || lower.starts_with("webhook-") {
            return Err(HeaderError::Reserved(name.clone()));
        }
        if value.trim() != value || !value.bytes().all(|it| it == b'\t' || (b' '..=b'~').contains(&it)) {
            return Err(HeaderError::Value(name.clone()));
        }
        if headers[..n].iter().any(|it| it.0.eq_ignore_ascii_case(name)) {
            return Err(HeaderError::Twice(name.clone()));
        }
    }
    Ok(())
}

/// Returns the beginning of a name that may be anything.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Returns whether a byte may be in the name of a header (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the identity of a delivery in the header `webhook-id`: the same in every attempt, and another one for each
/// integration.
pub fn webhook_id(event: uuid::Uuid, integration: IntegrationId) -> String {
    format!("{}_{integration}", event.simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)]) -> Result<(), HeaderError> {
        let headers: Vec<_> = headers.iter().map(|it| (it.0.to_owned(), Secret::new(it.1))).collect();
        check_headers(&headers)
    }

    #[test]
    fn headers_that_cannot_be_sent_are_named() {
        assert_eq!(check(&[("Authorization", "Bearer abc"), ("X-Key", "")]), Ok(()));
        let name = |it: &str| it.to_owned();
        assert_eq!(check(&[("Host", "a")]), Err(HeaderError::Reserved(name("Host"))));
        assert_eq!(check(&[("Webhook-Id", "a")]), Err(HeaderError::Reserved(name("Webhook-Id"))));
        assert_eq!(check(&[("a b", "c")]), Err(HeaderError::Name(name("a b"))));
        assert_eq!(check(&[("", "c")]), Err(HeaderError::Name(String::new())));
        for value in ["a\r\nHost: b", "ü", " a", "\u{0}"] {
            assert_eq!(check(&[("X-A", value)]), Err(HeaderError::Value(name("X-A"))), "{value:?}");
        }
        assert_eq!(check(&[("X-A", "1"), ("x-a", "2")]), Err(HeaderError::Twice(name("x-a"))));
        assert_eq!(check(&[("X-A", &"x".repeat(5_000))]), Err(HeaderError::TooLong(name("X-A"))));
        assert_eq!(check(&[("a", "b"); 33]), Err(HeaderError::TooMany));
    }
}
