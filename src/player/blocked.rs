//! Callers whose network gets nothing without credentials: refused each time, told once in a while.

use std::net::IpAddr;
use std::time::Duration;

use actors::now_ms;
use domain::event::{CallerRef, Event, EventBody};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tracing::info;

use crate::http::caller::Caller;
use crate::http::network::neighbour;
use crate::http::reply::Refusal;

/// An address that is refused again sooner is not told again: players try for ever, and a stranger must not be able to
/// push everything else out of the history.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Addresses that are told in that time, and remembered for up to twice as long. What others are refused meanwhile is
/// not told.
const ADDRESSES_MAX: usize = 100;

/// Where events go.
type Tell = Box<dyn Fn(Event) + Send + Sync>;

/// Tells who was refused.
pub(crate) struct Blocked<C: Clock = DefaultClock> {
    tell: Tell,
    told: RateLimiter<IpAddr, HashMapStateStore<IpAddr>, C, NoOpMiddleware<C::Instant>>,
}

impl Blocked {
    pub(crate) fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self::with_clock(tell, DefaultClock::default())
    }
}

impl<C: Clock> Blocked<C> {
    fn with_clock(tell: impl Fn(Event) + Send + Sync + 'static, clock: C) -> Self {
        let quota = Quota::with_period(TOLD_AGAIN_AFTER).expect("a minute is more than no time");
        Self { tell: Box::new(tell), told: RateLimiter::hashmap_with_clock(quota, clock) }
    }

    /// Refuses a caller because of the network. `what` is what such networks do not get, for an admin to read.
    pub(super) fn refuse(&self, caller: &Caller, what: &'static str) -> Refusal {
        let address = caller.address().to_canonical();
        if self.is_news(address) {
            info!(client.address = %address, client.agent = caller.agent, "a network was refused {what}");
            let attempt = CallerRef { user: None, ip: address, user_agent: caller.agent.clone() };
            let reason = format!("this network gets no {what} without credentials");
            (self.tell)(Event { at: now_ms(), body: EventBody::M3uBlocked { attempt, reason } });
        }
        Refusal::network()
    }

    fn is_news(&self, address: IpAddr) -> bool {
        if self.told.len() >= ADDRESSES_MAX {
            self.told.retain_recent();
            if self.told.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        self.told.check_key(&neighbour(address)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn address(n: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + n as u32).into()
    }

    #[test]
    fn an_address_is_told_once_a_minute_and_a_network_of_64_bits_is_one_address() {
        let clock = FakeRelativeClock::default();
        let blocked = Blocked::with_clock(drop, clock.clone());
        let is_news = |text: &str| blocked.is_news(text.parse().unwrap());
        for (text, expected) in [
            ("192.0.2.1", true),
            ("192.0.2.1", false),
            ("192.0.2.2", true),
            ("2001:db8:1:2::1", true),
            ("2001:db8:1:2:ffff::1", false),
            ("2001:db8:1:3::1", true),
        ] {
            assert_eq!(is_news(text), expected, "{text}");
        }
        clock.advance(TOLD_AGAIN_AFTER);
        assert!(is_news("192.0.2.1"));
        assert!(!is_news("192.0.2.1"));
    }

    #[test]
    fn so_many_addresses_are_told_and_no_more_until_they_are_forgotten() {
        let clock = FakeRelativeClock::default();
        let blocked = Blocked::with_clock(drop, clock.clone());
        for round in 0..3 {
            let n_told = (0..5 * ADDRESSES_MAX).filter(|it| blocked.is_news(address(*it))).count();
            assert_eq!((n_told, blocked.told.len()), (ADDRESSES_MAX, ADDRESSES_MAX), "{round}");
            clock.advance(2 * TOLD_AGAIN_AFTER);
        }
    }
}
