//! What goes wrong.

use uuid::Uuid;

use super::event::Event;
use super::machines::{Power, Process};
use super::{POOL, World};
use crate::cluster::NodeInput;
use crate::cluster::record::BootId;
use crate::cluster::rules::ClusterRule;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The machine does not reach the engine.
    Cut,
    /// Its messages to and from the engine become slow, and are lost after some seconds.
    Fading,
    /// Its messages to and from the engine take up to two seconds.
    Slow,
    /// Its messages are lost now and then.
    Lossy,
    /// It does not reach the other machines.
    Alone,
    /// Its process is killed, and starts again at the end.
    Killed,
    /// Its process is killed, and starts again at once.
    Restarted,
    /// A new process takes over, and the old one keeps its connections for a while.
    HandedOver,
    /// It loses power, and boots again at the end.
    PowerLost,
    /// It loses power and stays away.
    Gone,
    /// Its process is stopped by a signal.
    Frozen,
    Suspended,
    /// Its wall clock jumps.
    ClockJump,
    /// The engine replaces its leader.
    EngineDown,
    /// The engine restarts.
    EngineRestart,
    /// The engine restarts, and has lost its last writes.
    EngineRollback,
}

pub(super) const FAULTS: [Fault; 16] = [
    Fault::Cut,
    Fault::Fading,
    Fault::Slow,
    Fault::Lossy,
    Fault::Alone,
    Fault::Killed,
    Fault::Restarted,
    Fault::HandedOver,
    Fault::PowerLost,
    Fault::Gone,
    Fault::Frozen,
    Fault::Suspended,
    Fault::ClockJump,
    Fault::EngineDown,
    Fault::EngineRestart,
    Fault::EngineRollback,
];

impl Fault {
    /// Connections of the machine may outlast their leases at the provider. Only their entries, which cool, count then.
    pub(super) fn vanishes(self) -> bool {
        matches!(self, Self::PowerLost | Self::Gone | Self::Suspended)
    }
}

impl World {
    pub(super) fn begin(&mut self, fault: Fault, machine: usize) {
        let now = self.now;
        let is_of_process = matches!(fault, Fault::Killed | Fault::Restarted | Fault::HandedOver);
        match self.machines[machine].power {
            Power::Off => return,
            Power::Suspended if is_of_process => return,
            _ => {}
        }
        match fault {
            Fault::Cut => {
                self.machines[machine].is_cut = true;
                self.disconnect(machine);
            }
            Fault::Fading => {
                self.machines[machine].is_slow = true;
                let delay = self.random.number_in(1_000..8_000);
                self.after(delay, Event::Fault { fault: Fault::Cut, machine, is_over: false });
            }
            Fault::Slow => self.machines[machine].is_slow = true,
            Fault::Lossy => self.machines[machine].is_lossy = true,
            Fault::Alone => self.machines[machine].is_alone = true,
            Fault::HandedOver => self.hand_over(machine),
            Fault::Killed | Fault::Restarted => {
                if self.random.permille(300)
                    && let Some(old) = self.machines[machine].old.as_ref().map(|it| it.id)
                {
                    return self.kill_one(machine, old);
                }
                self.kill(machine);
                if self.machines[machine].power == Power::Frozen {
                    self.wake(machine);
                }
                if fault == Fault::Restarted {
                    let delay = self.random.number_in(100..2_000);
                    self.after(delay, Event::Start(machine));
                }
            }
            Fault::PowerLost | Fault::Gone => {
                self.provider.machine_vanished(machine, now);
                let it = &mut self.machines[machine];
                (it.process, it.old) = (None, None);
                it.inbox.clear();
                it.power = Power::Off;
            }
            Fault::Frozen | Fault::Suspended => {
                let it = &mut self.machines[machine];
                if it.power != Power::On {
                    return;
                }
                it.stopped_at = now;
                if fault == Fault::Suspended {
                    it.power = Power::Suspended;
                    self.provider.machine_vanished(machine, now);
                } else {
                    it.power = Power::Frozen;
                    let rate = it.rate;
                    let clock = self.clock(machine);
                    let left = |it: &Process| (it.id, it.node.guard_at(clock).since(clock));
                    let guarded: Vec<_> = self.machines[machine].processes().map(left).collect();
                    for (process, left) in guarded {
                        let limit = left.as_millis() as u64 * 1_000 / rate;
                        if self.holds(ClusterRule::GuardKillsFrozen) {
                            self.after(limit, Event::Guard { machine, process, frozen_at: now });
                        }
                    }
                }
            }
            Fault::ClockJump => {
                let jump = self.random.number_in(0..60_000) as i64 - 30_000;
                self.machines[machine].jump_ms += jump;
                self.input_if_on(machine);
            }
            Fault::EngineDown => {
                self.engine.down_until = now + self.random.number_in(1_000..8_000);
            }
            Fault::EngineRestart | Fault::EngineRollback => {
                let n_lost =
                    if fault == Fault::EngineRollback { self.random.number_in(1..40) as usize } else { 0 };
                self.engine.restart(n_lost, now);
                self.engine.down_until = now + self.random.number_in(200..6_000);
                for machine in 0..self.machines.len() {
                    self.disconnect(machine);
                    let delay = if self.random.permille(700) { 500 } else { 15_000 };
                    let at = self.engine.down_until + self.random.number_in(1..delay);
                    self.at(at, Event::Connect(machine));
                }
            }
        }
    }

    pub(super) fn end(&mut self, fault: Fault, machine: usize) {
        match fault {
            Fault::Cut | Fault::Fading => {
                self.machines[machine].is_slow &= fault != Fault::Fading;
                self.machines[machine].is_cut = false;
                let delay = self.random.number_in(1..1_000);
                self.after(delay, Event::Connect(machine));
            }
            Fault::Slow => self.machines[machine].is_slow = false,
            Fault::Lossy => self.machines[machine].is_lossy = false,
            Fault::Alone => self.machines[machine].is_alone = false,
            Fault::Killed => self.start(machine),
            Fault::PowerLost if self.machines[machine].power == Power::Off => {
                self.last_process += 1;
                let boot = BootId(Uuid::from_u128(1_000 + u128::from(self.last_process)));
                let now = self.now;
                let it = &mut self.machines[machine];
                (it.boot, it.booted_at, it.suspended_ms, it.power) = (boot, now, 0, Power::On);
                self.start(machine);
            }
            Fault::Frozen if self.machines[machine].power == Power::Frozen => self.wake(machine),
            Fault::Suspended if self.machines[machine].power == Power::Suspended => {
                let it = &mut self.machines[machine];
                it.suspended_ms += self.now - it.stopped_at;
                let ids: Vec<_> = it.processes().map(|it| it.id).collect();
                for id in ids {
                    self.provider.process_resumed(id, self.now);
                }
                self.wake(machine);
            }
            _ => {}
        }
    }

    /// Lets a stopped process continue: it processes what has arrived in the meantime, and misses what is lost.
    pub(super) fn wake(&mut self, machine: usize) {
        let now = self.now;
        let it = &mut self.machines[machine];
        (it.power, it.woke_at) = (Power::On, now);
        let inbox = std::mem::take(&mut self.machines[machine].inbox);
        for event in inbox {
            self.happens(event);
        }
        self.input_if_on(machine);
        self.old_woke(machine);
        let Some(process) = &self.machines[machine].process else { return };
        let id = process.id;
        let dropped = process.sessions.iter().filter(|(lease, it)| {
            let is_open = self.provider.is_open(id, **lease);
            !is_open && !it.is_closing && it.granted.is_some()
        });
        let held = process.node.pool(POOL);
        let holds = |lease: &u64| held.is_some_and(|it| it.holds(*lease));
        let dropped: Vec<u64> = dropped.map(|it| *it.0).filter(holds).collect();
        for lease in dropped {
            self.open(machine, lease);
        }
    }

    pub(super) fn input_if_on(&mut self, machine: usize) {
        if self.machines[machine].power == Power::On {
            self.input(machine, NodeInput::Tick);
        }
    }
}
