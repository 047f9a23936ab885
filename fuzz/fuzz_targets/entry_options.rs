//! Any text behind the `|` of an address: the entry keeps its name, its address and the option before the text, values are no
//! longer than the text, and the sizes of the parts make no difference.
#![no_main]

use domain::playlist::m3u::options_check::check_options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &str)| check_options(input.1, usize::from(input.0)));
