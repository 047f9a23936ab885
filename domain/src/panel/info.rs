//! What a panel says about a login: whether it is valid, when it expires, and how many connections it has.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::elements::NotAList;
use super::live_form::ALLOWED_FORMATS;
use super::loose::LooseValue;
use crate::ids::{AccountId, ProfileId};

/// Maximum length of an answer about a login, in bytes. The usual ones have less than a thousand.
pub const INFO_BYTES_MAX: usize = 256 * 1024;

/// Days before the end of a login at which admins are told, once each; 0 is its end.
pub const EXPIRY_NOTICE_DAYS: [u32; 3] = [7, 1, 0];

/// Maximum number of values that are kept of an answer, and maximum length of a name and of a text, in characters.
const VALUES_MAX: usize = 40;
const NAME_CHARS_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 256;
/// Maximum number of items that are kept of a list in an answer.
const ITEMS_MAX: usize = 16;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// A time above it, as seconds the year 5138, is in milliseconds.
const SECONDS_MAX: i64 = 100_000_000_000;

/// The state of a login at its panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// It was never checked, or the panel says something unknown.
    #[default]
    Unknown,
    Active,
    Expired,
    Banned,
    Disabled,
    /// User or password are wrong.
    Refused,
}

impl LoginState {
    /// Returns why nothing can be played with this login, as a message for admins.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::Active => None,
            Self::Expired => Some("the panel says that the account has expired"),
            Self::Banned => Some("the panel says that the account is banned"),
            Self::Disabled => Some("the panel says that the account is disabled"),
            Self::Refused => Some("the panel refuses the user name or the password"),
        }
    }
}

/// The answer of a panel about a login.
#[derive(Clone, PartialEq, Default)]
pub struct PanelAnswer {
    pub state: LoginState,
    /// Milliseconds since 1970; `None` if the login does not expire.
    pub expires_at: Option<i64>,
    /// Maximum number of connections; `None` if the panel names none.
    pub max_connections: Option<u32>,
    /// The values of `user_info` without the password.
    pub user_info: Map<String, Value>,
    pub server_info: Map<String, Value>,
}

/// Why an answer says nothing about a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PanelInfoError {
    #[error("{0}")]
    NotAnAnswer(NotAList),
    #[error("the answer of the panel is cut off, or is not valid JSON")]
    Damaged,
    #[error("the server does not answer like a panel; check its address")]
    NotAPanel,
}

#[derive(Deserialize)]
struct RawAnswer {
    user_info: Option<Value>,
    server_info: Option<Value>,
}

impl PanelAnswer {
    /// Reads the answer to [`super::PanelAction::AccountInfo`].
    ///
    /// # Errors
    /// It is not the answer of a panel.
    pub fn read(bytes: &[u8]) -> Result<Self, PanelInfoError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii();
        match bytes.first() {
            None => return Err(PanelInfoError::NotAnAnswer(NotAList::Nothing)),
            Some(b'<') => return Err(PanelInfoError::NotAnAnswer(NotAList::WebPage)),
            Some(b'{') => {}
            Some(b'[' | b'"' | b'n' | b't' | b'f') => return Err(PanelInfoError::NotAPanel),
            Some(_) => return Err(PanelInfoError::NotAnAnswer(NotAList::SomethingElse)),
        }
        let raw: RawAnswer = serde_json::from_slice(bytes).map_err(|_| PanelInfoError::Damaged)?;
        let Some(Value::Object(mut user)) = raw.user_info else { return Err(PanelInfoError::NotAPanel) };
        let server = match raw.server_info {
            Some(Value::Object(server)) => server,
            _ => Map::new(),
        };
        // A list with gaps arrives as an object.
        if let Some(formats) = user.get_mut(ALLOWED_FORMATS)
            && let Value::Object(items) = formats
        {
            *formats = std::mem::take(items).into_iter().map(|(_, it)| it).collect();
        }
        let value = |name: &str| user.get(name).map(loose).unwrap_or_default();
        let max_connections = value("max_connections").whole().and_then(|it| u32::try_from(it).ok());
        Ok(Self {
            state: state(&value("auth"), &value("status")),
            expires_at: time_ms(&value("exp_date")),
            max_connections: max_connections.filter(|it| *it != 0),
            user_info: kept(user),
            server_info: kept(server),
        })
    }

    /// Returns the number of connections that the panel counts for the login now. `None` if it says no plain number, or
    /// refuses the login.
    pub fn connections(&self) -> Option<u32> {
        self.user_info.get("active_cons").filter(|_| self.state.refusal().is_none()).and_then(plain_number)
    }
}

/// Returns a number that is written as one, or as a text of digits.
fn plain_number(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => number.as_u64()?.try_into().ok(),
        Value::String(text) if text.bytes().all(|it| it.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

fn loose(value: &Value) -> LooseValue {
    LooseValue::deserialize(value).unwrap_or_default()
}

fn state(auth: &LooseValue, status: &LooseValue) -> LoginState {
    if !auth.is_nothing() && !auth.is_yes() {
        return LoginState::Refused;
    }
    match status.text().unwrap_or_default().to_ascii_lowercase().as_str() {
        "active" | "trial" => LoginState::Active,
        "expired" => LoginState::Expired,
        "banned" => LoginState::Banned,
        "disabled" => LoginState::Disabled,
        _ => LoginState::Unknown,
    }
}

/// Returns a time in milliseconds since 1970. Panels write seconds, rarely milliseconds or a date, and `null`, an empty
/// text or 0 for "never".
pub(super) fn time_ms(value: &LooseValue) -> Option<i64> {
    let ms = match value.whole() {
        Some(seconds) if (0..=SECONDS_MAX).contains(&seconds) => seconds * 1000,
        Some(ms) => ms,
        None => {
            let date: DateTime = value.text()?.parse().ok()?;
            date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()
        }
    };
    // Beyond this, a time is not a time.
    (ms > 0 && ms < SECONDS_MAX * 1000).then_some(ms)
}

/// Keeps plain values of an object, within limits, and without the password, which the panel repeats.
pub(super) fn kept(values: Map<String, Value>) -> Map<String, Value> {
    let is_short = |text: &str, max| text.chars().count() <= max;
    let is_plain = |it: &Value| match it {
        Value::String(text) => is_short(text, TEXT_CHARS_MAX),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    };
    let is_kept = |name: &str, value: &Value| {
        name != "password"
            && is_short(name, NAME_CHARS_MAX)
            && match value {
                Value::Array(items) => items.len() <= ITEMS_MAX && items.iter().all(is_plain),
                value => is_plain(value),
            }
    };
    values.into_iter().filter(|(name, value)| is_kept(name, value)).take(VALUES_MAX).collect()
}

/// Knowledge about the login of an account profile: the last answer of its panel, and the notices about its end.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileInfo {
    pub profile: ProfileId,
    pub account: AccountId,
    #[serde(default)]
    pub state: LoginState,
    #[serde(default)]
    pub user_info: Map<String, Value>,
    #[serde(default)]
    pub server_info: Map<String, Value>,
    /// When the panel last answered, in milliseconds since 1970.
    #[serde(default)]
    pub answered_at: Option<i64>,
    /// When it was last asked.
    #[serde(default)]
    pub tried_at: i64,
    /// Why the last question failed, for admins and without credentials. Empty if it succeeded.
    #[serde(default)]
    pub error: String,
    /// The last notice about the end of the login.
    #[serde(default)]
    pub notice: Option<ExpiryNotice>,
}

/// A notice that a login ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExpiryNotice {
    /// The end of the login, in milliseconds since 1970.
    pub expires_at: i64,
    /// One of [`EXPIRY_NOTICE_DAYS`].
    pub days: u32,
}

impl ProfileInfo {
    pub fn new(profile: ProfileId, account: AccountId) -> Self {
        Self {
            profile,
            account,
            state: LoginState::default(),
            user_info: Map::new(),
            server_info: Map::new(),
            answered_at: None,
            tried_at: 0,
            error: String::new(),
            notice: None,
        }
    }

    /// Forgets the answers, because the login is another one. The notices stay, because its end may be the same.
    pub fn forget_answer(self) -> Self {
        Self { notice: self.notice, ..Self::new(self.profile, self.account) }
    }
}

/// Without the values of the panel, which contain the user name.
impl fmt::Debug for ProfileInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileInfo")
            .field("profile", &self.profile)
            .field("account", &self.account)
            .field("state", &self.state)
            .field("tried_at", &self.tried_at)
            .field("error", &self.error)
            .field("notice", &self.notice)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PanelAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PanelAnswer")
            .field("state", &self.state)
            .field("expires_at", &self.expires_at)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

/// Returns the notice that is due for a login with this end, after the `last` one. Each number of days is due once per
/// end; an end that moves by less than a day is the same. A login that is known late skips the earlier notices.
pub fn due_notice(expires_at: i64, last: Option<ExpiryNotice>, now: i64) -> Option<ExpiryNotice> {
    let is_near = |days: &u32| now >= expires_at.saturating_sub(i64::from(*days) * DAY_MS);
    let days = EXPIRY_NOTICE_DAYS.into_iter().filter(is_near).min()?;
    let is_same_end = |it: &ExpiryNotice| it.expires_at.saturating_sub(expires_at).saturating_abs() < DAY_MS;
    let is_told = last.filter(is_same_end).is_some_and(|it| it.days <= days);
    (!is_told).then_some(ExpiryNotice { expires_at, days })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: Value) -> Result<PanelAnswer, PanelInfoError> {
        PanelAnswer::read(answer.to_string().as_bytes())
    }

    fn with(field: &str, value: Value) -> PanelAnswer {
        let mut answer = json!({ "user_info": { "auth": 1, "status": "Active" } });
        answer["user_info"][field] = value;
        read(answer).unwrap()
    }

    #[test]
    fn the_number_of_connections_counts_only_if_it_is_a_plain_number_of_a_valid_login() {
        for (value, expected) in [
            (json!(0), Some(0)),
            (json!("0"), Some(0)),
            (json!(3), Some(3)),
            (json!("12"), Some(12)),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("-1"), None),
            (json!("1 "), None),
            (json!(""), None),
            (json!("none"), None),
            (json!(null), None),
            (json!(false), None),
            (json!([0]), None),
            (json!({ "n": 0 }), None),
            (json!("99999999999"), None),
        ] {
            assert_eq!(with("active_cons", value.clone()).connections(), expected, "{value}");
        }
        assert_eq!(with("max_connections", json!(2)).connections(), None);
        let banned = read(json!({ "user_info": { "auth": 1, "status": "Banned", "active_cons": 0 } }));
        assert_eq!(banned.unwrap().connections(), None);
    }

    #[test]
    fn an_answer_is_read_and_kept_without_its_password() {
        let answer = read(json!({
            "user_info": {
                "username": "anna", "password": "hunter2", "auth": 1, "status": "Active", "exp_date": "1893456000",
                "is_trial": "0", "active_cons": "1", "max_connections": "2", "allowed_output_formats": ["m3u8", "ts"],
                "message": "x".repeat(300), "nested": { "a": 1 },
            },
            "server_info": { "url": "panel.example", "port": "80", "https_port": "443", "timezone": "Europe/Paris" },
        }))
        .unwrap();
        assert_eq!((answer.state, answer.max_connections), (LoginState::Active, Some(2)));
        assert_eq!(answer.expires_at, Some(1_893_456_000_000));
        let names: Vec<_> = answer.user_info.keys().map(String::as_str).collect();
        for name in ["username", "auth", "status", "exp_date", "active_cons", "allowed_output_formats"] {
            assert!(names.contains(&name), "{name}");
        }
        assert!(!["password", "message", "nested"].iter().any(|it| names.contains(it)), "{names:?}");
        assert_eq!(answer.server_info["timezone"], "Europe/Paris");
        assert!(!format!("{answer:?}").contains("anna"));
    }

    #[test]
    fn the_state_follows_from_auth_and_status() {
        for (auth, status, state) in [
            (json!(1), json!("Active"), LoginState::Active),
            (json!("1"), json!("ACTIVE"), LoginState::Active),
            (json!(true), json!("Trial"), LoginState::Active),
            (json!(null), json!("Active"), LoginState::Active),
            (json!(1), json!("Banned"), LoginState::Banned),
            (json!(1), json!("Expired"), LoginState::Expired),
            (json!(1), json!("Disabled"), LoginState::Disabled),
            (json!(0), json!("Active"), LoginState::Refused),
            (json!("0"), json!(null), LoginState::Refused),
            (json!(1), json!(7), LoginState::Unknown),
            (json!([]), json!({}), LoginState::Unknown),
        ] {
            let answer = read(json!({ "user_info": { "auth": auth, "status": status } })).unwrap();
            assert_eq!(answer.state, state, "{auth} {status}");
            assert_eq!(
                state.refusal().is_none(),
                matches!(state, LoginState::Active | LoginState::Unknown),
                "{state:?}"
            );
        }
        assert_eq!(read(json!({ "user_info": { "auth": 0 } })).unwrap().state, LoginState::Refused);
    }

    #[test]
    fn an_expiry_is_read_in_every_form_and_never_is_none() {
        let expected = Some(1_893_456_000_000);
        for value in [
            json!("1893456000"),
            json!(1_893_456_000),
            json!(1_893_456_000_000_i64),
            json!("1893456000.0"),
            json!("2030-01-01 00:00:00"),
            json!("2030-01-01"),
        ] {
            assert_eq!(with("exp_date", value.clone()).expires_at, expected, "{value}");
        }
        for value in [
            json!(null),
            json!(0),
            json!("0"),
            json!(""),
            json!("null"),
            json!("Unlimited"),
            json!([]),
            json!({}),
            json!(false),
            json!(-5),
            json!(i64::MAX),
            json!(i64::MIN),
            json!("99999999999999999999"),
        ] {
            assert_eq!(with("exp_date", value.clone()).expires_at, None, "{value}");
        }
        for (value, expected) in [
            (json!("3"), Some(3)),
            (json!(3), Some(3)),
            (json!(0), None),
            (json!(null), None),
            (json!(-1), None),
        ] {
            assert_eq!(with("max_connections", value.clone()).max_connections, expected, "{value}");
        }
    }

    #[test]
    fn an_answer_of_something_else_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", PanelInfoError::NotAnAnswer(NotAList::Nothing)),
            ("<html>Blocked</html>", PanelInfoError::NotAnAnswer(NotAList::WebPage)),
            ("Too many requests", PanelInfoError::NotAnAnswer(NotAList::SomethingElse)),
            ("{\"user_info\":{\"auth\":1", PanelInfoError::Damaged),
            ("[]", PanelInfoError::NotAPanel),
            ("null", PanelInfoError::NotAPanel),
            ("{}", PanelInfoError::NotAPanel),
            ("{\"user_info\":[]}", PanelInfoError::NotAPanel),
            ("{\"error\":\"x\"}", PanelInfoError::NotAPanel),
        ] {
            assert_eq!(PanelAnswer::read(text.as_bytes()), Err(reason), "{text}");
        }
    }

    #[test]
    fn each_notice_is_due_once_per_end_of_a_login() {
        let end = 100 * DAY_MS;
        let at = |days: i64, last| due_notice(end, last, end - days * DAY_MS).map(|it| it.days);
        let told = |days| Some(ExpiryNotice { expires_at: end, days });
        assert_eq!(at(8, None), None);
        assert_eq!(at(7, None), Some(7));
        assert_eq!(at(3, told(7)), None);
        assert_eq!(at(1, told(7)), Some(1));
        assert_eq!(at(0, told(1)), Some(0));
        assert_eq!(at(-30, told(0)), None);
        assert_eq!(at(0, None), Some(0), "an end that is known late");
        let moved = Some(ExpiryNotice { expires_at: end - DAY_MS / 2, days: 7 });
        assert_eq!(at(5, moved), None, "the panel rounds");
        let renewed = Some(ExpiryNotice { expires_at: end - 30 * DAY_MS, days: 0 });
        assert_eq!(at(5, renewed), Some(7), "the login was renewed and ends again");
    }
}
