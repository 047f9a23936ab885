//! Requests to one panel, one at a time.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ids::AccountId;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Waiting, OwnedMutexGuard};

/// The accounts at whose panels a request runs or waits.
#[derive(Clone, Default)]
pub(super) struct Turns {
    accounts: Arc<Mutex<HashMap<AccountId, Arc<Waiting<()>>>>>,
}

/// The only request to the panel of an account, until it is dropped.
pub(crate) struct Turn(#[expect(dead_code, reason = "holds the turn")] OwnedMutexGuard<()>);

impl Turns {
    /// Waits for the turn; who came first gets it first.
    pub(super) async fn take(&self, account: AccountId) -> Turn {
        let waiting = {
            let mut accounts = self.accounts.lock();
            // Forgets accounts without a request, so that deleted ones do not stay.
            accounts.retain(|_, it| Arc::strong_count(it) > 1);
            accounts.entry(account).or_default().clone()
        };
        Turn(waiting.lock_owned().await)
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn requests_of_one_account_wait_for_each_other_and_those_of_others_do_not() {
        let turns = Turns::default();
        let first = turns.take(AccountId(2)).await;
        let _other = turns.take(AccountId(3)).await;
        let own = turns.clone();
        let second = tokio::spawn(async move { own.take(AccountId(2)).await });
        for _ in 0..20 {
            yield_now().await;
        }
        assert!(!second.is_finished());
        drop(first);
        drop(second.await.unwrap());
        let _again = turns.take(AccountId(4)).await;
        assert_eq!(turns.accounts.lock().len(), 2, "3 and 4");
    }
}
