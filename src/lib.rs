//! The interfaces of the gateway, and its wiring.
//!
//! Reading order: [`Gateway`] (start and stop), `app` (the services that handlers share), `player/watch.rs` (serving a
//! stream), [`commands`], [`play`] and [`demo`].
//!
//! This crate uses only the public APIs of `actors` and `media`, and no actor library.

mod addresses;
mod api_docs;
mod app;
mod archives;
mod auth;
mod backups;
pub mod commands;
mod conditions;
mod control;
mod data;
pub mod demo;
mod discovery;
mod disk_space;
mod files;
mod gateway;
mod guide;
pub mod handover;
mod image_types;
mod images;
mod logo_cache;
#[cfg(test)]
mod logo_testing;
mod matching;
mod metrics;
pub mod node;
pub mod play;
mod player;
mod playing_control;
mod plugins;
mod push;
mod recent_log;
mod recording_artwork;
mod recording_forecast;
mod recording_rules;
pub mod rest;
mod slots;
mod status;
mod store_watch;
mod strm_export;
pub mod telemetry;
mod titles;
mod ui;
mod written_version;

pub use media::run_mode;

pub use self::auth::hash_password;
pub use self::gateway::{DiscoveryAddresses, Drained, DrainingGateway, Gateway, Runtimes, StartError, Stopped, install_tls, raise_file_limit};
pub use self::recent_log::RecentLog;
