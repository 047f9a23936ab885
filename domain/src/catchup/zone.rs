//! The time zone in which a provider reads the start of a programme.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use serde_json::{Map, Value};

/// Property of an account: the name of the time zone of its provider.
pub const TIME_ZONE: &str = "timezone";

/// Offsets of zones are multiples of this, in seconds.
const OFFSET_STEP: i64 = 900;
/// Maximum offset of a zone, in seconds.
const OFFSET_MAX: i64 = 14 * 3600;

/// The zone of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderZone(TimeZone);

impl ProviderZone {
    /// Returns UTC, for providers of which nothing is known.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Returns the zone of a panel: the one that it names, or else the difference between its two clocks. `None` if it
    /// tells neither.
    pub fn from_panel(server_info: &Map<String, Value>) -> Option<Self> {
        let named = server_info.get("timezone").and_then(Value::as_str).and_then(Self::named);
        named.or_else(|| Self::from_clocks(server_info.get("time_now")?, server_info.get("timestamp_now")?))
    }

    /// Returns the zone with this name, such as `Europe/Paris`.
    pub fn named(name: &str) -> Option<Self> {
        TimeZone::get(name.trim()).ok().map(Self)
    }

    fn from_clocks(local: &Value, timestamp: &Value) -> Option<Self> {
        let local: DateTime = local.as_str()?.trim().parse().ok()?;
        let timestamp = timestamp.as_i64().or_else(|| timestamp.as_str()?.trim().parse().ok())?;
        let local = TimeZone::UTC.to_timestamp(local).ok()?.as_second();
        let offset =
            local.checked_sub(timestamp)?.checked_add(OFFSET_STEP / 2)?.div_euclid(OFFSET_STEP) * OFFSET_STEP;
        let offset = Some(offset).filter(|it| it.abs() <= OFFSET_MAX)?;
        Offset::from_seconds(i32::try_from(offset).ok()?).ok().map(|it| Self(TimeZone::fixed(it)))
    }

    /// Returns the date and time of the provider's clock at this time, in seconds since 1970.
    pub(super) fn clock(&self, at: i64) -> Option<DateTime> {
        Timestamp::from_second(at).ok().map(|it| self.0.to_datetime(it))
    }
}
