//! `/api/m3u/`: playlist accounts, their profiles, and the refreshes of their lists.
//!
//! What an account has of its provider is a secret: addresses, headers, patterns and the properties of others are
//! shown to admins alone.

mod accounts;
mod edit;
mod profiles;
mod refresh;
#[cfg(test)]
mod tests;
mod text;
mod view;

use domain::account::Account;
use storage::Write;

use crate::http::reply::Refusal;
use crate::rest::frame::call::find;
use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [accounts::routes(), profiles::routes(), refresh::routes()].into_iter().flatten().collect()
}

/// The account of this id, for a write that changes or deletes it. That of streams made by hand is refused.
fn find_unlocked(write: &Write<'_>, id: u32) -> Result<Account, Refusal> {
    let account: Account = find(write, id)?;
    if account.is_custom() { Err(Refusal::bad_request(LOCKED)) } else { Ok(account) }
}

const LOCKED: &str = "The account of streams that are made by hand cannot be changed or deleted.";
