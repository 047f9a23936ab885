//! Plugins: their manifests, settings, actions, permissions, limits and states, the names in their archives, and the
//! messages of their processes.

mod action;
mod archive;
mod faults;
mod field;
mod gap;
mod key;
mod lacking;
mod limits;
mod manifest;
mod parts;
mod permissions;
pub mod protocol;
mod record;
pub mod repository;
mod schedule;
mod scope;
mod state;
#[cfg(test)]
mod tests;
mod texts;
mod unknown;
mod value;

pub use self::action::{
    ACTION_SECONDS, ACTION_SECONDS_DEFAULT, Action, Confirmation, PLUGIN_EVENTS, RunCause, TASK_ACTION,
};
pub use self::archive::{ArchiveNames, EntryName, NameFault, PluginRoot, RootFault, is_left_out};
pub use self::faults::ManifestFault;
pub use self::field::{Field, FieldKind, FieldOption, MASK};
pub use self::gap::{Enforcement, GapConsent, PluginGap};
pub use self::key::{KEY_BYTES_MAX, PluginKey, WrongPluginKey};
pub use self::lacking::{ConfinementFacts, ConfinementPart, LackingPart};
pub use self::limits::{Limits, LimitsEdit};
pub use self::manifest::{
    Lifetime, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest, ManifestError, actions_of, fields_of,
};
pub use self::parts::{actions_of_plugin, fields_of_plugin};
pub use self::permissions::{ApiAccess, FileAccess, FilePlace, Permissions};
pub use self::record::{Plugin, PluginSettings, ReportedParts, SETTINGS_BYTES_MAX, WrongPluginSetting};
pub use self::schedule::{
    ActionSchedule, PluginSchedules, SCHEDULE_ID_CHARS_MAX, SCHEDULE_PARAMS_BYTES_MAX, SCHEDULES_MAX,
    ScheduleSource,
};
pub use self::scope::{ApiArea, ApiScope};
pub use self::state::PluginState;
pub use self::unknown::unknown_parts;
pub use self::value::PluginValue;
