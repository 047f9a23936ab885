//! Reads the programmes of guides once, and collects those that rules select.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use memchr::{memchr, memchr2};

use super::matching::{ChannelRules, RuleSet, RuleSubject, TitleMemo};
use super::{Airing, EpisodeKey, ProgrammeTest};
use crate::guide::programme::brief_from_xml;
use crate::guide::words::lower;
use crate::ids::{ChannelId, RecordingId};
use crate::recording::hash::Plain;
use crate::recording::{RecordedProgramme, Recording};

/// Maximum number of programmes that one rule selects, and that all rules select together. Further ones are left out.
pub const MATCHES_PER_RULE_MAX: usize = 2_000;
pub const GUIDE_MATCHES_MAX: usize = 100_000;

/// Maximum number of times without a pause that are kept of a guide channel. One with more is read each time.
const COVERS_MAX: usize = 1_000;

/// The programmes that rules select, while guides are read.
pub struct GuideScan<'a> {
    set: &'a RuleSet,
    titles: TitleMemo,
    /// Times that recordings follow, by the guide key in lower case.
    followed: HashMap<String, Vec<FollowedTime>>,
    found: Vec<(RuleSubject, Arc<Airing>)>,
    /// Rules and recordings whose guide id a channel has in the same case of letters.
    of_exact_ids: HashSet<RuleSubject>,
    n_of: HashMap<RuleSubject, usize, Plain>,
    covered: HashSet<RecordingId>,
    is_too_much: bool,
}

struct FollowedTime {
    id: RecordingId,
    start: i64,
    end: i64,
}

/// A guide channel whose programmes are read.
pub struct ScannedChannel<'s, 'a> {
    scan: &'s mut GuideScan<'a>,
    rules: Option<ChannelRules<'a>>,
    key: &'s str,
    channels: Arc<[ChannelId]>,
    /// Numbers of tests that a title passes, for reuse.
    passed: Vec<u32>,
    matches: ChannelMatches,
    is_whole: bool,
}

/// A programme that a rule or a recording selects.
struct Match {
    subject: RuleSubject,
    /// The channel has the guide id of the rule only in another case of letters.
    is_in_other_case: bool,
    airing: Arc<Airing>,
}

/// The programmes that were selected on a guide channel. Times are milliseconds since 1970.
#[derive(Default)]
pub struct ChannelMatches {
    found: Vec<Match>,
    /// Times at which the guide has programmes, without pauses within.
    covers: Vec<(i64, i64)>,
}

/// A guide channel whose matches depend on nothing else than the rules and its programmes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchKey {
    /// Key of the guide channel, and the other ids by which rules can name it.
    pub key: String,
    pub guide_ids: Vec<String>,
    /// The channels that show it.
    pub channels: Arc<[ChannelId]>,
}

/// A guide channel that was read.
pub struct KnownMatches {
    pub key: MatchKey,
    /// Source and generation of the file. The programmes in it never change.
    pub file: (u32, u64),
    /// A number that other programmes have another of.
    pub content: u64,
    /// The time that was read, in milliseconds since 1970.
    pub time: (i64, i64),
    pub matches: Arc<ChannelMatches>,
}

/// The matches of the last scan, for the next one. Only guide channels whose programmes have changed are read again.
#[derive(Default)]
pub struct MatchCache {
    set: Arc<RuleSet>,
    titles: TitleMemo,
    /// By a number of the guide: of a guide channel, and its offset.
    channels: HashMap<u64, KnownMatches>,
}

impl MatchCache {
    /// Returns the set of these tests, compiled once. Matches of other tests are forgotten.
    pub fn set_of(&mut self, tests: Vec<(RuleSubject, ProgrammeTest)>) -> Arc<RuleSet> {
        if !self.set.is_of(&tests) {
            *self = Self { set: Arc::new(RuleSet::from_tests(tests)), ..Self::default() };
        }
        Arc::clone(&self.set)
    }

    /// Exchanges the titles that were compared with those of a scan for the same set: before the scan, and after it.
    pub fn exchange_titles(&mut self, scan: &mut GuideScan<'_>) {
        std::mem::swap(&mut self.titles, &mut scan.titles);
    }

    /// Takes out a guide channel that has not changed, and was read for at least this time.
    pub fn take(
        &mut self,
        id: u64,
        key: &MatchKey,
        file: (u32, u64),
        (from, until): (i64, i64),
        content: impl FnOnce() -> Option<u64>,
    ) -> Option<KnownMatches> {
        let known = self.channels.remove(&id)?;
        let is_read = known.key == *key && known.time.0 <= from && until <= known.time.1;
        let is_same = is_read && (known.file == file || content() == Some(known.content));
        is_same.then_some(KnownMatches { file, ..known })
    }

    /// Replaces all guide channels, by their numbers.
    pub fn replace(&mut self, read: HashMap<u64, KnownMatches>) {
        self.channels = read;
    }
}

impl<'a> GuideScan<'a> {
    /// Starts a scan for rules and the recordings that follow the guide.
    pub fn new<'r>(set: &'a RuleSet, recordings: impl IntoIterator<Item = &'r Recording>) -> Self {
        let mut followed = HashMap::<_, Vec<_>>::new();
        for it in recordings {
            if let Some(airing) = it.followed.as_ref().filter(|_| !it.status.is_final()) {
                let time = FollowedTime { id: it.id, start: airing.start, end: airing.end };
                followed.entry(lower(&airing.guide_key)).or_default().push(time);
            }
        }
        Self {
            set,
            titles: TitleMemo::default(),
            followed,
            found: Vec::new(),
            of_exact_ids: HashSet::new(),
            n_of: HashMap::default(),
            covered: HashSet::new(),
            is_too_much: false,
        }
    }

    /// Names the ids of all guide channels that will be read. A rule with one of them selects nothing on a channel that has
    /// the id in another case of letters: ids that differ in case are two channels.
    pub fn set_guide_ids<'i>(&mut self, guide_ids: impl IntoIterator<Item = &'i str>) {
        self.of_exact_ids = self.set.subjects_of_ids(guide_ids);
    }

    /// Begins a guide channel with its key and the channels that show it, the preferred one first. `guide_ids` are the other
    /// ids by which rules can name it. `None` if nothing of it can matter.
    pub fn channel<'s>(
        &'s mut self,
        key: &'s str,
        guide_ids: &[&str],
        channels: Arc<[ChannelId]>,
    ) -> Option<ScannedChannel<'s, 'a>> {
        let rules = self.set.on_channel(guide_ids.iter().copied().chain([key]));
        if rules.is_none() && !self.followed.contains_key(&lower(key)) {
            return None;
        }
        let (passed, matches) = (Vec::new(), ChannelMatches::default());
        Some(ScannedChannel { scan: self, rules, key, channels, passed, matches, is_whole: true })
    }

    /// Adds matches of a guide channel, as far as they overlap `from..until`, in milliseconds since
    /// 1970.
    pub fn reuse(&mut self, key: &str, matches: &ChannelMatches, from: i64, until: i64) {
        for it in self.followed.get(&lower(key)).into_iter().flatten() {
            let overlaps = |(start, end): &(i64, i64)| {
                let (start, end) = ((*start).max(from), (*end).min(until));
                start < end && it.start < end && start < it.end
            };
            if matches.covers.iter().any(overlaps) {
                self.covered.insert(it.id);
            }
        }
        for Match { subject, is_in_other_case, airing } in &matches.found {
            let is_meant = !is_in_other_case || !self.of_exact_ids.contains(subject);
            if is_meant && airing.end > from && airing.start < until {
                self.add(*subject, Arc::clone(airing));
            }
        }
    }

    /// Returns whether programmes were left out because there were too many.
    pub fn is_too_much(&self) -> bool {
        self.is_too_much
    }

    /// Returns the programmes that were selected, and the recordings at whose time the guide has a programme.
    pub fn finish(self) -> (Vec<(RuleSubject, Arc<Airing>)>, HashSet<RecordingId>) {
        (self.found, self.covered)
    }

    fn has_room(&self, subject: RuleSubject) -> bool {
        self.found.len() < GUIDE_MATCHES_MAX
            && self.n_of.get(&subject).is_none_or(|n| *n < MATCHES_PER_RULE_MAX)
    }

    fn add(&mut self, subject: RuleSubject, airing: Arc<Airing>) {
        let n_of = self.n_of.entry(subject).or_default();
        if *n_of >= MATCHES_PER_RULE_MAX || self.found.len() >= GUIDE_MATCHES_MAX {
            self.is_too_much = true;
            return;
        }
        *n_of += 1;
        self.found.push((subject, airing));
    }
}

impl ScannedChannel<'_, '_> {
    /// Looks at a programme. Times are seconds since 1970, `inner` is its stored form.
    pub fn programme(&mut self, start: i64, stop: i64, inner: &str, id: impl FnOnce() -> String) {
        let (start_ms, end_ms) = (start.saturating_mul(1000), stop.saturating_mul(1000));
        self.cover(start_ms, end_ms);
        let Some(rules) = &mut self.rules else { return };
        let title = first_title(inner);
        self.passed.clear();
        rules.by_title(&mut self.scan.titles, &title, |found| self.passed.push(found));
        self.passed.retain(|it| rules.fits(*it, (start, stop), &self.channels));
        if self.passed.is_empty() {
            return;
        }
        let has_room = self.scan.found.len() + self.matches.found.len() < GUIDE_MATCHES_MAX
            && self.passed.iter().any(|it| rules.subject(*it).is_some_and(|it| self.scan.has_room(it)));
        if !has_room {
            self.is_whole = false;
            return;
        }
        let Ok(programme) = brief_from_xml(start, stop, inner) else { return };
        let accepted = |it: &u32| Some((rules.accepts(*it, &programme)?, rules.is_in_other_case(*it)));
        let mut subjects: Vec<_> = self.passed.iter().filter_map(accepted).collect();
        subjects.sort_unstable();
        subjects.dedup();
        if subjects.is_empty() {
            return;
        }
        let (episode, former_episodes) = EpisodeKey::with_former(&programme, self.key);
        let airing = Arc::new(Airing {
            guide_key: self.key.to_owned(),
            channels: Arc::clone(&self.channels),
            start: start_ms,
            end: end_ms,
            episode,
            former_episodes,
            is_new: programme.is_new(),
            is_repeat: programme.is_previously_shown(),
            programme: Some(RecordedProgramme::from_guide(&programme, id(), self.key)),
        });
        let matches = subjects.into_iter().map(|(subject, is_in_other_case)| Match {
            subject,
            is_in_other_case,
            airing: Arc::clone(&airing),
        });
        self.matches.found.extend(matches);
    }

    /// Notes the time of a programme. Programmes come by their start.
    fn cover(&mut self, start: i64, end: i64) {
        match self.matches.covers.last_mut() {
            Some(last) if (last.0..=last.1).contains(&start) => last.1 = last.1.max(end),
            _ => self.matches.covers.push((start, end)),
        }
    }

    /// Ends the guide channel: adds its matches that overlap `from..until`, in milliseconds since 1970. Returns all of them for
    /// a later scan; `None` if some were left out or there are too many.
    pub fn finish(self, from: i64, until: i64) -> Option<Arc<ChannelMatches>> {
        self.scan.is_too_much |= !self.is_whole;
        self.scan.reuse(self.key, &self.matches, from, until);
        let can_be_kept = self.is_whole && self.matches.covers.len() <= COVERS_MAX;
        can_be_kept.then(|| Arc::new(self.matches))
    }
}

/// Returns the title that a programme begins with, if it is plain text. Almost all programmes begin like this.
fn plain_title(inner: &str) -> Option<&str> {
    let element = inner.strip_prefix("<title")?;
    let text = element.get(memchr(b'>', element.as_bytes())? + 1..)?;
    let (text, rest) = text.split_at_checked(memchr2(b'<', b'&', text.as_bytes())?)?;
    rest.starts_with("</title").then_some(text)
}

/// Returns the preferred title of a programme without reading the rest of it.
fn first_title(inner: &str) -> Cow<'_, str> {
    if let Some(text) = plain_title(inner) {
        return Cow::Borrowed(text);
    }
    let Some(element) = inner.find("<title").and_then(|at| inner.get(at + "<title".len()..)) else {
        return Cow::Borrowed("");
    };
    let text = element.split_once('>').map_or("", |it| it.1);
    let text = text.split_once("</title").map_or("", |it| it.0);
    if text.contains('&') { html_escape::decode_html_entities(text) } else { Cow::Borrowed(text) }
}
