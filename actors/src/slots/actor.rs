//! The message loop of the slots actor: queue and policy in front of the table.

use std::collections::HashSet;
use std::sync::Arc;

use domain::plan::SlotPool;
use ractor::{ActorProcessingErr, ActorRef};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::message::NO_REQUEST;
use super::table::{Taken, WaitingEntry};
use super::{Asking, Lease, LeaseTable, Message, PARKED_MAX, Request, SlotMessage, SlotTable};
use crate::tasks::linked;

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) table: Arc<SlotTable>,
}

/// A request that waits for a slot.
struct Parked {
    id: u64,
    request: Request,
    /// Holders that were asked to yield for this request. Bounded by the leases in use.
    asked: HashSet<u64>,
    /// The holder that has not replied yet.
    asking: Option<u64>,
    _listed: WaitingEntry,
    _expiry: AbortOnDropHandle<()>,
}

pub(crate) struct State {
    table: Arc<SlotTable>,
    /// In order of arrival; at most [`PARKED_MAX`].
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
                // Subscribed again before the message is sent, so that no return in between is missed.
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
                // Waiting requests go first.
                state.serve();
                state.request(request, &myself);
            }
            Message::Cancel { holder, attempt } => {
                state.parked.retain(|it| it.request.holder != holder || it.request.attempt != attempt);
            }
            Message::Returned => state.serve(),
            Message::Kept { holder, asked_by } => state.kept(holder, asked_by),
            Message::Lingering { holder } => state.lingering(holder),
            Message::MakeRoom { holder, pool } => state.make_room(holder, &pool),
            Message::Expired { request } => state.expired(request),
        }
        state.watch_cooling(&myself);
        Ok(())
    }
}

impl State {
    fn request(&mut self, request: Request, myself: &ActorRef<Message>) {
        if matches!(request.asking, Asking::Beside) {
            return self.request_beside(&request);
        }
        let Some((request, wait)) = self.grant(request) else { return };
        let may_wait = wait || !matches!(request.asking, Asking::Switch);
        if !may_wait || self.parked.len() >= PARKED_MAX {
            self.refuse(&request);
            return;
        }
        self.last_id += 1;
        let id = self.last_id;
        let actor = myself.clone();
        let wait = self.table.longest_wait(&request);
        let expiry = crate::tasks::spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = actor.cast(Message::Expired { request: id });
        });
        debug!(holder = request.holder, "slot request is waiting");
        let mut parked = Parked {
            id,
            _listed: self.table.wait(&request),
            request,
            asked: HashSet::new(),
            asking: None,
            _expiry: AbortOnDropHandle::new(expiry),
        };
        ask_next_to_yield(&self.table, &mut parked);
        self.parked.push(parked);
    }

    /// Grants or refuses a second connection, without a wait and without asking anybody to yield.
    fn request_beside(&self, request: &Request) {
        let is_awaited = |pool: &SlotPool| {
            self.parked.iter().flat_map(|it| &it.request.order).any(|it| it.pool.shares_limit_with(pool))
        };
        match self.table.take_beside(request, is_awaited) {
            Some((index, lease)) => grant(request, index, lease),
            None => self.refuse(request),
        }
    }

    /// Grants a slot, or returns the request together with whether a slot will be returned soon.
    fn grant(&self, request: Request) -> Option<(Request, bool)> {
        match self.table.take(&request) {
            Taken::Granted(index, lease) => {
                grant(&request, index, lease);
                None
            }
            Taken::Wait => Some((request, true)),
            Taken::Full => Some((request, false)),
        }
    }

    fn refuse(&self, request: &Request) {
        let full = self.table.full(request);
        let _ = request.port.send_message(SlotMessage::Full { attempt: request.attempt, full });
    }

    /// Serves waiting requests in order of arrival, each with the slots that are free now.
    fn serve(&mut self) {
        let waiting = std::mem::take(&mut self.parked);
        for mut parked in waiting {
            match self.grant(parked.request) {
                None => {}
                Some((request, _)) => {
                    parked.request = request;
                    // The holder that was asked may have ended with its lease, and another one may have taken the slot.
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

    /// A holder that kept its slot while it had viewers can be asked again by the waiting requests.
    fn lingering(&mut self, holder: u64) {
        for parked in &mut self.parked {
            if parked.asked.remove(&holder) && parked.asking != Some(holder) {
                ask_next_to_yield(&self.table, parked);
            }
        }
    }

    /// Asks all other holders on an account profile and in its server group to yield: how many the provider counts is
    /// unknown.
    fn make_room(&self, holder: u64, pool: &SlotPool) {
        for (_, port) in self.table.holders_on(pool, holder) {
            let _ = port.send_message(SlotMessage::Yield { asked_by: NO_REQUEST, viewer: None, claim: None });
        }
    }

    fn expired(&mut self, id: u64) {
        if let Some(at) = self.parked.iter().position(|it| it.id == id) {
            let parked = self.parked.remove(at);
            if let Some((request, _)) = self.grant(parked.request) {
                match self.table.take_beyond_discovered(&request) {
                    Some((index, lease)) => grant(&request, index, lease),
                    None => self.refuse(&request),
                }
            }
        }
    }

    /// Sets a timer for the next cooling slot, if a request waits.
    fn watch_cooling(&mut self, myself: &ActorRef<Message>) {
        let next = if self.parked.is_empty() { None } else { self.table.cooled_at() };
        match next {
            None => self.cooling = None,
            Some(at) if self.cooling.as_ref().is_some_and(|it| it.0 == at) => {}
            Some(at) => {
                let actor = myself.clone();
                let timer = crate::tasks::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    let _ = actor.cast(Message::Returned);
                });
                self.cooling = Some((at, AbortOnDropHandle::new(timer)));
            }
        }
    }
}

/// If the holder is gone, the lease is dropped with the undelivered message.
fn grant(request: &Request, index: usize, lease: Lease) {
    let _ = request.port.send_message(SlotMessage::Granted { attempt: request.attempt, index, lease });
}

/// Asks the next holder that could make room to yield: one at a time, so that no more slots are given up than needed.
fn ask_next_to_yield(table: &SlotTable, parked: &mut Parked) {
    if parked.asking.is_some() {
        return;
    }
    let viewer = match &parked.request.asking {
        Asking::Join(viewer) => viewer.clone(),
        Asking::Failover => None,
        Asking::Switch | Asking::Beside => return,
    };
    let claim = parked.request.claim;
    for (holder, port) in table.who_could_yield(&parked.request) {
        if parked.asked.insert(holder) {
            let message = SlotMessage::Yield { asked_by: parked.id, viewer: viewer.clone(), claim };
            if port.send_message(message).is_ok() {
                parked.asking = Some(holder);
                return;
            }
        }
    }
}
