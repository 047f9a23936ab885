//! Configuration: file, environment and arguments become one typed value before any port is bound.
//!
//! Every key can stand in all three places; what stands further right wins:
//! default, file, environment, arguments.
//!
//! ```text
//! [engine] stall_timeout = 5      in the file
//! HEADWATER_ENGINE_STALL_TIMEOUT=5     in the environment
//! --set engine.stall_timeout=5         as an argument
//! ```

mod args;
mod layers;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use domain::settings::{Settings, seconds};
use serde::{Deserialize, Serialize};

pub use self::args::{Args, Command, NewImport, NewUser, PASSWORD_VARIABLE, StoreCommand, UserCommand};
pub use self::layers::{ConfigError, Loaded, load};
pub use self::values::{ListSource, Listen, LogFormat};
pub use crate::http::network::{NetworkError, Networks};

/// Everything that is decided before the gateway starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where administrators' programs call.
    pub api_listen: Listen,
    /// Where players call.
    pub player_listen: Listen,
    /// Where what must survive a restart is kept: the store and, beside it, its key file.
    pub data_dir: PathBuf,
    /// What we call ourselves at providers whose playlist does not say it.
    pub user_agent: Option<String>,
    /// From where streams and playlists may be had without credentials.
    pub stream_networks: Networks,
    /// From where `/metrics` may be read.
    pub metrics_networks: Networks,
    pub log: Log,
    pub limits: Limits,
    pub auth: AuthLimits,
    pub engine: Settings,
    pub play: Play,
}

/// What is logged, and how it looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a list such as `info,media=debug`.
    pub level: String,
    pub format: LogFormat,
}

/// Limits of the front door. `0` is no limit, where a number counts connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Open connections, of all ports together.
    pub connections_max: usize,
    /// Open connections from one address (one /64 of IPv6).
    pub connections_per_address_max: usize,
    /// How long a client may take to send the head of a request.
    #[serde(with = "seconds")]
    pub header_timeout: Duration,
    /// How long open answers may take to end once the gateway is told to stop.
    #[serde(with = "seconds")]
    pub drain_timeout: Duration,
    /// The largest body of a request that is read, in bytes.
    pub body_bytes_max: usize,
    /// How long the body of a request may take to arrive.
    #[serde(with = "seconds")]
    pub body_timeout: Duration,
    /// The largest playlist that is read, in bytes.
    pub playlist_bytes_max: u64,
    /// How long a playlist may take to arrive, whole.
    #[serde(with = "seconds")]
    pub playlist_timeout: Duration,
}

/// How people log in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthLimits {
    /// The longest that the answer to a failed login is held back. The first few are not, and then longer and longer.
    #[serde(with = "seconds")]
    pub failure_delay_max: Duration,
    /// How long a good login with a password is remembered, so that the next one costs nothing. Zero: not at all.
    #[serde(with = "seconds")]
    pub remember_login: Duration,
}

/// What `headwater play` plays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Play {
    /// Files and addresses of playlists. Each is an account of its own.
    pub lists: Vec<ListSource>,
    /// How many streams each account may play at once; 0 is no limit.
    pub max_streams: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            api_listen: Listen::everywhere(8000),
            player_listen: Listen::everywhere(9191),
            data_dir: PathBuf::from("/var/lib/headwater"),
            user_agent: None,
            stream_networks: Networks::at_home(),
            metrics_networks: Networks::at_home(),
            log: Log::default(),
            limits: Limits::default(),
            auth: AuthLimits::default(),
            engine: Settings::default(),
            play: Play::default(),
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
            header_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(5),
            body_bytes_max: 8 << 20,
            body_timeout: Duration::from_secs(30),
            playlist_bytes_max: 512 << 20,
            playlist_timeout: Duration::from_secs(120),
        }
    }
}

impl Default for AuthLimits {
    fn default() -> Self {
        AuthLimits { failure_delay_max: Duration::from_secs(10), remember_login: Duration::from_secs(600) }
    }
}

impl Config {
    /// What no single value shows: ranges, and values that do not go together.
    fn check(&self) -> Result<(), ConfigError> {
        self.engine.check().map_err(|error| ConfigError::Value {
            key: format!("engine.{}", error.field),
            reason: error.reason,
        })?;
        if self.limits.header_timeout.is_zero() {
            let reason = "must be more than 0 seconds".to_owned();
            return Err(ConfigError::Value { key: "limits.header_timeout".to_owned(), reason });
        }
        if let Err(error) = self.log.level.parse::<tracing_subscriber::filter::Targets>() {
            return Err(ConfigError::Value {
                key: "log.level".to_owned(),
                reason: format!("is no level: {error}"),
            });
        }
        if let Some(agent) = &self.user_agent
            && http::HeaderValue::from_str(agent).is_err()
        {
            let reason = "cannot be sent in a header".to_owned();
            return Err(ConfigError::Value { key: "user_agent".to_owned(), reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
