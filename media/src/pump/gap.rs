//! A gap in the output, which filler fills.

use std::time::Duration;

use tokio::time::Instant;

use crate::pump::settings::PumpSettings;

/// A period without output after something has played. It ends with the first output of a source, not when a
/// source is followed.
pub(super) struct FillerGap {
    began: Instant,
    /// Time of the next filler; `None` after the gap has lasted too long.
    next_filler: Option<Instant>,
}

impl FillerGap {
    /// Creates a gap that begins now and whose first filler is due after `filler_delay`.
    pub(super) fn new(now: Instant, filler_delay: Duration) -> Self {
        Self { began: now, next_filler: Some(now + filler_delay) }
    }

    /// Returns the time of the next filler.
    pub(super) fn next_filler(&self) -> Option<Instant> {
        self.next_filler
    }

    /// Sets the time of the next filler.
    pub(super) fn fill_at(&mut self, time: Instant) {
        self.next_filler = Some(time);
    }

    /// Makes the next filler due now, if there is one.
    pub(super) fn fill_now(&mut self, now: Instant) {
        self.next_filler = self.next_filler.map(|it| it.min(now));
    }

    /// Returns whether filler is due now, and sets the time of the next one.
    pub(super) fn take_due(&mut self, settings: &PumpSettings, now: Instant) -> bool {
        if self.next_filler.is_none_or(|it| now < it) {
            return false;
        }
        let is_over = now - self.began > settings.give_up_after;
        self.next_filler = (!is_over).then(|| now + settings.filler_interval);
        !is_over
    }
}
