//! Finds the programmes that rules select. Most programmes cost one look into a map: what is known about a title is kept in a
//! [`TitleMemo`], because titles repeat. Rules with an exact title are found by the hash of the title, rules with a guide id
//! only on its channels, and regular expressions are searched together.

use std::collections::{HashMap, HashSet};

use regex::{Regex, RegexSet};
use serde::{Deserialize, Serialize};

use super::conditions::CompiledConditions;
use super::normal_text::{is_same, normal_hash};
use super::{ProgrammeTest, RecordingRule, RuleSelection};
use crate::guide::marks::{MarkedText, plain, plain_of_rule};
use crate::guide::programme::Programme;
use crate::guide::text_query::{QUERY_CHARS_MAX, TextQuery};
use crate::guide::words::{lower, lower_into, words};
use crate::ids::ChannelId;
use crate::pattern::{PATTERN_BYTES_MAX, TEXT_BYTES_MAX, compile, compile_set};
use crate::recording::Recording;
use crate::recording::hash::Plain;

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
            TextMode::Exact => {
                let plain = plain_of_rule(&self.text);
                let plain = (*plain != *self.text).then(|| plain.into_owned());
                CompiledTest::Exact(self.text.clone(), plain)
            }
            TextMode::Contains => CompiledTest::Contains(lower(self.text.trim())),
            TextMode::Search => {
                let query = TextQuery::parse(&self.text).map_err(|it| sentence(it.to_string()))?;
                CompiledTest::Search(query)
            }
            TextMode::Regex if self.text.len() > PATTERN_BYTES_MAX => {
                return Err(format!("At most {PATTERN_BYTES_MAX} bytes are allowed."));
            }
            TextMode::Regex => {
                let regex = compile(&self.text, true).map_err(|it| sentence(it.to_string()))?;
                CompiledTest::Regex(regex, self.text.clone())
            }
        })
    }
}

enum CompiledTest {
    /// The text, and the text without marks if it has some that do not name one showing.
    Exact(String, Option<String>),
    /// In lower case.
    Contains(String),
    Search(TextQuery),
    /// With its text.
    Regex(Regex, String),
}

impl CompiledTest {
    /// `lowered` is the text in lower case.
    fn holds(&self, text: &str, lowered: &str) -> bool {
        match self {
            Self::Exact(wanted, plain) => {
                is_same(wanted, text) || plain.as_deref().is_some_and(|it| is_same(it, text))
            }
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
            Self::Regex(regex, _) => text.len() <= TEXT_BYTES_MAX && regex.is_match(text),
        }
    }
}

/// Maximum number of titles in a [`TitleMemo`]. Further ones are compared each time.
const TITLES_MAX: usize = 1 << 16;

/// The origin of a selection: the position of a rule, or the id of a recording that a user made and that follows the guide.
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
    /// The same with a guide id, by its hash, with the hashes of their titles.
    by_both: HashMap<u64, Vec<(u64, u32)>, Plain>,
    /// Positions of the other tests with a guide id, by its hash.
    by_guide_id: HashMap<u64, Vec<u32>, Plain>,
    /// Positions of tests without a guide id that every title is compared with, one by one.
    others: Vec<u32>,
    /// The same for tests whose title is a regular expression, in the order in which they are compiled together.
    expressions: Option<(Vec<u32>, RegexSet)>,
    /// The tests before they were compiled.
    made_of: Vec<(RuleSubject, ProgrammeTest)>,
}

/// Titles that were compared with the tests of one [`RuleSet`]. A title passes a test as it is or without its marks.
#[derive(Default)]
pub(super) struct TitleMemo {
    titles: HashMap<Box<str>, KnownTitle, Plain>,
    lowered: String,
}

struct KnownTitle {
    /// Hash of the title in its normal form.
    hash: u64,
    /// The title without its marks and its hash, if it has marks.
    plain: Option<(Box<str>, u64)>,
    /// Tests without a guide id that the title passes.
    passed: Box<[u32]>,
}

/// The guide id of a test.
struct GuideId {
    exact: String,
    lower: String,
}

struct Compiled {
    subject: RuleSubject,
    guide_id: Option<GuideId>,
    title: Option<CompiledTest>,
    description: Option<CompiledTest>,
    conditions: Option<Box<CompiledConditions>>,
}

/// The rules that can select programmes of one guide channel.
pub struct ChannelRules<'a> {
    set: &'a RuleSet,
    /// Tests with a guide id and an exact title, sorted by the hash of the title.
    exact: Vec<(u64, u32)>,
    /// Tests with a guide id that every programme of the channel is compared with.
    others: Vec<u32>,
    /// Tests whose guide id the channel has in another case only, in order.
    in_other_case: Vec<u32>,
    lowered: String,
}

impl RuleSet {
    /// Compiles rules, and the recordings of users that follow the guide.
    pub fn new<'a>(
        rules: impl IntoIterator<Item = &'a RecordingRule>,
        recordings: impl IntoIterator<Item = &'a Recording>,
    ) -> Self {
        Self::from_tests(Self::tests(rules, recordings, |_| None))
    }

    /// Returns the tests of rules, and of the recordings of users that follow the guide: on the guide channel that `guide_key`
    /// returns, or on the one that they followed so far. Disabled and weekly rules select no programme.
    pub fn tests<'a>(
        rules: impl IntoIterator<Item = &'a RecordingRule>,
        recordings: impl IntoIterator<Item = &'a Recording>,
        guide_key: impl Fn(&Recording) -> Option<String>,
    ) -> Vec<(RuleSubject, ProgrammeTest)> {
        let of_rule = |(at, rule): (u32, &RecordingRule)| match &rule.selection {
            RuleSelection::Programmes(test) if rule.enabled => Some((RuleSubject::Rule(at), test.clone())),
            _ => None,
        };
        let of_recording = |it: &Recording| {
            let followed = it.followed.as_ref().filter(|_| !it.status.is_final());
            let followed = followed.filter(|it| it.rule.is_none())?;
            let programme = it.programme.as_ref().filter(|it| !it.title.is_empty())?;
            let title = TextTest { mode: TextMode::Exact, text: programme.title.clone() };
            let tvg_id = Some(guide_key(it).unwrap_or_else(|| followed.guide_key.clone()));
            let test = ProgrammeTest { tvg_id, title: Some(title), ..ProgrammeTest::default() };
            Some((RuleSubject::Recording(it.id.0), test))
        };
        let of_rules = (0..).zip(rules).filter_map(of_rule);
        of_rules.chain(recordings.into_iter().filter_map(of_recording)).collect()
    }

    /// Compiles tests. Those that an earlier version accepted and this one does not select nothing.
    pub fn from_tests(tests: Vec<(RuleSubject, ProgrammeTest)>) -> Self {
        let mut set = Self::default();
        for (subject, test) in &tests {
            set.add(*subject, test);
        }
        set.made_of = tests;
        set.compile_expressions();
        set
    }

    /// Returns whether the set was made of these tests.
    pub(super) fn is_of(&self, tests: &[(RuleSubject, ProgrammeTest)]) -> bool {
        self.made_of == tests
    }

    /// Compiles the regular expressions that every title is compared with together: one search finds all that match.
    fn compile_expressions(&mut self) {
        let text_of = |at: &u32| match self.tests.get(*at as usize)?.title.as_ref()? {
            CompiledTest::Regex(_, text) => Some(text.as_str()),
            _ => None,
        };
        let found: Vec<_> = self.others.iter().filter_map(|at| Some((*at, text_of(at)?))).collect();
        let Some(set) = compile_set(found.iter().map(|it| it.1), true) else { return };
        let positions: Vec<_> = found.iter().map(|it| it.0).collect();
        self.others.retain(|it| !positions.contains(it));
        self.expressions = (!positions.is_empty()).then_some((positions, set));
    }

    /// Returns what has to be known about a title.
    fn know(&self, title: &str, lowered: &mut String) -> KnownTitle {
        let hash = normal_hash(title);
        let mut passed = Vec::new();
        self.add_passed(title, hash, lowered, &mut passed);
        let plain = plain(title, MarkedText::Title);
        let plain = (*plain != *title).then(|| (Box::from(&*plain), normal_hash(&plain)));
        if let Some((plain, hash)) = &plain {
            self.add_passed(plain, *hash, lowered, &mut passed);
            passed.sort_unstable();
            passed.dedup();
        }
        KnownTitle { hash, plain, passed: passed.into() }
    }

    /// Adds the tests without a guide id that a text passes as a title.
    fn add_passed(&self, title: &str, hash: u64, lowered: &mut String, passed: &mut Vec<u32>) {
        let test = |at: &u32| self.tests.get(*at as usize).and_then(|it| it.title.as_ref());
        let exact = self.by_title.get(&hash).into_iter().flatten().copied();
        passed.extend(exact.filter(|at| self.is_title(*at, title)));
        if let Some((positions, set)) = &self.expressions
            // Most titles match none, which is found out faster than which ones match.
            && title.len() <= TEXT_BYTES_MAX
            && set.is_match(title)
        {
            passed.extend(set.matches(title).into_iter().filter_map(|n| positions.get(n)));
        }
        if !self.others.is_empty() {
            lower_into(title, lowered);
            let is_passed = |at: &&u32| test(at).is_none_or(|it| it.holds(title, lowered));
            passed.extend(self.others.iter().filter(is_passed));
        }
    }

    /// Returns whether a test wants exactly this title.
    fn is_title(&self, at: u32, title: &str) -> bool {
        let test = self.tests.get(at as usize).and_then(|it| it.title.as_ref());
        test.is_some_and(|it| matches!(it, CompiledTest::Exact(..)) && it.holds(title, ""))
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
        let guide_id = test.tvg_id.as_deref().map(str::trim).filter(|it| !it.is_empty());
        let guide_id = guide_id.map(|it| GuideId { exact: it.to_owned(), lower: lower(it) });
        let id_hash = guide_id.as_ref().map(|it| normal_hash(&it.lower));
        match (id_hash, &title) {
            (id, Some(CompiledTest::Exact(text, plain))) => {
                for text in [Some(text), plain.as_ref()].into_iter().flatten() {
                    let hash = normal_hash(text);
                    match id {
                        Some(id) => self.by_both.entry(id).or_default().push((hash, at)),
                        None => self.by_title.entry(hash).or_default().push(at),
                    }
                }
            }
            (Some(id), _) => self.by_guide_id.entry(id).or_default().push(at),
            (None, _) => self.others.push(at),
        }
        let conditions = CompiledConditions::new(&test.conditions).map(Box::new);
        self.tests.push(Compiled { subject, guide_id, title, description, conditions });
    }

    /// Returns the rules and recordings whose guide id is one of these, in the same case of letters.
    pub(super) fn subjects_of_ids<'a>(
        &self,
        guide_ids: impl IntoIterator<Item = &'a str>,
    ) -> HashSet<RuleSubject> {
        let ids: HashSet<&str> = guide_ids.into_iter().map(str::trim).collect();
        let is_of = |it: &&Compiled| it.guide_id.as_ref().is_some_and(|it| ids.contains(it.exact.as_str()));
        self.tests.iter().filter(is_of).map(|it| it.subject).collect()
    }

    /// Returns the rules for a guide channel with these ids: its key and those of its channels. `None` if no rule can select
    /// a programme of it.
    pub fn on_channel<'a>(&self, guide_ids: impl IntoIterator<Item = &'a str>) -> Option<ChannelRules<'_>> {
        let exact_ids: Vec<&str> = guide_ids.into_iter().map(str::trim).filter(|it| !it.is_empty()).collect();
        let mut ids: Vec<_> = exact_ids.iter().map(|it| lower(it)).collect();
        ids.sort_unstable();
        ids.dedup();
        let ids: Vec<_> = ids.into_iter().map(|it| (normal_hash(&it), it)).collect();
        let id_of = |at: u32| self.tests.get(at as usize).and_then(|it| it.guide_id.as_ref());
        let is_of_ids =
            |at: u32| id_of(at).is_some_and(|wanted| ids.iter().any(|(_, id)| *id == wanted.lower));
        let others = ids.iter().filter_map(|(hash, _)| self.by_guide_id.get(hash)).flatten();
        let others: Vec<_> = others.copied().filter(|at| is_of_ids(*at)).collect();
        let exact = ids.iter().filter_map(|(hash, _)| self.by_both.get(hash)).flatten();
        let mut exact: Vec<_> = exact.copied().filter(|(_, at)| is_of_ids(*at)).collect();
        exact.sort_unstable();
        let is_of_all = !self.others.is_empty() || self.expressions.is_some() || !self.by_title.is_empty();
        if others.is_empty() && exact.is_empty() && !is_of_all {
            return None;
        }
        let is_in_other_case =
            |at: &u32| id_of(*at).is_some_and(|wanted| !exact_ids.contains(&wanted.exact.as_str()));
        let of_ids = exact.iter().map(|it| it.1).chain(others.iter().copied());
        let mut in_other_case: Vec<_> = of_ids.filter(is_in_other_case).collect();
        in_other_case.sort_unstable();
        Some(ChannelRules { set: self, exact, others, in_other_case, lowered: String::new() })
    }
}

impl ChannelRules<'_> {
    /// Calls `visit` with everything whose title test a programme passes. The description is not looked at:
    /// see [`ChannelRules::accepts`].
    pub(super) fn by_title(&mut self, memo: &mut TitleMemo, title: &str, mut visit: impl FnMut(u32)) {
        let set = self.set;
        let new;
        let known = match memo.titles.get(title) {
            Some(known) => known,
            None if memo.titles.len() < TITLES_MAX => {
                let known = set.know(title, &mut memo.lowered);
                memo.titles.entry(title.into()).or_insert(known)
            }
            None => {
                new = set.know(title, &mut memo.lowered);
                &new
            }
        };
        known.passed.iter().for_each(|it| visit(*it));
        let plain = known.plain.as_ref().map(|(title, hash)| (&**title, *hash));
        for (title, hash) in [Some((title, known.hash)), plain].into_iter().flatten() {
            let from = self.exact.partition_point(|it| it.0 < hash);
            let found = self.exact.iter().skip(from).take_while(|it| it.0 == hash).map(|it| it.1);
            found.filter(|at| set.is_title(*at, title)).for_each(&mut visit);
            if self.others.is_empty() {
                continue;
            }
            lower_into(title, &mut self.lowered);
            for at in &self.others {
                let test = set.tests.get(*at as usize).and_then(|it| it.title.as_ref());
                if test.is_none_or(|it| it.holds(title, &self.lowered)) {
                    visit(*at);
                }
            }
        }
    }

    /// Returns what a number of [`ChannelRules::by_title`] stands for, whatever the description is.
    pub(super) fn subject(&self, found: u32) -> Option<RuleSubject> {
        self.set.tests.get(found as usize).map(|it| it.subject)
    }

    /// Returns whether the channel has the guide id of a test only in another case of letters.
    pub(super) fn is_in_other_case(&self, found: u32) -> bool {
        self.in_other_case.binary_search(&found).is_ok()
    }

    /// Returns whether a programme on these channels fulfils what a number of [`ChannelRules::by_title`] says about times and
    /// channels. Times are seconds since 1970.
    pub(super) fn fits(&self, found: u32, (start, stop): (i64, i64), channels: &[ChannelId]) -> bool {
        let test = self.set.tests.get(found as usize);
        test.is_some_and(|it| it.conditions.as_ref().is_none_or(|it| it.fits(start, stop, channels)))
    }

    /// Returns what a number of [`ChannelRules::by_title`] stands for, if it accepts the description and the season of the
    /// programme.
    pub fn accepts(&self, found: u32, programme: &Programme) -> Option<RuleSubject> {
        let test = self.set.tests.get(found as usize)?;
        if test.conditions.as_ref().is_some_and(|it| !it.fits_season(programme.season_episode().0)) {
            return None;
        }
        let Some(description) = &test.description else { return Some(test.subject) };
        let text = programme.description().unwrap_or_default();
        description.holds(text, &lower(text)).then_some(test.subject)
    }
}
