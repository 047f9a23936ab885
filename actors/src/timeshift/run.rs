//! Writes the past of one channel: a reader of the live channel, as a recording is one.

use std::sync::Arc;
use std::time::Duration;

use domain::timeshift::TimeShiftMode;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::ring::{Ring, RingWriter};
use super::{Shared, blocking};
use crate::channel::RecordingReader;
use crate::recording_files::FolderError;
use crate::recording_files::file::Arrived;
use crate::recording_files::intake::{Batch, Intake, IntakeEnd};

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
    let joined = Intake::join(&shared.switchboard, channel, RecordingReader::past(), stop).await?;
    let Some(mut intake) = joined else { return Ok(()) };
    let of_writer = Arc::clone(ring);
    let mut writer = blocking(move || RingWriter::new(of_writer)).await?.map_err(|it| it.to_string())?;
    let mut has_stored = false;
    let end = loop {
        let Batch { packets, end, .. } = intake.next(writer.needs_times(), stop).await;
        has_stored |= !packets.is_empty();
        writer = append(shared, writer, packets).await?;
        if let Some(end) = end {
            break end;
        }
    };
    drop(intake);
    blocking(move || writer.finish()).await?.map_err(|it| it.to_string())?;
    match end {
        IntakeEnd::Lost(reason) if !has_stored => Err(reason),
        IntakeEnd::Lost(reason) => {
            info!(channel.uuid = %channel, "a channel whose past is kept ended: {reason}");
            Ok(())
        }
        IntakeEnd::Stopped => Ok(()),
    }
}

/// Appends packets. After an error the writer is gone, and its file is complete.
async fn append(shared: &Shared, mut writer: RingWriter, batch: Vec<Arrived>) -> Result<RingWriter, String> {
    let (settings, n_rings) = (shared.settings(), shared.running.lock().len());
    let appended = blocking(move || {
        writer.append(&batch, &settings, n_rings)?;
        Ok::<_, FolderError>(writer)
    });
    appended.await?.map_err(|it| it.to_string())
}
