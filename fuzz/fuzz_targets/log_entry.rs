//! Entries of the log of a cluster: no bytes panic or allocate without limit, and what is accepted is encoded to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| storage::fuzzing::read_log_entry(data));
