//! Search and replace by regular expression.
//!
//! Admins use patterns of two dialects, so both notations of a replacement are accepted, and characters that are
//! literal in both dialects are literal here. Features that could take unbounded time are rejected with a message:
//! look-around, and back-references.

use std::borrow::Cow;
use std::fmt;

use regex::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Maximum length of a pattern and of a replacement, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Maximum length of an input text and of a result, in bytes.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of matches that are replaced in one text.
pub const MATCHES_MAX: usize = 1000;

/// Memory limit of a compiled pattern, in bytes. Matching time grows with it and with the text.
const COMPILED_BYTES_MAX: usize = 512 * 1024;
/// The same for patterns that are searched together.
const SET_BYTES_MAX: usize = 32 << 20;
/// Maximum nesting depth of groups.
const DEPTH_MAX: u32 = 50;

/// A pattern and its replacement.
///
/// Prints without its texts, because a pattern that changes a login contains one.
#[derive(Clone)]
pub struct Pattern {
    find: Regex,
    replace: Vec<Part>,
}

/// The reason why a pattern is invalid, as a message for its author. It does not repeat the pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty")]
    Empty,
    #[error("the {0} is too long: at most {PATTERN_BYTES_MAX} bytes are allowed")]
    TooLong(&'static str),
    #[error("look-ahead and look-behind are not supported")]
    LookAround,
    #[error("a pattern cannot refer back to its own groups")]
    BackReference,
    #[error("the pattern is too large once it is compiled")]
    TooLarge,
    #[error("invalid pattern: {0}")]
    Syntax(String),
    #[error(
        "the replacement refers to group {0}, which the pattern does not have; write a dollar sign as $$"
    )]
    NoSuchGroup(String),
    #[error("the replacement has an unclosed group reference")]
    Unclosed,
    #[error("the replacement has \\{0}, which is not an escape; write a backslash as \\\\")]
    Escape(char),
}

/// A part of a replacement.
#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

impl Pattern {
    /// Compiles a pattern and parses its replacement.
    ///
    /// A replacement refers to groups as `$1`, `${1}`, `$name`, `${name}`, `$<name>`, `$&`, or as `\1`, `\g<1>`,
    /// `\g<name>`; group 0 is the whole match. `$1x` is group 1 and an x.
    pub fn new(find: &str, replace: &str) -> Result<Self, PatternError> {
        if find.is_empty() {
            return Err(PatternError::Empty);
        }
        for (text, what) in [(find, "pattern"), (replace, "replacement")] {
            if text.len() > PATTERN_BYTES_MAX {
                return Err(PatternError::TooLong(what));
            }
        }
        let find = compile(find, false)?;
        let replace = parts(replace, &find)?;
        Ok(Self { find, replace })
    }

    /// Returns the text with every match replaced. A text without a match stays as it is, and so does one that has, or
    /// would get, more than [`TEXT_BYTES_MAX`] bytes, because a truncated address is another address.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.len() > TEXT_BYTES_MAX {
            return Cow::Borrowed(text);
        }
        let mut matches = self.find.captures_iter(text).take(MATCHES_MAX).peekable();
        if matches.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let mut changed = String::with_capacity(text.len());
        let mut end = 0;
        for found in matches {
            let Some(whole) = found.get(0) else { continue };
            changed.push_str(&text[end..whole.start()]);
            self.push(&found, &mut changed);
            end = whole.end();
            if changed.len() > TEXT_BYTES_MAX {
                return Cow::Borrowed(text);
            }
        }
        changed.push_str(&text[end..]);
        if changed.len() > TEXT_BYTES_MAX || changed == text {
            return Cow::Borrowed(text);
        }
        Cow::Owned(changed)
    }

    /// Returns whether the pattern occurs in a text of at most [`TEXT_BYTES_MAX`] bytes.
    pub fn is_match(&self, text: &str) -> bool {
        text.len() <= TEXT_BYTES_MAX && self.find.is_match(text)
    }

    /// Appends the replacement of one match, until the result is too long anyway.
    fn push(&self, found: &Captures<'_>, changed: &mut String) {
        for part in &self.replace {
            match part {
                Part::Text(text) => changed.push_str(text),
                Part::Group(group) => changed.push_str(found.get(*group).map_or("", |it| it.as_str())),
            }
            if changed.len() > TEXT_BYTES_MAX {
                return;
            }
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pattern(…)")
    }
}

/// Compiles a pattern that is not empty.
pub(crate) fn compile(find: &str, ignores_case: bool) -> Result<Regex, PatternError> {
    RegexBuilder::new(&translate(find))
        .case_insensitive(ignores_case)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(DEPTH_MAX)
        .build()
        .map_err(pattern_error)
}

/// Compiles patterns that were compiled one by one, to be searched together. `None` if they are too large together.
pub(crate) fn compile_set<'a>(
    find: impl IntoIterator<Item = &'a str>,
    ignores_case: bool,
) -> Option<RegexSet> {
    let set = RegexSetBuilder::new(find.into_iter().map(translate))
        .case_insensitive(ignores_case)
        .size_limit(SET_BYTES_MAX)
        .dfa_size_limit(SET_BYTES_MAX)
        .nest_limit(DEPTH_MAX)
        .build();
    set.ok()
}

/// Converts the engine's error, without the pattern that it repeats.
fn pattern_error(error: regex::Error) -> PatternError {
    match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
        error => {
            let text = error.to_string();
            let reason = text.rsplit_once("error: ").map_or("it cannot be compiled", |it| it.1).trim();
            if reason.contains("look-around") {
                PatternError::LookAround
            } else if reason.contains("backreference") {
                PatternError::BackReference
            } else {
                PatternError::Syntax(reason.to_owned())
            }
        }
    }
}

/// Translates a pattern to the engine's dialect: escapes characters that have a special meaning only there, and
/// rewrites the end-of-text anchor.
fn translate(find: &str) -> String {
    let mut plain = String::with_capacity(find.len() + 8);
    let mut rest = find.chars();
    let mut is_class = false;
    // A `]` directly after the beginning of a class belongs to it.
    let mut is_first = false;
    while let Some(it) = rest.next() {
        let was_first = std::mem::take(&mut is_first);
        match it {
            '\\' => match rest.next() {
                Some('Z') if !is_class => plain.push_str("\\z"),
                Some(letter @ ('<' | '>')) => plain.push(letter),
                Some('b') if is_class => plain.push_str("\\x08"),
                Some(letter @ ('p' | 'P' | 'x' | 'u' | 'U')) if rest.as_str().starts_with('{') => {
                    plain.extend(['\\', letter, '{']);
                    rest.next();
                }
                Some(letter) => plain.extend(['\\', letter]),
                None => plain.push('\\'),
            },
            '[' if !is_class => {
                is_class = true;
                is_first = true;
                plain.push('[');
                if rest.as_str().starts_with('^') {
                    plain.push('^');
                    rest.next();
                }
            }
            ']' if is_class && !was_first => {
                is_class = false;
                plain.push(']');
            }
            '[' | ']' | '&' | '~' if is_class => plain.extend(['\\', it]),
            // Two hyphens would subtract one class from another.
            '-' if is_class && rest.as_str().starts_with('-') => {
                plain.push_str("-\\-");
                rest.next();
            }
            '{' if !is_class && !is_repetition(rest.as_str()) => plain.push_str("\\{"),
            it => plain.push(it),
        }
    }
    plain
}

/// Returns whether this follows the brace of `{3}`, `{3,}`, `{,3}` or `{3,4}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let are_digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    are_digits(least) && are_digits(most) && !(least.is_empty() && most.is_empty())
}

/// Parses a replacement and resolves its groups.
fn parts(replace: &str, find: &Regex) -> Result<Vec<Part>, PatternError> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = replace;
    while let Some(at) = rest.find(['$', '\\']) {
        text.push_str(&rest[..at]);
        let is_dollar = rest[at..].starts_with('$');
        let behind = &rest[at + 1..];
        let next = behind.chars().next();
        let (group, taken) = match next {
            Some('0'..='9') => number(behind, find)?,
            Some('{') if is_dollar => closed(behind, 1, '}', find)?,
            Some('<') if is_dollar => closed(behind, 1, '>', find)?,
            Some('g') if !is_dollar && behind[1..].starts_with('<') => closed(behind, 2, '>', find)?,
            Some('&') if is_dollar => (0, 1),
            Some(first) if is_dollar && is_name(first) => {
                let end = behind.find(|it: char| !is_name(it)).unwrap_or(behind.len());
                (named(&behind[..end], find)?, end)
            }
            Some(letter) if !is_dollar && letter.is_ascii_alphanumeric() => {
                return Err(PatternError::Escape(letter));
            }
            // `$$`, `\\`, and `\` before a character that needs no escape.
            Some(sign) if !is_dollar || sign == '$' => {
                text.push(sign);
                rest = &behind[sign.len_utf8()..];
                continue;
            }
            _ => {
                text.push(if is_dollar { '$' } else { '\\' });
                rest = behind;
                continue;
            }
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(Part::Group(group));
        rest = &behind[taken..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

fn is_name(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// Returns a group and the length of its number: two digits if such a group exists, else one.
fn number(text: &str, find: &Regex) -> Result<(usize, usize), PatternError> {
    let n_digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    (1..=n_digits)
        .rev()
        .find_map(|n| text[..n].parse().ok().filter(|it| *it < find.captures_len()).map(|it| (it, n)))
        .ok_or_else(|| PatternError::NoSuchGroup(text[..n_digits].to_owned()))
}

/// Returns the group named between `start` and the closing character.
fn closed(text: &str, start: usize, close: char, find: &Regex) -> Result<(usize, usize), PatternError> {
    let end = text.find(close).ok_or(PatternError::Unclosed)?;
    Ok((named(&text[start..end], find)?, end + 1))
}

/// Returns a group by its name or number.
fn named(name: &str, find: &Regex) -> Result<usize, PatternError> {
    let by_number = name.parse().ok().filter(|it| *it < find.captures_len());
    by_number
        .or_else(|| find.capture_names().position(|it| it == Some(name)))
        .ok_or_else(|| PatternError::NoSuchGroup(name.chars().take(32).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(find: &str, replace: &str, text: &str, expected: &str) {
        let pattern = Pattern::new(find, replace).unwrap_or_else(|it| panic!("{find:?} {replace:?}: {it}"));
        assert_eq!(pattern.apply(text), expected, "{find:?} {replace:?}");
    }

    #[track_caller]
    fn refused(find: &str, replace: &str, sentence: &str) {
        assert_eq!(Pattern::new(find, replace).unwrap_err().to_string(), sentence, "{find:?} {replace:?}");
    }

    // Holds T-rx.1.
    #[test]
    fn replacements_of_both_dialects_are_accepted() {
        for one in ["$1", "${1}", "$<word>", "$word", "${word}", r"\1", r"\g<1>", r"\g<word>"] {
            check(r"(?P<word>\w+) (\w+)", &format!("$2 {one}"), "News HD", "HD News");
            check(r"(?<word>\w+) (\w+)", &format!(r"\2-{one}"), "News HD", "HD-News");
        }
        for whole in ["$0", "$&", "${0}", r"\0", r"\g<0>"] {
            check(r"\d+", &format!("<{whole}>"), "a 12 b 3", "a <12> b <3>");
        }
        check("(a)", "$1x", "a", "ax");
        check("(a)", r"\1x", "a", "ax");
        check("(a)", "$12", "a", "a2");
        check(&"(a)".repeat(12), "$12$1b", &"a".repeat(12), "aab");
        check("(a)|(b)", "[$2]", "ab", "[][b]");
        check("a", "$$1 $ $- $$", "a", "$1 $ $- $");
        check("a", r"\\ \$1 \. \", "a", r"\ $1 . \");
        check("é", "→$0←", "café", "caf→é←");
        check("x", "$0", "x", "x");
        check(" ?(HD|FHD)$", "", "News FHD", "News");
    }

    // Holds T-rx.1.
    #[test]
    fn patterns_of_both_dialects_keep_their_meaning() {
        check(r"http:\/\/h\/", "", "http://h/x", "x");
        check(r"\[[^[]*\] ", "", "[UK] News", "News");
        check("[]x]", "", "a]x", "a");
        check("[^]x]", "", "a]x", "]x");
        check("[a&&b]", "", "a&b", "");
        check("[+--]", "", "a+,-b", "ab");
        check("[~~]", "", "a~b", "ab");
        check(r"News\Z", "x", "News News", "News x");
        check(r"\<b\>", "", "<b>x", "x");
        check("{US} ", "", "{US} News", "News");
        check("a{2}", "x", "aaa", "xa");
        check("a{2,}", "x", "aaa", "x");
        check("(?i)news", "x", "NEWS", "x");
        check(r"\s*\|\s*", " ", "UK | News", "UK News");
        check(r"\p{Cyrillic}+", "x", "Канал 1", "x 1");
        check("^", "UK: ", "News", "UK: News");
    }

    #[test]
    fn an_invalid_pattern_is_refused_with_a_message() {
        for find in ["a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b"] {
            refused(find, "", "look-ahead and look-behind are not supported");
        }
        refused(r"(a)\1", "", "a pattern cannot refer back to its own groups");
        refused("", "x", "the pattern is empty");
        refused("(a", "", "invalid pattern: unclosed group");
        refused(
            &"a".repeat(PATTERN_BYTES_MAX + 1),
            "",
            "the pattern is too long: at most 1024 bytes are allowed",
        );
        refused(
            "a",
            &"a".repeat(PATTERN_BYTES_MAX + 1),
            "the replacement is too long: at most 1024 bytes are allowed",
        );
        let missing = |it: &str| {
            format!(
                "the replacement refers to group {it}, which the pattern does not have; write a dollar sign as $$"
            )
        };
        for (replace, group) in [("$1", "1"), ("${x}", "x"), ("$name", "name"), (r"\3", "3"), ("$1_000", "1")]
        {
            refused("a", replace, &missing(group));
        }
        refused("(a)", "${1", "the replacement has an unclosed group reference");
        refused("a", r"\q", r"the replacement has \q, which is not an escape; write a backslash as \\");
    }

    #[test]
    fn neither_a_pattern_nor_its_error_prints_a_login() {
        let pattern = Pattern::new("user/secret", "user2/secret2").unwrap();
        assert_eq!(format!("{pattern:?}"), "Pattern(…)");
        for find in ["secret(", "secret(?=x)", r"secret\q", "secret[z-a]", "secret{9,1}", r"secret\p{x}"] {
            let refusal = format!("{0} {0:?}", Pattern::new(find, "").unwrap_err());
            assert!(!refusal.contains("secret"), "{refusal}");
        }
    }

    // Holds T-rx.2. A backtracking engine takes extremely long for each of these.
    #[test]
    fn a_hostile_pattern_runs_in_linear_time_or_is_refused() {
        let text = format!("{}!", "a".repeat(TEXT_BYTES_MAX - 1));
        let check_hostile = |find: &str| {
            if let Ok(pattern) = Pattern::new(find, "") {
                assert!(pattern.apply(&text).len() <= text.len());
                true
            } else {
                false
            }
        };
        for find in [
            "(a+)+$",
            "(a|a)*$",
            "(a|aa)+$",
            "(a*)*b",
            "([a-zA-Z]+)*$",
            "(.*a){12}$",
            "^(([a-z])+.)+[A-Z]([a-z])+$",
            r"(\w+\s?)*$",
            ".*.*=.*",
            "a*a*a*a*a*a*a*b",
        ] {
            assert!(check_hostile(find), "{find}");
        }
        for find in [
            r"\w{1000}{1000}",
            "(((a{50}){50}){50}){50}",
            r"(\pL{100}){100}",
            &"(".repeat(400),
            &"(a".repeat(400),
        ] {
            assert!(!check_hostile(find), "{find}");
        }
    }

    #[test]
    fn a_text_that_would_exceed_the_limit_stays_unchanged() {
        let text = "a".repeat(1000);
        let blown_up = Pattern::new("(a+)", &"$1".repeat(500)).unwrap();
        assert_eq!(blown_up.apply(&text), text);
        let many = Pattern::new("a", &"b".repeat(1000)).unwrap();
        assert_eq!(many.apply(&text), text);
        let long = "a".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(Pattern::new("a", "").unwrap().apply(&long), long);
    }

    proptest! {
        #[test]
        fn no_pattern_panics_and_every_result_is_limited(find in r"[a\\(){}\[\]<>?P*+^$|&~:=!0-9,zZé-]{0,24}", replace in r"[a$\\g<>{}&0-9é]{0,16}", text in "[a-c0-9é<>\\[\\]]{0,40}") {
            if let Ok(pattern) = Pattern::new(&find, &replace) {
                prop_assert!(pattern.apply(&text).len() <= TEXT_BYTES_MAX);
            }
        }

        #[test]
        fn an_escaped_text_matches_only_itself(text in "[ -~é]{1,20}") {
            let pattern = Pattern::new(&regex::escape(&text), "x").unwrap();
            prop_assert_eq!(pattern.apply(&text), "x");
        }
    }
}
