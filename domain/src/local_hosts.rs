//! The hosts in private networks that the streams of an account name, as an admin sees them before allowing these
//! networks.
//!
//! The rule of [`egress`](crate::egress) decides by the numeric address of each connection. This list is a forecast: an
//! address that stands in place of a name is known, names are looked up by the caller and judged by their addresses, and
//! a name that only a local network uses counts as one of its hosts while it has no address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::account::{Account, RefreshRecord};
use crate::egress::{Reach, reach_of, reach_of_account};
use crate::stream::{SourceKind, Stream};

/// Maximum number of names that are looked up.
pub const NAMES_MAX: usize = 16;
/// Maximum number of hosts that are returned by name.
pub const HOSTS_MAX: usize = 20;
/// Maximum number of hosts that are collected; a list can name another host in each of its entries.
const COLLECTED_MAX: usize = 10_000;
/// Maximum length of the name of a host in DNS, in characters.
const NAME_CHARS_MAX: usize = 253;

/// Endings of names that only local networks use.
const LOCAL_ENDINGS: [&str; 8] =
    [".local", ".lan", ".home", ".home.arpa", ".internal", ".intranet", ".localdomain", ".private"];

/// Collects the hosts that streams of an account name and that the account may have to allow.
#[derive(Debug)]
pub struct LocalHosts {
    account: Arc<Account>,
    refresh: Option<Arc<RefreshRecord>>,
    /// The reach of what the provider names.
    reach: Reach,
    hosts: HashMap<String, NamedHost>,
}

#[derive(Debug)]
struct NamedHost {
    n_streams: usize,
    /// Whether it is in a private network; `None` for a name that was not looked up.
    is_local: Option<bool>,
}

/// The hosts in private networks, those of most streams first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundHosts {
    /// Number of hosts.
    pub count: usize,
    /// At most [`HOSTS_MAX`] of them.
    pub hosts: Vec<String>,
}

impl LocalHosts {
    /// Begins for an account with its last refresh.
    pub fn new(account: Arc<Account>, refresh: Option<Arc<RefreshRecord>>) -> Self {
        let reach = reach_of_account(&account, refresh.as_deref());
        Self { account, refresh, reach, hosts: HashMap::new() }
    }

    /// Adds a stream of the account. Streams whose address an admin typed need no permission, and those that take a port
    /// of this machine or a file of it need another one.
    pub fn add(&mut self, stream: &Stream) {
        let url = stream.url();
        if matches!(SourceKind::from_url(url), SourceKind::Udp | SourceKind::Rtp | SourceKind::File) {
            return;
        }
        let Some(host) = url.host().filter(|it| it.chars().count() <= NAME_CHARS_MAX) else { return };
        if reach_of(stream, url, "", &self.account, self.refresh.as_deref()).is_typed() {
            return;
        }
        let host = host.trim_end_matches('.').to_lowercase();
        if let Some(known) = self.hosts.get_mut(&host) {
            known.n_streams += 1;
        } else if self.hosts.len() < COLLECTED_MAX {
            let address = host.parse::<IpAddr>().ok();
            let is_local = address.map(|it| self.reach.needs_private_networks(&[it]));
            self.hosts.insert(host, NamedHost { n_streams: 1, is_local });
        }
    }

    /// Returns names to look up: first those that only local networks use, then those of most streams.
    pub fn names(&self) -> Vec<String> {
        let is_unknown = |it: &(&String, &NamedHost)| it.1.is_local.is_none() && !is_localhost(it.0);
        let mut names: Vec<_> = match self.is_limited() {
            true => self.hosts.iter().filter(is_unknown).collect(),
            false => Vec::new(),
        };
        names.sort_by_key(|(name, host)| (!is_local_name(name), usize::MAX - host.n_streams, *name));
        names.into_iter().take(NAMES_MAX).map(|(name, _)| name.clone()).collect()
    }

    /// Records the addresses of a name.
    pub fn resolved(&mut self, name: &str, addresses: &[IpAddr]) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.is_local = Some(self.reach.needs_private_networks(addresses));
        }
    }

    /// Returns the hosts in private networks.
    pub fn found(self) -> FoundHosts {
        let is_limited = self.is_limited();
        // A name without an address may get one when its machine is on.
        let is_found = |(name, host): &(String, NamedHost)| {
            host.is_local.unwrap_or_else(|| is_limited && is_local_name(name) && !is_localhost(name))
        };
        let mut found: Vec<_> = self.hosts.into_iter().filter(is_found).collect();
        found.sort_by(|(a_name, a), (b_name, b)| (b.n_streams, a_name).cmp(&(a.n_streams, b_name)));
        let count = found.len();
        found.truncate(HOSTS_MAX);
        FoundHosts { count, hosts: found.into_iter().map(|(name, _)| name).collect() }
    }

    /// Returns whether the provider needs permission to lead into private networks.
    fn is_limited(&self) -> bool {
        self.reach.needs_private_networks(&[IpAddr::from([10, 0, 0, 1])])
    }
}

/// Returns whether only a local network has hosts with names like this one.
fn is_local_name(name: &str) -> bool {
    !name.contains('.') && !name.contains(':') || LOCAL_ENDINGS.iter().any(|it| name.ends_with(it))
}

/// Returns whether a name always leads to this machine.
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{AccountProfile, PlaylistLocation};
    use crate::egress::{AllowedNetworks, Distance};
    use crate::ids::{AccountId, ProfileId, StreamId};
    use crate::source_url::SourceUrl;
    use crate::stream::StreamProperties;

    fn account(list: PlaylistLocation) -> Account {
        Account::new(AccountId(2), "a", list, AccountProfile::default_of(ProfileId(2), "a", 1), 0)
    }

    fn uploaded() -> Account {
        account(PlaylistLocation::Upload("list.m3u".to_owned()))
    }

    fn stream(url: &str) -> Stream {
        Stream::new(StreamId(1), AccountId(2), StreamProperties::new("s", SourceUrl::new(url)), 0)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn collected(account: Account, refresh: Option<RefreshRecord>, urls: &[&str]) -> LocalHosts {
        let mut hosts = LocalHosts::new(Arc::new(account), refresh.map(Arc::new));
        urls.iter().for_each(|it| hosts.add(&stream(it)));
        hosts
    }

    #[test]
    fn the_hosts_of_an_uploaded_list_in_private_networks_are_found_by_number() {
        let urls = [
            "http://10.255.255.1:9/1",
            "http://user:password@192.168.1.7/live/1.ts",
            "https://192.168.1.7:8443/2",
            "rtsp://[fd12::1]:554/3",
            "http://[::ffff:10.0.0.9]/4",
            // Public, and nothing that `private` allows.
            "http://203.0.113.1/5",
            "http://127.0.0.1:8000/6",
            "http://localhost/7",
            "http://a.localhost/7",
            "http://169.254.169.254/8",
            "http://100.100.100.200/9",
            "http://[fe80::1]/10",
            "udp://@239.0.0.1:1234",
            "udp://10.0.0.3:1234",
            "rtp://10.0.0.4:1234",
            "file://10.0.0.5/film.ts",
            "10.0.0.6",
        ];
        let expected = ["192.168.1.7", "10.255.255.1", "::ffff:10.0.0.9", "fd12::1"];
        for allowed in [AllowedNetworks::OfPlaylist, AllowedNetworks::Private, AllowedNetworks::Loopback] {
            let account = Account { allowed_networks: allowed, ..uploaded() };
            let found = collected(account, None, &urls).found();
            assert_eq!((found.count, &found.hosts[..]), (4, &expected.map(str::to_owned)[..]));
        }
    }

    #[test]
    fn a_name_is_judged_by_its_addresses_and_a_local_one_without_address_counts_as_local() {
        let urls = [
            "http://tv.example/1",
            "http://tv.example/2",
            "http://cdn.example/3",
            "http://TVHeadend.local./4",
            "http://nas:8080/5",
            "http://router.home.arpa/6",
            "http://gone.example/7",
            "http://localhost:8080/8",
        ];
        let mut hosts = collected(uploaded(), None, &urls);
        assert_eq!(
            hosts.names(),
            ["nas", "router.home.arpa", "tvheadend.local", "tv.example", "cdn.example", "gone.example"]
        );
        hosts.resolved("tv.example", &[ip("203.0.113.1"), ip("192.168.1.1")]);
        hosts.resolved("cdn.example", &[ip("192.168.1.2")]);
        hosts.resolved("router.home.arpa", &[ip("127.0.1.1")]);
        assert_eq!(hosts.found().hosts, ["cdn.example", "nas", "tvheadend.local"]);
    }

    #[test]
    fn what_needs_no_permission_is_not_found() {
        let urls = ["http://10.0.0.1/1", "http://nas/2"];
        let url = |it: &str| PlaylistLocation::Url(SourceUrl::new(it));
        for (list, is_found) in [
            (url("http://tv.example/list"), true),
            (url("http://192.168.1.2/list"), false),
            (PlaylistLocation::File("/list.m3u".to_owned()), false),
        ] {
            let hosts = collected(account(list.clone()), None, &urls);
            assert_eq!(!hosts.names().is_empty(), is_found, "{list:?}");
            assert_eq!(hosts.found().count, if is_found { 2 } else { 0 }, "{list:?}");
        }
        let account = account(url("http://tv.example/list"));
        let recorded = RefreshRecord { origin: Some(Distance::Private), ..RefreshRecord::new(AccountId(2)) };
        assert_eq!(collected(account.clone(), Some(recorded), &urls).found(), FoundHosts::default());
        let mut edited = stream("http://tv.example/1");
        edited.manual.url = Some(SourceUrl::new("http://10.0.0.1/1"));
        let mut hosts = LocalHosts::new(Arc::new(account), None);
        hosts.add(&edited);
        assert_eq!(hosts.found().count, 0, "an admin typed the address");
    }

    #[test]
    fn the_list_is_bounded_whatever_the_playlist_names() {
        let mut hosts = collected(uploaded(), None, &[]);
        for it in 0..COLLECTED_MAX + 100 {
            hosts.add(&stream(&format!("http://10.{}.{}.{}/1", it >> 16, it >> 8 & 255, it & 255)));
        }
        (0..100).for_each(|it| hosts.add(&stream(&format!("http://{}.lan/1", "a".repeat(200 + it)))));
        let found = hosts.found();
        assert_eq!((found.count, found.hosts.len()), (COLLECTED_MAX, HOSTS_MAX));
        let mut hosts = collected(uploaded(), None, &[]);
        (0..100).for_each(|it| hosts.add(&stream(&format!("http://{it}.example/1"))));
        assert_eq!(hosts.names().len(), NAMES_MAX);
    }
}
