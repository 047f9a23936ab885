//! Logins of browsers that the store refused, for example because the disk is full. They last until the restart.
//!
//! They obey the rules of stored ones: a log-out ends them, and so do a new password, a new signing key, time without use,
//! and newer logins if there are too many.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use domain::ids::{DeviceLoginId, UserId};
use domain::login::{DeviceLogin, surplus};
use parking_lot::Mutex;
use storage::View;
use tokio::sync::watch;
use uuid::Uuid;

use super::tokens::Signer;

/// Maximum number of logins of all users. Another one ends the one not used for longest.
const LOGINS_MAX: usize = 1_000;

/// The logins in memory.
pub struct MemoryLogins {
    state: Mutex<State>,
    /// Follows the server keys: a new key ends all logins.
    signer: View<Signer>,
    /// Changes whenever a login has ended.
    ended: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// At most [`LOGINS_MAX`].
    entries: Vec<Entry>,
    n_added: u32,
}

struct Entry {
    login: Arc<DeviceLogin>,
    /// The key with which its tokens are signed.
    signer: Arc<Signer>,
}

impl fmt::Debug for MemoryLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryLogins(…)")
    }
}

impl MemoryLogins {
    pub(super) fn new(signer: View<Signer>) -> Self {
        Self { state: Mutex::default(), signer, ended: watch::Sender::new(()) }
    }

    /// Adds a login, and gives it an id that no stored one has: those are assigned from 1 on, these from the greatest one
    /// down. Ends logins that have expired or are too many.
    pub fn add(&self, login: DeviceLogin, now_ms: i64) -> Arc<DeviceLogin> {
        let signer = self.signer.load();
        let mut state = self.state.lock();
        state.entries.retain(|it| Arc::ptr_eq(&it.signer, &signer) && !it.login.is_expired(now_ms));
        let of_user = state.entries.iter().filter(|it| it.login.user == login.user);
        let known: Vec<DeviceLogin> = of_user.map(|it| DeviceLogin::clone(&it.login)).collect();
        let removed = surplus(&known, login.generation, login.address, &login.agent, now_ms);
        state.entries.retain(|it| !removed.contains(&it.login.id));
        if state.entries.len() >= LOGINS_MAX {
            let oldest = (0..state.entries.len()).min_by_key(|at| state.entries[*at].login.used_at);
            oldest.map(|at| state.entries.remove(at));
        }
        let id = DeviceLoginId(u32::MAX.wrapping_sub(state.n_added));
        state.n_added = state.n_added.wrapping_add(1);
        let login = Arc::new(DeviceLogin { id, ..login });
        state.entries.push(Entry { login: Arc::clone(&login), signer });
        drop(state);
        self.ended.send_replace(());
        login
    }

    /// Returns the login with this key, which is in its tokens.
    pub fn by_key(&self, key: Uuid) -> Option<Arc<DeviceLogin>> {
        self.find(|it| it.key == key)
    }

    /// Returns the login with this id.
    pub(super) fn by_id(&self, id: DeviceLoginId) -> Option<Arc<DeviceLogin>> {
        self.find(|it| it.id == id)
    }

    /// Returns the login to which a cookie with this hash belongs or belonged.
    pub(super) fn by_cookie(&self, digest: &[u8; 32]) -> Option<Arc<DeviceLogin>> {
        let is_of = |it: &DeviceLogin| {
            let browser = it.browser.as_ref();
            browser.is_some_and(|it| it.digest == *digest || it.previous.as_ref() == Some(digest))
        };
        self.find(is_of)
    }

    /// Returns the logins of a user, in the order in which they were added.
    pub(super) fn user_logins(&self, user: UserId) -> Vec<Arc<DeviceLogin>> {
        let signer = self.signer.load();
        let state = self.state.lock();
        let of_user = |it: &&Entry| it.login.user == user && Arc::ptr_eq(&it.signer, &signer);
        state.entries.iter().filter(of_user).map(|it| Arc::clone(&it.login)).collect()
    }

    /// Replaces the value of a cookie at a use, unless another request was faster.
    pub fn replace_cookie(
        &self,
        key: Uuid,
        before: &[u8; 32],
        digest: [u8; 32],
        now_ms: i64,
        device: (IpAddr, &str),
    ) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.iter_mut().find(|it| it.login.key == key) else { return false };
        let mut login = DeviceLogin::clone(&entry.login);
        let Some(browser) = login.browser.as_mut().filter(|it| it.digest == *before) else { return false };
        browser.replace(digest, now_ms);
        (login.used_at, login.address, login.agent) = (now_ms, device.0, device.1.to_owned());
        entry.login = Arc::new(login);
        true
    }

    /// Ends the login with this key, if it is here.
    pub fn end(&self, key: Uuid) {
        let mut state = self.state.lock();
        let n_before = state.entries.len();
        state.entries.retain(|it| it.login.key != key);
        if state.entries.len() < n_before {
            drop(state);
            self.ended.send_replace(());
        }
    }

    /// Removes the login with this key, which is in the store from now on.
    pub fn remove_stored(&self, key: Uuid) {
        self.state.lock().entries.retain(|it| it.login.key != key);
    }

    /// Returns a receiver of the ends of logins.
    pub fn ends(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Moves the last use of all logins into the past.
    #[cfg(any(test, feature = "testing"))]
    pub fn pass(&self, ms: i64) {
        for entry in &mut self.state.lock().entries {
            let mut login = DeviceLogin::clone(&entry.login);
            login.used_at -= ms;
            if let Some(browser) = &mut login.browser {
                browser.replaced_at -= ms;
            }
            entry.login = Arc::new(login);
        }
    }

    fn find(&self, is_wanted: impl Fn(&DeviceLogin) -> bool) -> Option<Arc<DeviceLogin>> {
        let signer = self.signer.load();
        let state = self.state.lock();
        let is_it = |it: &&Entry| is_wanted(&it.login) && Arc::ptr_eq(&it.signer, &signer);
        state.entries.iter().find(is_it).map(|it| Arc::clone(&it.login))
    }
}
