//! The new process of a restart.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use actors::{Predecessor, PredecessorMessage, PredecessorParts, PredecessorPort, RingConnector};
use anyhow::{Context, bail};

use super::Listeners;
use super::channel::{Channel, Message};

/// The old process sends the sockets at once.
const LISTENERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for the old process to end its streams and to close its store. Its own limits are shorter.
const GO_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Longest wait for one message of an old process that serves viewers.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Maximum number of slots that the old process may use.
const SLOTS_MAX: usize = 65_536;

/// The side of the new process.
#[derive(Debug)]
pub struct TakeOver {
    channel: Channel,
}

impl TakeOver {
    /// Receives the sockets of the old process over the standard input. Blocks.
    ///
    /// # Errors
    /// The standard input is not the channel that the old process makes.
    pub fn begin() -> anyhow::Result<(Self, Listeners)> {
        let channel = Channel::from_stdin().context("failed to use the standard input")?;
        let received = channel.receive(LISTENERS_TIMEOUT);
        let (message, fds) = received
            .context("failed to receive the sockets of the running gateway over the standard input")?;
        let (Message::Listeners { api, player }, Ok([of_api, of_player])) =
            (message, <[_; 2]>::try_from(fds))
        else {
            bail!("the running gateway is of another version");
        };
        let listeners = Listeners {
            api: (api, TcpListener::from(of_api)),
            player: (player, TcpListener::from(of_player)),
        };
        Ok((Self { channel }, listeners))
    }

    /// Reports that everything is prepared, and waits until the old process has closed its store. Returns the slots and the
    /// membership that it still uses, if it serves viewers beside this one. Blocks.
    ///
    /// # Errors
    /// The old process gave up, or has ended.
    pub(crate) fn wait_for_store(&self) -> io::Result<Option<PredecessorParts>> {
        let prepared = Message::Prepared { counts_slots: true, continues_membership: true };
        self.channel.send(&prepared, &[])?;
        let mut parts = PredecessorParts::default();
        loop {
            match self.channel.receive(GO_TIMEOUT)?.0 {
                Message::Slot { slot } if parts.slots.len() < SLOTS_MAX => parts.slots.push(slot),
                Message::Membership { incarnation } => parts.incarnation = Some(incarnation),
                Message::Go { is_serving } => return Ok(is_serving.then_some(parts)),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Returns what connects to the rings of the old process.
    pub(crate) fn ring_connector(self: &Arc<Self>) -> RingConnector {
        let this = Arc::clone(self);
        Box::new(move || {
            let (ours, theirs) = UnixStream::pair()?;
            this.channel.send(&Message::Ring, &[theirs.as_fd()])?;
            Ok(ours)
        })
    }

    /// Returns what tells the old process whether its leases are valid. A message is lost if it reads none: then its
    /// deadline ends them.
    pub(crate) fn predecessor_port(self: &Arc<Self>) -> PredecessorPort {
        let this = Arc::clone(self);
        Box::new(move |message| {
            let message = match message {
                PredecessorMessage::Prolonged { until } => {
                    Message::Prolonged { until_ms: u64::try_from(until.0.as_millis()).unwrap_or_default() }
                }
                PredecessorMessage::End => Message::EndLeases,
            };
            let _ = this.channel.send(&message, &[]);
        })
    }

    /// Follows the returns of slots on a thread, until the old process has ended.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn follow(self: &Arc<Self>, predecessor: Predecessor) -> io::Result<()> {
        let this = Arc::clone(self);
        let thread = std::thread::Builder::new().name("predecessor".to_owned());
        thread.spawn(move || {
            loop {
                match this.channel.receive(RECEIVE_TIMEOUT) {
                    Ok((Message::Returned { holder }, _)) => predecessor.returned(holder),
                    Ok((Message::LeasesClosed, _)) => predecessor.closed_shared(),
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                    Ok(_) | Err(_) => return predecessor.ended(),
                }
            }
        })?;
        Ok(())
    }

    /// Reports that this process accepts connections.
    pub fn ready(&self) {
        // If the old process is gone, nobody needs to know.
        let _ = self.channel.send(&Message::Ready, &[]);
    }

    /// Reports why this process cannot start.
    pub fn failed(&self, error: &anyhow::Error) {
        let mut reason = format!("{error:#}");
        reason.truncate(reason.floor_char_boundary(1_000));
        // If the old process is gone, nobody needs to know.
        let _ = self.channel.send(&Message::Failed { reason }, &[]);
    }
}
