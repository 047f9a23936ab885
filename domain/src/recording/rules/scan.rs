//! Reads the programmes of guides once, and collects those that rules select.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::matching::{ChannelRules, RuleSet, RuleSubject};
use super::{Airing, EpisodeKey};
use crate::guide::programme::from_xml;
use crate::guide::words::lower;
use crate::ids::{ChannelId, RecordingId};
use crate::recording::{RecordedProgramme, Recording};

/// Maximum number of programmes that one rule selects, and that all rules select together. Further ones are left out.
pub const MATCHES_PER_RULE_MAX: usize = 2_000;
pub const GUIDE_MATCHES_MAX: usize = 100_000;

/// The programmes that rules select, while guides are read.
pub struct GuideScan<'a> {
    set: &'a RuleSet,
    /// Times that recordings follow, by the guide key in lower case.
    followed: HashMap<String, Vec<FollowedTime>>,
    found: Vec<(RuleSubject, Airing)>,
    n_of: HashMap<RuleSubject, usize>,
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
    lowered_key: String,
    channels: Arc<[ChannelId]>,
    /// Numbers of tests that a title passes, for reuse.
    passed: Vec<u32>,
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
        let (found, n_of, covered) = (Vec::new(), HashMap::new(), HashSet::new());
        Self { set, followed, found, n_of, covered, is_too_much: false }
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
        let lowered_key = lower(key);
        if rules.is_none() && !self.followed.contains_key(&lowered_key) {
            return None;
        }
        Some(ScannedChannel { scan: self, rules, key, lowered_key, channels, passed: Vec::new() })
    }

    /// Returns whether programmes were left out because there were too many.
    pub fn is_too_much(&self) -> bool {
        self.is_too_much
    }

    /// Returns the programmes that were selected, and the recordings at whose time the guide has a programme.
    pub fn finish(self) -> (Vec<(RuleSubject, Airing)>, HashSet<RecordingId>) {
        (self.found, self.covered)
    }

    fn add(&mut self, subject: RuleSubject, airing: Airing) {
        let n = self.n_of.entry(subject).or_default();
        if *n >= MATCHES_PER_RULE_MAX || self.found.len() >= GUIDE_MATCHES_MAX {
            self.is_too_much = true;
            return;
        }
        *n += 1;
        self.found.push((subject, airing));
    }
}

impl ScannedChannel<'_, '_> {
    /// Looks at a programme. Times are seconds since 1970, `inner` is its stored form.
    pub fn programme(&mut self, start: i64, stop: i64, inner: &str, id: impl FnOnce() -> String) {
        let (start_ms, end_ms) = (start.saturating_mul(1000), stop.saturating_mul(1000));
        for it in self.scan.followed.get(&self.lowered_key).into_iter().flatten() {
            if it.start < end_ms && start_ms < it.end {
                self.scan.covered.insert(it.id);
            }
        }
        let Some(rules) = &mut self.rules else { return };
        let title = first_title(inner);
        self.passed.clear();
        rules.by_title(&title, |found| self.passed.push(found));
        if self.passed.is_empty() {
            return;
        }
        let Ok(programme) = from_xml(start, stop, inner) else { return };
        let mut subjects: Vec<_> =
            self.passed.iter().filter_map(|it| rules.accepts(*it, &programme)).collect();
        subjects.sort_unstable();
        subjects.dedup();
        let Some(last) = subjects.pop() else { return };
        let airing = Airing {
            guide_key: self.key.to_owned(),
            channels: Arc::clone(&self.channels),
            start: start_ms,
            end: end_ms,
            episode: EpisodeKey::of(&programme, self.key),
            is_new: programme.is_new(),
            is_repeat: programme.is_previously_shown(),
            programme: Some(RecordedProgramme::of_guide(&programme, id(), self.key)),
        };
        for subject in subjects {
            self.scan.add(subject, airing.clone());
        }
        self.scan.add(last, airing);
    }
}

/// Returns the preferred title of a programme without reading the rest of it.
fn first_title(inner: &str) -> Cow<'_, str> {
    let Some(element) = inner.find("<title").and_then(|at| inner.get(at + "<title".len()..)) else {
        return Cow::Borrowed("");
    };
    let text = element.split_once('>').map_or("", |it| it.1);
    let text = text.split_once("</title").map_or("", |it| it.0);
    if text.contains('&') { html_escape::decode_html_entities(text) } else { Cow::Borrowed(text) }
}
