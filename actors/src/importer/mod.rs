//! Imports playlists: fetches them, compares them with the stored streams, and writes the differences.
//!
//! The **actor** queues refreshes: one per account, two at a time, on request or by schedule. An **import** is one
//! refresh and needs no actor: the command line runs it directly. [`RefreshProgress`] contains the state of all
//! refreshes; it outlives both.

mod actor;
mod adult;
mod compare;
mod error;
mod job;
mod landing;
mod logins;
mod message;
mod names;
mod notices;
mod panel;
mod portal;
mod portal_channels;
mod preview;
mod previewed;
mod progress;
mod reading;
mod run;
mod selection;
mod sync;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use domain::ids::{AccountId, ProfileId};
use storage::Models;

pub(crate) use self::actor::{Actor, Arguments, Imports};
#[cfg(test)]
pub(crate) use self::actor::{CheckLogins, Work};
pub use self::adult::{any_adult, mark_group};
pub use self::error::ImportError;
pub use self::job::{ImportOptions, ImportSummary, SyncSummary};
pub use self::logins::ask_panel;
pub(crate) use self::message::Message;
pub use self::message::{LoginCheckStart, RefreshStart};
pub use self::names::{RenamedChannel, clean_channel_names, renamed_channels};
pub use self::preview::{PreviewError, RefreshPreviews};
pub use self::previewed::{PreviewedChange, PreviewedStream, RefreshPreview};
pub(crate) use self::progress::RefreshProgress;
pub use self::progress::{RefreshPhase, RefreshStatus};
pub use self::run::import;
pub use self::sync::{RepackError, repack_group};

use crate::ask::{ANSWER_TIMEOUT, Address, AskError};
use crate::clock::now_ms;
use crate::fetch::Fetch;

/// The handle of the importer.
#[derive(Clone)]
pub struct Importer {
    address: Address<Message>,
    progress: Arc<RefreshProgress>,
}

impl Importer {
    pub(crate) fn new(address: Address<Message>, progress: Arc<RefreshProgress>) -> Self {
        Self { address, progress }
    }

    /// Refreshes an account now, or when a running refresh ends. Replies immediately: [`Importer::progress_of`] reports
    /// the progress, and the account's refresh record the result. `confirm` accepts a playlist that is much smaller
    /// than the last good one.
    ///
    /// # Errors
    /// The gateway is stopping.
    pub async fn refresh(&self, account: AccountId, confirm: bool) -> Result<RefreshStart, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Refresh { account, confirm, reply }).await
    }

    /// Reports a change of an account that affects its playlist: address, headers, rules or identity. A running refresh
    /// is stopped and started again; after the first time, this happens at most every ten seconds. If none is running,
    /// one starts if the account `has_new_list`.
    ///
    /// # Errors
    /// The gateway is stopping.
    pub async fn changed(&self, account: AccountId, has_new_list: bool) -> Result<(), AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Changed { account, has_new_list, reply }).await
    }

    /// Asks the panel about the login of a profile now. Replies immediately; the profile's `ProfileInfo` contains the
    /// answer.
    ///
    /// # Errors
    /// The gateway is stopping.
    pub async fn check_login(
        &self,
        account: AccountId,
        profile: ProfileId,
    ) -> Result<LoginCheckStart, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::CheckLogin { account, profile, reply }).await
    }

    /// Returns the running, waiting and recently finished refreshes; one row per account.
    pub fn progress(&self) -> Vec<RefreshStatus> {
        self.progress.all()
    }

    /// Returns the running or last refresh of an account, if it is recent.
    pub fn progress_of(&self, account: AccountId) -> Option<RefreshStatus> {
        self.progress.get(account)
    }
}

impl Imports {
    /// Checks no logins.
    #[cfg(test)]
    pub(crate) fn no_checks() -> Arc<CheckLogins> {
        Arc::new(|_, _| Box::pin(std::future::ready(())))
    }

    /// Creates the production implementation of imports.
    pub(crate) fn new(models: Models, fetch: Fetch, uploads: PathBuf) -> Self {
        let (own, client) = (models.clone(), fetch.clone());
        let work = Arc::new(move |account, options: ImportOptions, report| {
            let (models, fetch) = (own.clone(), client.clone());
            let options = ImportOptions { uploads: Some(uploads.clone()), ..options };
            Box::pin(async move { import(&models, &fetch, account, options, report).await }) as _
        });
        let own = models.clone();
        let check = Arc::new(move |account, profiles: Vec<ProfileId>| {
            let (models, fetch) = (own.clone(), fetch.clone());
            Box::pin(async move { logins::check_all(&models, &fetch, account, &profiles, now_ms).await }) as _
        });
        Self { models, work, check, now: Arc::new(now_ms) }
    }
}
