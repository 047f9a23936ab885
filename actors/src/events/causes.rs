//! Events about the limits of accounts.

use domain::event::EventBody;

use crate::slots::FullPool;

/// Returns the event that something does not play because an account is at its limit. `None` if that is not known, because
/// the other nodes of the cluster could not be asked.
pub(crate) fn account_full(pool: &FullPool, wanted: &str) -> Option<EventBody> {
    (!pool.is_unknown).then(|| EventBody::AccountFull {
        account_name: pool.account.clone(),
        wanted: wanted.to_owned(),
        max_streams: pool.max_streams,
        reason: pool.to_string(),
    })
}
