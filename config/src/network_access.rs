//! Which networks may use which part of the gateway, and which of them need no credentials.

use std::fmt;

use domain::user::User;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Config, Networks};

/// The networks of a class that always requires credentials.
static NO_NETWORKS: Networks = Networks::none();

/// A part of the gateway with its own networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkClass {
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

/// Returns whether a path below `/api/` belongs to playlists and guides: these themselves, and the logos in them, which
/// players fetch from wherever they fetch the playlist.
fn is_in_playlists(path: &str) -> bool {
    const LOGO: &str = "/api/channels/logos/{id}/cache/";
    const LOGO_VERSION: &str = "/api/channels/logos/{id}/cache/{version}/";
    const POSTER: &str = "/api/epg/programs/{program}/poster/";
    matches!(path, "/api/playlist.m3u" | LOGO | LOGO_VERSION | POSTER) || is_guide(path)
}

/// Returns whether a path is that of a guide.
pub fn is_guide(path: &str) -> bool {
    ["/xmltv.php", "/output/epg", "/api/epg.xml"].iter().any(|it| path.starts_with(it))
}

impl NetworkClass {
    pub const ALL: [Self; 6] =
        [Self::Ui, Self::Streams, Self::XcApi, Self::M3uEpg, Self::Tuner, Self::Metrics];

    /// Returns the class of a route by its path, with parameters in braces. `None` is the health check, which every
    /// network may use.
    pub fn from_path(path: &str) -> Option<Self> {
        let mut segments = path.trim_matches('/').split('/');
        Some(match segments.next().unwrap_or_default() {
            "healthz" | "readyz" => return None,
            "metrics" => Self::Metrics,
            "playlist.m3u" | "output" | "get.php" | "xmltv.php" => Self::M3uEpg,
            "api" if is_in_playlists(path) => Self::M3uEpg,
            "player_api.php" | "panel_api.php" => Self::XcApi,
            "tuner" | "hdhr" | "discover.json" | "device.xml" => Self::Tuner,
            "lineup.json" | "lineup.m3u" | "lineup.post" | "lineup.xml" | "lineup_status.json" => Self::Tuner,
            "auto" | "live" | "movie" | "series" | "streaming" | "timeshift" | "{user}" => Self::Streams,
            "proxy"
                if ["/proxy/vod/{", "/proxy/hls/", "/proxy/catchup/{"]
                    .iter()
                    .any(|it| path.starts_with(it))
                    || segments.nth(1) == Some("stream") =>
            {
                Self::Streams
            }
            _ => Self::Ui,
        })
    }

    /// Returns the name of its table in the configuration.
    pub(super) fn key(self) -> &'static str {
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
            Self::M3uEpg => "playlists and guides",
            Self::Tuner => "the tuner",
            Self::Metrics => "the metrics",
        })
    }
}

/// The networks from which one user may use each class. A class without networks is not limited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserNetworks(Vec<(NetworkClass, Networks)>);

/// The custom property of a user that has them.
pub const ALLOWED_NETWORKS: &str = "allowed_networks";

impl UserNetworks {
    /// Reads the property of a user. Networks that cannot be read contain nobody: an earlier version did not check them.
    pub fn from_user(user: &User) -> Self {
        let Some(value) = user.custom_properties.get(ALLOWED_NETWORKS) else { return Self::default() };
        Self::read(value).unwrap_or_else(|_| {
            let members = value.as_object().cloned().unwrap_or_default();
            let class =
                |key: &str| NetworkClass::ALL.into_iter().find(|it| it.key().eq_ignore_ascii_case(key));
            let all = members.iter().filter_map(|(key, value)| {
                let networks = networks_of(value).unwrap_or(Some(Networks::none()));
                Some((class(key)?, networks?))
            });
            Self(all.collect())
        })
    }

    /// Reads an object with a list of networks, or one text with commas, for each class.
    ///
    /// # Errors
    /// Returns the reason why the value is invalid, for the client.
    pub fn read(value: &Value) -> Result<Self, String> {
        let members =
            value.as_object().ok_or("must be an object with a list of networks for each surface")?;
        let mut all = Vec::new();
        for (key, value) in members {
            let class = NetworkClass::ALL.into_iter().find(|it| it.key().eq_ignore_ascii_case(key));
            let class = class.ok_or_else(|| {
                let keys = NetworkClass::ALL.map(|it| it.key().to_ascii_uppercase()).join(", ");
                format!("unknown surface \"{key}\"; choose from {keys}")
            })?;
            if let Some(networks) = networks_of(value).map_err(|it| format!("{key}: {it}"))? {
                all.push((class, networks));
            }
        }
        Ok(Self(all))
    }

    /// Returns the networks to which a class is limited.
    pub fn limit(&self, class: NetworkClass) -> Option<&Networks> {
        self.0.iter().find(|it| it.0 == class).map(|it| &it.1)
    }
}

/// Returns the networks of a list or of a text with commas; `None` if it has none.
fn networks_of(value: &Value) -> Result<Option<Networks>, String> {
    let read = |text: &str| match text.trim() {
        "none" => Err("`none` is not a network; deactivate the user instead".to_owned()),
        text => text.parse::<Networks>().map_err(|it| it.to_string()),
    };
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.len() > USER_NETWORKS_MAX => {
            return Err(format!("more than {USER_NETWORKS_MAX} networks"));
        }
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.ok_or("must be a list of texts, such as 192.168.0.0/16")?.join(",")
        }
        _ => return Err("must be a list of networks, such as 192.168.0.0/16".to_owned()),
    };
    Ok(Some(read(&text)?).filter(|it| !it.is_empty()))
}

/// Maximum number of networks for one class of one user.
const USER_NETWORKS_MAX: usize = 100;

impl Config {
    /// Returns the networks that may use a class.
    pub fn connect_networks(&self, class: NetworkClass) -> &Networks {
        &self.class_networks(class).connect
    }

    /// Returns the networks that need no credentials for a class, provided that they may use it.
    pub fn anonymous_networks(&self, class: NetworkClass) -> &Networks {
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
    use domain::ids::UserId;
    use domain::user::UserLevel;
    use serde_json::json;

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
            ("/proxy/catchup/{uuid}", Some(NetworkClass::Streams)),
            ("/proxy/catchup/stop_client", Some(NetworkClass::Ui)),
            ("/timeshift/{user}/{password}/{duration}/{start}/{stream}", Some(NetworkClass::Streams)),
            ("/streaming/timeshift.php", Some(NetworkClass::Streams)),
            ("/proxy/ts/stream/{target}", Some(NetworkClass::Streams)),
            ("/live/{user}/{password}/{file}", Some(NetworkClass::Streams)),
            ("/{user}/{password}/{file}", Some(NetworkClass::Streams)),
            ("/player_api.php", Some(NetworkClass::XcApi)),
            ("/playlist.m3u", Some(NetworkClass::M3uEpg)),
            ("/xmltv.php", Some(NetworkClass::M3uEpg)),
            ("/output/epg/{profile}", Some(NetworkClass::M3uEpg)),
            ("/api/playlist.m3u", Some(NetworkClass::M3uEpg)),
            ("/api/epg.xml.gz", Some(NetworkClass::M3uEpg)),
            ("/api/channels/logos/{id}/cache/", Some(NetworkClass::M3uEpg)),
            ("/api/channels/logos/{id}/cache/{version}/", Some(NetworkClass::M3uEpg)),
            ("/api/epg/programs/{program}/poster/", Some(NetworkClass::M3uEpg)),
            ("/api/channels/logos/{id}/", Some(NetworkClass::Ui)),
            ("/hdhr/discover.json", Some(NetworkClass::Tuner)),
            ("/tuner/{profile}/lineup.json", Some(NetworkClass::Tuner)),
            ("/lineup.json", Some(NetworkClass::Tuner)),
            ("/lineup.post", Some(NetworkClass::Tuner)),
            ("/auto/{number}", Some(NetworkClass::Streams)),
            ("/metrics", Some(NetworkClass::Metrics)),
            ("/healthz", None),
            ("/readyz", None),
            ("/something/new", Some(NetworkClass::Ui)),
        ] {
            assert_eq!(NetworkClass::from_path(path), expected, "{path}");
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
    fn the_networks_of_a_user_limit_the_surfaces_that_have_some() {
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        let mut limits = |value: Value| {
            user.custom_properties.insert(ALLOWED_NETWORKS.to_owned(), value);
            let networks = UserNetworks::from_user(&user);
            NetworkClass::ALL.map(|it| networks.limit(it).map_or("-".to_owned(), Networks::to_string))
        };
        let value = json!({ "UI": ["10.0.0.0/8", "private"], "streams": "10.0.0.1, ::1", "M3U_EPG": [] });
        let expected = ["10.0.0.0/8, private", "10.0.0.1/32, ::1/128", "-", "-", "-", "-"];
        assert_eq!(limits(value), expected);
        // Earlier versions stored anything.
        assert_eq!(limits(json!(7)), ["-"; 6]);
        let broken = json!({ "UI": ["nonsense"], "XC_API": 7, "STREAMS": ["10.0.0.1"], "else": [] });
        assert_eq!(limits(broken), ["none", "10.0.0.1/32", "none", "-", "-", "-"]);
    }

    #[test]
    fn invalid_networks_of_a_user_are_refused_with_the_reason() {
        for (value, reason) in [
            (json!([]), "must be an object"),
            (json!({ "WEB": [] }), "unknown surface \"WEB\"; choose from UI, STREAMS"),
            (json!({ "UI": 7 }), "UI: must be a list of networks"),
            (json!({ "UI": [7] }), "UI: must be a list of texts"),
            (json!({ "UI": ["10.0.0.0/33"] }), "UI: invalid network `10.0.0.0/33`"),
            (json!({ "UI": "none" }), "UI: `none` is not a network"),
            (json!({ "UI": vec!["::1"; 101] }), "UI: more than 100 networks"),
        ] {
            let refused = UserNetworks::read(&value).unwrap_err();
            assert!(refused.starts_with(reason), "{value}: {refused}");
        }
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
