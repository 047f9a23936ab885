//! The identity of a viewer.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The known identity of a viewer. It decides whether a new request replaces an older one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    /// User name; `None` without a login.
    pub user: Option<String>,
    /// Address of the device, which a proxy may have named.
    pub address: IpAddr,
    /// `User-Agent` header as received, shortened by the caller.
    pub agent: String,
}

impl Viewer {
    /// Returns whether both viewers are the same logged-in user on the same device.
    pub(crate) fn is_same_device(&self, other: &Viewer) -> bool {
        self.user.is_some() && self == other
    }
}
