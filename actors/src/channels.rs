//! The parent of all live channels: supervises, decides nothing.
//!
//! Live channels hang here and not under the switchboard, because linked children end with their parent: if the
//! switchboard dies, the channels play on and it learns of them again from the [`ChannelTable`].

use std::collections::HashMap;

use parking_lot::Mutex;
use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::Notify;
use tracing::error;

use crate::channel;
use crate::plans::Target;

/// A live channel as others find it.
#[derive(Clone)]
pub(crate) struct LiveChannel {
    pub(crate) serial: u64,
    pub(crate) actor: ActorRef<channel::Message>,
}

/// Which target is played by which live channel; owned by the system, bounded by the channels that are watched or
/// ending.
#[derive(Default)]
pub(crate) struct ChannelTable {
    inner: Mutex<Inner>,
    ended: Notify,
}

#[derive(Default)]
struct Inner {
    live: HashMap<Target, LiveChannel>,
    /// Those that are over, until their leases are back: by their serials.
    gone: HashMap<Target, u64>,
}

impl ChannelTable {
    pub(crate) fn insert(&self, target: Target, live: LiveChannel) {
        self.inner.lock().live.insert(target, live);
    }

    pub(crate) fn all(&self) -> Vec<(Target, LiveChannel)> {
        self.inner.lock().live.iter().map(|(target, live)| (*target, live.clone())).collect()
    }

    /// The serials of those that are over and not forgotten.
    pub(crate) fn gone(&self) -> Vec<(Target, u64)> {
        self.inner.lock().gone.iter().map(|(target, serial)| (*target, *serial)).collect()
    }

    /// The live channel with this serial is over.
    pub(crate) fn remove(&self, target: Target, serial: u64) {
        let mut inner = self.inner.lock();
        if inner.live.get(&target).is_some_and(|it| it.serial == serial) {
            inner.live.remove(&target);
            inner.gone.insert(target, serial);
        }
        drop(inner);
        self.ended.notify_waiters();
    }

    /// All that the live channel with this serial held has come back.
    pub(crate) fn forget(&self, target: Target, serial: u64) {
        let mut inner = self.inner.lock();
        if inner.gone.get(&target) == Some(&serial) {
            inner.gone.remove(&target);
        }
    }

    /// Waits until no channel lives. Whoever calls bounds the wait.
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

/// The parent actor. It takes no messages and knows nothing: the end of a channel is told by whoever started it.
pub(crate) struct Actor;

impl ractor::Actor for Actor {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<()>, _arguments: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    /// What was the channel's goes with the event.
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
