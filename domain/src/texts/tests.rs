use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn check(text: &str, code: &str, values: Value) {
    let found = TextCode::find(text).unwrap_or_else(|| panic!("{text:?} has no code"));
    assert_eq!((found.code, Value::from(found.values)), (code, values), "{text}");
}

#[test]
fn a_text_has_the_code_of_its_template_and_the_values_between_the_fixed_parts() {
    check("Not found.", "not_found", json!({}));
    check("The body is larger than 65536 bytes.", "body_too_large", json!({ "max": "65536" }));
    let full = "server group \"a\" of account \"b \"c\"\" is at its limit of 1 stream";
    check(
        full,
        "server_group_full",
        json!({ "group": "a", "account": "b \"c\"", "max": "1", "streams": "stream" }),
    );
    let choice = "\"x\" is not a valid choice. Choose one of: a, b.";
    check(choice, "invalid_choice", json!({ "value": "\"x\"", "choices": "a, b" }));
}

#[test]
fn the_template_that_explains_most_of_the_text_counts() {
    check("the end is missing: x", "end_missing_because", json!({ "reason": "x" }));
    let inner = json!({ "text": "HLS needs ffmpeg, which is not installed", "code": "ffmpeg_missing", "values": { "what": "HLS" } });
    check(
        "no stream of the channel plays: HLS needs ffmpeg, which is not installed",
        "nothing_plays",
        json!({ "cause": inner }),
    );
    let confirmed = "The refresh of account \"a\" waits for a confirmation";
    check(confirmed, "account_waits_title", json!({ "account": "a" }));
    check(
        "Ensure this field has no more than 5 bytes as JSON.",
        "too_many_bytes_json",
        json!({ "max": "5" }),
    );
}

#[test]
fn a_text_in_a_text_has_its_own_code() {
    let inner = json!({ "text": "video and audio stopped", "code": "stalled", "values": {} });
    check(
        "no stream of the channel plays: video and audio stopped",
        "nothing_plays",
        json!({ "cause": inner }),
    );
    check("no stream of the channel plays: odd", "nothing_plays", json!({ "cause": "odd" }));
    let inner = json!({ "text": "Expected a text.", "code": "not_a_text", "values": {} });
    check("Item 2: Expected a text.", "item", json!({ "n": "2", "error": inner }));
    let refreshed = TextCode::find(
        "5 entries: 1 new, 2 changed, 3 no longer listed, 0 removed. 7 left out by filters and disabled groups.",
    );
    let more = &refreshed.unwrap().values["more"];
    assert_eq!((&more["code"], &more["values"]["n"]), (&json!("entries_left_out"), &json!("7")));
}

#[test]
fn a_text_without_a_template_has_no_code() {
    let long = format!("no stream of the channel plays: {}", "x".repeat(TEXT_BYTES_MAX));
    for text in ["", "Something else.", "Not found", "name: odd", "The body is larger than x bytes.", &long] {
        assert_eq!(TextCode::find(text), None, "{text}");
    }
    // Texts in texts end somewhere.
    let deep = "Item 1: ".repeat(100) + "Expected a text.";
    assert_eq!(TextCode::find(&deep).unwrap().code, "item");
}

#[test]
fn the_code_stands_beside_the_text_unless_the_object_has_one() {
    let mut body = json!({ "detail": "Not found.", "id": 1 });
    add_code(&mut body, "detail");
    assert_eq!(body, json!({ "detail": "Not found.", "id": 1, "code": "not_found", "values": {} }));
    for other in [json!({ "detail": "Not found.", "code": "x" }), json!({ "detail": 1 }), json!([1])] {
        let mut body = other.clone();
        add_code(&mut body, "detail");
        assert_eq!(body, other);
    }
}

#[test]
fn every_code_is_unique_and_every_template_is_well_formed() {
    let mut codes = BTreeSet::new();
    for (code, template) in rows() {
        assert!(codes.insert(code), "{code} occurs twice");
        let is_snake_case =
            code.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_');
        assert!(is_snake_case && !code.is_empty(), "{code}");
        let parsed = TextTemplate::new((code, template));
        let names: BTreeSet<_> = parsed.rest.iter().map(|it| it.0).collect();
        assert_eq!(names.len(), parsed.rest.len(), "{code} uses a name twice");
        let between = parsed.rest.iter().rev().skip(1);
        assert!(
            between.clone().all(|it| !it.2.is_empty()),
            "{code} has two values without a text between them"
        );
        assert!(parsed.n_fixed >= 2, "{code} fits too many texts");
        let kinds = template.matches('{').count();
        assert_eq!((kinds, template.matches('}').count()), (parsed.rest.len(), kinds), "{code}");
    }
    let lines = TABLE.lines().filter(|it| !it.starts_with('#')).count();
    assert_eq!(codes.len(), lines, "a line of the table is not `code = template`");
}

#[test]
fn every_template_is_found_again_by_its_own_text() {
    for (code, template) in rows() {
        let mut text = String::new();
        for part in template.split_inclusive('}') {
            let (fixed, value) = part.split_once('{').unwrap_or((part, ""));
            text.push_str(fixed);
            text.push_str(match value.trim_end_matches('}').split_once(':') {
                Some((_, "number")) => "7",
                Some((_, "word")) => "streams",
                Some((_, "coded")) => "no such channel",
                Some((_, "text")) => "odd",
                Some(_) | None if value.is_empty() => "",
                _ => "\"x\"",
            });
        }
        assert_eq!(TextCode::find(&text).map(|it| it.code), Some(code), "{text}");
    }
}

/// Returns the sources of the gateway with the texts as they are at run time, without comments, files of tests and the table.
fn sources() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let crates = [
        "actors",
        "config",
        "domain",
        "media",
        "player",
        "rest",
        "route-frame",
        "server",
        "services",
        "storage",
    ];
    let mut folders: Vec<PathBuf> = crates.iter().map(|it| root.join(it).join("src")).collect();
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if name.contains("test") || name == "texts" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(path).unwrap();
                for line in text.lines().filter(|it| !it.trim_start().starts_with("//")) {
                    all.push_str(line);
                    all.push('\n');
                }
            }
        }
    }
    // A backslash at the end of a line continues a text after the white space of the next one.
    let mut joined = String::new();
    for (n, part) in all.split("\\\n").enumerate() {
        joined.push_str(if n == 0 { part } else { part.trim_start() });
    }
    joined.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[test]
fn every_fixed_part_of_a_template_is_in_the_sources() {
    let sources = sources();
    let mut missing = Vec::new();
    for (code, template) in rows() {
        let parsed = TextTemplate::new((code, template));
        let parts = parsed.rest.iter().map(|it| it.2).chain([parsed.first]);
        for part in parts.flat_map(|it| it.split(". ")) {
            // An error and its cause are joined with a colon.
            if !sources.contains(part.trim_end_matches(": ")) {
                missing.push(format!("{code}: {part:?}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
