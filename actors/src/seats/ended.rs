//! Devices whose session ended for another device of the same user, and that ask again by themselves.
//!
//! Players reconnect without a person: two devices of a user with one seat would end each other in turn. A device that was
//! ended therefore ends no other one while it asks for the same channel again and again. A person shows by another
//! channel, or by a request after a pause.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use domain::ids::UserId;
use tokio::time::Instant;

use super::Session;
use crate::plans::Target;
use crate::viewer::Viewer;

/// Time after which a device may end another one again, whatever it does.
const REFUSED_MAX: Duration = Duration::from_secs(120);
/// Time without a request after which the next one is that of a person.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of devices.
const DEVICES_MAX: usize = 1_000;

/// The devices, by user, address and program.
#[derive(Default)]
pub(super) struct EndedDevices {
    devices: BTreeMap<(UserId, IpAddr, String), Ended>,
}

struct Ended {
    /// The channel or title that it watched.
    target: Target,
    since: Instant,
    /// The last request for that, or the end.
    asked: Instant,
}

impl Ended {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= REFUSED_MAX || now.duration_since(self.asked) >= PAUSE
    }
}

impl EndedDevices {
    /// Adds the device of a session that ends for another device.
    pub(super) fn add(&mut self, user: UserId, session: &Session) {
        let now = Instant::now();
        self.devices.retain(|_, it| !it.is_over(now));
        if self.devices.len() < DEVICES_MAX {
            let key = (user, session.address, session.agent.clone());
            self.devices.insert(key, Ended { target: session.target, since: now, asked: now });
        }
    }

    /// Notes a request of a device. Returns whether the device asks again by itself.
    pub(super) fn asks_again(&mut self, user: UserId, viewer: &Viewer, target: Target) -> bool {
        if self.devices.is_empty() {
            return false;
        }
        let now = Instant::now();
        let key = (user, viewer.address, viewer.agent.clone());
        match self.devices.get_mut(&key) {
            Some(it) if it.target == target && !it.is_over(now) => {
                it.asked = now;
                true
            }
            Some(_) => {
                self.devices.remove(&key);
                false
            }
            None => false,
        }
    }

    /// Forgets a device, which watches again.
    pub(super) fn remove(&mut self, user: UserId, viewer: &Viewer) {
        if !self.devices.is_empty() {
            self.devices.remove(&(user, viewer.address, viewer.agent.clone()));
        }
    }
}
