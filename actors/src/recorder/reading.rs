//! What a channel knows of a recording that reads it.

use std::fmt;
use std::sync::Arc;

use domain::ids::{ProfileId, RecordingId};
use domain::recording::{Recording, RecordingClaim, RecordingRank};

use super::forecast::Forecasts;
use super::{LEAD_MS, dvr_settings};
use crate::clock::now_ms;

/// The programs that recordings and time-shift are shown as in lists of clients.
const RECORDER_AGENT: &str = "Headwater recorder";
const TIMESHIFT_AGENT: &str = "Headwater time-shift";

/// A recording that reads a channel. Its record may change meanwhile.
#[derive(Clone)]
pub(crate) struct ReadingRecording {
    /// `None` for the past of the channel, which has no record: every recording precedes it, and it takes nothing from others.
    recording: Option<(RecordingId, Arc<Forecasts>)>,
}

impl ReadingRecording {
    pub(super) fn new(id: RecordingId, forecasts: Arc<Forecasts>) -> Self {
        Self { recording: Some((id, forecasts)) }
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

    fn record(&self) -> Option<(&Forecasts, Arc<Recording>)> {
        let (id, forecasts) = self.recording.as_ref()?;
        Some((&**forecasts, forecasts.models().recordings.load().get(id.0).cloned()?))
    }

    /// Returns its rank now on a channel that plays from this account profile; the lowest one if it was deleted.
    pub(crate) fn rank(&self, playing: Option<ProfileId>) -> RecordingRank {
        let Some((forecasts, recording)) = self.record() else { return RecordingRank::default() };
        let now = now_ms();
        let is_forecast = playing.is_some() && forecasts.last().profile_at(recording.id, now) == playing;
        recording.rank(now, is_forecast)
    }

    /// Returns the account profile that the forecast gives it now.
    pub(crate) fn forecast_profile(&self) -> Option<ProfileId> {
        let (forecasts, recording) = self.record()?;
        forecasts.last().profile_at(recording.id, claimed_at(&recording))
    }

    /// Returns what it may take from others; nothing if it was deleted. The programme counts as begun some seconds before,
    /// so that its channel plays in time.
    pub(crate) fn claim(&self) -> Option<RecordingClaim> {
        let (forecasts, recording) = self.record()?;
        let is_forecast = self.forecast_profile().is_some();
        let settings = dvr_settings(forecasts.models());
        Some(RecordingClaim::new(&recording, claimed_at(&recording), is_forecast, &settings))
    }
}

/// Returns the time for which a recording asks for a connection now.
fn claimed_at(recording: &Recording) -> i64 {
    let now = now_ms();
    if now < recording.start { now.saturating_add(LEAD_MS) } else { now }
}

impl fmt::Debug for ReadingRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadingRecording")
            .field("id", &self.recording.as_ref().map(|it| it.0))
            .finish_non_exhaustive()
    }
}
