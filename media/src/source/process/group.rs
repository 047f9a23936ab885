//! A process group that the gateway starts, from its start until no process of it is left.

use std::io;
use std::process::Child;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process_group,
    test_kill_process_group, waitid, waitpgid,
};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::launcher::{Launcher, Registration};

/// Time for a program to exit after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for a killed group to disappear. A process that hangs in the kernel takes longer, but it reads
/// nothing any more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Polling interval for the end of processes that are not our children, for which no signal arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A process group and its leader, which is our child. Field order is drop order: the watchdog forgets the group
/// while the process id still belongs to it.
pub(super) struct Group {
    registration: Option<Registration>,
    leader: Leader,
    /// Signals the exit of any child, possibly the leader.
    exits: Signals,
}

/// The leader of the group. Its process id identifies the group and is not reused until the leader is reaped.
struct Leader {
    child: Child,
    pid: Pid,
    is_reaped: bool,
}

impl Group {
    /// Takes over the group of this child, and registers it with the watchdog. On failure the child is killed.
    pub(super) fn new(child: Child, launcher: &Launcher) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        let leader = Leader { child, pid, is_reaped: false };
        let registration = launcher.register(pid);
        let exits = signal(SignalKind::child())?;
        Ok(Self { registration, leader, exits })
    }

    /// Returns the id of the group.
    pub(super) fn id(&self) -> Pid {
        self.leader.pid
    }

    /// Sends a signal to all processes of the group.
    pub(super) fn signal(&self, signal: Signal) {
        self.leader.signal(signal);
    }

    /// Waits until the leader has exited, without reaping it.
    pub(super) async fn exited(&mut self) {
        while self.status().is_none() {
            // The signal handler was installed before the first check.
            next_exit(&mut self.exits).await;
            if let Some(registration) = &self.registration {
                registration.child_exited();
            }
        }
    }

    /// Returns the exit status of the leader, if it has exited.
    pub(super) fn status(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.leader.pid), options).ok().flatten()
    }

    /// Ends a group that got SIGTERM, and waits until no process of it is left.
    pub(super) async fn end(&mut self) {
        // The result does not matter: other processes of the group may be left.
        let _ = timeout(TERM_TIMEOUT, self.exited()).await;
        self.signal(Signal::KILL);
        if timeout(KILL_TIMEOUT, self.gone()).await.is_err() {
            warn!(pid = self.leader.pid.as_raw_nonzero().get(), "a program cannot be killed");
        }
    }

    async fn gone(&mut self) {
        self.exited().await;
        self.registration = None;
        self.leader.reap();
        loop {
            // Orphaned processes become our children if the gateway is the first process of a container.
            while let Ok(Some(_)) = waitpgid(self.leader.pid, WaitOptions::NOHANG) {}
            if test_kill_process_group(self.leader.pid).is_err() {
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// Waits for the exit of any child. The signal stream ends only with the runtime, which also ends the waiting
/// task.
async fn next_exit(exits: &mut Signals) {
    if exits.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

impl Leader {
    fn signal(&self, signal: Signal) {
        if !self.is_reaped {
            // An error means that no process is left.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn reap(&mut self) {
        self.is_reaped |= matches!(self.child.try_wait(), Ok(Some(_)));
    }
}

impl Drop for Leader {
    /// For the cases without [`Group::end`]: a runtime that shuts down, or a start that failed.
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal(Signal::KILL);
            self.reap();
        }
    }
}
