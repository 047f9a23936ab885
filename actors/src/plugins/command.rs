//! Requests to the task of a plugin.

use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::run::RunRequest;

/// The answer to a command: an error is the sentence why the plugin is not ready.
pub(super) type Reply = oneshot::Sender<Result<(), String>>;

/// A request to the task of a plugin.
pub(super) enum Command {
    Run(RunRequest),
    Cancel(Uuid),
    Restart { reply: Reply },
    Stop { reason: String, reply: Reply },
    Reload { reply: Reply },
    SettingsChanged,
}

/// The next step of a plugin.
#[derive(Debug)]
pub(super) enum NextStep {
    /// A process, if the plugin is enabled.
    Start,
    /// Nothing until a command arrives.
    Rest,
    /// A process after a pause.
    Pause(Duration),
    /// Nothing any more: the gateway stops, or the plugin is gone.
    End,
}
