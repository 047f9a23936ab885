//! Pairs the streams of one account with those of another, so that a whole lineup can move to another provider.
//!
//! Two providers share no addresses, so the keys are fewer than for a refresh: the number at the panel if the host is the
//! same, the guide id, and the name as matching with guides compares it. Names that contradict never pair, each stream is
//! in one pair at most, and several streams that fit equally well fit none, unless nothing tells them apart.

mod levels;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use self::levels::{Edge, Free};
use super::assignment::{PanelAgreement, mix};
use super::keys::{IdentityKeys, KeyReader};
use super::marks::two;
use crate::guide::matching::{Decision, GuideEntry, MatchSettings, Matcher, NormalKey, Subject};
use crate::ids::{GuideChannelId, GuideSourceId, StreamId};
use crate::stream::StreamProperties;

/// The least points of a pair by default, in tenths of a percent. Names that differ in a word have less.
pub const PAIR_POINTS_MIN: u16 = 850;
/// The points of an agreement in everything.
const FULL: u16 = 1000;
/// The points of the same id with the words of the name in another order or with other decorations.
const SAME_WORDS: u16 = 980;
/// The points of the same id with another name, where most names confirm the ids.
const OTHER_NAME: u16 = 900;
/// Maximum number of streams with one id that are compared with each other. A provider that writes one id to more of them
/// means nothing by it.
const SAME_ID_MAX: usize = 64;

/// A stream with the values in force.
#[derive(Debug, Clone)]
pub struct PairStream {
    pub id: StreamId,
    pub properties: StreamProperties,
}

/// The property by which two streams are a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PairKey {
    /// The number at the panel, on the same host.
    PanelId,
    GuideId,
    Name,
}

/// A stream, and the one that takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPair {
    pub from: StreamId,
    pub to: StreamId,
    pub key: PairKey,
    /// Agreement in tenths of a percent.
    pub points: u16,
}

/// The result of pairing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairing {
    /// By the id of the first stream.
    pub pairs: Vec<StreamPair>,
    /// The streams without a pair that several others fit equally well, by id.
    pub contested: Vec<StreamId>,
}

/// Pairs streams. Pairs have at least `points_min`. The order of the streams decides nothing.
pub fn pair_streams(from: &[PairStream], to: &[PairStream], points_min: u16) -> Pairing {
    let mut reader = KeyReader::new(Vec::new());
    let mut work = Pairs {
        from: Side::new(from, &mut reader),
        to: Side::new(to, &mut reader),
        points_min,
        free: Free::new(from.len(), to.len()),
        done: Vec::new(),
    };
    work.by_id(PairKey::PanelId);
    work.by_id(PairKey::GuideId);
    work.by_name();
    let id = |at: u32| work.from.streams[at as usize].id;
    let mut contested: Vec<StreamId> = work.free.contested().map(id).collect();
    contested.sort_unstable();
    work.done.sort_unstable_by_key(|it| it.from);
    Pairing { pairs: work.done, contested }
}

/// The streams of one account, by id.
struct Side<'a> {
    streams: Vec<&'a PairStream>,
    keys: Vec<IdentityKeys>,
    /// Hashes of the guide ids regardless of case, because providers write them differently.
    guide_ids: Vec<u64>,
    /// The country of the name, else of the guide id, else of the group.
    countries: Vec<[u8; 2]>,
}

impl<'a> Side<'a> {
    fn new(streams: &'a [PairStream], reader: &mut KeyReader) -> Self {
        let mut streams: Vec<&PairStream> = streams.iter().collect();
        streams.sort_unstable_by_key(|it| it.id);
        let keys: Vec<IdentityKeys> = streams.iter().map(|it| reader.read(&it.properties)).collect();
        let guide_ids = streams.iter().map(|it| reader.folded_guide_id(&it.properties)).collect();
        let mut of_groups: HashMap<&str, [u8; 2]> = HashMap::new();
        let country = |(stream, keys): (&&'a PairStream, &IdentityKeys)| {
            let StreamProperties { tvg_id, group, .. } = &stream.properties;
            let of_id = || NormalKey::parse(tvg_id.as_deref()?)?.country.map(|it| two(&it.to_string()));
            let of_group = |of_groups: &mut HashMap<&'a str, [u8; 2]>, reader: &mut KeyReader| {
                let group = group.as_deref().unwrap_or_default();
                *of_groups.entry(group).or_insert_with(|| reader.marks(group).country())
            };
            match keys.marks.country() {
                [0, 0] => of_id().unwrap_or_else(|| of_group(&mut of_groups, reader)),
                stated => stated,
            }
        };
        let countries = streams.iter().zip(&keys).map(country).collect();
        Self { streams, keys, guide_ids, countries }
    }

    fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.streams.len()).unwrap_or(u32::MAX)
    }

    /// Returns the hash of an id; 0 without one.
    fn id(&self, key: PairKey, at: u32) -> u64 {
        let keys = &self.keys[at as usize];
        match key {
            PairKey::PanelId if keys.panel_id != 0 && keys.host != 0 => mix(keys.panel_id, keys.host.into()),
            PairKey::GuideId => self.guide_ids[at as usize],
            PairKey::PanelId | PairKey::Name => 0,
        }
    }
}

struct Pairs<'a> {
    from: Side<'a>,
    to: Side<'a>,
    points_min: u16,
    free: Free,
    done: Vec<StreamPair>,
}

impl Pairs<'_> {
    /// Pairs streams with one id.
    fn by_id(&mut self, key: PairKey) {
        let mut runs: HashMap<u64, (Vec<u32>, Vec<u32>)> = HashMap::new();
        for at in self.from.all().filter(|it| self.free.has_from(*it)) {
            let hash = self.from.id(key, at);
            if hash != 0 {
                runs.entry(hash).or_default().0.push(at);
            }
        }
        for at in self.to.all().filter(|it| self.free.has_to(*it)) {
            if let Some(run) = runs.get_mut(&self.to.id(key, at)) {
                run.1.push(at);
            }
        }
        let is_trusted = self.is_trusted(runs.values());
        let mut edges = Vec::new();
        for (from, to) in runs.values().filter(|it| it.0.len() <= SAME_ID_MAX && it.1.len() <= SAME_ID_MAX) {
            for from in from {
                for to in to {
                    edges.extend(self.edge_by_id(key, *from, *to, is_trusted));
                }
            }
        }
        self.take(key, edges);
    }

    /// Returns whether most names confirm the ids. Otherwise each provider has ids of its own.
    fn is_trusted<'r>(&self, runs: impl Iterator<Item = &'r (Vec<u32>, Vec<u32>)>) -> bool {
        let mut agreement = PanelAgreement::default();
        for run in runs {
            if let ([from], [to]) = (run.0.as_slice(), run.1.as_slice()) {
                let (from, to) = (&self.from.keys[*from as usize], &self.to.keys[*to as usize]);
                agreement.n_pairs += 1;
                agreement.n_agreeing += u64::from(same_name(from, to) > 0);
            }
        }
        agreement.is_trusted()
    }

    fn edge_by_id(&self, key: PairKey, from: u32, to: u32, is_trusted: bool) -> Option<Edge> {
        let (one, other) = (&self.from.keys[from as usize], &self.to.keys[to as usize]);
        let id = self.from.streams[from as usize].properties.tvg_id.as_deref();
        // A number says something at its own provider only.
        let is_telling = key == PairKey::PanelId || id.is_some_and(|it| NormalKey::parse(it).is_some());
        let points = match same_name(one, other) {
            2 => FULL,
            1 => SAME_WORDS,
            _ if is_trusted && is_telling => OTHER_NAME,
            _ => return None,
        };
        self.edge(from, to, points)
    }

    /// Pairs streams whose names are those of one channel.
    fn by_name(&mut self) {
        let settings = MatchSettings { threshold: (self.points_min / 10) as u8, ..MatchSettings::default() };
        let source = GuideSourceId(0);
        let names: Vec<(u32, [String; 1])> = self
            .to
            .all()
            .filter(|it| self.free.has_to(*it))
            .map(|at| (at, [self.to.streams[at as usize].properties.name.clone()]))
            .collect();
        let entries = names.iter().map(|(at, names)| {
            let id = GuideChannelId(*at);
            GuideEntry { id, source, priority: 0, has_station_keys: false, key: "", names }
        });
        let matcher = Matcher::new(entries, std::iter::empty(), settings);
        let mut edges = Vec::new();
        for from in self.from.all().filter(|it| self.free.has_from(*it)) {
            let name = &self.from.streams[from as usize].properties.name;
            let found = matcher.find(&Subject { name, ..Subject::default() }, false);
            if found.decision == Decision::NoName {
                continue;
            }
            edges.extend(found.candidates.iter().filter_map(|it| {
                let to = it.channel.0;
                let (one, other) = (self.from.countries[from as usize], self.to.countries[to as usize]);
                let is_abroad = one != [0; 2] && other != [0; 2] && one != other;
                if is_abroad { None } else { self.edge(from, to, it.points) }
            }));
        }
        self.take(PairKey::Name, edges);
    }

    /// Returns a possible pair, unless the names contradict or agree too little.
    fn edge(&self, from: u32, to: u32, points: u16) -> Option<Edge> {
        let (one, other) = (&self.from.keys[from as usize], &self.to.keys[to as usize]);
        if points < self.points_min || one.marks.contradict(other.marks) {
            return None;
        }
        let has_same_quality = one.marks.quality() == other.marks.quality();
        let has_same_id = one.guide_id != 0 && one.guide_id == other.guide_id;
        Some(Edge { rank: (points, has_same_id, has_same_quality), from, to })
    }

    fn take(&mut self, key: PairKey, edges: Vec<Edge>) {
        let look = |side: &Side<'_>, at: u32| {
            let keys = &side.keys[at as usize];
            (keys.name, keys.guide_id, side.countries[at as usize])
        };
        let (from, to) = (&self.from, &self.to);
        let is_one = |of: &Side<'_>, all: &[u32]| {
            all.iter().map(|it| look(of, *it)).collect::<HashSet<_>>().len() == 1
                && of.keys[all[0] as usize].name != 0
        };
        let taken = self.free.take(edges, |olds, news| is_one(from, olds) && is_one(to, news));
        self.done.extend(taken.into_iter().map(|it| StreamPair {
            from: from.streams[it.from as usize].id,
            to: to.streams[it.to as usize].id,
            key,
            points: it.rank.0,
        }));
    }
}

/// Returns 2 if two names are the same, 1 if their words are, and 0 otherwise.
fn same_name(one: &IdentityKeys, other: &IdentityKeys) -> u8 {
    let is_same = one.name != 0 && one.name == other.name;
    let has_same_words = one.words != 0 && one.words == other.words;
    if is_same { 2 } else { u8::from(has_same_words) }
}
