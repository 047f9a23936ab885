//! Refreshes guides: fetches them, reads them, and replaces the former guide of a source as a whole.
//!
//! The **actor** queues refreshes: one per source, one at a time, on request, by schedule, and again after a failure. A
//! **refresh** (`run.rs`) needs no actor. Its **input** (`input.rs`) depends on the kind of the source; everything after it
//! is the same for all kinds. Programmes that clients write (`written.rs`) replace a guide in the same way.

mod actor;
mod collector;
mod download;
mod error;
mod guard;
mod input;
mod inputs;
mod landing;
mod message;
mod portal;
mod preview;
mod progress;
mod run;
mod schedules_direct;
mod services;
mod stream;
#[cfg(test)]
mod tests;
mod written;
mod xmltv;

use std::sync::{Arc, OnceLock};

use domain::egress::Reach;
use domain::guide::programme::ProgrammeId;
use domain::ids::GuideSourceId;
use domain::source_url::SourceUrl;

#[cfg(test)]
pub(crate) use self::actor::GuideWork;
pub(crate) use self::actor::{Actor, Arguments, GuideImports};
pub use self::collector::GUIDE_CHANNELS_MAX;
pub use self::error::GuideError;
pub use self::landing::is_same_guide;
pub use self::message::GuideRefreshStart;
pub(crate) use self::message::Message;
pub use self::preview::GuidePreview;
pub(crate) use self::progress::GuideProgress;
pub use self::progress::{GuidePhase, GuideRefreshStatus};
pub use self::run::{GuideOptions, GuideParts, GuideSummary, refresh_guide};
pub use self::schedules_direct::{SchedulesDirect, ServiceAccount, ServiceError};
pub use self::services::GuideServices;
pub(crate) use self::stream::StreamGuides;
pub(crate) use self::written::WrittenGuides;
pub use self::written::{WrittenEdit, WrittenError};
use crate::ask::{ANSWER_TIMEOUT, Address, AskError};
use crate::clock::now_ms;

/// The handle of the actor that refreshes guides.
#[derive(Clone)]
pub struct GuideRefreshes {
    address: Address<Message>,
    progress: Arc<GuideProgress>,
    written: Arc<OnceLock<WrittenGuides>>,
    previews: Arc<GuidePreviews>,
}

/// Reads guides that are not sources yet, one at a time.
#[derive(Default)]
pub(crate) struct GuidePreviews {
    /// Until they are set, no guide can be read.
    pub(crate) parts: OnceLock<GuideParts>,
    turn: tokio::sync::Mutex<()>,
}

impl GuideRefreshes {
    pub(crate) fn new(
        address: Address<Message>,
        progress: Arc<GuideProgress>,
        written: Arc<OnceLock<WrittenGuides>>,
        previews: Arc<GuidePreviews>,
    ) -> Self {
        Self { address, progress, written, previews }
    }

    /// Refreshes the guide of a source now, or when the running refresh ends. Replies immediately:
    /// [`GuideRefreshes::progress_of`] reports the progress, and the state of the source the result. `force` accepts a
    /// guide that is cut off or much smaller than the former one.
    ///
    /// # Errors
    /// The gateway is stopping.
    pub async fn refresh(&self, source: GuideSourceId, force: bool) -> Result<GuideRefreshStart, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Refresh { source, force, reply }).await
    }

    /// Reports that a source was changed or deleted. A running refresh of it is stopped. A new one starts if the source
    /// `has_new_guide`.
    ///
    /// # Errors
    /// The gateway is stopping.
    pub async fn changed(&self, source: GuideSourceId, has_new_guide: bool) -> Result<(), AskError> {
        let force = false;
        self.address
            .ask(ANSWER_TIMEOUT, |reply| Message::Changed { source, has_new_guide, force, reply })
            .await
    }

    /// Reports that the service of a source now offers another guide, which may be much smaller. A running refresh is
    /// stopped, and a new one starts.
    ///
    /// # Errors
    /// The gateway is stopping.
    pub async fn replaced(&self, source: GuideSourceId) -> Result<(), AskError> {
        let (has_new_guide, force) = (true, true);
        self.address
            .ask(ANSWER_TIMEOUT, |reply| Message::Changed { source, has_new_guide, force, reply })
            .await
    }

    /// Reads the channels of a guide that is not a source yet. One is read at a time, for at most a minute. `reach` says how far
    /// its address may lead.
    ///
    /// # Errors
    /// The guide cannot be read.
    pub async fn preview(&self, url: SourceUrl, reach: Reach) -> Result<GuidePreview, GuideError> {
        let parts = self.previews.parts.get().ok_or(GuideError::NotHere)?;
        let _turn = self.previews.turn.lock().await;
        preview::preview(parts.clone(), url, reach).await
    }

    /// Changes programmes of a source of the kind `Written`, all at once or none. Returns the id of each programme that was
    /// put. Edits of all sources run one after the other.
    ///
    /// # Errors
    /// Nothing changed.
    pub async fn write_programmes(
        &self,
        source: GuideSourceId,
        edits: Vec<WrittenEdit>,
    ) -> Result<Vec<ProgrammeId>, WrittenError> {
        let written = self.written.get().ok_or(WrittenError::NoSuchSource)?;
        written.edit(source, edits, now_ms()).await
    }

    /// Returns the running, waiting and recently finished refreshes; one row per source.
    pub fn progress(&self) -> Vec<GuideRefreshStatus> {
        self.progress.all()
    }

    /// Returns the running or last refresh of a source, if it is recent.
    pub fn progress_of(&self, source: GuideSourceId) -> Option<GuideRefreshStatus> {
        self.progress.get(source)
    }
}

impl GuideImports {
    /// Creates the production implementation of refreshes.
    pub(crate) fn new(parts: GuideParts) -> Self {
        let (models, files) = (parts.models.clone(), parts.files.clone());
        let work = Arc::new(move |source, options, report| {
            let parts = parts.clone();
            Box::pin(async move { refresh_guide(&parts, source, options, report).await }) as _
        });
        Self { models, work, damaged: Arc::new(move || files.damaged()), now: Arc::new(now_ms) }
    }
}
