//! Limit on open WebSockets per user.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ids::UserId;
use parking_lot::Mutex;

/// Maximum number of open sockets per user: enough for a browser with many tabs, but not for a program that never
/// closes them. The accept loop limits connections per address.
const PER_USER_MAX: usize = 32;

/// Counts the open sockets of each user. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketLimit(Arc<Mutex<HashMap<UserId, usize>>>);

/// Counts one socket until it is dropped.
#[derive(Debug)]
pub(super) struct SocketPermit {
    sockets: SocketLimit,
    user: UserId,
}

impl SocketLimit {
    /// Returns a permit for one more socket of this user, or `None` at the limit.
    pub(super) fn take(&self, user: UserId) -> Option<SocketPermit> {
        let mut open = self.0.lock();
        let n_open = open.get(&user).copied().unwrap_or(0);
        if n_open >= PER_USER_MAX {
            return None;
        }
        open.insert(user, n_open + 1);
        Some(SocketPermit { sockets: self.clone(), user })
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        let mut open = self.sockets.0.lock();
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
    fn one_user_cannot_use_the_sockets_of_others_and_a_closed_one_makes_room() {
        let sockets = SocketLimit::default();
        let mut held: Vec<_> = (0..PER_USER_MAX).map(|_| sockets.take(UserId(1)).unwrap()).collect();
        assert!(sockets.take(UserId(1)).is_none());
        assert!(sockets.take(UserId(2)).is_some());
        held.pop();
        held.push(sockets.take(UserId(1)).unwrap());
        drop(held);
        assert!(sockets.0.lock().is_empty(), "no entry remains after the last socket");
    }
}
