//! Response helpers, and the only place that turns a refusal into a status and a JSON body.

use std::borrow::Cow;

use domain::texts::add_code;
use http::header::{
    ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Method, Response, StatusCode};
use warp::reply::Response as Reply;

use super::WarpBody;

/// Header in which HDHomeRun tuners report errors; media servers read it.
const TUNER_ERROR: HeaderName = HeaderName::from_static("x-hdhomerun-error");
/// `Retry-After` in seconds, for shortages that may end at any moment.
const RETRY_SOON: HeaderValue = HeaderValue::from_static("3");
/// Value of `WWW-Authenticate`.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"api\"");
/// The same where players log in. Programs that have a name and a password send them after this only.
const LOGIN_CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"players\", charset=\"UTF-8\"");

/// An error response: the reason why a request was refused.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    detail: String,
    tuner_error: Option<TunerError>,
    may_retry: bool,
    /// Whether a 401 asks for name and password.
    asks_for_login: bool,
    allow: Option<Cow<'static, str>>,
    /// Replaces the body `{"detail": …}`.
    body: Option<serde_json::Value>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Error codes of HDHomeRun tuners. Media servers show these texts to their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunerError {
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
            asks_for_login: false,
            allow: None,
            body: None,
        }
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, detail)
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 401: credentials are missing or invalid.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// 403: the caller's network is not allowed.
    pub fn network() -> Self {
        Refusal::new(StatusCode::FORBIDDEN, "this address is not allowed here")
    }

    /// 405. `allow` lists the methods of the path in the format of the header `Allow`.
    pub fn wrong_method(method: &Method, allow: impl Into<Cow<'static, str>>) -> Self {
        let detail = format!("Method \"{method}\" not allowed.");
        Refusal { allow: Some(allow.into()), ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    pub fn bug() -> Self {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
    }

    /// Returns whether the refusal has this status.
    pub fn is(&self, status: StatusCode) -> bool {
        self.status == status
    }

    pub fn status(status: StatusCode) -> Self {
        let detail = status.canonical_reason().unwrap_or("error").to_lowercase();
        Refusal::new(status, detail)
    }

    pub fn with_tuner_error(self, error: TunerError) -> Self {
        Refusal { tuner_error: Some(error), ..self }
    }

    /// Replaces the status if the reason is that all tuners or connections are in use.
    pub fn all_in_use_as(self, status: StatusCode) -> Self {
        match self.tuner_error {
            Some(TunerError::AllTunersInUse) => Refusal { status, ..self },
            _ => self,
        }
    }

    /// Returns the status, and the code of a tuner if there is one.
    pub fn reason(&self) -> (StatusCode, Option<TunerError>) {
        (self.status, self.tuner_error)
    }

    /// Replaces the detail text.
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Refusal { detail: detail.into(), ..self }
    }

    /// Replaces the body `{"detail": …}`.
    pub fn with_body(self, body: serde_json::Value) -> Self {
        Refusal { body: Some(body), ..self }
    }

    /// Adds the reason to the body also as `error`, and `success`, which is false, for clients that read them.
    pub fn with_error(mut self, has_success: bool) -> Self {
        let body = self.body.get_or_insert_with(|| serde_json::json!({ "detail": self.detail }));
        if let Some(members) = body.as_object_mut()
            && let Some(detail) = members.get("detail").filter(|it| it.is_string()).cloned()
        {
            members.entry("error").or_insert(detail);
            if has_success {
                members.entry("success").or_insert(false.into());
            }
        }
        self
    }

    /// Adds `Retry-After`.
    pub fn retry_soon(self) -> Self {
        Refusal { may_retry: true, ..self }
    }

    /// Lets a 401 ask for name and password, which browsers then ask people for.
    pub fn asking_for_login(self) -> Self {
        Refusal { asks_for_login: true, ..self }
    }

    pub fn into_response(self) -> Reply {
        let mut body = self.body.unwrap_or_else(|| serde_json::json!({ "detail": self.detail }));
        add_code(&mut body, "detail");
        let mut response = json(self.status, &body);
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = if self.asks_for_login { LOGIN_CHALLENGE } else { CHALLENGE };
            headers.insert(WWW_AUTHENTICATE, challenge);
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

/// Creates a JSON response.
pub fn json(status: StatusCode, body: &serde_json::Value) -> Reply {
    json_text(status, body.to_string())
}

/// Creates a response with this text, which is JSON.
pub fn json_text(status: StatusCode, text: impl Into<WarpBody>) -> Reply {
    let mut response: Reply = Response::new(text.into());
    *response.status_mut() = status;
    declare_json(response.headers_mut());
    response
}

/// Media type of JSON.
pub const JSON: &str = "application/json";

/// Declares that a body is JSON, and that a browser must not take it for anything else: texts in it are written by
/// providers.
pub fn declare_json(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
