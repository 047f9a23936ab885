//! The logins of users on devices, to which their tokens belong.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{DeviceLoginId, UserId};

/// One login of a user on a device. Its tokens are valid only while it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceLogin {
    pub id: DeviceLoginId,
    pub user: UserId,
    /// A random value in the tokens of the login. The id may be used again after a back-up was restored.
    pub key: Uuid,
    /// The generation of the user to which the login belongs. A login of an earlier one has ended.
    pub generation: u32,
    /// When the user logged in, in milliseconds since 1970.
    pub created_at: i64,
    /// When the login last got a token, in milliseconds since 1970, to the minute.
    pub used_at: i64,
    /// Address of the last use.
    pub address: IpAddr,
    /// User agent of the last use.
    pub agent: String,
    /// The cookie of a browser that keeps the login. Other programs keep a refresh token.
    #[serde(default)]
    pub browser: Option<BrowserLogin>,
}

/// A login that a browser keeps in a cookie, whose value is replaced when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserLogin {
    /// Keyed hash of the value of the cookie.
    pub digest: [u8; 32],
    /// Keyed hash of the value before this one.
    pub previous: Option<[u8; 32]>,
    /// When the value was last replaced, in milliseconds since 1970.
    pub replaced_at: i64,
    /// Time without use after which the login ends, in seconds.
    pub idle_seconds_max: i64,
}

/// How the value of a cookie relates to a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieUse {
    /// The value is the current one.
    Current,
    /// The value was replaced a moment ago. Several pages of one browser may use it at the same time.
    JustReplaced,
    /// The value was replaced before: two browsers have the cookie, and one of them is not the user's.
    Replayed,
}

/// Time for which a replaced value of a cookie is still good, in milliseconds.
const REPLACED_GRACE_MS: i64 = 60_000;

impl BrowserLogin {
    /// Returns how a value with this hash relates to the login; `None` if it is unknown.
    pub fn cookie_use(&self, digest: &[u8; 32], now_ms: i64) -> Option<CookieUse> {
        let is_recent = (0..REPLACED_GRACE_MS).contains(&now_ms.saturating_sub(self.replaced_at));
        match (self.digest == *digest, self.previous.as_ref() == Some(digest)) {
            (true, _) => Some(CookieUse::Current),
            (false, true) if is_recent => Some(CookieUse::JustReplaced),
            (false, true) => Some(CookieUse::Replayed),
            (false, false) => None,
        }
    }

    /// Replaces the value.
    pub fn replace(&mut self, digest: [u8; 32], now_ms: i64) {
        self.previous = Some(std::mem::replace(&mut self.digest, digest));
        self.replaced_at = now_ms;
    }
}

/// Lifetime of a refresh token, in seconds. A program that was idle for longer needs the password again.
pub const REFRESH_SECONDS: i64 = 24 * 60 * 60;
/// Time without use after which the login of a browser ends that stays signed in, in seconds.
pub const STAY_SECONDS: i64 = 30 * 24 * 60 * 60;
/// Minimum time between two writes of the last use, in milliseconds. Some programs log in for every request, and each
/// write waits for the disk. The next login of the same device within this time continues the login.
pub const USE_INTERVAL_MS: i64 = 60_000;
/// Maximum number of logins of one user.
const LOGINS_MAX: usize = 64;
/// Maximum number of logins of one user on one device, so that a program that always logs in again ends only its own.
const LOGINS_PER_DEVICE_MAX: usize = 8;

impl DeviceLogin {
    /// Returns whether every token of the login has expired.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        let idle_ms = now_ms.saturating_sub(self.used_at);
        idle_ms >= self.idle_seconds_max() * 1000 + USE_INTERVAL_MS
    }

    /// Returns the time without use after which the login ends, in seconds.
    pub fn idle_seconds_max(&self) -> i64 {
        self.browser.as_ref().map_or(REFRESH_SECONDS, |it| it.idle_seconds_max.clamp(0, STAY_SECONDS))
    }

    /// Returns whether the last use was so recently that it need not be written again.
    pub fn was_just_used(&self, now_ms: i64) -> bool {
        (0..USE_INTERVAL_MS).contains(&now_ms.saturating_sub(self.used_at))
    }

    /// Returns whether this is the device of the login.
    pub fn is_on(&self, address: IpAddr, agent: &str) -> bool {
        self.address == address && self.agent == agent
    }
}

/// Returns the logins to remove before a login on this device adds another one: the expired ones, those of an earlier
/// generation, and those not used for longest if there are too many.
pub fn surplus(
    logins: &[DeviceLogin],
    generation: u32,
    address: IpAddr,
    agent: &str,
    now_ms: i64,
) -> Vec<DeviceLoginId> {
    let has_ended = |it: &DeviceLogin| it.generation != generation || it.is_expired(now_ms);
    let (ended, mut valid): (Vec<&DeviceLogin>, Vec<&DeviceLogin>) =
        logins.iter().partition(|it| has_ended(it));
    let mut removed: Vec<DeviceLoginId> = ended.iter().map(|it| it.id).collect();
    valid.sort_by_key(|it| (it.used_at, it.id));
    let oldest_of = |logins: &[&DeviceLogin], max: usize| -> Vec<DeviceLoginId> {
        let n = (logins.len() + 1).saturating_sub(max);
        logins.iter().take(n).map(|it| it.id).collect()
    };
    let of_device: Vec<&DeviceLogin> = valid.iter().copied().filter(|it| it.is_on(address, agent)).collect();
    removed.extend(oldest_of(&of_device, LOGINS_PER_DEVICE_MAX));
    valid.retain(|it| !removed.contains(&it.id));
    removed.extend(oldest_of(&valid, LOGINS_MAX));
    removed
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    fn login(id: u32, used_at: i64, agent: &str) -> DeviceLogin {
        DeviceLogin {
            id: DeviceLoginId(id),
            user: UserId(1),
            key: Uuid::nil(),
            generation: 0,
            created_at: 0,
            used_at,
            address: HOME,
            agent: agent.to_owned(),
            browser: None,
        }
    }

    #[test]
    fn a_browser_that_stays_signed_in_is_logged_in_for_thirty_days_without_use() {
        let browser = |idle_seconds_max| {
            let browser = BrowserLogin { digest: [1; 32], previous: None, replaced_at: 0, idle_seconds_max };
            DeviceLogin { browser: Some(browser), ..login(1, 0, "a") }
        };
        assert!(browser(REFRESH_SECONDS).is_expired(DAY_MS + USE_INTERVAL_MS));
        assert!(!browser(STAY_SECONDS).is_expired(30 * DAY_MS));
        assert!(browser(i64::MAX).is_expired(30 * DAY_MS + USE_INTERVAL_MS));
    }

    #[test]
    fn a_replaced_cookie_is_good_for_a_moment_and_then_the_sign_of_a_thief() {
        let mut login = BrowserLogin { digest: [1; 32], previous: None, replaced_at: 0, idle_seconds_max: 9 };
        assert_eq!(login.cookie_use(&[1; 32], 5), Some(CookieUse::Current));
        login.replace([2; 32], 1_000);
        for (digest, now, expected) in [
            ([2; 32], 1_000_000, Some(CookieUse::Current)),
            ([1; 32], 60_999, Some(CookieUse::JustReplaced)),
            ([1; 32], 61_000, Some(CookieUse::Replayed)),
            ([1; 32], 999, Some(CookieUse::Replayed)),
            ([3; 32], 1_000, None),
        ] {
            assert_eq!(login.cookie_use(&digest, now), expected, "{now}");
        }
        login.replace([3; 32], 2_000);
        assert_eq!(login.cookie_use(&[1; 32], 2_000), None);
    }

    fn ids(removed: &[DeviceLoginId]) -> Vec<u32> {
        removed.iter().map(|it| it.0).collect()
    }

    #[test]
    fn expired_logins_and_those_of_an_earlier_password_are_removed_at_a_login() {
        let now = 10 * DAY_MS;
        let logins = [
            login(1, now - DAY_MS - USE_INTERVAL_MS, "a"),
            login(2, now - DAY_MS, "a"),
            DeviceLogin { generation: 4, ..login(3, now, "a") },
            login(4, now, "a"),
        ];
        assert_eq!(ids(&surplus(&logins, 0, HOME, "a", now)), [1, 3]);
    }

    #[test]
    fn a_device_that_always_logs_in_again_ends_only_its_own_logins() {
        let mut logins: Vec<_> = (1..=8).map(|id| login(id, 100 + i64::from(id), "restless")).collect();
        logins.push(login(9, 1, "quiet"));
        assert_eq!(ids(&surplus(&logins, 0, HOME, "restless", 1000)), [1]);
        assert_eq!(ids(&surplus(&logins, 0, HOME, "quiet", 1000)), Vec::<u32>::new());
    }

    #[test]
    fn the_number_of_logins_is_limited_and_the_one_not_used_for_longest_ends() {
        let device = |id: u32| login(id, i64::from(1000 - id), &format!("device {id}"));
        let logins: Vec<_> = (1..=64).map(device).collect();
        assert_eq!(ids(&surplus(&logins, 0, HOME, "one more", 1000)), [64]);
        assert_eq!(ids(&surplus(&logins[..63], 0, HOME, "one more", 1000)), Vec::<u32>::new());
    }

    #[test]
    fn a_use_is_written_once_a_minute_and_after_a_clock_that_ran_ahead() {
        for (now, expected) in [(1000, true), (60_999, true), (61_000, false), (999, false)] {
            assert_eq!(login(1, 1000, "a").was_just_used(now), expected, "{now}");
        }
    }
}
