//! Patterns and templates of generated guides, applied to a name: no property makes a panic or an unbounded answer, and
//! programmes follow each other without a gap. The first six bytes are the time and the window, then come lines with the
//! title pattern, the time pattern, the date pattern, a template, the time zone and the name.
#![no_main]

use domain::guide::generated::{GeneratedGuide, PROGRAMMES_MAX, programmes};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|data: &[u8]| {
    let Some((head, text)) = data.split_first_chunk::<6>() else { return };
    let text = String::from_utf8_lossy(text);
    let mut lines = text.split('\n');
    let fields = ["title_pattern", "time_pattern", "date_pattern", "title_template", "timezone"];
    let mut properties: Map<String, Value> =
        fields.iter().map(|it| ((*it).to_owned(), lines.next().unwrap_or_default().into())).collect();
    for field in ["description_template", "upcoming_title_template", "ended_title_template"] {
        properties.insert(field.to_owned(), properties["title_template"].clone());
    }
    properties.insert("program_duration".to_owned(), (5 + u32::from(head[5])).into());
    let name = lines.next().unwrap_or_default();
    let now = i64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
    let until = now + i64::from(head[4]) * 3_600;
    let guide = match GeneratedGuide::from_properties(&properties) {
        Ok(guide) => guide,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.iter().all(|it| !it.message.is_empty()));
            return;
        }
    };
    let found = programmes(&guide, name, now, now, until);
    assert!(found.len() <= PROGRAMMES_MAX);
    assert_eq!(found.is_empty(), until == now);
    assert!(found.windows(2).all(|pair| pair[0].stop == pair[1].start));
    assert!(found.iter().all(|it| it.start < it.stop && it.stop > now && it.start < until));
    assert!(found.iter().all(|it| it.description().is_none_or(|it| it.chars().count() <= 2_000)));
});
