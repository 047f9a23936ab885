//! The root: starts its children in order, and restarts those that die.

use std::time::Duration;

use ractor::{ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::time::Instant;
use tracing::error;

use super::{CHILDREN, SystemActor, SystemState};
use crate::tasks;

/// An actor that runs longer than this started successfully.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(1);

/// Number of consecutive failures soon after a start that are followed by an immediate restart; later ones are delayed
/// by [`tasks::RESPAWN_DELAY`]. An actor that fails because of the data it reads at its start must not keep a processor
/// busy and fill the log.
pub(super) const IMMEDIATE_RESTARTS_MAX: u32 = 5;

pub(super) struct Root;

/// Restarts this actor.
pub(super) struct Restart(SystemActor);

pub(super) struct RootState {
    system_state: SystemState,
    children: Vec<Child>,
}

struct Child {
    who: SystemActor,
    /// `None` while it is not running.
    cell: Option<ActorCell>,
    started: Instant,
    /// Consecutive failures soon after a start.
    n_quick_failures: u32,
}

impl ractor::Actor for Root {
    type Msg = Restart;
    type State = RootState;
    type Arguments = SystemState;

    async fn pre_start(
        &self,
        myself: ActorRef<Restart>,
        system_state: SystemState,
    ) -> Result<RootState, ActorProcessingErr> {
        let mut children = Vec::with_capacity(CHILDREN.len());
        for who in CHILDREN {
            let cell = Some(system_state.start(who, myself.get_cell()).await?);
            children.push(Child { who, cell, started: Instant::now(), n_quick_failures: 0 });
        }
        Ok(RootState { system_state, children })
    }

    async fn handle(
        &self,
        myself: ActorRef<Restart>,
        Restart(who): Restart,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        state.restart(who, &myself).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Restart>,
        event: SupervisionEvent,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        let (gone, cause) = match &event {
            SupervisionEvent::ActorTerminated(gone, _, reason) => {
                (gone.get_id(), reason.clone().unwrap_or_else(|| "stopped".to_owned()))
            }
            SupervisionEvent::ActorFailed(gone, cause) => (gone.get_id(), cause.to_string()),
            _ => return Ok(()),
        };
        // Drops the old state before the successor starts.
        drop(event);
        let is_it = |it: &&mut Child| it.cell.as_ref().is_some_and(|cell| cell.get_id() == gone);
        let Some(child) = state.children.iter_mut().find(is_it) else { return Ok(()) };
        child.cell = None;
        let is_quick = child.started.elapsed() < STABLE_AFTER;
        child.n_quick_failures = if is_quick { child.n_quick_failures + 1 } else { 0 };
        let (who, waits) = (child.who, child.n_quick_failures > IMMEDIATE_RESTARTS_MAX);
        if state.system_state.stop.is_cancelled() {
            return Ok(());
        }
        error!(actor = ?who, "actor failed and is restarted: {cause}");
        match waits {
            true => drop(myself.send_after(tasks::RESPAWN_DELAY, move || Restart(who))),
            false => state.restart(who, &myself).await,
        }
        Ok(())
    }
}

impl RootState {
    async fn restart(&mut self, who: SystemActor, myself: &ActorRef<Restart>) {
        let Some(child) = self.children.iter_mut().find(|it| it.who == who) else { return };
        if self.system_state.stop.is_cancelled() {
            return;
        }
        child.started = Instant::now();
        match self.system_state.start(who, myself.get_cell()).await {
            Ok(cell) => child.cell = Some(cell),
            Err(cause) => {
                error!(actor = ?who, "failed to start an actor, trying again: {cause}");
                drop(myself.send_after(tasks::RESPAWN_DELAY, move || Restart(who)));
            }
        }
    }
}
