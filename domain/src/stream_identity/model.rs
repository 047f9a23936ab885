//! A simple implementation of [`assign`](super::assign), with which the fast one is compared.

use super::IdentityKey;
use super::keys::IdentityKeys;

/// Returns the position of the known stream of each entry.
pub(crate) fn assign_simply(
    order: &[IdentityKey],
    known: &[IdentityKeys],
    entries: &[IdentityKeys],
    rank: &dyn Fn(usize) -> u64,
) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; entries.len()];
    let count = |of: &[IdentityKeys], key: IdentityKey, part: usize, value: u64| {
        of.iter().filter(|it| it.hashes(key)[part] == value).count()
    };
    let is_unique = |key, part, value| {
        value != 0 && count(known, key, part, value) == 1 && count(entries, key, part, value) == 1
    };
    let is_moved = |known_at: usize, entry: usize| {
        let (from, to) = (known[known_at].host, entries[entry].host);
        from == to || !entries.iter().any(|it| it.host == from) || !known.iter().any(|it| it.host == to)
    };
    let panel = |at: usize, entry: usize| {
        let value = entries[entry].panel_id;
        value == known[at].panel_id && is_unique(IdentityKey::PanelId, 0, value) && is_moved(at, entry)
    };
    let all = || (0..known.len()).flat_map(|at| (0..entries.len()).map(move |entry| (at, entry)));
    let pairs: Vec<_> = all().filter(|(at, entry)| panel(*at, *entry)).collect();
    let n_agreeing = pairs.iter().filter(|(at, entry)| known[*at].agrees_in_name(&entries[*entry])).count();
    let is_trusted = pairs.len() < 3 || n_agreeing * 2 >= pairs.len();
    for key in order {
        for part in 0..2 {
            for (at, entry) in all() {
                let (one, other) = (&known[at], &entries[entry]);
                let agrees = one.hashes(*key)[part] == other.hashes(*key)[part] && {
                    // What shares an id with a panel does not count, so it is not counted either.
                    is_unique(*key, part, one.hashes(*key)[part])
                };
                let is_crowded = || {
                    let of_host = |it: &&IdentityKeys| it.host == other.host && it.hashes(*key)[part] != 0;
                    let mut values: Vec<u64> =
                        entries.iter().filter(of_host).map(|it| it.hashes(*key)[part]).collect();
                    values.sort_unstable();
                    values.dedup();
                    values.len() > 1
                };
                let is_allowed = match key {
                    IdentityKey::PanelId => is_trusted && is_moved(at, entry),
                    IdentityKey::Address => is_trusted || other.panel_id == 0,
                    IdentityKey::BareAddress => {
                        (is_trusted || other.panel_id == 0)
                            && !one.marks.contradict(other.marks)
                            && (one.agrees_in_name(other)
                                || (part == 0
                                    && is_crowded()
                                    && ![one, other].iter().any(|it| it.is_bare_guess)
                                    && (one.guide_id == other.guide_id
                                        || one.guide_id.min(other.guide_id) == 0)))
                    }
                    IdentityKey::GuideId => !one.marks.contradict(other.marks),
                    IdentityKey::NameAndGroup | IdentityKey::Name => true,
                };
                if agrees && is_allowed && found[entry].is_none() && !found.contains(&Some(at)) {
                    found[entry] = Some(at);
                }
            }
        }
    }
    let is_same_else = |one: &IdentityKeys, other: &IdentityKeys| {
        (one.guide_id, one.name_and_group, one.name) == (other.guide_id, other.name_and_group, other.name)
    };
    for is_exact in [true, false] {
        for entry in 0..entries.len() {
            let other = &entries[entry];
            if found[entry].is_some() || !(is_trusted || other.panel_id == 0) {
                continue;
            }
            let is_left = |at: &usize| {
                let one = &known[*at];
                one.address == other.address
                    && (!is_exact || is_same_else(one, other))
                    && !found.contains(&Some(*at))
            };
            found[entry] = (0..known.len()).filter(is_left).min_by_key(|at| rank(*at));
        }
    }
    found
}
