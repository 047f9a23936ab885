//! How recordings are made and named, which is stored in the core settings.

use serde_json::{Map, Value, json};

use super::file_name::{NameFields, NameTemplate};
use super::{AccountReserve, RECORDINGS_MAX, RESERVES_MAX, Recording, RemuxFormat};
use crate::user::{User, UserLevel};
use crate::user_group::ADD_RECORDING;

/// Maximum offset before and after new recordings, in minutes.
pub const OFFSET_MINUTES_MAX: u32 = 1440;
/// Maximum time for which slots can be reserved before a recording, in minutes.
const RESERVE_MINUTES_MAX: u32 = 1440;
/// Maximum number of days that can be set for retention.
pub const RETENTION_DAYS_MAX: u32 = 36_500;
/// Maximum quota and free room that can be set, in bytes: what every client can represent.
pub const QUOTA_BYTES_MAX: u64 = (1 << 53) - 1;

/// The treatment of commercials that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ComskipMode {
    /// They are listed.
    #[default]
    Mark,
    /// They are listed, and a copy without them is made beside the recording.
    Cut,
}

impl ComskipMode {
    /// Every mode with its name.
    pub const NAMES: [(&'static str, Self); 2] = [("mark", Self::Mark), ("cut", Self::Cut)];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|it| it.1 == self).map_or("", |it| it.0)
    }
}

/// Settings of recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DvrSettings {
    /// Name of an episode with season and number.
    pub tv_template: String,
    /// Name of everything but films and episodes.
    pub tv_fallback_template: String,
    /// Name of a film with a year.
    pub movie_template: String,
    pub movie_fallback_template: String,
    /// Padding of new recordings that name none, in minutes.
    pub pre_offset_minutes: u32,
    pub post_offset_minutes: u32,
    /// Whether users of level 1 schedule recordings and see their own.
    pub standard_users_record: bool,
    /// Whether a recording takes the connection of viewers if its programme has none otherwise.
    pub disconnect_viewers: bool,
    /// From this many minutes before a recording on, new viewers do not get the slot that the forecast gives it; 0
    /// reserves none.
    pub reserve_minutes: u32,
    /// Connections that only recordings get, at some times of the week.
    pub reserved_slots: Vec<AccountReserve>,
    /// How many bytes all recordings have together; older ones are deleted. 0 means unlimited.
    pub quota_bytes: u64,
    /// The same for each user without a quota of its own.
    pub user_quota_bytes: u64,
    /// Days after which recordings are deleted; 0 keeps them.
    pub retention_days: u32,
    /// How many finished recordings stay; 0 keeps all.
    pub retention_count: u32,
    /// Old recordings are deleted while the disk has less room than this, in bytes; 0 deletes none.
    pub retention_free_bytes: u64,
    /// Whether commercials are searched for after a recording.
    pub comskip_enabled: bool,
    pub comskip_mode: ComskipMode,
    /// The container to which recordings are converted after their end; `None` keeps transport streams.
    pub remux: Option<RemuxFormat>,
    /// Whether a description for media servers is written beside each recording.
    pub write_nfo: bool,
    /// Whether a picture for media servers is written beside each recording.
    pub write_artwork: bool,
    /// Whether players list the recordings that a viewer may play.
    pub recordings_in_players: bool,
}

impl Default for DvrSettings {
    fn default() -> Self {
        Self {
            tv_template: "TV_Shows/{show}/S{season:02d}E{episode:02d}".to_owned(),
            tv_fallback_template: "TV_Shows/{show}/{start}".to_owned(),
            movie_template: "Movies/{title} ({year})".to_owned(),
            movie_fallback_template: "Movies/{start}".to_owned(),
            pre_offset_minutes: 0,
            post_offset_minutes: 0,
            standard_users_record: false,
            disconnect_viewers: false,
            reserve_minutes: 0,
            reserved_slots: Vec::new(),
            quota_bytes: 0,
            user_quota_bytes: 0,
            retention_days: 0,
            retention_count: 0,
            retention_free_bytes: 0,
            comskip_enabled: false,
            comskip_mode: ComskipMode::Mark,
            remux: None,
            write_nfo: false,
            write_artwork: false,
            recordings_in_players: true,
        }
    }
}

impl DvrSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version; others have no effect.
            let _ = settings.set(name, value);
        }
        settings
    }

    /// Returns whether a user may schedule recordings. The property of a user comes before the setting and the permission.
    pub fn permit(&self, user: &User) -> bool {
        let is_granted = user.granted.contains(&ADD_RECORDING);
        let is_enabled = user.recordings_enabled().unwrap_or(self.standard_users_record || is_granted);
        user.may(UserLevel::Admin) || (is_enabled && user.may_with(UserLevel::Standard, Some(ADD_RECORDING)))
    }

    /// Returns the padding before and after new recordings that name none, in seconds.
    pub fn padding(&self) -> (i32, i32) {
        let seconds = |minutes: u32| i32::try_from(minutes.min(OFFSET_MINUTES_MAX) * 60).unwrap_or_default();
        (seconds(self.pre_offset_minutes), seconds(self.post_offset_minutes))
    }

    /// Returns whether the setting has this member with an effect.
    pub fn has_member(name: &str) -> bool {
        Self::default().to_setting().contains_key(name)
    }

    /// Changes one member of the setting. `null` and an empty text restore the default of a template.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let default = Self::default();
        let template = |default: String| match value.as_str().map(str::trim) {
            None if value.is_null() => Ok(default),
            None => Err("must be a text of up to 255 characters".to_owned()),
            Some("") => Ok(default),
            Some(text) => match NameTemplate::parse(text) {
                Ok(_) => Ok(text.to_owned()),
                Err(fault) => Err(fault.to_string()),
            },
        };
        let minutes = || {
            let minutes = value.as_f64().filter(|it| (0.0..=f64::from(OFFSET_MINUTES_MAX)).contains(it));
            minutes.map(|it| it as u32).ok_or(format!("must be a number from 0 to {OFFSET_MINUTES_MAX}"))
        };
        let number = |most: u32| {
            let number = value.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it <= most);
            number.ok_or(format!("must be a whole number from 0 to {most}"))
        };
        let bytes = || {
            let bytes = value.as_u64().filter(|it| *it <= QUOTA_BYTES_MAX);
            bytes.ok_or(format!("must be a number of bytes from 0 to {QUOTA_BYTES_MAX}"))
        };
        match name {
            "tv_template" => self.tv_template = template(default.tv_template)?,
            "tv_fallback_template" => self.tv_fallback_template = template(default.tv_fallback_template)?,
            "movie_template" => self.movie_template = template(default.movie_template)?,
            "movie_fallback_template" => {
                self.movie_fallback_template = template(default.movie_fallback_template)?;
            }
            "pre_offset_minutes" => self.pre_offset_minutes = minutes()?,
            "post_offset_minutes" => self.post_offset_minutes = minutes()?,
            "standard_users_record" => {
                self.standard_users_record = value.as_bool().ok_or("must be true or false")?;
            }
            "reserve_minutes" => self.reserve_minutes = number(RESERVE_MINUTES_MAX)?,
            "reserved_slots" => self.reserved_slots = reserves(value)?,
            "disconnect_viewers" => {
                self.disconnect_viewers = value.as_bool().ok_or("must be true or false")?;
            }
            "quota_bytes" => self.quota_bytes = bytes()?,
            "user_quota_bytes" => self.user_quota_bytes = bytes()?,
            "retention_days" => self.retention_days = number(RETENTION_DAYS_MAX)?,
            "retention_count" => self.retention_count = number(RECORDINGS_MAX as u32)?,
            "retention_free_bytes" => self.retention_free_bytes = bytes()?,
            "remux" => {
                let format = |name: &str| RemuxFormat::NAMES.iter().find(|it| it.0 == name).map(|it| it.1);
                self.remux = match value.as_str() {
                    Some("none") => None,
                    name => Some(name.and_then(format).ok_or("must be none, mkv or mp4")?),
                };
            }
            "write_nfo" => self.write_nfo = value.as_bool().ok_or("must be true or false")?,
            "write_artwork" => self.write_artwork = value.as_bool().ok_or("must be true or false")?,
            "comskip_mode" => {
                let mode = ComskipMode::NAMES.iter().find(|it| value.as_str() == Some(it.0));
                self.comskip_mode = mode.ok_or("must be mark or cut")?.1;
            }
            "comskip_enabled" => self.comskip_enabled = value.as_bool().ok_or("must be true or false")?,
            "recordings_in_players" => {
                self.recordings_in_players = value.as_bool().ok_or("must be true or false")?;
            }
            _ => return Err("is not a setting".to_owned()),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "tv_template": self.tv_template,
            "tv_fallback_template": self.tv_fallback_template,
            "movie_template": self.movie_template,
            "movie_fallback_template": self.movie_fallback_template,
            "pre_offset_minutes": self.pre_offset_minutes,
            "post_offset_minutes": self.post_offset_minutes,
            "standard_users_record": self.standard_users_record,
            "disconnect_viewers": self.disconnect_viewers,
            "reserve_minutes": self.reserve_minutes,
            "reserved_slots": self.reserved_slots.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "quota_bytes": self.quota_bytes,
            "user_quota_bytes": self.user_quota_bytes,
            "retention_days": self.retention_days,
            "retention_count": self.retention_count,
            "retention_free_bytes": self.retention_free_bytes,
            "comskip_enabled": self.comskip_enabled,
            "comskip_mode": self.comskip_mode.name(),
            "remux": self.remux.map_or("none", RemuxFormat::name),
            "write_nfo": self.write_nfo,
            "write_artwork": self.write_artwork,
            "recordings_in_players": self.recordings_in_players,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns the path of the file of a recording, without an extension. `begin` is the time of the first packet as text.
    pub fn file_path(&self, recording: &Recording, begin: String) -> String {
        let fields = recording.name_fields(begin);
        let is_movie = recording.programme.as_ref().is_some_and(|it| it.is_movie);
        let template = match (&fields, is_movie) {
            (NameFields { year: Some(_), .. }, true) => &self.movie_template,
            (_, true) => &self.movie_fallback_template,
            (NameFields { season: Some(_), episode: Some(_), .. }, false) => &self.tv_template,
            _ => &self.tv_fallback_template,
        };
        // Templates were checked when they were set.
        NameTemplate::parse(template)
            .map_or_else(|_| format!("recording {}", fields.id), |it| it.path(&fields))
    }
}

/// Reads the rows of reserved connections.
fn reserves(value: &Value) -> Result<Vec<AccountReserve>, String> {
    let rows = value.as_array().filter(|it| it.len() <= RESERVES_MAX);
    let rows = rows.ok_or(format!("must be a list of up to {RESERVES_MAX} texts"))?;
    let read = |it: &Value| {
        let text = it.as_str().ok_or("must be a list of texts")?;
        text.parse::<AccountReserve>().map_err(|wrong| format!("has a wrong row: {wrong}"))
    };
    rows.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_checked_and_invalid_ones_have_their_defaults() {
        let mut settings = DvrSettings::default();
        for (name, value) in [
            ("tv_template", json!("{nothing}")),
            ("tv_template", json!(7)),
            ("pre_offset_minutes", json!(-1)),
            ("pre_offset_minutes", json!(1441)),
            ("reserve_minutes", json!(-1)),
            ("reserve_minutes", json!(2.5)),
            ("reserve_minutes", json!(1441)),
            ("reserve_minutes", json!("10")),
            ("reserved_slots", json!("2 = 1")),
            ("reserved_slots", json!(["2 = none"])),
            ("reserved_slots", json!([2])),
            ("reserved_slots", json!(vec!["2 = 1"; RESERVES_MAX + 1])),
            ("standard_users_record", json!("yes")),
            ("comskip_enabled", json!("yes")),
            ("comskip_custom_path", json!("")),
            ("comskip_mode", json!("delete")),
            ("write_artwork", json!("yes")),
            ("remux", json!("avi")),
            ("remux", Value::Null),
            ("recordings_in_players", json!(1)),
            ("quota_bytes", json!(-1)),
            ("quota_bytes", json!(1u64 << 53)),
            ("retention_days", json!(1.5)),
            ("retention_count", json!(20_001)),
        ] {
            assert!(settings.set(name, &value).is_err(), "{name} {value}");
        }
        assert_eq!(settings, DvrSettings::default());
        settings.set("tv_template", &json!("{title}")).unwrap();
        settings.set("post_offset_minutes", &json!(5)).unwrap();
        settings.set("remux", &json!("mp4")).unwrap();
        settings.set("reserved_slots", &json!(["2 = 1 mon-fri 18:00-23:00", "3 = 2"])).unwrap();
        assert_eq!(settings.reserved_slots.len(), 2);
        settings.set("comskip_mode", &json!("cut")).unwrap();
        settings.set("write_artwork", &json!(true)).unwrap();
        assert_eq!(DvrSettings::from_setting(Some(&Value::Object(settings.to_setting()))), settings);
        settings.set("tv_template", &Value::Null).unwrap();
        assert_eq!(settings.tv_template, DvrSettings::default().tv_template);
    }
}
