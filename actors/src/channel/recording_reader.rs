//! A reader of a channel that writes it to files: a recording, or what keeps the past of the channel.

use std::fmt;
use std::sync::Arc;

use domain::ids::ProfileId;
use domain::recording::{RecordingClaim, RecordingRank};

/// The programs that recordings and time-shift are shown as in lists of clients.
const RECORDER_AGENT: &str = "Headwater recorder";
const TIMESHIFT_AGENT: &str = "Headwater time-shift";

/// The priority of a recording at this moment. Its record may change while it reads.
pub(crate) trait RecordingPriority: Send + Sync {
    /// Returns its rank on a channel that plays from this account profile; the lowest one if it was deleted.
    fn rank(&self, playing: Option<ProfileId>) -> RecordingRank;

    /// Returns the account profile that the forecast gives it.
    fn forecast_profile(&self) -> Option<ProfileId>;

    /// Returns what it may take from others; nothing if it was deleted.
    fn claim(&self) -> Option<RecordingClaim>;
}

/// A reader that writes the channel to files.
#[derive(Clone)]
pub(crate) struct RecordingReader {
    /// `None` for the past of the channel, which has no record: every recording precedes it, and it takes nothing from others.
    recording: Option<Arc<dyn RecordingPriority>>,
}

impl RecordingReader {
    /// The reader of a recording.
    pub(crate) fn new(recording: Arc<dyn RecordingPriority>) -> Self {
        Self { recording: Some(recording) }
    }

    /// The reader that keeps the past of the channel.
    pub(crate) fn past() -> Self {
        Self { recording: None }
    }

    /// Returns the program that it is shown as.
    pub(crate) fn agent(&self) -> &'static str {
        if self.recording.is_some() { RECORDER_AGENT } else { TIMESHIFT_AGENT }
    }

    /// Returns whether a client with this program is the gateway itself.
    pub(crate) fn is_agent(agent: &str) -> bool {
        [RECORDER_AGENT, TIMESHIFT_AGENT].contains(&agent)
    }

    /// Returns its rank now on a channel that plays from this account profile.
    pub(crate) fn rank(&self, playing: Option<ProfileId>) -> RecordingRank {
        self.recording.as_ref().map(|it| it.rank(playing)).unwrap_or_default()
    }

    /// Returns the account profile that the forecast gives it now.
    pub(crate) fn forecast_profile(&self) -> Option<ProfileId> {
        self.recording.as_ref()?.forecast_profile()
    }

    /// Returns what it may take from others now.
    pub(crate) fn claim(&self) -> Option<RecordingClaim> {
        self.recording.as_ref()?.claim()
    }
}

impl fmt::Debug for RecordingReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordingReader").field(&self.agent()).finish()
    }
}
