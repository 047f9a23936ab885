//! Templates of integrations: no source panics, and no value breaks a JSON text that was checked.

#![no_main]

use domain::template::{RENDERED_BYTES_MAX, Template};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|input: (&str, &str)| {
    let (source, text) = input;
    let Ok(template) = Template::parse(source, None) else { return };
    let values =
        |text: &str| Map::from_iter([("a".to_owned(), Value::from(text)), ("b".to_owned(), 5.into())]);
    if let Ok(rendered) = template.render(&values(text)) {
        assert!(rendered.text.len() <= RENDERED_BYTES_MAX);
    }
    let _ = template.check(&values(text));
    let inside = r#"{"in": "{{ a|default:"x" }}", "bare": {{ a }}, "b": {{ b }}}"#;
    let rendered = Template::parse(inside, None).and_then(|it| it.render(&values(text)));
    assert!(
        rendered.is_ok_and(|it| it.is_json) || text.len() > RENDERED_BYTES_MAX / 8,
        "a value breaks the text"
    );
});
