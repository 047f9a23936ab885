use proptest::prelude::*;
use serde_json::json;

use super::*;

fn values() -> Map<String, Value> {
    let values = json!({
        "channel_name": "das \"erste\" & more", "channel_number": "5", "gap_ms": 250, "reason": "", "is_live": true,
        "client_ip": "10.0.0.1", "nothing": null,
    });
    values.as_object().cloned().unwrap_or_default()
}

fn names() -> Vec<String> {
    values().keys().cloned().collect()
}

fn render(source: &str) -> String {
    let template = Template::parse(source, None).unwrap_or_else(|fault| panic!("{source}: {fault}"));
    template.render(&values()).unwrap().text
}

fn fault(source: &str) -> (usize, usize, String) {
    let names = names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let parsed = Template::parse(source, Some(&names));
    let checked = parsed.and_then(|it| it.check(&values()));
    let TemplateError { line, column, reason } = checked.expect_err(source);
    (line, column, reason)
}

#[test]
fn values_filters_and_conditions_make_a_text() {
    for (source, expected) in [
        ("a {{ channel_name }} b", "a das \"erste\" & more b"),
        ("{{channel_name|title}}", "Das \"Erste\" & More"),
        ("{{ channel_name | upper | replace(\"\\\"\", \"'\") }}", "DAS 'ERSTE' & MORE"),
        ("{{ channel_name|replace:\"das \",\"Das \"|truncate:7 }}", "Das \"e…"),
        ("{{ reason|default:\"none\" }} {{ nothing|default(7) }} {{ gap_ms|default:1 }}", "none 7 250"),
        ("{{ channel_name|urlencode }}", "das%20%22erste%22%20%26%20more"),
        ("{{ channel_name|lower|tojson }}", "\"das \\\"erste\\\" & more\""),
        ("{{ \"it's\" }}{{ 'a\\'b' }}{# {{ none }} #}", "it'sa'b"),
        ("{% if gap_ms > 100 and not reason %}slow{% else %}fast{% endif %}", "slow"),
        ("{% if reason %}1{% elif channel_number == 5 %}2{% endif %}", "2"),
        ("{% if channel_number >= \"10\" %}1{% endif %}", ""),
        (
            "{% if \"erste\" in channel_name %}1{% endif %}{% if \"x\" not in channel_name %}2{% endif %}",
            "12",
        ),
        ("{% if (reason or is_live) and nothing == none %}1{% endif %}", "1"),
        ("{% if not not is_live %}1{% if reason %}2{% endif %}3{% endif %}4", "134"),
        ("{{ unknown }}{ 100% } {", "{ 100% } {"),
    ] {
        assert_eq!(render(source), expected, "{source}");
    }
}

#[test]
fn in_json_a_value_is_written_for_its_place() {
    let source = r#"{"text": "{{ channel_name }}, \"{{ client_ip }}\"", "raw": {{ channel_name }}, "n": {{ gap_ms }},
        "none": {{ nothing }}, "inner": "{{ channel_name|tojson }}", "outer": {{ channel_name|tojson }}{% if is_live %},
        "live": {{ is_live }}{% endif %}}"#;
    let rendered = Template::parse(source, None).unwrap().render(&values()).unwrap();
    assert!(rendered.is_json, "{}", rendered.text);
    let name = "das \"erste\" & more";
    assert_eq!(
        serde_json::from_str::<Value>(&rendered.text).unwrap(),
        json!({
            "text": format!("{name}, \"10.0.0.1\""), "raw": name, "n": 250, "none": null,
            "inner": json!(name).to_string(), "outer": name, "live": true,
        })
    );
    // A text other than JSON has values as they are; a value that looks like JSON does not make it JSON.
    assert!(!Template::parse("{{ channel_name }}", None).unwrap().render(&values()).unwrap().is_json);
    assert!(
        Template::parse(" {% if reason %}x{% endif %} ", None).unwrap().render(&values()).unwrap().is_blank()
    );
}

#[test]
fn faults_name_their_place() {
    for (source, line, column, reason) in [
        ("a\n  {{ channel_colour }}", 2, 6, "unknown value \"channel_colour\""),
        ("{{ channel_name|shout }}", 1, 17, "unknown filter \"shout\""),
        ("{{ channel_name|truncate }}", 1, 17, "the filter \"truncate\" has one argument"),
        ("{{ channel_name|upper:1 }}", 1, 17, "the filter \"upper\" has no argument"),
        ("é {{ channel_name", 1, 3, "the tag has no end"),
        ("{{ \"abc }}", 1, 4, "the text in quotes has no end"),
        ("{# abc", 1, 1, "the comment has no end"),
        ("{% if is_live %}", 1, 4, "if has no endif"),
        ("{% if is_live %}{% else %}{% elif reason %}{% endif %}", 1, 30, "else is the last branch"),
        ("{% endif %}", 1, 4, "endif has no if"),
        ("{% for x in y %}", 1, 4, "unknown tag \"for\""),
        ("{% %}", 1, 4, "the tag needs a word"),
        ("{% if is_live %}{% endif x %}", 1, 26, "the tag has to end here"),
        ("{{ gap_ms * 2 }}", 1, 11, "unexpected '*'"),
        ("{{ gap_ms | }}", 1, 13, "a filter has to follow |"),
        ("{{ gap_ms == }}", 1, 14, "a value is missing"),
        ("{{ (gap_ms }}", 1, 12, ") is missing"),
        ("{{ 1.2.3 }}", 1, 4, "1.2.3 is not a number"),
        ("{{ }}", 1, 4, "a value is missing"),
        ("{\"a\": \"{{ channel_name }}}", 1, 26, "not valid JSON"),
        ("{\n\"a\": {{ channel_name|upper }},}", 2, 31, "not valid JSON"),
    ] {
        let found = fault(source);
        assert_eq!((found.0, found.1), (line, column), "{source}: {}", found.2);
        assert!(found.2.contains(reason), "{source}: {}", found.2);
    }
    let long = "x".repeat(TEMPLATE_BYTES_MAX + 1);
    assert!(fault(&long).2.contains("65536 bytes"));
}

#[test]
fn no_template_works_long_or_makes_a_long_text() {
    // Each filter would multiply the length by ten.
    let grows = format!("{{{{ channel_name{} }}}}", "|replace(\"e\", \"eeeeeeeeee\")".repeat(30));
    let fault = Template::parse(&grows, None).unwrap().render(&values());
    assert!(fault.is_ok_and(|it| it.text.len() <= RENDERED_BYTES_MAX));
    let many = "{{ channel_name }}".repeat(3_000);
    let mut values = values();
    values.insert("channel_name".into(), "x".repeat(1_000).into());
    let fault = Template::parse(&many, None).unwrap().render(&values).unwrap_err();
    assert!(fault.reason.contains("262144 bytes") && fault.line == 1 && fault.column > 1_000, "{fault}");
    for deep in [
        format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)),
        "{% if true %}".repeat(4_000),
        format!("{{{{ 1{} }}}}", "|upper".repeat(9_000)),
    ] {
        assert!(Template::parse(&deep, None).unwrap_err().reason.contains("too many"));
    }
    for wide in
        [format!("{{{{ 1{} }}}}", " and 1".repeat(10_000)), format!("{{{{ {}1 }}}}", "not ".repeat(10_000))]
    {
        assert!(Template::parse(&wide, None).unwrap().render(&values).is_ok());
    }
}

proptest! {
    #[test]
    fn no_source_and_no_value_panics(source in ".{0,200}", value in any::<String>()) {
        let mut values = values();
        values.insert("channel_name".into(), value.into());
        for source in [source.clone(), format!("{{{{ {source} }}}}"), format!("{{% if {source} %}}a{{% endif %}}")] {
            if let Ok(template) = Template::parse(&source, None) {
                let _ = template.render(&values);
                let _ = template.check(&values);
            }
        }
    }

    #[test]
    fn every_value_fits_into_json(value in any::<String>()) {
        let mut values = values();
        values.insert("channel_name".into(), value.clone().into());
        let source = r#"{"in": "a{{ channel_name }}b", "bare": {{ channel_name }}, "tojson": {{ channel_name|tojson }}}"#;
        let text = Template::parse(source, None).unwrap().render(&values).unwrap().text;
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read, json!({"in": format!("a{value}b"), "bare": value.clone(), "tojson": value}));
    }
}

/// A branch that no sample reaches passed, and broke the first delivery that took it.
#[test]
fn json_is_checked_in_branches_that_the_sample_does_not_reach() {
    for source in [
        "{% if channel_name == \"x\" %}{\"a\":{% endif %}",
        "{\"a\": 1{% if channel_name|upper == \"NEWS\" %},{% endif %}}",
        "{\"a\": 1{% if gap_ms > 9000 %},{% endif %}}",
        "{\"a\": 1{% if reason %}{% if channel_number == 7 %},{% endif %}{% endif %}}",
        "{\"a\": 1{% if not is_live %},{% endif %}}",
        "{\"a\": 1{% if \"sport\" in channel_name %},{% endif %}}",
        "{\"a\": {% if nothing %}{% else %}1{% endif %}}",
    ] {
        let (_, _, reason) = fault(source);
        assert!(reason.contains("not valid JSON"), "{source}: {reason}");
    }
    // Conditions that exclude each other are not true together.
    for source in [
        "{% if channel_name == \"x\" %}{}{% endif %}{% if channel_name == \"y\" %}[]{% endif %}",
        "{% if reason %}{}{% endif %}{% if not reason %}[]{% endif %}",
        "{% if gap_ms > 100 %}{}{% endif %}{% if gap_ms <= 100 %}[]{% endif %}",
    ] {
        let checked = Template::parse(source, None).unwrap().check(&values());
        assert!(checked.is_ok(), "{source}: {checked:?}");
    }
}

#[test]
fn the_work_of_a_check_is_bounded_however_many_branches_a_template_has() {
    let condition = |n: usize| format!("{{% if channel_name == \"{n}\" and v{n} > {n} %}}{n}{{% endif %}}");
    let source: String = (0..50).map(condition).collect();
    let template = Template::parse(&source, None).unwrap();
    assert_eq!(branches::samples(&template.nodes, &values()).len(), 64);
}
