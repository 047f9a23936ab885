//! The types of fields: their form on the wire, and how each is read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::marker::PhantomData;

use domain::ids::{
    AccountId, ChannelId, DeliveryId, DeviceLoginId, EpisodeId, GroupId, GuideChannelId, GuideSourceId,
    IntegrationId, LineupId, LogEntryId, LogoId, OutputProfileId, PermissionId, PersonalPlaylistId,
    ProfileId, RecordingId, RecordingRuleId, ServerGroupId, StreamId, StreamProfileId, TunerDeviceId,
    UserGroupId, UserId, VodCategoryId,
};
use domain::secret::Secret;
use domain::user::UserLevel;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use services::guide::EntryId;
use url::Url;
use uuid::Uuid;

use super::field::{Field, Kind, Place};

/// A type that a field can have.
pub trait Shape {
    const KIND: Kind;
    const IS_NULLABLE: bool = false;
}

/// A type that can be read from a request.
pub trait Readable: Shape + Sized {
    /// Reads a value, or returns a message for the client if the value has another type or violates a rule of the
    /// field. Values of a query are texts.
    fn read(value: &Value, field: &Field) -> Result<Self, String>;
}

/// A type that a field can have whose values records keep as `R`.
pub trait Stored<R> {
    fn from_stored(value: &R) -> Self;

    fn into_stored(self) -> R;
}

/// Declares types that records keep as they are.
macro_rules! stored_as_is {
    ($($type:ty),+ $(,)?) => {$(
        impl Stored<Self> for $type {
            fn from_stored(value: &Self) -> Self {
                Self::clone(value)
            }

            fn into_stored(self) -> Self {
                self
            }
        }
    )+};
}
stored_as_is!(String, bool, i16, u16, u32, u64, usize, i32, i64, f64, Uuid, UserLevel, Map<String, Value>);

impl<R, T: Stored<R>> Stored<Option<R>> for Option<T> {
    fn from_stored(value: &Option<R>) -> Self {
        value.as_ref().map(T::from_stored)
    }

    fn into_stored(self) -> Option<R> {
        self.map(T::into_stored)
    }
}

impl<R, T: Stored<R>> Stored<Vec<R>> for Vec<T> {
    fn from_stored(value: &Vec<R>) -> Self {
        value.iter().map(T::from_stored).collect()
    }

    fn into_stored(self) -> Vec<R> {
        self.into_iter().map(T::into_stored).collect()
    }
}

impl<R: Ord, T: Stored<R>> Stored<BTreeSet<R>> for Vec<T> {
    fn from_stored(value: &BTreeSet<R>) -> Self {
        value.iter().map(T::from_stored).collect()
    }

    fn into_stored(self) -> BTreeSet<R> {
        self.into_iter().map(T::into_stored).collect()
    }
}

/// Objects for which `null` is an empty one.
impl Stored<Map<String, Value>> for Option<Map<String, Value>> {
    fn from_stored(value: &Map<String, Value>) -> Self {
        Some(value.clone())
    }

    fn into_stored(self) -> Map<String, Value> {
        self.unwrap_or_default()
    }
}

/// A field that clients send and never get back. The struct of the view contains it only to declare it.
#[derive(Clone, Debug)]
pub struct WriteOnly<T>(PhantomData<T>);

impl<T> WriteOnly<T> {
    /// The value of the field in every answer, which leaves it out.
    pub const HIDDEN: Self = Self(PhantomData);
}

/// A time in milliseconds since 1970, on the wire in ISO 8601 and UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub i64);

impl Shape for Time {
    const KIND: Kind = Kind::Time;
}

impl Readable for Time {
    /// A time without an offset is in UTC; a date without a time is the start of the day.
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let text = value.as_str().unwrap_or_default().trim();
        let of_utc = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
        let read = text.parse::<jiff::Timestamp>().ok().or_else(|| Some(of_utc()?.timestamp()));
        let time = read.ok_or("Datetime has wrong format. Use ISO 8601, as in 2031-05-04T07:08:09Z.")?;
        Ok(Time(time.as_millisecond()))
    }
}

impl Stored<i64> for Time {
    fn from_stored(value: &i64) -> Self {
        Time(*value)
    }

    fn into_stored(self) -> i64 {
        self.0
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&domain::time::iso_millis(self.0))
    }
}

/// An `http` or `https` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl(pub String);

impl Shape for WebUrl {
    const KIND: Kind = Kind::Url;
}

impl Readable for WebUrl {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let text = String::read(value, field)?;
        let is_web = |it: Url| matches!(it.scheme(), "http" | "https") && it.has_host();
        match text.is_empty() || Url::parse(&text).is_ok_and(is_web) {
            true => Ok(WebUrl(text)),
            false => Err("Enter a valid URL.".to_owned()),
        }
    }
}

impl Serialize for WebUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Shape for String {
    const KIND: Kind = Kind::Text;
}

impl Readable for String {
    /// Trims white space.
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        text(value.as_str().map(str::trim), field).map(str::to_owned)
    }
}

/// A text whose white space counts, such as the lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Verbatim(pub String);

impl Shape for Verbatim {
    const KIND: Kind = Kind::Text;
}

impl Readable for Verbatim {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        text(value.as_str(), field).map(|it| Self(it.to_owned()))
    }
}

fn text<'a>(text: Option<&'a str>, field: &Field) -> Result<&'a str, String> {
    let text = text.ok_or("Expected a text.")?;
    if text.is_empty() && !field.may_be_blank {
        return Err("This field may not be blank.".to_owned());
    }
    if text.contains('\0') {
        return Err("Null characters are not allowed.".to_owned());
    }
    if text.chars().count() > field.chars_max {
        return Err(format!("Ensure this field has no more than {} characters.", field.chars_max));
    }
    Ok(text)
}

impl Shape for &'static str {
    const KIND: Kind = Kind::Text;
}

impl Shape for Secret {
    const KIND: Kind = Kind::Text;
}

impl Readable for Secret {
    /// Keeps white space, which may be part of a password.
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        text(value.as_str(), field).map(Secret::new)
    }
}

/// A secret that an answer shows to its owner. It does not print itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSecret(pub Secret);

impl Shape for ShownSecret {
    const KIND: Kind = Kind::Text;
}

impl Readable for ShownSecret {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        Secret::read(value, field).map(Self)
    }
}

impl Serialize for ShownSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl Shape for bool {
    const KIND: Kind = Kind::Flag;
}

/// The texts that are read as a flag.
pub(super) const FLAG_TEXTS: [(&str, bool); 6] =
    [("true", true), ("True", true), ("1", true), ("false", false), ("False", false), ("0", false)];

impl Readable for bool {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let of_text = |text: &str| FLAG_TEXTS.iter().find(|it| it.0 == text).map(|it| it.1);
        let read = value.as_bool().or_else(|| value.as_str().and_then(of_text));
        read.ok_or_else(|| "Expected true or false.".to_owned())
    }
}

/// Reads a whole number within the limits of the field. Also accepts a text of digits, and `5.0`.
fn integer(value: &Value, field: &Field) -> Result<i64, String> {
    let of_float = |it: f64| (it.fract() == 0.0 && it.abs() < 9e15).then_some(it as i64);
    let read = value
        .as_i64()
        .or_else(|| value.as_f64().and_then(of_float))
        .or_else(|| value.as_str().and_then(|it| it.trim().parse().ok()));
    let number = read.ok_or("A valid integer is required.")?;
    if let Some(least) = field.least.filter(|it| number < *it) {
        return Err(format!("Ensure this value is greater than or equal to {least}."));
    }
    if let Some(most) = field.most.filter(|it| number > *it) {
        return Err(format!("Ensure this value is less than or equal to {most}."));
    }
    Ok(number)
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Shape for $type {
            const KIND: Kind = Kind::Integer;
        }

        impl Readable for $type {
            fn read(value: &Value, field: &Field) -> Result<Self, String> {
                let number = integer(value, field)?;
                Self::try_from(number).map_err(|_| match number < 0 {
                    true => format!("Ensure this value is greater than or equal to {}.", Self::MIN),
                    false => format!("Ensure this value is less than or equal to {}.", Self::MAX),
                })
            }
        }
    )+};
}
integers!(i16, u16, u32, u64, usize, i32, i64);

macro_rules! ids {
    ($($type:ident),+) => {$(
        impl Shape for $type {
            const KIND: Kind = Kind::Integer;
        }

        impl Readable for $type {
            fn read(value: &Value, field: &Field) -> Result<Self, String> {
                u32::read(value, field).map($type)
            }
        }

        stored_as_is!($type);
    )+};
}
ids!(
    AccountId,
    ChannelId,
    DeliveryId,
    DeviceLoginId,
    EpisodeId,
    GroupId,
    GuideChannelId,
    GuideSourceId,
    IntegrationId,
    LineupId,
    LogEntryId,
    LogoId,
    OutputProfileId,
    PermissionId,
    PersonalPlaylistId,
    ProfileId,
    RecordingId,
    RecordingRuleId,
    ServerGroupId,
    StreamId,
    StreamProfileId,
    TunerDeviceId,
    UserGroupId,
    UserId,
    VodCategoryId
);

/// The id of a programme is a number or a text.
impl Shape for EntryId {
    const KIND: Kind = Kind::Either(&[Kind::Integer, Kind::Text]);
}

impl Shape for f64 {
    const KIND: Kind = Kind::Number;
}

impl Readable for f64 {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let of_text = |it: &str| it.trim().parse().ok().filter(|it: &f64| it.is_finite());
        let read = value.as_f64().or_else(|| value.as_str().and_then(of_text));
        let number = read.ok_or("Expected a number, such as 1.5.")?;
        if let Some(least) = field.least.filter(|it| number < *it as f64) {
            return Err(format!("Ensure this value is greater than or equal to {least}."));
        }
        if let Some(most) = field.most.filter(|it| number > *it as f64) {
            return Err(format!("Ensure this value is less than or equal to {most}."));
        }
        Ok(number)
    }
}

impl Shape for UserLevel {
    const KIND: Kind = Kind::NumberChoice(&[0, 1, 10]);
}

impl Readable for UserLevel {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let number = integer(value, field)?;
        let level = u64::try_from(number).ok().and_then(UserLevel::from_number);
        level.ok_or_else(|| format!("\"{number}\" is not a valid choice."))
    }
}

impl Shape for Uuid {
    const KIND: Kind = Kind::Uuid;
}

impl Readable for Uuid {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let read = value.as_str().and_then(|it| Uuid::try_parse(it).ok());
        read.ok_or_else(|| "Expected a UUID, such as 3f2504e0-4f89-41d3-9a0c-0305e82c3301.".to_owned())
    }
}

impl Shape for Map<String, Value> {
    const KIND: Kind = Kind::Object;
}

impl Readable for Map<String, Value> {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let read = value.as_object().cloned();
        read.ok_or_else(|| "Expected an object of names and values.".to_owned())
    }
}

impl Shape for Value {
    const KIND: Kind = Kind::Any;
    const IS_NULLABLE: bool = true;
}

impl Readable for Value {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Ok(value.clone())
    }
}

/// A field that may be `null`.
impl<T: Shape> Shape for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_NULLABLE: bool = true;
}

impl<T: Readable> Readable for Option<T> {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::read(value, field).map(Some) }
    }
}

impl<T: Shape> Shape for Vec<T> {
    const KIND: Kind = match (T::IS_NULLABLE, T::KIND) {
        (false, _) | (true, Kind::Any) => Kind::List(&T::KIND),
        (true, _) => Kind::List(&Kind::Nullable(&T::KIND)),
    };
}

impl<T: Readable> Readable for Vec<T> {
    /// In a query, a list is one text separated by commas.
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let items = items(value, field)?;
        let read = |(n, item): (usize, &Value)| {
            let item = if item.is_null() && !T::IS_NULLABLE {
                Err("This field may not be null.".to_owned())
            } else {
                T::read(item, field)
            };
            item.map_err(|error| format!("Item {}: {error}", n + 1))
        };
        items.iter().enumerate().map(read).collect()
    }
}

/// Returns the items of a list.
fn items<'a>(value: &'a Value, field: &Field) -> Result<Cow<'a, [Value]>, String> {
    let items: Cow<'_, [Value]> = match value {
        Value::Array(items) => items.into(),
        Value::String(text) if field.place == Place::Query => {
            text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(Value::from).collect()
        }
        _ => return Err("Expected a list of items.".to_owned()),
    };
    match items.len() > field.items_max {
        true => Err(format!("Ensure this field has no more than {} elements.", field.items_max)),
        false => Ok(items),
    }
}

/// Returns the message for a value that is not one of these names.
pub fn not_a_choice(value: &Value, names: &[&str]) -> String {
    format!("{} is not a valid choice. Choose one of: {}.", printable(value), names.join(", "))
}

/// Returns a value for use in a message: a shortened text, a number, or a placeholder.
fn printable(value: &Value) -> String {
    const CHARS_MAX: usize = 100;
    match value {
        Value::String(text) => format!("\"{}\"", text.chars().take(CHARS_MAX).collect::<String>()),
        Value::Number(number) => format!("\"{number}\""),
        _ => "This".to_owned(),
    }
}
