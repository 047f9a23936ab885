//! The schedules of plugins: those of the actions in the manifest, and those that the code sets while it runs.
//!
//! A schedule counts the times after the one at which it was queued last. So a time that passed while the gateway was
//! off is due once after the start.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::action::Action;
use crate::ids::DeliveryId;

/// Maximum number of schedules that the code of one plugin sets.
pub const SCHEDULES_MAX: usize = 32;
/// Maximum number of characters of the id of such a schedule.
pub const SCHEDULE_ID_CHARS_MAX: usize = 64;
/// Maximum size of the parameters of such a schedule as JSON, in bytes.
pub const SCHEDULE_PARAMS_BYTES_MAX: usize = 16 * 1024;

/// The schedules of one plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginSchedules {
    /// The id of the plugin.
    pub id: u32,
    pub all: Vec<ActionSchedule>,
}

/// When an action runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionSchedule {
    /// Unique among those of one source.
    pub id: String,
    pub source: ScheduleSource,
    /// A valid cron expression.
    pub cron: String,
    /// Id of the action.
    pub action: String,
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Times after this one count, in milliseconds since 1970.
    pub since: i64,
    /// The delivery of the time that was queued last. While it waits, no other one is queued.
    #[serde(default)]
    pub last: Option<DeliveryId>,
}

/// Where a schedule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleSource {
    /// An action in the manifest has it.
    Manifest,
    /// The code of the plugin has set it.
    Plugin,
}

impl ScheduleSource {
    /// The name in the interface and for the plugin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Plugin => "plugin",
        }
    }
}

impl ActionSchedule {
    /// Returns the name that no other schedule of the plugin has.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.source.name(), self.id)
    }
}

impl PluginSchedules {
    /// Returns the record of a plugin without schedules.
    pub fn none(id: u32) -> Self {
        Self { id, all: Vec::new() }
    }

    /// Sets a schedule of the code, whose cron expression was checked. With the same expression as before, the times that
    /// passed meanwhile still count: plugins set their schedules at each start.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    pub fn set(&mut self, new: ActionSchedule) -> Result<(), String> {
        let n_chars = new.id.chars().count();
        if new.id.trim().is_empty() || n_chars > SCHEDULE_ID_CHARS_MAX {
            return Err(format!("the id of a schedule has 1 to {SCHEDULE_ID_CHARS_MAX} characters"));
        }
        if Value::from(new.params.clone()).to_string().len() > SCHEDULE_PARAMS_BYTES_MAX {
            let kib = SCHEDULE_PARAMS_BYTES_MAX / 1024;
            return Err(format!("the parameters of a schedule have at most {kib} KiB"));
        }
        let is_own = |it: &ActionSchedule| it.source == ScheduleSource::Plugin;
        if let Some(known) = self.all.iter_mut().find(|it| is_own(it) && it.id == new.id) {
            let since = if known.cron == new.cron { known.since } else { new.since };
            *known = ActionSchedule { since, last: known.last, ..new };
            return Ok(());
        }
        if self.all.iter().filter(|it| is_own(it)).count() >= SCHEDULES_MAX {
            return Err(format!("a plugin sets at most {SCHEDULES_MAX} schedules"));
        }
        self.all.push(ActionSchedule { source: ScheduleSource::Plugin, last: None, ..new });
        Ok(())
    }

    /// Removes a schedule of the code. Returns whether there was one.
    pub fn delete(&mut self, id: &str) -> bool {
        let before = self.all.len();
        self.all.retain(|it| it.source != ScheduleSource::Plugin || it.id != id);
        self.all.len() < before
    }

    /// Takes the schedules of the actions as they are in the manifest now. New and changed ones count from now on. Those
    /// whose expression is not valid are left out.
    pub fn follow(&mut self, actions: &[Action], is_valid: impl Fn(&str) -> bool, now: i64) {
        let known = std::mem::take(&mut self.all);
        let (known, own): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|it| it.source == ScheduleSource::Manifest);
        for action in actions {
            let Some(cron) = action.schedule.as_ref().filter(|it| is_valid(it)) else { continue };
            let same = known.iter().find(|it| it.id == action.id);
            self.all.push(ActionSchedule {
                id: action.id.clone(),
                source: ScheduleSource::Manifest,
                cron: cron.clone(),
                action: action.id.clone(),
                params: Map::new(),
                since: same.filter(|it| it.cron == *cron).map_or(now, |it| it.since),
                last: same.and_then(|it| it.last),
            });
        }
        self.all.extend(own);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plugin::manifest::actions_of;

    fn schedule(id: &str, cron: &str, since: i64) -> ActionSchedule {
        ActionSchedule {
            id: id.to_owned(),
            source: ScheduleSource::Plugin,
            cron: cron.to_owned(),
            action: "sync".to_owned(),
            params: Map::new(),
            since,
            last: None,
        }
    }

    #[test]
    fn a_schedule_that_is_set_again_keeps_the_times_that_passed() {
        let mut all = PluginSchedules::none(1);
        all.set(schedule("a", "0 4 * * *", 10)).unwrap();
        all.all[0].last = Some(DeliveryId(5));
        all.set(schedule("a", "0 4 * * *", 20)).unwrap();
        assert_eq!((all.all[0].since, all.all[0].last, all.all.len()), (10, Some(DeliveryId(5)), 1));
        all.set(schedule("a", "0 5 * * *", 20)).unwrap();
        assert_eq!(all.all[0].since, 20);
        assert!(all.delete("a") && !all.delete("a"));
    }

    #[test]
    fn schedules_that_code_sets_are_limited() {
        let mut all = PluginSchedules::none(1);
        for id in ["", "  ", &"x".repeat(SCHEDULE_ID_CHARS_MAX + 1)] {
            assert!(all.set(schedule(id, "* * * * *", 0)).unwrap_err().contains("64 characters"));
        }
        let large = Map::from_iter([("x".to_owned(), json!("y".repeat(SCHEDULE_PARAMS_BYTES_MAX)))]);
        let large = ActionSchedule { params: large, ..schedule("large", "* * * * *", 0) };
        assert!(all.set(large).unwrap_err().contains("16 KiB"));
        for n in 0..SCHEDULES_MAX {
            all.set(schedule(&n.to_string(), "* * * * *", 0)).unwrap();
        }
        assert!(all.set(schedule("more", "* * * * *", 0)).unwrap_err().contains("at most 32"));
        all.set(schedule("0", "0 * * * *", 0)).unwrap();
    }

    #[test]
    fn schedules_follow_the_manifest_and_those_of_the_code_stay() {
        let actions = |list: Value| actions_of(&list).0;
        let mut all = PluginSchedules::none(1);
        all.set(schedule("a", "* * * * *", 3)).unwrap();
        let both =
            json!([{"id": "a", "schedule": "0 4 * * *"}, {"id": "b", "schedule": "0 5 * * *"}, {"id": "c"}]);
        all.follow(&actions(both.clone()), |_| true, 7);
        let shown = |all: &PluginSchedules| -> Vec<_> {
            all.all.iter().map(|it| (it.full_name(), it.since)).collect()
        };
        let expected =
            [("manifest:a", 7), ("manifest:b", 7), ("plugin:a", 3)].map(|it| (it.0.to_owned(), it.1));
        assert_eq!(shown(&all), expected);
        all.follow(&actions(both), |_| true, 9);
        assert_eq!(shown(&all), expected, "the same manifest changes nothing");
        let one = json!([{"id": "a", "schedule": "0 6 * * *"}, {"id": "b", "schedule": "wrong"}]);
        all.follow(&actions(one), |it| it != "wrong", 11);
        let expected = [("manifest:a", 11), ("plugin:a", 3)].map(|it| (it.0.to_owned(), it.1));
        assert_eq!(shown(&all), expected);
    }
}
