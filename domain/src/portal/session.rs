//! When a device shakes hands with its portal again, and when it waits.
//!
//! A second handshake of a MAC address ends the first, so a box of the household and the gateway could take the portal from
//! each other in turns. Each handshake therefore has a reason, and only so many of them are allowed in a time.

/// A wait after a refusal, in milliseconds, and the longest one.
const WAIT_MS: i64 = 30_000;
const WAIT_MS_MAX: i64 = 3_600_000;
/// Handshakes that are allowed in [`PERIOD_MS`].
const HANDSHAKES_MAX: usize = 5;
const PERIOD_MS: i64 = 600_000;

/// The handshakes and refusals of one device. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionTimes {
    /// The last handshakes, oldest first; at most [`HANDSHAKES_MAX`].
    handshakes: Vec<i64>,
    /// The present token has been accepted for a question.
    is_proven: bool,
    /// Waits in a row.
    n_waits: u32,
    waits_until: Option<i64>,
}

/// The step of a device before its next question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// It has a token that may be valid.
    Ask,
    /// It needs a token.
    Handshake,
    /// It asks nothing for this many milliseconds.
    Wait(i64),
}

/// The step after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The token has ended: one new handshake, and the question again.
    Renew,
    /// The portal refuses a new token as well.
    GiveUp,
}

impl SessionTimes {
    /// Returns the next step of a device with or without a token.
    pub fn next(&self, has_token: bool, now: i64) -> SessionStep {
        let oldest = self.handshakes.first().filter(|_| !has_token && self.has_shaken_too_often(now));
        let until = self.waits_until.max(oldest.map(|it| it.saturating_add(PERIOD_MS)));
        // A clock that was set back must not prolong a wait.
        let wait = until.map_or(0, |it| it.saturating_sub(now)).min(WAIT_MS_MAX);
        match (wait, has_token) {
            (1.., _) => SessionStep::Wait(wait),
            (_, true) => SessionStep::Ask,
            (_, false) => SessionStep::Handshake,
        }
    }

    /// Notes a handshake that begins.
    pub fn shakes_hands(&mut self, now: i64) {
        if self.handshakes.len() >= HANDSHAKES_MAX {
            self.handshakes.remove(0);
        }
        self.handshakes.push(now);
        self.is_proven = false;
    }

    /// Notes that the portal did not answer the last handshake, so that it has ended no session.
    pub fn not_answered(&mut self) {
        self.handshakes.pop();
    }

    /// Notes that the portal has accepted the device with a new token. Only an answer ends a row of waits, because portals
    /// accept devices whose questions they refuse.
    pub fn accepted(&mut self) {
        (self.is_proven, self.waits_until) = (self.n_waits == 0, None);
    }

    /// Notes that a question was answered.
    pub fn answered(&mut self) {
        (self.is_proven, self.n_waits, self.waits_until) = (true, 0, None);
    }

    /// Notes that a token was refused.
    pub fn token_refused(&mut self, now: i64) -> Refusal {
        let is_allowed = !self.has_shaken_too_often(now);
        if self.is_proven && is_allowed {
            self.is_proven = false;
            return Refusal::Renew;
        }
        self.device_refused(now);
        Refusal::GiveUp
    }

    /// Notes that the device was refused: no question for a while.
    pub fn device_refused(&mut self, now: i64) {
        let wait = WAIT_MS.saturating_mul(1 << self.n_waits.min(16)).min(WAIT_MS_MAX);
        self.n_waits = self.n_waits.saturating_add(1);
        self.waits_until = Some(now.saturating_add(wait));
        self.is_proven = false;
    }

    fn has_shaken_too_often(&self, now: i64) -> bool {
        let is_recent = |it: &&i64| (0..PERIOD_MS).contains(&now.saturating_sub(**it));
        self.handshakes.iter().filter(is_recent).count() >= HANDSHAKES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_has_ended_is_renewed_once_and_then_the_device_waits_longer_and_longer() {
        let mut times = SessionTimes::default();
        assert_eq!(times.next(false, 0), SessionStep::Handshake);
        times.shakes_hands(0);
        times.accepted();
        assert_eq!(times.next(true, 1), SessionStep::Ask);
        assert_eq!(times.token_refused(1), Refusal::Renew);
        times.shakes_hands(1);
        times.accepted();
        times.device_refused(2);
        assert_eq!(times.next(false, 2), SessionStep::Wait(WAIT_MS));
        assert_eq!(times.next(true, 2 + WAIT_MS), SessionStep::Ask);
        let mut now = 2 + WAIT_MS;
        let mut waits = Vec::new();
        for _ in 0..9 {
            times.accepted();
            assert_eq!(times.token_refused(now), Refusal::GiveUp);
            let SessionStep::Wait(wait) = times.next(false, now) else { panic!() };
            waits.push(wait / 1000);
            now += wait;
        }
        assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        times.answered();
        assert_eq!(times.next(true, now), SessionStep::Ask);
    }

    #[test]
    fn a_box_with_the_same_mac_address_does_not_lead_to_a_loop_of_handshakes() {
        let mut times = SessionTimes::default();
        let mut n_handshakes = 0;
        // Every question finds that the box has taken the portal again.
        let mut has_token = false;
        for second in 0..600 {
            let now = second * 1000;
            match times.next(has_token, now) {
                SessionStep::Ask => {
                    times.answered();
                    times.token_refused(now);
                    has_token = false;
                }
                SessionStep::Wait(_) => {}
                SessionStep::Handshake => {
                    times.shakes_hands(now);
                    times.accepted();
                    (has_token, n_handshakes) = (true, n_handshakes + 1);
                }
            }
        }
        assert_eq!(n_handshakes, HANDSHAKES_MAX);
    }

    #[test]
    fn a_portal_that_does_not_answer_is_asked_again() {
        let mut times = SessionTimes::default();
        for now in 0..100 {
            assert_eq!(times.next(false, now), SessionStep::Handshake);
            times.shakes_hands(now);
            times.not_answered();
        }
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_prolong_a_wait_without_end() {
        let mut times = SessionTimes::default();
        times.device_refused(1_000_000_000_000);
        assert_eq!(times.next(false, 0), SessionStep::Wait(WAIT_MS_MAX));
        assert_eq!(times.next(false, i64::MAX), SessionStep::Handshake);
    }
}
