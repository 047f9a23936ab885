//! The account to which an address belongs that is not the address of a known stream: its slots, headers, proxy and network
//! rules count when it is played.

use crate::account::{Account, PlaylistLocation};
use crate::account_addresses::addresses_of;
use crate::ids::AccountId;
use crate::source_url::SourceUrl;

/// Why an address belongs to no account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOwner {
    /// It is not the address of a stream in a network, such as that of a file.
    NotPlayable,
    /// Neither the login nor the host is that of an account.
    Unknown,
    /// More than one account has the login, or the host.
    Several,
}

/// Returns the account to which an address belongs: the one that is `named`, else the only active one whose login it
/// contains, else the only active one at whose host it is.
///
/// # Errors
/// It is not clear to which account it belongs, or it is not played by its address; see [`NoOwner`].
pub fn owner_of_address<'a>(
    url: &SourceUrl,
    accounts: impl IntoIterator<Item = &'a Account>,
    named: Option<AccountId>,
) -> Result<AccountId, NoOwner> {
    if !url.is_network() || url.host().is_none() {
        return Err(NoOwner::NotPlayable);
    }
    let active = accounts.into_iter().filter(|it| it.is_active && !it.is_custom());
    let candidates: Vec<&Account> = active.filter(|it| named.is_none_or(|id| id == it.id)).collect();
    if named.is_some() {
        return candidates.first().map(|it| it.id).ok_or(NoOwner::Unknown);
    }
    let of_login: Vec<_> = candidates.iter().filter(|it| has_login(it, url)).collect();
    if of_login.is_empty() {
        only(candidates.iter().filter(|it| has_host(it, url)).map(|it| it.id))
    } else {
        only(of_login.iter().map(|it| it.id))
    }
}

fn only(mut ids: impl Iterator<Item = AccountId>) -> Result<AccountId, NoOwner> {
    match (ids.next(), ids.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => Err(NoOwner::Unknown),
        (Some(_), Some(_)) => Err(NoOwner::Several),
    }
}

/// Returns whether an address contains a login of an account, as parts of its path, as in `/live/USER/PASSWORD/7.ts`, or as
/// `username` and `password` of its query.
fn has_login(account: &Account, url: &SourceUrl) -> bool {
    let panels = account.active_profiles().filter_map(|it| account.panel_login_of(it));
    let mut logins: Vec<(String, String)> =
        panels.map(|it| (it.username.clone(), it.password.expose().to_owned())).collect();
    if let PlaylistLocation::Url(list) = &account.list {
        logins.extend(query_login(list));
    }
    let segments: Vec<&str> = url.path().split('/').collect();
    let in_path = |(user, password): &(String, String)| {
        segments.windows(2).any(|it| is_text(it[0], user) && is_text(it[1], password))
    };
    let in_query = query_login(url);
    logins
        .iter()
        .any(|it| !it.0.is_empty() && !it.1.is_empty() && (in_path(it) || in_query.as_ref() == Some(it)))
}

/// Returns whether a part of an address is this text, as it is or with escapes.
fn is_text(part: &str, text: &str) -> bool {
    part == text || percent_encoding::percent_decode_str(part).decode_utf8().is_ok_and(|it| it == text)
}

fn query_login(url: &SourceUrl) -> Option<(String, String)> {
    let (_, query) = url.expose().split_once('?')?;
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let value = |name: &str| pairs.iter().find(|it| it.0 == name).map(|it| it.1.clone().into_owned());
    Some((value("username")?, value("password")?))
}

fn has_host(account: &Account, url: &SourceUrl) -> bool {
    let is_host = |it: &SourceUrl| {
        it.host().zip(url.host()).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
    };
    addresses_of(account).iter().any(is_host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountProfile;
    use crate::ids::ProfileId;
    use crate::panel::PanelLogin;
    use crate::secret::Secret;

    fn account(id: u32, list: PlaylistLocation) -> Account {
        Account::new(
            AccountId(id),
            format!("a{id}"),
            list,
            AccountProfile::default_of(ProfileId(id), "d", 1),
            0,
        )
    }

    fn panel(id: u32, host: &str, user: &str) -> Account {
        let server = SourceUrl::new(format!("http://{host}:8080"));
        let login = PanelLogin { server, username: user.to_owned(), password: Secret::new("s3cret") };
        account(id, PlaylistLocation::Panel(login))
    }

    #[test]
    fn an_address_belongs_to_the_only_account_with_its_login_or_its_host_or_to_the_named_one() {
        let list = |id, url: &str| account(id, PlaylistLocation::Url(SourceUrl::new(url)));
        let inactive = Account { is_active: false, ..panel(9, "off.example", "olga") };
        let accounts = [
            panel(2, "p.example", "anna"),
            panel(3, "p.example", "ben"),
            list(4, "https://l.example/get.php?username=carl&password=x%20y&type=m3u"),
            list(5, "https://l.example/list.m3u"),
            list(6, "https://only.example/list.m3u"),
            account(7, PlaylistLocation::None),
            inactive,
        ];
        let check = |url: &str, named: Option<u32>, expected: Result<u32, NoOwner>| {
            let owner = owner_of_address(&SourceUrl::new(url), &accounts, named.map(AccountId));
            assert_eq!(owner, expected.map(AccountId), "{url} {named:?}");
        };
        let (unknown, several) = (Err(NoOwner::Unknown), Err(NoOwner::Several));
        check("http://p.example:8080/live/anna/s3cret/7.ts", None, Ok(2));
        check("http://cdn.example/live/ben/s3cret/7.m3u8", None, Ok(3));
        check("http://p.example/play?username=ben&password=s3cret", None, Ok(3));
        check("http://cdn.example/carl/x%20y/7", None, Ok(4));
        check("http://p.example:8080/live/anna/other/7.ts", None, several);
        check("http://p.example/7.ts", None, several);
        check("https://l.example/7.ts", None, several);
        check("https://ONLY.example:99/7.ts", None, Ok(6));
        check("http://elsewhere.example/7.ts", None, unknown);
        check("http://off.example/live/olga/s3cret/7.ts", None, unknown);
        check("http://elsewhere.example/7.ts", Some(3), Ok(3));
        check("http://elsewhere.example/7.ts", Some(7), Ok(7));
        check("http://p.example:8080/live/anna/s3cret/7.ts", Some(3), Ok(3));
        check("http://elsewhere.example/7.ts", Some(9), unknown);
        check("http://elsewhere.example/7.ts", Some(1), unknown);
        for never in ["file:///etc/passwd", "/etc/passwd", "http:///7.ts", "", "ffmpeg -i x", "data:,x"] {
            check(never, Some(2), Err(NoOwner::NotPlayable));
            check(never, None, Err(NoOwner::NotPlayable));
        }
    }
}
