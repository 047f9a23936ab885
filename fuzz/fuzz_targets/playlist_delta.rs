//! One list after the other, of hostile bytes, against a refresh as it would be written for ten streams.
//!
//! The first byte chooses identity and rules; a list ends with a byte 0xff, and the byte behind it is what an admin does
//! before the next one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| domain::playlist::delta::model::run_bytes(bytes));
