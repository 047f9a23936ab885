//! How far a refresh is, for whoever looks: in memory, while it runs and for a while after.

use std::collections::BTreeMap;

use domain::account::RefreshOutcome;
use domain::ids::AccountId;
use parking_lot::Mutex;
use uuid::Uuid;

/// Refreshes that are over and still told of. One per account; the oldest are forgotten.
const DONE_MAX: usize = 200;

/// What a refresh is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RefreshPhase {
    /// It waits for its turn.
    #[default]
    Waiting,
    /// The server was asked and has not answered yet.
    Fetching,
    /// The list comes and is read on the way.
    Parsing,
    /// It is compared with what is stored.
    Comparing,
    /// What is new is written.
    Writing,
    /// It is over; the outcome says how it ended.
    Done,
}

/// How far a refresh is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshStatus {
    pub account: AccountId,
    /// Tells this refresh from others of the same account.
    pub job: Uuid,
    pub phase: RefreshPhase,
    /// Read so far, unpacked.
    pub bytes: u64,
    /// Found so far.
    pub entries: u64,
    pub n_new: u64,
    pub n_changed: u64,
    /// Streams that are no longer in the list: newly stale ones and removed ones.
    pub n_gone: u64,
    /// Once it is over, unless it was broken off because the gateway stops.
    pub outcome: Option<RefreshOutcome>,
    /// A sentence for the admin, without credentials. Empty while it runs.
    pub message: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
}

impl RefreshStatus {
    pub(crate) fn new(account: AccountId, job: Uuid, started_at: i64) -> Self {
        Self {
            account,
            job,
            phase: RefreshPhase::default(),
            bytes: 0,
            entries: 0,
            n_new: 0,
            n_changed: 0,
            n_gone: 0,
            outcome: None,
            message: String::new(),
            started_at,
        }
    }
}

/// The last refresh of each account. Outlives the actor.
#[derive(Default)]
pub(crate) struct RefreshProgress {
    rows: Mutex<BTreeMap<AccountId, RefreshStatus>>,
}

impl RefreshProgress {
    /// A refresh begins; what was shown of the account before is forgotten.
    pub(crate) fn begin(&self, progress: RefreshStatus) {
        self.rows.lock().insert(progress.account, progress);
    }

    /// How far a refresh is now. One that is over, or that another has followed, has nothing more to say: its thread
    /// may hear late that it was broken off.
    pub(crate) fn show(&self, progress: RefreshStatus) {
        let mut rows = self.rows.lock();
        let shown = rows.get(&progress.account);
        if !shown.is_some_and(|it| it.job == progress.job && it.phase != RefreshPhase::Done) {
            return;
        }
        rows.insert(progress.account, progress);
        let done = rows.values().filter(|it| it.phase == RefreshPhase::Done);
        if done.clone().count() > DONE_MAX {
            let oldest = done.min_by_key(|it| it.started_at).map(|it| it.account);
            oldest.and_then(|it| rows.remove(&it));
        }
    }

    /// What ran when its actor died will not report again.
    pub(crate) fn break_off(&self) {
        for row in self.rows.lock().values_mut().filter(|it| it.phase != RefreshPhase::Done) {
            row.phase = RefreshPhase::Done;
            row.outcome = Some(RefreshOutcome::Error);
            row.message = "The refresh was broken off.".to_owned();
        }
    }

    pub(crate) fn all(&self) -> Vec<RefreshStatus> {
        self.rows.lock().values().cloned().collect()
    }

    pub(crate) fn of(&self, account: AccountId) -> Option<RefreshStatus> {
        self.rows.lock().get(&account).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_that_run_are_always_shown_and_of_the_others_the_latest() {
        let progress = RefreshProgress::default();
        let row = |account: u32, phase| RefreshStatus {
            phase,
            ..RefreshStatus::new(AccountId(account), Uuid::nil(), i64::from(account))
        };
        progress.begin(row(1, RefreshPhase::Waiting));
        progress.show(row(1, RefreshPhase::Parsing));
        for account in 2..1000 {
            progress.begin(row(account, RefreshPhase::Waiting));
            progress.show(row(account, RefreshPhase::Done));
        }
        let shown: Vec<_> = progress.all().iter().map(|it| it.account.0).collect();
        assert_eq!(shown, [1].into_iter().chain(800..1000).collect::<Vec<_>>());
        progress.break_off();
        assert_eq!(progress.of(AccountId(1)).unwrap().outcome, Some(RefreshOutcome::Error));
    }

    /// What was seen: an account that was being refreshed when the importer died was shown as running for ever,
    /// because its thread told of one step more after the refresh had been shown as broken off.
    #[test]
    fn a_refresh_that_was_broken_off_or_followed_by_another_has_nothing_more_to_say() {
        let progress = RefreshProgress::default();
        let [first, second] = [1, 2].map(|it| RefreshStatus::new(AccountId(1), Uuid::from_u128(it), 0));
        progress.begin(first.clone());
        progress.break_off();
        progress.show(RefreshStatus { phase: RefreshPhase::Writing, ..first.clone() });
        assert_eq!(progress.of(AccountId(1)).unwrap().message, "The refresh was broken off.");
        progress.begin(second.clone());
        progress.show(RefreshStatus { phase: RefreshPhase::Writing, ..first });
        assert_eq!(progress.of(AccountId(1)), Some(second.clone()));
        let second = RefreshStatus { phase: RefreshPhase::Parsing, ..second };
        progress.show(second.clone());
        assert_eq!(progress.of(AccountId(1)), Some(second));
    }
}
