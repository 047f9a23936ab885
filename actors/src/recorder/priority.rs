//! The priority of a recording that reads a channel.

use std::sync::Arc;

use domain::ids::{ProfileId, RecordingId};
use domain::recording::{Recording, RecordingClaim, RecordingRank};

use super::forecast::Forecasts;
use crate::channel::RecordingPriority;
use crate::clock::now_ms;
use crate::recording_files::dvr_settings;

/// An idle channel starts this long before a recording, in milliseconds, so that it plays in time.
pub(super) const LEAD_MS: i64 = 10_000;

/// The priority of a recording as its record and the forecast say.
pub(super) struct ForecastPriority {
    id: RecordingId,
    forecasts: Arc<Forecasts>,
}

impl ForecastPriority {
    pub(super) fn new(id: RecordingId, forecasts: Arc<Forecasts>) -> Self {
        Self { id, forecasts }
    }

    fn record(&self) -> Option<Arc<Recording>> {
        self.forecasts.models().recordings.load().get(self.id.0).cloned()
    }
}

impl RecordingPriority for ForecastPriority {
    fn rank(&self, playing: Option<ProfileId>) -> RecordingRank {
        let Some(recording) = self.record() else { return RecordingRank::default() };
        let now = now_ms();
        let is_forecast = playing.is_some() && self.forecasts.last().profile_at(recording.id, now) == playing;
        recording.rank(now, is_forecast)
    }

    fn forecast_profile(&self) -> Option<ProfileId> {
        let recording = self.record()?;
        self.forecasts.last().profile_at(recording.id, claimed_at(&recording))
    }

    /// The programme counts as begun some seconds before, so that its channel plays in time.
    fn claim(&self) -> Option<RecordingClaim> {
        let recording = self.record()?;
        let is_forecast = self.forecast_profile().is_some();
        let settings = dvr_settings(self.forecasts.models());
        Some(RecordingClaim::new(&recording, claimed_at(&recording), is_forecast, &settings))
    }
}

/// Returns the time for which a recording asks for a connection now.
fn claimed_at(recording: &Recording) -> i64 {
    let now = now_ms();
    if now < recording.start { now.saturating_add(LEAD_MS) } else { now }
}
