//! The headers in which proxies name the client that they forward for; [`domain::forwarded`] reads them.

use std::net::IpAddr;

use domain::forwarded::ForwardedHeader;
use http::header::{FORWARDED, HeaderName, VIA};
use http::{HeaderMap, HeaderValue};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Start of the names of many such headers: `-For`, `-Host`, `-Proto`, `-Port`, `-Server` and others.
const X_FORWARDED: &str = "x-forwarded";
/// Further headers that proxies, load balancers and content delivery networks add.
const OTHERS: [&str; 9] = [
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "true-client-ip",
    "cf-connecting-ip",
    "fly-client-ip",
    "cdn-loop",
];

/// Returns true if a header shows that the request was forwarded, by whatever proxy.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let text = name.as_str();
        name == FORWARDED || name == VIA || text.starts_with(X_FORWARDED) || OTHERS.contains(&text)
    })
}

/// Returns the client of a request that arrived from a trusted proxy: the rightmost address of `X-Forwarded-For` or
/// `Forwarded` that is not trusted, or the leftmost one if all are.
///
/// Returns `None` if an address that counts is missing or malformed. If both headers are present they must agree,
/// because a proxy that writes one of them passes on the other as the client sent it.
pub(super) fn client(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    let of = |name: HeaderName, header: ForwardedHeader| {
        let lines = || headers.get_all(&name).iter().map(HeaderValue::as_bytes);
        headers.contains_key(&name).then(|| header.client(lines(), &is_trusted))
    };
    match (of(X_FORWARDED_FOR, ForwardedHeader::XForwardedFor), of(FORWARDED, ForwardedHeader::Forwarded)) {
        (Some(one), None) | (None, Some(one)) => one,
        (Some(one), Some(other)) => one.filter(|it| other == Some(*it)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    /// Trusts the addresses of 10.0.0.0/8.
    #[track_caller]
    fn check(lines: &[(&'static str, &'static str)], expected: Option<&str>) {
        let trusted = |it: IpAddr| it.to_string().starts_with("10.");
        let found = client(&headers(lines), trusted).map(|it| it.to_string());
        assert_eq!(found.as_deref(), expected, "{lines:?}");
    }

    /// Holds T-acc.6.
    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
        let name = "x-forwarded-for";
        check(&[(name, "203.0.113.9")], Some("203.0.113.9"));
        check(&[(name, "127.0.0.1, 203.0.113.9")], Some("203.0.113.9"));
        check(&[(name, "127.0.0.1,203.0.113.9 , 10.0.0.2")], Some("203.0.113.9"));
        check(
            &[(name, "127.0.0.1"), (name, "203.0.113.9"), (name, "10.0.0.2, 10.0.0.3")],
            Some("203.0.113.9"),
        );
        check(&[(name, "10.0.0.7, 10.0.0.2")], Some("10.0.0.7"));
        check(&[(name, "203.0.113.9:4711")], Some("203.0.113.9"));
        check(&[(name, "[2001:db8::1]:4711")], Some("2001:db8::1"));
        check(&[(name, "2001:db8::1")], Some("2001:db8::1"));
        check(&[(name, "::ffff:192.0.2.1")], Some("192.0.2.1"));
    }

    #[test]
    fn the_header_forwarded_names_the_client_like_x_forwarded_for() {
        let name = "forwarded";
        check(&[(name, "for=203.0.113.9;proto=https;by=10.0.0.1")], Some("203.0.113.9"));
        check(
            &[(name, "for=127.0.0.1, FOR=\"203.0.113.9:80\", proto=http;for=10.0.0.2")],
            Some("203.0.113.9"),
        );
        check(&[(name, "for=\"[2001:db8::1]:4711\"")], Some("2001:db8::1"));
        // An open quote of the client does not hide what the proxy appended.
        check(&[(name, "for=\"127.0.0.1, for=203.0.113.9")], Some("203.0.113.9"));
    }

    /// Holds T-acc.6.
    #[test]
    fn a_client_that_a_trusted_proxy_does_not_name_is_unknown() {
        for (name, value) in [
            ("x-forwarded-for", ""),
            ("x-forwarded-for", "unknown"),
            ("x-forwarded-for", "192.168.1.5, unknown"),
            ("x-forwarded-for", "192.168.1.5, "),
            ("x-forwarded-for", "192.168.1.5; x"),
            ("x-forwarded-for", "bad, 10.0.0.2"),
            ("forwarded", "for=_hidden"),
            ("forwarded", "proto=https"),
            ("forwarded", "for=192.168.1.5;for=192.168.1.6"),
            ("x-real-ip", "192.168.1.5"),
        ] {
            check(&[(name, value)], None);
        }
        check(&[], None);
    }

    /// Holds T-acc.6.
    #[test]
    fn two_headers_that_name_different_clients_name_none() {
        let (x, standard) = ("x-forwarded-for", "forwarded");
        check(&[(x, "203.0.113.9"), (standard, "for=127.0.0.1")], None);
        check(&[(x, "127.0.0.1"), (standard, "for=203.0.113.9")], None);
        check(&[(x, "203.0.113.9"), (standard, "for=_hidden")], None);
        check(&[(x, "203.0.113.9"), (standard, "for=203.0.113.9")], Some("203.0.113.9"));
    }

    #[test]
    fn every_usual_header_of_a_proxy_is_recognised() {
        for name in [
            "forwarded",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-forwarded-server",
            "x-real-ip",
            "cf-connecting-ip",
            "true-client-ip",
        ] {
            assert!(is_forwarded(&headers(&[("host", "tv"), (name, "x")])), "{name}");
        }
        assert!(!is_forwarded(&headers(&[("host", "tv"), ("user-agent", "VLC"), ("referer", "x")])));
    }
}
