//! A holder of a slot that is not an actor: a small actor forwards the messages of the slots actor, which sends only to actors.

use std::sync::Arc;

use domain::playout::Attempt;
use ractor::{ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::mpsc;

use super::{HolderPort, LeaseTable, SlotMessage};

/// Capacity for the reply to one request and the requests to yield. The slots actor asks one holder once per waiting
/// request; if more arrive than fit, the lost ones do not matter, because the first one already ends the trial.
const MESSAGES_MAX: usize = 8;

struct Port;

/// A holder of a slot, until it is dropped.
pub(crate) struct Holder {
    number: u64,
    attempt: Attempt,
    port: ActorRef<SlotMessage>,
    messages: mpsc::Receiver<SlotMessage>,
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
        let (port, _) = ractor::Actor::spawn(None, Port, sender).await?;
        Ok(Self { number, attempt, port, messages, slots })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn port(&self) -> HolderPort {
        self.port.get_derived()
    }

    /// Returns the next message; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<SlotMessage> {
        self.messages.recv().await
    }

    /// Waits until another holder needs the slot.
    pub(crate) async fn asked_to_yield(&mut self) {
        loop {
            match self.next().await {
                Some(SlotMessage::Yield { .. }) => return,
                Some(_) => {}
                None => std::future::pending().await,
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
    type State = mpsc::Sender<SlotMessage>;
    type Arguments = mpsc::Sender<SlotMessage>;

    async fn pre_start(
        &self,
        _myself: ActorRef<SlotMessage>,
        sender: mpsc::Sender<SlotMessage>,
    ) -> Result<mpsc::Sender<SlotMessage>, ActorProcessingErr> {
        Ok(sender)
    }

    async fn handle(
        &self,
        _myself: ActorRef<SlotMessage>,
        message: SlotMessage,
        sender: &mut mpsc::Sender<SlotMessage>,
    ) -> Result<(), ActorProcessingErr> {
        let _ = sender.try_send(message);
        Ok(())
    }
}
