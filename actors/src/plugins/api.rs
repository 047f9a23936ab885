//! Calls of plugins to the API: over the pipes of their processes, and with a token over loopback.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::plugin::protocol::{self, SENT_BYTES_MAX, text_of};
use domain::plugin::{Permissions, PluginKey};
use domain::secret::Secret;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::Shared;

/// Maximum number of calls of one plugin that are answered at the same time. An answer counts until it is written.
const CALLS_MAX: usize = 8;
/// Maximum number of calls that wait. Each has at most the size of a line.
const CALLS_WAITING_MAX: usize = 32;
/// Maximum length of a path with its query, in bytes.
const PATH_BYTES_MAX: usize = 8 << 10;
/// Maximum size of the body of an answer, in bytes: a line without its frame.
pub const API_BODY_BYTES_MAX: usize = SENT_BYTES_MAX - (4 << 10);
/// How a token begins.
const TOKEN_PREFIX: &str = "plugin-";

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
    fn read(mut params: Map<String, Value>) -> Result<Self, ApiAnswer> {
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

/// A line for a process, with what is held until it is written.
pub(super) struct OutgoingLine {
    pub(super) bytes: Vec<u8>,
    _slot: Option<OwnedSemaphorePermit>,
}

impl From<Vec<u8>> for OutgoingLine {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, _slot: None }
    }
}

/// The calls of one process. They end with it.
pub(super) struct ApiCalls {
    caller: Arc<PluginCaller>,
    time_max: Duration,
    slots: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

impl ApiCalls {
    pub(super) fn new(caller: Arc<PluginCaller>, time_max: Duration) -> Self {
        Self { caller, time_max, slots: Arc::new(Semaphore::new(CALLS_MAX)), tasks: JoinSet::new() }
    }

    /// Begins a call, whose answer is sent when it is known. Returns the refusal of a call that does not begin.
    pub(super) fn begin(
        &mut self,
        shared: &Arc<Shared>,
        id: Option<Value>,
        params: Map<String, Value>,
        to: mpsc::Sender<OutgoingLine>,
    ) -> Result<(), ApiAnswer> {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= CALLS_MAX + CALLS_WAITING_MAX {
            return Err(ApiAnswer::refused(429, "Too many calls wait. Wait for the answers to some."));
        }
        let call = ApiCall::read(params)?;
        let (shared, caller) = (shared.clone(), self.caller.clone());
        let (slots, time_max) = (self.slots.clone(), self.time_max);
        self.tasks.spawn(async move {
            let mut slot = None;
            let answered = tokio::time::timeout(time_max, async {
                // Calls get their turn in the order in which they came.
                slot = slots.acquire_owned().await.ok();
                // In a task of its own, so that a bug ends nothing else.
                let answer = async move {
                    match shared.parts.get() {
                        Some(parts) => parts.backend.call_api(caller, call).await,
                        None => ApiAnswer::refused(503, "The gateway is starting."),
                    }
                };
                AbortOnDropHandle::new(tokio::spawn(answer)).await
            });
            let answer = match answered.await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => ApiAnswer::refused(500, "internal error"),
                Err(_) => {
                    let seconds = time_max.as_secs();
                    ApiAnswer::refused(504, &format!("The call has no answer after {seconds} s."))
                }
            };
            if let Some(id) = id {
                // An error means that the process has ended.
                let _ = to.send(OutgoingLine { bytes: line(&id, &answer), _slot: slot }).await;
            }
        });
        Ok(())
    }
}

/// Returns the line of an answer.
pub(super) fn line(id: &Value, answer: &ApiAnswer) -> Vec<u8> {
    let refused = |reason| {
        let refusal = ApiAnswer::refused(413, reason);
        protocol::api_answer(id, refusal.status, &refusal.body)
    };
    protocol::api_answer(id, answer.status, &answer.body)
        .or_else(|| refused("The answer has more than 4 MiB. Ask for it in pages, with page and page_size."))
        .unwrap_or_default()
}

/// The tokens of running processes.
#[derive(Default)]
pub(super) struct ProcessTokens(Mutex<HashMap<String, Arc<PluginCaller>>>);

/// The token of one process, which is invalid when this is dropped.
pub(super) struct HeldToken {
    pub(super) token: Secret,
    shared: Arc<Shared>,
}

impl HeldToken {
    pub(super) fn new(shared: Arc<Shared>, caller: Arc<PluginCaller>) -> Self {
        // 244 random bits.
        let token = format!("{TOKEN_PREFIX}{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        shared.tokens.0.lock().insert(token.clone(), caller);
        Self { token: Secret::new(token), shared }
    }
}

impl Drop for HeldToken {
    fn drop(&mut self) {
        self.shared.tokens.0.lock().remove(self.token.expose());
    }
}

impl ProcessTokens {
    /// Returns the plugin with a running process that has this token.
    pub(super) fn caller(&self, token: &str) -> Option<Arc<PluginCaller>> {
        // Tokens of users are no keys of this table, and its hashes are keyed, so that times reveal nothing.
        self.0.lock().get(token).cloned().filter(|_| token.starts_with(TOKEN_PREFIX))
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

    #[test]
    fn an_answer_that_is_too_large_says_how_to_get_it() {
        let answer = ApiAnswer { status: 200, body: format!("\"{}\"", "x".repeat(SENT_BYTES_MAX)) };
        let line: Value = serde_json::from_slice(&line(&json!("h1"), &answer)).unwrap();
        assert_eq!((&line["id"], &line["result"]["status"]), (&json!("h1"), &json!(413)));
        assert!(line["result"]["body"]["detail"].as_str().unwrap().contains("page_size"), "{line}");
    }
}
