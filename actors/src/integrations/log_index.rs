//! The log in columns, in memory: lists and limits need no record. A row takes some forty bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::event::EventBody;
use domain::integration::{DeliveryLogEntry, DeliveryLogLimits, Recipient};
use domain::plugin::RunCause;

use super::filter::LogFilter;

/// Maximum number of entries that one new entry removes.
const TRIMMED_MAX: usize = 100;

#[derive(Default)]
pub(super) struct LogIndex {
    rows: BTreeMap<u32, Row>,
    of: HashMap<Recipient, BTreeSet<u32>>,
    n_bytes: u64,
}

#[derive(Clone, Copy)]
struct Row {
    to: Recipient,
    cause: RunCause,
    /// Position in [`EventBody::NAMES`].
    event: u8,
    is_success: bool,
    is_test: bool,
    at: i64,
    n_bytes: u32,
}

/// Returns the position of a name of an event; 255 if it has none.
fn event_number(name: &str) -> u8 {
    let position = EventBody::NAMES.iter().position(|it| *it == name);
    position.and_then(|it| u8::try_from(it).ok()).unwrap_or(u8::MAX)
}

impl LogIndex {
    pub(super) fn insert(&mut self, entry: &DeliveryLogEntry) {
        let row = Row {
            to: entry.to,
            cause: entry.cause,
            event: event_number(&entry.event),
            is_success: entry.is_success,
            is_test: entry.is_test(),
            at: entry.created_at,
            n_bytes: u32::try_from(entry.n_bytes()).unwrap_or(u32::MAX),
        };
        if self.rows.insert(entry.id.0, row).is_none() {
            self.n_bytes += u64::from(row.n_bytes);
            self.of.entry(row.to).or_default().insert(entry.id.0);
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.n_bytes -= u64::from(row.n_bytes);
        if let Some(ids) = self.of.get_mut(&row.to) {
            ids.remove(&id);
            if ids.is_empty() {
                self.of.remove(&row.to);
            }
        }
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.rows.contains_key(&id)
    }

    /// Iterates over the ids of all entries, oldest first.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.rows.keys().copied()
    }

    /// Returns the number of entries that a filter selects, and the ids of some of them, newest first.
    pub(super) fn page(&self, filter: &LogFilter, offset: usize, limit: usize) -> (usize, Vec<u32>) {
        let event = filter.event.as_deref().map(event_number);
        let selects = |row: &Row| {
            filter.to.is_none_or(|it| row.to == it)
                && filter.to_one_of.as_ref().is_none_or(|it| it.contains(&row.to))
                && filter.cause.is_none_or(|it| row.cause == it)
                && event.is_none_or(|it| it != u8::MAX && row.event == it)
                && filter.is_success.is_none_or(|it| row.is_success == it)
                && filter.is_test.is_none_or(|it| row.is_test == it)
                && filter.since.is_none_or(|it| row.at >= it)
                && filter.before.is_none_or(|it| row.at < it)
        };
        let (mut n_all, mut ids) = (0, Vec::new());
        let mut take = |id: u32| {
            if n_all >= offset && ids.len() < limit {
                ids.push(id);
            }
            n_all += 1;
        };
        match filter.to {
            None if *filter == LogFilter::default() => {
                // No row has to be looked at.
                let ids = self.rows.keys().rev().skip(offset).take(limit).copied().collect();
                return (self.rows.len(), ids);
            }
            Some(to) => {
                let own = self.of.get(&to).into_iter().flatten().rev();
                own.filter(|id| self.rows.get(id).is_some_and(selects)).for_each(|id| take(*id));
            }
            None => self.rows.iter().rev().filter(|it| selects(it.1)).for_each(|it| take(*it.0)),
        }
        (n_all, ids)
    }

    /// Returns entries that have to go when one of this recipient and size is added; some of them, if they are many.
    pub(super) fn excess(
        &self,
        to: Option<Recipient>,
        n_bytes: u64,
        limits: &DeliveryLogLimits,
        now: i64,
    ) -> Vec<u32> {
        let mut excess = BTreeSet::new();
        if let Some(own) = to.and_then(|it| self.of.get(&it)) {
            let n = (own.len() + 1).saturating_sub(limits.entries_per_integration);
            excess.extend(own.iter().take(n.min(TRIMMED_MAX)));
        }
        let oldest = now.saturating_sub(i64::from(limits.days) * 86_400_000);
        let mut n_bytes = self.n_bytes + n_bytes;
        for (id, row) in &self.rows {
            if excess.len() >= TRIMMED_MAX || row.at >= oldest && n_bytes <= limits.bytes {
                break;
            }
            n_bytes -= u64::from(row.n_bytes);
            excess.insert(*id);
        }
        excess.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::{IntegrationId, LogEntryId};
    use uuid::Uuid;

    use super::*;

    fn to(integration: u32) -> Recipient {
        Recipient::Integration(IntegrationId(integration))
    }

    fn entry(id: u32, integration: u32, event: &str, is_success: bool) -> DeliveryLogEntry {
        DeliveryLogEntry {
            id: LogEntryId(id),
            to: to(integration),
            subscription: None,
            delivery: None,
            event_id: Uuid::nil(),
            event: event.to_owned(),
            cause: RunCause::Event,
            action: None,
            is_success,
            request: String::new(),
            answer: None,
            output: None,
            result: None,
            reason: None,
            attempt: 1,
            duration_ms: 0,
            created_at: i64::from(id),
        }
    }

    #[test]
    fn pages_are_newest_first_and_counted_by_every_filter() {
        let mut index = LogIndex::default();
        for id in 0..100 {
            index.insert(&entry(id, id % 4, ["vod_start", "vod_stop"][id as usize / 50], id % 10 == 0));
        }
        let check = |filter: &LogFilter, n: usize, first: &[u32]| {
            assert_eq!(index.page(filter, 1, first.len()), (n, first.to_vec()), "{filter:?}");
        };
        check(&LogFilter::default(), 100, &[98, 97, 96]);
        let of = LogFilter { to: Some(to(3)), ..LogFilter::default() };
        check(&of, 25, &[95, 91]);
        check(&LogFilter { event: Some("vod_start".into()), ..of.clone() }, 12, &[43]);
        check(&LogFilter { event: Some("unknown".into()), ..LogFilter::default() }, 0, &[]);
        check(&LogFilter { is_success: Some(true), ..LogFilter::default() }, 10, &[80, 70]);
        check(&LogFilter { since: Some(10), before: Some(13), ..LogFilter::default() }, 3, &[11]);
        let some = LogFilter { to_one_of: Some([0, 9].map(to).into()), ..LogFilter::default() };
        check(&some, 25, &[92, 88]);
        check(&LogFilter { to: Some(to(9)), ..LogFilter::default() }, 0, &[]);
        check(&LogFilter { to: Some(Recipient::Plugin(3)), ..LogFilter::default() }, 0, &[]);
        check(&LogFilter { cause: Some(RunCause::Button), ..LogFilter::default() }, 0, &[]);
    }

    #[test]
    fn the_log_is_limited_by_entries_bytes_and_age() {
        let mut index = LogIndex::default();
        (0..30).for_each(|id| index.insert(&entry(id, id % 3, "vod_stop", true)));
        let limits = DeliveryLogLimits { days: 1, entries_per_integration: 10, bytes: u64::MAX };
        let own = Some(to(1));
        assert_eq!(index.excess(own, 0, &limits, 0), [1], "the oldest of the integration");
        assert!(index.excess(None, 0, &limits, 0).is_empty());
        let day = 86_400_000;
        assert_eq!(index.excess(None, 0, &limits, day + 4), [0, 1, 2, 3], "older than a day");
        let one = entry(0, 0, "vod_stop", true).n_bytes();
        let limits = DeliveryLogLimits { bytes: 28 * one, ..limits };
        assert_eq!(index.excess(None, one, &limits, 0), [0, 1, 2]);
        (0..30).for_each(|id| index.remove(id));
        assert_eq!((index.n_bytes, index.of.len(), index.page(&LogFilter::default(), 0, 9).0), (0, 0, 0));
    }
}
