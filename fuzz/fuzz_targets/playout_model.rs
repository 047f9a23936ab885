//! Random histories of one channel against a model of the live channel that carries them out.
//!
//! Two bytes choose plan and settings, then every three bytes are something that happens.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| domain::playout::model::run_bytes(bytes));
