//! The progress of the refreshes of playlists.

use domain::account::RefreshOutcome;
use domain::ids::AccountId;
use uuid::Uuid;

use crate::refresh::{RefreshRow, RefreshTable};

/// The phase of a refresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RefreshPhase {
    /// The refresh waits for its turn.
    #[default]
    Waiting,
    /// The request was sent, and the server has not answered yet.
    Fetching,
    /// The playlist is being downloaded and parsed.
    Parsing,
    /// The playlist is compared with the stored streams.
    Comparing,
    /// The differences are written.
    Writing,
    /// The refresh ended; the outcome contains the result.
    Done,
}

/// The progress of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshStatus {
    pub account: AccountId,
    /// Distinguishes this refresh from others of the same account.
    pub job: Uuid,
    pub phase: RefreshPhase,
    /// Number of unpacked bytes so far.
    pub bytes: u64,
    /// Number of entries so far.
    pub entries: u64,
    pub n_new: u64,
    pub n_changed: u64,
    /// Number of streams that the playlist has stopped naming: newly stale and removed ones.
    pub n_gone: u64,
    /// The result, once the refresh ended, unless it was stopped because the gateway stops.
    pub outcome: Option<RefreshOutcome>,
    /// A sentence for an admin, without credentials. Empty while the refresh runs.
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

impl RefreshRow for RefreshStatus {
    type Id = AccountId;

    fn id(&self) -> AccountId {
        self.account
    }

    fn job(&self) -> Uuid {
        self.job
    }

    fn started_at(&self) -> i64 {
        self.started_at
    }

    fn is_done(&self) -> bool {
        self.phase == RefreshPhase::Done
    }

    fn interrupt(&mut self, message: &str) {
        self.phase = RefreshPhase::Done;
        self.outcome = Some(RefreshOutcome::Error);
        self.message = message.to_owned();
    }
}

/// The last refresh of each account. Outlives the actor.
pub(crate) type RefreshProgress = RefreshTable<RefreshStatus>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_refreshes_are_always_kept_and_of_the_others_the_latest() {
        let progress = RefreshProgress::default();
        let row = |account: u32, phase| RefreshStatus {
            phase,
            ..RefreshStatus::new(AccountId(account), Uuid::nil(), i64::from(account))
        };
        progress.begin(row(1, RefreshPhase::Waiting));
        progress.update(row(1, RefreshPhase::Parsing));
        for account in 2..1000 {
            progress.begin(row(account, RefreshPhase::Waiting));
            progress.update(row(account, RefreshPhase::Done));
        }
        let reported: Vec<_> = progress.all().iter().map(|it| it.account.0).collect();
        assert_eq!(reported, [1].into_iter().chain(800..1000).collect::<Vec<_>>());
        progress.interrupt_all();
        assert_eq!(progress.get(AccountId(1)).unwrap().outcome, Some(RefreshOutcome::Error));
    }

    /// Observed defect: an account that was being refreshed when the importer died was reported as running forever,
    /// because its thread reported one more step after the refresh had been marked as interrupted.
    #[test]
    fn late_updates_of_an_interrupted_or_replaced_refresh_are_ignored() {
        let progress = RefreshProgress::default();
        let [first, second] = [1, 2].map(|it| RefreshStatus::new(AccountId(1), Uuid::from_u128(it), 0));
        progress.begin(first.clone());
        progress.interrupt_all();
        progress.update(RefreshStatus { phase: RefreshPhase::Writing, ..first.clone() });
        assert_eq!(progress.get(AccountId(1)).unwrap().message, "The refresh was interrupted.");
        progress.begin(second.clone());
        progress.update(RefreshStatus { phase: RefreshPhase::Writing, ..first });
        assert_eq!(progress.get(AccountId(1)), Some(second.clone()));
        let second = RefreshStatus { phase: RefreshPhase::Parsing, ..second };
        progress.update(second.clone());
        assert_eq!(progress.get(AccountId(1)), Some(second));
    }
}
