//! The message loop of the switchboard.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use media::ring::EndReason;
use ractor::{ActorProcessingErr, ActorRef, ActorRuntime, RpcReplyPort, SpawnErr};
use tokio::task::JoinHandle;
use tracing::error;

use super::{ChannelOverview, Message, OVERVIEW_TIMEOUT, PARKED_MAX, START_PAUSE, StopOutcome};
use crate::ask::{Address, answer};
use crate::channel::{
    self, ChannelReport, HostFor, Join, JoinRequest, LiveEnv, SwitchOutcome, WatchRefusal, WatchReply,
};
use crate::channels::{ChannelTable, LiveChannel};
use crate::plans::Target;
use crate::slots::LeaseTable;

pub(crate) struct Actor;

/// The values that the switchboard uses; they outlive the actor.
#[derive(Clone)]
pub(crate) struct Arguments {
    pub(crate) env: Arc<LiveEnv>,
    pub(crate) table: Arc<ChannelTable>,
    pub(crate) slots: Arc<dyn LeaseTable>,
    /// The parent of live channels.
    pub(crate) channels: Address<()>,
    /// The address for reports of live channels: this actor or its successor.
    pub(crate) address: Address<Message>,
    /// Numbers of joins and live channels; never decreases.
    pub(crate) counter: Arc<AtomicU64>,
}

/// The phase of a target's live channel.
enum TargetPhase {
    /// Accepts joins. Contains the number of the last join that this switchboard forwarded.
    Live { live: LiveChannel, last_join: Option<u64> },
    /// Accepts no more joins; ends soon.
    Leaving { serial: u64 },
    /// Ended; its leases are being returned.
    Draining { serial: u64 },
}

struct Entry {
    phase: TargetPhase,
    /// Joins for the next live channel of this target; at most [`PARKED_MAX`].
    parked: Vec<(JoinRequest, RpcReplyPort<WatchReply>)>,
}

pub(crate) struct State {
    arguments: Arguments,
    /// Bounded by the number of targets that are watched or ending.
    entries: HashMap<Target, Entry>,
    closing: bool,
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
        // The address is set before the table is read: later messages arrive here, and earlier changes are in the
        // table.
        arguments.address.set(myself.clone());
        // After a restart the channels keep playing, and are found in the table.
        let live = |(target, live)| {
            (target, Entry { phase: TargetPhase::Live { live, last_join: None }, parked: vec![] })
        };
        let entries = arguments.table.all().into_iter().map(live).collect();
        // Read after the live channels: a channel that ends in between is in both lists, not in neither.
        let gone = arguments.table.gone();
        let mut state = State { arguments, entries, closing: false };
        for (target, serial) in gone {
            state
                .entries
                .entry(target)
                .or_insert(Entry { phase: TargetPhase::Leaving { serial }, parked: vec![] });
            state.ended(target, serial, &myself);
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Watch { target, request, reply } => state.watch(target, request, reply),
            Message::Host { target, host, reply } => state.host(target, host, reply),
            Message::Reported { target, serial, report } => state.reported(target, serial, report),
            Message::Ended { target, serial } => state.ended(target, serial, &myself),
            Message::Drained { target, serial } => state.drained(target, serial),
            Message::Stop { target, end, reply } => {
                let told = state.live(target).is_some_and(|it| it.cast(channel::Message::Stop(end)).is_ok());
                answer(reply, if told { StopOutcome::Stopping } else { StopOutcome::NotLive });
            }
            Message::Switch { target, to, reply } => match state.live(target) {
                // The reply port is forwarded; a channel that is gone drops it, which the caller notices immediately.
                Some(actor) => drop(actor.cast(channel::Message::Switch(to, reply))),
                None => answer(reply, SwitchOutcome::NotLive),
            },
            Message::Kick { target, client, reply } => match state.live(target) {
                Some(actor) => drop(actor.cast(channel::Message::Kick(client, reply))),
                None => answer(reply, false),
            },
            Message::Status { target, reply } => state.status(target, reply),
            Message::Overview { reply } => state.overview(reply),
            Message::Reload { reply } => {
                for (_, live) in state.arguments.table.all() {
                    let _ = live.actor.cast(channel::Message::Reload);
                }
                answer(reply, ());
            }
            Message::Refuse => state.refuse(),
            Message::Close => state.close(),
        }
        Ok(())
    }
}

impl State {
    fn watch(&mut self, target: Target, request: JoinRequest, reply: RpcReplyPort<WatchReply>) {
        if self.closing {
            return answer(reply, WatchReply::Refused(WatchRefusal::Stopping));
        }
        match self.entries.get_mut(&target) {
            None => {
                let Some(live) = self.start(target) else {
                    return answer(reply, WatchReply::Refused(WatchRefusal::Stopping));
                };
                let phase = TargetPhase::Live { live, last_join: None };
                self.entries.insert(target, Entry { phase, parked: Vec::new() });
                self.forward(target, request, reply);
            }
            Some(Entry { phase: TargetPhase::Live { .. }, .. }) => self.forward(target, request, reply),
            Some(entry) => {
                if entry.parked.len() >= PARKED_MAX {
                    return answer(reply, WatchReply::Refused(WatchRefusal::Stopping));
                }
                entry.parked.push((request, reply));
            }
        }
    }

    /// Forwards a join to the live channel of its target.
    fn forward(&mut self, target: Target, request: JoinRequest, reply: RpcReplyPort<WatchReply>) {
        let number = self.arguments.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(entry) = self.entries.get_mut(&target) else { return };
        let TargetPhase::Live { live, last_join } = &mut entry.phase else { return };
        *last_join = Some(number);
        let join = Join { number, request, reply };
        match live.actor.cast(channel::Message::Join(join)) {
            Ok(()) => {}
            // The channel died and its end was not handled yet: the join waits for its successor.
            Err(ractor::MessagingErr::SendErr(channel::Message::Join(join))) => {
                entry.phase = TargetPhase::Leaving { serial: live.serial };
                entry.parked.push((join.request, join.reply));
            }
            Err(_) => {}
        }
    }

    fn host(&mut self, target: Target, host: HostFor, reply: RpcReplyPort<Result<(), String>>) {
        let stopping = || Err("the channel is stopping there".to_owned());
        if self.closing {
            return answer(reply, stopping());
        }
        if !self.entries.contains_key(&target)
            && let Some(live) = self.start(target)
        {
            let phase = TargetPhase::Live { live, last_join: None };
            self.entries.insert(target, Entry { phase, parked: Vec::new() });
        }
        let number = self.arguments.counter.fetch_add(1, Ordering::Relaxed) + 1;
        match self.entries.get_mut(&target).map(|it| &mut it.phase) {
            Some(TargetPhase::Live { live, last_join }) => {
                *last_join = Some(number);
                // A channel that is gone drops the reply port, which the caller notices immediately.
                let _ = live.actor.cast(channel::Message::Host { number, host, reply });
            }
            _ => answer(reply, stopping()),
        }
    }

    fn start(&mut self, target: Target) -> Option<LiveChannel> {
        let serial = self.arguments.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let address = self.arguments.address.clone();
        let arguments = channel::Arguments {
            env: self.arguments.env.clone(),
            target,
            serial,
            report: Box::new(move |report| address.tell(Message::Reported { target, serial, report })),
        };
        let parent = self.arguments.channels.current()?.get_cell();
        // Spawned instantly: the channel builds its state in its own task, and its mailbox accepts joins meanwhile.
        match ActorRuntime::spawn_linked_instant(None, channel::Actor, arguments, parent) {
            Ok((actor, life)) => {
                // Sent before any join; a failure to deliver it shows as the end of the channel.
                let _ = actor.cast(channel::Message::Load);
                let live = LiveChannel { serial, actor };
                self.arguments.table.insert(target, live.clone());
                self.watch_over(target, serial, life);
                Some(live)
            }
            Err(cause) => {
                error!(channel.target = %target, "failed to spawn a live channel: {cause}");
                None
            }
        }
    }

    /// Reports the end of a live channel, for whatever reason, including one that its parent never knew.
    fn watch_over(&self, target: Target, serial: u64, life: JoinHandle<Result<JoinHandle<()>, SpawnErr>>) {
        let (table, address) = (self.arguments.table.clone(), self.arguments.address.clone());
        // Ends with the channel.
        crate::tasks::spawn(async move {
            match life.await {
                // The parent logs a panic of the channel.
                Ok(Ok(life)) => drop(life.await),
                Ok(Err(cause)) => {
                    error!(channel.target = %target, "failed to start a live channel: {cause}");
                    // Usually the parent is being restarted. The delay slows down the retries of waiting joins.
                    tokio::time::sleep(START_PAUSE).await;
                }
                Err(_) => {}
            }
            table.remove(target, serial);
            address.tell(Message::Ended { target, serial });
        });
    }

    fn reported(&mut self, target: Target, serial: u64, report: ChannelReport) {
        let Some(entry) = self.entries.get_mut(&target) else { return };
        match (report, &entry.phase) {
            // A join that was forwarded since keeps the channel alive; a join of a previous switchboard shows in the
            // channel's own number.
            (ChannelReport::Idle(number), TargetPhase::Live { live, last_join })
                if live.serial == serial && last_join.is_none_or(|it| it == number) =>
            {
                let _ = live.actor.cast(channel::Message::Retire(number));
                entry.phase = TargetPhase::Leaving { serial };
            }
            (ChannelReport::Ending, TargetPhase::Live { live, .. }) if live.serial == serial => {
                entry.phase = TargetPhase::Leaving { serial };
            }
            (ChannelReport::Awake, TargetPhase::Leaving { serial: leaving }) if *leaving == serial => {
                self.awake(target, serial)
            }
            _ => {}
        }
    }

    /// A channel that was told to retire continues, because a join of the previous switchboard arrived first.
    fn awake(&mut self, target: Target, serial: u64) {
        let live = self.arguments.table.all().into_iter().find(|it| it.0 == target && it.1.serial == serial);
        let (Some((_, live)), Some(entry)) = (live, self.entries.get_mut(&target)) else { return };
        entry.phase = TargetPhase::Live { live, last_join: None };
        for (request, reply) in std::mem::take(&mut entry.parked) {
            self.forward(target, request, reply);
        }
    }

    fn ended(&mut self, target: Target, serial: u64, myself: &ActorRef<Message>) {
        let Some(entry) = self.entries.get_mut(&target) else { return };
        let known = match &entry.phase {
            TargetPhase::Live { live, .. } => live.serial,
            TargetPhase::Leaving { serial } | TargetPhase::Draining { serial } => *serial,
        };
        if known != serial {
            return;
        }
        entry.phase = TargetPhase::Draining { serial };
        if !self.arguments.slots.holds(serial) {
            return self.drained(target, serial);
        }
        let slots = self.arguments.slots.clone();
        let myself = myself.clone();
        // Bounded: the closer returns every lease within half a second.
        crate::tasks::spawn(async move {
            slots.all_back(serial).await;
            let _ = myself.cast(Message::Drained { target, serial });
        });
    }

    fn drained(&mut self, target: Target, serial: u64) {
        let drained = matches!(self.entries.get(&target), Some(Entry { phase: TargetPhase::Draining { serial: it }, .. }) if *it == serial);
        if !drained {
            return;
        }
        self.arguments.table.forget(target, serial);
        let Some(entry) = self.entries.remove(&target) else { return };
        for (request, reply) in entry.parked {
            // A caller that went away while it waited starts no channel.
            if !reply.is_closed() {
                self.watch(target, request, reply);
            }
        }
    }

    fn status(&mut self, target: Target, reply: RpcReplyPort<Option<channel::ChannelStatus>>) {
        let Some(actor) = self.live(target) else { return answer(reply, None) };
        let (tx, rx) = tokio::sync::oneshot::channel();
        if actor.cast(channel::Message::Status(tx.into())).is_err() {
            return answer(reply, None);
        }
        // The reply has another type, so it cannot be forwarded; the caller limits the wait.
        crate::tasks::spawn(async move { answer(reply, rx.await.ok()) });
    }

    /// Requests the status of all live channels at once, and replies with those that arrived by the deadline.
    fn overview(&self, reply: RpcReplyPort<Vec<ChannelOverview>>) {
        let mut asked = Vec::with_capacity(self.entries.len());
        for target in self.entries.keys() {
            let Some(actor) = self.live(*target) else { continue };
            let (tx, rx) = tokio::sync::oneshot::channel();
            if actor.cast(channel::Message::Status(tx.into())).is_ok() {
                asked.push((*target, rx));
            }
        }
        let deadline = tokio::time::Instant::now() + OVERVIEW_TIMEOUT;
        crate::tasks::spawn(async move {
            let mut all = Vec::with_capacity(asked.len());
            for (target, rx) in asked {
                match tokio::time::timeout_at(deadline, rx).await {
                    Ok(Ok(status)) => all.push(ChannelOverview { target, status: Some(status) }),
                    // The channel ended meanwhile.
                    Ok(Err(_)) => {}
                    Err(_) => all.push(ChannelOverview { target, status: None }),
                }
            }
            all.sort_by(|a, b| {
                let name = |it: &ChannelOverview| it.status.as_ref().map(|it| it.name.clone());
                (name(a), a.target).cmp(&(name(b), b.target))
            });
            answer(reply, all);
        });
    }

    fn live(&self, target: Target) -> Option<ActorRef<channel::Message>> {
        match &self.entries.get(&target)?.phase {
            TargetPhase::Live { live, .. } => Some(live.actor.clone()),
            TargetPhase::Leaving { .. } | TargetPhase::Draining { .. } => None,
        }
    }

    fn refuse(&mut self) {
        self.closing = true;
        for entry in self.entries.values_mut() {
            for (_, reply) in entry.parked.drain(..) {
                answer(reply, WatchReply::Refused(WatchRefusal::Stopping));
            }
        }
    }

    fn close(&mut self) {
        self.refuse();
        for (_, live) in self.arguments.table.all() {
            let _ = live.actor.cast(channel::Message::Stop(EndReason::Stopped));
        }
    }
}
