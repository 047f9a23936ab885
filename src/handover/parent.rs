//! What the old process becomes: the parent of the new one.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use media::spawn_blocking;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait, waitpid};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::Listeners;
use super::channel::{Channel, Message};
use super::old::{Invocation, Prepared, prepare};
use crate::terminal::say_error;

/// First argument of the binary as a parent.
pub(super) const PARENT_MODE: &str = "parent-of-gateway";
/// This binary, also after an update has replaced the file.
const OWN_BINARY: &str = "/proc/self/exe";
/// Longest time for the new process to open the store and to start.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(300);
/// How often a process of this binary is started after the new one failed, and the pause before.
pub(super) const RETRIES: u32 = 5;
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time for a process that failed to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns whether the arguments are those of a parent.
pub fn is_parent(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.nth(1).is_some_and(|it| it == PARENT_MODE)
}

/// Gives the store to the new process, and waits until that ends. Signals are passed on to it. Returns its exit code.
pub fn run_parent() -> ExitCode {
    run().unwrap_or_else(|error| {
        say_error(&format!("headwater: {error:#}"));
        ExitCode::FAILURE
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let received = Channel::from_stdin()?.receive(Duration::from_secs(1));
    let (message, fds) = received.context("this command is for the gateway itself")?;
    let (
        Message::Parent { successor, invocation, api, player, is_started },
        Ok([channel, of_api, of_player]),
    ) = (message, <[_; 3]>::try_from(fds))
    else {
        bail!("this command is for the gateway itself");
    };
    let listeners =
        Listeners { api: (api, TcpListener::from(of_api)), player: (player, TcpListener::from(of_player)) };
    let channel = Channel::from_fd(channel);
    let (counts_slots, continues_membership) = (false, false);
    let prepared = Prepared {
        channel,
        successor,
        invocation,
        listeners,
        counts_slots,
        continues_membership,
        is_started,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(async { Parent::new()?.hand_over(prepared).await });
    runtime.shutdown_background();
    code
}

/// The signals that are passed on, and that a child has ended.
pub(super) struct Parent {
    term: SignalStream,
    int: SignalStream,
    restart: SignalStream,
    child: SignalStream,
    /// Whether somebody wants the gateway to end.
    is_stopping: bool,
    /// Whether this process still is a gateway, whose other children are not for the parent.
    is_gateway: bool,
}

/// An event that a parent handles.
pub(super) enum ParentEvent {
    Signal(Signal),
    Ended(WaitStatus),
}

impl Parent {
    /// Creates the parent that a gateway is while it serves its last viewers.
    pub(super) fn beside_gateway() -> io::Result<Self> {
        Ok(Self { is_gateway: true, ..Self::new()? })
    }

    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            restart: signal(SignalKind::user_defined2())?,
            child: signal(SignalKind::child())?,
            is_stopping: false,
            is_gateway: false,
        })
    }

    /// Hands the store over, if necessary to a process of this binary, and waits for the end.
    async fn hand_over(mut self, mut prepared: Prepared) -> anyhow::Result<ExitCode> {
        let mut n_retries = 0;
        loop {
            let Prepared { channel, successor, invocation, listeners, is_started, .. } = prepared;
            let successor = pid(successor)?;
            let started = if is_started {
                // Its end tells the new process that all slots of this one are free.
                drop(channel);
                Ok(())
            } else {
                self.start(channel, successor).await
            };
            let error = match started {
                Ok(()) => {
                    drop(listeners);
                    return Ok(exit_code(self.ended(successor).await?));
                }
                Err(error) => error,
            };
            let status = self.end(successor).await?;
            if self.is_stopping {
                return Ok(exit_code(status));
            }
            n_retries += 1;
            ensure!(n_retries <= RETRIES, "no new process could start: {error:#}");
            say_error(&format!(
                "headwater: the new process did not start, so the old program starts again: {error:#}"
            ));
            sleep(RETRY_PAUSE).await;
            prepared = prepare_again(invocation, listeners).await?;
        }
    }

    /// Gives the store to a process, and waits until it accepts connections.
    async fn start(&mut self, channel: Channel, successor: Pid) -> anyhow::Result<()> {
        channel.send(&Message::Go { is_serving: false }, &[]).context("it has ended")?;
        let mut receiving = spawn_blocking(move || channel.receive(START_TIMEOUT));
        loop {
            tokio::select! {
                received = &mut receiving => return match received? {
                    Ok((Message::Ready, _)) => Ok(()),
                    Ok((Message::Failed { reason }, _)) => bail!("{reason}"),
                    Ok(_) => bail!("it is of another version"),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => bail!("it has ended"),
                    Err(error) => Err(error.into()),
                },
                signal = self.signal() => self.pass_on(signal, successor),
            }
        }
    }

    /// Waits for the end of a process, and passes signals on.
    async fn ended(&mut self, process: Pid) -> io::Result<WaitStatus> {
        loop {
            match self.next(process).await? {
                ParentEvent::Ended(status) => return Ok(status),
                ParentEvent::Signal(signal) => self.pass_on(signal, process),
            }
        }
    }

    /// Waits for a signal, or for the end of a process. Cancel-safe.
    pub(super) async fn next(&mut self, process: Pid) -> io::Result<ParentEvent> {
        loop {
            if let Some(status) = self.reap(process)? {
                return Ok(ParentEvent::Ended(status));
            }
            tokio::select! {
                _ = self.child.recv() => {}
                signal = signal_of(&mut self.term, &mut self.int, &mut self.restart) => {
                    return Ok(ParentEvent::Signal(signal));
                }
            }
        }
    }

    /// Returns how a process ended, if it has.
    fn reap(&self, process: Pid) -> io::Result<Option<WaitStatus>> {
        if self.is_gateway {
            return Ok(waitpid(Some(process), WaitOptions::NOHANG)?.map(|it| it.1));
        }
        // Also of other processes, which the gateway started before, or which a container leaves to its first process.
        while let Some((ended, status)) = wait(WaitOptions::NOHANG)? {
            if ended == process {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Ends a process that failed.
    pub(super) async fn end(&mut self, process: Pid) -> io::Result<WaitStatus> {
        let ended = timeout(END_TIMEOUT, self.ended(process)).await;
        if let Ok(status) = ended {
            return status;
        }
        // It may have ended at this moment.
        let _ = kill_process(process, Signal::KILL);
        self.ended(process).await
    }

    pub(super) async fn signal(&mut self) -> Signal {
        signal_of(&mut self.term, &mut self.int, &mut self.restart).await
    }

    pub(super) fn pass_on(&mut self, signal: Signal, process: Pid) {
        self.is_stopping |= signal != Signal::USR2;
        // A process that has ended is noticed elsewhere.
        let _ = kill_process(process, signal);
    }
}

async fn signal_of(term: &mut SignalStream, int: &mut SignalStream, restart: &mut SignalStream) -> Signal {
    tokio::select! {
        _ = term.recv() => Signal::TERM,
        _ = int.recv() => Signal::INT,
        _ = restart.recv() => Signal::USR2,
    }
}

/// Prepares a process of this binary, whatever file has replaced it.
pub(super) async fn prepare_again(invocation: Invocation, listeners: Listeners) -> anyhow::Result<Prepared> {
    let again = invocation.with_program(OWN_BINARY);
    let mut prepared = spawn_blocking(move || prepare(again, listeners)).await??;
    prepared.invocation = invocation;
    Ok(prepared)
}

pub(super) fn pid(id: u32) -> anyhow::Result<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw).context("invalid process id")
}

/// Returns what a shell reports for a process that ended in this way.
pub(super) fn exit_code(status: WaitStatus) -> ExitCode {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|it| 128 + it));
    ExitCode::from(code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1))
}
