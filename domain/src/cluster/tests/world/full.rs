//! Schedules in which the origin of the channel uses the only connection of the account, and viewers watch on every
//! machine. One machine fails. The viewers of the others wait with filler, and none of them ends.

use std::sync::Arc;
use std::time::Duration;

use super::event::Event;
use super::faults::Fault;
use super::machines::{Power, Session};
use super::{POOL, World};
use crate::cluster::NodeInput;
use crate::cluster::owner::ChannelRole;
use crate::cluster::record::SlotPurpose;
use crate::cluster::slots::{SlotRequest, SlotWait};

/// Time without a packet after which viewers end. The sum of the waits is 50 s. `give_up_after` of the settings is 60 s;
/// the rest is for messages that are late or repeated several times, which this network has more often than others.
pub(in crate::cluster::tests) const GIVE_UP_MS: u64 = 66_000;
/// Time at which the machine fails. By then, all viewers watch.
const FAULT_AT_MS: u64 = 45_000;
/// Longest time for which it fails, if that ends.
const FAULT_MS_MAX: u64 = 30_000;
/// Time by which everybody watches again.
const END_MS: u64 = 160_000;
/// Shortest time in which a connection fades.
const FADING_MS_MIN: u64 = 10_000;
const LOOK_MS: u64 = 250;
/// Time for which a request waits before it is refused. Another one follows.
const REQUEST: Duration = Duration::from_secs(3);
/// Time for which a replaced origin waits for a picture of the next one.
const CONTENT_MS: u64 = 3_000;
/// Longest time from the message of a guard to a connection of another machine, without the release delay. Writes may be
/// repeated after a time-out.
const TOLD_MS: u64 = 8_000;

/// The faults of one machine, or of the engine.
const FAULTS: [Fault; 12] = [
    Fault::Cut,
    Fault::Fading,
    Fault::Slow,
    Fault::Lossy,
    Fault::Alone,
    Fault::Killed,
    Fault::Restarted,
    Fault::PowerLost,
    Fault::Gone,
    Fault::Frozen,
    Fault::Suspended,
    Fault::EngineDown,
];

/// The viewers.
pub(super) struct Viewing {
    give_up_ms: u64,
    /// The machine that fails; `None`: the engine does.
    faulty: Option<usize>,
    /// For each machine, the time of the last packet. `None`: it has shown nothing yet, or it has failed.
    fed_at: Vec<Option<u64>>,
    /// Time since which a replaced origin looks for a picture of the next one.
    replaced_at: Vec<Option<u64>>,
    /// Time at which another machine has a connection after the message of a guard.
    told_by: Option<u64>,
}

impl Viewing {
    pub(super) fn new(n_machines: usize, give_up_ms: u64) -> Self {
        let (fed_at, replaced_at) = (vec![None; n_machines], vec![None; n_machines]);
        Self { give_up_ms, faulty: None, fed_at, replaced_at, told_by: None }
    }
}

impl World {
    /// Schedules the start of the machines, one fault, and the looks.
    pub(super) fn plan_full(&mut self) {
        self.pools.truncate(1);
        if let Some(shared) = &mut self.pools[0].shared {
            shared.max_streams = 0;
        }
        for machine in 0..self.machines.len() {
            let at = self.random.number_in(0..4_000);
            self.machines[machine].power = Power::On;
            // Viewers measure their time by the same clocks.
            self.machines[machine].rate = 1_000;
            self.at(at, Event::Start(machine));
        }
        let fault = FAULTS[self.random.number_in(0..FAULTS.len() as u64) as usize];
        let machine = self.random.number_in(0..self.machines.len() as u64) as usize;
        let shortest = if fault == Fault::Fading { FADING_MS_MIN } else { 200 };
        let length = self.random.number_in(shortest..FAULT_MS_MAX);
        self.at(FAULT_AT_MS, Event::Fault { fault, machine, is_over: false });
        if fault != Fault::Gone {
            self.at(FAULT_AT_MS + length, Event::Fault { fault, machine, is_over: true });
            self.at(FAULT_AT_MS + FAULT_MS_MAX, Event::Start(machine));
        }
        if let Some(it) = &mut self.viewing {
            it.faulty = (fault != Fault::EngineDown).then_some(machine);
        }
        self.at(LOOK_MS, Event::Look);
    }

    /// Returns the lease of the connection that a machine has, or is waiting for.
    fn source(&self, machine: usize) -> Option<u64> {
        let process = self.machines[machine].process.as_ref()?;
        process.sessions.iter().find(|it| it.1.is_source && !it.1.is_closing).map(|it| *it.0)
    }

    fn plays_source(&self, machine: usize) -> bool {
        let it = &self.machines[machine];
        let is_on = it.power == Power::On;
        let process = it.process.as_ref().filter(|_| is_on);
        let source = process.zip(self.source(machine));
        source.is_some_and(|(process, lease)| self.provider.is_open(process.id, lease))
    }

    /// Returns whether the viewers of a machine get packets of a provider.
    fn is_fed(&self, machine: usize) -> bool {
        match self.role(machine) {
            Some(ChannelRole::Edge { from, epoch }) => {
                let from = from.0 as usize;
                self.machines[machine].power == Power::On
                    && self.is_linked(machine, from)
                    && self.role(from) == Some(ChannelRole::Origin { epoch })
                    && self.plays_source(from)
            }
            Some(_) => self.plays_source(machine),
            None => false,
        }
    }

    /// Asks for a connection if this machine is the origin and has none.
    pub(super) fn needs_source(&mut self, machine: usize) {
        let is_origin = matches!(self.role(machine), Some(ChannelRole::Origin { .. }));
        if self.viewing.is_none() || !is_origin || self.source(machine).is_some() {
            return;
        }
        let order: Arc<[_]> = [self.pools[0].clone()].into();
        let until = self.clock(machine) + REQUEST;
        let Some(process) = &mut self.machines[machine].process else { return };
        process.last_lease += 1;
        let lease = process.last_lease;
        let session = Session {
            order: order.clone(),
            granted: None,
            is_closing: false,
            is_probe: false,
            reopens: false,
            is_source: true,
        };
        process.sessions.insert(lease, session);
        let (holder, purpose, wait) = (lease, SlotPurpose::Live, SlotWait::Others);
        let request = SlotRequest { order, holder, purpose, wait, until };
        self.input(machine, NodeInput::Ask { pool: POOL, lease, request });
    }

    /// A connection or a request for one has ended.
    pub(super) fn source_ended(&mut self, machine: usize) {
        if self.viewing.is_some() {
            self.after(100, Event::NeedsSource(machine));
        }
    }

    /// Closes the connection of an origin that was replaced.
    pub(super) fn release_source(&mut self, machine: usize) {
        let Some(lease) = self.source(machine) else { return };
        let Some(process) = &mut self.machines[machine].process else { return };
        let id = process.id;
        if process.sessions.get(&lease).is_some_and(|it| it.granted.is_some()) {
            return self.end_session(machine, id, lease);
        }
        process.sessions.remove(&lease);
        self.input(machine, NodeInput::Cancel { pool: POOL, lease });
    }

    /// Returns whether a replaced origin follows the next one: when that has a picture, at the latest after 3 s.
    pub(super) fn follows(&mut self, machine: usize, from: usize) -> bool {
        let plays = self.plays_source(from);
        let has_source = matches!(self.role(machine), Some(ChannelRole::Pulling { has_source: true, .. }));
        let now = self.now;
        let Some(it) = &mut self.viewing else { return true };
        if !has_source || plays {
            it.replaced_at[machine] = None;
            return true;
        }
        now >= *it.replaced_at[machine].get_or_insert(now) + CONTENT_MS
    }

    /// The message of a guard was written.
    pub(super) fn guard_told(&mut self, machine: usize) {
        let release_delay = self.pools[0].release_delay.as_millis() as u64;
        let by = self.now + TOLD_MS + release_delay * 10 / 9;
        if let Some(it) = &mut self.viewing
            && it.faulty == Some(machine)
        {
            it.told_by = Some(by);
        }
    }

    /// Looks at the viewers of all machines.
    pub(super) fn look(&mut self) {
        let now = self.now;
        let fed: Vec<bool> = (0..self.machines.len()).map(|it| self.is_fed(it)).collect();
        let Some(it) = &mut self.viewing else { return };
        let mut ended = None;
        for (machine, is_fed) in fed.iter().enumerate() {
            if it.faulty == Some(machine) && now >= FAULT_AT_MS {
                it.fed_at[machine] = None;
            } else if *is_fed {
                it.fed_at[machine] = Some(now);
            }
            if it.fed_at[machine].is_some_and(|at| now > at + it.give_up_ms) {
                ended = Some(machine);
            }
        }
        if fed.iter().any(|it| *it) {
            it.told_by = None;
        }
        let is_late = it.told_by.is_some_and(|by| now > by);
        if let Some(machine) = ended {
            return self.violated(format!("the viewers of machine {machine}, which has not failed, end"));
        }
        if is_late {
            return self.violated("nobody has the connection of which a guard has told".to_owned());
        }
        let runs = |it: &usize| self.machines[*it].process.is_some();
        if now < END_MS {
            self.after(LOOK_MS, Event::Look);
        } else if let Some(machine) = (0..fed.len()).find(|it| runs(it) && !fed[*it]) {
            self.violated(format!("machine {machine} shows nothing in the end: {:?}", self.role(machine)));
        } else {
            self.is_over = true;
        }
    }
}
