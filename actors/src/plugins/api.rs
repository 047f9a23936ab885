//! Calls of plugins to the API: over the pipes of their processes, and with a token over loopback.

use std::sync::Arc;
use std::time::Duration;

use domain::plugin::protocol;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::call::{ApiAnswer, ApiCall, PluginCaller};
use super::state::PluginsState;

/// Maximum number of calls of one plugin that are answered at the same time. An answer counts until it is written.
const CALLS_MAX: usize = 8;
/// Maximum number of calls that wait. Each has at most the size of a line.
const CALLS_WAITING_MAX: usize = 32;
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
        shared: &Arc<PluginsState>,
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
                AbortOnDropHandle::new(crate::tasks::spawn(answer)).await
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

#[cfg(test)]
mod tests {
    use domain::plugin::protocol::SENT_BYTES_MAX;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_that_is_too_large_says_how_to_get_it() {
        let answer = ApiAnswer { status: 200, body: format!("\"{}\"", "x".repeat(SENT_BYTES_MAX)) };
        let line: Value = serde_json::from_slice(&line(&json!("h1"), &answer)).unwrap();
        assert_eq!((&line["id"], &line["result"]["status"]), (&json!("h1"), &json!(413)));
        assert!(line["result"]["body"]["detail"].as_str().unwrap().contains("page_size"), "{line}");
    }
}
