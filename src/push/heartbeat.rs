//! When a silent socket is asked whether it lives, and when it is given up.

use std::time::Duration;

use tokio::time::Instant;

/// How often the other side is asked. Less than what proxies take for idleness, which is a minute at the least.
const PING_EVERY: Duration = Duration::from_secs(25);
/// After this long without any frame, answers to pings included, nobody is there.
const SILENCE_MAX: Duration = Duration::from_secs(70);

/// When a socket was heard last, and asked last.
#[derive(Debug)]
pub(super) struct Heartbeat {
    heard: Instant,
    asked: Instant,
}

/// What a socket needs now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing before this.
    Nothing(Instant),
    Ping,
    /// It is given up.
    End,
}

impl Heartbeat {
    pub(super) fn new(now: Instant) -> Self {
        Self { heard: now, asked: now }
    }

    /// A frame came.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// A ping went.
    pub(super) fn asked(&mut self, now: Instant) {
        self.asked = now;
    }

    pub(super) fn need(&self, now: Instant) -> Need {
        let (ping_at, end_at) = (self.asked + PING_EVERY, self.heard + SILENCE_MAX);
        if now >= end_at {
            Need::End
        } else if now >= ping_at {
            Need::Ping
        } else {
            Need::Nothing(ping_at.min(end_at))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_socket_is_asked_twice_and_then_given_up_and_one_that_answers_never() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut silent = Heartbeat::new(begin);
        assert_eq!(silent.need(at(0)), Need::Nothing(at(25)));
        assert_eq!(silent.need(at(25)), Need::Ping);
        silent.asked(at(25));
        assert_eq!(silent.need(at(49)), Need::Nothing(at(50)));
        silent.asked(at(50));
        assert_eq!(silent.need(at(51)), Need::Nothing(at(70)));
        assert_eq!(silent.need(at(70)), Need::End);

        let mut alive = Heartbeat::new(begin);
        for minute in 0..100 {
            let now = at(25 * (minute + 1));
            assert_eq!(alive.need(now), Need::Ping);
            alive.asked(now);
            alive.heard(now);
        }
    }
}
