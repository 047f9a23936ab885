//! Resolves host names, and remembers which address of a host worked last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::debug;

use crate::blocking::spawn_blocking;
use crate::dial::DialAddress;
use crate::error::Cause;

/// Maximum number of simultaneous lookups. Each occupies a thread until the resolver answers, also after its caller has
/// given up. The same pool of several hundred threads starts programs.
const LOOKUPS_MAX: usize = 64;
/// Longest wait for a lookup if an address of the host is remembered.
const LOOKUP_OF_KNOWN_MAX: Duration = Duration::from_secs(1);
/// Maximum number of hosts that are remembered.
const HOSTS_MAX: usize = 1024;
/// Time for which an address is remembered after it was used last.
const MEMORY_TIME: Duration = Duration::from_secs(10 * 60);

/// Returns the addresses of a host. Blocks.
pub(super) type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// A resolver with a memory.
pub(super) struct Names {
    lookup: Arc<Lookup>,
    lookups: Arc<Semaphore>,
    /// By host and port.
    remembered: Mutex<HashMap<(String, u16), Remembered>>,
}

/// The address to try first.
#[derive(Clone, Copy)]
struct Remembered {
    address: SocketAddr,
    used_at: Instant,
}

impl Names {
    /// Creates a resolver that blocks in `lookup`, on threads that carry no packets.
    pub(super) fn new(lookup: Arc<Lookup>) -> Self {
        Self { lookup, lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)), remembered: Mutex::default() }
    }

    /// Returns the addresses of a host in the order in which to try them: the remembered one, then the families in turn,
    /// each in the order of the resolver.
    ///
    /// If the resolver fails or does not answer in time, a remembered address is used alone.
    ///
    /// # Errors
    /// `Dns` if the name has no address, `ConnectTimeout` if the resolver did not answer within `limit`.
    pub(super) async fn resolve(
        &self,
        address: &DialAddress,
        limit: Duration,
    ) -> Result<Vec<SocketAddr>, Cause> {
        if let Ok(ip) = address.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, address.port)]);
        }
        let known = self.remembered(address);
        let limit = if known.is_some() { limit.min(LOOKUP_OF_KNOWN_MAX) } else { limit };
        let cause = match timeout(limit, self.look_up(address)).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => return Ok(in_order(addresses, known)),
            Ok(Ok(_)) => Cause::Dns,
            Ok(Err(error)) => {
                debug!(host = %address.host, "name resolution failed: {error}");
                Cause::Dns
            }
            Err(_) => {
                debug!(host = %address.host, "name resolution timed out");
                Cause::ConnectTimeout
            }
        };
        known.map(|it| vec![it]).ok_or(cause)
    }

    async fn look_up(&self, address: &DialAddress) -> io::Result<Vec<SocketAddr>> {
        let permit = self.lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
        let (lookup, host, port) = (self.lookup.clone(), address.host.clone(), address.port);
        let looked_up = spawn_blocking(move || {
            // Held until the resolver answers, even if nobody waits for it any more.
            let _permit = permit;
            lookup(&host, port)
        });
        looked_up.await.map_err(io::Error::other)?
    }

    /// Remembers the address of this host to try first from now on.
    pub(super) fn remember(&self, host: &DialAddress, address: SocketAddr) {
        if host.host.parse::<IpAddr>().is_ok() {
            return;
        }
        let now = Instant::now();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= HOSTS_MAX {
            remembered.retain(|_, it| !it.is_expired(now));
        }
        let n_hosts = remembered.len();
        match remembered.entry((host.host.clone(), host.port)) {
            Entry::Vacant(_) if n_hosts >= HOSTS_MAX => {
                debug!("too many hosts to remember the address of another one");
            }
            entry => {
                entry.insert_entry(Remembered { address, used_at: now });
            }
        }
    }

    fn remembered(&self, host: &DialAddress) -> Option<SocketAddr> {
        let remembered = self.remembered.lock();
        let it = remembered.get(&(host.host.clone(), host.port))?;
        (!it.is_expired(Instant::now())).then_some(it.address)
    }
}

impl Remembered {
    fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used_at) >= MEMORY_TIME
    }
}

/// Puts `first` in front, if the resolver still knows it, and then alternates between the families, because often all
/// addresses of one family are out of reach.
fn in_order(mut addresses: Vec<SocketAddr>, first: Option<SocketAddr>) -> Vec<SocketAddr> {
    if let Some(at) = addresses.iter().position(|it| Some(*it) == first) {
        addresses[..=at].rotate_right(1);
    }
    let is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (own, other): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|it| it.is_ipv6() == is_v6);
    let mut ordered: Vec<SocketAddr> = Vec::with_capacity(own.len() + other.len());
    let (mut own, mut other) = (own.into_iter(), other.into_iter());
    loop {
        let n_before = ordered.len();
        ordered.extend([own.next(), other.next()].into_iter().flatten());
        if ordered.len() == n_before {
            return ordered;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn host(name: &str) -> DialAddress {
        DialAddress { secure: false, host: name.to_owned(), port: 80 }
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|it| it.parse().unwrap()).collect()
    }

    #[test]
    fn the_remembered_address_comes_first_and_then_the_families_alternate() {
        let check = |found: &[&str], first: Option<&str>, expected: &[&str]| {
            let first = first.map(|it| it.parse().unwrap());
            assert_eq!(in_order(addresses(found), first), addresses(expected));
        };
        let (a, b, c, d) = ("[2001:db8::1]:80", "[2001:db8::2]:80", "192.0.2.1:80", "192.0.2.2:80");
        check(&[a, b, c, d], None, &[a, c, b, d]);
        check(&[a, b, c, d], Some(d), &[d, a, c, b]);
        check(&[a, b, c, d], Some(b), &[b, c, a, d]);
        check(&[a, b], Some("192.0.2.9:80"), &[a, b]);
        check(&[c], Some(c), &[c]);
        check(&[], None, &[]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_forgotten_some_time_after_its_last_use_and_the_memory_is_bounded() {
        let names = Names::new(Arc::new(|_, _| Err(io::Error::other("no resolver"))));
        let [address] = addresses(&["192.0.2.1:80"])[..] else { unreachable!() };
        names.remember(&host("a"), address);
        tokio::time::advance(MEMORY_TIME - Duration::from_secs(1)).await;
        assert_eq!(names.remembered(&host("a")), Some(address));
        assert_eq!(names.remembered(&DialAddress { port: 81, ..host("a") }), None, "another port");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(names.remembered(&host("a")), None);
        for n in 0..2 * HOSTS_MAX {
            names.remember(&host(&n.to_string()), address);
        }
        assert_eq!(names.remembered.lock().len(), HOSTS_MAX);
        tokio::time::advance(MEMORY_TIME).await;
        names.remember(&host("b"), address);
        assert_eq!(names.remembered.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_resolver_that_hangs_occupies_a_limited_number_of_threads_and_no_address_is_lost() {
        let n_hanging = Arc::new(AtomicUsize::new(0));
        let (release, released) = mpsc::channel::<()>();
        let (count, released) = (n_hanging.clone(), Mutex::new(released));
        let names = Arc::new(Names::new(Arc::new(move |name: &str, _| {
            if name == "quick" {
                return Ok(addresses(&["192.0.2.1:80"]));
            }
            count.fetch_add(1, Ordering::SeqCst);
            // Until the sender is dropped.
            let _ = released.lock().recv();
            Ok(Vec::new())
        })));
        let [address] = addresses(&["192.0.2.2:80"])[..] else { unreachable!() };
        assert_eq!(names.resolve(&host("quick"), Duration::from_secs(60)).await.unwrap().len(), 1);
        names.remember(&host("known"), address);
        // This thread is the only one of the runtime, and goes on while the resolver hangs.
        let mut waiting = tokio::task::JoinSet::new();
        for n in 0..4 * LOOKUPS_MAX {
            let names = names.clone();
            let name = host(&format!("hangs-{n}"));
            waiting.spawn(async move { names.resolve(&name, Duration::from_millis(100)).await });
        }
        while let Some(resolved) = waiting.join_next().await {
            assert_eq!(resolved.unwrap(), Err(Cause::ConnectTimeout));
        }
        assert!(n_hanging.load(Ordering::SeqCst) <= LOOKUPS_MAX);
        let known = names.resolve(&host("known"), Duration::from_millis(100)).await;
        assert_eq!(known, Ok(vec![address]), "the address that worked last");
        drop(release);
    }

    #[tokio::test]
    async fn a_remembered_address_is_used_while_the_resolver_fails() {
        let names = Names::new(Arc::new(|_, _| Err(io::Error::other("no resolver"))));
        let [address] = addresses(&["192.0.2.1:80"])[..] else { unreachable!() };
        assert_eq!(names.resolve(&host("a"), Duration::from_secs(60)).await, Err(Cause::Dns));
        names.remember(&host("a"), address);
        assert_eq!(names.resolve(&host("a"), Duration::from_secs(60)).await, Ok(vec![address]));
        let literal = names.resolve(&host("192.0.2.7"), Duration::ZERO).await;
        assert_eq!(literal, Ok(addresses(&["192.0.2.7:80"])), "needs no resolver");
    }
}
