//! A sequence of hostile playlists against the expected result of each refresh, for ten streams.
//!
//! The first byte selects identity and rules; a playlist ends with a byte 0xff, and the byte after it is an admin
//! action before the next playlist.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| domain::playlist::delta::model::run_bytes(bytes));
