//! Refuses callers without credentials from networks that are not allowed, with a rate limit on the events.

use std::net::IpAddr;
use std::time::Duration;

use actors::now_ms;
use config::{NetworkClass, client_network, is_guide};
use domain::event::{CallerRef, Event, EventBody};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tracing::{debug, info};

use super::caller::Caller;
use super::reply::Refusal;

/// Interval in which one client network causes at most one event of a kind. Players retry for ever, and a stranger must not be
/// able to flush the event history.
const EVENT_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of client networks and kinds with an event in that interval; they are kept for up to twice as long.
/// Further ones are refused without an event.
const NETWORKS_MAX: usize = 100;

/// Something that a network may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkDenial {
    /// Use a class at all.
    Connect,
    /// Use it without credentials.
    Anonymous,
    /// Use it as this user.
    User,
}

/// A network, and whether it asked for a guide: one kind of event does not silence the other.
type Refused = (IpAddr, bool);

/// Publishes an event.
type Publish = Box<dyn Fn(Event) + Send + Sync>;

/// Refuses callers and publishes events about it.
pub struct NetworkRefusals<C: Clock = DefaultClock> {
    publish: Publish,
    limiter: RateLimiter<Refused, HashMapStateStore<Refused>, C, NoOpMiddleware<C::Instant>>,
}

impl NetworkRefusals {
    pub fn new(publish: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self::with_clock(publish, DefaultClock::default())
    }
}

impl<C: Clock> NetworkRefusals<C> {
    fn with_clock(publish: impl Fn(Event) + Send + Sync + 'static, clock: C) -> Self {
        let quota = Quota::with_period(EVENT_INTERVAL).expect("a minute is not zero");
        Self { publish: Box::new(publish), limiter: RateLimiter::hashmap_with_clock(quota, clock) }
    }

    /// Refuses a caller because of its network. Only refusals of players are events. `path` is that of the route.
    pub fn refuse(&self, caller: &Caller, class: NetworkClass, path: &str, denial: NetworkDenial) -> Refusal {
        let address = caller.address();
        let doubt = caller.origin.doubt().map(|it| format!(": {it}")).unwrap_or_default();
        let reason = match denial {
            NetworkDenial::Connect => format!("this network may not use {class}{doubt}"),
            NetworkDenial::Anonymous => format!("this network needs credentials for {class}{doubt}"),
            NetworkDenial::User => format!("this user may not use {class} from this network{doubt}"),
        };
        let of_guide = is_guide(path);
        if matches!(class, NetworkClass::Ui | NetworkClass::Metrics) {
            debug!(client.address = %address, client.agent = caller.agent, "request refused: {reason}");
        } else if self.is_due(address, of_guide) {
            info!(client.address = %address, client.agent = caller.agent, "request refused: {reason}");
            let attempt = CallerRef { user: None, ip: address, user_agent: caller.agent.clone() };
            let body = match of_guide {
                true => EventBody::EpgBlocked { attempt, reason },
                false => EventBody::M3uBlocked { attempt, reason },
            };
            (self.publish)(Event { at: now_ms(), body });
        }
        Refusal::network()
    }

    fn is_due(&self, address: IpAddr, of_guide: bool) -> bool {
        if self.limiter.len() >= NETWORKS_MAX {
            self.limiter.retain_recent();
            if self.limiter.len() >= NETWORKS_MAX {
                return false;
            }
        }
        self.limiter.check_key(&(client_network(address), of_guide)).is_ok()
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
    fn a_client_network_causes_one_event_per_minute_and_an_ipv6_64_counts_as_one() {
        let clock = FakeRelativeClock::default();
        let refusals = NetworkRefusals::with_clock(drop, clock.clone());
        let is_due = |text: &str| refusals.is_due(text.parse().unwrap(), false);
        for (text, expected) in [
            ("192.0.2.1", true),
            ("192.0.2.1", false),
            ("192.0.2.2", true),
            ("2001:db8:1:2::1", true),
            ("2001:db8:1:2:ffff::1", false),
            ("2001:db8:1:3::1", true),
        ] {
            assert_eq!(is_due(text), expected, "{text}");
        }
        let is_due_for_guide = || refusals.is_due("192.0.2.1".parse().unwrap(), true);
        assert!(is_due_for_guide(), "another kind of event");
        assert!(!is_due_for_guide());
        clock.advance(EVENT_INTERVAL);
        assert!(is_due("192.0.2.1"));
        assert!(!is_due("192.0.2.1"));
    }

    #[test]
    fn the_number_of_networks_with_an_event_is_limited_until_they_expire() {
        let clock = FakeRelativeClock::default();
        let refusals = NetworkRefusals::with_clock(drop, clock.clone());
        for round in 0..3 {
            let n_due = (0..5 * NETWORKS_MAX).filter(|it| refusals.is_due(address(*it), false)).count();
            assert_eq!((n_due, refusals.limiter.len()), (NETWORKS_MAX, NETWORKS_MAX), "{round}");
            clock.advance(2 * EVENT_INTERVAL);
        }
    }
}
