//! The parent of all live channels: supervises, decides nothing.
//!
//! Live channels hang here and not under the switchboard, because linked children end with their parent: if the
//! switchboard dies, the channels play on and it learns of them again from the [`ChannelTable`].

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use ractor::{ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::Notify;
use tracing::error;

use crate::{channel, plans::Target};

/// A live channel as others find it.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) serial: u64,
    pub(crate) actor: ActorRef<channel::Message>,
}

/// Which target is played by which live channel; owned by the system, bounded by the channels that are watched.
#[derive(Default)]
pub(crate) struct ChannelTable {
    live: Mutex<HashMap<Target, Live>>,
    ended: Notify,
}

impl ChannelTable {
    pub(crate) fn insert(&self, target: Target, live: Live) {
        self.live.lock().insert(target, live);
    }

    pub(crate) fn all(&self) -> Vec<(Target, Live)> {
        self.live.lock().iter().map(|(target, live)| (*target, live.clone())).collect()
    }

    fn remove(&self, actor: ActorId) -> Option<(Target, u64)> {
        let mut live = self.live.lock();
        let (target, serial) = live
            .iter()
            .find(|it| it.1.actor.get_id() == actor)
            .map(|(target, live)| (*target, live.serial))?;
        live.remove(&target);
        drop(live);
        self.ended.notify_waiters();
        Some((target, serial))
    }

    /// Waits until no channel lives. Whoever calls bounds the wait.
    pub(crate) async fn emptied(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.live.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }
}

/// The parent actor. It takes no messages.
pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) table: Arc<ChannelTable>,
    /// Where the end of a channel is told.
    pub(crate) ended: Arc<dyn Fn(Target, u64) + Send + Sync>,
}

impl ractor::Actor for Actor {
    type Msg = ();
    type State = Arguments;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _myself: ActorRef<()>,
        arguments: Arguments,
    ) -> Result<Arguments, ActorProcessingErr> {
        // A predecessor's channels died with it.
        for (target, live) in arguments.table.all() {
            arguments.table.remove(live.actor.get_id());
            (arguments.ended)(target, live.serial);
        }
        Ok(arguments)
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<()>,
        event: SupervisionEvent,
        state: &mut Arguments,
    ) -> Result<(), ActorProcessingErr> {
        let actor = match &event {
            SupervisionEvent::ActorTerminated(actor, _, _) => actor.get_id(),
            SupervisionEvent::ActorFailed(actor, _) => actor.get_id(),
            _ => return Ok(()),
        };
        let gone = state.table.remove(actor);
        if let (SupervisionEvent::ActorFailed(_, cause), Some((target, _))) = (&event, gone) {
            error!(channel.target = %target, "a live channel failed, its clients are closed: {cause}");
        }
        // The state that travelled with the event holds a ring and a pump: let it go before the end is told.
        drop(event);
        if let Some((target, serial)) = gone {
            (state.ended)(target, serial);
        }
        Ok(())
    }
}
