//! The schedule of back-ups, which is stored in the core settings.

use serde_json::{Map, Value, json};

/// When back-ups are made, and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSchedule {
    pub is_enabled: bool,
    pub frequency: BackupFrequency,
    /// Hour and minute, in the time zone of the core settings.
    pub time: (u8, u8),
    /// Day of weekly back-ups; 0 is Sunday.
    pub day_of_week: u8,
    /// Number of scheduled back-ups that are kept; 0 keeps all.
    pub retention_count: u32,
    /// Replaces frequency, time and day unless it is empty: minute, hour, day of month, month, day of week.
    pub cron_expression: String,
}

/// How often back-ups are made without a cron expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupFrequency {
    Daily,
    Weekly,
}

impl BackupFrequency {
    pub fn name(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Weekly => "weekly",
        }
    }
}

/// Maximum number of back-ups that a schedule keeps.
pub const RETENTION_MAX: u32 = 1_000;

impl Default for BackupSchedule {
    /// Every night at three; the last three are kept.
    fn default() -> Self {
        Self {
            is_enabled: true,
            frequency: BackupFrequency::Daily,
            time: (3, 0),
            day_of_week: 0,
            retention_count: 3,
            cron_expression: String::new(),
        }
    }
}

impl BackupSchedule {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut schedule = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = schedule.set(name, value);
        }
        schedule
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name. Whether a cron expression is valid is checked
    /// elsewhere.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        let number = value.as_u64();
        match name {
            "schedule_enabled" => self.is_enabled = value.as_bool().ok_or("must be true or false")?,
            "schedule_frequency" => {
                self.frequency = match value.as_str() {
                    Some("daily") => BackupFrequency::Daily,
                    Some("weekly") => BackupFrequency::Weekly,
                    _ => return Err("must be 'daily' or 'weekly'"),
                }
            }
            "schedule_time" => {
                let time = value.as_str().and_then(time_of_day);
                self.time = time.ok_or("must be a time of day, such as 03:00")?;
            }
            "schedule_day_of_week" => {
                let day = number.filter(|it| *it <= 6).and_then(|it| u8::try_from(it).ok());
                self.day_of_week = day.ok_or("must be 0 (Sunday) to 6 (Saturday)")?;
            }
            "retention_count" => {
                let count = number.and_then(|it| u32::try_from(it).ok()).filter(|it| *it <= RETENTION_MAX);
                self.retention_count = count.ok_or("must be 0 (keep all) to 1000")?;
            }
            "schedule_cron_expression" => {
                value
                    .as_str()
                    .ok_or("must be a cron expression")?
                    .trim()
                    .clone_into(&mut self.cron_expression);
            }
            _ => return Err("is not a setting"),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "schedule_enabled": self.is_enabled,
            "schedule_frequency": self.frequency.name(),
            "schedule_time": self.time_text(),
            "schedule_day_of_week": self.day_of_week,
            "retention_count": self.retention_count,
            "schedule_cron_expression": self.cron_expression,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns the time of day as `HH:MM`.
    pub fn time_text(&self) -> String {
        format!("{:02}:{:02}", self.time.0, self.time.1)
    }

    /// Returns the schedule as a cron expression; `None` if it is disabled.
    pub fn cron(&self) -> Option<String> {
        let (hour, minute) = self.time;
        self.is_enabled.then(|| match (&*self.cron_expression, self.frequency) {
            ("", BackupFrequency::Daily) => format!("{minute} {hour} * * *"),
            ("", BackupFrequency::Weekly) => format!("{minute} {hour} * * {}", self.day_of_week),
            (expression, _) => expression.to_owned(),
        })
    }
}

/// Reads a time of day such as `03:00` or `03:00:00`.
fn time_of_day(text: &str) -> Option<(u8, u8)> {
    let mut parts = text.trim().split(':');
    let mut part = |most: u8| {
        let text = parts.next()?;
        let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<u8>().ok().filter(|it| is_plain && *it <= most)
    };
    let time = (part(23)?, part(59)?);
    match parts.next() {
        None | Some("00") => parts.next().is_none().then_some(time),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_from_its_setting_and_written_as_it_was() {
        assert_eq!(BackupSchedule::from_setting(None), BackupSchedule::default());
        assert_eq!(BackupSchedule::default().cron().as_deref(), Some("0 3 * * *"));
        let value = json!({
            "schedule_enabled": true, "schedule_frequency": "weekly", "schedule_time": "04:30",
            "schedule_day_of_week": 2, "retention_count": 5, "schedule_cron_expression": "",
        });
        let schedule = BackupSchedule::from_setting(Some(&value));
        assert_eq!(Value::from(schedule.to_setting()), value);
        assert_eq!(schedule.cron().as_deref(), Some("30 4 * * 2"));
        let by_cron = BackupSchedule { cron_expression: "5 * * * *".to_owned(), ..schedule.clone() };
        assert_eq!(by_cron.cron().as_deref(), Some("5 * * * *"));
        assert_eq!(BackupSchedule { is_enabled: false, ..schedule }.cron(), None);
    }

    #[test]
    fn an_invalid_member_is_refused_and_changes_nothing() {
        let mut schedule = BackupSchedule::default();
        for (name, value) in [
            ("schedule_enabled", json!(1)),
            ("schedule_frequency", json!("yearly")),
            ("schedule_time", json!("24:00")),
            ("schedule_time", json!("3")),
            ("schedule_time", json!("03:00:01")),
            ("schedule_time", json!("+3:00")),
            ("schedule_day_of_week", json!(7)),
            ("schedule_day_of_week", json!(-1)),
            ("retention_count", json!(1001)),
            ("schedule_cron_expression", json!(null)),
            ("other", json!(1)),
        ] {
            assert!(schedule.set(name, &value).is_err(), "{name} {value}");
        }
        assert_eq!(schedule, BackupSchedule::default());
        assert_eq!(schedule.set("schedule_time", &json!("3:05:00")), Ok(()));
        assert_eq!(schedule.time, (3, 5));
    }
}
