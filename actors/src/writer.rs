//! Which node of a cluster writes the configuration, for what moves with that. A gateway without a cluster always writes.

use ractor::{ActorRef, Message};
use storage::Store;
use storage::log::{LogRole, LogStatus};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::schedule::Missed;
use crate::tasks;

/// Waits until this node begins or ceases to write; `writes` is what it does now. Without a cluster, waits for ever.
pub async fn role_changed(status: &mut watch::Receiver<Option<LogStatus>>, writes: bool) {
    let is_writer = |it: &Option<LogStatus>| it.as_ref().is_none_or(|it| it.role == LogRole::Writer);
    if status.wait_for(|it| is_writer(it) != writes).await.is_err() {
        std::future::pending().await
    }
}

/// The part of an actor that starts refreshes by schedule on the node that writes.
#[derive(Default)]
pub(crate) struct ScheduleWatch {
    /// First look as the node that writes, in milliseconds since 1970.
    started_at: Option<i64>,
    has_followed: bool,
    /// Lets the actor look when the role of this node changes. Only in a cluster.
    wakes: Option<AbortOnDropHandle<()>>,
}

impl ScheduleWatch {
    /// Called at each look of the actor at its schedules. Returns what becomes of missed refreshes if this node starts them
    /// now. From the first call on, the actor also gets `look` when this begins or ends.
    pub(crate) fn look<M: Message>(
        &mut self,
        store: &Store,
        now: i64,
        actor: &ActorRef<M>,
        look: fn() -> M,
    ) -> Option<Missed> {
        let mut status = store.log_status();
        let writes = store.writes_shared();
        if self.wakes.is_none() && status.borrow().is_some() {
            let to = actor.clone();
            let mut last = writes;
            self.wakes = Some(tasks::linked(actor, async move {
                loop {
                    role_changed(&mut status, last).await;
                    last = !last;
                    if to.cast(look()).is_err() {
                        return;
                    }
                }
            }));
        }
        self.has_followed |= !writes;
        if !writes {
            return None;
        }
        let from = *self.started_at.get_or_insert(now);
        Some(if self.has_followed { Missed::AtOnce } else { Missed::Spread { from } })
    }
}
