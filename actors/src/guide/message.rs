//! Messages of the actor that refreshes guides.

use domain::ids::GuideSourceId;
use ractor::RpcReplyPort;
use uuid::Uuid;

use super::error::GuideError;
use super::run::GuideSummary;

/// The messages of the actor.
pub(crate) enum Message {
    /// Refreshes a source now.
    Refresh { source: GuideSourceId, force: bool, reply: RpcReplyPort<GuideRefreshStart> },
    /// A source changed or was deleted. A running refresh with the former values is stopped; one starts if
    /// `has_new_guide`, with this value of `force`.
    Changed { source: GuideSourceId, has_new_guide: bool, force: bool, reply: RpcReplyPort<()> },
    /// Starts refreshes that are due.
    CheckSchedules,
    /// Guides whose file is damaged are fetched again.
    CheckFiles,
    /// A refresh ended.
    Finished { source: GuideSourceId, job: Uuid, done: Result<GuideSummary, GuideError> },
}

/// The reply to a request to refresh a guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideRefreshStart {
    /// The refresh is running, or waits for its turn.
    Started {
        job: Uuid,
    },
    /// A refresh of this source is already running or waiting; the request has no effect.
    AlreadyRunning {
        job: Uuid,
    },
    NoSuchSource,
    Inactive,
    /// Programmes of this kind are not fetched.
    NotRefreshed,
    /// The source has neither an address nor an uploaded file.
    NoLocation,
}
