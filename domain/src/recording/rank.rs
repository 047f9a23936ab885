//! Which recording keeps a connection when there are too few.

use serde::{Deserialize, Serialize};

use super::{DvrSettings, Recording};

/// The rank of a recording at one moment. A higher one may take the connection of a lower one; of equal ones, the one that
/// has it keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordingRank {
    /// Its programme is on. Padding gives way to every programme.
    is_programme: bool,
    priority: u8,
    /// The forecast gives it this account at this time.
    is_forecast: bool,
}

impl Recording {
    /// Returns its rank at a time in milliseconds since 1970. `is_forecast` says whether the forecast gives it the account
    /// at this time.
    pub fn rank(&self, at: i64, is_forecast: bool) -> RecordingRank {
        let is_programme = (self.start..self.end).contains(&at);
        RecordingRank { is_programme, priority: self.priority, is_forecast }
    }
}

/// The connections that a recording may take from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingClaim {
    rank: RecordingRank,
    disconnects_viewers: bool,
}

impl RecordingClaim {
    /// Returns the claim of a recording at a time in milliseconds since 1970. `is_forecast` says whether the forecast gives
    /// it an account at this time.
    pub fn new(recording: &Recording, at: i64, is_forecast: bool, settings: &DvrSettings) -> Self {
        let rank = recording.rank(at, is_forecast);
        Self { rank, disconnects_viewers: settings.disconnect_viewers && rank.is_programme }
    }

    /// Returns whether it takes the connection of a channel: the ranks are those of the recordings that read it.
    pub fn takes(&self, n_viewers: usize, recordings: impl IntoIterator<Item = RecordingRank>) -> bool {
        (n_viewers == 0 || self.disconnects_viewers) && recordings.into_iter().all(|it| it < self.rank)
    }

    /// Returns whether it takes the connection of a channel without viewers that the forecast has on another account, where
    /// a slot is left for that.
    pub fn moves(&self) -> bool {
        self.rank.is_programme && self.rank.is_forecast
    }

    /// Returns whether it takes the connection of a viewer.
    pub fn takes_from_viewers(&self) -> bool {
        self.disconnects_viewers
    }

    /// Returns the stronger one of two claims.
    pub fn max(self, other: Self) -> Self {
        let key = |it: &Self| (it.disconnects_viewers, it.rank);
        if key(&other) > key(&self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(is_programme: bool, priority: u8, disconnects_viewers: bool) -> RecordingClaim {
        let rank = RecordingRank { is_programme, priority, is_forecast: false };
        RecordingClaim { rank, disconnects_viewers }
    }

    #[test]
    fn a_programme_precedes_padding_and_then_the_priority_decides() {
        let rank = |is_programme, priority| RecordingRank { is_programme, priority, is_forecast: false };
        assert!(claim(true, 10, false).takes(0, [rank(false, 90)]));
        assert!(claim(true, 60, false).takes(0, [rank(true, 50), rank(false, 100)]));
        assert!(!claim(true, 60, false).takes(0, [rank(true, 50), rank(true, 60)]), "equal ones keep it");
        let forecast = RecordingClaim {
            rank: RecordingRank { is_forecast: true, ..rank(true, 60) },
            ..claim(true, 60, false)
        };
        assert!(forecast.takes(0, [rank(true, 60)]), "of equal ones, that of the forecast gets it");
        assert!(!forecast.takes(0, [rank(true, 61)]));
        assert!(!claim(false, 90, false).takes(0, [rank(true, 10)]));
        assert!(!claim(true, 90, false).takes(1, [rank(true, 10)]));
        assert!(claim(true, 90, true).takes(1, [rank(true, 10)]));
        assert_eq!(claim(true, 90, false).max(claim(true, 10, true)), claim(true, 10, true));
    }
}
