//! The engines: in memory, and over NATS with servers that run, end and freeze.

mod end_notice;
mod memory;
mod slow;
