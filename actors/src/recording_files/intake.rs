//! The packets of a live channel for a file: a reader of the channel, and what it has read since the last write.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use media::meter::Connection;
use media::ring::Tail;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::file::{Arrived, has_data};
use crate::channel::{RecordingReader, WatchReply};
use crate::clock::now_ms;
use crate::plans::Target;
use crate::switchboard::Switchboard;

/// How often packets are written: a killed process loses the packets of this time.
pub(crate) const WRITE_PERIOD: Duration = Duration::from_millis(400);
/// Packets are written earlier if there are this many bytes.
pub(crate) const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Reason of gaps without a provider whose stream can be read.
const REDIRECTED: &str =
    "the stream profile of the channel sends players to the provider, so there is nothing to record";
const DISCONNECTED: &str = "another recording took the connection, or somebody disconnected this one";

/// A reader of a live channel. Dropping it leaves the channel.
pub(crate) struct Intake {
    tail: Tail,
    connection: Arc<Connection>,
    ticks: Interval,
    batch: Vec<Arrived>,
    n_bytes: usize,
    n_overruns: u64,
}

/// Packets that have to be written now. There may be none after some time without packets.
pub(crate) struct Batch {
    pub(crate) packets: Vec<Arrived>,
    /// Whether packets before these were lost, because they were read too late.
    pub(crate) is_overrun: bool,
    /// After the last one.
    pub(crate) end: Option<IntakeEnd>,
}

/// Why nothing more arrives.
pub(crate) enum IntakeEnd {
    /// The reader was asked to stop.
    Stopped,
    /// The channel ended, or somebody disconnected the reader.
    Lost(String),
}

impl Intake {
    /// Joins a channel, which starts if it does not play. `None` if it is asked to stop meanwhile.
    ///
    /// # Errors
    /// The reason why the channel cannot be read now.
    pub(crate) async fn join(
        switchboard: &Switchboard,
        channel: Uuid,
        reader: RecordingReader,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, String> {
        let connection = Arc::new(Connection::new(0, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
        let reply = tokio::select! {
            reply = switchboard.record(Target::Channel(channel), connection.clone(), reader) => reply,
            () = stop.cancelled() => return Ok(None),
        };
        let tail = match reply {
            Ok(WatchReply::Tail { tail, .. }) => tail,
            Ok(WatchReply::Redirect(_) | WatchReply::Segments { .. }) => return Err(REDIRECTED.to_owned()),
            Ok(WatchReply::Refused(refusal)) => return Err(refusal.to_string()),
            Err(cause) => return Err(cause.to_string()),
        };
        let mut ticks = interval(WRITE_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Some(Self { tail, connection, ticks, batch: Vec::new(), n_bytes: 0, n_overruns: 0 }))
    }

    /// Waits until somebody disconnects the reader. Returns the reason.
    pub(crate) async fn disconnected(&self) -> &'static str {
        self.connection.cancel.cancelled().await;
        DISCONNECTED
    }

    /// Reads packets until they have to be written. The first read begins at the newest random-access point.
    ///
    /// With `needs_times` each packet gets the time of its arrival. Otherwise packets wait in the ring until they are
    /// written, which spares a wake-up for each chunk.
    pub(crate) async fn next(&mut self, needs_times: bool, stop: &CancellationToken) -> Batch {
        let end = loop {
            tokio::select! {
                chunk = self.tail.chunk(), if needs_times => match chunk {
                    Ok(bytes) => {
                        self.push(Arrived { at: now_ms(), bytes });
                        if self.n_bytes >= BATCH_BYTES_MAX {
                            break None;
                        }
                    }
                    Err(end) => break Some(IntakeEnd::Lost(end.to_string())),
                },
                _ = self.ticks.tick() => {
                    let end = if needs_times { None } else { self.drain() };
                    if self.n_bytes >= BATCH_BYTES_MAX {
                        // There may be more.
                        self.ticks.reset_immediately();
                    }
                    break end;
                }
                () = self.connection.cancel.cancelled() => break Some(IntakeEnd::Lost(DISCONNECTED.to_owned())),
                () = stop.cancelled() => break Some(IntakeEnd::Stopped),
            }
        };
        self.n_bytes = 0;
        let n_overruns = self.tail.meter().overruns();
        let is_overrun = std::mem::replace(&mut self.n_overruns, n_overruns) < n_overruns;
        Batch { packets: std::mem::take(&mut self.batch), is_overrun, end }
    }

    /// Takes what waits in the ring, up to the size of a batch. Returns the end of the channel, if it has ended.
    fn drain(&mut self) -> Option<IntakeEnd> {
        let at = now_ms();
        while self.n_bytes < BATCH_BYTES_MAX {
            match self.tail.poll_chunk(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(bytes)) => self.push(Arrived { at, bytes }),
                Poll::Ready(Err(end)) => return Some(IntakeEnd::Lost(end.to_string())),
                Poll::Pending => return None,
            }
        }
        None
    }

    fn push(&mut self, arrived: Arrived) {
        if has_data(&arrived.bytes) {
            self.n_bytes += arrived.bytes.len();
            self.batch.push(arrived);
        }
    }
}
