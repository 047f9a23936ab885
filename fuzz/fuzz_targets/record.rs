//! Arbitrary bytes in place of a stored record: nothing panics or allocates without limit, and a valid record is
//! encoded and decoded to the same value.
#![no_main]

use domain::account::Account;
use domain::channel::Channel;
use domain::stream::Stream;
use libfuzzer_sys::fuzz_target;
use storage::{Record, decode};

fn read<T: Record + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(record) = decode::<T>(bytes) else { return };
    let again = decode::<T>(&storage::fuzzing::encode_record(&record)).expect("an encoded record is valid");
    // Compared by their debug output as well, because NaN is not equal to itself.
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
