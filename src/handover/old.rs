//! The old process of a restart, as long as it is a gateway.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::Listeners;
use super::channel::{Channel, Message};
use super::parent::PARENT_MODE;

/// Longest time for a new process to read its configuration.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);
/// The argument of a new process: it takes over.
const TAKE_OVER: &str = "--take-over";
/// Name in process lists.
const NAME: &str = "headwater";

/// How the gateway was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// The file of the program, which an update may have replaced since.
    program: PathBuf,
    arguments: Vec<String>,
}

impl Invocation {
    /// Returns how this process was started. To be called before an update can replace its file.
    ///
    /// # Errors
    /// The file is unknown, or an argument is not UTF-8.
    pub fn from_this_process() -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("failed to find the file of this program")?;
        let arguments = std::env::args_os().skip(1).map(|it| it.into_string().ok());
        let arguments = arguments.collect::<Option<Vec<_>>>().context("an argument is not UTF-8")?;
        let arguments = arguments.into_iter().filter(|it| it != TAKE_OVER).collect();
        Ok(Self { program, arguments })
    }

    /// Returns the same with another program.
    pub(super) fn with_program(&self, program: &str) -> Self {
        Self { program: program.into(), ..self.clone() }
    }
}

/// A new process that waits for the store.
#[derive(Debug)]
pub struct Prepared {
    pub(super) channel: Channel,
    pub(super) successor: u32,
    pub(super) invocation: Invocation,
    pub(super) listeners: Listeners,
    /// Whether it counts slots that this process keeps.
    pub(super) counts_slots: bool,
    /// Whether it continues the membership of this process in a cluster.
    pub(super) continues_membership: bool,
    /// Whether it has the store and accepts connections.
    pub(super) is_started: bool,
}

/// Starts a new process, and waits until it has read its configuration and has its sockets. Blocks.
///
/// # Errors
/// It did not get that far. It has ended then, and nothing has changed.
pub fn prepare(invocation: Invocation, listeners: Listeners) -> anyhow::Result<Prepared> {
    let (channel, theirs) = Channel::pair().context("failed to create a channel")?;
    let mut child = Command::new(&invocation.program)
        .arg0(NAME)
        .args(&invocation.arguments)
        .arg(TAKE_OVER)
        .stdin(theirs.into_stdio())
        // A terminal signals this group only, and the signal is passed on.
        .process_group(0)
        .spawn()
        .with_context(|| format!("failed to start {}", invocation.program.display()))?;
    match wait_until_prepared(&channel, &listeners) {
        Ok((counts_slots, continues_membership)) => Ok(Prepared {
            channel,
            successor: child.id(),
            invocation,
            listeners,
            counts_slots,
            continues_membership,
            is_started: false,
        }),
        Err(error) => {
            let _ = child.kill();
            Err(explain(error, &mut child))
        }
    }
}

fn wait_until_prepared(channel: &Channel, listeners: &Listeners) -> anyhow::Result<(bool, bool)> {
    let Listeners { api, player } = listeners;
    let message = Message::Listeners { api: api.0, player: player.0 };
    channel.send(&message, &[api.1.as_fd(), player.1.as_fd()])?;
    match channel.receive(PREPARE_TIMEOUT)?.0 {
        Message::Prepared { counts_slots, continues_membership } => Ok((counts_slots, continues_membership)),
        Message::Failed { reason } => bail!("{reason}"),
        _ => bail!("it is of another version"),
    }
}

/// Adds how the process ended, if it did so without a reason.
fn explain(error: anyhow::Error, child: &mut Child) -> anyhow::Error {
    let status = child.wait();
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    match (kind, status) {
        (Some(ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe), Ok(status)) => {
            anyhow::anyhow!("the new process ended early ({status}); its messages are in the log")
        }
        (Some(ErrorKind::TimedOut), _) => {
            anyhow::anyhow!("the new process was not prepared within {} s", PREPARE_TIMEOUT.as_secs())
        }
        _ => error.context("the new process cannot start"),
    }
}

impl Prepared {
    /// Returns whether this process may serve its viewers beside the new one.
    pub fn may_serve_beside(&self, is_member: bool) -> bool {
        self.counts_slots && (self.continues_membership || !is_member)
    }

    /// Replaces this process by the parent of the new one, which then gets the store if it does not have it. To be called when nothing of the
    /// gateway is left to do. Returns only if that fails.
    pub fn leave(self, own_binary: &str) -> io::Error {
        let Self { channel, successor, invocation, listeners: Listeners { api, player }, is_started, .. } =
            self;
        let message = Message::Parent { successor, invocation, api: api.0, player: player.0, is_started };
        let sent = Channel::pair().and_then(|(ours, theirs)| {
            ours.send(&message, &[channel.as_fd(), api.1.as_fd(), player.1.as_fd()])?;
            Ok(theirs)
        });
        match sent {
            Ok(theirs) => {
                Command::new(own_binary).arg0(NAME).arg(PARENT_MODE).stdin(theirs.into_stdio()).exec()
            }
            Err(error) => error,
        }
    }
}
