//! A guide source: where programmes come from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::account::RefreshSchedule;
use crate::ids::{AccountId, GuideSourceId};
use crate::secret::Secret;
use crate::source_url::SourceUrl;

/// Days for which past programmes are kept if nothing else is configured.
pub const HISTORY_DAYS: u32 = 7;
/// Hours between two refreshes of a guide with an address if nothing else is configured.
pub const REFRESH_INTERVAL_HOURS: u32 = 24;

/// An origin of programmes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuideSource {
    pub id: GuideSourceId,
    /// Unique.
    pub name: String,
    pub kind: GuideSourceKind,
    /// The address of an XMLTV guide, or the base address of a service; often with credentials.
    #[serde(default)]
    pub url: Option<SourceUrl>,
    /// The login at the service.
    #[serde(default)]
    pub username: Option<String>,
    #[serde(default)]
    pub password: Option<Secret>,
    /// The account of a source of the kind [`GuideSourceKind::Panel`].
    #[serde(default)]
    pub account: Option<AccountId>,
    /// The name of an uploaded file in the data folder, which is read instead of an address.
    #[serde(default)]
    pub file: Option<String>,
    /// Programmes of an inactive source are not shown, and it is not refreshed.
    pub is_active: bool,
    #[serde(default)]
    pub schedule: RefreshSchedule,
    /// Whether somebody chose the schedule, or it got the default. Otherwise an earlier version created the source, in which
    /// "never" was the default.
    #[serde(default)]
    pub is_schedule_chosen: bool,
    /// Decides between sources with a channel of the same key: the larger value wins.
    #[serde(default)]
    pub priority: i32,
    /// Days for which past programmes are kept.
    #[serde(default = "history_days")]
    pub history_days: u32,
    /// The zone of times in the guide that state none; UTC without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Minutes by which its programmes are later than the guide says. Applied when programmes are read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset_minutes: i16,
    /// Settings of its kind, such as the patterns of a generated guide.
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

impl GuideSource {
    /// Creates an active source that is not refreshed by schedule. `at` is the time in milliseconds since 1970.
    pub fn new(id: GuideSourceId, name: impl Into<String>, kind: GuideSourceKind, at: i64) -> Self {
        Self {
            id,
            name: name.into(),
            kind,
            url: None,
            username: None,
            password: None,
            account: None,
            file: None,
            is_active: true,
            schedule: RefreshSchedule::default(),
            is_schedule_chosen: false,
            priority: 0,
            history_days: HISTORY_DAYS,
            time_zone: None,
            offset_minutes: 0,
            custom_properties: Map::new(),
            created_at: at,
            updated_at: at,
        }
    }

    /// Returns whether its guide is fetched from an address: `url`, or that of a panel or a service.
    pub fn has_address(&self) -> bool {
        match self.kind {
            GuideSourceKind::Xmltv => self.url.is_some(),
            GuideSourceKind::Panel => self.account.is_some(),
            GuideSourceKind::SchedulesDirect => true,
            GuideSourceKind::Generated | GuideSourceKind::Stream | GuideSourceKind::Written => false,
        }
    }

    /// Sets the default schedule of a source that has got an address, unless a schedule was chosen. A source that had an
    /// address before keeps its schedule, because nobody knows whether "never" was chosen.
    pub fn schedule_by_default(&mut self, had_address: bool) {
        if self.has_address() && !had_address && !self.is_schedule_chosen {
            if self.is_never_refreshed() {
                self.schedule.interval_hours = REFRESH_INTERVAL_HOURS;
            }
            self.is_schedule_chosen = true;
        }
    }

    /// Returns whether an admin has to be asked for a schedule: the guide is never refreshed, and nobody chose that.
    pub fn needs_schedule(&self) -> bool {
        self.is_active && self.has_address() && self.is_never_refreshed() && !self.is_schedule_chosen
    }

    /// Returns whether there is something that a refresh can read.
    pub fn has_location(&self) -> bool {
        match self.kind {
            GuideSourceKind::Xmltv => self.url.is_some() || self.file.is_some(),
            GuideSourceKind::Panel => self.account.is_some(),
            _ => true,
        }
    }

    /// Returns whether a refresh can replace a guide that is lost.
    pub fn can_be_refreshed(&self) -> bool {
        self.is_active && self.kind.is_refreshed() && self.has_location()
    }

    fn is_never_refreshed(&self) -> bool {
        self.schedule.interval_hours == 0 && self.schedule.cron.is_empty()
    }
}

fn is_zero(minutes: &i16) -> bool {
    *minutes == 0
}

fn history_days() -> u32 {
    HISTORY_DAYS
}

/// The kinds of guide sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuideSourceKind {
    /// XMLTV from an address or an uploaded file.
    Xmltv,
    /// The guide of an account at a panel or portal.
    Panel,
    /// The service Schedules Direct.
    SchedulesDirect,
    /// Made from the names of channels when it is read.
    Generated,
    /// Tables in the transport streams that are played.
    Stream,
    /// Programmes that clients of the REST interface write.
    Written,
}

impl GuideSourceKind {
    /// Returns the name in the REST interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xmltv => "xmltv",
            Self::Panel => "panel",
            Self::SchedulesDirect => "schedules_direct",
            Self::Generated => "dummy",
            Self::Stream => "stream",
            Self::Written => "written",
        }
    }

    /// Returns whether refreshes replace its programmes.
    pub fn is_refreshed(self) -> bool {
        matches!(self, Self::Xmltv | Self::Panel | Self::SchedulesDirect | Self::Stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: GuideSourceKind) -> GuideSource {
        GuideSource::new(GuideSourceId(1), "a", kind, 0)
    }

    #[test]
    fn a_guide_that_gets_an_address_is_refreshed_daily_unless_a_schedule_was_chosen() {
        let url = Some(SourceUrl::new("http://guide.example/guide.xml"));
        let of_url = GuideSource { url: url.clone(), ..source(GuideSourceKind::Xmltv) };
        let of_file = GuideSource { file: Some("a".to_owned()), ..source(GuideSourceKind::Xmltv) };
        let of_panel = GuideSource { account: Some(AccountId(2)), ..source(GuideSourceKind::Panel) };
        let chosen = GuideSource { is_schedule_chosen: true, ..of_url.clone() };
        let cron = RefreshSchedule { interval_hours: 0, cron: "0 4 * * *".to_owned() };
        let by_cron = GuideSource { schedule: cron, ..of_url.clone() };
        for (source, expected) in [
            (of_url.clone(), 24),
            (of_panel, 24),
            (source(GuideSourceKind::SchedulesDirect), 24),
            (of_file.clone(), 0),
            (source(GuideSourceKind::Xmltv), 0),
            (source(GuideSourceKind::Generated), 0),
            (source(GuideSourceKind::Stream), 0),
            (source(GuideSourceKind::Written), 0),
            (chosen, 0),
            (by_cron, 0),
        ] {
            let mut new = source.clone();
            new.schedule_by_default(false);
            assert_eq!(new.schedule.interval_hours, expected, "{source:?}");
            assert!(!new.needs_schedule(), "{source:?}");
        }
        let mut replaced = GuideSource { file: None, url, ..of_file };
        replaced.schedule_by_default(false);
        assert_eq!(replaced.schedule.interval_hours, 24, "an address after a file");
        let mut old = of_url;
        old.schedule_by_default(true);
        assert_eq!(old.schedule.interval_hours, 0, "nothing changes without being asked for");
    }

    #[test]
    fn admins_are_asked_for_the_schedule_of_guides_that_nobody_scheduled() {
        let url = Some(SourceUrl::new("http://guide.example/guide.xml"));
        let old = GuideSource { url, ..source(GuideSourceKind::Xmltv) };
        let daily = RefreshSchedule { interval_hours: 24, cron: String::new() };
        assert!(old.needs_schedule());
        for answered in [
            GuideSource { is_schedule_chosen: true, ..old.clone() },
            GuideSource { schedule: daily, ..old.clone() },
            GuideSource { is_active: false, ..old.clone() },
            GuideSource { url: None, file: Some("a".to_owned()), ..old },
        ] {
            assert!(!answered.needs_schedule(), "{answered:?}");
        }
    }
}
