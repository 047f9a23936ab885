//! Random histories of one channel against a model of the live channel that executes them.
//!
//! Two bytes select plan and settings; then every three bytes are one event.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| domain::playout::model::run_bytes(bytes));
