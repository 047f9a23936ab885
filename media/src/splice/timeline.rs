//! Unwraps the 33-bit clocks of one source.
use crate::splice::pace::Ticks;
use crate::ts::clock::{STAMP_MODULUS, distance};

/// Unwraps the programme clock and the time stamps of one source. Each stamp is taken to be the nearest to
/// the clock, so it does not matter which of them wraps first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    reference: Option<Ticks>,
}

impl Timeline {
    /// Returns the unwrapped time of a 33-bit stamp.
    pub(crate) fn place(&self, stamp: u64) -> Ticks {
        match self.reference {
            None => stamp as Ticks,
            Some(reference) => reference.wrapping_add(distance(wrap(reference), stamp, STAMP_MODULUS)),
        }
    }

    /// Returns the unwrapped time of a 33-bit clock, and makes it the reference for the next stamps.
    pub(crate) fn advance(&mut self, clock: u64) -> Ticks {
        let place = self.place(clock);
        self.reference = Some(place);
        place
    }
}

/// Returns the 33-bit stamp of a time.
pub(crate) fn wrap(time: Ticks) -> u64 {
    time.rem_euclid(STAMP_MODULUS as Ticks) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_on_both_sides_of_the_wrap_are_adjacent() {
        let mut timeline = Timeline::default();
        let end = STAMP_MODULUS as Ticks;
        assert_eq!(timeline.advance(STAMP_MODULUS - 10), end - 10);
        assert_eq!(timeline.place(20), end + 20);
        assert_eq!(timeline.place(STAMP_MODULUS - 30), end - 30);
        assert_eq!(timeline.advance(5), end + 5);
        assert_eq!(timeline.advance(STAMP_MODULUS - 5), end - 5);
        assert_eq!(wrap(end + 5), 5);
        assert_eq!(wrap(-5), STAMP_MODULUS - 5);
    }
}
