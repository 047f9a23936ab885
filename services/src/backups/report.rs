//! Reports back-ups as events.

use actors::now_ms;
use domain::event::{Event, EventBody};
use domain::secret::Secret;
use storage::backup::BackupError;

use super::{Inner, REQUESTED, SCHEDULED, TaskState};

impl Inner {
    /// Makes a back-up that was requested, and reports how it ended. Blocks.
    pub(super) fn make_requested(&self, passphrase: Option<Secret>) -> Result<TaskState, BackupError> {
        let made = self.make(REQUESTED, passphrase);
        self.report(&made, false);
        made
    }

    /// Makes a back-up of the schedule, and reports how it ended. Blocks.
    pub(super) fn make_scheduled(&self) -> Result<TaskState, BackupError> {
        let made = self.make(SCHEDULED, None);
        self.report(&made, true);
        made
    }

    fn report(&self, made: &Result<TaskState, BackupError>, is_scheduled: bool) {
        let body = match made {
            Ok(TaskState::Made { name, n_bytes }) => {
                EventBody::BackupDone { backup: name.clone(), size_bytes: *n_bytes, is_scheduled }
            }
            Ok(_) => return,
            Err(error) => EventBody::BackupFailed { reason: error.to_string(), is_scheduled },
        };
        self.events.emit(Event { at: now_ms(), body });
    }
}
