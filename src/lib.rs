//! The interfaces of the gateway, and its wiring.
//!
//! Reading order: [`Gateway`] (start and stop), `route-frame/src/context.rs` (the services that handlers share),
//! `player/src/watch.rs` (serving a stream), [`commands`], [`play`] and [`demo`].
//!
//! This crate uses only the public APIs of `actors` and `media`, and no actor library.

pub mod commands;
mod control;
pub mod demo;
mod discovery;
mod gateway;
pub mod handover;
pub mod play;
pub mod terminal;

pub use node::tls::install_tls;

pub use self::gateway::{
    DiscoveryAddresses, Drained, DrainingGateway, Gateway, Runtimes, StartError, Stopped, raise_file_limit,
};
