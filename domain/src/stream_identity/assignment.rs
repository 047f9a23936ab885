//! Assigns the entries of a playlist to known streams.

use std::collections::HashSet;

use super::IdentityKey;
use super::keys::IdentityKeys;

/// The known stream of an entry: none.
const NONE: u32 = u32::MAX;
/// The least number of pairs with equal panel ids from which their names are compared. Fewer prove nothing.
const PAIRS_MIN: u64 = 3;

/// The result of comparing a playlist with the known streams. Positions are those of the arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The position of the known stream of each entry.
    of_entries: Vec<u32>,
    /// The key that recognised each known stream.
    of_known: Vec<Option<IdentityKey>>,
    /// How far names confirm panel ids.
    pub panel_ids: PanelAgreement,
    /// Number of known streams that several entries could be, so that none is.
    pub n_contested: u64,
}

/// The pairs of entries and streams with equal panel ids, and those of them that agree in name or guide id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PanelAgreement {
    pub n_pairs: u64,
    pub n_agreeing: u64,
}

impl PanelAgreement {
    /// Returns whether most names confirm the ids. Otherwise the provider has probably assigned them anew.
    pub fn is_trusted(self) -> bool {
        self.n_pairs < PAIRS_MIN || self.n_agreeing * 2 >= self.n_pairs
    }
}

impl Assignment {
    /// Returns the position of the known stream of an entry.
    pub fn known_of_entry(&self, entry: usize) -> Option<usize> {
        self.of_entries.get(entry).filter(|it| **it != NONE).map(|it| *it as usize)
    }

    /// Returns the key that recognised a known stream.
    pub fn key_of_known(&self, known: usize) -> Option<IdentityKey> {
        self.of_known.get(known).copied().flatten()
    }
}

/// Compares entries with known streams by the keys in this order. `rank` orders known streams that nothing but their address
/// identifies: the least takes the first entry.
pub fn assign(
    order: &[IdentityKey],
    known: &[IdentityKeys],
    entries: &[IdentityKeys],
    rank: &dyn Fn(usize) -> u64,
) -> Assignment {
    let mut work = Work::new(known, entries);
    let panel_ids = work.sorted(&|it| it.panel_id);
    // Also without the key, because addresses contain the ids.
    work.check_panel_ids(&panel_ids);
    work.compare_all(order, &panel_ids);
    if !work.is_done() {
        work.pair_by_address(rank);
        work.count_contested(order);
    }
    work.done
}

struct Work<'a> {
    known: &'a [IdentityKeys],
    entries: &'a [IdentityKeys],
    done: Assignment,
    n_open_known: usize,
    n_open_entries: usize,
}

/// Hash and position of what counts for a key, in the order of the hashes; entries have [`ENTRY`] set. Known streams come
/// first.
type Rows = Vec<(u64, u32)>;

/// Marks the position of an entry.
const ENTRY: u32 = 1 << 31;

impl<'a> Work<'a> {
    fn new(known: &'a [IdentityKeys], entries: &'a [IdentityKeys]) -> Self {
        let done = Assignment {
            of_entries: vec![NONE; entries.len()],
            of_known: vec![None; known.len()],
            ..Assignment::default()
        };
        let (n_open_known, n_open_entries) = (known.len(), entries.len());
        Self { known, entries, done, n_open_known, n_open_entries }
    }

    fn is_done(&self) -> bool {
        self.n_open_known == 0 || self.n_open_entries == 0
    }

    fn is_open(&self, row: u32) -> bool {
        match row & ENTRY {
            0 => self.done.of_known[row as usize].is_none(),
            _ => self.done.of_entries[(row & !ENTRY) as usize] == NONE,
        }
    }

    fn take(&mut self, known: u32, entry: u32, key: IdentityKey) {
        self.done.of_entries[(entry & !ENTRY) as usize] = known;
        self.done.of_known[known as usize] = Some(key);
        self.n_open_known -= 1;
        self.n_open_entries -= 1;
    }

    /// Sorts all known streams and entries by a hash; those whose hash is 0 are left out.
    fn sorted(&self, hash: &dyn Fn(&IdentityKeys) -> u64) -> Rows {
        let mut rows = Vec::with_capacity(self.known.len() + self.entries.len());
        for (keys, mark) in [(self.known, 0), (self.entries, ENTRY)] {
            let marked = keys.iter().zip(0_u32..).map(|(it, at)| (hash(it), at | mark));
            rows.extend(marked.filter(|it| it.0 != 0));
        }
        rows.sort_unstable();
        rows
    }

    /// Compares the names of pairs with equal panel ids. If two hosts are in the playlist as before, equal numbers on both
    /// are those of two providers.
    fn check_panel_ids(&mut self, rows: &[(u64, u32)]) {
        let hosts = |of: &[IdentityKeys]| of.iter().map(|it| it.host).collect::<HashSet<u32>>();
        let (of_known, of_entries) = (hosts(self.known), hosts(self.entries));
        let mut agreement = PanelAgreement::default();
        for (known, entry) in unique_pairs(rows) {
            let (known, entry) = (&self.known[known as usize], &self.entries[(entry & !ENTRY) as usize]);
            if is_of_other_provider(known, entry, &of_known, &of_entries) {
                continue;
            }
            agreement.n_pairs += 1;
            agreement.n_agreeing += u64::from(known.agrees_in_name(entry));
        }
        self.done.panel_ids = agreement;
    }

    /// Compares by all keys, until nothing is left to compare.
    fn compare_all(&mut self, order: &[IdentityKey], panel_ids: &[(u64, u32)]) {
        let is_trusted = self.done.panel_ids.is_trusted();
        for key in order.iter().filter(|it| is_trusted || **it != IdentityKey::PanelId) {
            for part in 0..key.n_parts() {
                if self.is_done() {
                    return;
                }
                match key {
                    // They are sorted already.
                    IdentityKey::PanelId => self.compare(*key, part, panel_ids),
                    _ => {
                        let rows = self.sorted(&|it| hash_of_part(it, *key, part, is_trusted));
                        self.compare(*key, part, &rows);
                    }
                }
            }
        }
    }

    /// Takes the pairs that agree in a key of which nobody else has this value.
    fn compare(&mut self, key: IdentityKey, part: usize, rows: &[(u64, u32)]) {
        let hosts = |of: &[IdentityKeys]| of.iter().map(|it| it.host).collect::<HashSet<u32>>();
        let is_panel = key == IdentityKey::PanelId && !rows.is_empty();
        let (of_known, of_entries) = match is_panel {
            true => (hosts(self.known), hosts(self.entries)),
            false => Default::default(),
        };
        let is_crowded = CrowdedHosts::new(self, rows, key);
        for (known, entry) in unique_pairs(rows) {
            if !self.is_open(known) || !self.is_open(entry) {
                continue;
            }
            let (one, other) = (&self.known[known as usize], &self.entries[(entry & !ENTRY) as usize]);
            let agrees = match key {
                IdentityKey::PanelId => !is_of_other_provider(one, other, &of_known, &of_entries),
                IdentityKey::Address | IdentityKey::NameAndGroup | IdentityKey::Name => true,
                IdentityKey::GuideId => !one.marks.contradict(other.marks),
                IdentityKey::BareAddress => {
                    !one.marks.contradict(other.marks)
                        && (one.agrees_in_name(other)
                            || (part == 0
                                && is_crowded.contains(other.host)
                                && proves_without_name(one, other)))
                }
            };
            let is_name = matches!(key, IdentityKey::NameAndGroup | IdentityKey::Name);
            // Where several have one address, the name says which of them it is.
            let key = if is_name && one.address == other.address { IdentityKey::Address } else { key };
            if agrees {
                self.take(known, entry, key);
            }
        }
    }

    /// Pairs what has the same address and is left: first those that agree in all else, then in order.
    fn pair_by_address(&mut self, rank: &dyn Fn(usize) -> u64) {
        let is_trusted = self.done.panel_ids.is_trusted();
        for is_exact in [true, false] {
            if self.is_done() {
                return;
            }
            let hash = |it: &IdentityKeys| match is_trusted || it.panel_id == 0 {
                true if is_exact => mix(it.address, mix(it.guide_id, mix(it.name_and_group, it.name))),
                true => it.address,
                false => 0,
            };
            let rows = self.sorted(&hash);
            for run in rows.chunk_by(|a, b| a.0 == b.0) {
                let mut known: Vec<u32> =
                    run.iter().map(|it| it.1).filter(|it| it & ENTRY == 0 && self.is_open(*it)).collect();
                if known.is_empty() {
                    continue;
                }
                known.sort_by_key(|it| rank(*it as usize));
                let entries: Vec<u32> =
                    run.iter().map(|it| it.1).filter(|it| it & ENTRY != 0 && self.is_open(*it)).collect();
                for (known, entry) in known.into_iter().zip(entries) {
                    self.take(known, entry, IdentityKey::Address);
                }
            }
        }
    }

    /// Counts the streams that are left and that several of the entries that are left could be.
    fn count_contested(&mut self, order: &[IdentityKey]) {
        let mut contested = HashSet::new();
        let below = order.iter().filter(|it| !is_of_address(**it) && **it != IdentityKey::PanelId);
        for key in below {
            if self.is_done() {
                break;
            }
            let rows = self.sorted(&|it| it.hashes(*key)[0]);
            for run in rows.chunk_by(|a, b| a.0 == b.0) {
                let n_entries = run.iter().filter(|it| it.1 & ENTRY != 0 && self.is_open(it.1)).count();
                if n_entries >= 2 {
                    contested
                        .extend(run.iter().map(|it| it.1).filter(|it| it & ENTRY == 0 && self.is_open(*it)));
                }
            }
        }
        self.done.n_contested = contested.len() as u64;
    }
}

/// The hosts with more than one address without tokens.
struct CrowdedHosts(HashSet<u32>);

impl CrowdedHosts {
    fn new(work: &Work<'_>, rows: &[(u64, u32)], key: IdentityKey) -> Self {
        let mut seen: std::collections::HashMap<u32, u64> = std::collections::HashMap::new();
        let mut crowded = HashSet::new();
        if key == IdentityKey::BareAddress {
            for (hash, at) in rows.iter().filter(|it| it.1 & ENTRY != 0) {
                let host = work.entries[(at & !ENTRY) as usize].host;
                if *seen.entry(host).or_insert(*hash) != *hash {
                    crowded.insert(host);
                }
            }
        }
        Self(crowded)
    }

    fn contains(&self, host: u32) -> bool {
        self.0.contains(&host)
    }
}

/// Returns the hash of a part of a key; 0 if it does not count. An address with a panel id is the same as the id.
fn hash_of_part(keys: &IdentityKeys, key: IdentityKey, part: usize, is_trusted: bool) -> u64 {
    match is_trusted || keys.panel_id == 0 || !is_of_address(key) {
        true => keys.hashes(key)[part],
        false => 0,
    }
}

/// Returns the pairs of one known stream and one entry whose hash nobody else has.
fn unique_pairs(rows: &[(u64, u32)]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let runs = rows.chunk_by(|a, b| a.0 == b.0);
    runs.filter_map(|run| match run {
        [(_, known), (_, entry)] if known & ENTRY == 0 && entry & ENTRY != 0 => Some((*known, *entry)),
        _ => None,
    })
}

/// Returns whether two equal panel ids are those of two hosts that were both known and are both in the playlist.
fn is_of_other_provider(
    known: &IdentityKeys,
    entry: &IdentityKeys,
    of_known: &HashSet<u32>,
    of_entries: &HashSet<u32>,
) -> bool {
    known.host != entry.host && of_entries.contains(&known.host) && of_known.contains(&entry.host)
}

/// Returns whether the addresses without token-like parts are enough to recognise a stream whose name differs. Two guide ids
/// make them two streams, and a part that was left out only because it looks random may be the id of the stream. The only
/// address of a host is always different from all others of it, which proves nothing either.
fn proves_without_name(one: &IdentityKeys, other: &IdentityKeys) -> bool {
    let has_other_guide = one.guide_id != 0 && other.guide_id != 0 && one.guide_id != other.guide_id;
    !has_other_guide && !one.is_bare_guess && !other.is_bare_guess
}

fn is_of_address(key: IdentityKey) -> bool {
    matches!(key, IdentityKey::Address | IdentityKey::BareAddress)
}

/// Combines two hashes; the result is never 0.
pub(super) fn mix(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd).max(1)
}
