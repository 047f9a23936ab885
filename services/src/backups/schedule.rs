//! Scheduled back-ups.

use std::sync::Arc;
use std::time::Duration;

use actors::{next_cron_time, now_ms};
use domain::backup_schedule::BackupSchedule;
use domain::core_settings::{BACKUP_SETTINGS, SYSTEM_SETTINGS, time_zone};
use domain::setting::CoreSetting;
use media::spawn_blocking;
use storage::{Models, Record};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{Backups, SCHEDULED, TaskState, without_result};
use crate::files::Folder;

/// A back-up that was due while the gateway was stopped is made this long after the start, in milliseconds.
const OVERDUE_DELAY_MS: i64 = 120_000;
/// Longest pause until the clock is read again, because it may be set.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// Makes back-ups by the schedule of the settings, and removes old ones. Runs until it is dropped.
pub async fn follow(backups: Backups) {
    let models = backups.0.models.clone();
    let mut changes = models.store.changes();
    let started_at = now_ms();
    let mut known = current(&models);
    let mut since = newest_scheduled(&backups).await.unwrap_or(started_at);
    loop {
        let due = next_due(&known, since, started_at);
        let pause = due.map(|it| Duration::from_millis(u64::try_from(it - now_ms()).unwrap_or_default()));
        tokio::select! {
            () = sleep(pause.unwrap_or(PAUSE_MAX).min(PAUSE_MAX)) => {}
            is_open = changes.next_in(CoreSetting::COLLECTION) => if !is_open { return },
        }
        let present = current(&models);
        if present != known {
            // A new schedule does not apply to times before it was set.
            (known, since) = (present, now_ms());
        } else if due.is_some_and(|it| it <= now_ms()) {
            since = now_ms();
            run(&backups, known.0.retention_count).await;
        }
    }
}

/// The schedule and the time zone.
type Known = (BackupSchedule, String);

fn current(models: &Models) -> Known {
    let settings = models.settings.load();
    let value = |key| settings.one_by("key", key).map(|it| &it.value);
    (BackupSchedule::from_setting(value(BACKUP_SETTINGS)), time_zone(value(SYSTEM_SETTINGS)).to_owned())
}

/// Returns when the next back-up is due, in milliseconds since 1970.
fn next_due((schedule, zone): &Known, since: i64, started_at: i64) -> Option<i64> {
    let due = next_cron_time(&schedule.cron()?, zone, since)?;
    Some(if due < started_at { started_at + OVERDUE_DELAY_MS } else { due })
}

/// Returns the time of the newest scheduled back-up.
async fn newest_scheduled(backups: &Backups) -> Option<i64> {
    let backups = backups.clone();
    let listed = spawn_blocking(move || backups.list().ok()).await.ok()??;
    listed.iter().filter(|it| it.name.starts_with(SCHEDULED)).map(|it| it.created_at).max()
}

/// Makes a back-up, and removes those that the schedule does not keep.
async fn run(backups: &Backups, retention_count: u32) {
    let inner = Arc::clone(&backups.0);
    let _working = backups.0.working.lock().await;
    let made = spawn_blocking(move || {
        let made = inner.make_scheduled().map_err(|error| error.to_string())?;
        remove_old(&inner, retention_count).map_err(|error| error.to_string())?;
        Ok::<TaskState, String>(made)
    });
    let failure = match made.await {
        Ok(Ok(_)) => None,
        Ok(Err(reason)) => Some(reason),
        Err(error) => Some(without_result(error)),
    };
    if let Some(reason) = &failure {
        warn!("the scheduled back-up failed: {reason}");
    }
    *backups.0.schedule_failure.lock() = failure;
}

/// Removes the oldest scheduled back-ups. Those that were requested or uploaded are kept.
fn remove_old(inner: &super::Inner, retention_count: u32) -> std::io::Result<()> {
    if retention_count == 0 {
        return Ok(());
    }
    let scheduled = inner.list()?.into_iter().filter(|it| it.name.starts_with(SCHEDULED));
    for old in scheduled.skip(retention_count as usize) {
        inner.files.remove(Folder::Backups, &old.name)?;
        info!(backup = old.name, "removed an old back-up");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_up_that_was_due_while_the_gateway_was_stopped_follows_the_start() {
        let ms = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let daily = (BackupSchedule::default(), "UTC".to_owned());
        let (since, start) = (ms("2026-05-04T03:00:01Z"), ms("2026-05-04T20:00:00Z"));
        assert_eq!(next_due(&daily, since, start), Some(ms("2026-05-05T03:00:00Z")));
        let late = ms("2026-05-09T20:00:00Z");
        assert_eq!(next_due(&daily, since, late), Some(late + OVERDUE_DELAY_MS));
        let berlin = (BackupSchedule::default(), "Europe/Berlin".to_owned());
        assert_eq!(next_due(&berlin, since, start), Some(ms("2026-05-05T01:00:00Z")));
        let none = (BackupSchedule { is_enabled: false, ..BackupSchedule::default() }, "UTC".to_owned());
        assert_eq!(next_due(&none, since, start), None);
    }
}
