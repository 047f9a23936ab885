//! HTTP in front, wiring behind.
//!
//! Reading order: [`Gateway`] (what is started in which order, and stopped in reverse), [`config`], `http/accept.rs`
//! (the front door), `player/watch.rs` (what a gateway is for), [`play`] and [`demo`] (what is served).
//!
//! This room knows `actors` by their doors, of `media` only what its crate root re-exports, and no actor library. It is the only one
//! with an HTTP server in it.

mod app;
mod auth;
pub mod commands;
pub mod config;
mod data;
pub mod demo;
mod gateway;
mod http;
mod metrics;
pub mod play;
mod player;
mod push;
pub mod rest;
mod status;
pub mod telemetry;

pub use self::auth::hash_password;
pub use self::gateway::{Gateway, Runtimes, StartError, Stopped, install_tls, raise_file_limit};
