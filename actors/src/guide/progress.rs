//! The progress of the refreshes of guides.

use domain::guide::state::GuideStatus;
use domain::ids::GuideSourceId;
use uuid::Uuid;

use crate::refresh::{RefreshRow, RefreshTable};

/// The phase of a refresh of a guide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuidePhase {
    /// The refresh waits for its turn.
    #[default]
    Waiting,
    /// The guide is being downloaded.
    Fetching,
    /// The guide is being read.
    Parsing,
    /// The guide is written to the disk.
    Writing,
    /// The refresh ended; the outcome contains the result.
    Done,
}

impl GuidePhase {
    /// Returns the percentages of the whole refresh between which the phase lies.
    fn range(self) -> (u8, u8) {
        match self {
            Self::Waiting => (0, 0),
            Self::Fetching => (0, 30),
            Self::Parsing => (30, 90),
            Self::Writing => (90, 99),
            Self::Done => (100, 100),
        }
    }
}

/// The progress of the refresh of a guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideRefreshStatus {
    pub source: GuideSourceId,
    /// Distinguishes this refresh from others of the same source.
    pub job: Uuid,
    pub phase: GuidePhase,
    /// Percentage of the whole refresh. Never decreases.
    pub percent: u8,
    /// Number of guide channels so far.
    pub n_channels: u64,
    /// Number of programmes so far.
    pub n_programmes: u64,
    /// The result, once the refresh ended, unless it was stopped.
    pub outcome: Option<GuideStatus>,
    /// A sentence for an admin, without credentials. Empty while the refresh runs.
    pub message: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
}

impl GuideRefreshStatus {
    pub(crate) fn new(source: GuideSourceId, job: Uuid, started_at: i64) -> Self {
        Self {
            source,
            job,
            phase: GuidePhase::default(),
            percent: 0,
            n_channels: 0,
            n_programmes: 0,
            outcome: None,
            message: String::new(),
            started_at,
        }
    }

    /// Moves on to this percentage of a phase. A step backwards has no effect.
    pub(crate) fn advance(&mut self, phase: GuidePhase, percent: u8) {
        let (first, last) = phase.range();
        let whole =
            first + u8::try_from(u32::from(last - first) * u32::from(percent.min(100)) / 100).unwrap_or(0);
        self.phase = self.phase.max(phase);
        self.percent = self.percent.max(whole);
    }
}

impl RefreshRow for GuideRefreshStatus {
    type Id = GuideSourceId;

    fn id(&self) -> GuideSourceId {
        self.source
    }

    fn job(&self) -> Uuid {
        self.job
    }

    fn started_at(&self) -> i64 {
        self.started_at
    }

    fn is_done(&self) -> bool {
        self.phase == GuidePhase::Done
    }

    fn interrupt(&mut self, message: &str) {
        self.advance(GuidePhase::Done, 100);
        self.outcome = Some(GuideStatus::Error);
        self.message = message.to_owned();
    }
}

/// The last refresh of each guide source. Outlives the actor.
pub(crate) type GuideProgress = RefreshTable<GuideRefreshStatus>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds T-epg.6.
    #[test]
    fn the_progress_never_decreases_and_ends_at_a_hundred() {
        let mut status = GuideRefreshStatus::new(GuideSourceId(1), Uuid::nil(), 0);
        let mut seen = vec![status.percent];
        for (phase, percent) in [
            (GuidePhase::Fetching, 0),
            (GuidePhase::Fetching, 50),
            (GuidePhase::Fetching, 20),
            (GuidePhase::Fetching, 255),
            (GuidePhase::Parsing, 0),
            (GuidePhase::Fetching, 100),
            (GuidePhase::Parsing, 50),
            (GuidePhase::Writing, 100),
            (GuidePhase::Parsing, 0),
            (GuidePhase::Done, 0),
        ] {
            status.advance(phase, percent);
            seen.push(status.percent);
        }
        assert_eq!(seen, [0, 0, 15, 15, 30, 30, 30, 60, 99, 99, 100]);
        assert_eq!(status.phase, GuidePhase::Done);
    }
}
