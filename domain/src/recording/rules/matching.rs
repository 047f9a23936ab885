//! Finds the programmes that rules select. Most programmes cost one look into a map: rules with an exact title are found by
//! the hash of the title, and rules with a guide id only where it occurs.

use std::collections::HashMap;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::episode::{FNV_BASIS, fnv};
use super::{ProgrammeTest, RecordingRule, RuleSelection};
use crate::guide::programme::Programme;
use crate::guide::text_query::{QUERY_CHARS_MAX, TextQuery};
use crate::guide::words::{lower, lower_into, words};
use crate::pattern::{PATTERN_BYTES_MAX, TEXT_BYTES_MAX, compile};
use crate::recording::Recording;

/// A text that a programme must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextTest {
    pub mode: TextMode,
    pub text: String,
}

/// How a text is compared. Case never counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextMode {
    /// The same text; the number of blanks does not count.
    Exact,
    /// The text occurs.
    Contains,
    /// Words, phrases in quotes, `AND`, `OR` and parentheses.
    Search,
    /// A regular expression matches somewhere.
    Regex,
}

impl TextTest {
    /// Checks that the text can be used.
    ///
    /// # Errors
    /// The reason, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.compiled().map(drop)
    }

    fn compiled(&self) -> Result<CompiledTest, String> {
        if self.text.trim().is_empty() {
            return Err("This field may not be blank.".to_owned());
        }
        if self.text.chars().count() > QUERY_CHARS_MAX {
            return Err(format!("At most {QUERY_CHARS_MAX} characters are allowed."));
        }
        let sentence = |reason: String| {
            let mut chars = reason.chars();
            let first = chars.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
            format!("{first}{}.", chars.as_str().trim_end_matches('.'))
        };
        Ok(match self.mode {
            TextMode::Exact => CompiledTest::Exact(self.text.clone()),
            TextMode::Contains => CompiledTest::Contains(lower(self.text.trim())),
            TextMode::Search => {
                let query = TextQuery::parse(&self.text).map_err(|it| sentence(it.to_string()))?;
                CompiledTest::Search(query)
            }
            TextMode::Regex if self.text.len() > PATTERN_BYTES_MAX => {
                return Err(format!("At most {PATTERN_BYTES_MAX} bytes are allowed."));
            }
            TextMode::Regex => {
                CompiledTest::Regex(compile(&self.text, true).map_err(|it| sentence(it.to_string()))?)
            }
        })
    }
}

enum CompiledTest {
    Exact(String),
    /// In lower case.
    Contains(String),
    Search(TextQuery),
    Regex(Regex),
}

impl CompiledTest {
    /// `lowered` is the text in lower case.
    fn holds(&self, text: &str, lowered: &str) -> bool {
        match self {
            Self::Exact(wanted) => is_same(wanted, text),
            Self::Contains(wanted) => lowered.contains(wanted.as_str()),
            Self::Search(query) => {
                let found = words(text);
                query.matches(&|term| {
                    if term.is_phrase {
                        return lowered.contains(&lower(&term.text));
                    }
                    let wanted = words(&term.text);
                    !wanted.is_empty() && wanted.iter().all(|it| found.contains(it))
                })
            }
            Self::Regex(regex) => text.len() <= TEXT_BYTES_MAX && regex.is_match(text),
        }
    }
}

/// The origin of a selection: the position of a rule, or of a recording that a user made and that follows the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleSubject {
    Rule(u32),
    Recording(u32),
}

/// All rules and followed recordings at one moment, compiled.
#[derive(Default)]
pub struct RuleSet {
    tests: Vec<Compiled>,
    /// Positions of tests with an exact title and no guide id, by the hash of the title.
    by_title: HashMap<u64, Vec<u32>, Plain>,
    /// The same with a guide id, by the hash of both.
    by_both: HashMap<u64, Vec<u32>, Plain>,
    /// Positions of the other tests with a guide id, by its hash.
    by_guide_id: HashMap<u64, Vec<u32>, Plain>,
    /// Guide ids in `by_both`.
    guide_ids: HashMap<u64, (), Plain>,
    /// Positions of tests that every programme is compared with.
    others: Vec<u32>,
}

struct Compiled {
    subject: RuleSubject,
    /// In lower case.
    guide_id: Option<String>,
    title: Option<CompiledTest>,
    description: Option<CompiledTest>,
}

/// The rules that can select programmes of one guide channel.
pub struct ChannelRules<'a> {
    set: &'a RuleSet,
    guide_ids: Vec<(u64, String)>,
    /// Tests that every programme of the channel is compared with.
    others: Vec<u32>,
    lowered: String,
}

impl RuleSet {
    /// Compiles rules, and the recordings of users that follow the guide. Disabled and weekly rules select no programme, and
    /// neither do rules that an earlier version accepted and this one does not.
    pub fn new<'a>(
        rules: impl IntoIterator<Item = &'a RecordingRule>,
        recordings: impl IntoIterator<Item = &'a Recording>,
    ) -> Self {
        let mut set = Self::default();
        for (at, rule) in (0..).zip(rules) {
            if let RuleSelection::Programmes(test) = &rule.selection
                && rule.enabled
            {
                set.add(RuleSubject::Rule(at), test);
            }
        }
        for (at, recording) in (0..).zip(recordings) {
            let Some(followed) = recording.followed.as_ref().filter(|it| it.rule.is_none()) else { continue };
            let Some(programme) = recording.programme.as_ref().filter(|it| !it.title.is_empty()) else {
                continue;
            };
            let title = TextTest { mode: TextMode::Exact, text: programme.title.clone() };
            let tvg_id = Some(followed.guide_key.clone());
            let test = ProgrammeTest { tvg_id, title: Some(title), ..ProgrammeTest::default() };
            set.add(RuleSubject::Recording(at), &test);
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    fn add(&mut self, subject: RuleSubject, test: &ProgrammeTest) {
        let compiled = |it: &Option<TextTest>| it.as_ref().map(TextTest::compiled).transpose();
        let (Ok(title), Ok(description)) = (compiled(&test.title), compiled(&test.description)) else {
            return;
        };
        if title.is_none() && description.is_none() {
            return;
        }
        let at = self.tests.len() as u32;
        let guide_id = test.tvg_id.as_deref().map(|it| lower(it.trim())).filter(|it| !it.is_empty());
        let id_hash = guide_id.as_deref().map(hash_of);
        match (id_hash, &title) {
            (Some(id), Some(CompiledTest::Exact(text))) => {
                self.guide_ids.insert(id, ());
                self.by_both.entry(id ^ hash_of(text).rotate_left(1)).or_default().push(at);
            }
            (None, Some(CompiledTest::Exact(text))) => {
                self.by_title.entry(hash_of(text)).or_default().push(at);
            }
            (Some(id), _) => self.by_guide_id.entry(id).or_default().push(at),
            (None, _) => self.others.push(at),
        }
        self.tests.push(Compiled { subject, guide_id, title, description });
    }

    /// Returns the rules for a guide channel with these ids: its key and those of its channels. `None` if no rule can select
    /// a programme of it.
    pub fn on_channel<'a>(&self, guide_ids: impl IntoIterator<Item = &'a str>) -> Option<ChannelRules<'_>> {
        let mut ids: Vec<_> =
            guide_ids.into_iter().map(|it| lower(it.trim())).filter(|it| !it.is_empty()).collect();
        ids.sort_unstable();
        ids.dedup();
        let ids: Vec<_> = ids.into_iter().map(|it| (hash_of(&it), it)).collect();
        let of_ids = ids.iter().filter_map(|(hash, _)| self.by_guide_id.get(hash)).flatten();
        let others: Vec<_> = of_ids.chain(&self.others).copied().collect();
        let mut guide_ids = ids.clone();
        guide_ids.retain(|(hash, _)| self.guide_ids.contains_key(hash));
        if others.is_empty() && guide_ids.is_empty() && self.by_title.is_empty() {
            return None;
        }
        let keeps = |at: &u32| {
            let wanted = self.tests.get(*at as usize).and_then(|it| it.guide_id.as_ref());
            wanted.is_none_or(|wanted| ids.iter().any(|(_, id)| id == wanted))
        };
        let mut others = others;
        others.retain(keeps);
        Some(ChannelRules { set: self, guide_ids, others, lowered: String::new() })
    }
}

impl ChannelRules<'_> {
    /// Calls `visit` with everything whose title test a programme passes. The description is not looked at:
    /// see [`ChannelRules::accepts`].
    pub fn by_title(&mut self, title: &str, mut visit: impl FnMut(u32)) {
        let set = self.set;
        let of_title = if set.by_title.is_empty() && self.guide_ids.is_empty() { 0 } else { hash_of(title) };
        let is_exact = |at: &u32| {
            let test = set.tests.get(*at as usize).and_then(|it| it.title.as_ref());
            matches!(test, Some(CompiledTest::Exact(wanted)) if is_same(wanted, title))
        };
        set.by_title.get(&of_title).into_iter().flatten().filter(|it| is_exact(it)).for_each(|it| visit(*it));
        for (hash, id) in &self.guide_ids {
            let found = set.by_both.get(&(hash ^ of_title.rotate_left(1))).into_iter().flatten();
            let is_of_id = |at: &&u32| {
                set.tests.get(**at as usize).is_some_and(|it| it.guide_id.as_ref() == Some(id))
                    && is_exact(at)
            };
            found.filter(is_of_id).for_each(|it| visit(*it));
        }
        if self.others.is_empty() {
            return;
        }
        lower_into(title, &mut self.lowered);
        for at in &self.others {
            let test = set.tests.get(*at as usize).and_then(|it| it.title.as_ref());
            if test.is_none_or(|it| it.holds(title, &self.lowered)) {
                visit(*at);
            }
        }
    }

    /// Returns what a number of [`ChannelRules::by_title`] stands for, if it accepts the description of the programme.
    pub fn accepts(&self, found: u32, programme: &Programme) -> Option<RuleSubject> {
        let test = self.set.tests.get(found as usize)?;
        let Some(description) = &test.description else { return Some(test.subject) };
        let text = programme.description().unwrap_or_default();
        description.holds(text, &lower(text)).then_some(test.subject)
    }
}

/// Calls `visit` with each byte of the text in lower case, with one blank between words and none around them.
pub(super) fn each_normal_byte(text: &str, mut visit: impl FnMut(u8)) {
    let mut has_blank = false;
    let mut has_begun = false;
    let mut buffer = [0; 4];
    for it in text.chars() {
        if it.is_whitespace() {
            has_blank = has_begun;
            continue;
        }
        if std::mem::take(&mut has_blank) {
            visit(b' ');
        }
        has_begun = true;
        match it.is_ascii() {
            true => visit((it as u8).to_ascii_lowercase()),
            false => {
                it.to_lowercase().for_each(|it| it.encode_utf8(&mut buffer).bytes().for_each(&mut visit))
            }
        }
    }
}

/// Returns whether texts are the same apart from case and the number of blanks.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let normal = |it: &str| {
        let mut bytes = Vec::with_capacity(it.len());
        each_normal_byte(it, |byte| bytes.push(byte));
        bytes
    };
    one == other || normal(one) == normal(other)
}

fn hash_of(text: &str) -> u64 {
    let mut hash = FNV_BASIS;
    each_normal_byte(text, |byte| hash = fnv(hash, byte));
    hash
}

/// The keys are hashes already.
#[derive(Default, Clone)]
struct Plain;

struct PlainHasher(u64);

impl std::hash::BuildHasher for Plain {
    type Hasher = PlainHasher;

    fn build_hasher(&self) -> PlainHasher {
        PlainHasher(0)
    }
}

impl std::hash::Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        // The table uses the highest bits, which FNV spreads least.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = fnv(self.0, *byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
