//! `/api/backups/schedule/`: the schedule of back-ups.

use std::sync::Arc;

use domain::backup_schedule::{BackupFrequency, BackupSchedule, RETENTION_MAX};
use domain::core_settings::BACKUP_SETTINGS;
use http::StatusCode;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::reply::Refusal;

use crate::api::core::change_setting;
use crate::choice::{Named, choice};
use crate::context::RestCall;

/// When back-ups are made, and how many are kept. Scheduled back-ups have no passphrase.
#[derive(Clone, Debug, Serialize, View)]
#[resource(edit = BackupScheduleEdit)]
pub(crate) struct BackupScheduleView {
    /// Whether back-ups are made.
    #[field(edit)]
    enabled: bool,
    /// Every day or every week.
    #[field(edit, example = "daily")]
    frequency: Named<BackupFrequency>,
    /// Time of day in the time zone of the settings.
    #[field(edit, chars_max = 8, example = "03:00")]
    time: String,
    /// Day of weekly back-ups; 0 is Sunday.
    #[field(edit, at_least = 0, at_most = 6, example = "0")]
    day_of_week: u32,
    /// Number of scheduled back-ups that are kept; 0 keeps all. Others are never removed by the schedule.
    #[field(edit, at_least = 0, at_most = RETENTION_MAX as i64, example = "3")]
    retention_count: u32,
    /// Replaces frequency, time and day unless it is empty: minute, hour, day of month, month, day of week.
    #[field(edit, blank, chars_max = 256, example = "")]
    cron_expression: String,
}

choice!(BackupFrequency { Daily = "daily", Weekly = "weekly" });

pub(super) fn routes() -> Vec<Route> {
    const SHOW: &str = "/api/backups/schedule/";
    const UPDATE: &str = "/api/backups/schedule/update/";
    const WRONG: &str = "The time or the cron expression is not valid.";
    vec![
        Route::get(SHOW, ADMIN, "Returns the schedule of back-ups.", retrieve),
        Route::put(UPDATE, ADMIN, "Updates the schedule of back-ups.", update)
            .refuses(StatusCode::BAD_REQUEST, WRONG),
        Route::patch(UPDATE, ADMIN, "Partially updates the schedule of back-ups.", update)
            .refuses(StatusCode::BAD_REQUEST, WRONG),
    ]
}

async fn retrieve(call: Call) -> Result<BackupScheduleView, Refusal> {
    let settings = call.rest().models.settings.load();
    let value = settings.one_by("key", BACKUP_SETTINGS).map(|it| &it.value);
    Ok(view(BackupSchedule::from_setting(value)))
}

async fn update(call: Call, edit: BackupScheduleEdit) -> Result<BackupScheduleView, Refusal> {
    let sent = members(edit);
    let context = Arc::clone(call.rest());
    call.write(move |write| {
        change_setting(write, &context, None, BACKUP_SETTINGS, |mut value| {
            value.extend(sent);
            value
        })
    })
    .await?;
    retrieve(call).await
}

/// Returns the sent fields as members of the setting.
fn members(edit: BackupScheduleEdit) -> Map<String, Value> {
    let sent = [
        ("schedule_enabled", edit.enabled.map(Value::from)),
        ("schedule_frequency", edit.frequency.map(|it| json!(it.0.name()))),
        ("schedule_time", edit.time.map(Value::from)),
        ("schedule_day_of_week", edit.day_of_week.map(Value::from)),
        ("retention_count", edit.retention_count.map(Value::from)),
        ("schedule_cron_expression", edit.cron_expression.map(Value::from)),
    ];
    sent.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn view(schedule: BackupSchedule) -> BackupScheduleView {
    BackupScheduleView {
        enabled: schedule.is_enabled,
        frequency: Named(schedule.frequency),
        time: schedule.time_text(),
        day_of_week: schedule.day_of_week.into(),
        retention_count: schedule.retention_count,
        cron_expression: schedule.cron_expression,
    }
}
