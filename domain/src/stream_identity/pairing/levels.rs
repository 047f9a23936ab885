//! Takes the best possible pairs first. Pairs of one rank are taken together, so that no order decides.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A possible pair. Positions are those in the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    /// Points, whether the guide ids are the same in their exact case, and whether the qualities are. The larger value is
    /// better.
    pub(super) rank: (u16, bool, bool),
    pub(super) from: u32,
    pub(super) to: u32,
}

/// The streams that are in no pair yet.
pub(super) struct Free {
    from: Vec<bool>,
    to: Vec<bool>,
    /// Streams that several others fit equally well.
    contested: BTreeSet<u32>,
}

impl Free {
    pub(super) fn new(n_from: usize, n_to: usize) -> Self {
        Self { from: vec![true; n_from], to: vec![true; n_to], contested: BTreeSet::new() }
    }

    pub(super) fn has_from(&self, at: u32) -> bool {
        self.from[at as usize]
    }

    pub(super) fn has_to(&self, at: u32) -> bool {
        self.to[at as usize]
    }

    /// Returns the streams without a pair that several others fit equally well.
    pub(super) fn contested(&self) -> impl Iterator<Item = u32> + '_ {
        self.contested.iter().copied().filter(|it| self.has_from(*it))
    }

    /// Takes the pairs that are the only ones of the best rank for both streams. Where several are, `is_alike` tells whether
    /// nothing distinguishes the streams of either list; such streams are paired in order. All others of that rank wait for
    /// another key.
    pub(super) fn take(
        &mut self,
        mut edges: Vec<Edge>,
        is_alike: impl Fn(&[u32], &[u32]) -> bool,
    ) -> Vec<Edge> {
        edges.sort_unstable_by_key(|it| (Reverse(it.rank), it.from, it.to));
        let (mut waits_from, mut waits_to) = (BTreeSet::new(), BTreeSet::new());
        let mut taken = Vec::new();
        for level in edges.chunk_by(|a, b| a.rank == b.rank) {
            let is_open = |it: &&Edge| {
                self.has_from(it.from)
                    && self.has_to(it.to)
                    && !waits_from.contains(&it.from)
                    && !waits_to.contains(&it.to)
            };
            let open: Vec<Edge> = level.iter().filter(is_open).copied().collect();
            for (from, to) in clusters(&open) {
                if (from.len(), to.len()) != (1, 1) && !is_alike(&from, &to) {
                    self.contested.extend(&from);
                    waits_from.extend(from);
                    waits_to.extend(to);
                    continue;
                }
                for (from, to) in from.into_iter().zip(to) {
                    (self.from[from as usize], self.to[to as usize]) = (false, false);
                    taken.push(Edge { rank: level[0].rank, from, to });
                }
            }
        }
        taken
    }
}

/// Returns the streams that are connected by possible pairs, in order.
fn clusters(edges: &[Edge]) -> Vec<(Vec<u32>, Vec<u32>)> {
    let (mut of_from, mut of_to): (BTreeMap<u32, Vec<u32>>, BTreeMap<u32, Vec<u32>>) = Default::default();
    for it in edges {
        of_from.entry(it.from).or_default().push(it.to);
        of_to.entry(it.to).or_default().push(it.from);
    }
    let mut clusters = Vec::new();
    while let Some((first, _)) = of_from.first_key_value() {
        let (mut from, mut to) = (BTreeSet::from([*first]), BTreeSet::new());
        let mut open = vec![*first];
        while let Some(it) = open.pop() {
            for other in of_from.remove(&it).unwrap_or_default() {
                to.insert(other);
                open.extend(
                    of_to.remove(&other).unwrap_or_default().into_iter().filter(|it| from.insert(*it)),
                );
            }
        }
        clusters.push((from.into_iter().collect(), to.into_iter().collect()));
    }
    clusters
}
