//! The new process of a restart.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, bail};

use super::Listeners;
use super::channel::{Channel, Message};

/// The old process sends the sockets at once.
const LISTENERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for the old process to end its streams and to close its store. Its own limits are shorter.
const GO_TIMEOUT: Duration = Duration::from_secs(3_600);

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
        let channel = Channel::of_stdin().context("failed to use the standard input")?;
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

    /// Reports that everything is prepared, and waits until the old process has closed its store. Blocks.
    ///
    /// # Errors
    /// The old process gave up, or has ended.
    pub fn wait_for_store(&self) -> io::Result<()> {
        self.channel.send(&Message::Prepared, &[])?;
        match self.channel.receive(GO_TIMEOUT)?.0 {
            Message::Go => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
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
