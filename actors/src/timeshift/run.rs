//! Writes the past of one channel: a reader of the live channel, as a recording is one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use domain::timeshift::TimeShiftMode;
use media::meter::Connection;
use media::ring::Tail;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::ring::{Ring, RingWriter};
use super::{Shared, blocking};
use crate::channel::WatchReply;
use crate::clock::now_ms;
use crate::plans::Target;
use crate::recorder::file::{Arrived, has_data};
use crate::recorder::{ReadingRecording, drain};

/// How often packets are written: a killed process loses the packets of this time.
const WRITE_PERIOD: Duration = Duration::from_millis(400);
/// Packets are written earlier if there are this many bytes.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Pauses between tries to play the channel.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Keeps the past of a channel until it is stopped. One of a channel that is watched ends with the channel, because only
/// viewers start that again.
pub(super) async fn run(
    shared: Arc<Shared>,
    channel: Uuid,
    ring: Arc<Ring>,
    mode: TimeShiftMode,
    stop: CancellationToken,
) {
    let mut pause = RETRY_MIN;
    while !stop.is_cancelled() {
        let played = play(&shared, channel, &ring, &stop).await;
        if played.is_ok() {
            pause = RETRY_MIN;
        }
        // One line for all tries that fail in the same way.
        let failure = played.err();
        if ring.note_failure(failure.as_deref())
            && let Some(reason) = failure
        {
            warn!(channel.uuid = %channel, "the past of a channel is not kept: {reason}");
        }
        if mode == TimeShiftMode::Watched {
            return;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = stop.cancelled() => {}
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
}

/// Stores the packets of one reader. An error is the reason why nothing is stored now.
async fn play(
    shared: &Shared,
    channel: Uuid,
    ring: &Arc<Ring>,
    stop: &CancellationToken,
) -> Result<(), String> {
    let connection = Arc::new(Connection::new(0, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
    let reading = ReadingRecording::past();
    let reply = tokio::select! {
        reply = shared.switchboard.record(Target::Channel(channel), connection.clone(), reading) => reply,
        () = stop.cancelled() => return Ok(()),
    };
    match reply {
        Ok(WatchReply::Tail { tail, .. }) => store(shared, channel, ring, tail, &connection, stop).await,
        Ok(WatchReply::Redirect(_)) => Err("players are sent to the provider".to_owned()),
        Ok(WatchReply::Refused(refusal)) => Err(refusal.to_string()),
        Err(cause) => Err(cause.to_string()),
    }
}

async fn store(
    shared: &Shared,
    channel: Uuid,
    ring: &Arc<Ring>,
    mut tail: Tail,
    connection: &Connection,
    stop: &CancellationToken,
) -> Result<(), String> {
    let of_writer = Arc::clone(ring);
    let mut writer = blocking(move || RingWriter::new(of_writer)).await?.map_err(|it| it.to_string())?;
    let (mut batch, mut n_bytes, mut has_stored) = (Vec::new(), 0, false);
    let mut ticks = interval(WRITE_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        let needs_times = writer.needs_times();
        let is_due = tokio::select! {
            chunk = tail.chunk(), if needs_times => match chunk {
                Ok(bytes) if has_data(&bytes) => {
                    n_bytes += bytes.len();
                    batch.push(Arrived { at: now_ms(), bytes });
                    n_bytes >= BATCH_BYTES_MAX
                }
                Ok(_) => false,
                Err(end) => break Some(end.to_string()),
            },
            _ = ticks.tick() => {
                if !needs_times && let Some(end) = drain(&mut tail, &mut batch) {
                    break Some(end);
                }
                if batch.iter().map(|it| it.bytes.len()).sum::<usize>() >= BATCH_BYTES_MAX {
                    // There may be more.
                    ticks.reset_immediately();
                }
                true
            }
            () = connection.cancel.cancelled() => break Some("somebody disconnected it".to_owned()),
            () = stop.cancelled() => break None,
        };
        if is_due {
            n_bytes = 0;
            has_stored |= !batch.is_empty();
            writer = append(shared, writer, std::mem::take(&mut batch)).await?;
        }
    };
    drop(tail);
    has_stored |= !batch.is_empty();
    let mut writer = append(shared, writer, batch).await?;
    blocking(move || writer.finish()).await?.map_err(|it| it.to_string())?;
    match ended {
        Some(reason) if !has_stored => Err(reason),
        Some(reason) => {
            info!(channel.uuid = %channel, "a channel whose past is kept ended: {reason}");
            Ok(())
        }
        None => Ok(()),
    }
}

/// Appends packets. After an error the writer is gone, and its file is complete.
async fn append(shared: &Shared, mut writer: RingWriter, batch: Vec<Arrived>) -> Result<RingWriter, String> {
    let (settings, n_rings) = (shared.settings(), shared.running.lock().len());
    let appended = blocking(move || {
        writer.append(&batch, &settings, n_rings)?;
        Ok::<_, crate::recorder::FolderError>(writer)
    });
    appended.await?.map_err(|it| it.to_string())
}
