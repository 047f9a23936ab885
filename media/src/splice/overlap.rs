//! Recognises a source that begins with what was sent already, and finds the access unit with which it continues. Pure.
//!
//! Many providers begin each response with some seconds of their past. After a reconnect these are a repetition, which
//! ends at the unit after the last one that was sent. It is waited for only as long as the source will probably need.
//!
//! A short recording that is played again and again begins where it began before, and has no continuation.
use std::time::Duration;

use crate::splice::history::{AccessUnit, SentUnits};
use crate::splice::pace::{Ticks, ticks};

/// Longest wait for the end of a repetition that arrives as a burst.
const BURST_WAIT_MAX: Duration = Duration::from_secs(10);

/// The same for one that arrives hardly faster than its programme runs.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// The rate of a repetition is known after this long.
const RATE_AFTER: Duration = Duration::from_millis(200);

/// The overlap of a source with what was sent.
#[derive(Debug, Default)]
pub(crate) enum Overlap {
    /// No unit of the source was found among those that were sent.
    #[default]
    Unknown,
    Repetition(Repetition),
    /// The source has another time line, is a recording that begins again, or is too slow.
    Absent,
}

/// A repetition that has not ended.
#[derive(Debug)]
pub(crate) struct Repetition {
    /// Added to the times of the source.
    shift: Ticks,
    /// Number of the newest unit that was sent before.
    number: u64,
    /// Arrival and decoding time of the first such unit, in source time.
    first: (Duration, Ticks),
    /// Decoding time of the newest.
    newest: Ticks,
    /// When the wait is judged again if nothing arrives, from the first payload on.
    judged_at: Duration,
}

impl Overlap {
    /// Takes the next unit of the source, which is decoded at `decode` in source time, and returns the shift of the source
    /// if it continues what was sent with this unit.
    pub(crate) fn unit(
        &mut self,
        unit: AccessUnit,
        decode: Ticks,
        at: Duration,
        sent: &SentUnits,
    ) -> Option<Ticks> {
        match self {
            Overlap::Unknown => {
                if let Some((number, sent_as)) = sent.find(unit, 0) {
                    *self = Overlap::Repetition(Repetition {
                        shift: sent_as.wrapping_sub(decode),
                        number,
                        first: (at, decode),
                        newest: decode,
                        judged_at: WAIT_MAX,
                    });
                }
            }
            Overlap::Repetition(repetition) => match sent.find(unit, repetition.number) {
                Some((number, sent_as)) if sent_as.wrapping_sub(decode) == repetition.shift => {
                    (repetition.number, repetition.newest) = (number, decode);
                }
                None if sent.can_follow(unit, repetition.number) => return Some(repetition.shift),
                _ => *self = Overlap::Absent,
            },
            Overlap::Absent => {}
        }
        None
    }

    /// Returns whether the source, whose first payload arrived `waited` ago, sends a repetition whose end is worth waiting
    /// for. If not, it will not be waited for later either.
    pub(crate) fn is_awaited(&mut self, waited: Duration, now: Duration, sent: &SentUnits) -> bool {
        let Overlap::Repetition(repetition) = self else { return false };
        let is_awaited = repetition.is_awaited(waited, now, sent);
        if !is_awaited {
            *self = Overlap::Absent;
        } else if waited >= WAIT_MAX {
            repetition.judged_at = BURST_WAIT_MAX;
        }
        is_awaited
    }

    /// Returns the decoding time of the newest unit of a repetition, in source time.
    pub(crate) fn newest(&self) -> Option<Ticks> {
        match self {
            Overlap::Repetition(repetition) => Some(repetition.newest),
            Overlap::Unknown | Overlap::Absent => None,
        }
    }

    /// Returns the time since the first payload at which [`Overlap::is_awaited`] must be called if nothing arrives.
    pub(crate) fn judged_at(&self) -> Option<Duration> {
        match self {
            Overlap::Repetition(repetition) => Some(repetition.judged_at),
            Overlap::Unknown | Overlap::Absent => None,
        }
    }
}

impl Repetition {
    fn is_awaited(&self, waited: Duration, now: Duration, sent: &SentUnits) -> bool {
        let Some(last) = sent.last_sent_as() else { return false };
        let n_left = (last - self.shift - self.newest).max(0);
        let took = now.saturating_sub(self.first.0);
        if took < RATE_AFTER {
            return waited < BURST_WAIT_MAX;
        }
        let (programme, took) = (self.newest - self.first.1, ticks(took));
        if programme >= took * 3 / 2 {
            let needs = i128::from(n_left) * i128::from(took) / i128::from(programme.max(1));
            i128::from(ticks(waited)) + needs < i128::from(ticks(BURST_WAIT_MAX))
        } else {
            waited < WAIT_MAX && ticks(waited) + n_left <= ticks(WAIT_MAX)
        }
    }
}
