//! The login of an account, which its addresses may contain.

use crate::account::{Account, PlaylistLocation};

/// The least length of a part of a login that is left out of addresses, in bytes. Shorter ones are also common words.
const LOGIN_BYTES_MIN: usize = 3;

/// Returns the user and the password of an account, which its addresses may contain.
pub fn account_logins(account: &Account) -> Vec<String> {
    let mut logins = Vec::new();
    match &account.list {
        PlaylistLocation::Panel(login) => {
            logins.extend([login.username.clone(), login.password.expose().to_owned()]);
        }
        PlaylistLocation::Url(url) => {
            let query = url.expose().split_once('?').map_or("", |it| it.1);
            let is_login = |name: &str| {
                ["username", "user", "password", "pass", "token", "key", "mac"]
                    .iter()
                    .any(|it| it.eq_ignore_ascii_case(name))
            };
            let of_query = form_urlencoded::parse(query.as_bytes()).filter(|it| is_login(&it.0));
            logins.extend(of_query.map(|it| it.1.into_owned()));
            let authority = url.expose().split_once("://").map_or("", |it| it.1);
            let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
            let user_info = authority.rsplit_once('@').map_or("", |it| it.0);
            logins.extend(user_info.split(':').map(str::to_owned));
        }
        _ => {}
    }
    logins.retain(|it| it.len() >= LOGIN_BYTES_MIN);
    logins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountProfile;
    use crate::ids::{AccountId, ProfileId};
    use crate::source_url::SourceUrl;

    #[test]
    fn the_login_of_an_account_is_that_of_its_list() {
        for (list, expected) in [
            ("http://h/get.php?username=anna&password=hun%2Fter2&type=m3u", vec!["anna", "hun/ter2"]),
            ("http://anna:secret@h/list.m3u?output=ts", vec!["anna", "secret"]),
            ("http://h/list.m3u?user=me", vec![]),
        ] {
            let list = PlaylistLocation::Url(SourceUrl::new(list));
            let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
            let account = Account::new(AccountId(2), "a", list, profile, 0);
            assert_eq!(account_logins(&account), expected);
        }
    }
}
