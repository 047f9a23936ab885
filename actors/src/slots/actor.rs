//! The loop of the slots actor: queue and policy in front of the table.

use std::collections::HashSet;
use std::sync::Arc;

use domain::settings::LEASE_WAIT;
use ractor::{ActorProcessingErr, ActorRef};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::table::Taken;
use super::{Asking, Message, PARKED_MAX, Request, SlotMessage, SlotTable};
use crate::tasks::linked;

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) table: Arc<SlotTable>,
}

/// A request that waits for the first slot that comes back.
struct Parked {
    id: u64,
    request: Request,
    /// Holders that were asked to yield for it. Bounded by the leases out.
    asked: HashSet<u64>,
    /// The holder whose answer is awaited.
    asking: Option<u64>,
    _expiry: AbortOnDropHandle<()>,
}

pub(crate) struct State {
    table: Arc<SlotTable>,
    /// First come, first served; at most [`PARKED_MAX`].
    parked: Vec<Parked>,
    last_id: u64,
    _returns: AbortOnDropHandle<()>,
    cooling: Option<(Instant, AbortOnDropHandle<()>)>,
}

impl ractor::Actor for Actor {
    type Msg = Message;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Message>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let table = arguments.table.clone();
        let to = myself.clone();
        let returns = async move {
            let mut next = std::pin::pin!(table.next_return());
            next.as_mut().enable();
            loop {
                next.as_mut().await;
                // Listening again before telling, so that no return falls in between.
                next.set(table.next_return());
                next.as_mut().enable();
                if to.cast(Message::Returned).is_err() {
                    return;
                }
            }
        };
        Ok(State {
            table: arguments.table,
            parked: Vec::new(),
            last_id: 0,
            _returns: linked(&myself, returns),
            cooling: None,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Request(request) => {
                // Whoever waits goes first.
                state.serve();
                state.request(request, &myself);
            }
            Message::Cancel { holder, attempt } => {
                state.parked.retain(|it| it.request.holder != holder || it.request.attempt != attempt);
            }
            Message::Returned => state.serve(),
            Message::Kept { holder, asked_by } => state.kept(holder, asked_by),
            Message::Lingering { holder } => state.lingering(holder),
            Message::Expired { request } => state.expired(request),
        }
        state.watch_cooling(&myself);
        Ok(())
    }
}

impl State {
    fn request(&mut self, request: Request, myself: &ActorRef<Message>) {
        let Some((request, wait)) = self.grant(request) else { return };
        let may_wait = wait || !matches!(request.asking, Asking::Switch);
        if !may_wait || self.parked.len() >= PARKED_MAX {
            self.refuse(&request);
            return;
        }
        self.last_id += 1;
        let id = self.last_id;
        let actor = myself.clone();
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(LEASE_WAIT).await;
            let _ = actor.cast(Message::Expired { request: id });
        });
        debug!(holder = request.holder, "slot request waits");
        let mut parked = Parked {
            id,
            request,
            asked: HashSet::new(),
            asking: None,
            _expiry: AbortOnDropHandle::new(expiry),
        };
        ask_next_to_yield(&self.table, &mut parked);
        self.parked.push(parked);
    }

    /// Grants now, or hands the request back with whether a slot comes back by itself soon.
    fn grant(&self, request: Request) -> Option<(Request, bool)> {
        match self.table.take(&request.order, request.holder, &request.port, request.purpose) {
            Taken::Granted(index, lease) => {
                // To a holder that is gone the lease cannot be delivered, and comes back with the failed message.
                let news = SlotMessage::Granted { attempt: request.attempt, index, lease };
                let _ = request.port.send_message(news);
                None
            }
            Taken::Wait => Some((request, true)),
            Taken::Full => Some((request, false)),
        }
    }

    fn refuse(&self, request: &Request) {
        let full = self.table.full(&request.order);
        let _ = request.port.send_message(SlotMessage::Full { attempt: request.attempt, full });
    }

    /// Serves who waits, first come first, each with what is free now.
    fn serve(&mut self) {
        let waiting = std::mem::take(&mut self.parked);
        for mut parked in waiting {
            match self.grant(parked.request) {
                None => {}
                Some((request, _)) => {
                    parked.request = request;
                    // The holder that was asked may have gone with its lease, and another took the slot.
                    let gone = parked.asking.is_some_and(|it| !self.table.holds(it));
                    if gone {
                        parked.asking = None;
                        ask_next_to_yield(&self.table, &mut parked);
                    }
                    self.parked.push(parked);
                }
            }
        }
    }

    fn kept(&mut self, holder: u64, asked_by: u64) {
        let Some(parked) = self.parked.iter_mut().find(|it| it.id == asked_by && it.asking == Some(holder))
        else {
            return;
        };
        parked.asking = None;
        ask_next_to_yield(&self.table, parked);
    }

    /// It kept its slot as long as somebody watched; whoever still waits may ask it again.
    fn lingering(&mut self, holder: u64) {
        for parked in &mut self.parked {
            if parked.asked.remove(&holder) && parked.asking != Some(holder) {
                ask_next_to_yield(&self.table, parked);
            }
        }
    }

    fn expired(&mut self, id: u64) {
        if let Some(at) = self.parked.iter().position(|it| it.id == id) {
            let parked = self.parked.remove(at);
            if let Some((request, _)) = self.grant(parked.request) {
                self.refuse(&request);
            }
        }
    }

    /// Wakes up when the next cooling slot becomes free, if somebody waits.
    fn watch_cooling(&mut self, myself: &ActorRef<Message>) {
        let next = if self.parked.is_empty() { None } else { self.table.cooled_at() };
        match next {
            None => self.cooling = None,
            Some(at) if self.cooling.as_ref().is_some_and(|it| it.0 == at) => {}
            Some(at) => {
                let actor = myself.clone();
                let timer = tokio::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    let _ = actor.cast(Message::Returned);
                });
                self.cooling = Some((at, AbortOnDropHandle::new(timer)));
            }
        }
    }
}

/// Tells the next holder that could make room to yield: one at a time, so that no more is given up than is needed.
fn ask_next_to_yield(table: &SlotTable, parked: &mut Parked) {
    if parked.asking.is_some() {
        return;
    }
    let viewer = match &parked.request.asking {
        Asking::Join(viewer) => viewer.clone(),
        Asking::Failover => None,
        Asking::Switch => return,
    };
    for (holder, port) in table.who_could_yield(&parked.request.order, parked.request.holder) {
        if parked.asked.insert(holder) {
            let news = SlotMessage::Yield { asked_by: parked.id, viewer: viewer.clone() };
            if port.send_message(news).is_ok() {
                parked.asking = Some(holder);
                return;
            }
        }
    }
}
