//! Templates for the names of recordings: nothing panics, and no path leads out of its folder.
#![no_main]

use domain::recording::{NameFields, NameTemplate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str, Option<u32>)| {
    let (template, title, channel, number) = input;
    let Ok(template) = NameTemplate::parse(template) else { return };
    let path = template.path(&NameFields {
        show: title.to_owned(),
        title: title.to_owned(),
        sub_title: channel.to_owned(),
        season: number,
        channel: channel.to_owned(),
        ..NameFields::default()
    });
    for name in path.split('/') {
        assert!(!matches!(name, "" | "." | "..") && !name.contains(['\0', '\\']), "{path:?}");
        assert!(name.len() <= 255, "{path:?}");
    }
});
