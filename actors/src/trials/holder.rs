//! Where a trial hears of its slot: an actor that only passes on what it is told, because that is whom slots talk to.

use domain::playout::Attempt;
use ractor::{ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::mpsc;

use crate::slots::{HolderPort, SlotMessage, Slots};

/// Answers to one request, and wishes for its slot. Slots asks one holder once per request that waits; should more wait
/// than fit, those that are lost change nothing: the first makes the trial end.
const MESSAGES_MAX: usize = 8;

struct Port;

/// Somebody who may hold a slot, until this is dropped.
pub(super) struct Holder {
    number: u64,
    attempt: Attempt,
    port: ActorRef<SlotMessage>,
    news: mpsc::Receiver<SlotMessage>,
    slots: Slots,
}

impl Holder {
    /// A holder with this number, that no other one has.
    pub(super) async fn start(slots: Slots, number: u64, attempt: Attempt) -> Result<Self, SpawnErr> {
        let (tell, news) = mpsc::channel(MESSAGES_MAX);
        let (port, _) = ractor::Actor::spawn(None, Port, tell).await?;
        Ok(Self { number, attempt, port, news, slots })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn port(&self) -> HolderPort {
        self.port.get_derived()
    }

    /// The next news; `None` when there is none to come.
    pub(super) async fn next(&mut self) -> Option<SlotMessage> {
        self.news.recv().await
    }

    /// Waits until somebody needs the slot.
    pub(super) async fn asked_to_yield(&mut self) {
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
        // A lease that is on its way here comes back with the message that nobody takes.
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
        tell: mpsc::Sender<SlotMessage>,
    ) -> Result<mpsc::Sender<SlotMessage>, ActorProcessingErr> {
        Ok(tell)
    }

    async fn handle(
        &self,
        _myself: ActorRef<SlotMessage>,
        news: SlotMessage,
        tell: &mut mpsc::Sender<SlotMessage>,
    ) -> Result<(), ActorProcessingErr> {
        let _ = tell.try_send(news);
        Ok(())
    }
}
