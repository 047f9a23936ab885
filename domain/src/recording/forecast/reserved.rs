//! Connections that are always kept for recordings.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::LimitId;
use crate::account::Account;
use crate::recording::AccountReserve;

/// Returns how many connections of each limit the rows keep at a time: of several rows for an account, the one with the most.
/// The connections are those of its active profiles, the default one first, and count for its server group too. Profiles
/// without a limit have nothing to keep.
pub fn reserved_peaks<'a>(
    rows: &[AccountReserve],
    accounts: impl IntoIterator<Item = &'a Account>,
    at: i64,
    zone: &TimeZone,
) -> BTreeMap<LimitId, u32> {
    let mut peaks = BTreeMap::<LimitId, u32>::new();
    for account in accounts {
        let of_account = rows.iter().filter(|it| it.account == account.id && it.is_at(at, zone));
        let mut left = of_account.map(|it| it.slots).max().unwrap_or_default();
        let mut profiles: Vec<_> = account.profiles.iter().filter(|it| it.is_active).collect();
        profiles.sort_by_key(|it| !it.is_default);
        for profile in profiles {
            let slots = left.min(profile.limit());
            if slots == 0 {
                continue;
            }
            left -= slots;
            peaks.insert(LimitId::Profile(profile.id), slots);
            if let Some(group) = account.server_group {
                *peaks.entry(LimitId::ServerGroup(group)).or_default() += slots;
            }
        }
    }
    peaks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::account::{AccountProfile, PlaylistLocation};
    use crate::ids::{AccountId, ProfileId, ServerGroupId};

    const HOUR: i64 = 3_600_000;
    /// A Monday, 12:00 in UTC, in milliseconds.
    const MONDAY_NOON: i64 = 1_795_435_200_000;

    fn reserve(text: &str) -> AccountReserve {
        text.parse().unwrap()
    }

    fn account(id: u32, maxima: &[u32], group: Option<u32>) -> Account {
        let profile = |(n, max): (u32, &u32)| AccountProfile {
            is_default: n == 0,
            ..AccountProfile::default_of(ProfileId(id * 10 + n), "p", *max)
        };
        let profiles = (0..).zip(maxima).map(profile).collect();
        let server_group = group.map(ServerGroupId);
        let default = AccountProfile::default_of(ProfileId(0), "p", 0);
        Account {
            profiles,
            server_group,
            ..Account::new(AccountId(id), "a", PlaylistLocation::None, default, 0)
        }
    }

    #[test]
    fn profiles_share_what_their_account_keeps_and_server_groups_keep_it_too() {
        let accounts = [account(1, &[1, 3], None), account(2, &[0], None), account(3, &[2], Some(5))];
        let rows = ["1 = 2", "1 = 1", "2 = 4", "3 = 9", "7 = 1", "1 = 3 tue"].map(reserve);
        let peaks = reserved_peaks(&rows, &accounts, MONDAY_NOON, &TimeZone::UTC);
        let expected = [
            (LimitId::Profile(ProfileId(10)), 1),
            (LimitId::Profile(ProfileId(11)), 1),
            (LimitId::Profile(ProfileId(30)), 2),
            (LimitId::ServerGroup(ServerGroupId(5)), 2),
        ];
        assert_eq!(peaks, BTreeMap::from(expected));
    }

    proptest! {
        /// Any text is read or refused, and what is read never keeps more connections than there are.
        #[test]
        fn no_row_keeps_more_than_an_account_has(
            text in "[0-9]{1,2} ?= ?[0-9]{1,4}( [a-z,-]{0,9})?( [0-9]{1,2}:[0-9]{2}-[0-9]{1,2}:[0-9]{2})?",
            maxima in prop::collection::vec(0..5u32, 1..4),
            hours in 0..168i64,
        ) {
            let Ok(row) = text.parse::<AccountReserve>() else { return Ok(()) };
            prop_assert_eq!(row.to_string().parse(), Ok(row));
            let of = account(row.account.0, &maxima, Some(1));
            let at = MONDAY_NOON + hours * HOUR;
            let peaks = reserved_peaks(&[row], [&of], at, &TimeZone::UTC);
            let kept = |limit| peaks.get(&limit).copied().unwrap_or_default();
            for profile in &of.profiles {
                prop_assert!(kept(LimitId::Profile(profile.id)) <= profile.max_streams);
            }
            let all = row.slots.min(maxima.iter().sum());
            let expected = if row.is_at(at, &TimeZone::UTC) { all } else { 0 };
            prop_assert_eq!(kept(LimitId::ServerGroup(ServerGroupId(1))), expected);
        }
    }
}
