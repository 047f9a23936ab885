//! Texts of recording rules: nothing panics, and a rule for all channels selects a programme exactly if the same rule for its
//! channel does, which is found in another way.
//!
//! The first line names the mode, the second one is the text of the rule, the third one the title of a programme, and the
//! rest its description.
#![no_main]

use std::sync::Arc;

use domain::ids::ChannelId;
use domain::recording::rules::{GuideScan, ProgrammeTest, RuleSet, RuleSubject, TextMode, TextTest};
use domain::xml::push_escaped;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut lines = input.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (mode, wanted, title, description) = (line(), line(), line(), line());
    let mode = match mode {
        "exact" => TextMode::Exact,
        "contains" => TextMode::Contains,
        "search" => TextMode::Search,
        _ => TextMode::Regex,
    };
    let text = TextTest { mode, text: wanted.to_owned() };
    if text.check().is_err() {
        return;
    }
    let mut inner = "<title>".to_owned();
    push_escaped(&mut inner, title);
    inner.push_str("</title><desc>");
    push_escaped(&mut inner, description);
    inner.push_str("</desc>");
    let of_title = ProgrammeTest { title: Some(text.clone()), ..ProgrammeTest::default() };
    let of_description = ProgrammeTest { description: Some(text), ..ProgrammeTest::default() };
    for test in [of_title, of_description] {
        let of_channel = ProgrammeTest { tvg_id: Some("News".to_owned()), ..test.clone() };
        let rules = [RuleSubject::Rule(0), RuleSubject::Rule(1)];
        let set = RuleSet::from_tests(rules.into_iter().zip([test, of_channel]).collect());
        let mut scan = GuideScan::new(&set, []);
        if let Some(mut channel) = scan.channel("news", &[], Arc::new([ChannelId(1)])) {
            channel.programme(0, 60, &inner, || "1".to_owned());
            channel.finish(i64::MIN, i64::MAX);
        }
        let found: Vec<_> = scan.finish().0.into_iter().map(|it| it.0).collect();
        assert!(found.is_empty() || found == rules, "{found:?}");
    }
});
