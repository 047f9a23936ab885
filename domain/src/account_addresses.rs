//! The addresses of an account: several servers of one provider, of which one is in use.
//!
//! ```text
//!                the server in use is dead
//!   first ──────────────────────────────────▶ next ──▶ … ──▶ last ─┐
//!     ▲                                        │                   │
//!     └── the first answers a refresh again ◀──┴───────────────────┘
//! ```
//!
//! One request to a dead server is enough to change to the next one, for all streams and lists of the account. A server
//! that was dead within the last minute is not chosen, so that dead servers do not take turns.
//!
//! The record of an account also contains the form of the addresses of its panel's live streams, if the panel does not serve
//! the form that its login names. Other forms are tried once a day.

use serde::{Deserialize, Serialize};

use crate::account::{Account, PlaylistLocation};
use crate::ids::AccountId;
use crate::panel::LiveForm;
use crate::source_url::{SourceUrl, split_port};

/// Maximum number of further addresses of an account.
pub const FURTHER_ADDRESSES_MAX: usize = 10;
/// Time for which a dead server is not chosen again, in milliseconds.
pub const DEAD_TIME_MS: i64 = 60 * 1000;
/// Shortest time after which a refresh asks the first server again, in milliseconds.
pub const RETURN_TIME_MS: i64 = 15 * 60 * 1000;

/// Time for which other forms of addresses are not tried again, in milliseconds.
pub const FORMS_PERIOD_MS: i64 = 24 * 60 * 60 * 1000;

/// The address of an account that is in use, and those that were dead. A separate record, so that a failure never writes
/// the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRecord {
    pub account: AccountId,
    /// The address in use; `None` is the first one. One that the account does not have any more counts as none.
    #[serde(default)]
    pub active: Option<SourceUrl>,
    /// Time of the last change of the address in use, in milliseconds since 1970.
    #[serde(default)]
    pub changed_at: i64,
    /// Why the previous address was left: the label of an error. Empty after a return to the first one.
    #[serde(default)]
    pub cause: String,
    /// The last failure of each address; at most one for each.
    #[serde(default)]
    pub failures: Vec<AddressFailure>,
    /// The form in which a live stream of the panel played after another one was not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_form: Option<LiveForm>,
    /// When other forms were tried the last time, in milliseconds since 1970; 0 is never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forms_tried_at: i64,
}

fn is_zero(time: &i64) -> bool {
    *time == 0
}

/// A failure of an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressFailure {
    pub address: SourceUrl,
    /// Milliseconds since 1970.
    pub at: i64,
}

/// The kind of a request to a server that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRequest {
    /// A stream, a film or a guide: one of many of the server.
    Stream,
    /// A playlist, the list of a panel, or its login.
    List,
}

/// How a request to a server failed, as far as it shows whether the server is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostFailure {
    /// The name has no address.
    NoAddress,
    /// The connection was refused, or broke before the request was sent.
    NoConnection,
    /// The server did not accept the connection, or did not answer, in time.
    TimedOut,
    Tls,
    /// The proxy of the account cannot reach the server.
    NotReachedByProxy,
    /// The server answered with this status.
    Status(u16),
    /// Everything else, such as a refused login or a failure of the proxy itself.
    Other,
}

impl HostFailure {
    /// Returns whether another address of the provider has to be used.
    ///
    /// A status says little about the server if a single stream was asked for: panels answer 500 and 503 for streams that
    /// are off air. The statuses 502, 504, 521 to 523 and 530 come from a server in front of a dead one; 525 and 526 mean
    /// that TLS between both failed.
    pub fn is_host_dead(self, request: HostRequest) -> bool {
        match self {
            Self::NoAddress | Self::NoConnection | Self::TimedOut | Self::Tls | Self::NotReachedByProxy => {
                true
            }
            Self::Status(502 | 504 | 521..=523 | 525 | 526 | 530) => true,
            Self::Status(500 | 503) => request == HostRequest::List,
            Self::Status(_) | Self::Other => false,
        }
    }
}

impl AddressRecord {
    /// Creates the record of an account that uses its first address.
    pub fn new(account: AccountId) -> Self {
        Self {
            account,
            active: None,
            changed_at: 0,
            cause: String::new(),
            failures: Vec::new(),
            live_form: None,
            forms_tried_at: 0,
        }
    }

    /// Joins two records of an account: the newer knowledge of both about its addresses, and about their form.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let form_at = |it: &Self| (it.forms_tried_at, it.live_form.is_some());
        let of_form = if form_at(&self) < form_at(&other) { &other } else { &self };
        let (live_form, forms_tried_at) = (of_form.live_form, of_form.forms_tried_at);
        let newer = if self.addresses_at() < other.addresses_at() { other } else { self };
        Self { live_form, forms_tried_at, ..newer }
    }

    /// Returns when something was learnt about the addresses the last time, in milliseconds since 1970.
    fn addresses_at(&self) -> i64 {
        self.failures.iter().map(|it| it.at).fold(self.changed_at, i64::max)
    }

    /// Returns whether other forms may be tried `now`: they were not within a day.
    pub fn may_try_forms(&self, now: i64) -> bool {
        // A clock that was set back must not postpone it.
        self.forms_tried_at == 0 || !(0..FORMS_PERIOD_MS).contains(&now.saturating_sub(self.forms_tried_at))
    }

    /// Notes that other forms were tried `now`.
    pub fn forms_tried(&mut self, now: i64) {
        self.forms_tried_at = now;
    }

    /// Notes that a stream played in another form `now`.
    pub fn form_found(&mut self, form: LiveForm, now: i64) {
        (self.live_form, self.forms_tried_at) = (Some(form), now);
    }

    /// Forgets which server is in use, and its failures.
    pub fn forget_addresses(&mut self) {
        let Self { live_form, forms_tried_at, .. } = *self;
        *self = Self { live_form, forms_tried_at, ..Self::new(self.account) };
    }

    /// Forgets the form that was found, so that other forms may be tried at once.
    pub fn forget_form(&mut self) {
        (self.live_form, self.forms_tried_at) = (None, 0);
    }

    /// Returns the address in use; `None` if the account has no address.
    pub fn in_use<'a>(&self, addresses: &'a [SourceUrl]) -> Option<&'a SourceUrl> {
        let active = self.active.as_ref().and_then(|active| addresses.iter().find(|it| *it == active));
        active.or(addresses.first())
    }

    /// Notes that the server at `used` was dead `now`. Returns whether another address is in use now.
    ///
    /// A failure of an address that is not in use changes nothing more: it is late, or a question to the first one.
    pub fn failed(&mut self, addresses: &[SourceUrl], used: &SourceUrl, cause: &str, now: i64) -> bool {
        if addresses.len() < 2 || !addresses.contains(used) {
            return false;
        }
        self.failures.retain(|it| addresses.contains(&it.address) && it.address != *used);
        self.failures.push(AddressFailure { address: used.clone(), at: now });
        if self.in_use(addresses) != Some(used) {
            return false;
        }
        let at = addresses.iter().position(|it| it == used).unwrap_or(0);
        let others = (1..addresses.len()).map(|step| &addresses[(at + step) % addresses.len()]);
        match others.into_iter().find(|it| !self.failed_within(it, DEAD_TIME_MS, now)) {
            Some(next) => {
                self.active = Some(next.clone()).filter(|it| Some(it) != addresses.first());
                (self.changed_at, self.cause) = (now, cause.to_owned());
                true
            }
            None => false,
        }
    }

    /// Notes that the server at `used` answered a refresh `now`. Returns whether this was the return to the first address.
    pub fn answered(&mut self, addresses: &[SourceUrl], used: &SourceUrl, now: i64) -> bool {
        self.failures.retain(|it| it.address != *used);
        let returns = addresses.first() == Some(used) && self.in_use(addresses) != Some(used);
        if returns {
            (self.active, self.changed_at) = (None, now);
            self.cause.clear();
        }
        returns
    }

    /// Returns the address that a refresh asks first: the first one if it has not failed for some time, otherwise the one
    /// in use.
    pub fn for_refresh<'a>(&self, addresses: &'a [SourceUrl], now: i64) -> Option<&'a SourceUrl> {
        let first = addresses.first().filter(|it| !self.failed_within(it, RETURN_TIME_MS, now));
        first.or_else(|| self.in_use(addresses))
    }

    fn failed_within(&self, address: &SourceUrl, time: i64, now: i64) -> bool {
        // A clock that was set back must not make a failure last.
        let is_recent = |at: i64| (0..time).contains(&now.saturating_sub(at));
        self.failures.iter().any(|it| it.address == *address && is_recent(it.at))
    }
}

/// Returns the base addresses of an account, the first one first: `http://host:port`, with a path for a panel below one.
/// Empty for an account whose list is not from a server.
pub fn addresses_of(account: &Account) -> Vec<SourceUrl> {
    let first = match &account.list {
        PlaylistLocation::Url(url) => Parts::parse(url.expose()).map(|it| SourceUrl::new(it.origin())),
        PlaylistLocation::Panel(login) => Some(login.server.clone()),
        PlaylistLocation::Portal(place) => Some(place.server.clone()),
        PlaylistLocation::None | PlaylistLocation::File(_) | PlaylistLocation::Upload(_) => None,
    };
    let Some(first) = first else { return Vec::new() };
    let mut addresses = vec![first];
    for further in &account.further_addresses {
        if !addresses.contains(further) {
            addresses.push(further.clone());
        }
    }
    addresses
}

/// Returns an address of the provider as it is at the server `to`: if it begins with one of the account's addresses, that
/// part is replaced; if only its host is that of one of them, the host is replaced. Other addresses stay as they are.
pub fn at_address(url: &SourceUrl, addresses: &[SourceUrl], to: &SourceUrl) -> SourceUrl {
    let (Some(parts), Some(target)) = (Parts::parse(url.expose()), Parts::parse(to.expose())) else {
        return url.clone();
    };
    let bases: Vec<_> = addresses.iter().filter_map(|it| Parts::parse(it.expose())).collect();
    let rest_after = |base: &Parts<'_>| {
        let rest = parts.rest.strip_prefix(base.rest.trim_end_matches('/'))?;
        (parts.is_same_server(base) && (rest.is_empty() || rest.starts_with(['/', '?', '#']))).then_some(rest)
    };
    // An address that is right already, also if it is below another one of the account.
    if rest_after(&target).is_some() {
        return url.clone();
    }
    let longest = bases.iter().filter_map(&rest_after).min_by_key(|it| it.len());
    if let Some(rest) = longest {
        let login = parts.login.map(|it| format!("{it}@")).unwrap_or_default();
        let base = target.rest.trim_end_matches('/');
        return SourceUrl::new(format!("{}://{login}{}{base}{rest}", target.scheme, target.authority));
    }
    let is_host_of = |it: &Parts<'_>| it.host().eq_ignore_ascii_case(parts.host());
    if !bases.iter().any(is_host_of) || is_host_of(&target) {
        return url.clone();
    }
    let login = parts.login.map(|it| format!("{it}@")).unwrap_or_default();
    let port = match split_port(parts.authority).1 {
        "" => String::new(),
        port => format!(":{port}"),
    };
    SourceUrl::new(format!("{}://{login}{}{port}{}", parts.scheme, target.host(), parts.rest))
}

/// The parts of an `http` or `https` address.
struct Parts<'a> {
    scheme: &'a str,
    /// User and password as written.
    login: Option<&'a str>,
    /// Host and port.
    authority: &'a str,
    /// Path and query.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, after) = url.split_once("://")?;
        if !["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it)) {
            return None;
        }
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (place, rest) = after.split_at(end);
        let (login, authority) = place.rsplit_once('@').map_or((None, place), |it| (Some(it.0), it.1));
        (!authority.is_empty()).then_some(Self { scheme, login, authority, rest })
    }

    fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    fn host(&self) -> &'a str {
        split_port(self.authority).0
    }

    fn port(&self) -> u16 {
        let standard = if self.scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        match split_port(self.authority).1 {
            "" => standard,
            port => port.parse().unwrap_or(0),
        }
    }

    fn is_same_server(&self, other: &Self) -> bool {
        self.scheme.eq_ignore_ascii_case(other.scheme)
            && self.host().eq_ignore_ascii_case(other.host())
            && self.port() == other.port()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::account::AccountProfile;
    use crate::ids::ProfileId;

    fn urls(texts: &[&str]) -> Vec<SourceUrl> {
        texts.iter().map(|it| SourceUrl::new(*it)).collect()
    }

    #[test]
    fn only_failures_of_the_whole_server_change_the_address() {
        use HostFailure::*;
        for (failure, stream, list) in [
            (NoAddress, true, true),
            (NoConnection, true, true),
            (TimedOut, true, true),
            (Tls, true, true),
            (NotReachedByProxy, true, true),
            (Status(500), false, true),
            (Status(503), false, true),
            (Status(502), true, true),
            (Status(504), true, true),
            (Status(521), true, true),
            (Status(530), true, true),
            (Status(501), false, false),
            (Status(509), false, false),
            (Status(401), false, false),
            (Status(403), false, false),
            (Status(404), false, false),
            (Status(429), false, false),
            (Status(456), false, false),
            (Other, false, false),
        ] {
            assert_eq!(failure.is_host_dead(HostRequest::Stream), stream, "{failure:?} of a stream");
            assert_eq!(failure.is_host_dead(HostRequest::List), list, "{failure:?} of a list");
        }
    }

    #[test]
    fn an_address_of_the_provider_moves_to_the_server_in_use_and_others_stay() {
        let addresses = urls(&["http://a.example:8080", "https://b.example", "http://c.example/sub"]);
        let check = |url: &str, to: usize, expected: &str| {
            let moved = at_address(&SourceUrl::new(url), &addresses, &addresses[to]);
            assert_eq!(moved.expose(), expected, "{url} to {to}");
        };
        check("http://a.example:8080/live/u/p/1.ts", 1, "https://b.example/live/u/p/1.ts");
        check(
            "http://A.example:8080/live/1?x=http://a.example:8080/",
            1,
            "https://b.example/live/1?x=http://a.example:8080/",
        );
        check("http://u:p@a.example:8080/1", 2, "http://u:p@c.example/sub/1");
        check("http://a.example:8080?x=1", 2, "http://c.example/sub?x=1");
        check("http://c.example/sub/1.ts", 0, "http://a.example:8080/1.ts");
        check("https://b.example:443/1.ts", 0, "http://a.example:8080/1.ts");
        check("http://a.example:8080/1.ts", 0, "http://a.example:8080/1.ts");
        check("http://c.example/sub/1.ts", 2, "http://c.example/sub/1.ts");
        // Another port of the same host, such as that of the streams.
        check("http://a.example:9000/1.ts", 1, "http://b.example:9000/1.ts");
        check("http://c.example/other/1.ts", 0, "http://a.example/other/1.ts");
        check("http://cdn.example/1.ts", 1, "http://cdn.example/1.ts");
        check("http://a.example.evil:8080/1.ts", 1, "http://a.example.evil:8080/1.ts");
        check("http://evil/?http://a.example:8080/", 1, "http://evil/?http://a.example:8080/");
        check("udp://@239.0.0.1:1", 1, "udp://@239.0.0.1:1");
        check("file:///a", 1, "file:///a");
        check("", 1, "");
        let ports = urls(&["http://127.0.0.1:81", "http://127.0.0.1:82", "http://[::1]:83"]);
        let moved = |url: &str, to: usize| at_address(&SourceUrl::new(url), &ports, &ports[to]);
        assert_eq!(moved("http://127.0.0.1:81/x", 1).expose(), "http://127.0.0.1:82/x");
        assert_eq!(moved("http://127.0.0.1:84/x", 1).expose(), "http://127.0.0.1:84/x");
        assert_eq!(moved("http://127.0.0.1:82/x", 2).expose(), "http://[::1]:83/x");
        assert_eq!(moved("http://[::1]:83/x", 0).expose(), "http://127.0.0.1:81/x");
    }

    #[test]
    fn the_first_address_is_the_server_of_the_list() {
        let profile = AccountProfile::default_of(ProfileId(2), "Default", 0);
        let list = PlaylistLocation::Url(SourceUrl::new("http://u:p@a.example:81/get.php?x=1"));
        let mut account = Account::new(AccountId(2), "a", list, profile, 0);
        account.further_addresses = urls(&["http://b.example", "http://a.example:81", "http://b.example"]);
        assert_eq!(addresses_of(&account), urls(&["http://a.example:81", "http://b.example"]));
        account.list = PlaylistLocation::File("/a".to_owned());
        assert_eq!(addresses_of(&account), []);
    }

    #[test]
    fn a_dead_server_is_left_at_once_and_the_first_one_is_asked_again_later() {
        let all = urls(&["http://a", "http://b", "http://c"]);
        let mut record = AddressRecord::new(AccountId(2));
        assert!(record.failed(&all, &all[0], "connect", 1_000));
        assert_eq!((record.in_use(&all), record.cause.as_str()), (Some(&all[1]), "connect"));
        assert!(!record.failed(&all, &all[0], "connect", 1_001), "a late report");
        assert_eq!(record.in_use(&all), Some(&all[1]));
        assert_eq!(record.for_refresh(&all, 1_001 + RETURN_TIME_MS - 1), Some(&all[1]));
        assert_eq!(record.for_refresh(&all, 1_001 + RETURN_TIME_MS), Some(&all[0]));
        assert!(record.failed(&all, &all[1], "dns", 2_000));
        assert!(!record.failed(&all, &all[2], "dns", 3_000), "all are dead, so none is better");
        assert_eq!(record.in_use(&all), Some(&all[2]));
        assert!(record.failed(&all, &all[2], "dns", 3_000 + DEAD_TIME_MS), "the first may be back");
        assert_eq!((record.in_use(&all), record.active.is_none()), (Some(&all[0]), true));
        assert!(record.failed(&all, &all[0], "dns", 3_000 + DEAD_TIME_MS));
        assert!(record.answered(&all, &all[0], 4_000 + DEAD_TIME_MS));
        assert_eq!((record.in_use(&all), record.cause.as_str()), (Some(&all[0]), ""));
        // The clock was set back.
        assert!(record.failed(&all, &all[0], "dns", 0));
        assert_eq!(record.for_refresh(&all, -1), Some(&all[0]));
    }

    #[test]
    fn an_address_that_the_account_lost_is_not_in_use() {
        let all = urls(&["http://a", "http://b"]);
        let mut record = AddressRecord::new(AccountId(2));
        assert!(record.failed(&all, &all[0], "connect", 0));
        assert_eq!(record.in_use(&all[..1]), Some(&all[0]));
        assert!(!record.failed(&all[..1], &all[0], "connect", 1));
        assert_eq!(record.in_use(&[]), None);
        let stored = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<AddressRecord>(&stored).unwrap(), record);
        assert_eq!(
            serde_json::from_str::<AddressRecord>(r#"{"account":2}"#).unwrap(),
            AddressRecord::new(AccountId(2))
        );
    }

    #[test]
    fn other_forms_are_tried_once_a_day() {
        let mut record = AddressRecord::new(AccountId(2));
        let start = 1_800_000_000_000;
        assert!(record.may_try_forms(start) && record.may_try_forms(0));
        record.forms_tried(start);
        for later in [0, 1, 1_000, FORMS_PERIOD_MS - 1] {
            assert!(!record.may_try_forms(start + later), "{later}");
        }
        record.form_found(LiveForm::NoExtension, start + 5);
        assert!(!record.may_try_forms(start + FORMS_PERIOD_MS));
        assert!(record.may_try_forms(start + 5 + FORMS_PERIOD_MS));
        assert!(record.may_try_forms(start), "a clock that was set back");
        record.forms_tried(start + 2 * FORMS_PERIOD_MS);
        assert_eq!(record.live_form, Some(LiveForm::NoExtension), "it stays until another one is found");
        record.forget_form();
        assert_eq!(record, AddressRecord::new(AccountId(2)));
    }

    #[test]
    fn what_nodes_learn_of_addresses_and_of_their_form_is_joined() {
        let of_addresses = |at: i64| AddressRecord {
            active: Some(SourceUrl::new(format!("http://h{at}"))),
            changed_at: at,
            ..AddressRecord::new(AccountId(2))
        };
        let of_form = |form: Option<LiveForm>, at: i64| AddressRecord {
            live_form: form,
            forms_tried_at: at,
            ..AddressRecord::new(AccountId(2))
        };
        let (plain, list) = (Some(LiveForm::NoExtension), Some(LiveForm::M3u8));
        let both = AddressRecord { live_form: plain, forms_tried_at: 7, ..of_addresses(5) };
        for (one, other, expected) in [
            (of_addresses(5), of_form(plain, 7), both.clone()),
            (both.clone(), of_addresses(4), both.clone()),
            (both.clone(), of_form(list, 6), both.clone()),
            (
                both.clone(),
                of_form(list, 8),
                AddressRecord { live_form: list, forms_tried_at: 8, ..both.clone() },
            ),
            // Tried and found within a millisecond.
            (of_form(None, 7), of_form(plain, 7), of_form(plain, 7)),
            (
                both.clone(),
                of_addresses(6),
                AddressRecord { live_form: plain, forms_tried_at: 7, ..of_addresses(6) },
            ),
        ] {
            assert_eq!(one.clone().merge(other.clone()), expected);
            assert_eq!(other.merge(one), expected);
        }
        let mut record = both;
        record.forget_addresses();
        assert_eq!(record, of_form(plain, 7));
    }

    proptest! {
        /// Whatever fails and answers: at most one change for each address within [`DEAD_TIME_MS`], never to a server that
        /// was dead within this time, and the memory stays small.
        #[test]
        fn addresses_do_not_take_turns(steps in prop::collection::vec((0_usize..4, 0_i64..40_000, prop::bool::ANY), 0..200), n in 2_usize..4) {
            let all: Vec<_> = (0..n).map(|it| SourceUrl::new(format!("http://h{it}"))).collect();
            let mut record = AddressRecord::new(AccountId(2));
            let mut now = 0;
            let mut failed_at = vec![None; n];
            let mut switches: Vec<i64> = Vec::new();
            for (which, pause, fails) in steps {
                now += pause;
                let which = which % n;
                let before = record.in_use(&all).cloned();
                if fails {
                    let is_changed = record.failed(&all, &all[which], "dns", now);
                    failed_at[which] = Some(now);
                    prop_assert_eq!(is_changed, record.in_use(&all) != before.as_ref());
                    if is_changed {
                        let new = all.iter().position(|it| Some(it) == record.in_use(&all)).unwrap();
                        prop_assert!(failed_at[new].is_none_or(|at| now - at >= DEAD_TIME_MS));
                        switches.push(now);
                        let recent = switches.iter().filter(|at| now - **at < DEAD_TIME_MS).count();
                        prop_assert!(recent <= n);
                    }
                } else if record.for_refresh(&all, now) == Some(&all[which]) {
                    record.answered(&all, &all[which], now);
                    failed_at[which] = None;
                    switches.clear();
                }
                prop_assert!(record.failures.len() <= n);
                prop_assert!(record.in_use(&all).is_some());
            }
        }
    }
}
