//! Decides which guide channel belongs to a channel.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::alias::{AliasName, GuideAlias};
use super::countries::Country;
use super::form::{Form, WordId};
use super::index::{Found, NameIndex};
use super::keys::{NormalKey, country_of_key, guide_id, station};
use super::names::{NameRules, NormalName};
use super::score::{FULL, Place, Reason, compare_places, compare_words};
use super::settings::MatchSettings;
use super::vocabulary::Quality;
use crate::ids::{GuideChannelId, GuideSourceId};

/// Maximum number of candidates that a result lists.
pub const CANDIDATES_MAX: usize = 10;
/// Maximum number of names of one guide channel that are compared.
const NAMES_MAX: usize = 16;
/// The least points of a candidate with the same name, apart from spaces and common words.
const SAME_NAME_POINTS: u16 = 910;
/// Where only some words agree, the next candidate must have this many points less.
const PARTIAL_LEAD: u16 = 50;

/// A channel of an active guide source.
#[derive(Debug, Clone, Copy)]
pub struct GuideEntry<'a> {
    pub id: GuideChannelId,
    pub source: GuideSourceId,
    /// The priority of the source: the larger value wins.
    pub priority: i32,
    /// Whether the keys of the source are numbers of Gracenote stations.
    pub has_station_keys: bool,
    pub key: &'a str,
    pub names: &'a [String],
}

/// A channel as matching sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    pub name: &'a str,
    /// The guide id.
    pub tvg_id: Option<&'a str>,
    /// The Gracenote station.
    pub station: Option<&'a str>,
    /// The name of the channel group.
    pub group: Option<&'a str>,
}

/// The decision for a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Link(GuideChannelId),
    /// Several guide channels fit equally well, so none is linked.
    Tie,
    /// The best candidate has too few points.
    BelowThreshold,
    /// Nothing resembles the channel.
    NoCandidate,
    /// The channel is the heading of a part of a playlist, or its name has no word.
    NoName,
}

/// A guide channel that may belong to a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub channel: GuideChannelId,
    /// Agreement in tenths of a percent.
    pub points: u16,
    pub reasons: Vec<Reason>,
}

/// A decision with its candidates, the best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchResult {
    pub decision: Decision,
    /// At most [`CANDIDATES_MAX`].
    pub candidates: Vec<Candidate>,
}

struct Guide {
    id: GuideChannelId,
    source: GuideSourceId,
    priority: i32,
    key: Box<str>,
    country: Option<Country>,
    shift: u8,
    quality: Quality,
}

/// The guide channels, prepared for matching. Building it takes about 10 microseconds per name.
pub struct Matcher {
    settings: MatchSettings,
    guides: Vec<Guide>,
    names: NameIndex,
    /// Positions of guides.
    by_id: HashMap<GuideChannelId, u32>,
    /// Positions of guides by their keys in lower case.
    by_key: HashMap<Box<str>, Vec<u32>>,
    by_normal_key: HashMap<Box<str>, Vec<u32>>,
    by_station: HashMap<Box<str>, Vec<u32>>,
    /// The guide that an admin linked with a name, and the guide id of that channel in lower case.
    learned: HashMap<AliasName, (u32, Option<String>)>,
}

/// A candidate during the decision.
struct Scored {
    guide: u32,
    points: u16,
    quality: Quality,
    reasons: Vec<Reason>,
}

impl Matcher {
    /// Prepares guide channels. Their order decides nothing.
    pub fn new<'a>(
        entries: impl Iterator<Item = GuideEntry<'a>>,
        aliases: impl Iterator<Item = &'a GuideAlias>,
        settings: MatchSettings,
    ) -> Self {
        let mut entries: Vec<GuideEntry<'a>> = entries.collect();
        entries.sort_unstable_by_key(|it| (Reverse(it.priority), it.source, it.id));
        let mut matcher = Self {
            settings,
            guides: Vec::with_capacity(entries.len()),
            names: NameIndex::default(),
            by_id: HashMap::new(),
            by_key: HashMap::new(),
            by_normal_key: HashMap::new(),
            by_station: HashMap::new(),
            learned: HashMap::new(),
        };
        for entry in &entries {
            matcher.add(entry);
        }
        matcher.names.finish();
        let of_key: HashMap<(GuideSourceId, &str), u32> =
            entries.iter().zip(0..).map(|(it, at)| ((it.source, it.key), at)).collect();
        for alias in aliases {
            if let Some(at) = of_key.get(&(alias.source, alias.key.as_str())) {
                let tvg_id = alias.tvg_id.as_deref().and_then(guide_id).map(str::to_lowercase);
                matcher.learned.insert(alias.name.clone(), (*at, tvg_id));
            }
        }
        matcher
    }

    fn add(&mut self, entry: &GuideEntry<'_>) {
        let at = u32::try_from(self.guides.len()).unwrap_or(u32::MAX);
        let key = NormalKey::parse(entry.key);
        let names = entry.names.iter().take(NAMES_MAX).map(|it| NormalName::new(it, &self.settings.rules));
        let names: Vec<NormalName> = names.filter(NormalName::is_usable).collect();
        self.guides.push(Guide {
            id: entry.id,
            source: entry.source,
            priority: entry.priority,
            key: entry.key.into(),
            country: key
                .as_ref()
                .map_or_else(|| country_of_key(entry.key), |it| it.country)
                .or_else(|| common_country(&names)),
            shift: shift(&names, key.as_ref()),
            quality: key.as_ref().map(|it| it.quality).unwrap_or_default(),
        });
        self.by_id.insert(entry.id, at);
        self.by_key.entry(entry.key.to_lowercase().into()).or_default().push(at);
        if let Some(key) = key {
            self.by_normal_key.entry(key.text.into()).or_default().push(at);
        }
        if let Some(station) = station(entry.key, entry.has_station_keys) {
            self.by_station.entry(station.into()).or_default().push(at);
        }
        for name in &names {
            self.names.add(at, name);
        }
    }

    /// Decides for one channel. With `lists_all`, the result also lists candidates that are not needed for the decision.
    pub fn find(&self, subject: &Subject<'_>, lists_all: bool) -> MatchResult {
        let name = NormalName::new(subject.name, &self.settings.rules);
        let tvg_key = subject.tvg_id.and_then(NormalKey::parse);
        let place = place(&name, tvg_key.as_ref(), subject.group);
        let quality = name.quality;
        let tvg_id = subject.tvg_id.and_then(guide_id);
        let id = tvg_id.map(str::to_lowercase);
        let learned = AliasName::from_channel(subject).and_then(|it| self.learned.get(&it));
        if let Some((at, _)) = learned.filter(|it| it.1 == id) {
            return self.linked(*at, Reason::Learned);
        }
        if let Some(at) = tvg_id.and_then(|it| self.with_key(it, &id.unwrap_or_default())) {
            return self.linked(at, Reason::SameId);
        }
        let of_station = subject.station.map(str::trim).and_then(|it| self.by_station.get(it)?.first());
        if let Some(at) = of_station {
            return self.linked(*at, Reason::SameStation);
        }
        // A channel of the same name with another guide id, which no guide has.
        if let Some((at, _)) = learned {
            return self.linked(*at, Reason::Learned);
        }
        let of_key = tvg_key.as_ref().map(|it| self.candidates_by_key(it, place)).unwrap_or_default();
        let by_key = self.decide(of_key, quality, false);
        if matches!(by_key.decision, Decision::Link(_)) {
            return by_key;
        }
        if !name.is_usable() {
            return MatchResult { decision: Decision::NoName, ..by_key };
        }
        let (of_name, is_too_common) = self.candidates_by_name(&name, place, lists_all);
        let by_name = self.decide(of_name, quality, is_too_common);
        let has_same_name = || by_name.candidates.first().is_some_and(|it| it.points >= SAME_NAME_POINTS);
        let is_linked = matches!(by_name.decision, Decision::Link(_)) && has_same_name();
        if !is_linked && let Some(confirmed) = self.with_leading_country(subject, tvg_key.as_ref(), lists_all)
        {
            return confirmed;
        }
        match by_name.candidates.is_empty() {
            true => by_key,
            false => by_name,
        }
    }

    /// Returns the first guide channel with exactly this key, or with this key in another case. `lower` is the key in lower
    /// case.
    fn with_key(&self, key: &str, lower: &str) -> Option<u32> {
        let guides = self.by_key.get(lower)?;
        let exact = guides.iter().find(|it| *self.guides[**it as usize].key == *key);
        exact.or(guides.first()).copied()
    }

    /// Decides for a channel whose name begins with a country without a separator. `None` unless a guide channel of the same
    /// name in this country confirms it.
    fn with_leading_country(
        &self,
        subject: &Subject<'_>,
        key: Option<&NormalKey>,
        lists_all: bool,
    ) -> Option<MatchResult> {
        let name = NormalName::with_leading_country(subject.name, &self.settings.rules)?;
        self.confirmed(&name, place(&name, key, subject.group), lists_all)
    }

    /// Decides for a channel whose name begins with a country without a separator, of those that `is_usual` there. Codes that
    /// are words count, too.
    pub(super) fn with_leading_code(
        &self,
        subject: &Subject<'_>,
        is_usual: impl Fn(Country) -> bool,
    ) -> Option<MatchResult> {
        let name = NormalName::with_leading_code(subject.name, &self.settings.rules)?;
        name.country.filter(|it| is_usual(*it))?;
        let key = subject.tvg_id.and_then(NormalKey::parse);
        self.confirmed(&name, place(&name, key.as_ref(), subject.group), false)
    }

    /// Returns the country at the beginning of a name without a separator behind it, if something speaks for it.
    pub(super) fn leading_country(&self, subject: &Subject<'_>) -> Option<Country> {
        NormalName::with_leading_country(subject.name, &self.settings.rules)?.country
    }

    /// Decides for a name without its country. `None` unless a guide channel of this name in this country is found.
    fn confirmed(&self, name: &NormalName, place: Place, lists_all: bool) -> Option<MatchResult> {
        let (mut found, is_too_common) = self.candidates_by_name(name, place, lists_all);
        let is_confirmed = |it: &Scored| {
            it.points >= SAME_NAME_POINTS && it.reasons.iter().any(|it| matches!(it, Reason::SameCountry(_)))
        };
        found.retain(is_confirmed);
        let decided = self.decide(found, name.quality, is_too_common);
        matches!(decided.decision, Decision::Link(_)).then_some(decided)
    }

    /// Decides for a channel that states no country as if it stated this one. `None` unless a guide channel of the same name in
    /// this country is found.
    pub(super) fn find_in_country(&self, subject: &Subject<'_>, country: Country) -> Option<MatchResult> {
        let (name, place) = self.name_and_place(subject);
        if place.country.is_some() {
            return None;
        }
        let place = Place { country: Some(country), ..place };
        let (mut found, is_too_common) = self.candidates_by_name(&name, place, false);
        let same = Reason::SameCountry(country);
        found.retain(|it| it.points >= SAME_NAME_POINTS && it.reasons.contains(&same));
        for reason in found.iter_mut().flat_map(|it| &mut it.reasons).filter(|it| **it == same) {
            *reason = Reason::CountryOfGroup(country);
        }
        let decided = self.decide(found, name.quality, is_too_common);
        matches!(decided.decision, Decision::Link(_)).then_some(decided)
    }

    /// Returns whether name, guide id or group of a channel state its country.
    pub(super) fn states_country(&self, subject: &Subject<'_>) -> bool {
        self.name_and_place(subject).1.country.is_some()
    }

    fn name_and_place(&self, subject: &Subject<'_>) -> (NormalName, Place) {
        let name = NormalName::new(subject.name, &self.settings.rules);
        let key = subject.tvg_id.and_then(NormalKey::parse);
        let place = place(&name, key.as_ref(), subject.group);
        (name, place)
    }

    /// Returns the country of a guide channel.
    pub(super) fn country_of(&self, id: GuideChannelId) -> Option<Country> {
        self.guides.get(*self.by_id.get(&id)? as usize)?.country
    }

    fn linked(&self, at: u32, reason: Reason) -> MatchResult {
        let channel = self.guides[at as usize].id;
        let candidates = vec![Candidate { channel, points: FULL, reasons: vec![reason] }];
        MatchResult { decision: Decision::Link(channel), candidates }
    }

    fn candidates_by_key(&self, key: &NormalKey, place: Place) -> Vec<Scored> {
        let guides = self.by_normal_key.get(key.text.as_str()).map_or(&[][..], Vec::as_slice);
        let scored = guides.iter().take(super::index::SAME_MAX).map(|at| {
            let guide = &self.guides[*at as usize];
            let mut reasons = vec![Reason::SameIdOtherwiseSpelled];
            let of_guide = Place { country: guide.country, is_country_in_name: false, shift: guide.shift };
            let place = Place { is_country_in_name: false, ..place };
            let points = compare_places(990, place, of_guide, self.settings.preferred_country, &mut reasons);
            Scored { guide: *at, points, quality: guide.quality, reasons }
        });
        scored.collect()
    }

    /// Returns the candidates by name, and whether the name is too common to compare them all.
    fn candidates_by_name(&self, name: &NormalName, place: Place, lists_all: bool) -> (Vec<Scored>, bool) {
        let n_known = self.names.words.len() as WordId;
        let mut unknown: Vec<String> = Vec::new();
        let form = Form::new(name, |text| match self.names.words.id(text) {
            Some(id) => id,
            None => {
                let at = unknown.iter().position(|it| it == text).unwrap_or_else(|| {
                    unknown.push(text.to_owned());
                    unknown.len() - 1
                });
                n_known + at as WordId
            }
        });
        let text = |id: WordId| match id.checked_sub(n_known) {
            Some(at) => unknown.get(at as usize).map_or("", String::as_str),
            None => self.names.words.text(id),
        };
        let compare = |forms: Vec<u32>, best: &mut BTreeMap<u32, Scored>| {
            for at in forms {
                let (at, other) = &self.names.forms[at as usize];
                let guide = &self.guides[*at as usize];
                let Some((points, reason)) = compare_words(&self.names.words, text, &form, other) else {
                    continue;
                };
                let mut reasons = vec![reason];
                let of_guide = Place {
                    country: other.country.or(guide.country),
                    is_country_in_name: other.is_country_in_name,
                    shift: guide.shift,
                };
                let points =
                    compare_places(points, place, of_guide, self.settings.preferred_country, &mut reasons);
                if best.get(at).is_none_or(|it| points > it.points) {
                    let quality = other.quality.max(guide.quality);
                    best.insert(*at, Scored { guide: *at, points, quality, reasons });
                }
            }
        };
        let Found { forms, is_too_common } = self.names.same(&form);
        let mut best: BTreeMap<u32, Scored> = BTreeMap::new();
        compare(forms, &mut best);
        if lists_all || !best.values().any(|it| it.points >= self.settings.threshold_points()) {
            compare(self.names.alike(&form, text), &mut best);
        }
        (best.into_values().collect(), is_too_common)
    }

    /// Chooses among the candidates of a channel with this quality.
    fn decide(&self, mut scored: Vec<Scored>, quality: Quality, is_too_common: bool) -> MatchResult {
        let threshold = self.settings.threshold_points();
        let rank = |it: &Scored| {
            let guide = &self.guides[it.guide as usize];
            let is_enough = it.points >= threshold;
            // Among candidates of the same name, the priority of their sources decides first.
            let priority = if is_enough { guide.priority } else { i32::MIN };
            let has_same_name = it.points >= SAME_NAME_POINTS;
            let distance = quality.distance(it.quality);
            (Reverse(is_enough), Reverse(has_same_name), Reverse(priority), Reverse(it.points), distance)
        };
        scored.sort_by_cached_key(|it| (rank(it), it.guide));
        let decision = match scored.as_slice() {
            [] => Decision::NoCandidate,
            [first, ..] if first.points < threshold => Decision::BelowThreshold,
            _ if is_too_common => Decision::Tie,
            [first, rest @ ..] => {
                let is_rival = |it: &Scored| {
                    let is_partial = first.reasons.contains(&Reason::SomeWords);
                    let is_close = is_partial && it.points + PARTIAL_LEAD > first.points;
                    (is_close || rank(it) == rank(first)) && !self.is_same_channel(first, it)
                };
                match rest.iter().any(is_rival) {
                    true => Decision::Tie,
                    false => Decision::Link(self.guides[first.guide as usize].id),
                }
            }
        };
        let candidate = |it: Scored| Candidate {
            channel: self.guides[it.guide as usize].id,
            points: it.points,
            reasons: it.reasons,
        };
        scored.truncate(CANDIDATES_MAX);
        MatchResult { decision, candidates: scored.into_iter().map(candidate).collect() }
    }

    /// Returns whether two equally good candidates are one channel in two sources: they have the same key, or the same
    /// name in the country of the channel.
    fn is_same_channel(&self, a: &Scored, b: &Scored) -> bool {
        let (first, second) = (&self.guides[a.guide as usize], &self.guides[b.guide as usize]);
        let is_in_country = |it: &Scored| {
            let has = |wanted: fn(&Reason) -> bool| it.reasons.iter().any(wanted);
            has(|it| matches!(it, Reason::SameWords))
                && has(|it| matches!(it, Reason::SameCountry(_) | Reason::CountryOfGroup(_)))
        };
        let has_same_key = || first.key.to_lowercase() == second.key.to_lowercase();
        first.source != second.source && (has_same_key() || (is_in_country(a) && is_in_country(b)))
    }
}

/// Returns the country that the names of a guide channel state, unless they state several. It counts for those of its names
/// that state none.
fn common_country(names: &[NormalName]) -> Option<Country> {
    let mut stated = names.iter().filter_map(|it| it.country);
    let first = stated.next()?;
    stated.all(|it| it == first).then_some(first)
}

/// Returns the time shift of a guide channel, from its names and its key. In the key `Canal+4`, the plus belongs to the name
/// if a name says so.
fn shift(names: &[NormalName], key: Option<&NormalKey>) -> u8 {
    let of_names = names.iter().map(|it| it.shift).max().unwrap_or_default();
    let of_key = key.map_or(0, |it| it.shift);
    let number = of_key.to_string();
    let has_plus = |it: &NormalName| it.words.windows(2).any(|it| it[0] == "plus" && it[1] == number);
    if names.iter().any(has_plus) { of_names } else { of_names.max(of_key) }
}

/// Returns country and time shift of a channel: the name says more than the guide id, and that more than the group.
pub(super) fn place(name: &NormalName, key: Option<&NormalKey>, group: Option<&str>) -> Place {
    let of_key = key.and_then(|it| it.country);
    Place {
        country: name.country.or(of_key).or_else(|| group.and_then(country_of_group)),
        is_country_in_name: name.is_country_in_name,
        shift: name.shift.max(key.map_or(0, |it| it.shift)),
    }
}

/// Returns the country that the name of a group begins or ends with, unless the group states several.
fn country_of_group(group: &str) -> Option<Country> {
    let name = NormalName::new(group, &NameRules::default());
    let first = name.words.first()?;
    let is_alone = name.words.len() == 1;
    let country = name
        .country
        .or_else(|| Country::from_name(first))
        .or_else(|| Country::from_name(&name.words.concat()))
        .or_else(|| Country::from_code(first).filter(|_| is_alone))?;
    // In `UK / US News`, each channel may be of either.
    let words = group.split(|it: char| !it.is_alphanumeric());
    let stated = words.filter(|it| !it.chars().any(char::is_lowercase) || it.chars().count() > 3);
    let mut countries = stated.filter_map(Country::from_text);
    countries.all(|it| it == country).then_some(country)
}
