//! The simulated provider: it counts the connections that it sees, and keeps counting closed ones for a while.

use crate::cluster::record::{Incarnation, ProcessId};
use crate::plan::SlotPool;

/// Time after which the provider drops a connection whose peer has vanished without a FIN: a little less than what
/// nodes with the fastest clock wait.
const DEAD_PEER_MS: u64 = 27_000;

#[derive(Debug)]
struct Socket {
    machine: usize,
    process: ProcessId,
    lease: u64,
    incarnation: Incarnation,
    pool: SlotPool,
    /// Time at which the provider stops counting it.
    gone_at: Option<u64>,
    is_closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Provider {
    sockets: Vec<Socket>,
}

impl Provider {
    /// Opens a connection. Returns the violation of a limit.
    pub(super) fn open(
        &mut self,
        machine: usize,
        (process, lease): (ProcessId, u64),
        incarnation: Incarnation,
        pool: &SlotPool,
        now: u64,
    ) -> Result<(), String> {
        self.sockets.retain(|it| it.gone_at.is_none_or(|it| now < it));
        let socket = Socket {
            machine,
            process,
            lease,
            incarnation,
            pool: pool.clone(),
            gone_at: None,
            is_closed: false,
        };
        self.sockets.push(socket);
        let n_used = self.sockets.iter().filter(|it| it.pool.profile == pool.profile).count();
        if pool.max_streams > 0 && n_used > pool.max_streams as usize {
            return Err(format!("{n_used} connections of {:?}: {:?}", pool.profile, self.sockets));
        }
        if let Some(group) = &pool.shared {
            let n_shared = self.sockets.iter().filter(|it| group.accounts.contains(&it.pool.account)).count();
            if group.max_streams > 0 && n_shared > group.max_streams as usize {
                return Err(format!("{n_shared} connections of the group: {:?}", self.sockets));
            }
        }
        Ok(())
    }

    /// The connection of a lease is closed in the regular way. The provider counts it for most of its release delay.
    pub(super) fn close(&mut self, process: ProcessId, lease: u64, now: u64) {
        for it in self.sockets.iter_mut().filter(|it| (it.process, it.lease) == (process, lease)) {
            if !it.is_closed {
                it.fin(now);
            }
        }
    }

    /// The process ended, and the kernel closed its connections.
    pub(super) fn process_ended(&mut self, process: ProcessId, now: u64) {
        for it in self.sockets.iter_mut().filter(|it| it.process == process && !it.is_closed) {
            it.fin(now);
        }
    }

    /// The machine vanished without a FIN.
    pub(super) fn machine_vanished(&mut self, machine: usize, now: u64) {
        for it in self.sockets.iter_mut().filter(|it| it.machine == machine && it.gone_at.is_none()) {
            it.gone_at = Some(now + DEAD_PEER_MS);
        }
    }

    /// The machine is back from a suspend, and the connections of its process live on unless the provider has dropped
    /// them.
    pub(super) fn process_resumed(&mut self, process: ProcessId, now: u64) {
        self.sockets.retain(|it| it.gone_at.is_none_or(|it| now < it));
        for it in self.sockets.iter_mut().filter(|it| it.process == process && !it.is_closed) {
            it.gone_at = None;
        }
    }

    /// Returns whether the connection of a lease is open.
    pub(super) fn is_open(&self, process: ProcessId, lease: u64) -> bool {
        self.sockets.iter().any(|it| (it.process, it.lease) == (process, lease) && !it.is_closed)
    }

    /// Returns whether a process has a connection of an incarnation.
    pub(super) fn has_open(&self, process: ProcessId, incarnation: Incarnation) -> bool {
        self.sockets.iter().any(|it| it.process == process && it.incarnation == incarnation && !it.is_closed)
    }
}

impl Socket {
    fn fin(&mut self, now: u64) {
        let lag = self.pool.release_delay.as_millis() as u64 * 9 / 10;
        self.is_closed = true;
        self.gone_at = Some(self.gone_at.unwrap_or(u64::MAX).min(now + lag));
    }
}
