//! The rules of an account: what is made of the values that its provider gives.

use crate::account::{Rule, RuleField};
use crate::pattern::{Pattern, PatternError};
use crate::source_url::SourceUrl;
use crate::stream::{StreamOverrides, StreamProperties};

/// Most rules of one account.
pub const RULES_MAX: usize = 100;

/// The rules of an account, compiled.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<(RuleField, Pattern)>);

/// Which rule cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    #[error("rule {}: {cause}", .at + 1)]
    Pattern { at: usize, cause: PatternError },
    #[error("there are too many rules: {RULES_MAX} are allowed")]
    TooMany,
}

impl Rules {
    pub fn new(rules: &[Rule]) -> Result<Self, RulesError> {
        if rules.len() > RULES_MAX {
            return Err(RulesError::TooMany);
        }
        let compiled = rules.iter().enumerate().map(|(at, rule)| {
            let pattern = Pattern::new(&rule.find, &rule.replace);
            pattern.map(|it| (rule.field, it)).map_err(|cause| RulesError::Pattern { at, cause })
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// What the rules make of these facts: the values that differ from the provider's, and no others.
    ///
    /// Every rule sees what those before it made. What the provider does not say is an empty text, and a value that
    /// became empty stands for "none". A name never becomes empty; an address stays one, and none becomes a file of
    /// this machine: the captured part of a foreign text must not open our disk.
    pub fn apply(&self, facts: &StreamProperties) -> StreamOverrides {
        let mut edits = StreamOverrides::default();
        for (field, pattern) in &self.0 {
            match field {
                RuleField::Name => {
                    let name = edits.name.as_deref().unwrap_or(&facts.name);
                    if let Some(text) = changed(pattern, name).filter(|it| !it.is_empty()) {
                        edits.name = Some(text);
                    }
                }
                RuleField::Url => {
                    let url = edits.url.as_ref().unwrap_or(&facts.url);
                    if let Some(url) = changed(pattern, url.expose()).map(SourceUrl::new)
                        && !url.scheme().is_empty()
                        && (is_file(&facts.url) || !is_file(&url))
                    {
                        edits.url = Some(url);
                    }
                }
                RuleField::TvgId => text(pattern, &facts.tvg_id, &mut edits.tvg_id),
                RuleField::Group => text(pattern, &facts.group, &mut edits.group),
                RuleField::Logo => text(pattern, &facts.logo, &mut edits.logo),
            }
        }
        // A later rule may have taken back what an earlier one did.
        let same = |edit: &Option<String>, fact: &Option<String>| {
            edit.as_deref().is_some_and(|it| it == fact.as_deref().unwrap_or_default())
        };
        edits.name.take_if(|it| *it == facts.name);
        edits.url.take_if(|it| *it == facts.url);
        if same(&edits.tvg_id, &facts.tvg_id) {
            edits.tvg_id = None;
        }
        if same(&edits.group, &facts.group) {
            edits.group = None;
        }
        if same(&edits.logo, &facts.logo) {
            edits.logo = None;
        }
        edits
    }
}

fn text(pattern: &Pattern, fact: &Option<String>, edit: &mut Option<String>) {
    let before = edit.as_deref().or(fact.as_deref()).unwrap_or_default();
    if let Some(text) = changed(pattern, before) {
        *edit = Some(text);
    }
}

/// The text after the pattern, fit for one line of a playlist; `None` where it stays as it is.
fn changed(pattern: &Pattern, text: &str) -> Option<String> {
    let after = pattern.apply(text);
    if after == text {
        return None;
    }
    let clean: String = after.chars().filter(|it| !it.is_control()).collect();
    Some(clean.trim().to_owned())
}

fn is_file(url: &SourceUrl) -> bool {
    url.scheme().eq_ignore_ascii_case("file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::RequestHeaders;

    const NEWS: &str = "news";

    fn rule(field: RuleField, find: &str, replace: &str) -> Rule {
        Rule { field, find: find.to_owned(), replace: replace.to_owned() }
    }

    fn facts() -> StreamProperties {
        StreamProperties {
            name: "UK | News HD".to_owned(),
            url: SourceUrl::new("http://h/live/u/p/1.ts"),
            headers: RequestHeaders::default(),
            tvg_id: Some(NEWS.to_owned()),
            group: None,
            logo: Some("http://l/1.png".to_owned()),
            number: None,
        }
    }

    /// What the rules make of one field.
    #[track_caller]
    fn check(field: RuleField, rules: &[(&str, &str)], expected: Option<&str>) {
        let rules: Vec<_> = rules.iter().map(|(find, replace)| rule(field, find, replace)).collect();
        let edits = Rules::new(&rules).unwrap().apply(&facts());
        let edit = match field {
            RuleField::Name => edits.name,
            RuleField::Url => edits.url.map(|it| it.expose().to_owned()),
            RuleField::TvgId => edits.tvg_id,
            RuleField::Group => edits.group,
            RuleField::Logo => edits.logo,
        };
        assert_eq!(edit.as_deref(), expected);
    }

    #[test]
    fn rules_are_applied_in_their_order_and_only_what_differs_is_kept() {
        check(RuleField::Name, &[(r"^UK \| ", "")], Some("News HD"));
        check(RuleField::Name, &[(r"^UK \| ", ""), ("^News", r"\0 One")], Some("News One HD"));
        check(RuleField::Name, &[("HD", "SD"), ("SD", "HD")], None);
        check(RuleField::Name, &[("x", "y")], None);
        check(RuleField::Name, &[(".*", "")], None);
        check(RuleField::Name, &[("UK.*", " a\nb ")], Some("ab"));
        check(RuleField::TvgId, &[("$", ".uk")], Some("news.uk"));
        check(RuleField::TvgId, &[("^news$", "")], Some(""));
        check(RuleField::Group, &[("^$", "Other")], Some("Other"));
        check(RuleField::Group, &[("^$", "Other"), ("Other", "")], None);
        check(RuleField::Logo, &[("http:", "https:")], Some("https://l/1.png"));
        check(RuleField::Url, &[("/u/p/", "/u2/p2/")], Some("http://h/live/u2/p2/1.ts"));
    }

    #[test]
    fn a_rule_makes_of_an_address_neither_none_nor_a_file_of_ours() {
        check(RuleField::Url, &[(".*", "x")], None);
        check(RuleField::Url, &[("^http", "file")], None);
        check(RuleField::Url, &[(".*", "FILE:///etc/passwd")], None);
        check(RuleField::Url, &[("^http", "file"), ("1.ts", "2.ts")], Some("http://h/live/u/p/2.ts"));
        let list = Rules::new(&[rule(RuleField::Url, "one", "two")]).unwrap();
        let facts = StreamProperties { url: SourceUrl::new("file:///films/one.ts"), ..facts() };
        assert_eq!(list.apply(&facts).url, Some(SourceUrl::new("file:///films/two.ts")));
    }

    #[test]
    fn a_rule_that_cannot_be_used_is_named_by_its_place() {
        let rules = [rule(RuleField::Name, "a", ""), rule(RuleField::Name, "(?=a)", "")];
        let refusal = Rules::new(&rules).unwrap_err().to_string();
        assert_eq!(refusal, "rule 2: look-ahead and look-behind are not supported");
        let many = vec![rules[0].clone(); RULES_MAX + 1];
        assert_eq!(Rules::new(&many).unwrap_err(), RulesError::TooMany);
    }
}
