//! Sends one channel as datagrams.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use domain::udp_output::{UdpOutput, UdpOutputMode};
use media::meter::Connection;
use media::ring::Tail;
use media::udp::{DatagramSchedule, DatagramSender, InterfaceError, SendFormat, SendTarget};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use crate::channel::WatchReply;
use crate::plans::Target;
use crate::switchboard::Switchboard;
use crate::udp_outputs::UdpOutputState;

/// Pauses between tries to play the channel.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Pause after a datagram that could not be sent. Those of this time are dropped.
const SEND_PAUSE: Duration = Duration::from_secs(1);

/// Why the sending ended.
enum End {
    /// It was asked to stop.
    Stopped,
    /// The channel ended, or somebody disconnected the output.
    Ended(String),
    /// Nothing could be sent.
    Failed(String),
}

/// Sends a channel until it is asked to stop. One that is sent while it is watched ends with the channel, because only
/// viewers start that again.
pub(super) async fn run(
    switchboard: &Switchboard,
    channel: Uuid,
    output: &UdpOutput,
    state: &Mutex<UdpOutputState>,
    stop: &CancellationToken,
) {
    let mut pause = RETRY_MIN;
    let mut progress = Progress { channel, output, state, last: None, is_sending: false };
    loop {
        match send(switchboard, channel, output, &mut progress, stop).await {
            End::Stopped => return,
            End::Ended(reason) if output.mode == UdpOutputMode::Watched => {
                info!(channel.uuid = %channel, "the output of a channel ended with it: {reason}");
                return;
            }
            End::Ended(_) => {
                pause = RETRY_MIN;
                progress.ended();
            }
            End::Failed(reason) => progress.failed(&reason),
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
}

/// Shows what the run does, and logs one line for all tries that fail in the same way.
struct Progress<'a> {
    channel: Uuid,
    output: &'a UdpOutput,
    state: &'a Mutex<UdpOutputState>,
    /// The reason of the last failure, until something is sent.
    last: Option<String>,
    is_sending: bool,
}

impl Progress<'_> {
    fn failed(&mut self, reason: &str) {
        if self.last.as_deref() != Some(reason) {
            let Self { channel, output, .. } = self;
            warn!(channel.uuid = %channel, to = %output.address, "a channel is not sent: {reason}");
            self.last = Some(reason.to_owned());
        }
        self.is_sending = false;
        *self.state.lock() = UdpOutputState::Failing(reason.to_owned());
    }

    fn sent(&mut self) {
        if self.is_sending {
            return;
        }
        self.is_sending = true;
        *self.state.lock() = UdpOutputState::Sending;
        if self.last.take().is_some() {
            info!(channel.uuid = %self.channel, to = %self.output.address, "a channel is sent again");
        }
    }

    fn ended(&mut self) {
        self.is_sending = false;
        *self.state.lock() = UdpOutputState::Starting;
    }
}

/// Joins the channel, and sends what it plays.
async fn send(
    switchboard: &Switchboard,
    channel: Uuid,
    output: &UdpOutput,
    progress: &mut Progress<'_>,
    stop: &CancellationToken,
) -> End {
    // First, so that no channel plays for an output that cannot be opened.
    let sender = match open(output) {
        Ok(sender) => sender,
        Err(reason) => return End::Failed(reason),
    };
    let connection = Arc::new(Connection::new(0, output.address.to));
    let reply = tokio::select! {
        reply = switchboard.send_out(Target::Channel(channel), connection.clone(), output.address) => reply,
        () = stop.cancelled() => return End::Stopped,
    };
    let tail = match reply {
        Ok(WatchReply::Tail { tail, .. }) => tail,
        Ok(WatchReply::Redirect(_) | WatchReply::Segments { .. }) => {
            let reason = "the stream profile of the channel sends players to the provider";
            return End::Failed(reason.to_owned());
        }
        Ok(WatchReply::Refused(refusal)) => return End::Failed(refusal.to_string()),
        Err(cause) => return End::Failed(cause.to_string()),
    };
    info!(channel.uuid = %channel, to = %output.address, "sending a channel");
    forward(tail, sender, &connection, progress, stop).await
}

fn open(output: &UdpOutput) -> Result<DatagramSender, String> {
    let interface = output.interface.as_deref().map(str::parse).transpose();
    let target = SendTarget {
        format: if output.address.is_rtp { SendFormat::Rtp } else { SendFormat::Udp },
        address: output.address.to,
        interface: interface.map_err(|it: InterfaceError| it.to_string())?,
        ttl: output.ttl,
    };
    let (chance, _) = Uuid::new_v4().as_u64_pair();
    DatagramSender::open(&target, chance).map_err(|cause| match &output.interface {
        Some(interface) => format!("the network interface {interface} does not exist, or cannot send this"),
        None => cause.kind().to_string(),
    })
}

/// Sends what the channel plays, each packet when it is due.
async fn forward(
    mut tail: Tail,
    mut sender: DatagramSender,
    connection: &Connection,
    progress: &mut Progress<'_>,
    stop: &CancellationToken,
) -> End {
    let mut schedule = DatagramSchedule::default();
    let mut paused_until = None;
    loop {
        tokio::select! {
            chunk = tail.chunk() => match chunk {
                Ok(bytes) => schedule.push(&bytes, Instant::now()),
                Err(end) => return End::Ended(end.to_string()),
            },
            () = until(schedule.next_at()) => {}
            () = connection.cancel.cancelled() => return End::Ended("somebody disconnected it".to_owned()),
            () = stop.cancelled() => return End::Stopped,
        }
        let now = Instant::now();
        while let Some((due, packets)) = schedule.pop(now) {
            if paused_until.is_some_and(|it| now < it) {
                continue;
            }
            match sender.send(due, &packets).await {
                Ok(()) => {
                    connection.meter.wrote(packets.len());
                    progress.sent();
                    paused_until = None;
                }
                Err(cause) => {
                    progress.failed(&cause.kind().to_string());
                    paused_until = Some(now + SEND_PAUSE);
                }
            }
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
