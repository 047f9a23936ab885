//! The promises of the gateway, told as stories: a provider on a real socket, a gateway on port 0, players.
//!
//! One module per feature. What takes long on purpose stands in modules called `slow`.

#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test binary: nothing is published, and unwrap says where"
)]

/// Says how much memory is in use.
#[global_allocator]
static MEMORY: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

mod clients;
mod conformance;
mod dashboard;
mod deaths;
mod demo;
mod door;
mod events;
mod failover;
mod import;
mod lifecycle;
mod limits;
mod live;
mod logging;
mod openapi;
mod playlist;
mod programs;
mod push;
mod rest;
mod rest_channels;
mod rest_m3u;
mod rest_streams;
mod seats;
mod self_test;
mod serve;
mod shutdown;
mod stamina;
mod status;
mod store;
mod streaming;
mod support;
mod switching;
mod tidy;
mod trials;
mod users;
