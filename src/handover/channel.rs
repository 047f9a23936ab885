//! Messages between the processes, with file descriptors.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use actors::OtherSlot;
use config::Listen;
use domain::cluster::record::Incarnation;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use super::old::Invocation;

/// Maximum length of a message. The longest contains the arguments of the gateway.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How often and with which pause a message is sent again that the other process has no room for.
const SEND_TRIES: u32 = 1_000;
const SEND_PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of descriptors in a message.
const FDS_MAX: usize = 3;

/// A message.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(super) enum Message {
    /// To the new process: the configured addresses of the sockets that come with it, for the API and for players.
    Listeners { api: Listen, player: Listen },
    /// From the new process: it has read its configuration and has its sockets.
    Prepared {
        /// Whether it counts the slots of an old process that serves viewers beside it. Older versions do not.
        #[serde(default)]
        counts_slots: bool,
        /// Whether it continues the membership in a cluster of an old process that serves viewers beside it.
        #[serde(default)]
        continues_membership: bool,
    },
    /// To the new process, before `Go`: the old process uses this slot.
    Slot { slot: OtherSlot },
    /// To the new process, before `Go`: the incarnation of the old one, which it does not renew any more.
    Membership { incarnation: Incarnation },
    /// To the new process: the store is closed.
    Go {
        /// Whether the old process still serves viewers.
        #[serde(default)]
        is_serving: bool,
    },
    /// To the new process: this live channel of the old process has ended, and its slots are free.
    Returned { holder: u64 },
    /// To the new process: all connections with leases of the cluster are closed, because their time is over.
    LeasesClosed,
    /// From the new process: the incarnation of the old one is valid until this time since the boot of the machine.
    Prolonged { until_ms: u64 },
    /// From the new process: leases of the old one are not valid any more.
    EndLeases,
    /// From the new process, with a connection: it reads a ring of the old process over it.
    Ring,
    /// From the new process: it accepts connections.
    Ready,
    /// From the new process: it cannot start.
    Failed { reason: String },
    /// From the old process to what it becomes, with the channel to the new process and both sockets.
    Parent {
        successor: u32,
        invocation: Invocation,
        api: Listen,
        player: Listen,
        /// Whether the new process has the store and accepts connections.
        #[serde(default)]
        is_started: bool,
    },
}

/// One end of a connection that keeps the limits of messages.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

impl Channel {
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(a), Self(b)))
    }

    /// Takes the end that is the standard input of this process.
    pub(super) fn from_stdin() -> io::Result<Self> {
        Ok(Self(rustix::stdio::stdin().try_clone_to_owned()?))
    }

    pub(super) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    pub(super) fn into_stdio(self) -> Stdio {
        self.0.into()
    }

    /// Sends a message. Never waits, because no end sends more than the socket holds.
    pub(super) fn send(&self, message: &Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > MESSAGE_BYTES_MAX || fds.len() > FDS_MAX {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the message is too long"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "too many descriptors"));
        }
        // Without a signal if the other process has ended.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, flags)?;
        Ok(())
    }

    /// Sends a message, and waits while the other process has too many to read. Blocks.
    pub(super) fn send_patiently(&self, message: &Message) -> io::Result<()> {
        for _ in 0..SEND_TRIES {
            match self.send(message, &[]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(SEND_PAUSE),
                sent => return sent,
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Returns another handle of the same end.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits for a message. Blocks.
    ///
    /// # Errors
    /// `TimedOut` after this time; `UnexpectedEof` if the other process has ended; `InvalidData` for anything else than a
    /// message.
    pub(super) fn receive(&self, limit: Duration) -> io::Result<(Message, Vec<OwnedFd>)> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(limit))?;
        let mut bytes = vec![0; MESSAGE_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut buffers = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut buffers, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(ErrorKind::TimedOut.into()),
                // What a process that was killed leaves if it had not read everything.
                Err(Errno::CONNRESET) => return Err(ErrorKind::UnexpectedEof.into()),
                received => break received?,
            }
        };
        let fds = control.drain().flat_map(|it| match it {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let fds: Vec<_> = fds.collect();
        if received.bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(ErrorKind::InvalidData, "a message is too long"));
        }
        let message = serde_json::from_slice(&bytes[..received.bytes])
            .map_err(|_| io::Error::new(ErrorKind::InvalidData, "a message is not understood"))?;
        Ok((message, fds))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
