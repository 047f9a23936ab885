//! The log of deliveries.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::delivery::Recipient;
use crate::ids::{DeliveryId, LogEntryId};
use crate::plugin::RunCause;

/// Maximum size of the answer of a webhook, or of the result of an action, that is kept, in bytes.
pub const ANSWER_BYTES_KEPT: usize = 4 * 1024;
/// Maximum size of each output of a script that is kept, in bytes.
pub const OUTPUT_BYTES_KEPT: usize = 64 * 1024;
/// Maximum size of the sent text that is kept, in bytes.
pub const REQUEST_BYTES_KEPT: usize = 16 * 1024;

/// One attempt of a delivery, a test, or a run of an action by its button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryLogEntry {
    pub id: LogEntryId,
    /// A member `integration` or `plugin`.
    #[serde(flatten)]
    pub to: Recipient,
    /// The subscription that wanted the event.
    #[serde(default)]
    pub subscription: Option<u32>,
    /// `None` for a test and for a button.
    #[serde(default)]
    pub delivery: Option<DeliveryId>,
    /// The id of the run for a button.
    pub event_id: Uuid,
    /// Name of the event; `schedule` or `button` for another cause.
    pub event: String,
    #[serde(default)]
    pub cause: RunCause,
    /// Id of the action of a plugin that ran.
    #[serde(default)]
    pub action: Option<String>,
    pub is_success: bool,
    /// The text that was sent: a body of a webhook, the payload of a script, the parameters of an action. Empty if nothing
    /// was sent.
    #[serde(default)]
    pub request: String,
    /// The answer of a webhook.
    #[serde(default)]
    pub answer: Option<WebhookAnswer>,
    /// The end of a script.
    #[serde(default)]
    pub output: Option<ScriptOutput>,
    /// The beginning of the object that an action of a plugin returned, as JSON.
    #[serde(default)]
    pub result: Option<String>,
    /// Why it failed, or why nothing was sent.
    #[serde(default)]
    pub reason: Option<String>,
    /// The number of this attempt; the first is 1.
    pub attempt: u32,
    pub duration_ms: u32,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

/// The answer of a webhook, without secrets of the integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookAnswer {
    pub status: u16,
    /// The beginning of the body.
    pub body: String,
}

/// The end of a script and the beginning of its output, without secrets of the integration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScriptOutput {
    /// `None` if it did not start, took too long, or was ended by a signal.
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl DeliveryLogEntry {
    /// Returns whether it is a test by an admin.
    pub fn is_test(&self) -> bool {
        self.delivery.is_none() && self.cause != RunCause::Button
    }

    /// Returns about how many bytes it takes.
    pub fn n_bytes(&self) -> u64 {
        let answer = self.answer.as_ref().map_or(0, |it| it.body.len());
        let output = self.output.as_ref().map_or(0, |it| it.stdout.len() + it.stderr.len());
        let reason = self.reason.as_ref().map_or(0, String::len);
        // The names of the fields and the numbers.
        let rest = 300;
        let run = [&self.action, &self.result].into_iter().flatten().map(String::len).sum::<usize>();
        (rest + self.event.len() + self.request.len() + answer + output + run + reason) as u64
    }
}

/// How much of the log is kept. What is older or more is removed, the oldest entries first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryLogLimits {
    pub days: u32,
    pub entries_per_integration: usize,
    /// Of all entries together.
    pub bytes: u64,
}

impl Default for DeliveryLogLimits {
    fn default() -> Self {
        Self { days: 30, entries_per_integration: 1_000, bytes: 64 << 20 }
    }
}
