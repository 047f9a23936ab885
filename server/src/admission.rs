//! Limits on open connections, in total and per client network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use config::{Networks, client_network};
use domain::origin::NetworkList as _;
use parking_lot::Mutex;

/// Counts the open connections of all ports together.
#[derive(Debug)]
pub struct Admission {
    connections_max: usize,
    per_address_max: usize,
    /// Their connections count for the clients of the requests, not for the peer.
    proxies: Networks,
    open: Mutex<Open>,
    next_id: AtomicU64,
    n_accepted: AtomicU64,
    n_refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    n_all: usize,
    by_network: HashMap<IpAddr, usize>,
}

/// The limit that refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    #[error("too many connections are open")]
    Total,
    #[error("too many connections are open from this address")]
    PerAddress,
}

/// Counts one open connection until it is dropped.
#[derive(Debug)]
pub struct AdmissionGuard {
    admission: Arc<Admission>,
    /// The network of the client. `None` until the first request of a proxy.
    network: Mutex<Option<IpAddr>>,
    id: u64,
}

impl Admission {
    /// For both limits, `0` means no limit.
    pub fn new(connections_max: usize, per_address_max: usize) -> Arc<Self> {
        Self::behind(Networks::none(), connections_max, per_address_max)
    }

    /// Like `new`, with trusted proxies.
    pub fn behind(proxies: Networks, connections_max: usize, per_address_max: usize) -> Arc<Self> {
        Arc::new(Admission {
            connections_max,
            per_address_max,
            proxies,
            open: Mutex::default(),
            next_id: AtomicU64::new(1),
            n_accepted: AtomicU64::new(0),
            n_refused: AtomicU64::new(0),
        })
    }

    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<AdmissionGuard, LimitReached> {
        let network = (!self.proxies.contains(address)).then(|| client_network(address));
        let admitted = self.count_in(network);
        let counter = if admitted.is_ok() { &self.n_accepted } else { &self.n_refused };
        counter.fetch_add(1, Ordering::Relaxed);
        admitted?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(AdmissionGuard { admission: Arc::clone(self), network: Mutex::new(network), id })
    }

    fn count_in(&self, network: Option<IpAddr>) -> Result<(), LimitReached> {
        let mut open = self.open.lock();
        if is_reached(self.connections_max, open.n_all) {
            return Err(LimitReached::Total);
        }
        if let Some(network) = network {
            open.add(network, self.per_address_max)?;
        }
        open.n_all += 1;
        Ok(())
    }

    pub fn n_open(&self) -> usize {
        self.open.lock().n_all
    }

    pub fn n_accepted(&self) -> u64 {
        self.n_accepted.load(Ordering::Relaxed)
    }

    pub fn n_refused(&self) -> u64 {
        self.n_refused.load(Ordering::Relaxed)
    }
}

impl Open {
    fn add(&mut self, network: IpAddr, max: usize) -> Result<(), LimitReached> {
        let n_open = self.by_network.get(&network).copied().unwrap_or(0);
        if is_reached(max, n_open) {
            return Err(LimitReached::PerAddress);
        }
        self.by_network.insert(network, n_open + 1);
        Ok(())
    }

    fn remove(&mut self, network: IpAddr) {
        if let Some(count) = self.by_network.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.by_network.remove(&network);
            }
        }
    }
}

impl AdmissionGuard {
    /// Counts the connection for this client from now on, instead of the one before.
    ///
    /// # Errors
    /// The client has too many connections. Nothing changes.
    pub(crate) fn count_for(&self, client: IpAddr) -> Result<(), LimitReached> {
        let (client, mut network) = (client_network(client), self.network.lock());
        if *network == Some(client) {
            return Ok(());
        }
        let mut open = self.admission.open.lock();
        if let Err(limit) = open.add(client, self.admission.per_address_max) {
            self.admission.n_refused.fetch_add(1, Ordering::Relaxed);
            return Err(limit);
        }
        if let Some(before) = network.replace(client) {
            open.remove(before);
        }
        Ok(())
    }

    /// Returns the id of the connection, unique for the life of the gateway.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for AdmissionGuard {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock();
        open.n_all -= 1;
        if let Some(network) = *self.network.get_mut() {
            open.remove(network);
        }
    }
}

fn is_reached(max: usize, count: usize) -> bool {
    max != 0 && count >= max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(admission: &Arc<Admission>, address: &str) -> Result<AdmissionGuard, LimitReached> {
        admission.admit(address.parse().unwrap())
    }

    #[test]
    fn a_closed_connection_makes_room_for_another() {
        let admission = Admission::new(2, 0);
        let first = admit(&admission, "10.0.0.1").unwrap();
        let second = admit(&admission, "10.0.0.1").unwrap();
        assert_ne!(first.id(), second.id());
        assert_eq!(admit(&admission, "10.0.0.2").unwrap_err(), LimitReached::Total);
        drop(first);
        assert!(admit(&admission, "10.0.0.2").is_ok());
        assert_eq!((admission.n_accepted(), admission.n_refused()), (3, 1));
    }

    #[test]
    fn one_client_network_cannot_use_all_connections() {
        let admission = Admission::new(0, 1);
        let held = admit(&admission, "2001:db8::1").unwrap();
        assert_eq!(admit(&admission, "2001:db8::2").unwrap_err(), LimitReached::PerAddress);
        assert!(admit(&admission, "2001:db8:0:1::1").is_ok());
        drop(held);
        assert!(admit(&admission, "2001:db8::2").is_ok());
        assert_eq!(admission.n_open(), 0);
        assert!(admission.open.lock().by_network.is_empty(), "no entry remains after the last connection");
    }

    #[test]
    fn the_connections_of_a_proxy_count_for_the_clients_that_it_names() {
        let admission = Admission::behind("10.0.0.9".parse().unwrap(), 0, 1);
        let [one, two] = [(); 2].map(|()| admit(&admission, "10.0.0.9").unwrap());
        let client = |text: &str| text.parse().unwrap();
        one.count_for(client("192.0.2.1")).unwrap();
        one.count_for(client("192.0.2.1")).unwrap();
        assert_eq!(two.count_for(client("192.0.2.1")), Err(LimitReached::PerAddress));
        two.count_for(client("192.0.2.2")).unwrap();
        // The next request of the same connection is that of another client.
        one.count_for(client("192.0.2.3")).unwrap();
        two.count_for(client("192.0.2.1")).unwrap();
        drop((one, two));
        assert!(admission.open.lock().by_network.is_empty());
        assert_eq!(admission.n_open(), 0);
    }

    #[test]
    fn without_limits_every_connection_is_admitted() {
        let admission = Admission::new(0, 0);
        let held: Vec<_> = (0..100).map(|_| admit(&admission, "10.0.0.1").unwrap()).collect();
        assert_eq!(admission.n_open(), held.len());
    }
}
