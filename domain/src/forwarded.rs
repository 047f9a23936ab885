//! The client that proxies name in `X-Forwarded-For` and `Forwarded`.
//!
//! Every proxy appends the address that it accepted the request from. A client can send such headers itself, so only
//! what trusted proxies appended counts: the list is read from the right, up to the first address that is not one of
//! a trusted proxy.

use std::net::IpAddr;

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
}
