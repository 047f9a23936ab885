//! What the importer can be told, and what it answers.

use domain::ids::AccountId;
use ractor::RpcReplyPort;
use uuid::Uuid;

use super::error::ImportError;
use super::job::ImportSummary;

/// Everything the importer can be told.
pub(crate) enum Message {
    /// Somebody wants an account refreshed now.
    Refresh { account: AccountId, confirm: bool, reply: RpcReplyPort<RefreshStart> },
    /// An account was changed in what its list is read by. A refresh that runs is broken off and begun again; where
    /// none runs or waits, one is begun if `has_new_list`.
    Changed { account: AccountId, has_new_list: bool, reply: RpcReplyPort<()> },
    /// See what is due.
    Look,
    /// A refresh is over.
    Finished { account: AccountId, job: Uuid, done: Result<ImportSummary, ImportError> },
}

/// What became of the wish for a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshStart {
    /// It runs, or waits for its turn.
    Started {
        job: Uuid,
    },
    /// One runs or waits already; this wish came to nothing.
    AlreadyRunning {
        job: Uuid,
    },
    NoSuchAccount,
    Inactive,
    /// Its streams are made by hand.
    NoList,
}
