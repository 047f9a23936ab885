//! Delays responses to failed logins, each longer than the one before.
//!
//! Only failures are counted, and only their responses are delayed, after the password was verified. A correct login is
//! therefore never slowed down by somebody who guesses from the same address or for the same name. `passwords` bounds
//! the cost of guessing by limiting how many passwords are hashed at the same time.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use domain::user::{USERNAME_CHARS_MAX, User};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tokio::sync::Semaphore;

use crate::http::network::client_network;

/// Number of failures without a delay, for typing mistakes.
const UNDELAYED: u32 = 3;
/// Delay of the next failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// Number of failures from which the delay is the maximum.
const COUNTED_MAX: NonZeroU32 = NonZeroU32::new(12).expect("twelve is not zero");
/// Interval after which one failure is forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of counted addresses, and of counted names. While either is reached, failures of new ones are not
/// counted but delayed as long as possible.
const KEYS_MAX: usize = 10_000;
/// Maximum number of delayed responses.
const DELAYED_MAX: usize = 1024;

/// Counts failures per client network and per name.
pub(super) struct Throttle<C: Clock = DefaultClock> {
    addresses: Counter<IpAddr, C>,
    names: Counter<String, C>,
    delayed: Semaphore,
    delay_max: Duration,
}

/// Too many responses are already delayed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl<C: Clock + Clone> Throttle<C> {
    pub(super) fn new(delay_max: Duration, clock: C) -> Self {
        Self {
            addresses: Counter::new(clock.clone()),
            names: Counter::new(clock),
            delayed: Semaphore::new(DELAYED_MAX),
            delay_max,
        }
    }

    /// Counts a failure and returns when the response may be sent.
    ///
    /// # Errors
    /// Returns an error at once if too many responses are already delayed.
    pub(super) async fn failed(&self, username: &str, address: IpAddr) -> Result<(), TooMany> {
        let delay = self.delay(username, address);
        if delay.is_zero() {
            return Ok(());
        }
        let _permit = self.delayed.try_acquire().map_err(|_| TooMany)?;
        tokio::time::sleep(delay).await;
        Ok(())
    }

    /// Counts a failure and returns the delay of its response.
    fn delay(&self, username: &str, address: IpAddr) -> Duration {
        let name = User::name_key(&username.chars().take(USERNAME_CHARS_MAX).collect::<String>());
        let n_failures = self.addresses.count(&client_network(address)).max(self.names.count(&name));
        if n_failures >= COUNTED_MAX.get() {
            return self.delay_max;
        }
        let delay = match n_failures.checked_sub(UNDELAYED + 1) {
            Some(doublings) => FIRST_DELAY.saturating_mul(1 << doublings.min(16)),
            None => Duration::ZERO,
        };
        delay.min(self.delay_max)
    }
}

/// Recent failures per key.
struct Counter<K, C: Clock>(RateLimiter<K, HashMapStateStore<K>, C, StateInformationMiddleware>)
where
    K: Hash + Eq + Clone;

impl<K: Hash + Eq + Clone, C: Clock> Counter<K, C> {
    fn new(clock: C) -> Self {
        let quota =
            Quota::with_period(FORGET_INTERVAL).expect("a minute is not zero").allow_burst(COUNTED_MAX);
        Self(RateLimiter::hashmap_with_clock(quota, clock).with_middleware())
    }

    /// Counts one failure and returns the number of recent ones including it, up to [`COUNTED_MAX`].
    fn count(&self, key: &K) -> u32 {
        if self.0.len() >= KEYS_MAX {
            self.0.retain_recent();
            if self.0.len() >= KEYS_MAX {
                return COUNTED_MAX.get();
            }
            self.0.shrink_to_fit();
        }
        match self.0.check_key(key) {
            Ok(left) => COUNTED_MAX.get() - left.remaining_burst_capacity(),
            Err(_) => COUNTED_MAX.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use governor::clock::FakeRelativeClock;

    use super::*;

    const DELAY_MAX: Duration = Duration::from_secs(10);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn throttle() -> (Throttle<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Throttle::new(DELAY_MAX, clock.clone()), clock)
    }

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }

    fn delays_ms(throttle: &Throttle<FakeRelativeClock>, n: usize) -> Vec<u128> {
        (0..n).map(|_| throttle.delay("anna", HOME).as_millis()).collect()
    }

    #[test]
    fn delays_of_failures_grow_up_to_the_maximum() {
        let (throttle, _) = throttle();
        assert_eq!(
            delays_ms(&throttle, 14),
            [0, 0, 0, 250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000, 10_000]
        );
    }

    #[test]
    fn one_failure_is_forgotten_per_minute() {
        let (throttle, clock) = throttle();
        delays_ms(&throttle, 20);
        clock.advance(FORGET_INTERVAL * 6);
        assert_eq!(delays_ms(&throttle, 2), [2000, 4000]);
        clock.advance(FORGET_INTERVAL * 60);
        assert_eq!(delays_ms(&throttle, 4), [0, 0, 0, 250]);
    }

    #[test]
    fn failures_count_for_the_address_and_for_the_name() {
        let (throttle, _) = throttle();
        delays_ms(&throttle, 12);
        assert_eq!(throttle.delay("berta", HOME), DELAY_MAX, "another name from the same address");
        assert_eq!(throttle.delay("ANNA", address(1)), DELAY_MAX, "the same name from another address");
        assert_eq!(throttle.delay("cara", address(2)), Duration::ZERO, "another name from another address");
    }

    #[test]
    fn one_network_of_64_bits_is_one_address() {
        let (throttle, _) = throttle();
        for n in 0..12 {
            throttle.delay(&format!("user{n}"), format!("2001:db8:1:2::{n}").parse().unwrap());
        }
        assert_eq!(throttle.delay("x", "2001:db8:1:2:ffff::1".parse().unwrap()), DELAY_MAX);
        assert_eq!(throttle.delay("y", "2001:db8:1:3::1".parse().unwrap()), Duration::ZERO);
    }

    #[test]
    fn the_counters_are_bounded_and_drop_old_entries() {
        let (throttle, clock) = throttle();
        for n in 0..u32::try_from(KEYS_MAX).unwrap() + 100 {
            throttle.delay(&format!("user{n}"), address(n));
        }
        assert_eq!((throttle.names.0.len(), throttle.addresses.0.len()), (KEYS_MAX, KEYS_MAX));
        assert_eq!(throttle.delay("one more", HOME), DELAY_MAX, "not counted, so delayed");
        clock.advance(FORGET_INTERVAL * 60);
        assert_eq!(throttle.delay("one more", HOME), Duration::ZERO);
        assert!(throttle.names.0.len() < 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_delayed_responses_is_limited() {
        let (throttle, _) = throttle();
        delays_ms(&throttle, 12);
        let mut held: Vec<_> = (0..DELAYED_MAX).map(|_| Box::pin(throttle.failed("anna", HOME))).collect();
        for it in &mut held {
            assert!(futures_util::poll!(it.as_mut()).is_pending());
        }
        assert_eq!(throttle.failed("anna", HOME).await, Err(TooMany));
        let begun = tokio::time::Instant::now();
        assert_eq!(held.pop().unwrap().await, Ok(()));
        assert_eq!(begun.elapsed().as_secs(), 10);
        assert!(
            futures_util::poll!(Box::pin(throttle.failed("anna", HOME))).is_pending(),
            "a place is free again"
        );
    }
}
