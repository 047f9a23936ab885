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
pub(crate) struct PortalSessions(Arc<Mutex<SessionsOfDevices>>);

type SessionsOfDevices = HashMap<(AccountId, ProfileId), Arc<DeviceSession>>;

/// The session of one device at one address of its portal.
pub(super) struct DeviceSession {
    of: (PortalDevice, SourceUrl),
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
    pub(super) token: Option<DeviceToken>,
    /// The number of the last handshake.
    pub(super) n_handshakes: u64,
    pub(super) times: SessionTimes,
}

/// A token, with the entry point that gave it.
#[derive(Clone)]
pub(super) struct DeviceToken {
    pub(super) token: Secret,
    pub(super) endpoint: SourceUrl,
    /// The number of its handshake.
    pub(super) number: u64,
}

impl PortalSessions {
    /// Returns the session of the device of a profile. Another device or address than before begins anew; what still plays
    /// with the former one keeps its session.
    pub(super) fn session(
        &self,
        (account, profile): (AccountId, ProfileId),
        device: &PortalDevice,
        server: &SourceUrl,
    ) -> Arc<DeviceSession> {
        let mut sessions = self.0.lock();
        match sessions.get(&(account, profile)) {
            Some(known) if known.of.0 == *device && known.of.1 == *server => known.clone(),
            _ => {
                let session = Arc::new(DeviceSession::new(device.clone(), server.clone()));
                sessions.insert((account, profile), session.clone());
                session
            }
        }
    }

    /// Forgets the sessions of devices that no account has any more and nothing uses.
    pub(crate) fn retain(&self, is_known: impl Fn(AccountId, ProfileId) -> bool) {
        self.0.lock().retain(|key, session| Arc::strong_count(session) > 1 || is_known(key.0, key.1));
    }
}

impl DeviceSession {
    fn new(device: PortalDevice, server: SourceUrl) -> Self {
        Self {
            of: (device, server),
            state: Waiting::default(),
            watchdog_seconds: AtomicU32::new(0),
            n_playing: AtomicUsize::new(0),
            is_watched: Mutex::new(false),
        }
    }

    /// Returns the interval in which the portal wants to be told that the device is on.
    pub(super) fn watchdog_interval(&self) -> Duration {
        const USUAL: u32 = 120;
        let seconds = self.watchdog_seconds.load(Ordering::Relaxed);
        Duration::from_secs(u64::from(if seconds == 0 { USUAL } else { seconds }))
    }
}
