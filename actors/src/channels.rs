//! The parent of all live channels. It supervises them and makes no decisions.
//!
//! Live channels are linked to this actor and not to the switchboard, because linked children end with their parent: if
//! the switchboard dies, the channels keep playing, and its successor reads them from the [`ChannelTable`].

use std::collections::HashMap;

use parking_lot::Mutex;
use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::Notify;
use tracing::error;

use crate::channel;
use crate::plans::Target;

/// A running live channel.
#[derive(Clone)]
pub(crate) struct LiveChannel {
    pub(crate) serial: u64,
    pub(crate) actor: ActorRef<channel::Message>,
}

/// The live channel of each target. Owned by the system; bounded by the channels that are watched or ending.
#[derive(Default)]
pub(crate) struct ChannelTable {
    inner: Mutex<Inner>,
    ended: Notify,
}

#[derive(Default)]
struct Inner {
    live: HashMap<Target, LiveChannel>,
    /// Serials of the channels that ended, until all their leases are back.
    gone: HashMap<Target, u64>,
}

impl ChannelTable {
    pub(crate) fn insert(&self, target: Target, live: LiveChannel) {
        self.inner.lock().live.insert(target, live);
    }

    pub(crate) fn all(&self) -> Vec<(Target, LiveChannel)> {
        self.inner.lock().live.iter().map(|(target, live)| (*target, live.clone())).collect()
    }

    /// Returns the serials of the channels that ended and still have leases.
    pub(crate) fn gone(&self) -> Vec<(Target, u64)> {
        self.inner.lock().gone.iter().map(|(target, serial)| (*target, *serial)).collect()
    }

    /// Records that the live channel with this serial ended.
    pub(crate) fn remove(&self, target: Target, serial: u64) {
        let mut inner = self.inner.lock();
        if inner.live.get(&target).is_some_and(|it| it.serial == serial) {
            inner.live.remove(&target);
            inner.gone.insert(target, serial);
        }
        drop(inner);
        self.ended.notify_waiters();
    }

    /// Records that all leases of an ended live channel are back.
    pub(crate) fn forget(&self, target: Target, serial: u64) {
        let mut inner = self.inner.lock();
        if inner.gone.get(&target) == Some(&serial) {
            inner.gone.remove(&target);
        }
    }

    /// Resolves when a live channel ends. Has to be created before the table is read, so that no end is missed.
    pub(crate) fn next_end(&self) -> tokio::sync::futures::Notified<'_> {
        self.ended.notified()
    }

    /// Waits until no live channel is left. The caller limits the wait.
    pub(crate) async fn emptied(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.inner.lock().live.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

/// The parent actor. It accepts no messages and has no state: the end of a channel is reported by the code that started
/// it.
pub(crate) struct Actor;

impl ractor::Actor for Actor {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<()>, _arguments: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    /// The state of the channel is dropped together with the event.
    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<()>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, cause) = &event {
            error!("a live channel failed: {cause}");
        }
        Ok(())
    }
}
