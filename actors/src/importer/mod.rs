//! Playlists become streams: fetched, compared with what is stored, and what differs is written.
//!
//! *Dramatis personae.* The **actor** knows whose turn it is: one refresh per account, two at a time, by wish or by
//! schedule. An **import** is one refresh, and needs no actor: the command line does the same. The **board** shows how
//! far each is; it outlives both.

mod actor;
mod compare;
mod error;
mod job;
mod landing;
mod message;
mod progress;
mod reading;
mod run;
mod spool;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use domain::ids::AccountId;
use storage::Models;

#[cfg(test)]
pub(crate) use self::actor::Work;
pub(crate) use self::actor::{Actor, Arguments, Imports};
pub use self::error::ImportError;
pub use self::job::{ImportOptions, ImportSummary};
pub(crate) use self::message::Message;
pub use self::message::RefreshStart;
pub(crate) use self::progress::RefreshProgress;
pub use self::progress::{RefreshPhase, RefreshStatus};
pub use self::run::import;

use crate::ask::{ANSWER_TIMEOUT, Address, AskError};
use crate::clock::now_ms;
use crate::fetch::Fetch;

/// The door of the importer.
#[derive(Clone)]
pub struct Importer {
    address: Address<Message>,
    progress: Arc<RefreshProgress>,
}

impl Importer {
    pub(crate) fn new(address: Address<Message>, progress: Arc<RefreshProgress>) -> Self {
        Self { address, progress }
    }

    /// Refreshes an account now, or when one of those that run is over. Answers at once; how it goes on is seen in
    /// [`Importer::progress_of`], and how it ended in the account's `Refresh` record. `confirm` takes a list that is
    /// much smaller than the last good one.
    ///
    /// # Errors
    /// When the gateway stops.
    pub async fn refresh(&self, account: AccountId, confirm: bool) -> Result<RefreshStart, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Refresh { account, confirm, reply }).await
    }

    /// Says that an account was changed in what its list is read by: where it is, headers, rules, identity. A refresh
    /// that runs would read what nobody wants any more: it is broken off and begun again, and however often this is said,
    /// that happens every ten seconds at most after the first time. Where none runs, one is begun if the account
    /// `has_new_list`.
    ///
    /// # Errors
    /// When the gateway stops.
    pub async fn changed(&self, account: AccountId, has_new_list: bool) -> Result<(), AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Changed { account, has_new_list, reply }).await
    }

    /// What runs, what waits, and what is over since not long ago; one row per account.
    pub fn progress(&self) -> Vec<RefreshStatus> {
        self.progress.all()
    }

    /// The running or last refresh of an account, if it was not too long ago.
    pub fn progress_of(&self, account: AccountId) -> Option<RefreshStatus> {
        self.progress.of(account)
    }
}

impl Imports {
    /// What the importer does in earnest.
    pub(crate) fn of(models: Models, fetch: Fetch) -> Self {
        let own = models.clone();
        let work = Arc::new(move |account, options, report| {
            let (models, fetch) = (own.clone(), fetch.clone());
            Box::pin(async move { import(&models, &fetch, account, options, report).await }) as _
        });
        Self { models, work, now: Arc::new(now_ms) }
    }
}
