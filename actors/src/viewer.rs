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
    /// Distinguishes it from others with the same address and program.
    #[serde(default, skip_serializing_if = "Identity::is_unknown")]
    pub identity: Identity,
}

/// How well a viewer is distinguished from others with the same address and program. The default is a viewer that may be
/// several, such as a media server, or a viewer of an older node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Address and program stand for one device.
    pub is_device: bool,
    /// Hash of the cookie of its HLS, which the player sent or which it got with this answer.
    pub cookie: Option<u64>,
    /// The player has sent that cookie, so it sends it with every request.
    pub keeps_cookies: bool,
    /// Hash of the `X-Playback-Session-Id` header.
    pub playback: Option<u64>,
}

impl Identity {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl Viewer {
    /// Returns whether `new`, who asks now, is the device of this viewer. In doubt it is not, because what this viewer
    /// watches may be ended.
    pub(crate) fn is_same_device(&self, new: &Viewer) -> bool {
        let is_same_place = self.address == new.address && self.agent == new.agent;
        match (&self.user, &new.user) {
            (Some(own), Some(new)) => own == new && is_same_place,
            (None, None) => self.has_same_identity(new, is_same_place),
            _ => false,
        }
    }

    fn has_same_identity(&self, new: &Viewer, is_same_place: bool) -> bool {
        let (own, new) = (&self.identity, &new.identity);
        let is_same = |own: Option<u64>, new: Option<u64>| own.is_some() && own == new;
        if is_same(own.cookie, new.cookie) || is_same(own.playback, new.playback) {
            return true;
        }
        // Each of the two would have sent the cookie of the other if they were one. A player that keeps no cookies gets
        // another one with each playlist.
        let is_other = own.keeps_cookies || (own.cookie.is_some() && new.keeps_cookies);
        !is_other && own.is_device && new.is_device && is_same_place
    }

    /// Returns whether several viewers that are the same device as this one are really one. A media server may watch for
    /// several people with one login.
    pub(crate) fn is_one_device(&self) -> bool {
        self.user.is_none() || self.identity.is_device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(user: Option<&str>, address: u8, agent: &str, identity: Identity) -> Viewer {
        let address = IpAddr::from([10, 0, 0, address]);
        Viewer { user: user.map(str::to_owned), address, agent: agent.to_owned(), identity }
    }

    #[test]
    fn a_user_is_one_device_for_each_address_and_program() {
        let tv = viewer(Some("ann"), 1, "tv", Identity::default());
        for (user, address, agent, expected) in [
            (Some("ann"), 1, "tv", true),
            (Some("ann"), 2, "tv", false),
            (Some("ann"), 1, "phone", false),
            (Some("bob"), 1, "tv", false),
            (None, 1, "tv", false),
        ] {
            let other = viewer(user, address, agent, Identity::default());
            assert_eq!((tv.is_same_device(&other), other.is_same_device(&tv)), (expected, expected));
        }
    }

    #[test]
    fn a_viewer_without_a_user_is_recognised_by_cookie_or_by_address_and_program_and_never_in_doubt() {
        let unknown = Identity::default();
        let device = Identity { is_device: true, ..unknown };
        let given = |cookie| Identity { cookie: Some(cookie), ..device };
        let sent = |cookie| Identity { keeps_cookies: true, ..given(cookie) };
        let hidden = |it: Identity| Identity { is_device: false, ..it };
        let playback = |playback, it| Identity { playback: Some(playback), ..it };
        for (own, new, expected) in [
            (device, device, true),
            (unknown, unknown, false),
            (device, unknown, false),
            (unknown, device, false),
            // A player that keeps no cookies.
            (given(1), given(2), true),
            (given(1), device, true),
            (hidden(given(1)), hidden(given(2)), false),
            // One that does, also behind a proxy that hides its address.
            (given(1), sent(1), true),
            (hidden(given(1)), hidden(sent(1)), true),
            (hidden(sent(1)), hidden(sent(1)), true),
            // Two browsers of the same version behind one address.
            (given(1), sent(2), false),
            (sent(1), sent(2), false),
            (sent(1), given(2), false),
            (sent(1), device, false),
            (playback(5, unknown), playback(5, unknown), true),
            (playback(5, unknown), playback(6, unknown), false),
            (unknown, playback(5, unknown), false),
        ] {
            let (own_viewer, new_viewer) = (viewer(None, 1, "tv", own), viewer(None, 1, "tv", new));
            assert_eq!(own_viewer.is_same_device(&new_viewer), expected, "{own:?} {new:?}");
        }
        let tv = viewer(None, 1, "tv", device);
        assert!(!tv.is_same_device(&viewer(None, 2, "tv", device)));
        assert!(!tv.is_same_device(&viewer(None, 1, "phone", device)));
        // A browser that moves to another network keeps its cookie.
        assert!(viewer(None, 1, "tv", sent(1)).is_same_device(&viewer(None, 2, "tv", sent(1))));
    }

    #[test]
    fn a_viewer_of_an_older_node_may_be_several() {
        let text = r#"{"user":null,"address":"10.0.0.1","agent":"tv"}"#;
        let old: Viewer = serde_json::from_str(text).unwrap();
        assert_eq!(old, viewer(None, 1, "tv", Identity::default()));
        assert_eq!(serde_json::to_string(&old).unwrap(), text);
        assert!(!old.is_same_device(&old));
        let new = viewer(None, 1, "tv", Identity { cookie: Some(u64::MAX), ..Identity::default() });
        assert_eq!(serde_json::from_str::<Viewer>(&serde_json::to_string(&new).unwrap()).unwrap(), new);
    }
}
