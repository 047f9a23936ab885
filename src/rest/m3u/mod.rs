//! `/api/m3u/`: playlist accounts, their profiles, and the refreshes of their lists.
//!
//! What an account has of its provider is a secret: addresses, headers, patterns and the properties of others are
//! shown to admins alone.

mod accounts;
mod edit;
mod profiles;
mod refresh;
mod shown;
mod text;

use std::time::SystemTime;

use domain::account::Account;
use domain::ids::ProfileId;
use storage::Write;

use super::call::find;
use super::route::Route;
use crate::http::reply::Refusal;

pub(super) fn routes() -> Vec<Route> {
    [accounts::routes(), profiles::routes(), refresh::routes()].into_iter().flatten().collect()
}

/// The account of this id, for a write that changes or deletes it. That of streams made by hand is refused.
fn find_unlocked(write: &Write<'_>, id: u32) -> Result<Account, Refusal> {
    let account: Account = find(write, id)?;
    if account.is_custom() { Err(Refusal::bad_request(LOCKED)) } else { Ok(account) }
}

const LOCKED: &str = "The account of streams that are made by hand cannot be changed or deleted.";

/// An id that no account and no profile of one ever had.
///
/// Both are counted as one: leases are told apart by the id of their profile, so none may come again, not even after
/// its account was deleted. The default profile of an account has the account's own id.
fn new_id(write: &mut Write<'_>) -> Result<u32, Refusal> {
    let taken: Vec<ProfileId> =
        write.all::<Account>()?.iter().flat_map(|it| &it.profiles).map(|it| it.id).collect();
    loop {
        // Ends: every try counts on, and so many profiles there are not.
        let id = write.next_id::<Account>()?;
        if !taken.contains(&ProfileId(id)) {
            return Ok(id);
        }
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
