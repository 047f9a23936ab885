//! Decides whether a guide may replace the former one.

use super::collector::Counts;
use super::error::GuideError;

/// The former guide, as far as it counts for the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Former {
    pub(super) n_channels: u64,
    /// Programmes that have not ended.
    pub(super) n_upcoming: u64,
}

/// Checks a guide against the former one. `is_confirmed` accepts a much smaller one, but never an empty one.
///
/// A former guide without a programme that has not ended is worth nothing: any guide replaces it.
pub(super) fn check(new: Counts, former: Former, is_confirmed: bool) -> Result<(), GuideError> {
    if new.n_channels == 0 {
        return Err(GuideError::Empty);
    }
    if is_confirmed || former.n_upcoming == 0 {
        return Ok(());
    }
    let is_half = |now: u64, before: u64| now.saturating_mul(2) < before;
    if is_half(new.n_channels, former.n_channels) {
        return Err(GuideError::FewerChannels { before: former.n_channels, now: new.n_channels });
    }
    if is_half(new.n_upcoming, former.n_upcoming) {
        return Err(GuideError::FewerProgrammes { before: former.n_upcoming, now: new.n_upcoming });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_half_of_the_channels_or_of_the_upcoming_programmes_needs_a_confirmation() {
        let former = Former { n_channels: 100, n_upcoming: 1_000 };
        let counts = |n_channels, n_upcoming| Counts { n_channels, n_upcoming, ..Counts::default() };
        for (new, former, refused, refused_when_confirmed) in [
            (counts(0, 0), Former::default(), true, true),
            (counts(0, 0), former, true, true),
            (counts(1, 0), Former::default(), false, false),
            (counts(50, 500), former, false, false),
            (counts(49, 5_000), former, true, false),
            (counts(500, 499), former, true, false),
            // The former guide has expired.
            (counts(1, 1), Former { n_upcoming: 0, ..former }, false, false),
        ] {
            assert_eq!(check(new, former, false).is_err(), refused, "{new:?} after {former:?}");
            assert_eq!(check(new, former, true).is_err(), refused_when_confirmed, "{new:?} after {former:?}");
        }
    }
}
