//! Which connections a provider counts together when it refuses one, as far as an address shows it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;

/// The connections that a provider counts together: those with the same login, on whatever hosts, and those of the same host
/// without a login. Discovered limits belong to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LimitScope {
    /// It is not known; the account profile stands for it.
    #[default]
    Unknown,
    /// A login. The number is a hash that is different in each process, so no password can be tried against it.
    Login(u64),
    /// A host and its port, as a hash.
    Host(u64),
}

impl LimitScope {
    /// Finds the login of an address: in a header, before the host, in the query, or in the path as panels have it.
    pub fn new(url: &SourceUrl, headers: &RequestHeaders) -> Self {
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        if !url.is_http() {
            return Self::Host(SEED.hash_one(url.expose()));
        }
        let authorization = headers.extra.iter().find(|it| it.0.eq_ignore_ascii_case("authorization"));
        if let Some((_, value)) = authorization {
            return Self::Login(SEED.hash_one(("header", value)));
        }
        let text = url.expose();
        let rest = text.split_once("://").map_or(text, |it| it.1);
        let (authority, place) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, host) = authority.rsplit_once('@').map_or((None, authority), |it| (Some(it.0), it.1));
        let login = login.and_then(|it| it.split_once(':')).filter(|it| !it.0.is_empty());
        match login.or_else(|| login_in_query(place)).or_else(|| login_in_path(place)) {
            Some(login) => Self::Login(SEED.hash_one(login)),
            None => Self::Host(SEED.hash_one(host.to_ascii_lowercase())),
        }
    }
}

impl fmt::Debug for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "Unknown",
            Self::Login(_) => "Login",
            Self::Host(_) => "Host",
        })
    }
}

fn login_in_query(place: &str) -> Option<(&str, &str)> {
    let query = place.split_once('?')?.1.split('#').next()?;
    let value = |names: [&str; 2]| {
        let mut pairs = query.split('&').filter_map(|it| it.split_once('='));
        pairs.find(|(name, _)| names.contains(name)).map(|it| it.1).filter(|it| !it.is_empty())
    };
    value(["username", "user"]).zip(value(["password", "pass"]))
}

/// Finds the login in `/live/USER/PASSWORD/…` and in `/USER/PASSWORD/NUMBER`.
fn login_in_path(place: &str) -> Option<(&str, &str)> {
    let path = place.split(['?', '#']).next()?;
    let parts: Vec<_> = path.split('/').filter(|it| !it.is_empty()).collect();
    let stem = parts.last()?.split('.').next()?;
    if stem.is_empty() || !stem.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    match parts[..] {
        ["live" | "movie" | "series" | "timeshift", user, password, _, ..] | [user, password, _] => {
            Some((user, password))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(url: &str) -> LimitScope {
        LimitScope::new(&SourceUrl::new(url), &RequestHeaders::default())
    }

    #[test]
    fn a_login_is_the_same_on_whatever_host_and_hosts_without_a_login_are_told_apart() {
        let login = scope("http://a.example/live/anna/secret/7.ts");
        assert!(matches!(login, LimitScope::Login(_)));
        for same in [
            "http://b.example:8080/live/anna/secret/8.m3u8",
            "https://a.example/anna/secret/7",
            "http://a.example/anna/secret/7.ts?x=1",
            "http://a.example/movie/anna/secret/9.mkv",
            "http://a.example/timeshift/anna/secret/60/2026-01-01:10-00/7.ts",
            "http://c.example/get.php?username=anna&password=secret&type=m3u",
            "http://c.example/x?user=anna&pass=secret",
            "http://anna:secret@d.example/stream",
        ] {
            assert_eq!(scope(same), login, "{same}");
        }
        for other in ["http://a.example/live/anna/other/7.ts", "http://a.example/live/bert/secret/7.ts"] {
            assert!(matches!(scope(other), LimitScope::Login(_)));
            assert_ne!(scope(other), login, "{other}");
        }
        let host = scope("http://a.example/news.ts");
        assert!(matches!(host, LimitScope::Host(_)));
        for same in ["http://A.example/sport/live.m3u8", "http://a.example", "http://a.example?token=x"] {
            assert_eq!(scope(same), host, "{same}");
        }
        for other in [
            "http://a.example:8080/news.ts",
            "http://b.example/news.ts",
            "http://a.example.org/",
            "udp://@239.0.0.1:1",
        ] {
            assert!(matches!(scope(other), LimitScope::Host(_)), "{other}");
            assert_ne!(scope(other), host, "{other}");
        }
        // A token alone does not name a subscription, and such paths have no login.
        for host in [
            "http://h/hls/news/index.m3u8",
            "http://h/live/news.ts",
            "http://h/auto/v5",
            "http://h/a/b/1x.ts",
            "http://h/live/a/b/x.m3u8",
        ] {
            assert_eq!(scope(host), scope("http://h/"), "{host}");
        }
    }

    #[test]
    fn a_login_in_a_header_counts_and_none_is_printed() {
        let mut headers = RequestHeaders::default();
        assert!(headers.set("Authorization", "Basic YTpi"));
        let [a, b] = ["http://a/x", "http://b/y"].map(|it| LimitScope::new(&SourceUrl::new(it), &headers));
        assert_eq!(a, b);
        assert_eq!(format!("{a:?} {:?}", scope("http://a/anna/secret/1")), "Login Login");
    }
}
