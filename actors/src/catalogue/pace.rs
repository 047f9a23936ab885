//! When the next question may be sent to a panel.

use std::time::Duration;

use tokio::time::Instant;

/// Wait after a refusal that names none, doubled with each one that follows.
const REFUSED_WAIT: Duration = Duration::from_secs(60);
const REFUSED_WAIT_MAX: Duration = Duration::from_secs(15 * 60);
/// Longer waits that a panel asks for are shortened to this one.
const ASKED_WAIT_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// The pace of the questions to one panel.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the last question about a title was sent.
    last: Option<Instant>,
    /// The panel refuses questions until then.
    refused_until: Option<Instant>,
    /// Number of refusals without an answer between them.
    n_refusals: u32,
}

impl Pace {
    /// Returns the time until the panel may be asked at all.
    pub(super) fn refused_for(&self, now: Instant) -> Duration {
        self.refused_until.map_or(Duration::ZERO, |it| it.saturating_duration_since(now))
    }

    /// Returns the time until the next question about a title.
    pub(super) fn wait(&self, now: Instant, interval: Duration) -> Duration {
        let after_last =
            self.last.map_or(Duration::ZERO, |it| (it + interval).saturating_duration_since(now));
        after_last.max(self.refused_for(now))
    }

    /// Notes a question about a title.
    pub(super) fn asked(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// Notes that the panel refused a question for now, and the wait that it asked for.
    pub(super) fn refused(&mut self, now: Instant, wait: Option<Duration>) {
        let own = REFUSED_WAIT.saturating_mul(1 << self.n_refusals.min(8)).min(REFUSED_WAIT_MAX);
        self.n_refusals = self.n_refusals.saturating_add(1);
        self.refused_until = Some(now + wait.unwrap_or(own).min(ASKED_WAIT_MAX));
    }

    /// Notes an answer.
    pub(super) fn answered(&mut self) {
        (self.refused_until, self.n_refusals) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn questions_about_titles_follow_each_other_at_the_interval() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        assert_eq!(pace.wait(begin, SECOND), Duration::ZERO);
        pace.asked(begin);
        assert_eq!(pace.wait(begin, SECOND), SECOND);
        assert_eq!(pace.wait(begin + SECOND, SECOND), Duration::ZERO);
        assert_eq!(pace.wait(begin, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_refusal_delays_everything_for_as_long_as_the_panel_asks() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        pace.refused(begin, Some(90 * SECOND));
        assert_eq!((pace.refused_for(begin), pace.wait(begin, SECOND)), (90 * SECOND, 90 * SECOND));
        assert_eq!(pace.refused_for(begin + 90 * SECOND), Duration::ZERO);
        pace.refused(begin, Some(Duration::MAX));
        assert_eq!(pace.refused_for(begin), ASKED_WAIT_MAX);
        pace.answered();
        for wait in [60, 120, 240, 480, 900, 900] {
            pace.refused(begin, None);
            assert_eq!(pace.refused_for(begin), wait * SECOND);
        }
        pace.answered();
        assert_eq!(pace.refused_for(begin), Duration::ZERO);
    }
}
