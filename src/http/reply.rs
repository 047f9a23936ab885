//! The shapes of answers: refusals become a status and a JSON body here and nowhere else.

use std::borrow::Cow;

use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use warp::reply::Response as Reply;

/// The header in which tuner devices say what went wrong, and in which media servers look for it.
const TUNER_ERROR: HeaderName = HeaderName::from_static("x-hdhomerun-error");
/// Seconds after which a caller may try again when what was missing may come back any moment.
const RETRY_SOON: HeaderValue = HeaderValue::from_static("3");
/// How a caller can show who they are.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"api\"");

/// Why a caller cannot have what they asked for.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    detail: String,
    tuner_error: Option<TunerError>,
    may_retry: bool,
    allow: Option<Cow<'static, str>>,
    /// In place of the detail.
    body: Option<serde_json::Value>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

/// What a tuner device would say. Media servers that know the device show these words to their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunerError {
    UnknownChannel,
    SystemBusy,
    AllTunersInUse,
    TuneFailed,
    NoVideoData,
}

impl TunerError {
    fn text(self) -> &'static str {
        match self {
            TunerError::UnknownChannel => "801 Unknown Channel",
            TunerError::SystemBusy => "803 System Busy",
            TunerError::AllTunersInUse => "805 All Tuners In Use",
            TunerError::TuneFailed => "806 Tune Failed",
            TunerError::NoVideoData => "807 No Video Data",
        }
    }
}

impl Refusal {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Refusal {
            status,
            detail: detail.into(),
            tuner_error: None,
            may_retry: false,
            allow: None,
            body: None,
        }
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Credentials are missing, or are none.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// The caller is known, and may not.
    pub(crate) fn forbidden() -> Self {
        Refusal::new(StatusCode::FORBIDDEN, "You do not have permission to perform this action.")
    }

    /// The caller's network is not allowed here.
    pub(crate) fn network() -> Self {
        Refusal::new(StatusCode::FORBIDDEN, "this address is not allowed here")
    }

    /// `allow` are the methods that the path knows, as the header of that name writes them.
    pub(crate) fn method(allow: impl Into<Cow<'static, str>>) -> Self {
        Refusal {
            allow: Some(allow.into()),
            ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
    }

    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    pub(crate) fn bug() -> Self {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
    }

    pub(crate) fn status(status: StatusCode) -> Self {
        let detail = status.canonical_reason().unwrap_or("error").to_lowercase();
        Refusal::new(status, detail)
    }

    pub(crate) fn with_tuner_error(self, error: TunerError) -> Self {
        Refusal { tuner_error: Some(error), ..self }
    }

    /// The same with other words.
    pub(crate) fn with_detail(self, detail: impl Into<String>) -> Self {
        Refusal { detail: detail.into(), ..self }
    }

    /// The same with a body of its own in place of `{"detail": …}`.
    pub(crate) fn with_body(self, body: serde_json::Value) -> Self {
        Refusal { body: Some(body), ..self }
    }

    /// Says when to try again.
    pub(crate) fn retry_soon(self) -> Self {
        Refusal { may_retry: true, ..self }
    }

    pub(crate) fn into_response(self) -> Reply {
        let body = self.body.unwrap_or_else(|| serde_json::json!({ "detail": self.detail }));
        let mut response = json(self.status, &body);
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        if let Some(error) = self.tuner_error {
            headers.insert(TUNER_ERROR, HeaderValue::from_static(error.text()));
        }
        if self.may_retry {
            headers.insert(RETRY_AFTER, RETRY_SOON);
        }
        if let Some(allow) = self.allow
            && let Ok(allow) = HeaderValue::from_str(&allow)
        {
            headers.insert(ALLOW, allow);
        }
        response
    }
}

/// A JSON body with its type.
pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Reply {
    with_type(status, "application/json", body.to_string())
}

/// Plain text.
pub(crate) fn text(status: StatusCode, body: impl Into<String>) -> Reply {
    with_type(status, "text/plain; charset=utf-8", body.into())
}

/// A body of a given type.
pub(crate) fn with_type(status: StatusCode, content_type: &'static str, body: String) -> Reply {
    let mut response: Reply = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
