//! Decides when to ping a silent socket, and when to close it.

use std::time::Duration;

use tokio::time::Instant;

/// Interval of pings; shorter than the idle time-outs of proxies, which are at least one minute.
const PING_EVERY: Duration = Duration::from_secs(25);
/// Time without any frame, including pongs, after which the client is considered gone.
const SILENCE_MAX: Duration = Duration::from_secs(70);

/// Times of the last received frame and of the last sent ping.
#[derive(Debug)]
pub(super) struct Heartbeat {
    received_at: Instant,
    pinged_at: Instant,
}

/// The next action for a socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeartbeatAction {
    /// Wait until this time.
    Wait(Instant),
    Ping,
    /// Close the socket.
    Close,
}

impl Heartbeat {
    pub(super) fn new(now: Instant) -> Self {
        Self { received_at: now, pinged_at: now }
    }

    /// Records a received frame.
    pub(super) fn received(&mut self, now: Instant) {
        self.received_at = now;
    }

    /// Records a sent ping.
    pub(super) fn pinged(&mut self, now: Instant) {
        self.pinged_at = now;
    }

    pub(super) fn action(&self, now: Instant) -> HeartbeatAction {
        let (ping_at, close_at) = (self.pinged_at + PING_EVERY, self.received_at + SILENCE_MAX);
        if now >= close_at {
            HeartbeatAction::Close
        } else if now >= ping_at {
            HeartbeatAction::Ping
        } else {
            HeartbeatAction::Wait(ping_at.min(close_at))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_socket_is_pinged_twice_and_closed_but_a_responsive_one_stays_open() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut silent = Heartbeat::new(begin);
        assert_eq!(silent.action(at(0)), HeartbeatAction::Wait(at(25)));
        assert_eq!(silent.action(at(25)), HeartbeatAction::Ping);
        silent.pinged(at(25));
        assert_eq!(silent.action(at(49)), HeartbeatAction::Wait(at(50)));
        silent.pinged(at(50));
        assert_eq!(silent.action(at(51)), HeartbeatAction::Wait(at(70)));
        assert_eq!(silent.action(at(70)), HeartbeatAction::Close);

        let mut alive = Heartbeat::new(begin);
        for minute in 0..100 {
            let now = at(25 * (minute + 1));
            assert_eq!(alive.action(now), HeartbeatAction::Ping);
            alive.pinged(now);
            alive.received(now);
        }
    }
}
