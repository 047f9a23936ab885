//! How many connections may be open at once, in all and from one neighbour.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::network::neighbour;

/// Counts the open connections of all doors together.
#[derive(Debug)]
pub(crate) struct Admission {
    connections_max: usize,
    per_address_max: usize,
    open: Mutex<Open>,
    next_id: AtomicU64,
    n_accepted: AtomicU64,
    n_refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    n_all: usize,
    by_neighbour: HashMap<IpAddr, usize>,
}

/// Why a connection is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Crowded {
    #[error("too many connections are open")]
    House,
    #[error("too many connections are open from this address")]
    Neighbour,
}

/// The place of one open connection; given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    neighbour: IpAddr,
    id: u64,
}

impl Admission {
    /// `0` means no limit, for both.
    pub(crate) fn new(connections_max: usize, per_address_max: usize) -> Arc<Self> {
        Arc::new(Admission {
            connections_max,
            per_address_max,
            open: Mutex::default(),
            next_id: AtomicU64::new(1),
            n_accepted: AtomicU64::new(0),
            n_refused: AtomicU64::new(0),
        })
    }

    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admitted, Crowded> {
        let neighbour = neighbour(address);
        let admitted = self.count_in(neighbour);
        let counter = if admitted.is_ok() { &self.n_accepted } else { &self.n_refused };
        counter.fetch_add(1, Ordering::Relaxed);
        admitted?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(Admitted { admission: Arc::clone(self), neighbour, id })
    }

    fn count_in(&self, neighbour: IpAddr) -> Result<(), Crowded> {
        let mut open = self.open.lock();
        if is_reached(self.connections_max, open.n_all) {
            return Err(Crowded::House);
        }
        let of_neighbour = open.by_neighbour.get(&neighbour).copied().unwrap_or(0);
        if is_reached(self.per_address_max, of_neighbour) {
            return Err(Crowded::Neighbour);
        }
        open.n_all += 1;
        open.by_neighbour.insert(neighbour, of_neighbour + 1);
        Ok(())
    }

    pub(crate) fn n_open(&self) -> usize {
        self.open.lock().n_all
    }

    pub(crate) fn n_accepted(&self) -> u64 {
        self.n_accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn n_refused(&self) -> u64 {
        self.n_refused.load(Ordering::Relaxed)
    }
}

impl Admitted {
    /// The number of the connection, never used twice in the life of a gateway.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock();
        open.n_all -= 1;
        if let Some(count) = open.by_neighbour.get_mut(&self.neighbour) {
            *count -= 1;
            if *count == 0 {
                open.by_neighbour.remove(&self.neighbour);
            }
        }
    }
}

fn is_reached(max: usize, count: usize) -> bool {
    max != 0 && count >= max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(admission: &Arc<Admission>, address: &str) -> Result<Admitted, Crowded> {
        admission.admit(address.parse().unwrap())
    }

    #[test]
    fn a_place_given_back_is_free_again() {
        let admission = Admission::new(2, 0);
        let first = admit(&admission, "10.0.0.1").unwrap();
        let second = admit(&admission, "10.0.0.1").unwrap();
        assert_ne!(first.id(), second.id());
        assert_eq!(admit(&admission, "10.0.0.2").unwrap_err(), Crowded::House);
        drop(first);
        assert!(admit(&admission, "10.0.0.2").is_ok());
        assert_eq!((admission.n_accepted(), admission.n_refused()), (3, 1));
    }

    #[test]
    fn one_neighbour_cannot_take_the_places_of_all() {
        let admission = Admission::new(0, 1);
        let held = admit(&admission, "2001:db8::1").unwrap();
        assert_eq!(admit(&admission, "2001:db8::2").unwrap_err(), Crowded::Neighbour);
        assert!(admit(&admission, "2001:db8:0:1::1").is_ok());
        drop(held);
        assert!(admit(&admission, "2001:db8::2").is_ok());
        assert_eq!(admission.n_open(), 0);
        assert!(admission.open.lock().by_neighbour.is_empty(), "nothing is remembered of who has left");
    }

    #[test]
    fn without_limits_everybody_is_admitted() {
        let admission = Admission::new(0, 0);
        let held: Vec<_> = (0..100).map(|_| admit(&admission, "10.0.0.1").unwrap()).collect();
        assert_eq!(admission.n_open(), held.len());
    }
}
