//! The simulated engine: a log of writes, from which records are read, also stale ones, and which can lose its tail.

use std::rc::Rc;

use crate::cluster::record::{ClusterRecord, RecordKey, Revision};

#[derive(Debug, Default)]
pub(super) struct Engine {
    /// The write with revision n is at n - 1.
    log: Vec<(RecordKey, Rc<ClusterRecord>)>,
    /// Time until which no request is answered.
    pub(super) down_until: u64,
    /// Number of restarts so far, and the time of the last one.
    pub(super) n_restarts: u64,
    pub(super) restarted_at: Option<u64>,
}

impl Engine {
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    /// Returns the value of a record after the first `len` writes.
    pub(super) fn read(&self, key: RecordKey, len: usize) -> (Revision, Option<Rc<ClusterRecord>>) {
        let at = self.log[..len].iter().rposition(|it| it.0 == key);
        at.map_or((Revision(0), None), |at| (Revision(at as u64 + 1), Some(self.log[at].1.clone())))
    }

    /// Returns the present value of a record.
    pub(super) fn present(&self, key: RecordKey) -> (Revision, Option<Rc<ClusterRecord>>) {
        self.read(key, self.log.len())
    }

    /// Writes a record if it has the expected revision.
    pub(super) fn swap(
        &mut self,
        key: RecordKey,
        expected: Option<Revision>,
        record: Rc<ClusterRecord>,
    ) -> Option<Revision> {
        if expected.is_some_and(|it| it != self.present(key).0) {
            return None;
        }
        self.log.push((key, record));
        Some(Revision(self.log.len() as u64))
    }

    /// Returns all keys.
    pub(super) fn keys(&self) -> Vec<RecordKey> {
        let mut keys: Vec<_> = self.log.iter().map(|it| it.0).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Restarts without the last writes.
    pub(super) fn restart(&mut self, n_lost: usize, now: u64) {
        self.log.truncate(self.log.len().saturating_sub(n_lost));
        self.n_restarts += 1;
        self.restarted_at = Some(now);
    }
}
