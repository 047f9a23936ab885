//! How far requested updates of the details of many titles are: in memory, while they run and for a while after.

use std::collections::VecDeque;

use parking_lot::Mutex;
use uuid::Uuid;

/// Maximum number of updates that are known; the oldest finished ones are dropped.
const UPDATES_MAX: usize = 100;

/// A requested update of the details of titles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailsUpdate {
    pub job: Uuid,
    /// Number of questions to panels: one for a film, and one for each offer of a series.
    pub n_questions: usize,
    pub n_done: usize,
    pub n_failed: usize,
    /// The last failure; a sentence for an admin, without credentials. Empty if there was none.
    pub message: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
}

impl DetailsUpdate {
    pub(super) fn new(job: Uuid, n_questions: usize, started_at: i64) -> Self {
        Self { job, n_questions, n_done: 0, n_failed: 0, message: String::new(), started_at }
    }

    /// Returns the number of questions that are still to be asked.
    pub fn n_left(&self) -> usize {
        self.n_questions.saturating_sub(self.n_done + self.n_failed)
    }

    pub fn is_done(&self) -> bool {
        self.n_left() == 0
    }
}

/// The known updates, in the order of their requests.
#[derive(Default)]
pub(super) struct DetailsUpdates {
    all: Mutex<VecDeque<DetailsUpdate>>,
}

impl DetailsUpdates {
    /// Adds an update. Returns false if too many are running.
    pub(super) fn begin(&self, update: DetailsUpdate) -> bool {
        let mut all = self.all.lock();
        if all.len() >= UPDATES_MAX {
            match all.iter().position(DetailsUpdate::is_done) {
                Some(oldest) => all.remove(oldest),
                None => return false,
            };
        }
        all.push_back(update);
        true
    }

    pub(super) fn change(&self, job: Uuid, change: impl FnOnce(&mut DetailsUpdate)) {
        if let Some(update) = self.all.lock().iter_mut().find(|it| it.job == job) {
            change(update);
        }
    }

    /// Notes the end of a question, with the reason if it failed.
    pub(super) fn ended(&self, job: Uuid, failure: Option<String>) {
        self.change(job, |it| match failure {
            None => it.n_done += 1,
            Some(reason) => {
                it.n_failed += 1;
                it.message = reason;
            }
        });
    }

    pub(super) fn all(&self) -> Vec<DetailsUpdate> {
        self.all.lock().iter().cloned().collect()
    }

    pub(super) fn get(&self, job: Uuid) -> Option<DetailsUpdate> {
        self.all.lock().iter().find(|it| it.job == job).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_updates_make_room_and_running_ones_do_not() {
        let updates = DetailsUpdates::default();
        for n in 0..UPDATES_MAX as u128 {
            assert!(updates.begin(DetailsUpdate::new(Uuid::from_u128(n), 2, 0)));
        }
        let more = DetailsUpdate::new(Uuid::from_u128(1000), 0, 0);
        assert!(!updates.begin(more.clone()));
        let second = Uuid::from_u128(1);
        updates.ended(second, None);
        assert!(!updates.begin(more.clone()));
        updates.ended(second, Some("No.".to_owned()));
        let seen = updates.get(second).unwrap();
        assert_eq!((seen.n_done, seen.n_failed, seen.n_left(), &*seen.message), (1, 1, 0, "No."));
        assert!(updates.begin(more));
        assert_eq!((updates.get(second), updates.all().len()), (None, UPDATES_MAX));
    }
}
