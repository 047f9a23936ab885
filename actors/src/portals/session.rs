//! The session of each device, shared by all that ask for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use domain::ids::{AccountId, ProfileId};
use domain::portal::{PortalDevice, SessionTimes};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use parking_lot::Mutex;
use tokio::sync::Mutex as Waiting;

/// The sessions of all devices. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct PortalSessions(Arc<Mutex<HashMap<(AccountId, ProfileId), Arc<Session>>>>);

/// The session of one device.
#[derive(Default)]
pub(super) struct Session {
    /// Held while the device shakes hands, so that it does so once for all that wait.
    pub(super) state: Waiting<SessionState>,
    /// Seconds between two messages that the device is on, as the portal said.
    pub(super) watchdog_seconds: AtomicU32,
    /// Number of streams that play with the device.
    pub(super) n_playing: AtomicUsize,
    /// A task tells the portal that the device is on.
    pub(super) is_watched: Mutex<bool>,
}

/// The state of a session.
#[derive(Default)]
pub(super) struct SessionState {
    /// The device and the portal that the rest is about.
    pub(super) of: Option<(PortalDevice, SourceUrl)>,
    pub(super) token: Option<Token>,
    /// The number of the last handshake.
    pub(super) n_handshakes: u64,
    pub(super) times: SessionTimes,
}

/// A token, with the entry point that gave it.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) token: Secret,
    pub(super) endpoint: SourceUrl,
    /// The number of its handshake.
    pub(super) number: u64,
}

impl PortalSessions {
    /// Returns the session of a device, which may be new.
    pub(super) fn session(&self, account: AccountId, profile: ProfileId) -> Arc<Session> {
        let mut sessions = self.0.lock();
        sessions.entry((account, profile)).or_default().clone()
    }

    /// Forgets the sessions of devices that no account has any more and nothing uses.
    pub(crate) fn retain(&self, is_known: impl Fn(AccountId, ProfileId) -> bool) {
        self.0.lock().retain(|key, session| Arc::strong_count(session) > 1 || is_known(key.0, key.1));
    }
}

impl Session {
    /// Returns the interval in which the portal wants to be told that the device is on.
    pub(super) fn watchdog_interval(&self) -> Duration {
        const USUAL: u32 = 120;
        let seconds = self.watchdog_seconds.load(Ordering::Relaxed);
        Duration::from_secs(u64::from(if seconds == 0 { USUAL } else { seconds }))
    }
}

impl SessionState {
    /// Begins anew if the device or its portal is another one than before.
    pub(super) fn adapt(&mut self, device: &PortalDevice, server: &SourceUrl) {
        let is_same = self.of.as_ref().is_some_and(|it| it.0 == *device && it.1 == *server);
        if !is_same {
            let n_handshakes = self.n_handshakes;
            *self = Self { of: Some((device.clone(), server.clone())), n_handshakes, ..Self::default() };
        }
    }
}
