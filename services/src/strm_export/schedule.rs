//! Scheduled exports.

use std::time::Duration;

use actors::{next_cron_time, now_ms};
use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::library_settings::ExportSettings;
use domain::setting::CoreSetting;
use storage::{Models, Record};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{StrmExports, export_settings};

/// Longest pause until the clock is read again, because it may be set.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// Exports by the schedule of the settings. Runs until it is dropped.
pub async fn follow(exports: StrmExports) {
    let models = exports.0.models.clone();
    let mut changes = models.store.changes();
    let mut known = current(&models);
    let mut since = now_ms();
    loop {
        let due = next_due(&known, since);
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
            run(&exports).await;
        }
    }
}

async fn run(exports: &StrmExports) {
    match exports.run().await.map(|it| it.outcome) {
        Some(Ok(report)) => info!(
            written = report.written,
            unchanged = report.unchanged,
            removed = report.removed,
            kept = report.kept,
            "exported films and series"
        ),
        Some(Err(reason)) => warn!("the scheduled export of films and series failed: {reason}"),
        None => {}
    }
}

/// The settings and the time zone.
type Known = (ExportSettings, String);

fn current(models: &Models) -> Known {
    let settings = models.settings.load();
    let system = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
    (export_settings(models), time_zone(system).to_owned())
}

/// Returns when the next export is due, in milliseconds since 1970.
fn next_due((settings, zone): &Known, since: i64) -> Option<i64> {
    if !settings.is_enabled {
        return None;
    }
    next_cron_time(&settings.cron_expression, zone, since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_due_by_the_schedule_in_the_time_zone_of_the_settings() {
        let ms = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let since = ms("2026-05-04T03:00:00Z");
        let enabled = ExportSettings { is_enabled: true, ..ExportSettings::default() };
        let utc = (enabled.clone(), "UTC".to_owned());
        assert_eq!(next_due(&utc, since), Some(ms("2026-05-04T04:30:00Z")));
        let berlin = (enabled, "Europe/Berlin".to_owned());
        assert_eq!(next_due(&berlin, since), Some(ms("2026-05-05T02:30:00Z")));
        assert_eq!(next_due(&(ExportSettings::default(), "UTC".to_owned()), since), None);
    }
}
