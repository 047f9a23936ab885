//! Actions of plugins: buttons, events and schedules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::manifest::{Faults, Manifest, actions_of, text_list};
use super::record::ReportedParts;

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
    /// Returns the action as the manifest has it, with unknown members.
    pub fn json(&self) -> &Map<String, Value> {
        &self.json
    }

    pub(super) fn read(value: &Value, path: &str, faults: &mut Faults) -> Option<Self> {
        let Some(json) = value.as_object() else {
            faults.add(path, "must be an object");
            return None;
        };
        let text = |name: &str, faults: &mut Faults| match json.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                faults.add(format!("{path}.{name}"), "must be a text");
                None
            }
        };
        for name in ["description", "button_label", "button_variant", "button_color"] {
            text(name, faults);
        }
        let label = text("label", faults);
        let id = match json.contains_key("id") {
            true => text("id", faults).filter(|it| !it.trim().is_empty()),
            false => None,
        };
        let Some(id) = id else {
            faults.add(format!("{path}.id"), "is required");
            return None;
        };
        let asked = match json.get("events") {
            None | Some(Value::Null) => Vec::new(),
            Some(value) => text_list(value, &format!("{path}.events"), 64, faults),
        };
        let (mut events, unknown_events): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|it| PLUGIN_EVENTS.contains(&it.as_str()));
        events.dedup();
        let schedule = text("schedule", faults).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        if schedule.as_ref().is_some_and(|it| it.len() > SCHEDULE_BYTES_MAX) {
            faults.add(format!("{path}.schedule"), "is too long for a cron expression");
        }
        Some(Self {
            label: label.filter(|it| !it.trim().is_empty()).unwrap_or_else(|| id.clone()),
            confirm: read_confirm(json.get("confirm"), &format!("{path}.confirm"), faults),
            events,
            unknown_events,
            schedule,
            timeout_s: read_timeout(json.get("timeout"), &format!("{path}.timeout"), faults),
            json: json.clone(),
            id,
        })
    }
}

/// Returns the actions of a plugin: those of its manifest, else those that its code reported when it was started last.
pub fn actions_of_plugin(manifest: Option<&Manifest>, reported: Option<&ReportedParts>) -> Vec<Action> {
    match manifest.and_then(|it| it.actions.clone()) {
        Some(actions) => actions,
        None => reported.map(|it| actions_of(&Value::from(it.actions.clone())).0).unwrap_or_default(),
    }
}

/// Reads `true` or an object with a title and a message.
fn read_confirm(value: Option<&Value>, path: &str, faults: &mut Faults) -> Option<Confirmation> {
    let mut text = |members: &Map<String, Value>, name: &str, default: &str| match members.get(name) {
        None | Some(Value::Null) => default.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            faults.add(format!("{path}.{name}"), "must be a text");
            default.to_owned()
        }
    };
    let none = Map::new();
    let members = match value {
        None | Some(Value::Null | Value::Bool(false)) => return None,
        Some(Value::Bool(true)) => &none,
        Some(Value::Object(members)) => members,
        Some(_) => {
            faults.add(path, "must be an object, or true or false");
            return None;
        }
    };
    let confirmation = Confirmation {
        title: text(members, "title", "Run this action?"),
        message: text(members, "message", ""),
    };
    match members.get("required") {
        None | Some(Value::Null | Value::Bool(true)) => Some(confirmation),
        Some(Value::Bool(false)) => None,
        Some(_) => {
            faults.add(format!("{path}.required"), "must be true or false");
            None
        }
    }
}

fn read_timeout(value: Option<&Value>, path: &str, faults: &mut Faults) -> u32 {
    let seconds = match value {
        None | Some(Value::Null) => return ACTION_SECONDS_DEFAULT,
        Some(value) => value.as_u64().and_then(|it| u32::try_from(it).ok()),
    };
    seconds.filter(|it| ACTION_SECONDS.contains(it)).unwrap_or_else(|| {
        let (min, max) = (ACTION_SECONDS.start(), ACTION_SECONDS.end());
        faults.add(path, format!("must be a whole number of seconds from {min} to {max}"));
        ACTION_SECONDS_DEFAULT
    })
}
