//! Which networks may use which part of the gateway, and which of them need no credentials.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Config;
use crate::http::network::Networks;

/// The networks of a class that always requires credentials.
static NO_NETWORKS: Networks = Networks::none();

/// A part of the gateway with its own networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkClass {
    /// The REST interface, the WebSocket and everything that belongs to no other class.
    Ui,
    Streams,
    /// The requests of player apps to an Xtream Codes panel.
    XcApi,
    /// Playlists and guides.
    M3uEpg,
    /// The emulation of a tuner.
    Tuner,
    Metrics,
}

/// The networks of each class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkAccess {
    pub ui: ClassNetworks,
    pub streams: ClassNetworks,
    pub xc_api: ClassNetworks,
    pub m3u_epg: ClassNetworks,
    pub tuner: ClassNetworks,
    pub metrics: ClassNetworks,
}

/// The networks of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassNetworks {
    /// Networks that may use this class, with or without credentials.
    pub connect: Networks,
    /// Those of them that need no credentials. `None` is the default of the class.
    pub anonymous: Option<Networks>,
}

impl Default for ClassNetworks {
    fn default() -> Self {
        ClassNetworks { connect: Networks::any(), anonymous: None }
    }
}

impl NetworkClass {
    pub(crate) const ALL: [Self; 6] =
        [Self::Ui, Self::Streams, Self::XcApi, Self::M3uEpg, Self::Tuner, Self::Metrics];

    /// Returns the class of a route by its path, with parameters in braces. `None` is the health check, which every
    /// network may use.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let mut segments = path.trim_matches('/').split('/');
        Some(match segments.next().unwrap_or_default() {
            "healthz" => return None,
            "metrics" => Self::Metrics,
            "playlist.m3u" | "output" | "get.php" | "xmltv.php" => Self::M3uEpg,
            "player_api.php" | "panel_api.php" => Self::XcApi,
            "hdhr" | "discover.json" | "lineup.json" | "lineup_status.json" | "device.xml" => Self::Tuner,
            "live" | "{user}" => Self::Streams,
            "proxy" if segments.nth(1) == Some("stream") => Self::Streams,
            _ => Self::Ui,
        })
    }

    /// Returns the name of its table in the configuration.
    fn key(self) -> &'static str {
        match self {
            Self::Ui => "ui",
            Self::Streams => "streams",
            Self::XcApi => "xc_api",
            Self::M3uEpg => "m3u_epg",
            Self::Tuner => "tuner",
            Self::Metrics => "metrics",
        }
    }

    /// Returns true if its requests can be answered without credentials at all.
    fn can_be_anonymous(self) -> bool {
        !matches!(self, Self::Ui | Self::XcApi)
    }
}

/// Names the thing that a client of the class asks for, in refusals.
impl fmt::Display for NetworkClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ui => "the interface",
            Self::Streams => "a stream",
            Self::XcApi => "the player interface",
            Self::M3uEpg => "a playlist",
            Self::Tuner => "the tuner",
            Self::Metrics => "the metrics",
        })
    }
}

impl Config {
    /// Returns the networks that may use a class.
    pub(crate) fn connect_networks(&self, class: NetworkClass) -> &Networks {
        &self.class_networks(class).connect
    }

    /// Returns the networks that need no credentials for a class, provided that they may use it.
    pub(crate) fn anonymous_networks(&self, class: NetworkClass) -> &Networks {
        self.class_networks(class).anonymous.as_ref().unwrap_or(match class {
            NetworkClass::Ui | NetworkClass::XcApi => &NO_NETWORKS,
            NetworkClass::Streams | NetworkClass::M3uEpg | NetworkClass::Tuner => &self.stream_networks,
            NetworkClass::Metrics => &self.metrics_networks,
        })
    }

    fn class_networks(&self, class: NetworkClass) -> &ClassNetworks {
        let access = &self.network_access;
        match class {
            NetworkClass::Ui => &access.ui,
            NetworkClass::Streams => &access.streams,
            NetworkClass::XcApi => &access.xc_api,
            NetworkClass::M3uEpg => &access.m3u_epg,
            NetworkClass::Tuner => &access.tuner,
            NetworkClass::Metrics => &access.metrics,
        }
    }

    /// Returns the key and the reason of a class that cannot be used without credentials but has networks for that.
    pub(super) fn wrong_anonymous_networks(&self) -> Option<(String, String)> {
        let wrong = NetworkClass::ALL
            .into_iter()
            .find(|it| !it.can_be_anonymous() && !self.anonymous_networks(*it).is_empty())?;
        let reason = format!("must be none, because {wrong} always requires credentials");
        Some((format!("network_access.{}.anonymous", wrong.key()), reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_the_class_of_its_surface() {
        for (path, expected) in [
            ("/", Some(NetworkClass::Ui)),
            ("/api/", Some(NetworkClass::Ui)),
            ("/api/channels/channels/{id}/", Some(NetworkClass::Ui)),
            ("/ws/", Some(NetworkClass::Ui)),
            ("/proxy/ts/status", Some(NetworkClass::Ui)),
            ("/proxy/ts/stop_client/{uuid}", Some(NetworkClass::Ui)),
            ("/proxy/ts/stream/{target}", Some(NetworkClass::Streams)),
            ("/live/{user}/{password}/{file}", Some(NetworkClass::Streams)),
            ("/{user}/{password}/{file}", Some(NetworkClass::Streams)),
            ("/player_api.php", Some(NetworkClass::XcApi)),
            ("/playlist.m3u", Some(NetworkClass::M3uEpg)),
            ("/xmltv.php", Some(NetworkClass::M3uEpg)),
            ("/hdhr/discover.json", Some(NetworkClass::Tuner)),
            ("/lineup.json", Some(NetworkClass::Tuner)),
            ("/metrics", Some(NetworkClass::Metrics)),
            ("/healthz", None),
            ("/something/new", Some(NetworkClass::Ui)),
        ] {
            assert_eq!(NetworkClass::of(path), expected, "{path}");
        }
    }

    #[test]
    fn stream_networks_and_metrics_networks_are_the_defaults_of_their_classes() {
        let mut config = Config {
            stream_networks: "10.0.0.0/8".parse().unwrap(),
            metrics_networks: "10.1.0.0/16".parse().unwrap(),
            ..Config::default()
        };
        config.network_access.tuner.anonymous = Some("10.2.0.0/16".parse().unwrap());
        let text = |class| config.anonymous_networks(class).to_string();
        assert_eq!(
            NetworkClass::ALL.map(text),
            ["none", "10.0.0.0/8", "none", "10.0.0.0/8", "10.2.0.0/16", "10.1.0.0/16"]
        );
        assert!(NetworkClass::ALL.iter().all(|it| config.connect_networks(*it).to_string() == "any"));
    }

    #[test]
    fn a_class_that_always_requires_credentials_has_no_networks_without() {
        for (class, key) in [(0, "network_access.ui.anonymous"), (1, "network_access.xc_api.anonymous")] {
            let mut config = Config::default();
            let networks = [&mut config.network_access.ui, &mut config.network_access.xc_api];
            let [ui, xc_api] = networks;
            *[ui, xc_api][class] =
                ClassNetworks { anonymous: Some(Networks::any()), ..ClassNetworks::default() };
            assert_eq!(config.wrong_anonymous_networks().map(|it| it.0).as_deref(), Some(key));
        }
        assert_eq!(Config::default().wrong_anonymous_networks(), None);
    }
}
