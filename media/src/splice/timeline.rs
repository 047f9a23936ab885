//! The 33-bit clocks of one source on a line that does not wrap.
use crate::splice::pace::Ticks;
use crate::ts::clock::{STAMP_MODULUS, distance};

/// Programme clock and time stamps of one source. Each stamp is taken to be the one nearest to the clock, so that
/// it does not matter which of them wraps first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    reference: Option<Ticks>,
}

impl Timeline {
    /// Where a 33-bit stamp lies.
    pub(crate) fn place(&self, stamp: u64) -> Ticks {
        match self.reference {
            None => stamp as Ticks,
            Some(reference) => reference.wrapping_add(distance(wrap(reference), stamp, STAMP_MODULUS)),
        }
    }

    /// Where a 33-bit clock lies; what comes next lies near it.
    pub(crate) fn advance(&mut self, clock: u64) -> Ticks {
        let place = self.place(clock);
        self.reference = Some(place);
        place
    }
}

/// The 33-bit stamp of a time.
pub(crate) fn wrap(time: Ticks) -> u64 {
    time.rem_euclid(STAMP_MODULUS as Ticks) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_on_both_sides_of_the_wrap_lie_side_by_side() {
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
