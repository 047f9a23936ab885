//! Configuration: file, environment and arguments are merged into one checked value before any port is bound.
//!
//! Every key can be set in all three places. Arguments override the environment, which overrides the file, which
//! overrides the defaults.
//!
//! ```text
//! [engine] stall_timeout = 5           in the file
//! HEADWATER_ENGINE_STALL_TIMEOUT=5     in the environment
//! --set engine.stall_timeout=5         as an argument
//! ```

mod args;
mod cluster;
mod data_folder;
mod http;
mod integrations;
mod layers;
mod log_level;
mod network_access;
mod network_rules;
mod networks;
mod plugins;
mod programs;
mod public_url;
mod values;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use ::http::HeaderValue;
use actors::VOD_INTERVAL;
use domain::discovery::{hdhomerun, ssdp};
use domain::settings::{Settings, seconds};
use serde::{Deserialize, Serialize};

pub use self::args::{
    Args, ClusterCommand, Command, ExportCommand, KeysCommand, NewBackup, NewImport, NewImportFrom,
    NewPassword, NewStrmExport, NewUser, PASSWORD_VARIABLE, RestoreArgs, SOURCE_API_KEY_VARIABLE,
    SOURCE_PASSWORD_VARIABLE, StoreCommand, UserCommand,
};
pub use self::cluster::ClusterConfig;
pub use self::cluster::{NODE_PORT, check_name as check_node_name};
pub use self::data_folder::DataFolder;
pub use self::http::{AllowedOrigins, Http};
pub use self::integrations::Integrations;
pub use self::layers::by_table;
pub use self::layers::{ConfigError, ConfigValue, Loaded, load};
use self::log_level::wrong_configured_level;
pub use self::log_level::{configured_targets, is_own_module, set_targets, wrong_level};
pub use self::network_access::{ALLOWED_NETWORKS, NetworkClass, UserNetworks, is_guide};
pub use self::network_access::{ClassNetworks, NetworkAccess};
pub use self::network_rules::{FOREIGN_NAMES, NetworkRules, WrongNetworks};
pub use self::networks::client_network;
pub use self::networks::{NetworkError, Networks};
pub use self::plugins::Plugins;
pub use self::programs::Programs;
pub use self::public_url::{PublicUrl, PublicUrlError};
pub use self::values::{ContainerProxy, ListSource, Listen, LogFormat};

/// Settings that are fixed when the gateway starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address of the admin API.
    pub api_listen: Listen,
    /// Address for players.
    pub player_listen: Listen,
    /// Folder of the persistent data: the store and, beside it, its key file.
    pub data_dir: PathBuf,
    /// Folder of recordings; by default `recordings` in the data folder. Cannot be changed at run time.
    pub recordings_dir: Option<PathBuf>,
    /// Folder of the own time-shift; by default `timeshift` in the data folder. Cannot be changed at run time.
    pub timeshift_dir: Option<PathBuf>,
    /// Address under which clients reach the gateway. Without it, addresses are built from each request.
    pub public_url: Option<PublicUrl>,
    /// Default User-Agent for requests to providers.
    pub user_agent: Option<String>,
    /// Networks that get streams, playlists and the tuner without credentials, unless `network_access` says otherwise.
    pub stream_networks: Networks,
    /// Networks that may read `/metrics` without credentials, unless `network_access` says otherwise.
    pub metrics_networks: Networks,
    /// Reverse proxies that name their clients in `X-Forwarded-For` or `Forwarded`.
    pub trusted_proxies: Networks,
    pub container_proxy: ContainerProxy,
    pub network_access: NetworkAccess,
    pub http: Http,
    pub discovery: Discovery,
    pub log: Log,
    pub limits: Limits,
    pub auth: AuthLimits,
    pub engine: Settings,
    pub play: Play,
    pub programs: Programs,
    pub integrations: Integrations,
    pub plugins: Plugins,
    pub cluster: ClusterConfig,
}

/// How media servers find the emulated tuners by themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Discovery {
    pub enabled: bool,
    /// Address of the network interface for multicast; `0.0.0.0` leaves the choice to the system. With a loopback
    /// address, only programs of the same machine are answered.
    pub interface: Ipv4Addr,
    /// UDP port for the discovery of HDHomeRun devices.
    pub hdhomerun_port: u16,
    /// UDP port for the discovery of UPnP devices.
    pub ssdp_port: u16,
}

impl Default for Discovery {
    fn default() -> Self {
        Discovery {
            enabled: false,
            interface: Ipv4Addr::UNSPECIFIED,
            hdhomerun_port: hdhomerun::PORT,
            ssdp_port: ssdp::PORT,
        }
    }
}

/// Level and format of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a list such as `info,media=debug`.
    pub level: String,
    pub format: LogFormat,
}

/// Limits of the HTTP server, of playlist downloads and of the disk. For numbers of connections, `0` means no limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of open connections on all ports together.
    pub connections_max: usize,
    /// Maximum number of open connections from one IPv4 address or one IPv6 /64.
    pub connections_per_address_max: usize,
    /// Maximum number of open WebSockets of one user.
    pub websockets_per_user_max: usize,
    /// Maximum number of simultaneous viewers without credentials; `0` means no limit.
    pub anonymous_viewers_max: u32,
    /// Time limit for a client to send a request head.
    #[serde(with = "seconds")]
    pub header_timeout: Duration,
    /// Time limit for open responses to finish after the gateway begins to stop.
    #[serde(with = "seconds")]
    pub drain_timeout: Duration,
    /// Time for which viewers of live channels keep their streams after a restart, or while the node is drained; 0 ends them.
    #[serde(with = "seconds")]
    pub drain_time: Duration,
    /// Maximum size of a request body, in bytes.
    pub body_bytes_max: usize,
    /// Time limit for receiving a request body.
    #[serde(with = "seconds")]
    pub body_timeout: Duration,
    /// Maximum size of a playlist, in bytes.
    pub playlist_bytes_max: u64,
    /// Time limit for downloading a whole playlist.
    #[serde(with = "seconds")]
    pub playlist_timeout: Duration,
    /// Time between two questions about one film or series to the panel of an account; 0 is none.
    #[serde(with = "seconds")]
    pub vod_request_interval: Duration,
    /// Memory for the beginnings and ends of films, in bytes.
    pub film_cache_bytes: usize,
    /// Disk space for the beginnings and ends of films, in bytes; `0` keeps none.
    pub film_disk_cache_bytes: u64,
    /// Maximum size of a guide as it is downloaded, in bytes.
    pub guide_bytes_max: u64,
    /// Maximum size of an unpacked guide, in bytes.
    pub guide_unpacked_bytes_max: u64,
    /// Time limit for downloading a whole guide.
    #[serde(with = "seconds")]
    pub guide_timeout: Duration,
    /// Time after which an operation of the disk of the store counts as hanging, and writes are refused until it returns.
    #[serde(with = "seconds")]
    pub disk_timeout: Duration,
}

/// Limits of logins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthLimits {
    /// Maximum delay of the response to a failed login. The first few failures are not delayed; after that the delay
    /// doubles.
    #[serde(with = "seconds")]
    pub failure_delay_max: Duration,
    /// Time for which a verified password is cached, to save the expensive hash. Zero disables the cache.
    #[serde(with = "seconds")]
    pub remember_login: Duration,
}

/// Settings of `headwater play`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Play {
    /// Files and URLs of playlists. Each becomes its own account.
    pub lists: Vec<ListSource>,
    /// Maximum number of simultaneous streams per account; 0 means no limit.
    pub max_streams: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            api_listen: Listen::everywhere(8000),
            player_listen: Listen::everywhere(9191),
            data_dir: PathBuf::from("/var/lib/headwater"),
            recordings_dir: None,
            timeshift_dir: None,
            public_url: None,
            user_agent: None,
            stream_networks: Networks::local(),
            metrics_networks: Networks::loopback(),
            trusted_proxies: Networks::none(),
            container_proxy: ContainerProxy::Detect,
            network_access: NetworkAccess::default(),
            http: Http::default(),
            discovery: Discovery::default(),
            log: Log::default(),
            limits: Limits::default(),
            auth: AuthLimits::default(),
            engine: Settings::default(),
            play: Play::default(),
            programs: Programs::default(),
            integrations: Integrations::default(),
            plugins: Plugins::default(),
            cluster: ClusterConfig::default(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Log { level: "info".to_owned(), format: LogFormat::Text }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 8192,
            connections_per_address_max: 1024,
            websockets_per_user_max: 32,
            anonymous_viewers_max: 0,
            header_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(5),
            drain_time: Duration::from_secs(2 * 3_600),
            body_bytes_max: 8 << 20,
            body_timeout: Duration::from_secs(30),
            playlist_bytes_max: 512 << 20,
            playlist_timeout: Duration::from_secs(120),
            vod_request_interval: VOD_INTERVAL,
            film_cache_bytes: 64 << 20,
            film_disk_cache_bytes: 0,
            guide_bytes_max: 1 << 30,
            guide_unpacked_bytes_max: 8 << 30,
            guide_timeout: Duration::from_secs(15 * 60),
            disk_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for AuthLimits {
    fn default() -> Self {
        AuthLimits { failure_delay_max: Duration::from_secs(10), remember_login: Duration::from_secs(600) }
    }
}

impl Config {
    /// Returns the folder of recordings.
    pub fn recordings_folder(&self) -> PathBuf {
        self.recordings_dir.clone().unwrap_or_else(|| self.data_dir.join("recordings"))
    }

    /// Returns the folder of the own time-shift.
    pub fn timeshift_folder(&self) -> PathBuf {
        self.timeshift_dir.clone().unwrap_or_else(|| self.data_dir.join("timeshift"))
    }

    /// Checks ranges, and values that contradict each other.
    fn check(&self) -> Result<(), ConfigError> {
        self.engine.check().map_err(|error| ConfigError::Value {
            key: format!("engine.{}", error.field),
            reason: error.reason,
        })?;
        let limits = &self.limits;
        for (key, time) in [
            ("limits.header_timeout", limits.header_timeout),
            ("limits.body_timeout", limits.body_timeout),
            ("limits.playlist_timeout", limits.playlist_timeout),
            ("limits.guide_timeout", limits.guide_timeout),
            ("limits.disk_timeout", limits.disk_timeout),
            ("plugins.answer_timeout", self.plugins.answer_timeout),
        ] {
            if time.is_zero() {
                return Err(wrong(key, "must be more than 0 seconds"));
            }
        }
        for (key, is_zero) in [
            ("limits.body_bytes_max", limits.body_bytes_max == 0),
            ("limits.playlist_bytes_max", limits.playlist_bytes_max == 0),
            ("limits.guide_bytes_max", limits.guide_bytes_max == 0),
            ("limits.guide_unpacked_bytes_max", limits.guide_unpacked_bytes_max == 0),
        ] {
            if is_zero {
                return Err(wrong(key, "must be more than 0 bytes"));
            }
        }
        if let Some(reason) = wrong_configured_level(&self.log.level) {
            return Err(wrong("log.level", reason));
        }
        if self.trusted_proxies.has_everyone() {
            let reason = "must name the proxies; with every address, every client could claim any address";
            return Err(wrong("trusted_proxies", reason));
        }
        if let Some((key, reason)) = self.wrong_anonymous_networks() {
            return Err(ConfigError::Value { key, reason });
        }
        self.programs
            .check(&self.data_dir)
            .map_err(|(key, reason)| ConfigError::Value { key: format!("programs.{key}"), reason })?;
        self.integrations
            .check()
            .map_err(|(key, reason)| ConfigError::Value { key: format!("integrations.{key}"), reason })?;
        self.cluster
            .check()
            .map_err(|(key, reason)| ConfigError::Value { key: format!("cluster.{key}"), reason })?;
        if let Some(agent) = &self.user_agent
            && HeaderValue::from_str(agent).is_err()
        {
            return Err(wrong("user_agent", "cannot be sent in a header"));
        }
        Ok(())
    }
}

fn wrong(key: &str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
