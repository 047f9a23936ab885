//! The old process while its viewers stay: the parent of the new process, and the origin of channels for it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use domain::cluster::BootTime;
use media::{serve_rings, spawn_blocking};
use rustix::process::{Pid, WaitStatus};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::channel::{Channel, Message};
use super::old::Prepared;
use super::parent::{
    Parent, ParentEvent, RETRIES, RETRY_PAUSE, START_TIMEOUT, exit_code, pid, prepare_again,
};
use crate::gateway::DrainingGateway;

/// Maximum number of rings that the new process reads at the same time.
const RINGS_MAX: usize = 1_024;
/// Messages of the new process that wait to be handled.
const MESSAGES_MAX: usize = 16;
/// The reader of messages looks this often whether it is still needed.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(60);

/// How the time with two processes ended.
pub enum BesideEnd {
    /// The viewers are gone; the new process runs.
    Leave(Box<Prepared>),
    /// The new process has ended.
    Ended(ExitCode),
}

/// Why the time with one new process ended.
enum End {
    /// It runs, and the viewers are gone.
    Alone,
    /// It ran, and has ended.
    Ended(ExitCode),
    /// It does not start. The status if it has ended.
    Failed(anyhow::Error, Option<WaitStatus>),
}

impl End {
    fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::Failed(error.into(), None)
    }
}

/// Gives the store, which is closed, to the new process, and serves the viewers beside it for at most this time.
///
/// # Errors
/// No new process could start.
pub async fn serve_beside(
    mut prepared: Prepared,
    gateway: DrainingGateway,
    drain_time: Duration,
    packets: &Handle,
) -> anyhow::Result<BesideEnd> {
    let mut parent = Parent::beside_gateway()?;
    let deadline = Instant::now() + drain_time;
    let mut n_retries = 0;
    let ended = loop {
        let successor = pid(prepared.successor)?;
        let channel = Arc::new(prepared.channel.try_clone()?);
        let beside = Beside { channel, successor, gateway: &gateway, deadline, packets };
        let (error, status) = match beside.run(&mut parent).await {
            End::Alone => break BesideEnd::Leave(Box::new(Prepared { is_started: true, ..prepared })),
            End::Ended(code) => break BesideEnd::Ended(code),
            End::Failed(error, status) => (error, status),
        };
        let status = match status {
            Some(status) => status,
            None => parent.end(successor).await?,
        };
        if parent.is_stopping() {
            break BesideEnd::Ended(exit_code(status));
        }
        n_retries += 1;
        ensure!(n_retries <= RETRIES, "no new process could start: {error:#}");
        warn!("the new process did not start, so the old program starts again: {error:#}");
        sleep(RETRY_PAUSE).await;
        prepared = prepare_again(prepared.invocation, prepared.listeners).await?;
    };
    let mut stopping = std::pin::pin!(gateway.stop());
    loop {
        tokio::select! {
            _ = &mut stopping => return Ok(ended),
            signal = parent.signal() => match &ended {
                BesideEnd::Leave(prepared) => parent.pass_on(signal, pid(prepared.successor)?),
                BesideEnd::Ended(_) => {}
            },
        }
    }
}

/// One new process.
struct Beside<'a> {
    channel: Arc<Channel>,
    successor: Pid,
    gateway: &'a DrainingGateway,
    deadline: Instant,
    packets: &'a Handle,
}

impl Beside<'_> {
    async fn run(self, parent: &mut Parent) -> End {
        let (sending, slots) = (Arc::clone(&self.channel), self.gateway.slots());
        let incarnation = self.gateway.incarnation();
        let sent = spawn_blocking(move || {
            for slot in slots {
                sending.send_patiently(&Message::Slot { slot })?;
            }
            if let Some(incarnation) = incarnation {
                sending.send_patiently(&Message::Membership { incarnation })?;
            }
            sending.send_patiently(&Message::Go { is_serving: true })
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return End::failed(anyhow::Error::new(error).context("it has ended")),
            Err(error) => return End::failed(error),
        }
        let mut messages = self.messages();
        let rings = Arc::new(Semaphore::new(RINGS_MAX));
        let start_deadline = Instant::now() + START_TIMEOUT;
        let (mut is_started, mut is_connected, mut has_leases) = (false, true, true);
        loop {
            tokio::select! {
                message = messages.recv(), if is_connected => match message {
                    Some((Message::Ready, _)) => is_started = true,
                    Some((Message::Ring, fds)) => self.serve_ring(fds, &rings),
                    Some((Message::Prolonged { until_ms }, _)) => {
                        self.gateway.prolonged(BootTime(Duration::from_millis(until_ms)));
                    }
                    Some((Message::EndLeases, _)) => self.gateway.end_leases(),
                    Some((Message::Failed { reason }, _)) => {
                        return End::failed(anyhow::anyhow!("{reason}"));
                    }
                    Some(_) if !is_started => return End::failed(anyhow::anyhow!("it is of another version")),
                    // Its end is noticed below.
                    Some(_) | None => is_connected = false,
                },
                holder = self.gateway.next_return() => {
                    // If the new process has ended, that is noticed below.
                    let _ = self.channel.send(&Message::Returned { holder }, &[]);
                }
                () = self.gateway.leases_closed(), if has_leases => {
                    has_leases = false;
                    warn!("this process has lost its leases in the cluster, and has closed their connections");
                    let _ = self.channel.send(&Message::LeasesClosed, &[]);
                }
                () = self.gateway.emptied(), if is_started => return End::Alone,
                () = sleep_until(self.deadline), if is_started => {
                    info!("the time for viewers of the process before the restart is over");
                    return End::Alone;
                }
                () = sleep_until(start_deadline), if !is_started => {
                    return End::failed(anyhow::anyhow!("it did not start within {} s", START_TIMEOUT.as_secs()));
                }
                event = parent.next(self.successor) => match event {
                    Ok(ParentEvent::Signal(signal)) => {
                        parent.pass_on(signal, self.successor);
                        if parent.is_stopping() && is_started {
                            return End::Alone;
                        }
                    }
                    Ok(ParentEvent::Ended(status)) if is_started => {
                        warn!("the new process has ended, so this one ends its streams");
                        return End::Ended(exit_code(status));
                    }
                    Ok(ParentEvent::Ended(status)) => {
                        return End::Failed(anyhow::anyhow!("it has ended"), Some(status));
                    }
                    Err(error) => return End::failed(error),
                },
            }
        }
    }

    /// Receives the messages of the new process on a thread, until it closes the channel.
    fn messages(&self) -> mpsc::Receiver<(Message, Vec<OwnedFd>)> {
        let (sender, messages) = mpsc::channel(MESSAGES_MAX);
        let channel = Arc::clone(&self.channel);
        // Without a thread, the sender is gone, and so the channel counts as closed.
        drop(spawn_blocking(move || {
            while !sender.is_closed() {
                match channel.receive(RECEIVE_TIMEOUT) {
                    Ok(received) => {
                        if sender.blocking_send(received).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                    Err(_) => return,
                }
            }
        }));
        messages
    }

    /// Answers requests for rings over a connection of the new process.
    fn serve_ring(&self, fds: Vec<OwnedFd>, rings: &Arc<Semaphore>) {
        let (Ok(permit), Some(fd)) = (Arc::clone(rings).try_acquire_owned(), fds.into_iter().next()) else {
            return warn!("the new process reads too many channels");
        };
        let directory = self.gateway.rings();
        self.packets.spawn(async move {
            let _permit = permit;
            let stream = UnixStream::from(fd);
            let served = async {
                stream.set_nonblocking(true)?;
                serve_rings(tokio::net::UnixStream::from_std(stream)?, directory).await
            };
            if let Err(error) = served.await {
                tracing::debug!("the new process no longer reads a channel: {error}");
            }
        });
    }
}
