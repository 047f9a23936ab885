//! The countries of channel groups: the channels of a group that matching links, or that are linked, say in which country the
//! others of the group are that state none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::countries::Country;
use super::matcher::{CANDIDATES_MAX, Candidate, Decision, MatchResult, Matcher, Subject};
use super::score::{CONTRADICTION_MAX, Reason};
use crate::ids::GuideChannelId;

/// Least number of channels of a group that say a country.
const VOTES_MIN: usize = 5;
/// The least share of them that say the same one, in percent.
const AGREEMENT_MIN: usize = 95;

/// How many channels of each group have a guide channel of each country.
#[derive(Clone)]
struct GroupCountries<'a> {
    matcher: &'a Matcher,
    votes: HashMap<&'a str, BTreeMap<Country, usize>>,
}

impl<'a> GroupCountries<'a> {
    fn add(&mut self, group: &'a str, linked: GuideChannelId) {
        let name = group.trim();
        if let Some(country) = self.matcher.country_of(linked).filter(|_| !name.is_empty()) {
            *self.votes.entry(name).or_default().entry(country).or_default() += 1;
        }
    }

    /// Returns these votes with those of the links in results.
    fn with(&self, subjects: &[Subject<'a>], results: &[MatchResult]) -> Self {
        let mut all = self.clone();
        for (subject, result) in subjects.iter().zip(results) {
            if let (Some(group), Decision::Link(id)) = (subject.group, result.decision) {
                all.add(group, id);
            }
        }
        all
    }

    /// Returns the country of a group. `None` if too few of its channels say one, or if they contradict each other.
    fn country(&self, group: &str) -> Option<Country> {
        let votes = self.votes.get(group.trim())?;
        let all: usize = votes.values().sum();
        let (country, n) = votes.iter().max_by_key(|it| it.1)?;
        (all >= VOTES_MIN && n * 100 >= all * AGREEMENT_MIN).then_some(*country)
    }
}

impl Matcher {
    /// Uses what the channels of a group say about each other. If the names of several begin with a code, it is a country
    /// there, also where it is a word. If almost all channels are of one country, and a channel states none,
    /// - a link with a guide channel of another country is taken back,
    /// - equally good guide channels of several countries are no longer a tie.
    ///
    /// `linked` are channels besides the subjects: the name of their group, and their guide channel. Other results stay as
    /// they are.
    pub fn compare_groups<'a>(
        &'a self,
        subjects: &[Subject<'a>],
        linked: impl IntoIterator<Item = (&'a str, GuideChannelId)>,
        results: &mut [MatchResult],
    ) {
        if !results.iter().any(MatchResult::depends_on_group) {
            return;
        }
        self.use_leading_codes(subjects, results);
        let mut of_linked = GroupCountries { matcher: self, votes: HashMap::new() };
        for (group, id) in linked {
            of_linked.add(group, id);
        }
        let countries = of_linked.with(subjects, results);
        for (subject, result) in subjects.iter().zip(&mut *results) {
            let Some((guessed, group)) = guessed_country(result).zip(subject.group) else { continue };
            if self.states_country(subject) {
                continue;
            }
            let other = countries.country(group).filter(|it| *it != guessed);
            if let Some(country) = other {
                self.move_to_country(subject, country, result);
            }
        }
        // The links that were taken back say nothing.
        let countries = of_linked.with(subjects, results);
        for (subject, result) in subjects.iter().zip(results) {
            let is_tie = result.decision == Decision::Tie;
            let country = subject.group.filter(|_| is_tie).and_then(|it| countries.country(it));
            if let Some(settled) = country.and_then(|it| self.find_in_country(subject, it)) {
                replace(result, settled);
            }
        }
    }

    /// Finds channels whose name begins with a code that is a word as well, such as `NO SPORT 1`, if others of the group begin
    /// with it and were found in this country.
    fn use_leading_codes(&self, subjects: &[Subject<'_>], results: &mut [MatchResult]) {
        let mut n_found: HashMap<(&str, Country), usize> = HashMap::new();
        for (subject, result) in subjects.iter().zip(&*results) {
            let is_in = |it: &Country| {
                let same = Reason::SameCountry(*it);
                is_link(result) && result.candidates.first().is_some_and(|it| it.reasons.contains(&same))
            };
            let country = self.leading_country(subject).filter(is_in);
            if let Some((group, country)) = subject.group.zip(country) {
                *n_found.entry((group.trim(), country)).or_default() += 1;
            }
        }
        n_found.retain(|_, n| *n >= VOTES_MIN);
        if n_found.is_empty() {
            return;
        }
        for (subject, result) in subjects.iter().zip(results).filter(|it| is_unlike(it.1)) {
            let Some(group) = subject.group.map(str::trim) else { continue };
            let is_usual = |country| n_found.contains_key(&(group, country));
            if let Some(found) = self.with_leading_code(subject, is_usual) {
                replace(result, found);
            }
        }
    }

    /// Replaces a link with a guide channel of another country than the group by one of this country, or by none.
    fn move_to_country(&self, subject: &Subject<'_>, country: Country, result: &mut MatchResult) {
        if let Some(moved) = self.find_in_country(subject, country) {
            return replace(result, moved);
        }
        for candidate in &mut result.candidates {
            let of_other = |it: &Reason| match it {
                Reason::CountryOfOne(other) if *other != country => Some(*other),
                _ => None,
            };
            if let Some((at, other)) =
                candidate.reasons.iter().enumerate().find_map(|(at, it)| Some((at, of_other(it)?)))
            {
                candidate.reasons[at] = Reason::OtherCountry(country, other);
                candidate.points = candidate.points.min(CONTRADICTION_MAX);
            }
        }
        result.candidates.sort_by_key(|it| Reverse(it.points));
        result.decision = Decision::BelowThreshold;
    }
}

impl MatchResult {
    /// Returns whether the other channels of the group can change the result: it is not a link, or it is one by name with a guide
    /// channel whose country the channel may not state.
    pub fn depends_on_group(&self) -> bool {
        self.decision == Decision::Tie || is_unlike(self) || guessed_country(self).is_some()
    }
}

fn is_link(result: &MatchResult) -> bool {
    matches!(result.decision, Decision::Link(_))
}

/// Returns whether nothing resembles the channel enough.
fn is_unlike(result: &MatchResult) -> bool {
    matches!(result.decision, Decision::BelowThreshold | Decision::NoCandidate)
}

/// Returns the country that only one of both sides of a link by name states.
fn guessed_country(result: &MatchResult) -> Option<Country> {
    let first = result.candidates.first().filter(|_| is_link(result))?;
    first.reasons.iter().find_map(|it| match it {
        Reason::CountryOfOne(country) => Some(*country),
        _ => None,
    })
}

/// Puts the candidates of another result before those of this one.
fn replace(result: &mut MatchResult, mut by: MatchResult) {
    let is_listed = |it: &Candidate| by.candidates.iter().any(|listed| listed.channel == it.channel);
    let others: Vec<_> = result.candidates.iter().filter(|it| !is_listed(it)).cloned().collect();
    by.candidates.extend(others);
    by.candidates.truncate(CANDIDATES_MAX);
    *result = by;
}
