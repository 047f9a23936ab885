//! The files of comskip: its configuration, the list of commercials that it writes, and its report. Nothing panics, a
//! checked configuration stays valid, and commercials lie in order within the file.
#![no_main]

use domain::comskip::{COMMERCIALS_MAX, ComskipConfig, commercials_of_edl, edl_of, length_of_report};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u32)| {
    let (text, length) = (input.0, u64::from(input.1));
    if let Ok(config) = ComskipConfig::parse(text) {
        let for_program = config.for_program();
        assert!(ComskipConfig::parse(&for_program).is_ok(), "{for_program:?}");
        let n_outputs = for_program.lines().filter(|it| it.starts_with("output_edl=")).count();
        assert_eq!(n_outputs, 1, "{for_program:?}");
    }
    let commercials = commercials_of_edl(text, length);
    assert!(commercials.len() <= COMMERCIALS_MAX);
    assert!(commercials.iter().all(|it| it.start < it.end && it.end <= length), "{commercials:?}");
    assert!(commercials.windows(2).all(|it| it[0].end < it[1].start), "{commercials:?}");
    assert_eq!(commercials_of_edl(&edl_of(&commercials), length), commercials);
    let _ = length_of_report(text);
});
