//! The countries of channel groups: the channels of a group that matching links, or that are linked, say in which country the
//! others of the group are that state none.

use std::collections::{BTreeMap, HashMap};

use super::countries::Country;
use super::matcher::{CANDIDATES_MAX, Candidate, Decision, MatchResult, Matcher, Subject};
use crate::ids::GuideChannelId;

/// Least number of channels of a group that say a country.
const VOTES_MIN: usize = 5;
/// The least share of them that say the same one, in percent.
const AGREEMENT_MIN: usize = 95;

/// How many channels of each group have a guide channel of each country.
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

    /// Returns the country of a group. `None` if too few of its channels say one, or if they contradict each other.
    fn country(&self, group: &str) -> Option<Country> {
        let votes = self.votes.get(group.trim())?;
        let all: usize = votes.values().sum();
        let (country, n) = votes.iter().max_by_key(|it| it.1)?;
        (all >= VOTES_MIN && n * 100 >= all * AGREEMENT_MIN).then_some(*country)
    }
}

impl Matcher {
    /// Decides between equally good guide channels of several countries for channels that state no country, if almost all other
    /// channels of their group are of one. `linked` are channels besides the subjects: the name of their group, and their
    /// guide channel. Other results stay as they are.
    pub fn settle_ties<'a>(
        &'a self,
        subjects: &[Subject<'a>],
        linked: impl IntoIterator<Item = (&'a str, GuideChannelId)>,
        results: &mut [MatchResult],
    ) {
        if !results.iter().any(|it| it.decision == Decision::Tie) {
            return;
        }
        let mut countries = GroupCountries { matcher: self, votes: HashMap::new() };
        for (group, id) in linked {
            countries.add(group, id);
        }
        for (subject, result) in subjects.iter().zip(&*results) {
            if let (Some(group), Decision::Link(id)) = (subject.group, result.decision) {
                countries.add(group, id);
            }
        }
        for (subject, result) in subjects.iter().zip(results) {
            let is_tie = result.decision == Decision::Tie;
            let country = subject.group.filter(|_| is_tie).and_then(|it| countries.country(it));
            let Some(mut settled) = country.and_then(|it| self.find_in_country(subject, it)) else {
                continue;
            };
            let is_listed =
                |it: &Candidate| settled.candidates.iter().any(|listed| listed.channel == it.channel);
            let others: Vec<_> = result.candidates.iter().filter(|it| !is_listed(it)).cloned().collect();
            settled.candidates.extend(others);
            settled.candidates.truncate(CANDIDATES_MAX);
            *result = settled;
        }
    }
}
