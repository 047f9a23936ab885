//! `/api/m3u/`: playlist accounts, their profiles and their refreshes.
//!
//! The credentials of a provider are secret: URLs, header values, patterns and custom properties are visible to admins
//! only.

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
use crate::rest::frame::record::find;
use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [accounts::routes(), profiles::routes(), refresh::routes()].into_iter().flatten().collect()
}

/// Returns the account with this id, for a write that changes or deletes it. Refuses the built-in account for streams
/// that admins add.
fn find_unlocked(write: &Write<'_>, id: u32) -> Result<Account, Refusal> {
    let account: Account = find(write, id)?;
    if account.is_custom() { Err(Refusal::bad_request(LOCKED)) } else { Ok(account) }
}

const LOCKED: &str = "The built-in account cannot be changed or deleted.";
