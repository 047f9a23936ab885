//! What a disk may hold in the place of a record: nothing panics or takes the memory of a small house, and what reads
//! as a record is written and read as the same one again.
#![no_main]

use domain::account::Account;
use domain::channel::Channel;
use domain::stream::Stream;
use libfuzzer_sys::fuzz_target;
use storage::{Record, decode};

fn read<T: Record + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(record) = decode::<T>(bytes) else { return };
    let again = decode::<T>(&storage::fuzzing::encode_record(&record)).expect("what was written reads");
    // By what is printed too: a number that is none equals nothing.
    assert_eq!(format!("{record:?}"), format!("{again:?}"));
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 5 {
        0 => read::<Account>(bytes),
        1 => read::<Channel>(bytes),
        2 => read::<Stream>(bytes),
        3 => storage::fuzzing::read_block(bytes),
        _ => storage::fuzzing::read_value(bytes),
    }
});
