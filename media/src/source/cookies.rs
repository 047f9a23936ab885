//! Cookies that a provider sets while it redirects, and that its next hops expect.
//!
//! A subset of RFC 6265: the rules for host, domain, path and `Secure`. Cookies live for one attempt to open a source, or
//! as long as the address of a redirect is remembered, so of their lifetime only an immediate end matters.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::SET_COOKIE;
use tracing::debug;

use crate::source::target::HttpTarget;

/// Maximum number of cookies.
const COOKIES_MAX: usize = 32;
/// Maximum number of bytes of all names and values together.
const COOKIES_BYTES_MAX: usize = 8 << 10;

/// The cookies of one attempt to open a source.
///
/// Neither the jar nor a cookie can be printed, because cookies are credentials.
#[derive(Clone, Default)]
pub(super) struct CookieJar {
    cookies: Vec<Cookie>,
    n_changes: usize,
}

#[derive(Clone, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    /// In lower case.
    domain: String,
    /// Not sent to hosts below its domain.
    is_host_only: bool,
    path: String,
    is_secure: bool,
}

impl CookieJar {
    /// Takes the cookies of a response of `from`. Cookies for other sites are ignored.
    pub(super) fn store(&mut self, from: &HttpTarget, headers: &HeaderMap) {
        for header in headers.get_all(SET_COOKIE) {
            let parsed = header.to_str().ok().and_then(|it| Cookie::parse(it, from));
            match parsed {
                Some((cookie, is_over)) => self.put(cookie, is_over),
                None => debug!("ignoring an invalid cookie, or one for another site"),
            }
        }
    }

    fn put(&mut self, cookie: Cookie, is_over: bool) {
        let known = self.cookies.iter().position(|it| it.is_same(&cookie));
        let old = known.map(|at| self.cookies.remove(at));
        let n_bytes: usize = self.cookies.iter().map(Cookie::n_bytes).sum();
        if is_over {
            self.n_changes += usize::from(old.is_some());
        } else if self.cookies.len() >= COOKIES_MAX || n_bytes + cookie.n_bytes() > COOKIES_BYTES_MAX {
            debug!("ignoring a cookie, there are too many");
        } else {
            self.n_changes += usize::from(old.as_ref() != Some(&cookie));
            self.cookies.push(cookie);
        }
    }

    /// Returns the number of changes so far. A redirect to the same address may continue if cookies changed.
    pub(super) fn n_changes(&self) -> usize {
        self.n_changes
    }

    /// Returns names and values of the cookies for a request, those with longer paths first.
    pub(super) fn pairs(&self, to: &HttpTarget) -> Vec<(&str, &str)> {
        self.matching(to).into_iter().map(|it| (it.name.as_str(), it.value.as_str())).collect()
    }

    /// Returns the cookies for a request with their path and domain, each as in a `Set-Cookie` header. The domain contains
    /// the port, if the address does: ffmpeg compares it with both.
    pub(super) fn described(&self, to: &HttpTarget) -> Vec<String> {
        let host = to.host_header();
        let port = host.rsplit_once(':').map_or("", |it| it.1);
        let line = |it: &Cookie| {
            let domain = match &it.domain {
                domain if domain.eq_ignore_ascii_case(&to.address.host) => host.clone(),
                domain if port.parse() == Ok(to.address.port) => format!("{domain}:{port}"),
                domain => domain.clone(),
            };
            format!("{}={}; path={}; domain={domain}", it.name, it.value, it.path)
        };
        self.matching(to).into_iter().map(line).collect()
    }

    fn matching(&self, to: &HttpTarget) -> Vec<&Cookie> {
        let mut cookies: Vec<_> = self.cookies.iter().filter(|it| it.is_for(to)).collect();
        // A stable sort: older cookies first among those with the same path length.
        cookies.sort_by_key(|it| Reverse(it.path.len()));
        cookies
    }
}

impl Cookie {
    /// Parses a `Set-Cookie` header. Returns the cookie and whether its life is already over; `None` if it is invalid or
    /// not for the site of `from`.
    fn parse(text: &str, from: &HttpTarget) -> Option<(Self, bool)> {
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let host = from.address.host.to_ascii_lowercase();
        let mut cookie = Self {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            domain: host.clone(),
            is_host_only: true,
            path: default_path(from),
            is_secure: false,
        };
        let (mut max_age, mut has_expired) = (None, false);
        for attribute in parts {
            let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "domain" => {
                    let domain = value.trim_start_matches('.').to_ascii_lowercase();
                    if !domain.is_empty() {
                        (cookie.domain, cookie.is_host_only) = (domain, false);
                    }
                }
                "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                "secure" => cookie.is_secure = true,
                "max-age" => max_age = value.parse::<i64>().ok(),
                "expires" => has_expired = is_past(value),
                _ => {}
            }
        }
        let is_parent = || {
            let is_name = host.parse::<IpAddr>().is_err();
            is_name && cookie.domain.contains('.') && is_below(&host, &cookie.domain)
        };
        let is_own = cookie.domain == host || is_parent();
        let is_printable = |it: &str| it.bytes().all(|it| it.is_ascii() && !it.is_ascii_control());
        let is_valid = !cookie.name.is_empty() && [name, value, &cookie.path].into_iter().all(is_printable);
        // An insecure server must not replace the cookies of a secure one.
        let is_safe = from.address.secure || !cookie.is_secure;
        let is_over = max_age.map_or(has_expired, |it| it <= 0);
        (is_own && is_valid && is_safe).then_some((cookie, is_over))
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.domain, &self.path) == (&other.name, &other.domain, &other.path)
    }

    fn is_for(&self, to: &HttpTarget) -> bool {
        let host = to.address.host.to_ascii_lowercase();
        let path = to.path.split('?').next().unwrap_or_default();
        let is_below_path = path
            .strip_prefix(&self.path)
            .is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        (host == self.domain || !self.is_host_only && is_below(&host, &self.domain))
            && is_below_path
            && (to.address.secure || !self.is_secure)
    }

    fn n_bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

/// Returns whether `host` is a name below `domain`.
fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|it| it.ends_with('.'))
}

/// Returns the path of a cookie without one: that of the request up to its last slash.
fn default_path(from: &HttpTarget) -> String {
    let path = from.path.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        Some(at) if at > 0 => path[..at].to_owned(),
        _ => "/".to_owned(),
    }
}

/// Returns whether a date is past. Servers also write dashes into the date, as in the first standard of cookies.
fn is_past(date: &str) -> bool {
    let parsed = httpdate::parse_http_date(date);
    let parsed = parsed.or_else(|_| httpdate::parse_http_date(&date.replace('-', " ")));
    parsed.is_ok_and(|it| it <= SystemTime::now())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::proptest;

    use super::*;

    fn target(url: &str) -> HttpTarget {
        HttpTarget::parse(url).unwrap()
    }

    fn jar(cookies: &[(&str, &str)]) -> CookieJar {
        let mut jar = CookieJar::default();
        for (from, cookie) in cookies {
            let headers = HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_str(cookie).unwrap())]);
            jar.store(&target(from), &headers);
        }
        jar
    }

    #[track_caller]
    fn check(cookies: &[(&str, &str)], to: &str, expected: &[(&str, &str)]) {
        assert_eq!(jar(cookies).pairs(&target(to)), expected, "{cookies:?} {to}");
    }

    #[test]
    fn a_cookie_goes_to_its_host_or_to_the_hosts_below_its_domain() {
        let host = &[("http://tv.example/live", "a=1")];
        check(host, "http://tv.example/x", &[("a", "1")]);
        check(host, "http://TV.example:8080/", &[("a", "1")]);
        for other in
            ["http://sub.tv.example/", "http://example/", "http://other.example/", "http://eviltv.example/"]
        {
            check(host, other, &[]);
        }
        let domain = &[("http://a.tv.example/", "a=1; Domain=.TV.example")];
        check(domain, "http://tv.example/", &[("a", "1")]);
        check(domain, "http://b.tv.example/", &[("a", "1")]);
        check(domain, "http://eviltv.example/", &[]);
        check(domain, "http://example/", &[]);
        check(&[("http://192.0.2.1/", "a=1")], "http://192.0.2.1/x", &[("a", "1")]);
    }

    #[test]
    fn a_cookie_for_another_site_is_ignored() {
        for (from, cookie) in [
            ("http://tv.example/", "a=1; domain=other.example"),
            ("http://tv.example/", "a=1; domain=sub.tv.example"),
            ("http://tv.example/", "a=1; domain=example"),
            ("http://192.0.2.1/", "a=1; domain=0.2.1"),
            ("http://tv.example/", "a=1; secure"),
            ("http://tv.example/", "=1"),
            ("http://tv.example/", "a"),
            ("http://tv.example/", ""),
        ] {
            assert_eq!(jar(&[(from, cookie)]).n_changes(), 0, "{cookie}");
        }
    }

    #[test]
    fn a_cookie_goes_to_its_path_only() {
        let own = &[("http://h/live/u/1.ts?x=/y/", "a=1")];
        check(own, "http://h/live/u/2.ts", &[("a", "1")]);
        check(own, "http://h/live/u", &[("a", "1")]);
        check(own, "http://h/live/uv/2.ts", &[]);
        check(own, "http://h/", &[]);
        check(&[("http://h/live/1", "a=1; path=/")], "http://h/?x", &[("a", "1")]);
        check(&[("http://h/1", "a=1; path=/b/")], "http://h/b/c", &[("a", "1")]);
        let both = &[("http://h/1", "a=1; path=/"), ("http://h/1", "b=2; path=/live")];
        check(both, "http://h/live/1", &[("b", "2"), ("a", "1")]);
    }

    #[test]
    fn a_secure_cookie_goes_to_secure_servers_only() {
        let secure = &[("https://h/", "a=1; Secure; HttpOnly; SameSite=Lax")];
        check(secure, "https://h/x", &[("a", "1")]);
        check(secure, "http://h/x", &[]);
    }

    #[test]
    fn a_described_cookie_names_the_server_as_the_address_does() {
        let jar = jar(&[("http://a.tv.example/", "a=1; domain=tv.example"), ("http://a.tv.example/", "b=2")]);
        let described = |url: &str| jar.described(&target(url));
        assert_eq!(
            described("http://a.tv.example/x"),
            ["a=1; path=/; domain=tv.example", "b=2; path=/; domain=a.tv.example"]
        );
        assert_eq!(
            described("http://a.tv.example:8080/x"),
            ["a=1; path=/; domain=tv.example:8080", "b=2; path=/; domain=a.tv.example:8080"]
        );
        let v6 = self::jar(&[("http://[::1]:81/", "a=1")]);
        assert_eq!(v6.described(&target("http://[::1]:81/x")), ["a=1; path=/; domain=[::1]:81"]);
    }

    #[test]
    fn a_later_cookie_replaces_or_removes_an_earlier_one() {
        let first = ("http://h/", "a=1; path=/");
        check(&[first, ("http://h/", "a=2; path=/")], "http://h/", &[("a", "2")]);
        for over in [
            "a=; path=/; Max-Age=0",
            "a=; path=/; expires=Thu, 01-Jan-1970 00:00:00 GMT",
            "a=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT",
        ] {
            check(&[first, ("http://h/", over)], "http://h/", &[]);
        }
        let lives = ("http://h/", "a=2; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; max-age=60");
        check(&[first, lives], "http://h/", &[("a", "2")]);
        assert_eq!(jar(&[first, first]).n_changes(), 1);
    }

    #[test]
    fn the_number_and_the_size_of_cookies_are_limited() {
        let many: Vec<_> = (0..1000).map(|n| format!("c{n}=1")).collect();
        let many: Vec<_> = many.iter().map(|it| ("http://h/", it.as_str())).collect();
        assert_eq!(jar(&many).pairs(&target("http://h/")).len(), COOKIES_MAX);
        let long = format!("a={}", "x".repeat(COOKIES_BYTES_MAX));
        check(&[("http://h/", "b=1"), ("http://h/", &long)], "http://h/", &[("b", "1")]);
    }

    proptest! {
        #[test]
        fn a_cookie_of_any_text_is_valid_in_a_request(
            text in "[a;= -~\t\u{80}-\u{ff}]{0,80}",
            attribute in "(;? ?(domain|path|max-age|expires|secure)=?[a-z/.; -]{0,20}){0,4}",
        ) {
            let Ok(header) = HeaderValue::from_str(&format!("{text}{attribute}")) else { return Ok(()) };
            let (mut jar, h) = (CookieJar::default(), target("http://a.tv.example/"));
            jar.store(&h, &HeaderMap::from_iter([(SET_COOKIE, header)]));
            for (name, value) in jar.pairs(&h) {
                assert!(HeaderValue::try_from(format!("{name}={value}")).is_ok());
                assert!(!name.contains([';', '\n']) && !value.contains([';', '\n']));
            }
        }
    }
}
