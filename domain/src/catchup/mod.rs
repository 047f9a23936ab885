//! Catch-up: playing the past of a channel from the archive of its provider.
//!
//! A stream says by its attributes what archive it has ([`Archive`]). A client names a time ([`parse_start`]), always in UTC.
//! The provider gets the time in the form that its archive wants, and in its own zone ([`ProviderZone`]).

mod address;
mod start;
#[cfg(test)]
mod tests;
mod zone;

use serde::{Deserialize, Serialize};

pub use self::address::ArchiveTimes;
pub use self::start::{StartError, parse_start};
pub use self::zone::{ProviderZone, TIME_ZONE};
use crate::source_url::SourceUrl;

/// Duration of a part of the past whose duration the client does not tell, in minutes.
pub const MINUTES_DEFAULT: i64 = 120;
/// Maximum duration of a part of the past, in minutes.
pub const MINUTES_MAX: i64 = 480;
/// Days of an archive whose depth the playlist does not tell.
const DAYS_DEFAULT: u32 = 7;
/// Maximum depth of an archive, in days.
const DAYS_MAX: u32 = 365;
/// Maximum correction of a start, in hours.
const CORRECTION_HOURS_MAX: f64 = 24.0;

/// The archive of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Archive {
    /// How far it goes back; at least 1.
    pub days: u32,
    pub kind: ArchiveKind,
    /// The template of the address, or of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceUrl>,
    /// Seconds that are subtracted from a start before it is sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub correction_s: i32,
}

/// How the address of a part of the archive is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveKind {
    /// `source` is the address.
    Whole,
    /// `source` is appended to the live address.
    Append,
    /// `utc` and `lutc` are added to the query of the live address.
    Shift,
    /// From the live address of a Flussonic server, whose form shows whether it is a transport stream or HLS.
    Flussonic,
    /// The same, as HLS.
    FlussonicHls,
    /// The same, as a transport stream.
    FlussonicTs,
    /// From the live address of a panel.
    Xtream,
    /// `source` is the address of a file.
    Vod,
    /// A portal makes the link of a programme when it is opened.
    Portal,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl ArchiveKind {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "default" => Self::Whole,
            "append" => Self::Append,
            "shift" | "timeshift" => Self::Shift,
            "flussonic" | "fs" => Self::Flussonic,
            "flussonic-hls" => Self::FlussonicHls,
            "flussonic-ts" => Self::FlussonicTs,
            "xc" => Self::Xtream,
            "vod" => Self::Vod,
            _ => return None,
        })
    }
}

impl Archive {
    /// Returns the archive of a panel's stream from `tv_archive` and `tv_archive_duration`, which is in days.
    pub fn from_panel(has_archive: bool, days: Option<i64>) -> Option<Self> {
        // Some panels leave out the depth.
        let days = days.filter(|it| *it > 0).map_or(1, |it| u32::try_from(it).unwrap_or(DAYS_MAX));
        let days = days.min(DAYS_MAX);
        has_archive.then_some(Self { days, kind: ArchiveKind::Xtream, source: None, correction_s: 0 })
    }

    /// Returns the archive of a portal's channel, whose depth is in hours.
    pub fn from_portal(has_archive: bool, hours: Option<i64>) -> Option<Self> {
        let days = hours.map(|it| it.max(0).saturating_add(23) / 24);
        Self::from_panel(has_archive, days).map(|it| Self { kind: ArchiveKind::Portal, ..it })
    }

    /// Returns the archive of an entry of a playlist. Keys are in lower case.
    pub fn from_attributes(attributes: &[(String, String)]) -> Option<Self> {
        let value = |name: &str| attributes.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
        // As SIPTV has them: the attribute is the number of days.
        let short_days =
            ["timeshift", "tvg-rec"].iter().find_map(|it| days_of(value(it)?)).filter(|it| *it > 0);
        let source = value("catchup-source").filter(|it| !it.is_empty());
        let mut kind = match value("catchup").or_else(|| value("catchup-type")) {
            Some(name) => ArchiveKind::from_name(name)?,
            None if source.is_some() => ArchiveKind::Whole,
            None => short_days.map(|_| ArchiveKind::Shift)?,
        };
        if kind == ArchiveKind::Whole && !source?.contains("://") {
            kind = ArchiveKind::Append;
        }
        let source = match kind {
            // As in pvr.iptvsimple: the guide has the whole address.
            ArchiveKind::Vod => source.or(Some(address::CATCHUP_ID)),
            ArchiveKind::Append => Some(source?),
            _ => source,
        };
        let days = match value("catchup-days").and_then(days_of) {
            Some(0) => return None,
            Some(days) => days,
            None => short_days.unwrap_or(DAYS_DEFAULT),
        };
        let correction = value("catchup-correction").and_then(|it| it.trim().parse::<f64>().ok());
        let correction = correction.filter(|it| it.abs() <= CORRECTION_HOURS_MAX).unwrap_or(0.0);
        let keeps_source = matches!(kind, ArchiveKind::Whole | ArchiveKind::Append | ArchiveKind::Vod);
        Some(Self {
            days: days.min(DAYS_MAX),
            kind,
            source: source.filter(|_| keeps_source).map(|it| SourceUrl::new(address::with_braces(it))),
            correction_s: (correction * 3600.0).round() as i32,
        })
    }

    /// Returns whether parts of the archive have addresses, as far as the live address shows it.
    pub fn has_addresses(&self, live: &SourceUrl) -> bool {
        let (times, zone) = (ArchiveTimes { start: 0, duration: 60, now: 0 }, ProviderZone::utc());
        // Such a name can be a whole address.
        let catchup_id = Some(live.expose());
        self.address_of(catchup_id, live, self.source.as_ref(), times, &zone).is_some()
    }

    /// Returns whether addresses need the name of a programme, which only the guide has.
    pub fn needs_programme(&self) -> bool {
        self.source.as_ref().is_some_and(|it| it.expose().contains(address::CATCHUP_ID))
    }

    /// Returns whether a part begins with the programme of the guide that it is in: addresses need its name, or a portal has
    /// whole programmes only.
    pub fn uses_programme(&self) -> bool {
        self.kind == ArchiveKind::Portal || self.needs_programme()
    }

    /// Returns whether addresses have the time of a part, so that it can begin within a programme.
    fn names_time(&self) -> bool {
        let source = self.source.as_ref().map_or("", SourceUrl::expose);
        ["{utc", "{start", "{offset", "{S}", "{H}", "{(b)"].iter().any(|it| source.contains(it))
    }

    /// Returns where a part begins whose address was made for a programme that starts at this time.
    pub fn begins_within(&self, programme: i64, start: i64) -> i64 {
        if self.uses_programme() && !self.names_time() { programme } else { self.begins_at(start) }
    }

    /// Returns where a part begins at the provider: at its start, or at the minute of it if addresses have no seconds.
    pub fn begins_at(&self, start: i64) -> i64 {
        let has_seconds = || {
            let source = self.source.as_ref().map_or("", SourceUrl::expose);
            ["{utc", "{start", "{offset}", "{offset:1}", "{S}", "S}", "ss}", "{(b)timestamp}"]
                .iter()
                .any(|it| source.contains(it))
        };
        let is_exact = match self.kind {
            ArchiveKind::Whole | ArchiveKind::Append | ArchiveKind::Vod => has_seconds(),
            ArchiveKind::Shift
            | ArchiveKind::Flussonic
            | ArchiveKind::FlussonicHls
            | ArchiveKind::FlussonicTs
            | ArchiveKind::Portal => true,
            ArchiveKind::Xtream => false,
        };
        if is_exact { start } else { start.div_euclid(60) * 60 }
    }

    /// Returns the first time that the archive has, in seconds since 1970.
    pub fn first(&self, now: i64) -> i64 {
        now - i64::from(self.days) * 86_400
    }
}

/// The attributes of an archive that have the same meaning.
const SYNONYMS: [&[&str]; 4] = [
    &["catchup", "catchup-type"],
    &["catchup-days", "timeshift", "tvg-rec"],
    &["catchup-source"],
    &["catchup-correction"],
];

/// Adds the attributes of the first line of a playlist to those of an entry, which come first under any of their names. An
/// entry that says it has no archive gets the others only. Keys are in lower case.
pub fn add_defaults(attributes: &mut Vec<(String, String)>, defaults: &[(String, String)]) {
    let has = |name: &str| attributes.iter().any(|it| it.0 == name);
    let is_stated = |name: &str| {
        let synonyms = SYNONYMS.iter().find(|it| it.contains(&name));
        synonyms.is_some_and(|it| it.iter().any(|it| has(it)))
    };
    let is_archive = |name: &str| SYNONYMS.iter().any(|it| it.contains(&name)) || name.starts_with("catchup");
    // An entry without an archive stays without one.
    let days = |it: &(String, String)| SYNONYMS[1].contains(&it.0.as_str()).then(|| days_of(&it.1)).flatten();
    let mut stated = attributes.iter().filter_map(days).peekable();
    let is_without = stated.peek().is_some() && stated.all(|it| it == 0);
    let stays_without = is_without && !is_stated("catchup") && !has("catchup-source");
    let is_added = |name: &str| !(is_stated(name) || stays_without && is_archive(name));
    let added: Vec<_> = defaults.iter().filter(|it| is_added(&it.0)).cloned().collect();
    attributes.extend(added);
}

/// Returns a number of days, as in `3`, `2.5` or `3 days`; `None` for a negative one, which means that the depth is unknown.
fn days_of(text: &str) -> Option<u32> {
    let text = text.trim();
    let end = text.find(|it: char| !(it.is_ascii_digit() || matches!(it, '.' | ','))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let is_days = unit.is_empty() || unit.trim_start().starts_with(['d', 'D']);
    let days = number.replace(',', ".").parse::<f64>().ok().filter(|_| is_days)?;
    // A part of a day is an archive, too.
    Some(days.ceil().min(f64::from(DAYS_MAX)) as u32)
}
