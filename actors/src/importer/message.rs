//! Messages of the importer.

use domain::ids::{AccountId, ProfileId};
use ractor::RpcReplyPort;
use uuid::Uuid;

use super::error::ImportError;
use super::job::ImportSummary;

/// The messages of the importer.
pub(crate) enum Message {
    /// Refreshes an account now.
    Refresh { account: AccountId, confirm: bool, reply: RpcReplyPort<RefreshStart> },
    /// An account changed in a way that affects its playlist. A running refresh is stopped and started again; if none
    /// runs or waits, one starts if `has_new_list`.
    Changed { account: AccountId, has_new_list: bool, reply: RpcReplyPort<()> },
    /// Asks the panel about the login of a profile now.
    CheckLogin { account: AccountId, profile: ProfileId, reply: RpcReplyPort<LoginCheckStart> },
    /// A check of logins of this account ended.
    LoginsChecked { account: AccountId },
    /// Starts scheduled refreshes that are due.
    CheckSchedules,
    /// A refresh ended.
    Finished { account: AccountId, job: Uuid, done: Result<ImportSummary, ImportError> },
}

/// The reply to a refresh request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshStart {
    /// The refresh is running, or waits for its turn.
    Started {
        job: Uuid,
    },
    /// A refresh of this account is already running or waiting; the request has no effect.
    AlreadyRunning {
        job: Uuid,
    },
    NoSuchAccount,
    Inactive,
    /// The account has no playlist; its streams are created manually.
    NoList,
}

/// The reply to a request to check a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginCheckStart {
    Started,
    /// A check of this account is already running.
    AlreadyRunning,
    NoSuchProfile,
    /// The account has no panel that could be asked.
    NoPanel,
}
