//! The client that proxies name in `X-Forwarded-For` and `Forwarded`, and the other headers that proxies add.
//!
//! Every proxy appends the address that it accepted the request from. A client can send such headers itself, so only
//! what trusted proxies appended counts: the list is read from the right, up to the first address that is not one of
//! a trusted proxy.

use std::net::IpAddr;

/// Start of the names of many headers of proxies: `-For`, `-Host`, `-Proto`, `-Port`, `-Server` and others.
const X_FORWARDED: &str = "x-forwarded";
/// Further headers that proxies, load balancers and content delivery networks add.
const OTHERS: [&str; 11] = [
    "forwarded",
    "via",
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

/// The headers of a request that proxies add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyHeaders<'a> {
    is_forwarded: bool,
    x_forwarded_for: Vec<&'a [u8]>,
    forwarded: Vec<&'a [u8]>,
}

impl<'a> ProxyHeaders<'a> {
    /// Selects them from all headers of a request: pairs of a name in lower case and a value, in order.
    pub fn from_headers(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            match name {
                "x-forwarded-for" => found.x_forwarded_for.push(value),
                "forwarded" => found.forwarded.push(value),
                _ => {}
            }
            found.is_forwarded |= name.starts_with(X_FORWARDED) || OTHERS.contains(&name);
        }
        found
    }

    /// Returns true if a header shows that the request was forwarded, by whatever proxy.
    pub fn is_forwarded(&self) -> bool {
        self.is_forwarded
    }

    /// Returns the client of a request that arrived from a trusted proxy: the rightmost address of `X-Forwarded-For` or
    /// `Forwarded` that is not trusted, or the leftmost one if all are.
    ///
    /// Returns `None` if an address that counts is missing or malformed. If both headers are present they must agree,
    /// because a proxy that writes one of them passes on the other as the client sent it.
    pub fn client(&self, is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let of = |lines: &[&'a [u8]], header: ForwardedHeader| {
            (!lines.is_empty()).then(|| header.client(lines.iter().copied(), &is_trusted))
        };
        let by_x_forwarded_for = of(&self.x_forwarded_for, ForwardedHeader::XForwardedFor);
        match (by_x_forwarded_for, of(&self.forwarded, ForwardedHeader::Forwarded)) {
            (Some(one), None) | (None, Some(one)) => one,
            (Some(one), Some(other)) => one.filter(|it| other == Some(*it)),
            (None, None) => None,
        }
    }
}

/// A header that lists the client and the proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For: 203.0.113.9, 10.0.0.2`
    XForwardedFor,
    /// `Forwarded: for=203.0.113.9;proto=https, for=10.0.0.2` (RFC 7239)
    Forwarded,
}

impl ForwardedHeader {
    /// Returns the rightmost address that is not trusted, or the leftmost one if all are. The lines are the values of this
    /// header, in order.
    ///
    /// Returns `None` if an address that counts is missing or malformed.
    pub fn client<'a>(
        self,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
        is_trusted: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        let mut found = None;
        for line in lines.rev() {
            let is_visible = |it: &u8| it.is_ascii_graphic() || matches!(it, b' ' | b'\t');
            let line = str::from_utf8(line).ok().filter(|it| it.as_bytes().iter().all(is_visible))?;
            // A quoted comma would be split too. What is left of the first untrusted element cannot shift the elements of
            // trusted proxies in this way, whatever quotes a client sends.
            for element in line.rsplit(',') {
                let address = self.address(element.trim())?;
                found = Some(address);
                if !is_trusted(address) {
                    return found;
                }
            }
        }
        found
    }

    /// Parses an element.
    fn address(self, element: &str) -> Option<IpAddr> {
        match self {
            Self::XForwardedFor => address(element),
            Self::Forwarded => address_of_element(element),
        }
    }
}

/// Parses an element of `Forwarded`, such as `for="[2001:db8::1]:4711";proto=https`.
fn address_of_element(element: &str) -> Option<IpAddr> {
    let mut clients = element.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    });
    let client = clients.next()?;
    clients.next().is_none().then(|| address(client))?
}

/// Parses an address with an optional port, in the forms that proxies write.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
    let host = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        // A single colon separates the port of an IPv4 address.
        None => text.split_once(':').filter(|it| !it.1.contains(':')).map_or(text, |it| it.0),
    };
    host.parse().ok().map(|it: IpAddr| it.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_a_client_sends_never_changes_the_address_that_a_trusted_proxy_appends(sent in "[ -~\t]{0,60}", line in any::<bool>()) {
            for (header, appended) in
                [(ForwardedHeader::XForwardedFor, "203.0.113.9"), (ForwardedHeader::Forwarded, "for=203.0.113.9")]
            {
                let one = format!("{sent},{appended}");
                let lines: Vec<&[u8]> =
                    if line { vec![sent.as_bytes(), appended.as_bytes()] } else { vec![one.as_bytes()] };
                let found = header.client(lines.into_iter(), |it| it.to_string().starts_with("10."));
                prop_assert_eq!(found, Some(IpAddr::from([203, 0, 113, 9])));
            }
        }
    }

    #[test]
    fn bytes_that_are_not_visible_name_nobody() {
        for line in [&b"203.0.113.9\x01"[..], "203.0.113.9, \u{e9}".as_bytes(), b"\xff"] {
            assert_eq!(ForwardedHeader::XForwardedFor.client([line].into_iter(), |_| false), None);
        }
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> ProxyHeaders<'static> {
        ProxyHeaders::from_headers(lines.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    /// Trusts the addresses of 10.0.0.0/8.
    #[track_caller]
    fn check(lines: &[(&'static str, &'static str)], expected: Option<&str>) {
        let trusted = |it: IpAddr| it.to_string().starts_with("10.");
        let found = headers(lines).client(trusted).map(|it| it.to_string());
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
            assert!(headers(&[("host", "tv"), (name, "x")]).is_forwarded(), "{name}");
        }
        assert!(!headers(&[("host", "tv"), ("user-agent", "VLC"), ("referer", "x")]).is_forwarded());
    }
}
