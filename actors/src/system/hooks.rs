//! Ways to end what runs as a defect in it would, for tests that look at what happens then.

use std::sync::atomic::Ordering;

use ractor::{ActorCell, ActorStatus};

use super::{System, SystemActor};
use crate::channel;
use crate::plans::Target;

impl System {
    /// Ends an actor at its next await, as a defect in it would. One that is just being restarted is left alone.
    pub fn kill(&self, who: SystemActor) {
        if let Some(actor) = self.state.addresses.of(who) {
            actor.kill();
        }
    }

    /// Which life of an actor this is, as a number that no other has; `None` while it is dead.
    pub fn life(&self, who: SystemActor) -> Option<u64> {
        let lives = |it: &ActorCell| matches!(it.get_status(), ActorStatus::Starting | ActorStatus::Running);
        self.state.addresses.of(who).filter(lives).map(|it| it.get_id().pid())
    }

    /// Ends the live channel of this target at its next await, if there is one, as a defect in it would.
    pub fn kill_channel(&self, target: Target) {
        for (it, live) in self.state.channel_table.all() {
            if it == target {
                live.actor.kill();
            }
        }
    }

    /// Ends the pump of this live channel, if there is one, as a defect in it would.
    pub fn kill_pump(&self, target: Target) {
        for (it, live) in self.state.channel_table.all() {
            if it == target {
                // One that ends just now has none.
                let _ = live.actor.cast(channel::Message::LosePump);
            }
        }
    }

    /// Ends a client by its number, if there is one, as a defect in it would.
    pub fn kill_client(&self, id: u64) {
        self.state.env.registry.kill_client(id);
    }

    /// Ends what follows the store at its next await, as a defect in it would.
    pub fn kill_follower(&self) {
        if let Some(follower) = &*self.follower.lock() {
            follower.kill();
        }
    }

    /// Whoever reads [`System::counts`] next finds a defect in it, and panics.
    pub fn fail_next_count(&self) {
        self.count_fails.store(true, Ordering::Relaxed);
    }

    /// The defect that a test asked for.
    pub(super) fn fail_if_asked(&self) {
        assert!(!self.count_fails.swap(false, Ordering::Relaxed), "a defect that a test asked for");
    }
}
