//! A call of a plugin to the API, and its answer.

use domain::plugin::protocol::{SENT_BYTES_MAX, text_of};
use domain::plugin::{Permissions, PluginKey};
use serde_json::{Map, Value, json};

/// Maximum length of a path with its query, in bytes.
const PATH_BYTES_MAX: usize = 8 << 10;
/// Maximum size of the body of an answer, in bytes: a line without its frame.
pub const API_BODY_BYTES_MAX: usize = SENT_BYTES_MAX - (4 << 10);

/// A plugin as a caller of the API.
#[derive(Debug)]
pub struct PluginCaller {
    pub key: PluginKey,
    /// The permissions that were granted when its process started.
    pub permissions: Permissions,
}

/// A call to the API.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiCall {
    /// In capitals.
    pub method: String,
    pub path: String,
    /// Without the question mark.
    pub query: String,
    /// `None` for no body.
    pub body: Option<Value>,
}

/// The answer to a call. Refusals are answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAnswer {
    pub status: u16,
    /// JSON on one line, of at most [`API_BODY_BYTES_MAX`].
    pub body: String,
}

impl ApiAnswer {
    /// Returns a refusal with its reason.
    pub fn refused(status: u16, reason: &str) -> Self {
        Self { status, body: json!({ "detail": reason }).to_string() }
    }
}

impl ApiCall {
    /// Reads the parameters of a call. An error is the refusal.
    pub(super) fn read(mut params: Map<String, Value>) -> Result<Self, ApiAnswer> {
        let wrong = |reason: &str| ApiAnswer::refused(400, reason);
        let method = match text_of(&params, "method").unwrap_or("GET") {
            it @ ("GET" | "POST" | "PUT" | "PATCH" | "DELETE") => it.to_owned(),
            _ => return Err(wrong("The method must be GET, POST, PUT, PATCH or DELETE.")),
        };
        let target = text_of(&params, "path").unwrap_or_default();
        if !target.starts_with('/') || target.len() > PATH_BYTES_MAX {
            return Err(wrong("The path must begin with a slash and have at most 8 KiB."));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let body = params.remove("body").filter(|it| !it.is_null());
        Ok(Self { method, path, query, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: Value) -> Result<ApiCall, ApiAnswer> {
        let Value::Object(params) = params else { unreachable!() };
        ApiCall::read(params)
    }

    #[test]
    fn a_call_has_a_method_a_path_and_perhaps_a_body() {
        let call = read(json!({"method": "PATCH", "path": "/api/x/?a=1?b", "body": {"c": 2}})).unwrap();
        assert_eq!((&*call.method, &*call.path, &*call.query), ("PATCH", "/api/x/", "a=1?b"));
        assert_eq!(call.body, Some(json!({"c": 2})));
        let call = read(json!({"path": "/api/", "body": null})).unwrap();
        assert_eq!((&*call.method, &*call.query, call.body), ("GET", "", None));
        for wrong in [
            json!({}),
            json!({"path": 1}),
            json!({"path": "api/"}),
            json!({"path": "http://elsewhere/"}),
            json!({"path": format!("/{}", "x".repeat(PATH_BYTES_MAX))}),
            json!({"path": "/", "method": "get"}),
            json!({"path": "/", "method": "CONNECT"}),
        ] {
            assert_eq!(read(wrong.clone()).unwrap_err().status, 400, "{wrong}");
        }
    }
}
