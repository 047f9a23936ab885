//! Limits on open connections, in total and per client network.
//!
//! Many clients can share an address, as behind the NAT of a provider. So that some of them cannot take all connections of the
//! others, those of an address are of three kinds:
//!
//! ```text
//! pending ── a request with a login ──────────► of a user
//!    └────── a stream or list without one ────► anonymous; at most three quarters of the limit
//! ```
//!
//! If an address has as many connections as allowed, a new one closes the oldest that is pending.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use actors::now_ms;
use config::{Networks, client_network};
use domain::limits::anonymous_share;
use domain::origin::NetworkList as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Maximum number of addresses at the limit that are remembered.
const LIMITED_MAX: usize = 8;
/// Time for which they are remembered, in milliseconds.
const LIMITED_MS_MAX: i64 = 60 * 60 * 1000;

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
    by_network: HashMap<IpAddr, OpenOfNetwork>,
    /// The networks that reached the limit lately, the newest last.
    limited: VecDeque<LimitedAddress>,
}

/// The open connections of a client network.
#[derive(Debug, Default)]
struct OpenOfNetwork {
    /// Those that have shown no login and use no stream, by id.
    pending: BTreeMap<u64, CancellationToken>,
    n_anonymous: usize,
    n_of_users: usize,
}

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionKind {
    Pending,
    Anonymous,
    OfUser,
}

/// The limit that refuses a connection or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    #[error("too many connections are open: the limit is {0}, the setting limits.connections_max")]
    Total(usize),
    #[error(
        "too many connections are open from this address: the limit is {0}, the setting limits.connections_per_address_max"
    )]
    PerAddress(usize),
    #[error(
        "too many connections without a login are open from this address: the limit is {0}, three quarters of the setting \
         limits.connections_per_address_max"
    )]
    Anonymous(usize),
}

/// A client network that reached its limit of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedAddress {
    /// An IPv4 address, or the first address of an IPv6 /64.
    pub network: IpAddr,
    /// Number of its connections and requests that were refused.
    pub n_refused: u64,
    /// Number of its connections without a login that were closed for newer ones.
    pub n_closed: u64,
    /// Milliseconds since 1970.
    pub first_at: i64,
    /// Milliseconds since 1970.
    pub last_at: i64,
    /// The limit.
    pub max: usize,
}

/// Counts one open connection until it is dropped.
#[derive(Debug)]
pub struct AdmissionGuard {
    admission: Arc<Admission>,
    place: Mutex<Place>,
    id: u64,
    /// Closes the connection.
    cancel: CancellationToken,
}

/// The kind as which a connection counts.
#[derive(Debug)]
struct Place {
    /// The network of the client. `None` until the first request of a proxy.
    network: Option<IpAddr>,
    kind: ConnectionKind,
}

/// The connection of a request, for what the request shows about its client. Does not keep the connection counted.
#[derive(Clone, Debug, Default)]
pub struct RequestPlace(Weak<AdmissionGuard>);

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

    /// Counts a new connection. `cancel` closes it, if newer ones of its address need its place before it has shown a login.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        cancel: CancellationToken,
    ) -> Result<AdmissionGuard, LimitReached> {
        let network = (!self.proxies.contains(address)).then(|| client_network(address));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let admitted = self.count_in(network, id, &cancel);
        let counter = if admitted.is_ok() { &self.n_accepted } else { &self.n_refused };
        counter.fetch_add(1, Ordering::Relaxed);
        admitted?;
        let place = Mutex::new(Place { network, kind: ConnectionKind::Pending });
        Ok(AdmissionGuard { admission: Arc::clone(self), place, id, cancel })
    }

    fn count_in(
        &self,
        network: Option<IpAddr>,
        id: u64,
        cancel: &CancellationToken,
    ) -> Result<(), LimitReached> {
        let mut open = self.open.lock();
        if is_reached(self.connections_max, open.n_all) {
            return Err(LimitReached::Total(self.connections_max));
        }
        if let Some(network) = network {
            open.add(network, self.per_address_max, id, cancel)?;
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

    /// Returns the client networks that reached the limit within the last hour, the latest last.
    pub fn limited_addresses(&self) -> Vec<LimitedAddress> {
        let since = now_ms().saturating_sub(LIMITED_MS_MAX);
        let open = self.open.lock();
        open.limited.iter().filter(|it| it.last_at >= since).cloned().collect()
    }
}

impl Open {
    /// Adds a pending connection. If the network has as many as allowed, the oldest pending one is closed.
    fn add(
        &mut self,
        network: IpAddr,
        max: usize,
        id: u64,
        cancel: &CancellationToken,
    ) -> Result<(), LimitReached> {
        let of_network = self.by_network.entry(network).or_default();
        if is_reached(max, of_network.n_all()) {
            let oldest = of_network.pending.pop_first();
            let is_refused = oldest.is_none();
            if let Some((_, oldest)) = oldest {
                oldest.cancel();
                of_network.pending.insert(id, cancel.clone());
            }
            self.note_limited(network, max, is_refused);
            return if is_refused { Err(LimitReached::PerAddress(max)) } else { Ok(()) };
        }
        of_network.pending.insert(id, cancel.clone());
        Ok(())
    }

    /// Removes a connection. Returns false if it was closed for another one, and does not count any more.
    fn remove(&mut self, network: IpAddr, id: u64, kind: ConnectionKind) -> bool {
        let Some(of_network) = self.by_network.get_mut(&network) else { return false };
        let was_counted = match kind {
            ConnectionKind::Pending => of_network.pending.remove(&id).is_some(),
            ConnectionKind::Anonymous => {
                of_network.n_anonymous -= 1;
                true
            }
            ConnectionKind::OfUser => {
                of_network.n_of_users -= 1;
                true
            }
        };
        if of_network.n_all() == 0 {
            self.by_network.remove(&network);
        }
        was_counted
    }

    fn note_limited(&mut self, network: IpAddr, max: usize, is_refused: bool) {
        let now = now_ms();
        self.limited.retain(|it| it.last_at >= now.saturating_sub(LIMITED_MS_MAX));
        let before = self.limited.iter().position(|it| it.network == network);
        let mut limited = before.and_then(|it| self.limited.remove(it)).unwrap_or(LimitedAddress {
            network,
            n_refused: 0,
            n_closed: 0,
            first_at: now,
            last_at: now,
            max,
        });
        limited.last_at = now;
        match is_refused {
            true => limited.n_refused += 1,
            false => limited.n_closed += 1,
        }
        if self.limited.len() >= LIMITED_MAX {
            self.limited.pop_front();
        }
        self.limited.push_back(limited);
    }
}

impl OpenOfNetwork {
    fn n_all(&self) -> usize {
        self.pending.len() + self.n_anonymous + self.n_of_users
    }

    fn count(&mut self, kind: ConnectionKind) {
        match kind {
            ConnectionKind::Pending => {}
            ConnectionKind::Anonymous => self.n_anonymous += 1,
            ConnectionKind::OfUser => self.n_of_users += 1,
        }
    }
}

impl AdmissionGuard {
    /// Counts the connection for this client from now on, instead of the one before.
    ///
    /// # Errors
    /// The client has too many connections. Nothing changes.
    pub(crate) fn count_for(&self, client: IpAddr) -> Result<(), LimitReached> {
        let (client, mut place) = (client_network(client), self.place.lock());
        if place.network == Some(client) {
            return Ok(());
        }
        let mut open = self.admission.open.lock();
        if let Err(limit) = open.add(client, self.admission.per_address_max, self.id, &self.cancel) {
            self.admission.n_refused.fetch_add(1, Ordering::Relaxed);
            return Err(limit);
        }
        let before =
            std::mem::replace(&mut *place, Place { network: Some(client), kind: ConnectionKind::Pending });
        if let Some(network) = before.network {
            open.remove(network, self.id, before.kind);
        }
        Ok(())
    }

    /// Changes what the connection counts as.
    ///
    /// # Errors
    /// Its address has too many connections without a login, or it was closed for another one.
    fn become_kind(&self, kind: ConnectionKind) -> Result<(), LimitReached> {
        let mut place = self.place.lock();
        let Some(network) = place.network.filter(|_| place.kind != kind) else { return Ok(()) };
        let max = self.admission.per_address_max;
        let mut open = self.admission.open.lock();
        let n_anonymous = open.by_network.get(&network).map_or(0, |it| it.n_anonymous);
        let share = anonymous_share(max);
        if kind == ConnectionKind::Anonymous && is_reached(share, n_anonymous) {
            open.note_limited(network, max, true);
            self.admission.n_refused.fetch_add(1, Ordering::Relaxed);
            return Err(LimitReached::Anonymous(share));
        }
        if !open.remove(network, self.id, place.kind) {
            return Err(LimitReached::PerAddress(max));
        }
        open.by_network.entry(network).or_default().count(kind);
        place.kind = kind;
        Ok(())
    }

    /// Returns the place of the requests of this connection.
    pub(crate) fn request_place(self: &Arc<Self>) -> RequestPlace {
        RequestPlace(Arc::downgrade(self))
    }

    /// Returns the id of the connection, unique for the life of the gateway.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl RequestPlace {
    /// Counts the connection as that of a user, whose login was checked.
    ///
    /// # Errors
    /// The connection was closed for another one.
    pub fn note_user(&self) -> Result<(), LimitReached> {
        self.0.upgrade().map_or(Ok(()), |it| it.become_kind(ConnectionKind::OfUser))
    }

    /// Counts the connection among those that use streams and lists without a login.
    ///
    /// # Errors
    /// Its address has too many of them.
    pub fn note_anonymous(&self) -> Result<(), LimitReached> {
        self.0.upgrade().map_or(Ok(()), |it| it.become_kind(ConnectionKind::Anonymous))
    }
}

impl Drop for AdmissionGuard {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock();
        open.n_all -= 1;
        let place = self.place.get_mut();
        if let Some(network) = place.network {
            open.remove(network, self.id, place.kind);
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
        admission.admit(address.parse().unwrap(), CancellationToken::new())
    }

    /// Admits a connection that uses a stream without a login.
    fn stream(admission: &Arc<Admission>, address: &str) -> Result<AdmissionGuard, LimitReached> {
        let guard = admit(admission, address)?;
        guard.become_kind(ConnectionKind::Anonymous)?;
        Ok(guard)
    }

    #[test]
    fn a_closed_connection_makes_room_for_another() {
        let admission = Admission::new(2, 0);
        let first = admit(&admission, "10.0.0.1").unwrap();
        let second = admit(&admission, "10.0.0.1").unwrap();
        assert_ne!(first.id(), second.id());
        assert_eq!(admit(&admission, "10.0.0.2").unwrap_err(), LimitReached::Total(2));
        drop(first);
        assert!(admit(&admission, "10.0.0.2").is_ok());
        assert_eq!((admission.n_accepted(), admission.n_refused()), (3, 1));
    }

    #[test]
    fn one_client_network_cannot_use_all_connections() {
        let admission = Admission::new(0, 1);
        let held = stream(&admission, "2001:db8::1").unwrap();
        assert_eq!(admit(&admission, "2001:db8::2").unwrap_err(), LimitReached::PerAddress(1));
        assert!(admit(&admission, "2001:db8:0:1::1").is_ok());
        drop(held);
        assert!(admit(&admission, "2001:db8::2").is_ok());
        assert_eq!(admission.n_open(), 0);
        assert!(admission.open.lock().by_network.is_empty(), "no entry remains after the last connection");
    }

    #[test]
    fn clients_without_a_login_leave_a_quarter_of_the_connections_of_their_address_to_users() {
        let admission = Admission::new(0, 8);
        let address = "192.0.2.1";
        let mut anonymous: Vec<_> = (0..6).map(|_| stream(&admission, address).unwrap()).collect();
        assert_eq!(stream(&admission, address).unwrap_err(), LimitReached::Anonymous(6));
        let users: Vec<_> = (0..2).map(|_| admit(&admission, address).unwrap()).collect();
        for user in &users {
            user.become_kind(ConnectionKind::OfUser).unwrap();
            user.become_kind(ConnectionKind::OfUser).unwrap();
        }
        assert_eq!(admit(&admission, address).unwrap_err(), LimitReached::PerAddress(8));
        // Another address has its own.
        stream(&admission, "192.0.2.2").unwrap();
        anonymous.pop();
        let free = admit(&admission, address).unwrap();
        // A connection of a proxy serves another client next.
        users[0].become_kind(ConnectionKind::Anonymous).unwrap();
        drop((anonymous, users, free));
        assert!(admission.open.lock().by_network.is_empty());
    }

    #[test]
    fn a_connection_that_shows_nothing_is_closed_for_a_newer_one_of_its_address() {
        let admission = Admission::new(0, 2);
        let tokens: Vec<_> = (0..4).map(|_| CancellationToken::new()).collect();
        let admit = |n: usize| admission.admit("192.0.2.1".parse().unwrap(), tokens[n].clone());
        let (idle, user) = (admit(0).unwrap(), admit(1).unwrap());
        user.become_kind(ConnectionKind::OfUser).unwrap();
        let newer = admit(2).unwrap();
        assert!(tokens[0].is_cancelled() && !tokens[1].is_cancelled());
        assert!(idle.become_kind(ConnectionKind::OfUser).is_err(), "it is being closed");
        drop(idle);
        newer.become_kind(ConnectionKind::OfUser).unwrap();
        assert_eq!(admit(3).unwrap_err(), LimitReached::PerAddress(2));
        let limited = admission.limited_addresses();
        assert_eq!((limited[0].n_closed, limited[0].n_refused, limited[0].max), (1, 1, 2));
        assert_eq!((limited.len(), limited[0].network), (1, "192.0.2.1".parse().unwrap()));
        drop((user, newer));
        assert_eq!(admission.n_open(), 0);
        assert!(admission.open.lock().by_network.is_empty());
    }

    #[test]
    fn the_connections_of_a_proxy_count_for_the_clients_that_it_names() {
        let admission = Admission::behind("10.0.0.9".parse().unwrap(), 0, 1);
        let [one, two] = [(); 2].map(|()| admit(&admission, "10.0.0.9").unwrap());
        let client = |text: &str| text.parse().unwrap();
        one.count_for(client("192.0.2.1")).unwrap();
        one.count_for(client("192.0.2.1")).unwrap();
        one.become_kind(ConnectionKind::OfUser).unwrap();
        assert_eq!(two.count_for(client("192.0.2.1")), Err(LimitReached::PerAddress(1)));
        two.count_for(client("192.0.2.2")).unwrap();
        // The next request of the same connection is that of another client.
        one.count_for(client("192.0.2.3")).unwrap();
        two.count_for(client("192.0.2.1")).unwrap();
        drop((one, two));
        assert!(admission.open.lock().by_network.is_empty());
        assert_eq!(admission.n_open(), 0);
    }

    #[test]
    fn the_number_of_remembered_addresses_is_limited() {
        let admission = Admission::new(0, 1);
        for n in 1..=2 * LIMITED_MAX {
            let address = format!("192.0.2.{n}");
            let _held = stream(&admission, &address).unwrap();
            admit(&admission, &address).unwrap_err();
        }
        let limited = admission.limited_addresses();
        assert_eq!(limited.len(), LIMITED_MAX);
        assert_eq!(limited[LIMITED_MAX - 1].network.to_string(), format!("192.0.2.{}", 2 * LIMITED_MAX));
    }

    #[test]
    fn without_limits_every_connection_is_admitted() {
        let admission = Admission::new(0, 0);
        let held: Vec<_> = (0..100).map(|_| stream(&admission, "10.0.0.1").unwrap()).collect();
        assert_eq!(admission.n_open(), held.len());
        assert_eq!(admission.limited_addresses(), []);
    }
}
