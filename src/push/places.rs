//! How many sockets one user may have open.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ids::UserId;
use parking_lot::Mutex;

/// Sockets of one user, at most: a browser with many tabs, not a program that forgets to close. What one address may
/// have is limited where connections are accepted.
const PER_USER_MAX: usize = 32;

/// Counts the open sockets of each user. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<UserId, usize>>>);

/// The place of one socket; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    user: UserId,
}

impl Places {
    /// A place for one more socket of this user, if there is one.
    pub(super) fn take(&self, user: UserId) -> Option<Place> {
        let mut open = self.0.lock();
        let n_open = open.get(&user).copied().unwrap_or(0);
        if n_open >= PER_USER_MAX {
            return None;
        }
        open.insert(user, n_open + 1);
        Some(Place { places: self.clone(), user })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.0.lock();
        if let Some(n_open) = open.get_mut(&self.user) {
            *n_open -= 1;
            if *n_open == 0 {
                open.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_the_sockets_of_others_and_a_closed_one_makes_room() {
        let places = Places::default();
        let mut held: Vec<_> = (0..PER_USER_MAX).map(|_| places.take(UserId(1)).unwrap()).collect();
        assert!(places.take(UserId(1)).is_none());
        assert!(places.take(UserId(2)).is_some());
        held.pop();
        held.push(places.take(UserId(1)).unwrap());
        drop(held);
        assert!(places.0.lock().is_empty(), "nothing is remembered of who has left");
    }
}
