//! Conditions about the time for which viewers wait when a node of the cluster is lost.

use std::time::Duration;

use domain::account::Account;
use domain::cluster::rules::TAKE_OVER;

use crate::gateway_conditions::{Condition, ConditionKind, Severity};

/// Names the account whose connections count longest after the loss of a machine, if viewers do not wait for so long.
pub(crate) fn wait_condition<'a>(
    accounts: impl IntoIterator<Item = &'a Account>,
    give_up_after: Duration,
) -> Option<Condition> {
    let is_limited = |it: &&Account| it.is_active && it.active_profiles().any(|it| it.max_streams > 0);
    let waits = accounts.into_iter().filter(is_limited).map(|it| (wait(it), it));
    let (wait, account) = waits.max_by_key(|it| it.0).filter(|it| it.0 >= give_up_after)?;
    let (wait, name) = (wait.as_secs_f32().ceil(), &account.name);
    Some(Condition {
        key: format!("cluster_wait:{}:{wait}", account.id.0),
        kind: ConditionKind::ClusterNode,
        severity: Severity::Warning,
        title: "Viewers do not wait long enough for the channels of a lost node".to_owned(),
        message: format!(
            "If the machine of a node is lost, the connections of the account \"{name}\" count for {wait} s more, and viewers \
             of the other nodes give up after {} s.",
            give_up_after.as_secs_f32()
        ),
        advice: format!("Set engine.give_up_after to more than {wait}."),
    })
}

/// Returns how long a connection of an account counts after the last sign of a machine that is lost.
fn wait(account: &Account) -> Duration {
    TAKE_OVER + account.cooling_after_loss()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::ids::{AccountId, ProfileId};

    use super::*;

    fn account(id: u32, max_streams: u32, release_delay_s: u64) -> Account {
        let profile = AccountProfile::default_of(ProfileId(id), "login", max_streams);
        let name = format!("provider {id}");
        let account = Account::new(AccountId(id), name, PlaylistLocation::None, profile, 0);
        Account { release_delay: Duration::from_secs(release_delay_s), ..account }
    }

    #[test]
    fn a_time_for_gaps_that_is_shorter_than_the_wait_after_a_loss_is_named() {
        let found = |accounts: &[Account], give_up_after_s: u64| {
            wait_condition(accounts, Duration::from_secs(give_up_after_s)).map(|it| (it.message, it.advice))
        };
        let usual = account(1, 1, 2);
        assert_eq!(found(from_ref(&usual), 60), None);
        assert_eq!(found(from_ref(&usual), 51), None);
        let (message, advice) = found(from_ref(&usual), 50).unwrap();
        assert!(message.contains("\"provider 1\" count for 50 s"), "{message}");
        assert!(message.contains("give up after 50 s") && advice.contains("more than 50."), "{advice}");
        // The one that counts longest.
        let (message, advice) = found(&[usual.clone(), account(2, 3, 45)], 60).unwrap();
        assert!(message.contains("\"provider 2\" count for 65 s") && advice.contains("65"), "{message}");
        let own = |seconds| Account { crash_cooling: Some(Duration::from_secs(seconds)), ..account(5, 1, 2) };
        let (message, _) = found(&[own(90)], 60).unwrap();
        assert!(message.contains("\"provider 5\" count for 110 s"), "{message}");
        assert_eq!(found(&[own(10)], 31), None);
        let unlimited = account(3, 0, 45);
        let inactive = Account { is_active: false, ..account(4, 1, 45) };
        assert_eq!(found(&[usual, unlimited, inactive], 60), None);
        assert_eq!(found(&[], 1), None);
    }
}
