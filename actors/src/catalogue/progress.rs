//! The progress of refreshes of films and series.

use domain::account::RefreshOutcome;
use domain::ids::AccountId;
use uuid::Uuid;

use crate::refresh::{RefreshRow, RefreshTable};

/// The phase of a refresh of films and series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VodPhase {
    /// The refresh waits for its turn.
    #[default]
    Waiting,
    /// The categories are being read.
    Categories,
    Movies,
    Series,
    /// The refresh ended; the outcome contains the result.
    Done,
}

/// The progress of a refresh of films and series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VodRefreshStatus {
    pub account: AccountId,
    /// Distinguishes this refresh from others of the same account.
    pub job: Uuid,
    pub phase: VodPhase,
    /// Number of films and series read so far.
    pub n_titles: u64,
    pub n_new: u64,
    pub n_changed: u64,
    /// Number of titles that the provider no longer lists.
    pub n_gone: u64,
    /// The result, once the refresh ended, unless it was stopped because the gateway stops.
    pub outcome: Option<RefreshOutcome>,
    /// A sentence for an admin, without credentials. Empty while the refresh runs.
    pub message: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
}

impl VodRefreshStatus {
    pub(super) fn new(account: AccountId, job: Uuid, started_at: i64) -> Self {
        Self {
            account,
            job,
            phase: VodPhase::default(),
            n_titles: 0,
            n_new: 0,
            n_changed: 0,
            n_gone: 0,
            outcome: None,
            message: String::new(),
            started_at,
        }
    }
}

impl RefreshRow for VodRefreshStatus {
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
        self.phase == VodPhase::Done
    }

    fn interrupt(&mut self, message: &str) {
        self.phase = VodPhase::Done;
        self.outcome = Some(RefreshOutcome::Error);
        self.message = message.to_owned();
    }
}

pub(super) type VodProgress = RefreshTable<VodRefreshStatus>;

/// How far the episodes of an account are loaded in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeLoad {
    pub account: AccountId,
    pub n_done: usize,
    pub n_left: usize,
}
