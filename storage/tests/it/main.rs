//! Tests of the store through its public API.

#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests do")]

mod backup;
mod behaviour;
mod bulk;
mod commands;
mod crash;
mod damage;
mod golden;
mod guide_files;
mod model;
mod models;
mod power_cut;
mod space;
mod stream_index;
mod support;
mod tables;
