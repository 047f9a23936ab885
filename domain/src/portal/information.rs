//! Answers about a device: its token, its profile, its login and its subscription.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use super::answer::PortalError;
use super::device::PortalDevice;
use crate::panel::LooseValue;
use crate::secret::Secret;

/// Limits of the interval in which a portal asks to be told that a box is on, in seconds.
const WATCHDOG_MIN: i64 = 30;
const WATCHDOG_MAX: i64 = 600;
/// The interval if the portal names none, in seconds.
const WATCHDOG_USUAL: i64 = 120;

const MESSAGE_CHARS_MAX: usize = 200;
const TOKEN_BYTES_MAX: usize = 1024;

/// The answer to a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    pub token: Secret,
    /// The portal does not know the token that was offered.
    pub is_invalid: bool,
}

/// The answer of a portal about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortalProfile {
    pub state: PortalProfileState,
    /// Seconds between two messages that the box is on.
    pub watchdog_seconds: u32,
}

/// Whether a device may ask further questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortalProfileState {
    Accepted,
    /// The portal asks for a user name and a password.
    LoginRequired,
    /// It is blocked. Contains the message of the portal without the values of the device.
    Refused(String),
}

/// Reads the answer to a handshake.
///
/// # Errors
/// The device gets no token.
pub fn read_handshake(js: &Value) -> Result<Handshake, PortalError> {
    let token = field(js, "token").text().filter(|it| is_token(it)).map(Secret::new);
    let token = token.ok_or(PortalError::NoToken)?;
    Ok(Handshake { token, is_invalid: field(js, "not_valid").is_yes() })
}

fn is_token(text: &str) -> bool {
    text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|it| it.is_ascii_graphic())
}

/// Reads the answer about a device.
///
/// # Errors
/// It is not an answer about a device.
pub fn read_profile(js: &Value, device: &PortalDevice) -> Result<PortalProfile, PortalError> {
    let says_nothing = matches!(js, Value::Bool(false) | Value::Null);
    if !says_nothing && !js.is_object() && !js.as_array().is_some_and(Vec::is_empty) {
        return Err(PortalError::NotAPortal);
    }
    let messages = [field(js, "block_msg"), field(js, "msg")];
    let message = messages.iter().find_map(|it| message(it, device));
    let is_blocked = field(js, "blocked").is_yes();
    let state = match field(js, "status").whole() {
        _ if says_nothing => PortalProfileState::Refused("it is not known".to_owned()),
        Some(2) => PortalProfileState::LoginRequired,
        Some(0) | None if !is_blocked => PortalProfileState::Accepted,
        _ => PortalProfileState::Refused(message.unwrap_or_else(|| "it is blocked".to_owned())),
    };
    let interval = ["watchdog_timeout", "timeslot"].iter().find_map(|it| field(js, it).whole());
    let interval = interval.filter(|it| *it > 0).unwrap_or(WATCHDOG_USUAL).clamp(WATCHDOG_MIN, WATCHDOG_MAX);
    Ok(PortalProfile { state, watchdog_seconds: u32::try_from(interval).unwrap_or(u32::MAX) })
}

/// Reads the answer to a login.
///
/// # Errors
/// User name or password are wrong.
pub fn read_login(js: &Value) -> Result<(), PortalError> {
    let is_accepted = match js {
        Value::Object(answer) => !answer.is_empty(),
        value => loose(value).is_yes(),
    };
    if is_accepted { Ok(()) } else { Err(PortalError::LoginRefused) }
}

/// Returns the end of a subscription in milliseconds since 1970. Portals name it in a field of its own, or in that of the
/// telephone number. `None` if it does not end, or in an unknown form.
pub fn expiry_of(js: &Value) -> Option<i64> {
    const NAMES: [&str; 5] = ["end_date", "expire_billing_date", "exp_date", "expires", "phone"];
    let ms = NAMES.iter().find_map(|name| time_ms(&field(js, name), *name != "phone"))?;
    (ms > 0).then_some(ms)
}

/// Returns a time in milliseconds. A number is one only where a telephone number cannot be.
fn time_ms(value: &LooseValue, may_be_number: bool) -> Option<i64> {
    const SECONDS_MAX: i64 = 100_000_000_000;
    if let Some(seconds) = value.whole() {
        return (may_be_number && (1..SECONDS_MAX).contains(&seconds)).then(|| seconds * 1000);
    }
    let text = value.text()?;
    // "2030-01-31 (12 days)"
    let text = text.split_once(" (").map_or(text.as_str(), |it| it.0).trim();
    let at = text.parse::<DateTime>().ok().or_else(|| written_out(text))?;
    Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Reads "March 7, 2030, 12:00 am" and "07.03.2030".
fn written_out(text: &str) -> Option<DateTime> {
    ["%B %d, %Y, %I:%M %P", "%B %d, %Y, %H:%M"]
        .iter()
        .find_map(|it| DateTime::strptime(it, text).ok())
        .or_else(|| {
            let date =
                ["%B %d, %Y", "%d.%m.%Y", "%d/%m/%Y"].iter().find_map(|it| Date::strptime(it, text).ok());
            Some(date?.to_datetime(Time::midnight()))
        })
}

fn message(value: &LooseValue, device: &PortalDevice) -> Option<String> {
    let text: String = value.text()?.chars().take(4 * MESSAGE_CHARS_MAX).collect();
    let text = device.redacted(&text);
    Some(text.chars().take(MESSAGE_CHARS_MAX).collect())
}

/// Returns a field of an object, whatever its type.
pub(super) fn field(js: &Value, name: &str) -> LooseValue {
    js.get(name).map(loose).unwrap_or_default()
}

fn loose(value: &Value) -> LooseValue {
    LooseValue::deserialize(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::portal::MacAddress;

    fn device() -> PortalDevice {
        PortalDevice::new(MacAddress::parse("00:1A:79:AB:CD:EF").unwrap())
    }

    #[test]
    fn a_handshake_gives_a_token_or_is_refused() {
        let token = |js: &Value| read_handshake(js).map(|it| (it.token.expose().to_owned(), it.is_invalid));
        assert_eq!(token(&json!({ "token": "NEW" })), Ok(("NEW".into(), false)));
        assert_eq!(token(&json!({ "token": "NEW", "not_valid": "1" })), Ok(("NEW".into(), true)));
        for js in [
            json!(false),
            json!([]),
            json!(null),
            json!({}),
            json!({ "random": "x" }),
            json!({ "token": "" }),
            json!({ "token": "a b" }),
        ] {
            assert_eq!(token(&js), Err(PortalError::NoToken), "{js}");
        }
    }

    #[test]
    fn a_profile_says_whether_a_device_is_accepted_whatever_the_types() {
        use PortalProfileState::{Accepted, LoginRequired};
        let refused = |it: &str| PortalProfileState::Refused(it.to_owned());
        for (js, state) in [
            (json!({ "id": "1", "status": 0 }), Accepted),
            (json!({ "id": 1, "status": "0", "blocked": "0" }), Accepted),
            (json!({ "id": 1 }), Accepted),
            (json!([]), Accepted),
            (json!({ "status": 2 }), LoginRequired),
            (json!({ "status": "2" }), LoginRequired),
            (
                json!({ "status": 1, "msg": "Your box 00:1A:79:ab:cd:ef is blocked" }),
                refused("Your box … is blocked"),
            ),
            (json!({ "status": 1, "msg": "", "block_msg": "Pay" }), refused("Pay")),
            (json!({ "status": 1 }), refused("it is blocked")),
            (json!({ "status": 0, "blocked": "1" }), refused("it is blocked")),
            (json!(false), refused("it is not known")),
            (json!(null), refused("it is not known")),
        ] {
            assert_eq!(read_profile(&js, &device()).map(|it| it.state), Ok(state), "{js}");
        }
        assert_eq!(read_profile(&json!("text"), &device()), Err(PortalError::NotAPortal));
        for (js, seconds) in [
            (json!({ "watchdog_timeout": 120, "timeslot": 90 }), 120),
            (json!({ "watchdog_timeout": "60" }), 60),
            (json!({ "watchdog_timeout": 0 }), 120),
            (json!({ "timeslot": 90 }), 90),
            (json!({ "watchdog_timeout": 1 }), 30),
            (json!({ "watchdog_timeout": i64::MAX }), 600),
            (json!({}), 120),
        ] {
            assert_eq!(read_profile(&js, &device()).unwrap().watchdog_seconds, seconds, "{js}");
        }
    }

    #[test]
    fn a_login_is_accepted_only_if_the_portal_says_so() {
        for (js, is_accepted) in [
            (json!(true), true),
            (json!(1), true),
            (json!("true"), true),
            (json!({ "id": 1 }), true),
            (json!(false), false),
            (json!(null), false),
            (json!([]), false),
            (json!({}), false),
            (json!(""), false),
        ] {
            assert_eq!(read_login(&js).is_ok(), is_accepted, "{js}");
        }
    }

    #[test]
    fn the_end_of_a_subscription_is_read_in_its_usual_forms() {
        let at = Some(1_898_640_000_000);
        for js in [
            json!({ "end_date": "2030-03-02" }),
            json!({ "end_date": "2030-03-02 00:00:00" }),
            json!({ "end_date": "2030-03-02 (12 days)" }),
            json!({ "phone": "March 2, 2030, 12:00 am" }),
            json!({ "phone": "March 02, 2030" }),
            json!({ "expire_billing_date": "1898640000" }),
            json!({ "end_date": "02.03.2030" }),
        ] {
            assert_eq!(expiry_of(&js), at, "{js}");
        }
        for js in [
            json!({ "phone": "4915112345678" }),
            json!({ "phone": "Unlimited" }),
            json!({ "end_date": "0000-00-00 00:00:00" }),
            json!({ "end_date": null }),
            json!({}),
            json!([]),
            json!(false),
        ] {
            assert_eq!(expiry_of(&js), None, "{js}");
        }
    }
}
