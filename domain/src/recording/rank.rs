//! Which recording keeps a connection when there are too few.

use super::{DvrSettings, Recording};

/// The rank of a recording at one moment. A higher one may take the connection of a lower one; of equal ones, the one that
/// has it keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordingRank {
    /// Its programme is on. Padding gives way to every programme.
    is_programme: bool,
    priority: u8,
}

impl Recording {
    /// Returns its rank at a time in milliseconds since 1970.
    pub fn rank(&self, at: i64) -> RecordingRank {
        RecordingRank { is_programme: (self.start..self.end).contains(&at), priority: self.priority }
    }
}

/// The connections that a recording may take from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingClaim {
    rank: RecordingRank,
    disconnects_viewers: bool,
}

impl RecordingClaim {
    /// Returns the claim of a recording at a time in milliseconds since 1970.
    pub fn of(recording: &Recording, at: i64, settings: &DvrSettings) -> Self {
        let rank = recording.rank(at);
        Self { rank, disconnects_viewers: settings.disconnect_viewers && rank.is_programme }
    }

    /// Returns whether it takes the connection of a channel: the ranks are those of the recordings that read it.
    pub fn takes(&self, n_viewers: usize, recordings: impl IntoIterator<Item = RecordingRank>) -> bool {
        (n_viewers == 0 || self.disconnects_viewers) && recordings.into_iter().all(|it| it < self.rank)
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
        RecordingClaim { rank: RecordingRank { is_programme, priority }, disconnects_viewers }
    }

    #[test]
    fn a_programme_precedes_padding_and_then_the_priority_decides() {
        let rank = |is_programme, priority| RecordingRank { is_programme, priority };
        assert!(claim(true, 10, false).takes(0, [rank(false, 90)]));
        assert!(claim(true, 60, false).takes(0, [rank(true, 50), rank(false, 100)]));
        assert!(!claim(true, 60, false).takes(0, [rank(true, 50), rank(true, 60)]), "equal ones keep it");
        assert!(!claim(false, 90, false).takes(0, [rank(true, 10)]));
        assert!(!claim(true, 90, false).takes(1, [rank(true, 10)]));
        assert!(claim(true, 90, true).takes(1, [rank(true, 10)]));
        assert_eq!(claim(true, 90, false).max(claim(true, 10, true)), claim(true, 10, true));
    }
}
