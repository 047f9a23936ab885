//! Suspects a source that plays of having failed when it sends no payload for longer than usual.
//!
//! Only time during which the pump itself ran on time counts: after the machine or the process stood still, the source
//! gets the time to deliver what it had sent meanwhile. A source that sends in bursts is allowed longer pauses.

use std::time::Duration;

use tokio::time::Instant;

/// Interval of checks during silence, which measure whether the pump runs on time.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// A check that is later than this was not on time.
const LATE: Duration = Duration::from_millis(50);
/// The longest pause of a source is remembered for one to two such periods.
const PAUSE_MEMORY: Duration = Duration::from_secs(60);
/// The allowed silence ends this long before the source counts as lost anyway.
const BEFORE_STALL: Duration = Duration::from_millis(500);

/// The silence of one source.
#[derive(Debug)]
pub(super) struct SilenceMonitor {
    /// Shortest silence that raises suspicion.
    shortest: Duration,
    stall_timeout: Duration,
    /// Silence to expect after what was received, because it was a burst.
    expected: Duration,
    /// While the source is paused, the end of the pause.
    last_payload: Instant,
    next_check: Instant,
    /// Time since the last payload during which the pump did not run on time.
    late: Duration,
    /// The longest pause of the current period and of the one before.
    longest: [Duration; 2],
    period_began: Instant,
    is_suspected: bool,
}

impl SilenceMonitor {
    /// Creates the monitor of a source; `longest_pause` is that of the last connection to its stream.
    pub(super) fn new(
        shortest: Duration,
        stall_timeout: Duration,
        longest_pause: Duration,
        now: Instant,
    ) -> Self {
        Self {
            shortest,
            stall_timeout,
            expected: Duration::ZERO,
            last_payload: now,
            next_check: now + CHECK_INTERVAL,
            late: Duration::ZERO,
            longest: [Duration::ZERO, longest_pause],
            period_began: now,
            is_suspected: false,
        }
    }

    /// Records payload. Returns whether it ends a silence that had raised suspicion.
    pub(super) fn payload(&mut self, now: Instant) -> bool {
        let pause = (now - self.last_payload).saturating_sub(self.late + self.lateness(now));
        if now - self.period_began > PAUSE_MEMORY {
            self.longest = [Duration::ZERO, self.longest[0]];
            self.period_began = now;
        }
        self.longest[0] = self.longest[0].max(pause);
        self.begin(now);
        std::mem::take(&mut self.is_suspected)
    }

    /// Records that the source is not read until then, so that nothing can arrive before.
    pub(super) fn pause(&mut self, until: Instant) {
        self.begin(until);
    }

    /// Sets the silence to expect, which is longer after a burst, and the time after which a source that sends evenly
    /// counts as lost.
    pub(super) fn expect(&mut self, silence: Duration, stall_timeout: Duration) {
        self.expected = silence;
        self.stall_timeout = stall_timeout.max(silence);
    }

    /// Returns the longest pause of the last one to two minutes.
    pub(super) fn longest_pause(&self) -> Duration {
        self.longest[0].max(self.longest[1])
    }

    /// Returns the time at which the source counts as lost.
    pub(super) fn stalled_at(&self) -> Instant {
        self.last_payload + self.stall_timeout
    }

    /// Returns the time of the next [`Self::check`].
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_suspected && self.shortest < self.stall_timeout).then_some(self.next_check)
    }

    /// Checks the silence, to be called when nothing can be read. Returns its length when it raises suspicion.
    pub(super) fn check(&mut self, now: Instant) -> Option<Duration> {
        if self.deadline().is_none_or(|it| now < it) {
            return None;
        }
        self.late += self.lateness(now);
        let silence = now - self.last_payload;
        let left = self.allowed().saturating_sub(silence.saturating_sub(self.late));
        self.next_check = now + left.min(CHECK_INTERVAL);
        self.is_suspected = left.is_zero();
        self.is_suspected.then_some(silence)
    }

    pub(super) fn is_suspected(&self) -> bool {
        self.is_suspected
    }

    /// Returns the silence that raises no suspicion yet.
    fn allowed(&self) -> Duration {
        let usual = self.longest_pause() * 3 / 2;
        usual.max(self.expected).min(self.stall_timeout.saturating_sub(BEFORE_STALL)).max(self.shortest)
    }

    /// Returns by how much a check at this time would be late.
    fn lateness(&self, now: Instant) -> Duration {
        let late = self.deadline().map(|it| now.saturating_duration_since(it));
        late.filter(|it| *it > LATE).unwrap_or_default()
    }

    /// The time of the silence starts here.
    fn begin(&mut self, at: Instant) {
        self.last_payload = at;
        self.next_check = at + CHECK_INTERVAL;
        self.late = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs the checks on time from the last payload on. Returns the silence that raises suspicion within ten seconds.
    fn suspected_after(monitor: &mut SilenceMonitor) -> Option<u128> {
        let end = monitor.last_payload + 10_000 * MS;
        while let Some(at) = monitor.deadline().filter(|it| *it <= end) {
            if let Some(silence) = monitor.check(at) {
                return Some(silence.as_millis());
            }
        }
        None
    }

    /// Sends payload with these pauses, in milliseconds, and returns the silence afterwards that raises suspicion.
    #[track_caller]
    fn check(stall_ms: u32, pauses: impl IntoIterator<Item = u32>, expected: Option<u128>) {
        let mut now = Instant::now();
        let mut monitor = SilenceMonitor::new(1_500 * MS, stall_ms * MS, Duration::ZERO, now);
        for pause in pauses {
            let end = now + pause * MS;
            while let Some(at) = monitor.deadline().filter(|it| *it < end) {
                monitor.check(at);
            }
            now = end;
            monitor.payload(now);
        }
        assert_eq!(suspected_after(&mut monitor), expected);
    }

    #[test]
    fn a_source_that_sends_evenly_is_suspected_after_the_configured_silence() {
        check(5_000, [], Some(1_500));
        check(5_000, [40; 100], Some(1_500));
        check(5_000, [900, 40, 40], Some(1_500));
    }

    #[test]
    fn a_source_that_sends_in_bursts_may_pause_half_as_long_again_as_usual() {
        check(5_000, [2_000, 40, 40], Some(3_000));
        check(10_000, [3_000, 40, 40], Some(4_500));
        check(10_000, [3_000, 2_000, 3_000, 100], Some(4_500));
    }

    #[test]
    fn suspicion_comes_before_the_loss_or_never() {
        check(5_000, [4_000], Some(4_500));
        check(1_500, [40; 10], None);
        check(1_000, [40; 10], None);
        check(1_600, [40; 10], Some(1_500));
    }

    #[test]
    fn a_long_pause_is_forgotten_after_two_minutes() {
        check(5_000, [2_000].into_iter().chain([40; 2_900]), Some(3_000));
        check(5_000, [2_000].into_iter().chain([40; 3_100]), Some(1_500));
    }

    #[test]
    fn the_longest_pause_of_the_connection_before_counts_for_a_minute() {
        let began = Instant::now();
        let monitor = || SilenceMonitor::new(1_500 * MS, 10_000 * MS, 3_000 * MS, began);
        assert_eq!(suspected_after(&mut monitor()), Some(4_500));
        let mut later = monitor();
        for it in 1..=61_000 / 40 {
            later.payload(began + it * 40 * MS);
        }
        assert_eq!(suspected_after(&mut later), Some(1_500));
    }

    #[test]
    fn time_during_which_the_pump_did_not_run_does_not_count() {
        let began = Instant::now();
        let mut monitor = SilenceMonitor::new(1_500 * MS, 5_000 * MS, Duration::ZERO, began);
        assert_eq!(monitor.check(began + 250 * MS), None);
        // The process stands still for three seconds.
        assert_eq!(monitor.check(began + 3_500 * MS), None);
        assert_eq!(suspected_after(&mut monitor), Some(4_500));

        // Payload that arrives right afterwards shows that the source did not pause.
        let mut monitor = SilenceMonitor::new(1_500 * MS, 5_000 * MS, Duration::ZERO, began);
        monitor.payload(began + 4_000 * MS);
        assert_eq!(suspected_after(&mut monitor), Some(1_500));
    }

    #[test]
    fn payload_ends_the_suspicion_and_a_pause_in_reading_delays_it() {
        let began = Instant::now();
        let mut monitor = SilenceMonitor::new(1_500 * MS, 5_000 * MS, Duration::ZERO, began);
        assert_eq!(suspected_after(&mut monitor), Some(1_500));
        assert!(monitor.is_suspected() && monitor.deadline().is_none());
        assert!(monitor.payload(began + 1_600 * MS), "it sends again");
        assert!(!monitor.payload(began + 1_700 * MS), "reported once");
        monitor.pause(began + 60_000 * MS);
        assert_eq!(monitor.deadline(), Some(began + 60_250 * MS));
    }
}
