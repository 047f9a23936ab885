//! Own time-shift: how much of the past of channels the gateway keeps itself, in a ring of files for each channel.
//!
//! The settings are in the core settings, and a channel may have a mode of its own. [`surplus`] decides which files go:
//! those that are too old, those above a limit, and the oldest ones of all while the disk is short of room.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::channel::Channel;
use crate::recording::QUOTA_BYTES_MAX;

/// Maximum age of the past, in hours.
pub const HOURS_MAX: u32 = 336;
/// Minimum of each limit in bytes.
pub const BYTES_MIN: u64 = 16 << 20;
/// A file is followed by the next one at this size, in bytes; earlier if a limit is small.
const FILE_BYTES_MAX: u64 = 256 << 20;
const FILE_BYTES_MIN: u64 = 1 << 20;
/// The limit of a channel has at least this many files, so that the oldest one is a small part of it.
const FILES_PER_CHANNEL: u64 = 8;
/// Maximum number of files of a channel. More only come from a channel that starts again and again.
const FILES_MAX: usize = 4_096;
const HOUR_MS: i64 = 3_600_000;
/// Room that is left beyond what recordings need: this part of the disk, within these bytes.
const ROOM_PART: u64 = 20;
const ROOM_MIN: u64 = 16 << 20;
const ROOM_MAX: u64 = 2 << 30;

/// When the past of a channel is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeShiftMode {
    #[default]
    Off,
    /// While somebody watches the channel.
    Watched,
    /// At all times: the channel plays for it, and takes a connection of an account.
    Always,
}

impl TimeShiftMode {
    /// Every mode with its name.
    pub const NAMES: [(&str, Self); 3] =
        [("off", Self::Off), ("watched", Self::Watched), ("always", Self::Always)];

    /// Returns the name of the mode.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|it| it.1 == self).map_or("", |it| it.0)
    }
}

/// Settings of the own time-shift.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeShiftSettings {
    /// For channels without a mode of their own.
    pub mode: TimeShiftMode,
    /// Maximum age of the past of a channel.
    pub hours: u32,
    /// Maximum size of the past of a channel.
    pub channel_bytes: u64,
    /// Maximum size of the past of all channels.
    pub total_bytes: u64,
}

impl Default for TimeShiftSettings {
    fn default() -> Self {
        let (channel_bytes, total_bytes) = (20_000_000_000, 100_000_000_000);
        Self { mode: TimeShiftMode::Off, hours: 4, channel_bytes, total_bytes }
    }
}

impl TimeShiftSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = settings.set(name, value);
        }
        settings
    }

    /// Returns when the past of a channel is kept: never that of a disabled one.
    pub fn mode_of(&self, channel: &Channel) -> TimeShiftMode {
        if channel.enabled { channel.timeshift.unwrap_or(self.mode) } else { TimeShiftMode::Off }
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let bytes = || {
            let bytes = value.as_u64().filter(|it| (BYTES_MIN..=QUOTA_BYTES_MAX).contains(it));
            bytes.ok_or(format!("must be a number of bytes from {BYTES_MIN} to {QUOTA_BYTES_MAX}"))
        };
        match name {
            "mode" => {
                let found =
                    value.as_str().and_then(|name| TimeShiftMode::NAMES.iter().find(|it| it.0 == name));
                self.mode = found.ok_or("must be off, watched or always")?.1;
            }
            "hours" => {
                let hours = value.as_u64().and_then(|it| u32::try_from(it).ok());
                let hours = hours.filter(|it| (1..=HOURS_MAX).contains(it));
                self.hours = hours.ok_or(format!("must be a whole number from 1 to {HOURS_MAX}"))?;
            }
            "channel_bytes" => self.channel_bytes = bytes()?,
            "total_bytes" => self.total_bytes = bytes()?,
            _ => return Err("is not a setting".to_owned()),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "mode": self.mode.name(),
            "hours": self.hours,
            "channel_bytes": self.channel_bytes,
            "total_bytes": self.total_bytes,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns the size at which a file is followed by the next one, for this many rings that are written.
    pub fn file_bytes_max(&self, n_rings: usize) -> u64 {
        let of_all = self.total_bytes / (2 * n_rings.max(1) as u64);
        FILE_BYTES_MAX.min(self.channel_bytes / FILES_PER_CHANNEL).min(of_all).max(FILE_BYTES_MIN)
    }
}

/// A file of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingFile {
    /// UUID of the channel.
    pub channel: Uuid,
    /// When its last packet arrived, in milliseconds since 1970.
    pub ended_at: i64,
    pub bytes: u64,
    /// Whether packets are still added to it. Such a file never goes.
    pub is_open: bool,
}

/// Returns the positions of the files that go, so that the rings keep their limits and `missing` bytes of the disk become
/// free. `files` has the files of a channel in the order of their time.
pub fn surplus(files: &[RingFile], settings: &TimeShiftSettings, now: i64, missing: u64) -> Vec<usize> {
    let n_open = files.iter().filter(|it| it.is_open).count();
    // The open files grow up to this size.
    let growth = settings.file_bytes_max(n_open);
    let oldest = now.saturating_sub(i64::from(settings.hours) * HOUR_MS);
    let mut in_order: Vec<usize> = (0..files.len()).filter(|n| !files[*n].is_open).collect();
    in_order.sort_by_key(|n| files[*n].ended_at);
    let mut kept: HashMap<Uuid, (u64, usize)> = HashMap::new();
    for n in &in_order {
        let (bytes, count) = kept.entry(files[*n].channel).or_default();
        (*bytes, *count) = (*bytes + files[*n].bytes, *count + 1);
    }
    let mut total: u64 = kept.values().map(|it| it.0).sum();
    let total_max = settings.total_bytes.saturating_sub(growth.saturating_mul(n_open as u64));
    let (mut gone, mut freed) = (Vec::new(), 0_u64);
    let mut go = |n: usize, kept: &mut HashMap<Uuid, (u64, usize)>, total: &mut u64, freed: &mut u64| {
        let file = &files[n];
        if let Some((bytes, count)) = kept.get_mut(&file.channel) {
            (*bytes, *count) = (*bytes - file.bytes, *count - 1);
        }
        *total -= file.bytes;
        *freed += file.bytes;
        gone.push(n);
    };
    in_order.retain(|n| {
        let (bytes, count) = kept.get(&files[*n].channel).copied().unwrap_or_default();
        let is_over = files[*n].ended_at < oldest
            || bytes.saturating_add(growth) > settings.channel_bytes
            || count >= FILES_MAX;
        if is_over {
            go(*n, &mut kept, &mut total, &mut freed);
        }
        !is_over
    });
    for n in in_order {
        if total <= total_max && freed >= missing {
            break;
        }
        go(n, &mut kept, &mut total, &mut freed);
    }
    gone
}

/// Returns the room that rings leave on a disk of this size, in bytes. `for_recordings` is what recordings need there.
pub fn room_left(disk_bytes: u64, for_recordings: u64) -> u64 {
    for_recordings.saturating_add((disk_bytes / ROOM_PART).clamp(ROOM_MIN, ROOM_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChannelId;

    const MIB: u64 = 1 << 20;
    const NOW: i64 = 1_900_000_000_000;

    /// A file of this many MiB that ended this many minutes ago.
    fn file(channel: u128, minutes: i64, mib: u64) -> RingFile {
        let (channel, ended_at) = (Uuid::from_u128(channel), NOW - minutes * 60_000);
        RingFile { channel, ended_at, bytes: mib * MIB, is_open: false }
    }

    fn open(channel: u128) -> RingFile {
        RingFile { is_open: true, ..file(channel, 0, 1) }
    }

    fn settings(hours: u32, channel_mib: u64, total_mib: u64) -> TimeShiftSettings {
        let (channel_bytes, total_bytes) = (channel_mib * MIB, total_mib * MIB);
        TimeShiftSettings { hours, channel_bytes, total_bytes, ..TimeShiftSettings::default() }
    }

    #[test]
    fn members_are_checked_and_a_channel_may_have_its_own_mode() {
        let mut settings = TimeShiftSettings::default();
        for (name, value) in [
            ("mode", json!("on")),
            ("mode", json!(true)),
            ("hours", json!(0)),
            ("hours", json!(337)),
            ("hours", json!(1.5)),
            ("channel_bytes", json!(1)),
            ("total_bytes", json!(-1)),
            ("total_bytes", json!(1_u64 << 53)),
            ("channels", json!({})),
        ] {
            assert!(settings.set(name, &value).is_err(), "{name} {value}");
        }
        assert_eq!(settings, TimeShiftSettings::default());
        settings.set("mode", &json!("watched")).unwrap();
        settings.set("hours", &json!(12)).unwrap();
        settings.set("channel_bytes", &json!(BYTES_MIN)).unwrap();
        assert_eq!(TimeShiftSettings::from_setting(Some(&Value::Object(settings.to_setting()))), settings);
        let mut channel = Channel::new(ChannelId(1), Uuid::from_u128(1), "News", 0);
        assert_eq!(settings.mode_of(&channel), TimeShiftMode::Watched);
        channel.timeshift = Some(TimeShiftMode::Always);
        assert_eq!(settings.mode_of(&channel), TimeShiftMode::Always);
        channel.enabled = false;
        assert_eq!(settings.mode_of(&channel), TimeShiftMode::Off);
    }

    #[test]
    fn old_files_go_and_the_one_that_is_written_stays() {
        let limits = settings(1, 8_000, 80_000);
        let files = [file(1, 75, 10), file(1, 61, 10), file(1, 59, 10), open(1)];
        assert_eq!(surplus(&files, &limits, NOW, 0), [0, 1]);
        let long_ago = [RingFile { is_open: true, ..file(1, 600, 10) }];
        assert!(surplus(&long_ago, &limits, NOW, u64::MAX).is_empty());
    }

    #[test]
    fn a_channel_and_all_channels_together_have_a_maximum_size() {
        // Files of up to 10 MiB, of which the open one is one.
        let limits = settings(24, 80, 800);
        let files: Vec<_> = (0..9).rev().map(|n| file(1, n * 10 + 1, 10)).chain([open(1)]).collect();
        assert_eq!(surplus(&files, &limits, NOW, 0), [0, 1]);
        // Both channels together: the oldest of all go.
        let limits = settings(24, 80, 120);
        let files = [file(1, 50, 40), file(1, 10, 30), open(1), file(2, 60, 20), file(2, 5, 40), open(2)];
        assert_eq!(surplus(&files, &limits, NOW, 0), [3, 0]);
        assert_eq!(limits.file_bytes_max(2), 10 * MIB);
        assert_eq!(limits.file_bytes_max(100), MIB, "the limit of all is shared");
    }

    #[test]
    fn a_short_disk_takes_the_oldest_files_of_all_channels() {
        let limits = settings(24, 8_000, 80_000);
        let files = [file(1, 50, 10), file(1, 20, 10), open(1), file(2, 40, 10), file(2, 30, 10), open(2)];
        assert_eq!(surplus(&files, &limits, NOW, 1), [0]);
        assert_eq!(surplus(&files, &limits, NOW, 21 * MIB), [0, 3, 4]);
        assert_eq!(surplus(&files, &limits, NOW, u64::MAX), [0, 3, 4, 1]);
        // Those that are too old count.
        let old = [file(1, 2_000, 10), file(1, 50, 10), file(1, 20, 10)];
        assert_eq!(surplus(&old, &limits, NOW, 10 * MIB), [0]);
        assert_eq!(room_left(1 << 40, 100 * MIB), 100 * MIB + (2 << 30));
        assert_eq!(room_left(256 * MIB, 64 * MIB), 80 * MIB);
    }

    #[test]
    fn the_number_of_files_has_a_maximum() {
        let files: Vec<_> = (0..5_000).rev().map(|_| file(1, 1, 0)).collect();
        assert_eq!(surplus(&files, &settings(24, 8_000, 80_000), NOW, 0).len(), 5_000 - FILES_MAX + 1);
    }
}
