//! Types of fields that channels and streams share: names, groups, numbers and addresses.

use domain::channel::{ChannelNumber, ChannelNumberError};
use domain::group::Group;
use domain::ids::GroupId;
use domain::portal::PortalStreamAddress;
use domain::source_url::{NETWORK_SCHEMES, SourceUrl};
use domain::timeshift::TimeShiftMode;
use media::check_udp_address;
use route_frame::field::{Field, Kind, Place};
use route_frame::value::{Readable, Shape, Stored};
use serde::{Serialize, Serializer};
use serde_json::Value;
use server::reply::Refusal;
use storage::{Table, Write};
use url::Url;

use crate::choice::choice;

choice!(TimeShiftMode { Off = "off", Watched = "watched", Always = "always" });

/// A text without surrounding white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

impl Stored<String> for Text {
    fn from_stored(value: &String) -> Self {
        Text(value.clone())
    }

    fn into_stored(self) -> String {
        self.0
    }
}

impl Shape for Text {
    const KIND: Kind = Kind::Text;
}

impl Readable for Text {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        String::read(value, &Field { place: Place::Edit, ..*field }).map(Text)
    }
}

/// A text with its white space, which can be a part of a pattern or a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Untrimmed(pub(super) String);

impl Shape for Untrimmed {
    const KIND: Kind = Kind::Text;
}

impl Readable for Untrimmed {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        // The rules of a text, for the text as it was sent.
        let text = domain::secret::Secret::read(value, field)?;
        Ok(Self(text.expose().to_owned()))
    }
}

/// A channel number: an exact JSON number. A text is accepted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelNumberValue(pub(crate) ChannelNumber);

impl Shape for ChannelNumberValue {
    const KIND: Kind = Kind::Number;
}

impl Readable for ChannelNumberValue {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.trim().to_owned(),
            _ => String::new(),
        };
        if text.parse::<f64>() == Ok(0.0) {
            return Err("Ensure this value is greater than 0.".to_owned());
        }
        text.parse().map(ChannelNumberValue).map_err(|error: ChannelNumberError| match error {
            ChannelNumberError::NotANumber => {
                "A valid channel number is required, such as 4 or 4.1.".to_owned()
            }
            ChannelNumberError::TooLarge => {
                format!("Ensure this value is less than or equal to {}.", ChannelNumber::WHOLE_MAX)
            }
            ChannelNumberError::TooManyDecimals => {
                "Ensure that there are no more than 3 decimal places.".to_owned()
            }
        })
    }
}

impl Serialize for ChannelNumberValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.to_string();
        match text.parse::<u64>() {
            Ok(whole) => serializer.serialize_u64(whole),
            // With at most eleven digits, the nearest float prints the same digits.
            Err(_) => serializer.serialize_f64(text.parse().map_err(serde::ser::Error::custom)?),
        }
    }
}

/// A channel group, by its id or one of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupRef {
    Id(GroupId),
    Name(String),
}

impl Shape for GroupRef {
    const KIND: Kind = Kind::Either(&[Kind::Integer, Kind::Text]);
}

impl Readable for GroupRef {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        match value {
            Value::String(_) => {
                let field = Field { chars_max: domain::group::GROUP_NAME_CHARS_MAX, ..*field };
                Text::read(value, &field).map(|it| Self::Name(it.0))
            }
            _ => GroupId::read(value, field).map(Self::Id),
        }
    }
}

/// Returns the referenced group.
pub(super) fn find_group(write: &Write<'_>, wanted: &GroupRef) -> Result<Option<Group>, Refusal> {
    Ok(match wanted {
        GroupRef::Id(id) => write.get(id.0)?,
        GroupRef::Name(name) => write.by::<Group>("name", name)?.into_iter().next(),
    })
}

/// Returns the message for a group that does not exist.
pub(super) fn no_such_group(wanted: &GroupRef) -> String {
    match wanted {
        GroupRef::Id(id) => no_such(id),
        GroupRef::Name(name) => format!("The channel group \"{name}\" does not exist."),
    }
}

/// Prefixes a message with the position of its item, as for all lists.
pub(super) fn item(n: usize, message: &str) -> String {
    format!("Item {}: {message}", n + 1)
}

/// Returns the message for an id that does not exist.
pub(in crate::api) fn no_such(id: impl std::fmt::Display) -> String {
    format!("Invalid pk \"{id}\" - object does not exist.")
}

/// Maximum number of commas in a group name that a filter can find.
const COMMAS_MAX: usize = 8;

/// Names or ids of groups, separated by commas. A name can itself contain commas, so every sequence of adjacent parts
/// may be a name too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupNames(Vec<String>);

impl Shape for GroupNames {
    const KIND: Kind = <Vec<String>>::KIND;
}

impl Readable for GroupNames {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let mut names = <Vec<String>>::read(value, field)?;
        let parts: Vec<&str> = value.as_str().unwrap_or_default().split(',').collect();
        for n_parts in 2..=COMMAS_MAX + 1 {
            names.extend(parts.windows(n_parts).map(|it| it.join(",").trim().to_owned()));
        }
        Ok(Self(names))
    }
}

/// Groups of a filter, by name or id.
pub(super) struct GroupFilter {
    pub(super) names: Vec<String>,
    pub(super) ids: Vec<GroupId>,
}

impl GroupFilter {
    /// A renamed group also matches its former names.
    pub(super) fn new(wanted: GroupNames, groups: &Table<Group>) -> Self {
        let (mut names, mut ids) = (Vec::new(), Vec::new());
        for text in wanted.0 {
            let of_name = groups.one_by("name", &text);
            let of_id = text.parse().ok().and_then(|id| groups.get(id));
            for group in of_name.into_iter().chain(of_id) {
                names.extend(group.names().map(str::to_owned));
                ids.push(group.id);
            }
            names.push(text);
        }
        Self { names, ids }
    }
}

/// URL of a stream that an API client sends. Excludes `file`, because an API client must not select files of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamUrl(pub(crate) SourceUrl);

impl Shape for StreamUrl {
    const KIND: Kind = Kind::Url;
}

impl Readable for StreamUrl {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let Text(text) = Text::read(value, field)?;
        let is_plain = !text.contains(|it: char| it.is_whitespace() || it.is_control());
        // Clients send back the address of a stream of a portal, as it is shown.
        let of_portal = SourceUrl::new(text.as_str());
        if PortalStreamAddress::shown(&of_portal).is_some_and(|it| it == text) {
            return Ok(Self(of_portal));
        }
        // They may have no host, such as `udp://@:1234`, and the zone of an IPv6 address.
        match check_udp_address(&text) {
            Some(Ok(())) if is_plain => return Ok(Self(SourceUrl::new(text))),
            Some(Err(reason)) => return Err(format!("Enter a valid URL: {reason}.")),
            _ => {}
        }
        match Url::parse(&text) {
            Ok(url) if !url.cannot_be_a_base() && !NETWORK_SCHEMES.contains(&url.scheme()) => {
                Err(format!("The scheme of the URL must be one of: {}.", NETWORK_SCHEMES.join(", ")))
            }
            Ok(url) if is_plain && url.has_host() => Ok(Self(SourceUrl::new(text))),
            _ => Err("Enter a valid URL.".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field<T: Shape>() -> Field {
        Field::new::<T>("it", "", Place::Write)
    }

    #[test]
    fn a_channel_number_is_a_json_number_with_the_digits_that_people_write() {
        let check = |sent: Value, shown: &str| {
            let number = ChannelNumberValue::read(&sent, &field::<ChannelNumberValue>()).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap(), shown, "{sent}");
        };
        check(json!(4), "4");
        check(json!(4.0), "4");
        check(json!("4.10"), "4.1");
        check(json!(4.1), "4.1");
        check(json!(" 0.001 "), "0.001");
        check(json!("99999998.999"), "99999998.999");
        check(json!(99_999_999), "99999999");
        for n in 0..20_000 {
            let text = format!("1234{}.{:03}", n / 1000, n % 1000);
            let expected = text.trim_end_matches('0').trim_end_matches('.');
            check(json!(text), expected);
            check(json!(text.parse::<f64>().unwrap()), expected);
        }
    }

    #[test]
    fn a_filter_finds_a_group_with_commas_in_its_name() {
        let field = Field::new::<GroupNames>("it", "", Place::Query).items_max(1000);
        let read = |text: &str| GroupNames::read(&json!(text), &field).unwrap().0;
        assert_eq!(read("News"), ["News"]);
        assert_eq!(read("A, B ,C"), ["A", "B", "C", "A, B", "B ,C", "A, B ,C"]);
        let many = vec!["x"; 1000].join(",");
        assert!(read(&many).len() < 10_000, "bounded");
        assert!(GroupNames::read(&json!(format!("{many},x")), &field).is_err());
    }

    #[test]
    fn an_invalid_channel_number_is_refused_with_the_reason() {
        let not_one = "A valid channel number is required, such as 4 or 4.1.";
        for (sent, message) in [
            (json!("abc"), not_one),
            (json!(-5), not_one),
            (json!(1e300), not_one),
            (json!(true), not_one),
            (json!([4]), not_one),
            (json!(100_000_000), "Ensure this value is less than or equal to 99999999."),
            (json!(4.1234), "Ensure that there are no more than 3 decimal places."),
        ] {
            let read = ChannelNumberValue::read(&sent, &field::<ChannelNumberValue>());
            assert_eq!(read.unwrap_err(), message, "{sent}");
        }
    }

    #[test]
    fn a_stream_of_an_admin_has_a_network_address() {
        let read = |text: &str| StreamUrl::read(&json!(text), &field::<StreamUrl>());
        for url in [
            "http://tv.example/1.ts",
            "HTTPS://user:secret@tv.example:8443/live?x=1",
            "rtsp://192.0.2.1/stream",
            "udp://@239.0.0.1:1234",
            "udp://@:1234",
            "rtp://[ff15::1%25eth0]:5004",
            "rtmp://[2001:db8::1]/live/1",
            "srt://192.0.2.1:9000",
        ] {
            assert_eq!(read(url).unwrap().0.expose(), url);
        }
        for url in [
            "foo bar",
            "tv.example/1.ts",
            "http://",
            "http://a b/",
            "http://[::1",
            "http://h/\r\nx",
            "mailto:a",
        ] {
            assert_eq!(read(url).unwrap_err(), "Enter a valid URL.", "{url}");
        }
        let refused = read("udp://@239.0.0.1:0").unwrap_err();
        assert_eq!(refused, "Enter a valid URL: invalid address: its port is 0.");
        for url in [
            "file://localhost/etc/passwd",
            "file:///etc/passwd",
            "ftp://tv.example/1.ts",
            "gopher://tv.example/",
        ] {
            assert!(read(url).unwrap_err().starts_with("The scheme"), "{url}");
        }
    }
}
