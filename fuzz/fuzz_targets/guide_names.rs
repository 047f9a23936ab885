//! Names of channels and keys of guides of any kind: nothing panics, the words of a name are a name with the same words, and a
//! guide channel that occurs twice is never linked by its name.
#![no_main]

use domain::guide::matching::{
    AliasName, Decision, GuideEntry, MatchSettings, Matcher, NameRules, NormalKey, NormalName, Subject,
    station,
};
use domain::ids::{GuideChannelId, GuideSourceId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str, &str)| {
    let (name, other, part) = texts;
    let rules = NameRules {
        prefixes: vec![part.to_owned()],
        suffixes: vec![part.to_owned()],
        parts: vec![part.chars().take(3).collect()],
    };
    let normal = NormalName::new(name, &rules);
    assert!(normal.words.iter().all(|it| !it.is_empty()));
    assert!(!normal.is_usable() || !normal.core().is_empty());
    let _ = (NormalKey::parse(name), station(name, true));

    let names = [vec![name.to_owned()], vec![name.to_owned()], vec![other.to_owned()]];
    let entries = names.iter().zip(1..).map(|(names, id)| GuideEntry {
        id: GuideChannelId(id),
        source: GuideSourceId(1),
        priority: 0,
        has_station_keys: false,
        key: "",
        names,
    });
    let matcher = Matcher::new(entries, [].iter(), MatchSettings::default());
    let subject = Subject { name, ..Subject::default() };
    let _ = AliasName::from_channel(&subject);
    let found = matcher.find(&subject, true);
    assert!(!matches!(found.decision, Decision::Link(GuideChannelId(1 | 2))), "{found:?}");
    // The list for people does not change the decision.
    assert_eq!(matcher.find(&subject, false).decision, found.decision);
});
