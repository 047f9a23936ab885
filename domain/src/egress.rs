//! The addresses that the gateway connects to on behalf of a provider.
//!
//! The rule: no provider leads the gateway into a network nearer than its own. A list from the internet may name
//! addresses in the internet, but not the router of the home network; a list from the home network may name both, but not
//! the database on the gateway's own machine. Otherwise anyone who can change a list could use the gateway to reach
//! services that trust their neighbours.
//!
//! Addresses that an admin typed lead anywhere. The rule is applied to numeric addresses, after name resolution, and
//! again at every redirect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::account::{Account, PlaylistLocation, RefreshRecord};
use crate::source_url::SourceUrl;
use crate::stream::{RequestHeaders, Stream};

/// How far away a network is; the nearest is the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// This machine.
    Loopback,
    /// A network of the operator: RFC 1918, unique local IPv6, and the addresses that carriers and private overlay networks
    /// share (100.64.0.0/10).
    Private,
    /// Everything else.
    Public,
}

/// The nearest networks that addresses of an account's provider may lead into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedNetworks {
    /// The network that its playlist came from.
    #[default]
    OfPlaylist,
    /// Private networks as well.
    Private,
    /// This machine as well.
    Loopback,
}

impl AllowedNetworks {
    fn nearest(self) -> Distance {
        match self {
            Self::OfPlaylist => Distance::Public,
            Self::Private => Distance::Private,
            Self::Loopback => Distance::Loopback,
        }
    }
}

/// The addresses that a request may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reach {
    /// The network of the provider that named the address; `None` if an admin typed it.
    origin: Option<Distance>,
    allowed: AllowedNetworks,
}

/// The reason why an address is not connected to, as a message for an admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    #[error(
        "a provider in a public network may not lead into a private network; \"allowed_networks\" of the account allows it"
    )]
    FromPublicToPrivate,
    #[error(
        "a provider in another network may not lead to this machine; \"allowed_networks\" of the account allows it"
    )]
    ToThisMachine,
    #[error("a provider may not lead to link-local addresses and metadata services")]
    Reserved,
    #[error("a provider may not lead to the gateway itself")]
    OwnListener,
}

impl Reach {
    /// An address that an admin typed: it may be anywhere, and what its server names may be as near as the server.
    pub fn typed(allowed: AllowedNetworks) -> Self {
        Self { origin: None, allowed }
    }

    /// An address that a playlist from this network names.
    pub fn named_by(origin: Distance, allowed: AllowedNetworks) -> Self {
        Self { origin: Some(origin), allowed }
    }

    /// Returns whether an admin typed the address, so that it may lead anywhere.
    pub fn is_typed(self) -> bool {
        self.origin.is_none()
    }

    /// Returns the reach of an address that the server at `server` names, by a redirect for example. It is never nearer
    /// than before.
    pub fn after(self, server: IpAddr) -> Self {
        let here = distance(server).unwrap_or(Distance::Private);
        Self { origin: Some(self.origin.map_or(here, |it| it.max(here))), ..self }
    }

    /// Checks an address that a name was resolved to, or that stands in place of a name.
    ///
    /// # Errors
    /// It is nearer than allowed, or no provider may lead to it.
    pub fn check(self, to: IpAddr) -> Result<(), EgressError> {
        let Some(origin) = self.origin else { return Ok(()) };
        match distance(to) {
            None => Err(EgressError::Reserved),
            Some(distance) if distance >= origin.min(self.allowed.nearest()) => Ok(()),
            Some(Distance::Loopback) => Err(EgressError::ToThisMachine),
            Some(_) => Err(EgressError::FromPublicToPrivate),
        }
    }

    /// Returns whether a host with these addresses is refused unless the account allows private networks, and
    /// permitted if it does. The answer does not depend on what the account allows now.
    pub fn needs_private_networks(self, addresses: &[IpAddr]) -> bool {
        let permits = |allowed| {
            let rule = Self { allowed, ..self };
            addresses.iter().any(|it| rule.check(*it).is_ok())
        };
        !permits(AllowedNetworks::OfPlaylist) && permits(AllowedNetworks::Private)
    }
}

impl Default for Reach {
    fn default() -> Self {
        Self::typed(AllowedNetworks::default())
    }
}

/// Returns how far away an address is; `None` for link-local addresses and those of metadata services, to which no
/// provider may lead.
pub fn distance(address: IpAddr) -> Option<Distance> {
    match address.to_canonical() {
        IpAddr::V4(it) => distance_v4(it),
        IpAddr::V6(it) => match embedded_v4(it) {
            Some(it) => distance_v4(it),
            None => distance_v6(it),
        },
    }
}

/// Metadata services outside of link-local networks: Alibaba, Oracle and Azure.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192), Ipv4Addr::new(168, 63, 129, 16)];
/// The metadata service of Amazon.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

fn distance_v4(it: Ipv4Addr) -> Option<Distance> {
    let [a, b, ..] = it.octets();
    if it.is_link_local() || METADATA_V4.contains(&it) {
        None
    } else if it.is_loopback() || a == 0 {
        // The kernel connects 0.0.0.0 to this machine.
        Some(Distance::Loopback)
    } else if it.is_private() || (a, b & 0xc0) == (100, 64) || (a, b & 0xfe) == (198, 18) || it.is_broadcast()
    {
        Some(Distance::Private)
    } else {
        // Multicast as well: a group is joined, and nobody is asked for anything.
        Some(Distance::Public)
    }
}

fn distance_v6(it: Ipv6Addr) -> Option<Distance> {
    if it.is_unicast_link_local() || it == METADATA_V6 {
        None
    } else if it.is_loopback() || it.is_unspecified() {
        Some(Distance::Loopback)
    } else if it.is_unique_local() || it.segments()[0] & 0xffc0 == 0xfec0 {
        // fec0::/10 are the site-local addresses of old networks.
        Some(Distance::Private)
    } else {
        Some(Distance::Public)
    }
}

/// Returns the IPv4 address that an IPv6 address leads to: through NAT64 (64:ff9b::/96), 6to4 (2002::/16), or as an
/// "IPv4-compatible" address (::/96).
fn embedded_v4(it: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = it.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0x64, 0xff9b, 0, 0, 0, 0] => Some(v4(g, h)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        [0, 0, 0, 0, 0, 0] if g != 0 => Some(v4(g, h)),
        _ => None,
    }
}

/// Returns the reach of a stream under the address `url`, which an account profile may have rewritten with
/// `replacement`. `refresh` is the last refresh of its account.
///
/// Streams that an admin created or whose address an admin changed are typed, as are those of a playlist that is a file
/// of this machine, and addresses whose host an admin wrote into a rule or an account profile.
pub fn reach_of(
    stream: &Stream,
    url: &SourceUrl,
    replacement: &str,
    account: &Account,
    refresh: Option<&RefreshRecord>,
) -> Reach {
    if stream.manual.url.is_some() {
        return Reach::typed(account.allowed_networks);
    }
    let (original, _) = stream.provider.url.split_program();
    reach_of_version(&original, url, replacement, account, refresh)
}

/// Does the same for an address of which the provider named the `original`.
pub fn reach_of_version(
    original: &SourceUrl,
    url: &SourceUrl,
    replacement: &str,
    account: &Account,
    refresh: Option<&RefreshRecord>,
) -> Reach {
    let allowed = account.allowed_networks;
    let is_changed = url != original;
    let mut replacements = account.rules.iter().map(|it| it.replace.as_str()).chain([replacement]);
    let is_typed = account.is_custom() || is_changed && replacements.any(|it| has_host_of(it, url));
    match origin_of(account, refresh).filter(|_| !is_typed) {
        Some(origin) => Reach::named_by(origin, allowed),
        None => Reach::typed(allowed),
    }
}

/// Returns the reach of other addresses that the playlist of an account names, such as those of logos.
pub fn reach_of_account(account: &Account, refresh: Option<&RefreshRecord>) -> Reach {
    match origin_of(account, refresh) {
        Some(origin) => Reach::named_by(origin, account.allowed_networks),
        None => Reach::typed(account.allowed_networks),
    }
}

/// Returns the network that the streams of an account were imported from; `None` for streams of a local file.
fn origin_of(account: &Account, refresh: Option<&RefreshRecord>) -> Option<Distance> {
    match (refresh.and_then(|it| it.origin), &account.list) {
        (Some(origin), _) => Some(origin),
        // Imported by a version that did not record it.
        (None, PlaylistLocation::Url(url)) => Some(assumed_distance(url)),
        (None, PlaylistLocation::Panel(login)) => Some(assumed_distance(&login.server)),
        (None, PlaylistLocation::Portal(place)) => Some(assumed_distance(&place.server)),
        (None, PlaylistLocation::Upload(_)) => Some(Distance::Public),
        (None, PlaylistLocation::File(_) | PlaylistLocation::None) => None,
    }
}

/// Returns the network of an address without resolving its name.
fn assumed_distance(url: &SourceUrl) -> Distance {
    let host = url.host().unwrap_or_default();
    match host.parse::<IpAddr>() {
        Ok(address) => distance(address).unwrap_or(Distance::Private),
        Err(_) if host.eq_ignore_ascii_case("localhost") => Distance::Loopback,
        Err(_) => Distance::Public,
    }
}

/// Returns whether the text of an admin begins with the scheme, host and port of this address.
fn has_host_of(text: &str, url: &SourceUrl) -> bool {
    let typed = SourceUrl::new(text);
    let is_same_host = typed.authority().is_some_and(|it| !it.is_empty() && Some(it) == url.authority());
    is_same_host && typed.scheme() == url.scheme()
}

/// Headers without secrets, which the servers of other sites get as well.
const SHAREABLE: [&str; 4] = ["accept", "accept-language", "cache-control", "origin"];

/// Returns the headers of an account for one of its addresses: all for the site of its playlist, and those without
/// secrets for others, unless the account allows more. A playlist that is a file has no site of its own.
pub fn account_headers(account: &Account, url: &SourceUrl) -> RequestHeaders {
    let headers = account.headers.clone();
    let site = match &account.list {
        PlaylistLocation::Url(list) => Some(list),
        PlaylistLocation::Panel(login) => Some(&login.server),
        PlaylistLocation::Portal(place) => Some(&place.server),
        PlaylistLocation::File(_) | PlaylistLocation::Upload(_) | PlaylistLocation::None => None,
    };
    match site {
        Some(site) if !account.headers_for_all_hosts && !is_of_site(url, site) => {
            let is_shareable =
                |it: &(String, String)| SHAREABLE.iter().any(|name| it.0.eq_ignore_ascii_case(name));
            RequestHeaders { extra: headers.extra.into_iter().filter(is_shareable).collect(), ..headers }
        }
        _ => headers,
    }
}

/// Returns whether an address is on the host of `list`, or on one below it. `www.` in front of the host does not count,
/// and neither do ports: panels use several.
fn is_of_site(url: &SourceUrl, list: &SourceUrl) -> bool {
    let lower = |it: &SourceUrl| it.host().map(|it| it.trim_end_matches('.').to_ascii_lowercase());
    let (Some(host), Some(list)) = (lower(url), lower(list)) else { return false };
    let site = list.strip_prefix("www.").filter(|it| it.contains('.')).unwrap_or(&list);
    let is_name = site.parse::<IpAddr>().is_err() && site.contains('.');
    let is_below = || host.strip_suffix(site).is_some_and(|it| it.ends_with('.'));
    host == site || is_name && is_below()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{AccountProfile, Rule, RuleField};
    use crate::ids::{AccountId, ProfileId, StreamId};
    use crate::stream::StreamProperties;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    // Part of T-acc.5: every way to write an address that is near.
    #[test]
    fn an_address_is_as_far_away_as_the_machine_it_leads_to() {
        use Distance::*;
        for (address, expected) in [
            ("127.0.0.1", Some(Loopback)),
            ("127.255.0.3", Some(Loopback)),
            ("0.0.0.0", Some(Loopback)),
            ("0.1.2.3", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::127.0.0.1", Some(Loopback)),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("2002:7f00:1::", Some(Loopback)),
            ("10.0.0.1", Some(Private)),
            ("172.31.255.1", Some(Private)),
            ("192.168.1.1", Some(Private)),
            ("100.64.0.1", Some(Private)),
            ("198.19.0.1", Some(Private)),
            ("255.255.255.255", Some(Private)),
            ("fd12::1", Some(Private)),
            ("fec0::1", Some(Private)),
            ("::ffff:192.168.1.1", Some(Private)),
            ("64:ff9b::a00:1", Some(Private)),
            ("169.254.169.254", None),
            ("169.254.1.1", None),
            ("::ffff:169.254.169.254", None),
            ("64:ff9b::a9fe:a9fe", None),
            ("fe80::1", None),
            ("fd00:ec2::254", None),
            ("100.100.100.200", None),
            ("168.63.129.16", None),
            ("203.0.113.1", Some(Public)),
            ("172.32.0.1", Some(Public)),
            ("100.128.0.1", Some(Public)),
            ("2001:db8::1", Some(Public)),
            ("64:ff9b::cb00:7101", Some(Public)),
            ("239.0.0.1", Some(Public)),
        ] {
            assert_eq!(distance(ip(address)), expected, "{address}");
        }
    }

    #[test]
    fn no_provider_leads_into_a_nearer_network_than_its_own() {
        use AllowedNetworks::{OfPlaylist, Private as AllowPrivate};
        use Distance::*;
        const TARGETS: [&str; 4] = ["127.0.0.1", "192.168.1.1", "203.0.113.1", "169.254.169.254"];
        let check = |reach: Reach, expected: [bool; 4]| {
            let allowed = TARGETS.map(|it| reach.check(ip(it)).is_ok());
            assert_eq!(allowed, expected, "{reach:?}");
        };
        check(Reach::named_by(Public, OfPlaylist), [false, false, true, false]);
        check(Reach::named_by(Private, OfPlaylist), [false, true, true, false]);
        check(Reach::named_by(Loopback, OfPlaylist), [true, true, true, false]);
        check(Reach::named_by(Public, AllowPrivate), [false, true, true, false]);
        check(Reach::named_by(Loopback, AllowPrivate), [true, true, true, false]);
        check(Reach::named_by(Public, AllowedNetworks::Loopback), [true, true, true, false]);
        check(Reach::default(), [true; 4]);
        // Redirects: as near as the server that sends them, and never nearer than before.
        check(Reach::default().after(ip("127.0.0.1")), [true, true, true, false]);
        check(Reach::default().after(ip("169.254.1.1")), [false, true, true, false]);
        check(Reach::default().after(ip("203.0.113.1")), [false, false, true, false]);
        check(Reach::named_by(Private, OfPlaylist).after(ip("127.0.0.1")), [false, true, true, false]);
        check(Reach::named_by(Loopback, OfPlaylist).after(ip("203.0.113.1")), [false, false, true, false]);
        check(Reach::typed(AllowPrivate).after(ip("203.0.113.1")), [false, true, true, false]);
    }

    #[test]
    fn a_host_needs_private_networks_if_it_is_refused_without_them_and_permitted_with_them() {
        use Distance::*;
        let of_internet = Reach::named_by(Public, AllowedNetworks::OfPlaylist);
        for (addresses, expected) in [
            (&["10.255.255.1"][..], true),
            (&["fd12::1", "192.168.1.2"], true),
            (&["100.64.0.1", "127.0.0.1"], true),
            // It plays without permission.
            (&["192.168.1.2", "203.0.113.1"], false),
            (&["203.0.113.1"], false),
            // Private networks do not include them.
            (&["127.0.0.1"], false),
            (&["::1", "0.0.0.0"], false),
            (&["169.254.169.254"], false),
            (&["fd00:ec2::254", "100.100.100.200", "fe80::1"], false),
            (&[], false),
        ] {
            let addresses: Vec<_> = addresses.iter().copied().map(ip).collect();
            assert_eq!(of_internet.needs_private_networks(&addresses), expected, "{addresses:?}");
        }
        let private = [ip("192.168.1.2")];
        assert!(Reach::named_by(Public, AllowedNetworks::Loopback).needs_private_networks(&private));
        for reach in [
            Reach::typed(AllowedNetworks::OfPlaylist),
            Reach::named_by(Private, AllowedNetworks::OfPlaylist),
            Reach::named_by(Loopback, AllowedNetworks::OfPlaylist),
        ] {
            assert!(!reach.needs_private_networks(&private), "{reach:?}");
        }
    }

    fn account(list: PlaylistLocation) -> Account {
        Account::new(AccountId(2), "a", list, AccountProfile::default_of(ProfileId(2), "a", 1), 0)
    }

    fn location(url: &str) -> PlaylistLocation {
        PlaylistLocation::Url(SourceUrl::new(url))
    }

    fn stream(url: &str) -> Stream {
        let provider = StreamProperties::new("s", SourceUrl::new(url));
        Stream::new(StreamId(1), AccountId(2), provider, 0)
    }

    #[test]
    fn a_stream_reaches_as_far_as_its_list_and_anywhere_if_an_admin_typed_its_address() {
        let stream = stream("http://tv.example/1");
        let reach = |account: &Account, refresh: Option<&RefreshRecord>| {
            reach_of(&stream, stream.url(), "", account, refresh)
        };
        let named = |it| Reach::named_by(it, AllowedNetworks::OfPlaylist);
        let list = account(location("http://tv.example/list"));
        let recorded = RefreshRecord { origin: Some(Distance::Private), ..RefreshRecord::new(AccountId(2)) };
        assert_eq!(reach(&list, Some(&recorded)), named(Distance::Private));
        assert_eq!(reach(&list, None), named(Distance::Public), "of an older version");
        assert_eq!(reach(&account(location("http://192.168.1.2/list")), None), named(Distance::Private));
        assert_eq!(reach(&account(location("http://localhost:80/list")), None), named(Distance::Loopback));
        assert!(reach(&account(PlaylistLocation::File("/list".to_owned())), None).is_typed());
        assert!(reach(&Account::custom(), None).is_typed());
        // The list was removed from the account, and its streams are still there.
        assert_eq!(reach(&account(PlaylistLocation::None), Some(&recorded)), named(Distance::Private));
        let allowing = Account { allowed_networks: AllowedNetworks::Loopback, ..list.clone() };
        assert!(reach(&allowing, None).check(ip("127.0.0.1")).is_ok());
        let mut edited = stream.clone();
        edited.manual.url = Some(SourceUrl::new("http://192.168.1.1/"));
        assert!(reach_of(&edited, edited.url(), "", &list, None).is_typed());
    }

    #[test]
    fn a_host_that_an_admin_wrote_into_a_rule_or_a_profile_is_typed() {
        let list = account(location("http://tv.example/list"));
        let stream = stream("http://tv.example/1");
        let check = |url: &str, replacement: &str, is_typed: bool| {
            let reach = reach_of(&stream, &SourceUrl::new(url), replacement, &list, None);
            assert_eq!(reach.is_typed(), is_typed, "{url} {replacement}");
        };
        check("http://127.0.0.1:8000/tv/1", "http://127.0.0.1:8000/$1", true);
        check("http://127.0.0.1:8000/tv/1", "http://127.0.0.1:80/$1", false);
        check("http://127.0.0.1:8000/tv/1", "http://$1", false);
        check("http://127.0.0.1:8000/tv/1", "/user/password/", false);
        check("rtsp://127.0.0.1:8000/tv/1", "http://127.0.0.1:8000/$1", false);
        check("http://tv.example/1", "http://tv.example/", false);
        let rule = Rule { field: RuleField::Url, find: "x".into(), replace: "http://10.0.0.1/$1".into() };
        let ruled = Account { rules: vec![rule], ..list.clone() };
        assert!(reach_of(&stream, &SourceUrl::new("http://10.0.0.1/1"), "", &ruled, None).is_typed());
    }

    #[test]
    fn secrets_of_an_account_are_for_the_site_of_its_list() {
        let mut account = account(location("http://www.panel.example:8080/get.php"));
        for (name, value) in [
            ("User-Agent", "Player/1"),
            ("Cookie", "secret"),
            ("Authorization", "secret"),
            ("X-Key", "secret"),
            ("Accept", "*/*"),
        ] {
            assert!(account.headers.set(name, value));
        }
        let names = |account: &Account, url: &str| {
            let headers = account_headers(account, &SourceUrl::new(url));
            assert_eq!(headers.user_agent.as_deref(), Some("Player/1"), "a name of a program is public");
            headers.extra.into_iter().map(|it| it.0).collect::<Vec<_>>()
        };
        for url in ["http://panel.example/1", "https://cdn.PANEL.example:99/1", "http://www.panel.example/"] {
            assert_eq!(names(&account, url).len(), 4, "{url}");
        }
        for url in ["http://panel.example.evil.example/1", "http://evilpanel.example/1", "http://127.0.0.1/"]
        {
            assert_eq!(names(&account, url), ["Accept"], "{url}");
        }
        account.headers_for_all_hosts = true;
        assert_eq!(names(&account, "http://other.example/1").len(), 4);
        account.headers_for_all_hosts = false;
        account.list = PlaylistLocation::File("/list.m3u".to_owned());
        assert_eq!(names(&account, "http://other.example/1").len(), 4, "a file has no site");
        account.list = location("http://192.168.1.2/list");
        assert_eq!(names(&account, "http://192.168.1.2:80/1").len(), 4);
        assert_eq!(names(&account, "http://9.192.168.1.2/1"), ["Accept"]);
        account.list = location("http://localhost/list");
        assert_eq!(names(&account, "http://a.localhost/1"), ["Accept"]);
    }
}
