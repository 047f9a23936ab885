//! A process group that is ours, from its start until nobody of it is left.

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

use crate::source::process::warden::Warden;

/// How long a program has to end when it is asked to.
const TERM_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a killed one may take to be gone. One that hangs in the kernel takes longer; it reads nothing any more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Nothing tells of the end of a process that is not our child, so it is looked for: this often.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A process group and its leader, which is our child. Field order is drop order: a warden is dismissed while the number
/// is still the group's.
pub(super) struct Group {
    warden: Option<Warden>,
    leader: Leader,
    /// Comes when some child of ours has exited, maybe the leader.
    exits: Signals,
}

/// The leader until it is reaped. Its number is the group's, and no other's until then.
struct Leader {
    child: Child,
    pid: Pid,
    is_reaped: bool,
}

impl Group {
    /// The group that this child leads. When this fails the child is killed.
    pub(super) fn new(child: Child) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        let leader = Leader { child, pid, is_reaped: false };
        let exits = signal(SignalKind::child())?;
        Ok(Self { warden: None, leader, exits })
    }

    /// Has a shell watch over the group, in case that we are killed.
    pub(super) fn watch(&mut self, shell: &str) -> io::Result<()> {
        self.warden = Some(Warden::start(shell, self.leader.pid)?);
        Ok(())
    }

    /// Sends a signal to everybody in the group.
    pub(super) fn signal(&self, signal: Signal) {
        self.leader.signal(signal);
    }

    /// Waits until the leader has exited, and leaves it to be reaped.
    pub(super) async fn exited(&mut self) {
        while self.status().is_none() {
            // Listened for since before the first look.
            next(&mut self.exits).await;
        }
    }

    /// How the leader exited, if it has.
    pub(super) fn status(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.leader.pid), options).ok().flatten()
    }

    /// Ends a group that was asked to end, and waits until nobody of it is left.
    pub(super) async fn end(&mut self) {
        // Whether it ended by itself changes nothing: others of the group may be left.
        let _ = timeout(TERM_TIMEOUT, self.exited()).await;
        self.signal(Signal::KILL);
        if timeout(KILL_TIMEOUT, self.gone()).await.is_err() {
            warn!(pid = self.leader.pid.as_raw_nonzero().get(), "a program of a stream cannot be killed");
        }
    }

    async fn gone(&mut self) {
        self.unwatched().await;
        self.exited().await;
        self.leader.reap();
        loop {
            // Those whose parent is gone come to us where we are the first process of a container.
            while let Ok(Some(_)) = waitpgid(self.leader.pid, WaitOptions::NOHANG) {}
            if test_kill_process_group(self.leader.pid).is_err() {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Dismisses the warden and waits until it is gone, which takes as long as it takes the group that was killed.
    async fn unwatched(&mut self) {
        let Some(warden) = &mut self.warden else { return };
        warden.dismiss();
        while !warden.is_gone() {
            next(&mut self.exits).await;
        }
        self.warden = None;
    }
}

/// Waits for the exit of some child. Its signal ends with the runtime, as does whoever waits.
async fn next(exits: &mut Signals) {
    if exits.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

impl Leader {
    fn signal(&self, signal: Signal) {
        if !self.is_reaped {
            // An error means that nobody is left.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn reap(&mut self) {
        self.is_reaped |= matches!(self.child.try_wait(), Ok(Some(_)));
    }
}

impl Drop for Leader {
    /// For the ways that do not lead through [`Group::end`]: a runtime that shuts down, a start that failed.
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal(Signal::KILL);
            self.reap();
        }
    }
}
