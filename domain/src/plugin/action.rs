//! Actions of plugins: buttons, events and schedules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::faults::Faults;
use super::texts::{optional_texts, remove_wrong_texts, text_of};

/// The events that actions can subscribe to.
pub const PLUGIN_EVENTS: [&str; 12] = [
    "channel_start",
    "channel_stop",
    "channel_reconnect",
    "channel_error",
    "channel_failover",
    "stream_switch",
    "recording_start",
    "recording_end",
    "epg_refresh",
    "m3u_refresh",
    "client_connect",
    "client_disconnect",
];

/// Limits of the time that a run has, in seconds: up to twelve hours.
pub const ACTION_SECONDS: std::ops::RangeInclusive<u32> = 1..=43_200;
/// Time that a run has without another one in the manifest, in seconds.
pub const ACTION_SECONDS_DEFAULT: u32 = 1_800;
/// Maximum size of a cron expression, in bytes.
const SCHEDULE_BYTES_MAX: usize = 256;
/// The action of schedules whose work the Python host has registered itself. No manifest lists it, and nothing but a
/// schedule runs it.
pub const TASK_ACTION: &str = "__task__";

/// Why an action runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCause {
    /// An admin pressed its button.
    Button,
    /// An event that it subscribes to.
    #[default]
    Event,
    /// A time of its schedule.
    Schedule,
}

impl RunCause {
    /// The name in the interface and for the plugin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Button => "button",
            Self::Event => "event",
            Self::Schedule => "schedule",
        }
    }
}

/// Something that a plugin can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Unique in the plugin.
    pub id: String,
    pub label: String,
    /// Question that the interface asks before it runs.
    pub confirm: Option<Confirmation>,
    /// Those of [`PLUGIN_EVENTS`] that run it.
    pub events: Vec<String>,
    /// Events that it asks for and that no plugin gets.
    pub unknown_events: Vec<String>,
    /// Cron expression of its times; its syntax is checked elsewhere.
    pub schedule: Option<String>,
    /// Time that a run has, in seconds.
    pub timeout_s: u32,
    json: Map<String, Value>,
}

/// A question before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    pub title: String,
    pub message: String,
}

impl Action {
    /// Returns the action as the manifest has it, with unknown members and without damaged ones.
    pub fn json(&self) -> &Map<String, Value> {
        &self.json
    }

    pub(super) fn read(value: &Value, path: &str, faults: &mut Faults) -> Option<Self> {
        let Some(mut json) = value.as_object().cloned() else {
            faults.ignore(path, "must be an object");
            return None;
        };
        let Some(id) = text_of(&json, "id") else {
            faults.ignore(format!("{path}.id"), "must be a text that is not blank");
            return None;
        };
        let texts = ["label", "description", "button_label", "button_variant", "button_color", "schedule"];
        remove_wrong_texts(&mut json, &texts, path, faults);
        let asked = match json.get("events") {
            None | Some(Value::Null) => Vec::new(),
            Some(value) => {
                let asked = optional_texts(value, &format!("{path}.events"), 64, faults);
                json.insert("events".to_owned(), asked.clone().into());
                asked
            }
        };
        let (mut events, unknown_events): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|it| PLUGIN_EVENTS.contains(&it.as_str()));
        events.dedup();
        let mut schedule = text_of(&json, "schedule").map(|it| it.trim().to_owned());
        if schedule.take_if(|it| it.len() > SCHEDULE_BYTES_MAX).is_some() {
            json.remove("schedule");
            faults.ignore(format!("{path}.schedule"), "is too long for a cron expression");
        }
        Some(Self {
            label: text_of(&json, "label").unwrap_or_else(|| id.clone()),
            confirm: read_confirm(&mut json, &format!("{path}.confirm"), faults),
            events,
            unknown_events,
            schedule,
            timeout_s: read_timeout(&mut json, &format!("{path}.timeout"), faults),
            json,
            id,
        })
    }
}

/// Reads `true` or an object with a title and a message, and removes what is damaged in it. A damaged one asks: a run
/// without the question of the author could be a mistake of the user.
fn read_confirm(json: &mut Map<String, Value>, path: &str, faults: &mut Faults) -> Option<Confirmation> {
    let confirm = json.get_mut("confirm")?;
    match confirm {
        Value::Null | Value::Bool(false) => return None,
        Value::Bool(true) => {}
        Value::Object(members) => {
            remove_wrong_texts(members, &["title", "message"], path, faults);
            match members.get("required") {
                None | Some(Value::Null | Value::Bool(true)) => {}
                Some(Value::Bool(false)) => return None,
                Some(_) => {
                    faults.ignore(format!("{path}.required"), "must be true or false, and is read as true");
                    members.remove("required");
                }
            }
        }
        _ => {
            faults.ignore(path, "must be an object, or true or false, and is read as true");
            *confirm = true.into();
        }
    }
    let text = |name: &str| confirm.get(name).and_then(Value::as_str);
    Some(Confirmation {
        title: text("title").unwrap_or("Run this action?").to_owned(),
        message: text("message").unwrap_or_default().to_owned(),
    })
}

fn read_timeout(json: &mut Map<String, Value>, path: &str, faults: &mut Faults) -> u32 {
    let seconds = match json.get("timeout") {
        None | Some(Value::Null) => return ACTION_SECONDS_DEFAULT,
        Some(value) => value.as_u64().and_then(|it| u32::try_from(it).ok()),
    };
    seconds.filter(|it| ACTION_SECONDS.contains(it)).unwrap_or_else(|| {
        let (min, max) = (ACTION_SECONDS.start(), ACTION_SECONDS.end());
        faults.ignore(path, format!("must be a whole number of seconds from {min} to {max}"));
        json.remove("timeout");
        ACTION_SECONDS_DEFAULT
    })
}
