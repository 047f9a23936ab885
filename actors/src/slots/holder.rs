//! A holder of a slot that is not an actor: a small actor forwards the messages of the slots actor, which sends only to actors.

use std::sync::Arc;

use domain::playout::Attempt;
use ractor::{ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{HolderPort, LeaseTable, SlotMessage};

/// Capacity for the reply to one request and the requests to yield. The slots actor asks one holder once per waiting
/// request; if more arrive than fit, the lost ones do not matter, because the first one already ends the trial.
const MESSAGES_MAX: usize = 8;

struct Port;

struct PortState {
    sender: mpsc::Sender<SlotMessage>,
    revoked: CancellationToken,
}

/// The reason for which a holder has to give up its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// Another holder needs it.
    Needed,
    /// The lease is revoked.
    Revoked,
}

/// A holder of a slot, until it is dropped.
pub(crate) struct Holder {
    number: u64,
    attempt: Attempt,
    port: ActorRef<SlotMessage>,
    messages: mpsc::Receiver<SlotMessage>,
    revoked: CancellationToken,
    slots: Arc<dyn LeaseTable>,
}

impl Holder {
    /// Creates a holder with this number, which must be unique.
    pub(crate) async fn start(
        slots: Arc<dyn LeaseTable>,
        number: u64,
        attempt: Attempt,
    ) -> Result<Self, SpawnErr> {
        let (sender, messages) = mpsc::channel(MESSAGES_MAX);
        let revoked = CancellationToken::new();
        let state = PortState { sender, revoked: revoked.clone() };
        let (port, _) = ractor::Actor::spawn(None, Port, state).await?;
        Ok(Self { number, attempt, port, messages, revoked, slots })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn port(&self) -> HolderPort {
        self.port.get_derived()
    }

    /// Returns the next message; `None` after the last one. A message that says that the lease is revoked may be lost if
    /// more than [`MESSAGES_MAX`] wait, see [`Self::revocation`].
    pub(crate) async fn next(&mut self) -> Option<SlotMessage> {
        self.messages.recv().await
    }

    /// Returns a token that is cancelled when the lease is revoked, also if nobody reads the messages.
    pub(crate) fn revocation(&self) -> CancellationToken {
        self.revoked.clone()
    }

    /// Waits until the slot has to be given up. Returns the reason.
    pub(crate) async fn must_close(&mut self) -> CloseReason {
        loop {
            tokio::select! {
                biased;
                () = self.revoked.cancelled() => return CloseReason::Revoked,
                message = self.messages.recv() => match message {
                    Some(SlotMessage::Yield { .. }) => return CloseReason::Needed,
                    Some(_) => {}
                    None => std::future::pending().await,
                }
            }
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // A lease in an undelivered message is returned when that message is dropped.
        self.slots.cancel(self.number, self.attempt);
        self.port.stop(None);
    }
}

impl ractor::Actor for Port {
    type Msg = SlotMessage;
    type State = PortState;
    type Arguments = PortState;

    async fn pre_start(
        &self,
        _myself: ActorRef<SlotMessage>,
        state: PortState,
    ) -> Result<PortState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        _myself: ActorRef<SlotMessage>,
        message: SlotMessage,
        state: &mut PortState,
    ) -> Result<(), ActorProcessingErr> {
        // The message may not fit, or wait behind others.
        if matches!(message, SlotMessage::Revoked { .. }) {
            state.revoked.cancel();
        }
        let _ = state.sender.try_send(message);
        Ok(())
    }
}
