//! A sorted map that is cheap to clone and to change, for tables.

use std::sync::Arc;

/// Maximum number of entries in a shard; one more splits it.
const SHARD_MAX: usize = 256;
/// A shard with fewer entries is merged with the next one if both fit into one shard.
const SHARD_MIN: usize = SHARD_MAX / 4;

/// A sorted map in shards. A clone shares all shards; a change copies the shard that it changes.
pub(crate) struct Shards<K, V> {
    /// Not empty, and sorted: all keys of a shard are above those of the previous one.
    shards: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Self { shards: Vec::new(), len: 0 }
    }
}

impl<K, V> Clone for Shards<K, V> {
    fn clone(&self) -> Self {
        Self { shards: self.shards.clone(), len: self.len }
    }
}

impl<K: Ord + Clone, V: Clone> Shards<K, V> {
    /// Returns the position of the only shard that can contain the key.
    fn shard_of(&self, key: &K) -> usize {
        self.shards.partition_point(|it| it.first().is_some_and(|first| first.0 <= *key)).saturating_sub(1)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let shard = self.shards.get(self.shard_of(key))?;
        let at = shard.binary_search_by(|it| it.0.cmp(key)).ok()?;
        Some(&shard[at].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|it| it.iter()).map(|(key, value)| (key, value))
    }

    /// Lists the entries with this key and above.
    pub(crate) fn from(&self, key: &K) -> impl Iterator<Item = (&K, &V)> + use<'_, K, V> {
        let at = self.shard_of(key);
        let start = self.shards.get(at).map_or(0, |it| it.partition_point(|entry| entry.0 < *key));
        let rest = self.shards.iter().skip(at).flat_map(|it| it.iter());
        rest.skip(start).map(|(key, value)| (key, value))
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.shards.is_empty() {
            self.shards.push(Arc::default());
        }
        let at = self.shard_of(&key);
        let shard = Arc::make_mut(&mut self.shards[at]);
        match shard.binary_search_by(|it| it.0.cmp(&key)) {
            Ok(found) => shard[found].1 = value,
            Err(gap) => {
                shard.insert(gap, (key, value));
                self.len += 1;
            }
        }
        if shard.len() > SHARD_MAX {
            // Ascending inserts, as when a store opens, leave full shards behind.
            let is_last = at + 1 == self.shards.len();
            let shard = Arc::make_mut(&mut self.shards[at]);
            let upper = shard.split_off(if is_last { SHARD_MAX } else { SHARD_MAX / 2 });
            self.shards.insert(at + 1, Arc::new(upper));
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        let at = self.shard_of(key);
        let Some(shard) = self.shards.get_mut(at) else { return };
        let Ok(found) = shard.binary_search_by(|it| it.0.cmp(key)) else { return };
        Arc::make_mut(shard).remove(found);
        self.len -= 1;
        if self.shards[at].is_empty() {
            self.shards.remove(at);
        } else if self.shards[at].len() < SHARD_MIN
            && let Some(next) = self.shards.get(at + 1)
            && self.shards[at].len() + next.len() <= SHARD_MAX
        {
            let next = self.shards.remove(at + 1);
            Arc::make_mut(&mut self.shards[at]).extend(next.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shards_behave_like_a_sorted_map(rounds in prop::collection::vec((0u32..3_000, 0u32..900, 1u32..5, any::<bool>()), 1..40)) {
            let (mut shards, mut model) = (Shards::default(), BTreeMap::new());
            for (round, (start, n, step, is_there)) in rounds.into_iter().enumerate() {
                let before = (shards.clone(), model.clone());
                for key in (0..n).map(|at| start + at * step) {
                    match is_there {
                        true => { shards.insert(key, round); model.insert(key, round); }
                        false => { shards.remove(&key); model.remove(&key); }
                    }
                }
                prop_assert_eq!(shards.len, model.len());
                prop_assert!(shards.iter().eq(model.iter()));
                prop_assert!(shards.from(&start).eq(model.range(start..)));
                prop_assert_eq!(shards.get(&start), model.get(&start));
                prop_assert!(shards.shards.iter().all(|it| (1..=SHARD_MAX).contains(&it.len())));
                prop_assert!(before.0.iter().eq(before.1.iter()), "a copy changed");
            }
        }
    }

    #[test]
    fn a_change_copies_one_shard_and_shares_the_others() {
        let mut shards = Shards::default();
        (0..40_000u32).for_each(|key| shards.insert(key, key));
        let before = shards.clone();
        shards.insert(20_000, 0);
        let is_shared = |(one, other): &(&Arc<Vec<_>>, &Arc<Vec<_>>)| Arc::ptr_eq(one, other);
        let n_shared = before.shards.iter().zip(&shards.shards).filter(is_shared).count();
        assert_eq!((before.shards.len(), n_shared), (157, 156));
    }
}
