//! Settings of the engine: those that an operator can configure, with their defaults, and the fixed ones.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stream_profile::Delivery;
use crate::udp_output::is_interface;
use crate::user_limits::UserLimits;

/// Longest time for which a request for a slot waits when none is free.
pub const LEASE_WAIT: Duration = Duration::from_secs(3);
/// The same for a device that says that all its connections are in use.
pub const TOLD_WAIT: Duration = Duration::from_millis(800);
/// Longest time for which an upstream may take to close its connection.
pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// A source whose programme clock is further behind the wall clock than this is too slow to play.
pub const CLOCK_BEHIND_MAX: Duration = Duration::from_secs(2);
/// Longest time for which a new source may send a burst of past data before it is played.
pub const BURST_MAX: Duration = Duration::from_millis(300);
/// Longest wait for the picture of a new source, while its sound or the source before it plays.
pub const PICTURE_WAIT_MAX: Duration = Duration::from_secs(12);
/// Longest time for which a new source is read beside the one that plays, until the output can continue with it.
pub const PREPARE_TIMEOUT: Duration = Duration::from_secs(14);
/// Longest time until received packets are handed to the ring.
pub const CHUNK_TIME: Duration = Duration::from_millis(50);
/// Longest time until a manual switch is answered.
pub const MANUAL_SWITCH_TIMEOUT: Duration = Duration::from_secs(20);
/// A client whose socket accepts no data for this long, while data is waiting, is disconnected.
pub const CLIENT_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which a channel remembers that a candidate failed.
pub const CANDIDATE_MEMORY: Duration = Duration::from_secs(60);

/// Engine settings. Durations are seconds on the wire, with decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Timeout for connecting to a provider, including name resolution and TLS.
    #[serde(with = "seconds")]
    pub connect_timeout: Duration,
    /// Timeout from the start of the connection to the first packet with programme data.
    #[serde(with = "seconds")]
    pub first_packet_timeout: Duration,
    /// A source is considered lost after this long without programme data.
    #[serde(with = "seconds")]
    pub stall_timeout: Duration,
    /// After this long without programme data, another stream is opened beside a source that plays, if a slot is free.
    /// A source that usually pauses for longer is given more time.
    #[serde(with = "seconds")]
    pub silence_suspected_after: Duration,
    /// The picture of a source is considered lost after this much of its programme without one, while the rest goes on; a
    /// source whose pictures come less often gets more time. 0 turns it off.
    #[serde(with = "seconds")]
    pub picture_timeout: Duration,
    /// The same for all sound of a source. Silent sound is sound.
    #[serde(with = "seconds")]
    pub sound_timeout: Duration,
    /// Time over which the speed of a source is measured.
    #[serde(with = "seconds")]
    pub buffering_timeout: Duration,
    /// Time for which a new source is searched for a random-access point before it plays from any picture.
    #[serde(with = "seconds")]
    pub random_access_wait: Duration,
    /// A new source may repeat this much of the programme after a loss, so that it begins at a random-access point.
    #[serde(with = "seconds")]
    pub start_lead: Duration,
    /// Time for which a client waits for an answer while the channel does not play yet.
    #[serde(with = "seconds")]
    pub start_timeout: Duration,
    /// Time for which a channel looks for a source before it disconnects its clients.
    #[serde(with = "seconds")]
    pub give_up_after: Duration,
    /// Time for which a channel keeps running after its last client left.
    #[serde(with = "seconds")]
    pub channel_shutdown_delay: Duration,
    /// Distance from the newest packet at which a new client starts.
    #[serde(with = "seconds")]
    pub new_client_behind_seconds: Duration,
    /// Amount of past data that a channel keeps, in time …
    #[serde(with = "seconds")]
    pub ring_seconds: Duration,
    /// … and in bytes, whichever limit is reached first.
    pub ring_bytes: usize,
    /// The last whole group of pictures is always kept, up to this many bytes.
    pub ring_gop_bytes: usize,
    /// Maximum lead over its own clock with which a source is read that is faster than real time, such as a recording on
    /// a web server.
    #[serde(with = "seconds")]
    pub recording_lead_seconds: Duration,
    /// Maximum height of the picture of an HLS stream that is offered in several variants. `None` is any.
    pub hls_height_max: Option<u32>,
    /// Maximum bit rate of an HLS stream that is offered in several variants. `None` is any.
    pub hls_bits_per_second_max: Option<u64>,
    /// Memory for the past data of all channels together, in bytes. `None` is a quarter of the memory.
    pub ring_budget_bytes: Option<u64>,
    /// A client that falls behind the kept data more often than this within a minute is disconnected.
    pub slow_client_limit: u32,
    /// Playing time on another stream after which a return to the first one is tried. `None` disables returning.
    #[serde(with = "seconds::option")]
    pub return_to_preferred_after: Option<Duration>,
    pub at_limit: AtLimit,
    /// Delivery of streams and channels without a stream profile.
    pub default_stream_profile: Delivery,
    /// Maximum number of programs that run at the same time for output profiles; one for all viewers of a channel with
    /// the same output profile. 0 runs none.
    pub transcoders_max: u32,
    /// Name or address of the network interface on which multicast groups are received whose address names none. `None`
    /// leaves the choice to the system.
    pub multicast_interface: Option<String>,
    /// Size of the receive buffer of each UDP or RTP source, in bytes. The system may limit it.
    pub udp_receive_buffer_bytes: usize,
    /// The rules for a user who reaches the limit of streams. Set in the core settings only.
    #[serde(skip)]
    pub user_limits: UserLimits,
}

/// Behaviour when a viewer changes channels and the account is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The same user's connection from the same device is replaced by the new one.
    #[default]
    ReplaceOwn,
    /// The running connection is kept, and the new one is refused.
    Refuse,
}

impl Default for Settings {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            connect_timeout: Duration::from_secs(3),
            first_packet_timeout: Duration::from_secs(4),
            stall_timeout: Duration::from_secs(5),
            silence_suspected_after: Duration::from_millis(1_500),
            picture_timeout: Duration::from_secs(5),
            sound_timeout: Duration::from_secs(10),
            buffering_timeout: Duration::from_secs(15),
            random_access_wait: Duration::from_secs(1),
            start_lead: Duration::from_secs(2),
            start_timeout: Duration::from_secs(15),
            give_up_after: Duration::from_secs(60),
            channel_shutdown_delay: Duration::from_secs(5),
            new_client_behind_seconds: Duration::from_secs(2),
            ring_seconds: Duration::from_secs(10),
            ring_bytes: 16 * MIB,
            ring_gop_bytes: 32 * MIB,
            recording_lead_seconds: Duration::from_secs(25),
            hls_height_max: None,
            hls_bits_per_second_max: None,
            ring_budget_bytes: None,
            slow_client_limit: 6,
            return_to_preferred_after: None,
            at_limit: AtLimit::default(),
            default_stream_profile: Delivery::default(),
            transcoders_max: 4,
            multicast_interface: None,
            udp_receive_buffer_bytes: 4 * MIB,
            user_limits: UserLimits::default(),
        }
    }
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {field} {reason}")]
pub struct SettingsError {
    /// Its name in the configuration file.
    pub field: &'static str,
    /// The reason, worded to follow the name.
    pub reason: String,
}

/// The size of two chunks, the least amount of past data that makes sense.
const RING_BYTES_MIN: usize = 128 * 1024;
/// The sizes of a receive buffer that make sense: some tens of datagrams, and some seconds of a fast stream.
const UDP_BUFFER_BYTES_MIN: usize = 64 * 1024;
const UDP_BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The largest number of transcoders that makes sense on one machine.
const TRANSCODERS_MOST: u32 = 1_000;
/// Longest time until a program that reads a stream writes its first packet: it has to start, connect and analyse its
/// input.
pub const PROGRAM_START_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that a new source may repeat: viewers see it twice, and are later by as much afterwards.
const START_LEAD_MAX: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Settings {
    /// Returns the first invalid setting in the order of the fields, with the reason.
    pub fn check(&self) -> Result<(), SettingsError> {
        above_zero("connect_timeout", self.connect_timeout)?;
        above_zero("first_packet_timeout", self.first_packet_timeout)?;
        above_zero("stall_timeout", self.stall_timeout)?;
        above_zero("silence_suspected_after", self.silence_suspected_after)?;
        at_most("picture_timeout", self.picture_timeout, HOUR)?;
        at_most("sound_timeout", self.sound_timeout, HOUR)?;
        above_zero("buffering_timeout", self.buffering_timeout)?;
        at_most("random_access_wait", self.random_access_wait, HOUR)?;
        at_most("start_lead", self.start_lead, START_LEAD_MAX)?;
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
        above_zero("recording_lead_seconds", self.recording_lead_seconds)?;
        if self.hls_height_max == Some(0) {
            return Err(wrong("hls_height_max", "must be 1 or more"));
        }
        if self.hls_bits_per_second_max == Some(0) {
            return Err(wrong("hls_bits_per_second_max", "must be 1 or more"));
        }
        if let Some(budget) = self.ring_budget_bytes {
            at_least("ring_budget_bytes", budget, RING_BYTES_MIN as u64)?;
        }
        if self.slow_client_limit == 0 {
            return Err(wrong("slow_client_limit", "must be 1 or more"));
        }
        if self.transcoders_max > TRANSCODERS_MOST {
            return Err(wrong("transcoders_max", format!("must be at most {TRANSCODERS_MOST}")));
        }
        if self.multicast_interface.as_ref().is_some_and(|it| !is_interface(it)) {
            return Err(wrong(
                "multicast_interface",
                "must be the name of an interface or one of its addresses",
            ));
        }
        if !(UDP_BUFFER_BYTES_MIN..=UDP_BUFFER_BYTES_MAX).contains(&self.udp_receive_buffer_bytes) {
            let reason = format!("must be from {UDP_BUFFER_BYTES_MIN} to {UDP_BUFFER_BYTES_MAX} bytes");
            return Err(wrong("udp_receive_buffer_bytes", reason));
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
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            E::custom(format!("{seconds} is not a valid number of seconds: it must be 0 or more"))
        })
    }

    /// The same for an optional duration.
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

    /// Returns the default settings with this one changed.
    fn with(field: &str, value: serde_json::Value) -> Result<Settings, serde_json::Error> {
        serde_json::from_value(serde_json::json!({ field: value }))
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Settings::default().check(), Ok(()));
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), Settings::default());
    }

    #[test]
    fn settings_survive_writing_and_reading() {
        let settings = Settings {
            connect_timeout: Duration::from_millis(250),
            return_to_preferred_after: Some(Duration::from_secs(90)),
            ring_budget_bytes: Some(1 << 30),
            hls_height_max: Some(1_080),
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
    fn an_unknown_setting_is_refused() {
        assert!(with("conect_timeout", 3.into()).unwrap_err().to_string().contains("conect_timeout"));
    }

    #[test]
    fn an_invalid_duration_is_refused() {
        for value in [serde_json::json!(-1), serde_json::json!(1e300), serde_json::json!("3s")] {
            assert!(with("stall_timeout", value.clone()).is_err(), "{value}");
            assert!(with("return_to_preferred_after", value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn an_invalid_setting_is_reported_with_the_reason() {
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
        check("start_lead", 11, "must be at most 10 seconds");
        check("recording_lead_seconds", 0, "must be more than 0 seconds");
        check("hls_height_max", 0, "must be 1 or more");
        check("hls_bits_per_second_max", 0, "must be 1 or more");
        check("ring_budget_bytes", 1000, "must be at least 131072 bytes");
        check("slow_client_limit", 0, "must be 1 or more");
        check("transcoders_max", 1001, "must be at most 1000");
        check("multicast_interface", "a b", "must be the name of an interface or one of its addresses");
        check("udp_receive_buffer_bytes", 1000, "must be from 65536 to 67108864 bytes");
        assert_eq!(with("channel_shutdown_delay", 0.into()).unwrap().check(), Ok(()), "at once is possible");
        assert_eq!(with("start_lead", 0.into()).unwrap().check(), Ok(()), "nothing is repeated");
    }
}
