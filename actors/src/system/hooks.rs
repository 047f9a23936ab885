//! Hooks for tests that kill actors and tasks, as a defect in them would.

use std::sync::atomic::Ordering;

use ractor::{ActorCell, ActorStatus};

use super::{System, SystemActor};
use crate::channel;
use crate::plans::Target;

impl System {
    /// Kills an actor at its next await, as a defect in it would. Does nothing while the actor is being restarted.
    pub fn kill(&self, who: SystemActor) {
        if let Some(actor) = self.state.addresses.get(who) {
            actor.kill();
        }
    }

    /// Returns a number that is unique for each start of an actor; `None` while it is dead.
    pub fn life(&self, who: SystemActor) -> Option<u64> {
        let lives = |it: &ActorCell| matches!(it.get_status(), ActorStatus::Starting | ActorStatus::Running);
        self.state.addresses.get(who).filter(lives).map(|it| it.get_id().pid())
    }

    /// Kills the live channel of this target, if it exists.
    pub fn kill_channel(&self, target: Target) {
        for (it, live) in self.state.channel_table.all() {
            if it == target {
                live.actor.kill();
            }
        }
    }

    /// Aborts the pump of this live channel, if it exists.
    pub fn kill_pump(&self, target: Target) {
        for (it, live) in self.state.channel_table.all() {
            if it == target {
                // The cast fails if the channel is ending.
                let _ = live.actor.cast(channel::Message::LosePump);
            }
        }
    }

    /// Blocks this live channel until the returned sender is dropped, as a busy machine would.
    #[cfg(test)]
    pub(crate) fn block_channel(&self, target: Target) -> std::sync::mpsc::Sender<()> {
        let (release, until) = std::sync::mpsc::channel();
        let live = self.state.channel_table.all().into_iter().find(|it| it.0 == target);
        let (_, live) = live.expect("the channel is live");
        live.actor.cast(channel::Message::Block(until)).expect("the channel is live");
        release
    }

    /// Returns whether the pump of any live channel has read the tables of its source.
    #[cfg(test)]
    pub(crate) fn has_tables(&self) -> bool {
        self.state.env.registry.channels().iter().any(|it| it.pump.tables().is_some())
    }

    /// Returns the actors of all clients.
    #[cfg(test)]
    pub(crate) fn client_actors(&self) -> Vec<ActorCell> {
        self.state.env.registry.clients().iter().map(|it| it.port.get_cell()).collect()
    }

    /// Kills the actor of a client, if it exists.
    pub fn kill_client(&self, id: u64) {
        self.state.env.registry.kill_client(id);
    }

    /// Aborts the follower of the store at its next await.
    pub fn kill_follower(&self) {
        if let Some(follower) = &*self.follower.lock() {
            follower.kill();
        }
    }

    /// Makes the next call of [`System::counts`] panic.
    pub fn fail_next_count(&self) {
        self.count_fails.store(true, Ordering::Relaxed);
    }

    /// Panics if a test requested it.
    pub(super) fn fail_if_asked(&self) {
        assert!(!self.count_fails.swap(false, Ordering::Relaxed), "a defect that a test asked for");
    }
}
