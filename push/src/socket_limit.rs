//! Limit on open WebSockets per user.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ids::UserId;
use parking_lot::Mutex;

/// Counts the open sockets of each user, so that a program that never closes them does not take those of others. The accept
/// loop limits connections per address. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct SocketLimit {
    open: Arc<Mutex<HashMap<UserId, usize>>>,
    /// Maximum number of open sockets per user; 0 means no limit.
    per_user_max: usize,
}

/// Counts one socket until it is dropped.
#[derive(Debug)]
pub(super) struct SocketPermit {
    sockets: SocketLimit,
    user: UserId,
}

impl SocketLimit {
    /// For `per_user_max`, `0` means no limit.
    pub(super) fn new(per_user_max: usize) -> Self {
        Self { open: Arc::default(), per_user_max }
    }

    /// Returns a permit for one more socket of this user.
    ///
    /// # Errors
    /// The sentence why the user cannot have one.
    pub(super) fn take(&self, user: UserId) -> Result<SocketPermit, String> {
        let mut open = self.open.lock();
        let n_open = open.get(&user).copied().unwrap_or(0);
        if self.per_user_max != 0 && n_open >= self.per_user_max {
            return Err(format!(
                "This user has {n_open} open WebSockets, the maximum. Close some, or raise the setting \
                 limits.websockets_per_user_max."
            ));
        }
        open.insert(user, n_open + 1);
        Ok(SocketPermit { sockets: self.clone(), user })
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        let mut open = self.sockets.open.lock();
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
        let sockets = SocketLimit::new(3);
        let mut held: Vec<_> = (0..3).map(|_| sockets.take(UserId(1)).unwrap()).collect();
        let refused = sockets.take(UserId(1)).unwrap_err();
        assert!(refused.contains("has 3 open WebSockets"), "{refused}");
        assert!(refused.contains("limits.websockets_per_user_max"), "{refused}");
        assert!(sockets.take(UserId(2)).is_ok());
        held.pop();
        held.push(sockets.take(UserId(1)).unwrap());
        drop(held);
        assert!(sockets.open.lock().is_empty(), "no entry remains after the last socket");
        let unlimited = SocketLimit::new(0);
        let held: Vec<_> = (0..100).map(|_| unlimited.take(UserId(1)).unwrap()).collect();
        assert_eq!(unlimited.open.lock()[&UserId(1)], held.len());
    }
}
