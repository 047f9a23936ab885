//! Settings of the engine: what an operator may change, with defaults, and what is fixed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stream_profile::Delivery;

/// Longest time that a request for a slot is parked when nothing is free.
pub const LEASE_WAIT: Duration = Duration::from_secs(3);
/// Longest time that a closing upstream may take to say goodbye.
pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// A source out of step for longer is lost.
pub const SYNC_LOST_TIMEOUT: Duration = Duration::from_secs(1);
/// A programme clock further behind the wall clock than this is too slow to play.
pub const CLOCK_BEHIND_MAX: Duration = Duration::from_secs(2);
/// Between two chunks of filler in a gap.
pub const FILLER_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time that a new source may burst its past before it is played.
pub const BURST_MAX: Duration = Duration::from_millis(300);
/// Programme is handed on at least this often.
pub const CHUNK_TIME: Duration = Duration::from_millis(50);
/// Longest time that the answer to a manual switch may take.
pub const MANUAL_SWITCH_TIMEOUT: Duration = Duration::from_secs(20);
/// A client whose socket takes nothing for this long, while there is something to take, is gone.
pub const CLIENT_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a channel remembers that a candidate failed.
pub const CANDIDATE_MEMORY: Duration = Duration::from_secs(60);

/// Engine settings. Durations are seconds on the wire, with decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// To connect to a provider, names and TLS included.
    #[serde(with = "seconds")]
    pub connect_timeout: Duration,
    /// From the start of the dial to the first packet with programme in it.
    #[serde(with = "seconds")]
    pub first_packet_timeout: Duration,
    /// Without programme for this long, a source is lost.
    #[serde(with = "seconds")]
    pub stall_timeout: Duration,
    /// Over which time the speed of a source is judged.
    #[serde(with = "seconds")]
    pub buffering_timeout: Duration,
    /// How long a new source may take to a random-access point, before any picture will do.
    #[serde(with = "seconds")]
    pub random_access_wait: Duration,
    /// How long a viewer of a channel that does not play yet is kept waiting for an answer.
    #[serde(with = "seconds")]
    pub start_timeout: Duration,
    /// How long a channel looks for a source before it closes its viewers.
    #[serde(with = "seconds")]
    pub give_up_after: Duration,
    /// How long a channel goes on after its last viewer left.
    #[serde(with = "seconds")]
    pub channel_shutdown_delay: Duration,
    /// How far behind the newest packet a new viewer begins.
    #[serde(with = "seconds")]
    pub new_client_behind_seconds: Duration,
    /// How much of the past a channel keeps, in time …
    #[serde(with = "seconds")]
    pub ring_seconds: Duration,
    /// … and in bytes, whichever is less.
    pub ring_bytes: usize,
    /// But always the last whole group of pictures, up to this many bytes.
    pub ring_gop_bytes: usize,
    /// Bytes for the pasts of all channels together. `None` is a quarter of the memory.
    pub ring_budget_bytes: Option<u64>,
    /// A viewer that falls out of the past more often than this in a minute is disconnected.
    pub slow_client_limit: u32,
    /// After this much play on another stream, try to return to the first one. `None` is never.
    #[serde(with = "seconds::option")]
    pub return_to_preferred_after: Option<Duration>,
    pub at_limit: AtLimit,
    /// For streams and channels that do not say it themselves.
    pub default_stream_profile: Delivery,
}

/// What happens when a viewer changes channels and the account is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The same user's connection from the same device gives way to the new one.
    #[default]
    ReplaceOwn,
    /// What plays goes on playing.
    Refuse,
}

impl Default for Settings {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            connect_timeout: Duration::from_secs(3),
            first_packet_timeout: Duration::from_secs(4),
            stall_timeout: Duration::from_secs(5),
            buffering_timeout: Duration::from_secs(15),
            random_access_wait: Duration::from_secs(1),
            start_timeout: Duration::from_secs(15),
            give_up_after: Duration::from_secs(60),
            channel_shutdown_delay: Duration::from_secs(5),
            new_client_behind_seconds: Duration::from_secs(2),
            ring_seconds: Duration::from_secs(10),
            ring_bytes: 16 * MIB,
            ring_gop_bytes: 32 * MIB,
            ring_budget_bytes: None,
            slow_client_limit: 6,
            return_to_preferred_after: None,
            at_limit: AtLimit::default(),
            default_stream_profile: Delivery::default(),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {field} {reason}")]
pub struct SettingsError {
    /// Its name as in the file.
    pub field: &'static str,
    /// What is wrong with it; goes on after the name.
    pub reason: String,
}

/// Two chunks: less than that is not a past.
const RING_BYTES_MIN: usize = 128 * 1024;
/// Longest time until a program that reads a stream has written its first packet: it has to start, to connect, and
/// to look at what it gets.
pub const PROGRAM_START_TIMEOUT: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Settings {
    /// Says which setting cannot be used, and why. The first one, in the order of the fields.
    pub fn check(&self) -> Result<(), SettingsError> {
        above_zero("connect_timeout", self.connect_timeout)?;
        above_zero("first_packet_timeout", self.first_packet_timeout)?;
        above_zero("stall_timeout", self.stall_timeout)?;
        above_zero("buffering_timeout", self.buffering_timeout)?;
        at_most("random_access_wait", self.random_access_wait, HOUR)?;
        above_zero("start_timeout", self.start_timeout)?;
        above_zero("give_up_after", self.give_up_after)?;
        at_most("channel_shutdown_delay", self.channel_shutdown_delay, DAY)?;
        at_most("new_client_behind_seconds", self.new_client_behind_seconds, HOUR)?;
        above_zero("ring_seconds", self.ring_seconds)?;
        if self.new_client_behind_seconds >= self.ring_seconds {
            return Err(wrong("new_client_behind_seconds", "must be less than ring_seconds"));
        }
        at_least("ring_bytes", self.ring_bytes as u64, RING_BYTES_MIN as u64)?;
        if self.ring_gop_bytes < self.ring_bytes {
            return Err(wrong("ring_gop_bytes", "must not be less than ring_bytes"));
        }
        if let Some(budget) = self.ring_budget_bytes {
            at_least("ring_budget_bytes", budget, RING_BYTES_MIN as u64)?;
        }
        if self.slow_client_limit == 0 {
            return Err(wrong("slow_client_limit", "must be 1 or more"));
        }
        if self.default_stream_profile == Delivery::Command {
            return Err(wrong(
                "default_stream_profile",
                "must be proxy or redirect; a command is set in the core settings",
            ));
        }
        self.return_to_preferred_after.map_or(Ok(()), |it| above_zero("return_to_preferred_after", it))
    }
}

fn wrong(field: &'static str, reason: impl Into<String>) -> SettingsError {
    SettingsError { field, reason: reason.into() }
}

fn above_zero(field: &'static str, value: Duration) -> Result<(), SettingsError> {
    if value.is_zero() {
        return Err(wrong(field, "must be more than 0 seconds"));
    }
    at_most(field, value, HOUR)
}

fn at_most(field: &'static str, value: Duration, most: Duration) -> Result<(), SettingsError> {
    if value > most {
        Err(wrong(field, format!("must be at most {} seconds", most.as_secs())))
    } else {
        Ok(())
    }
}

fn at_least(field: &'static str, bytes: u64, least: u64) -> Result<(), SettingsError> {
    if bytes < least { Err(wrong(field, format!("must be at least {least} bytes"))) } else { Ok(()) }
}

/// Durations as seconds with decimals; for `#[serde(with = "seconds")]`.
pub mod seconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        checked(f64::deserialize(deserializer)?)
    }

    fn checked<E: Error>(seconds: f64) -> Result<Duration, E> {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| E::custom(format!("{seconds} is no number of seconds: it must be 0 or more")))
    }

    /// The same for a duration that may be absent.
    pub mod option {
        use super::*;

        pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => serializer.serialize_some(&value.as_secs_f64()),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
            Option::<f64>::deserialize(deserializer)?.map(checked).transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default settings with this one changed.
    fn with(field: &str, value: serde_json::Value) -> Result<Settings, serde_json::Error> {
        serde_json::from_value(serde_json::json!({ field: value }))
    }

    #[test]
    fn the_defaults_can_be_used() {
        assert_eq!(Settings::default().check(), Ok(()));
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), Settings::default());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let settings = Settings {
            connect_timeout: Duration::from_millis(250),
            return_to_preferred_after: Some(Duration::from_secs(90)),
            ring_budget_bytes: Some(1 << 30),
            at_limit: AtLimit::Refuse,
            default_stream_profile: Delivery::Redirect,
            ..Settings::default()
        };
        let text = serde_json::to_string(&settings).unwrap();
        assert!(text.contains(r#""connect_timeout":0.25"#), "{text}");
        assert!(text.contains(r#""at_limit":"refuse""#), "{text}");
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    }

    #[test]
    fn a_setting_that_does_not_exist_is_refused() {
        assert!(with("conect_timeout", 3.into()).unwrap_err().to_string().contains("conect_timeout"));
    }

    #[test]
    fn a_duration_that_is_none_is_refused() {
        for value in [serde_json::json!(-1), serde_json::json!(1e300), serde_json::json!("3s")] {
            assert!(with("stall_timeout", value.clone()).is_err(), "{value}");
            assert!(with("return_to_preferred_after", value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn a_setting_that_cannot_be_used_is_named_with_the_reason() {
        #[track_caller]
        fn check(field: &str, value: impl Into<serde_json::Value>, reason: &str) {
            let error = with(field, value.into()).unwrap().check().unwrap_err();
            assert_eq!(error.to_string(), format!("setting {field} {reason}"));
        }
        check("connect_timeout", 0, "must be more than 0 seconds");
        check("give_up_after", 0, "must be more than 0 seconds");
        check("return_to_preferred_after", 0, "must be more than 0 seconds");
        check("stall_timeout", 3601, "must be at most 3600 seconds");
        check("channel_shutdown_delay", 86401, "must be at most 86400 seconds");
        check("new_client_behind_seconds", 10, "must be less than ring_seconds");
        check("ring_bytes", 1000, "must be at least 131072 bytes");
        check("ring_gop_bytes", 1000, "must not be less than ring_bytes");
        check("ring_budget_bytes", 1000, "must be at least 131072 bytes");
        check("slow_client_limit", 0, "must be 1 or more");
        assert_eq!(with("channel_shutdown_delay", 0.into()).unwrap().check(), Ok(()), "at once is possible");
    }
}
