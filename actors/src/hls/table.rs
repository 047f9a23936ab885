//! The table of all sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use domain::limits::anonymous_share;
use tokio::sync::OnceCell;

use super::{HlsSession, SessionEnd, SessionKey};

/// Maximum number of ended sessions whose reason is remembered.
const ENDED_MAX: usize = 4_096;

/// A session that is being opened or is open.
pub(super) type Opening = Arc<OnceCell<Arc<HlsSession>>>;

/// All sessions, by the player and by the token.
#[derive(Default)]
pub(super) struct SessionTable {
    by_key: HashMap<SessionKey, Opening>,
    by_token: HashMap<String, Arc<HlsSession>>,
    /// Tokens of sessions that ended, the oldest first.
    ended: VecDeque<(String, SessionEnd)>,
}

impl SessionTable {
    /// Returns the session of a player, or the place for it; `None` if there are too many.
    pub(super) fn opening(
        &mut self,
        key: &SessionKey,
        max: usize,
        per_address_max: usize,
    ) -> Option<Opening> {
        if let Some(opening) = self.by_key.get(key) {
            return Some(Arc::clone(opening));
        }
        if self.by_key.len() >= max || self.by_token.len() >= max || !self.has_place(key, per_address_max) {
            return None;
        }
        let opening = Opening::default();
        self.by_key.insert(key.clone(), Arc::clone(&opening));
        Some(opening)
    }

    /// Returns whether the address of a player may have another session. Those without a login leave a part to users.
    fn has_place(&self, key: &SessionKey, per_address_max: usize) -> bool {
        if per_address_max == 0 {
            return true;
        }
        let of_address = || self.by_key.keys().filter(|it| it.address == key.address);
        let n_anonymous = || of_address().filter(|it| it.user.is_none()).count();
        of_address().count() < per_address_max
            && (key.user.is_some() || n_anonymous() < anonymous_share(per_address_max))
    }

    pub(super) fn insert(&mut self, session: Arc<HlsSession>) {
        self.by_token.insert(session.token().to_owned(), session);
    }

    /// Removes the place of a session that was not opened, if the caller is the last one who waited for it.
    pub(super) fn give_up(&mut self, key: &SessionKey, opening: &Opening) {
        let is_it = self.by_key.get(key).is_some_and(|it| Arc::ptr_eq(it, opening));
        // One reference is that of the table, and one that of the caller.
        if is_it && !opening.initialized() && Arc::strong_count(opening) <= 2 {
            self.by_key.remove(key);
        }
    }

    /// Lets the next request of the player open another session.
    pub(super) fn forget(&mut self, key: &SessionKey, session: &Arc<HlsSession>) {
        let of_key = self.by_key.get(key).and_then(|it| it.get());
        if of_key.is_some_and(|it| Arc::ptr_eq(it, session)) {
            self.by_key.remove(key);
        }
    }

    /// Removes a session that has ended, and remembers the reason for a while.
    pub(super) fn remove(&mut self, session: &Arc<HlsSession>, end: SessionEnd) {
        if self.by_token.remove(session.token()).is_some() {
            if self.ended.len() >= ENDED_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back((session.token().to_owned(), end));
        }
    }

    pub(super) fn find(&self, token: &str) -> Option<&Arc<HlsSession>> {
        self.by_token.get(token)
    }

    pub(super) fn why_ended(&self, token: &str) -> Option<SessionEnd> {
        self.ended.iter().rev().find(|it| it.0 == token).map(|it| it.1.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.by_token.len()
    }
}

#[cfg(test)]
mod tests {
    use domain::output_format::{SegmentContainer, StreamFormat};
    use uuid::Uuid;

    use super::*;
    use crate::plans::Target;

    #[test]
    fn sessions_without_a_login_leave_a_quarter_of_those_of_their_address_to_users() {
        let mut table = SessionTable::default();
        let mut opens = |user: Option<&str>, address: &str, n: usize| {
            let key = SessionKey {
                target: Target::Channel(Uuid::nil()),
                user: user.map(str::to_owned),
                address: address.parse().unwrap(),
                agent: n.to_string(),
                format: StreamFormat::Hls(SegmentContainer::Ts),
                profile: None,
            };
            table.opening(&key, 100, 8).is_some()
        };
        assert!((0..6).all(|n| opens(None, "192.0.2.1", n)));
        assert!(!opens(None, "192.0.2.1", 6));
        assert!(opens(None, "192.0.2.1", 0), "one that is open");
        assert!(opens(None, "192.0.2.2", 6), "another address");
        assert!((0..2).all(|n| opens(Some("anna"), "192.0.2.1", n)));
        assert!(!opens(Some("anna"), "192.0.2.1", 2), "the limit of the address");
    }
}
