//! The rules of an account, which change the values of its provider.

use crate::account::{Rule, RuleField};
use crate::pattern::{Pattern, PatternError};
use crate::source_url::SourceUrl;
use crate::stream::{StreamOverrides, StreamProperties};

/// Maximum number of rules of one account.
pub const RULES_MAX: usize = 100;

/// The rules of an account, compiled.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<(RuleField, Pattern)>);

/// The reason why the rules are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    #[error("rule {}: {cause}", .at + 1)]
    Pattern { at: usize, cause: PatternError },
    #[error("too many rules: at most {RULES_MAX} are allowed")]
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

    /// Returns the values changed by the rules, and no others.
    ///
    /// Every rule sees the results of those before it. A missing value is an empty text, and a value that became empty
    /// stands for "none". A name never becomes empty. An address stays an address and never becomes a local file,
    /// because text from a provider must not give access to the disk.
    pub fn apply(&self, properties: &StreamProperties) -> StreamOverrides {
        let mut edits = StreamOverrides::default();
        for (field, pattern) in &self.0 {
            match field {
                RuleField::Name => {
                    let name = edits.name.as_deref().unwrap_or(&properties.name);
                    if let Some(text) = changed(pattern, name).filter(|it| !it.is_empty()) {
                        edits.name = Some(text);
                    }
                }
                RuleField::Url => {
                    let url = edits.url.as_ref().unwrap_or(&properties.url);
                    if let Some(url) = changed(pattern, url.expose()).map(SourceUrl::new)
                        && !url.scheme().is_empty()
                        && (properties.url.is_file() || !url.is_file())
                    {
                        edits.url = Some(url);
                    }
                }
                RuleField::TvgId => text(pattern, &properties.tvg_id, &mut edits.tvg_id),
                RuleField::Group => text(pattern, &properties.group, &mut edits.group),
                RuleField::Logo => text(pattern, &properties.logo, &mut edits.logo),
            }
        }
        // A later rule may have reverted an earlier one.
        let same = |edit: &Option<String>, original: &Option<String>| {
            edit.as_deref().is_some_and(|it| it == original.as_deref().unwrap_or_default())
        };
        edits.name.take_if(|it| *it == properties.name);
        edits.url.take_if(|it| *it == properties.url);
        if same(&edits.tvg_id, &properties.tvg_id) {
            edits.tvg_id = None;
        }
        if same(&edits.group, &properties.group) {
            edits.group = None;
        }
        if same(&edits.logo, &properties.logo) {
            edits.logo = None;
        }
        edits
    }
}

fn text(pattern: &Pattern, original: &Option<String>, edit: &mut Option<String>) {
    let before = edit.as_deref().or(original.as_deref()).unwrap_or_default();
    if let Some(text) = changed(pattern, before) {
        *edit = Some(text);
    }
}

/// Applies the pattern and removes control characters; `None` if nothing changes.
fn changed(pattern: &Pattern, text: &str) -> Option<String> {
    let after = pattern.apply(text);
    if after == text {
        return None;
    }
    let clean: String = after.chars().filter(|it| !it.is_control()).collect();
    Some(clean.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWS: &str = "news";

    fn rule(field: RuleField, find: &str, replace: &str) -> Rule {
        Rule { field, find: find.to_owned(), replace: replace.to_owned() }
    }

    fn properties() -> StreamProperties {
        StreamProperties {
            tvg_id: Some(NEWS.to_owned()),
            logo: Some("http://l/1.png".to_owned()),
            ..StreamProperties::new("UK | News HD", SourceUrl::new("http://h/live/u/p/1.ts"))
        }
    }

    /// Checks the result of the rules for one field.
    #[track_caller]
    fn check(field: RuleField, rules: &[(&str, &str)], expected: Option<&str>) {
        let rules: Vec<_> = rules.iter().map(|(find, replace)| rule(field, find, replace)).collect();
        let edits = Rules::new(&rules).unwrap().apply(&properties());
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
    fn rules_are_applied_in_order_and_only_changed_values_are_kept() {
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
    fn a_rule_turns_an_address_neither_into_an_invalid_one_nor_into_a_local_file() {
        check(RuleField::Url, &[(".*", "x")], None);
        check(RuleField::Url, &[("^http", "file")], None);
        check(RuleField::Url, &[(".*", "FILE:///etc/passwd")], None);
        check(RuleField::Url, &[("^http", "file"), ("1.ts", "2.ts")], Some("http://h/live/u/p/2.ts"));
        let list = Rules::new(&[rule(RuleField::Url, "one", "two")]).unwrap();
        let properties = StreamProperties { url: SourceUrl::new("file:///films/one.ts"), ..properties() };
        assert_eq!(list.apply(&properties).url, Some(SourceUrl::new("file:///films/two.ts")));
    }

    #[test]
    fn an_invalid_rule_is_reported_with_its_number() {
        let rules = [rule(RuleField::Name, "a", ""), rule(RuleField::Name, "(?=a)", "")];
        let refusal = Rules::new(&rules).unwrap_err().to_string();
        assert_eq!(refusal, "rule 2: look-ahead and look-behind are not supported");
        let many = vec![rules[0].clone(); RULES_MAX + 1];
        assert_eq!(Rules::new(&many).unwrap_err(), RulesError::TooMany);
    }
}
