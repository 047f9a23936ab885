//! Reports failed logins in the log and as events, many of the same kind as one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actors::now_ms;
use config::client_network;
use domain::event::{CallerRef, Event, EventBody};
use domain::ids::UserId;
use domain::user::User;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::info;

/// Interval in which failures of the same kind are reported at most twice: the first at once, the others as a number at
/// the end.
const INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of kinds in that interval. Further ones are only counted, so that a stranger cannot push everything
/// else out of the log and the event history.
const KINDS_MAX: usize = 100;

/// Publishes an event.
type Publish = Box<dyn Fn(Event) + Send + Sync>;

/// A failed login.
pub(super) struct FailedLogin<'a> {
    /// `None` if no user has the name. The name is then not reported.
    pub(super) user: Option<Arc<User>>,
    pub(super) reason: &'static str,
    pub(super) address: IpAddr,
    pub(super) agent: &'a str,
}

/// Failures are of the same kind if all of this is the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FailureKind {
    network: IpAddr,
    agent: String,
    user: Option<UserId>,
    reason: &'static str,
}

/// Counts and reports failures. A handle; clones share their state.
#[derive(Clone)]
pub(super) struct FailureReports(Arc<Inner>);

struct Inner {
    publish: Publish,
    pending: Mutex<Pending>,
    /// All failures since the start.
    n_failures: AtomicU64,
}

#[derive(Default)]
struct Pending {
    kinds: HashMap<FailureKind, Repeated>,
    /// Number of failures beyond [`KINDS_MAX`].
    n_others: u64,
    is_flushing: bool,
}

/// A reported failure, and the number of those that followed.
struct Repeated {
    until: Instant,
    caller: CallerRef,
    n_more: u64,
}

impl FailureReports {
    pub(super) fn new(publish: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            publish: Box::new(publish),
            pending: Mutex::default(),
            n_failures: AtomicU64::new(0),
        }))
    }

    /// Reports a failure, or counts it if one of the same kind was reported within the last minute.
    pub(super) fn report(&self, failed: FailedLogin<'_>) {
        self.0.n_failures.fetch_add(1, Ordering::Relaxed);
        let address = failed.address.to_canonical();
        let kind = FailureKind {
            network: client_network(address),
            agent: failed.agent.to_owned(),
            user: failed.user.as_ref().map(|it| it.id),
            reason: failed.reason,
        };
        let caller = CallerRef {
            user: failed.user.map(|it| it.username.clone()),
            ip: address,
            user_agent: failed.agent.to_owned(),
        };
        let mut pending = self.0.pending.lock();
        if !pending.is_flushing {
            pending.is_flushing = true;
            // Ends once nothing is pending.
            actors::spawn(self.clone().flush_until_empty());
        }
        if let Some(repeated) = pending.kinds.get_mut(&kind) {
            repeated.n_more += 1;
            return;
        }
        if pending.kinds.len() >= KINDS_MAX {
            pending.n_others += 1;
            return;
        }
        let until = Instant::now() + INTERVAL;
        pending.kinds.insert(kind, Repeated { until, caller: caller.clone(), n_more: 0 });
        drop(pending);
        self.publish(caller, failed.reason.to_owned());
    }

    /// Returns the number of failures since the start.
    pub(super) fn count(&self) -> u64 {
        self.0.n_failures.load(Ordering::Relaxed)
    }

    async fn flush_until_empty(self) {
        loop {
            let next = {
                let mut pending = self.0.pending.lock();
                let next = pending.kinds.values().map(|it| it.until).min();
                pending.is_flushing = next.is_some();
                next
            };
            let Some(next) = next else { return };
            tokio::time::sleep_until(next).await;
            self.flush();
        }
    }

    /// Reports what was counted in the intervals that have ended.
    fn flush(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        let mut pending = self.0.pending.lock();
        pending.kinds.retain(|kind, repeated| {
            if repeated.until > now {
                return true;
            }
            if repeated.n_more > 0 {
                ended.push((repeated.caller.clone(), kind.reason, repeated.n_more));
            }
            false
        });
        let n_others = std::mem::take(&mut pending.n_others);
        drop(pending);
        for (caller, reason, n_more) in ended {
            self.publish(caller, format!("{reason}, {n_more} more times within a minute"));
        }
        if n_others > 0 {
            info!(n = n_others, "{n_others} logins of further clients failed");
        }
    }

    fn publish(&self, caller: CallerRef, reason: String) {
        info!(user.name = caller.user, client.address = %caller.ip, reason, "login failed");
        (self.0.publish)(Event { at: now_ms(), body: EventBody::LoginFailed { attempt: caller, reason } });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use domain::user::UserLevel;
    use tokio::sync::mpsc;

    use super::*;

    fn reports() -> (FailureReports, mpsc::UnboundedReceiver<Event>) {
        let (sender, events) = mpsc::unbounded_channel();
        (FailureReports::new(move |event| drop(sender.send(event))), events)
    }

    fn fail(reports: &FailureReports, user: Option<u32>, n: u32) {
        let user = user.map(|id| Arc::new(User::new(UserId(id), format!("user{id}"), UserLevel::Admin, 0)));
        let address = Ipv4Addr::from_bits(0x0a00_0000 + n).into();
        reports.report(FailedLogin { user, reason: "wrong password", address, agent: "agent" });
    }

    fn reasons(events: &mut mpsc::UnboundedReceiver<Event>) -> Vec<(Option<String>, String)> {
        let event = || match events.try_recv().ok()?.body {
            EventBody::LoginFailed { attempt, reason } => Some((attempt.user, reason)),
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(event).collect()
    }

    /// Holds T-guess.3.
    #[tokio::test(start_paused = true)]
    async fn failures_of_the_same_kind_are_reported_once_and_then_as_a_number() {
        let (reports, mut events) = reports();
        for _ in 0..42 {
            fail(&reports, Some(1), 1);
        }
        fail(&reports, Some(2), 1);
        fail(&reports, None, 1);
        let first = |name: Option<&str>| (name.map(str::to_owned), "wrong password".to_owned());
        assert_eq!(reasons(&mut events), [first(Some("user1")), first(Some("user2")), first(None)]);
        tokio::time::sleep(INTERVAL * 2).await;
        let more = "wrong password, 41 more times within a minute".to_owned();
        assert_eq!(reasons(&mut events), [(Some("user1".to_owned()), more)]);
        fail(&reports, Some(1), 1);
        assert_eq!(reasons(&mut events), [first(Some("user1"))]);
    }

    /// Holds T-guess.3.
    #[tokio::test(start_paused = true)]
    async fn many_clients_cause_a_limited_number_of_reports() {
        let (reports, mut events) = reports();
        for round in 0..2 {
            for n in 0..2_000 {
                fail(&reports, None, n);
            }
            assert_eq!(reasons(&mut events).len(), KINDS_MAX, "{round}");
            tokio::time::sleep(INTERVAL * 2).await;
            assert_eq!(reasons(&mut events), [], "{round}");
            assert!(reports.0.pending.lock().kinds.is_empty());
        }
    }
}
