//! A user of the gateway, with permissions.

use std::collections::BTreeSet;
use std::fmt;

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::allowed_hours::AllowedHours;
use crate::ids::{GroupId, LineupId, PermissionId, UserGroupId, UserId};
use crate::panel::ExpiryNotice;
use crate::secret::Secret;

/// The custom property with which an admin lets a user of level 1 record, or not, whatever the settings say.
pub const RECORDINGS_ENABLED: &str = "recordings_enabled";

/// The custom property with which an admin switches off that a user watches the past of channels.
pub const CATCHUP_ENABLED: &str = "catchup_enabled";

/// A person or a program that logs in. Fields and meanings are those of the API's *User*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    /// In the normal form NFC. Unique, ignoring case.
    pub username: String,
    #[serde(default)]
    pub email: String,
    #[serde(default)]
    pub first_name: String,
    #[serde(default)]
    pub last_name: String,
    /// The hash of the account's password, in PHC form. `None` disables the login by password.
    pub password: Option<Secret>,
    /// The password for player apps, if it is not the account's. In clear text, because panels return it.
    pub player_password: Option<Secret>,
    /// The API key, if any.
    pub api_key: Option<ApiKey>,
    /// An inactive user is refused everywhere.
    pub is_active: bool,
    #[serde(default)]
    pub is_staff: bool,
    /// Passes every permission check.
    #[serde(default)]
    pub is_superuser: bool,
    pub level: UserLevel,
    /// The lineups to which the user is restricted; empty is unrestricted.
    #[serde(default)]
    pub lineups: Vec<LineupId>,
    /// The channel groups to which the user is restricted, beside the lineups; empty is unrestricted. A group that was deleted
    /// has no channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channel_groups: Vec<GroupId>,
    /// The groups of the user, without duplicates.
    #[serde(default)]
    pub groups: Vec<UserGroupId>,
    /// Permissions besides those of the groups.
    #[serde(default)]
    pub permissions: BTreeSet<PermissionId>,
    /// Those of all permissions, also of the groups, that an admin has given or confirmed since permissions have an effect. Only
    /// these have one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub granted: BTreeSet<PermissionId>,
    /// Maximum number of channels watched at the same time; 0 is unlimited.
    #[serde(default)]
    pub stream_limit: u32,
    /// Hides channels marked as adult.
    #[serde(default)]
    pub hide_adult: bool,
    #[serde(default)]
    pub avatar: Map<String, Value>,
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub joined_at: i64,
    #[serde(default)]
    pub last_login: Option<i64>,
    /// Tokens of an earlier generation are rejected. Incremented when the password changes.
    #[serde(default)]
    pub generation: u32,
    /// Whether the password is too weak for an admin. Passwords of earlier versions were not checked.
    #[serde(default)]
    pub has_weak_password: bool,
    /// Player secrets that were derived from an earlier counter are rejected.
    #[serde(default)]
    pub player_secret_counter: u32,
    /// The end of the account, in milliseconds since 1970: from then on the user is treated as inactive. `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The last notice about the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_notice: Option<ExpiryNotice>,
    /// The hours in which the user may watch; `None` sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_hours: Option<AllowedHours>,
    /// When the streams of the user end, in milliseconds since 1970: a sleep timer, which is removed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_until: Option<i64>,
}

/// The hash of a new password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordHash {
    /// In PHC form.
    pub hash: Secret,
    /// Whether the password is too weak for an admin.
    pub is_weak: bool,
}

/// An API key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// The key itself, which its owner can read.
    pub key: Secret,
    /// The keyed hash by which the key is looked up, so that neither an index nor the timing of a comparison reveals
    /// the key.
    pub digest: [u8; 32],
}

/// The permission level of a user. Ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum UserLevel {
    /// Watches assigned channels.
    #[default]
    Streamer,
    /// Also sees channels and state.
    Standard,
    /// May do everything.
    Admin,
}

impl UserLevel {
    pub const ALL: [Self; 3] = [Self::Streamer, Self::Standard, Self::Admin];

    /// Returns the number that the API uses.
    pub fn number(self) -> u8 {
        match self {
            Self::Streamer => 0,
            Self::Standard => 1,
            Self::Admin => 10,
        }
    }

    /// Returns the level with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|it| u64::from(it.number()) == number)
    }
}

impl fmt::Display for UserLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl Serialize for UserLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

impl<'de> Deserialize<'de> for UserLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        Self::from_number(number)
            .ok_or_else(|| serde::de::Error::custom(format!("{number} is not a user level")))
    }
}

impl User {
    /// Creates a user with a name and a level, who cannot log in yet.
    pub fn new(id: UserId, username: impl Into<String>, level: UserLevel, at: i64) -> Self {
        Self {
            id,
            username: username.into(),
            email: String::new(),
            first_name: String::new(),
            last_name: String::new(),
            password: None,
            player_password: None,
            api_key: None,
            is_active: true,
            is_staff: false,
            is_superuser: false,
            level,
            lineups: Vec::new(),
            channel_groups: Vec::new(),
            groups: Vec::new(),
            permissions: BTreeSet::new(),
            granted: BTreeSet::new(),
            stream_limit: 0,
            hide_adult: false,
            avatar: Map::new(),
            custom_properties: Map::new(),
            joined_at: at,
            last_login: None,
            generation: 0,
            has_weak_password: false,
            player_secret_counter: 0,
            expires_at: None,
            expiry_notice: None,
            allowed_hours: None,
            sleep_until: None,
        }
    }

    /// Returns the permission level; a superuser has all permissions.
    pub fn effective_level(&self) -> UserLevel {
        if self.is_superuser { UserLevel::Admin } else { self.level }
    }

    /// Returns whether the user is active and has at least this level.
    pub fn may(&self, level: UserLevel) -> bool {
        self.is_active && self.effective_level() >= level
    }

    /// Returns whether the user is active and has this level, or a permission that takes its place. A permission gives at most
    /// what level 1 has.
    pub fn may_with(&self, level: UserLevel, permission: Option<PermissionId>) -> bool {
        let is_granted = || permission.is_some_and(|it| self.granted.contains(&it));
        self.may(level) || (self.is_active && level <= UserLevel::Standard && is_granted())
    }

    /// Returns whether the account has ended at this time, in milliseconds since 1970.
    pub fn has_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|it| it <= now)
    }

    /// Returns whether the user may log in and watch at this time, in milliseconds since 1970.
    pub fn is_active_at(&self, now: i64) -> bool {
        self.is_active && !self.has_expired(now)
    }

    /// Returns whether a time, in milliseconds since 1970, is within the allowed hours. Admins have none.
    pub fn is_within_hours(&self, now: i64) -> bool {
        self.hours().is_none_or(|it| it.allows(now))
    }

    /// Returns the allowed hours, if they limit the user.
    pub fn hours(&self) -> Option<&AllowedHours> {
        self.allowed_hours.as_ref().filter(|_| self.effective_level() != UserLevel::Admin)
    }

    /// Returns the next time after `after` at which streams of the user may have to end: the account ends, the allowed hours
    /// end or begin, or the sleep timer runs out. Milliseconds since 1970.
    pub fn next_end(&self, after: i64) -> Option<i64> {
        let hours = self.hours().and_then(|it| it.next_change(after));
        [self.expires_at, self.sleep_until, hours].into_iter().flatten().filter(|it| *it > after).min()
    }

    /// Returns whether a user of level 1 may record; `None` for as the settings say.
    pub fn recordings_enabled(&self) -> Option<bool> {
        self.custom_properties.get(RECORDINGS_ENABLED).and_then(Value::as_bool)
    }

    /// Returns whether the user may watch the past of channels: everybody may, unless an admin switched it off.
    pub fn may_catch_up(&self) -> bool {
        self.custom_properties.get(CATCHUP_ENABLED).and_then(Value::as_bool).unwrap_or(true)
    }

    /// Replaces the password, which rejects all tokens issued so far. Checked passwords only.
    pub fn set_password(&mut self, password: PasswordHash) {
        self.password = Some(password.hash);
        self.has_weak_password = password.is_weak;
        self.generation = self.generation.wrapping_add(1);
    }

    /// Replaces or removes the player password. Also revokes the player secret, because both are accepted by the same
    /// addresses.
    pub fn set_player_password(&mut self, password: Option<Secret>) {
        if self.player_password != password {
            self.player_password = password;
            self.revoke_player_secret();
        }
    }

    /// Rejects the present player secret. The next one differs.
    pub fn revoke_player_secret(&mut self) {
        self.player_secret_counter = self.player_secret_counter.wrapping_add(1);
    }

    /// Removes the API key and the player password, and revokes the player secret.
    pub fn revoke_secrets(&mut self) {
        self.api_key = None;
        self.player_password = None;
        self.revoke_player_secret();
    }

    /// Returns the name in the form in which names are compared.
    pub fn name_key(username: &str) -> String {
        composed(username).to_lowercase()
    }
}

/// Returns whether this user is the only active superuser. Without one, nobody could administer the gateway.
pub fn is_last_superuser(users: &[User], id: UserId) -> bool {
    let mut superusers = users.iter().filter(|it| it.is_active && it.is_superuser);
    superusers.next().is_some_and(|it| it.id == id) && superusers.next().is_none()
}

/// Stands for all callers without credentials, where a limit counts them like one user. No record has this id.
pub const ANONYMOUS: UserId = UserId(0);

/// First path segments of the gateway's own addresses. A user of such a name could not use the short address
/// `/{user}/…`.
const RESERVED: [&str; 52] = [
    "accounts",
    "activity",
    "api",
    "assets",
    "auto",
    "channels",
    "device.xml",
    "discover.json",
    "epg.xml",
    "get.php",
    "guide",
    "hdhr",
    "health",
    "healthz",
    "history",
    "integrations",
    "library",
    "lineup.json",
    "lineup.m3u",
    "lineup.post",
    "lineup.xml",
    "lineup_status.json",
    "lineups",
    "live",
    "logos",
    "me",
    "metrics",
    "movie",
    "nodes",
    "now",
    "output",
    "panel_api.php",
    "player_api.php",
    "playlist.m3u",
    "plugins",
    "proxy",
    "readyz",
    "recordings",
    "series",
    "settings",
    "setup",
    "slots",
    "sources",
    "static",
    "streaming",
    "streams",
    "timeshift",
    "tuner",
    "users",
    "watch",
    "ws",
    "xmltv.php",
];

/// Maximum length of a user name, in characters.
pub const USERNAME_CHARS_MAX: usize = 150;

/// Minimum length of the password of an admin, in characters.
pub const ADMIN_PASSWORD_CHARS_MIN: usize = 10;
/// Minimum number of different characters in the password of an admin.
const ADMIN_PASSWORD_KINDS_MIN: usize = 5;
/// Minimum length of the rest of an admin's password without the user name, in characters. A short rest, such as a year,
/// is quickly guessed.
const ADMIN_PASSWORD_OTHER_CHARS_MIN: usize = 8;

/// The reason why a password is too weak for an admin. Lengths are in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeakPassword {
    #[error("The password of an admin must have at least {ADMIN_PASSWORD_CHARS_MIN} characters.")]
    Short,
    #[error("The password of an admin must have at least {ADMIN_PASSWORD_KINDS_MIN} different characters.")]
    Uniform,
    #[error(
        "The password of an admin must have at least {ADMIN_PASSWORD_OTHER_CHARS_MIN} characters besides the user name."
    )]
    Username,
    #[error("The password of an admin must not be a common one.")]
    Common,
}

/// Passwords that pass the other rules and are the first ones that an attacker tries. In lower case.
const COMMON_PASSWORDS: [&str; 15] = [
    "0123456789",
    "1234567890",
    "123456789a",
    "1q2w3e4r5t",
    "1qaz2wsx3edc",
    "9876543210",
    "abcdefghij",
    "administrator",
    "changeme123",
    "iloveyou123",
    "password123",
    "password1234",
    "qwerty1234",
    "qwertyuiop",
    "welcome123",
];

/// Checks a password against the rules for admins, who can do everything and are worth guessing.
pub fn check_admin_password(password: &str, username: &str) -> Result<(), WeakPassword> {
    let (lower, name) = (password.to_lowercase(), User::name_key(username));
    let mut kinds: Vec<char> = lower.chars().collect();
    if kinds.len() < ADMIN_PASSWORD_CHARS_MIN {
        return Err(WeakPassword::Short);
    }
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.len() < ADMIN_PASSWORD_KINDS_MIN {
        return Err(WeakPassword::Uniform);
    }
    if !name.is_empty() && lower.replace(&name, "").chars().count() < ADMIN_PASSWORD_OTHER_CHARS_MIN {
        return Err(WeakPassword::Username);
    }
    if COMMON_PASSWORDS.contains(&&*lower) {
        return Err(WeakPassword::Common);
    }
    Ok(())
}

/// Minimum and maximum length of an API key that a person sets, in characters. Generated ones have 54.
pub const API_KEY_CHARS: std::ops::RangeInclusive<usize> = 32..=512;
/// Minimum number of different characters in such a key.
const API_KEY_KINDS_MIN: usize = 10;

/// The reason why an API key is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeakApiKey {
    #[error("An API key must have {} to {} characters.", API_KEY_CHARS.start(), API_KEY_CHARS.end())]
    Length,
    #[error("An API key may contain only letters, digits and signs of ASCII, and no spaces.")]
    Characters,
    #[error("An API key must have at least {API_KEY_KINDS_MIN} different characters. Use a random one.")]
    Uniform,
}

/// Checks an API key that a person sets. It is sent in a header, and nothing slows guesses of it down.
pub fn check_api_key(key: &str) -> Result<(), WeakApiKey> {
    if !key.bytes().all(|it| it.is_ascii_graphic()) {
        return Err(WeakApiKey::Characters);
    }
    if !API_KEY_CHARS.contains(&key.len()) {
        return Err(WeakApiKey::Length);
    }
    let kinds: BTreeSet<u8> = key.bytes().collect();
    if kinds.len() < API_KEY_KINDS_MIN { Err(WeakApiKey::Uniform) } else { Ok(()) }
}

/// The reason why a user name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UsernameError {
    #[error("a user name must have 1 to {USERNAME_CHARS_MAX} characters")]
    Length,
    #[error("a user name may contain letters, digits, spaces and signs except / \\ ? # % and :")]
    Characters,
    #[error("a user name must not begin or end with a space")]
    Spaces,
    #[error("this name is part of the addresses of the gateway; choose another one")]
    Reserved,
}

/// Checks a user name, and returns it as it is stored: in the normal form NFC, so that a letter with an accent is one
/// character from every keyboard. The name is part of stream addresses, in which it must be one segment of a path, and
/// ends at the colon in `Authorization: Basic`.
pub fn check_username(text: &str) -> Result<String, UsernameError> {
    let name = composed(text);
    if name.is_empty() || name.chars().count() > USERNAME_CHARS_MAX {
        return Err(UsernameError::Length);
    }
    if !name.chars().all(is_username_char) || matches!(&*name, "." | "..") {
        return Err(UsernameError::Characters);
    }
    if name.trim() != name {
        return Err(UsernameError::Spaces);
    }
    if is_reserved(&name) {
        return Err(UsernameError::Reserved);
    }
    Ok(name)
}

/// Returns a name that a user may have and that resembles one that no user may have.
pub fn similar_username(text: &str) -> String {
    let of_user = |it: char| if is_username_char(it) { it } else { '_' };
    let name: String = composed(text).chars().map(of_user).take(USERNAME_CHARS_MAX - 1).collect();
    let name = match name.trim() {
        "" => "user",
        name => name,
    };
    check_username(name).unwrap_or_else(|_| format!("{name}_"))
}

/// Returns a text in the normal form NFC.
fn composed(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(text).into_owned()
}

/// Returns whether a user name may contain a character: it is visible or a space, and no part of the syntax of addresses.
fn is_username_char(character: char) -> bool {
    // Signs that modify the character before them are visible with one.
    let is_visible = || {
        let text: String = ['a', character].iter().collect();
        text.escape_debug().count() == 2
    };
    match character {
        '/' | '\\' | '?' | '#' | '%' | ':' => false,
        '\'' | '"' => true,
        _ => is_visible(),
    }
}

/// Returns whether this is the first path segment of one of the gateway's own addresses.
pub fn is_reserved(segment: &str) -> bool {
    RESERVED.iter().any(|it| it.eq_ignore_ascii_case(segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_only_three_numbers_are_levels() {
        assert!(UserLevel::Streamer < UserLevel::Standard && UserLevel::Standard < UserLevel::Admin);
        for level in UserLevel::ALL {
            assert_eq!(UserLevel::from_number(u64::from(level.number())), Some(level));
        }
        for number in [2, 7, 11, 256, u64::MAX] {
            assert_eq!(UserLevel::from_number(number), None);
        }
        assert_eq!(serde_json::from_str::<UserLevel>("10").unwrap(), UserLevel::Admin);
        assert!(serde_json::from_str::<UserLevel>("7").is_err());
    }

    #[test]
    fn a_superuser_may_do_everything_and_an_inactive_user_nothing() {
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        assert!(user.may(UserLevel::Streamer) && !user.may(UserLevel::Standard));
        user.is_superuser = true;
        assert!(user.may(UserLevel::Admin));
        user.is_active = false;
        assert!(!user.may(UserLevel::Streamer));
    }

    #[test]
    fn a_user_is_active_until_the_end_of_the_account() {
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        assert!(user.is_active_at(i64::MAX));
        user.expires_at = Some(1_000);
        assert_eq!([999, 1_000, 1_001].map(|it| user.is_active_at(it)), [true, false, false]);
        (user.is_active, user.expires_at) = (false, None);
        assert!(!user.is_active_at(0));
    }

    #[test]
    fn a_weak_password_of_an_admin_is_refused_with_the_reason() {
        for password in ["correct horse", "überlänge!", "Tr0ub4dor&3", "xk9 xk9 wq"] {
            assert_eq!(check_admin_password(password, "root"), Ok(()), "{password}");
        }
        assert_eq!(check_admin_password("a good one with root", "root"), Ok(()), "the rest is long enough");
        for (password, reason) in [
            ("", WeakPassword::Short),
            ("correct h", WeakPassword::Short),
            ("aaaaaaaaaaaaaaaa", WeakPassword::Uniform),
            ("abababababcd", WeakPassword::Uniform),
            ("ROOT123456", WeakPassword::Username),
            ("root-root-2026", WeakPassword::Username),
            ("Password123", WeakPassword::Common),
            ("1234567890", WeakPassword::Common),
        ] {
            assert_eq!(check_admin_password(password, "Root"), Err(reason), "{password}");
        }
    }

    #[test]
    fn an_api_key_that_could_be_guessed_or_not_be_sent_is_refused() {
        let good = "k9Qz-7hTmW2xVbN4cRfLpD8sGjAeUy3o";
        assert_eq!(check_api_key(good), Ok(()));
        for (key, reason) in [
            (String::new(), WeakApiKey::Length),
            (good[1..].to_owned(), WeakApiKey::Length),
            (good.repeat(17), WeakApiKey::Length),
            (good.replace('z', " "), WeakApiKey::Characters),
            (good.replace('z', "ü"), WeakApiKey::Characters),
            ("abcabcabc".repeat(4), WeakApiKey::Uniform),
        ] {
            assert_eq!(check_api_key(&key), Err(reason), "{key}");
        }
    }

    #[test]
    fn names_that_collide_with_addresses_are_refused() {
        for name in [
            "anna",
            "Anna.Maria",
            "a@b.example",
            "admin",
            "überall",
            "live1",
            "...",
            "pro!one",
            "a$b",
            "user~1",
        ] {
            assert_eq!(check_username(name).as_deref(), Ok(name), "{name}");
        }
        for name in
            ["a&b", "us er", "a+b", "a=b;c,d", "\"q\"'", "<b>", "{x}|y^`", "आरव", "日本", "a*b(c)", "ñ", "😀"]
        {
            assert_eq!(check_username(name).as_deref(), Ok(name), "{name}");
        }
        for (name, error) in [
            ("", UsernameError::Length),
            ("a/b", UsernameError::Characters),
            ("a\\b", UsernameError::Characters),
            ("a?b", UsernameError::Characters),
            ("a#b", UsernameError::Characters),
            ("a:b", UsernameError::Characters),
            ("plugin:x", UsernameError::Characters),
            (".", UsernameError::Characters),
            ("..", UsernameError::Characters),
            ("a%20b", UsernameError::Characters),
            ("a\nb", UsernameError::Characters),
            ("a\u{7f}b", UsernameError::Characters),
            ("a\u{200b}b", UsernameError::Characters),
            ("a\u{202e}b", UsernameError::Characters),
            ("a\u{a0}b", UsernameError::Characters),
            (" a", UsernameError::Spaces),
            ("a ", UsernameError::Spaces),
            (" ", UsernameError::Spaces),
            ("live", UsernameError::Reserved),
            ("API", UsernameError::Reserved),
            ("player_api.php", UsernameError::Reserved),
        ] {
            assert_eq!(check_username(name), Err(error), "{name:?}");
        }
        assert_eq!(check_username(&"a".repeat(151)), Err(UsernameError::Length));
    }

    #[test]
    fn a_name_is_the_same_in_every_normal_form() {
        let (composed, decomposed) = ("Andr\u{e9}", "Andre\u{301}");
        assert_eq!(check_username(decomposed).as_deref(), Ok(composed));
        assert_eq!(User::name_key(decomposed), User::name_key(composed));
        assert_eq!(User::name_key("ANDR\u{c9}"), User::name_key(composed));
    }

    #[test]
    fn an_invalid_name_becomes_a_similar_valid_one() {
        for (name, expected) in [
            ("anna", "anna"),
            ("a:b", "a_b"),
            ("a/b\\c?d#e%f", "a_b_c_d_e_f"),
            (" a ", "a"),
            ("", "user"),
            ("\n", "_"),
            ("..", ".._"),
            ("live", "live_"),
        ] {
            assert_eq!(similar_username(name), expected, "{name:?}");
        }
        for name in ["x".repeat(400), ":".repeat(400), " ".repeat(400), format!("{}  x", "y".repeat(147))] {
            assert!(check_username(&similar_username(&name)).is_ok(), "{name}");
        }
    }
}
