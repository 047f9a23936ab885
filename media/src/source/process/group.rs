//! A process group that the gateway starts, from its start until no process of it is left.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, test_kill_process_group, waitid,
    waitpgid,
};
use tokio::net::unix::pipe::{Receiver, Sender};
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

/// A program that becomes the leader of a group.
pub(super) struct GroupCommand<'a> {
    /// Its name or absolute path.
    pub(super) program: &'a str,
    pub(super) arguments: &'a [String],
    /// All variables of its environment.
    pub(super) environment: Vec<(String, OsString)>,
    /// Its working folder.
    pub(super) folder: PathBuf,
}

/// Our ends of the outputs of a running program.
pub(super) struct Outputs {
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

/// Our ends of the pipes of a running program.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl ProgramEnd {
    /// Returns the exit code; `None` if a signal ended the program.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) => None,
        }
    }
}

impl Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "with status {code}"),
            Self::Signal(signal) => write!(f, "by signal {signal}"),
        }
    }
}

/// A process group and its leader, which is our child. Field order is drop order: the watchdog forgets the group once it is
/// killed, and while the process id still belongs to it.
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
    /// Starts a program without a shell in a group of its own. Its standard input is `input` or nothing. Blocks for
    /// milliseconds.
    ///
    /// # Errors
    /// The sentence why it cannot be started, which names the program without its folder.
    pub(super) fn start(
        command: GroupCommand<'_>,
        input: Option<OwnedFd>,
        launcher: &Launcher,
    ) -> Result<(Self, Outputs), String> {
        let GroupCommand { program, arguments, environment, folder } = command;
        let failed = |error: io::Error| format!("{}: {}", name_of(program), error.kind());
        let mut child = launcher
            .command(program, arguments, input)?
            .env_clear()
            .envs(environment)
            .current_dir(folder)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        // From here on the program ends with the group.
        let group = Self::new(child, launcher).map_err(failed)?;
        let Some((stdout, stderr)) = pipes else { return Err(format!("{} has no output", name_of(program))) };
        let outputs = Outputs {
            stdout: Receiver::from_owned_fd(stdout.into()).map_err(failed)?,
            stderr: Receiver::from_owned_fd(stderr.into()).map_err(failed)?,
        };
        Ok((group, outputs))
    }

    /// Does the same with a pipe as its standard input.
    ///
    /// # Errors
    /// See [`Group::start`].
    pub(super) fn start_with_input(
        command: GroupCommand<'_>,
        launcher: &Launcher,
    ) -> Result<(Self, Pipes), String> {
        let program = command.program;
        let failed = |error: io::Error| format!("{}: {}", name_of(program), error.kind());
        let (input, stdin) = io::pipe().map_err(failed)?;
        let (group, Outputs { stdout, stderr }) = Self::start(command, Some(input.into()), launcher)?;
        let stdin = Sender::from_owned_fd(stdin.into()).map_err(failed)?;
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    /// Takes over the group of this child, and registers it with the watchdog. On failure the child is killed.
    fn new(child: Child, launcher: &Launcher) -> io::Result<Self> {
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

    /// Asks all processes of the group to end.
    pub(super) fn ask_to_end(&self) {
        self.leader.signal(Signal::TERM);
        // A stopped process handles SIGTERM only after SIGCONT.
        self.leader.signal(Signal::CONT);
    }

    /// Kills all processes of the group without waiting.
    pub(super) fn kill(&self) {
        self.leader.signal(Signal::KILL);
    }

    /// Waits until the leader has exited, without reaping it.
    pub(super) async fn exited(&mut self) {
        while self.ended().is_none() {
            // The signal handler was installed before the first check.
            next_exit(&mut self.exits).await;
            if let Some(registration) = &self.registration {
                registration.child_exited();
            }
        }
    }

    /// Returns how the leader ended, if it has exited.
    pub(super) fn ended(&self) -> Option<ProgramEnd> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.leader.pid), options).ok().flatten()?;
        Some(match status.terminating_signal() {
            Some(signal) => ProgramEnd::Signal(signal),
            None => ProgramEnd::Code(status.exit_status().unwrap_or_default()),
        })
    }

    /// Kills a group that was asked to end if it does not do so in time, and waits until no process of it is left.
    pub(super) async fn end(&mut self) {
        // The result does not matter: other processes of the group may be left.
        let _ = timeout(TERM_TIMEOUT, self.exited()).await;
        self.kill();
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

/// Returns the name of a program without its folder, for messages.
fn name_of(program: &str) -> Cow<'_, str> {
    Path::new(program).file_name().unwrap_or_default().to_string_lossy()
}

/// Waits for the exit of any child. The signal stream ends only with the runtime, which also ends the waiting
/// task.
async fn next_exit(exits: &mut Signals) {
    if exits.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

impl Drop for Group {
    /// The gateway may exit while this runs on another thread: a group that the watchdog has forgotten must not run any more.
    fn drop(&mut self) {
        self.kill();
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
