//! The progress of refreshes: in memory, while they run and for a while after.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use uuid::Uuid;

/// Maximum number of finished refreshes that are kept, at most one per refreshed record; the oldest are dropped.
const DONE_MAX: usize = 200;

/// The progress of one refresh.
pub(crate) trait RefreshRow: Clone {
    /// The id of the refreshed record.
    type Id: Copy + Ord;

    fn id(&self) -> Self::Id;

    /// Distinguishes this refresh from others of the same record.
    fn job(&self) -> Uuid;

    /// Milliseconds since 1970.
    fn started_at(&self) -> i64;

    fn is_done(&self) -> bool;

    /// Marks the refresh as failed.
    fn interrupt(&mut self, message: &str);
}

/// The last refresh of each record of a kind. Outlives the actor.
pub(crate) struct RefreshTable<R: RefreshRow> {
    rows: Mutex<BTreeMap<R::Id, R>>,
}

impl<R: RefreshRow> Default for RefreshTable<R> {
    fn default() -> Self {
        Self { rows: Mutex::default() }
    }
}

impl<R: RefreshRow> RefreshTable<R> {
    /// Begins a refresh; replaces the previous one of the record.
    pub(crate) fn begin(&self, row: R) {
        self.rows.lock().insert(row.id(), row);
    }

    /// Updates the progress of a refresh. An update of a refresh that ended or was replaced is ignored: its thread may
    /// notice late that it was stopped.
    pub(crate) fn update(&self, row: R) {
        let mut rows = self.rows.lock();
        let reported = rows.get(&row.id());
        if !reported.is_some_and(|it| it.job() == row.job() && !it.is_done()) {
            return;
        }
        rows.insert(row.id(), row);
        let done = rows.values().filter(|it| it.is_done());
        if done.clone().count() > DONE_MAX {
            let oldest = done.min_by_key(|it| it.started_at()).map(R::id);
            oldest.and_then(|it| rows.remove(&it));
        }
    }

    /// Marks running refreshes as failed, because the actor that ran them died.
    pub(crate) fn interrupt_all(&self) {
        for row in self.rows.lock().values_mut().filter(|it| !it.is_done()) {
            row.interrupt("The refresh was interrupted.");
        }
    }

    pub(crate) fn all(&self) -> Vec<R> {
        self.rows.lock().values().cloned().collect()
    }

    pub(crate) fn get(&self, id: R::Id) -> Option<R> {
        self.rows.lock().get(&id).cloned()
    }
}
