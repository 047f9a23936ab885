//! The built-in account for streams that admins add, which nobody can change or delete.

use domain::account::Account;
use server::reply::Refusal;
use storage::Write;

use crate::record::find;

pub(super) const LOCKED: &str = "The built-in account cannot be changed or deleted.";

/// Returns the account with this id, for a write that changes or deletes it. Refuses the built-in account for streams
/// that admins add.
pub(super) fn find_unlocked(write: &Write<'_>, id: u32) -> Result<Account, Refusal> {
    let account: Account = find(write, id)?;
    if account.is_custom() { Err(Refusal::bad_request(LOCKED)) } else { Ok(account) }
}
