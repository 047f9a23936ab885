//! The services behind the interfaces: logins, guides, titles, rules of recordings, back-ups, plugins, logos, exports, the log.
//!
//! They know no route. Each is a value with what it uses, which the gateway builds; clones share their state.

pub mod addresses;
pub mod archives;
pub mod auth;
pub mod backups;
pub mod completion;
pub mod disk_space;
pub mod event_watch;
pub mod files;
mod followed_guides;
pub mod guide;
pub mod history;
pub mod http_client;
pub mod image_types;
mod library;
mod log_repeats;
mod log_text;
pub mod logo_cache;
pub mod matching;
pub mod metrics;
pub mod name_cleaning;
pub mod open_store;
pub mod plugins;
pub mod recent_log;
pub mod recording_forecast;
pub mod recording_rules;
mod rule_places;
pub mod slots;
pub mod store_watch;
pub mod strm_export;
pub mod telemetry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod titles;
pub mod written_version;
