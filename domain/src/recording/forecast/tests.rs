use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::slots::maxima_of;
use super::*;
use crate::limits::LimitScope;
use crate::plan::SharedPool;

/// Length of a minute in milliseconds.
const MINUTE: i64 = 60_000;

fn pool(profile: u32, max_streams: u32) -> SlotPool {
    SlotPool {
        account: AccountId(profile),
        account_name: format!("account {profile}"),
        profile: ProfileId(profile),
        max_streams,
        release_delay: Duration::ZERO,
        crash_cooling: None,
        changed_at: 0,
        scope: LimitScope::Unknown,
        shared: None,
    }
}

fn in_group(max_streams: u32, pool: SlotPool) -> SlotPool {
    let shared =
        SharedPool { group: ServerGroupId(1), name: "group".to_owned(), max_streams, accounts: Arc::new([]) };
    SlotPool { shared: Some(shared), ..pool }
}

/// Times in minutes.
fn demand(id: u32, channel: u32, start: i64, end: i64, pools: &[SlotPool]) -> ForecastDemand {
    ForecastDemand {
        id: RecordingId(id),
        channel: ChannelId(channel),
        start: start * MINUTE,
        end: end * MINUTE,
        begins_at: start * MINUTE,
        ends_at: end * MINUTE,
        padding_before: 0,
        priority: 50,
        watched: None,
        is_over: false,
        pools: pools.into(),
    }
}

fn padded(minutes: i64, it: ForecastDemand) -> ForecastDemand {
    let padding = minutes * MINUTE;
    ForecastDemand { begins_at: it.start - padding, ends_at: it.end + padding, padding_before: padding, ..it }
}

/// Shows the prospects: `profile-before+after` in minutes, or `lost to` the holders.
fn show(demands: &[ForecastDemand]) -> Vec<String> {
    let forecast = Forecast::new(demands.to_vec());
    let show = |it: &Prospect| match it {
        Prospect::Assigned { profile, padding_before, padding_after, .. } => {
            format!("{profile}-{}+{}", padding_before / MINUTE, padding_after / MINUTE)
        }
        Prospect::Lost(full) => {
            let holders =
                full.iter().map(|it| format!("{:?}", it.holders.iter().map(|it| it.0).collect::<Vec<_>>()));
            format!("lost to {}", holders.collect::<Vec<_>>().join(" "))
        }
        Prospect::NoSource => "no source".to_owned(),
    };
    demands.iter().map(|it| show(forecast.get(it.id).unwrap())).collect()
}

#[test]
fn recordings_use_free_slots_of_all_accounts() {
    let both = [pool(1, 1), pool(2, 1)];
    let all = [
        demand(1, 1, 0, 60, &both),
        demand(2, 2, 30, 90, &both),
        demand(3, 3, 40, 50, &both),
        demand(4, 4, 60, 90, &both),
        demand(5, 5, 0, 10, &[]),
    ];
    assert_eq!(
        show(&all),
        ["1-0+0", "2-0+0", "lost to [1] [2]", "1-0+0", "no source"],
        "an end at a start causes no conflict"
    );
}

#[test]
fn negative_padding_needs_no_connection() {
    let one: Arc<[SlotPool]> = Arc::new([pool(1, 1)]);
    let recording = |id: u32, times: std::ops::Range<i64>, before: i32, after: i32| {
        let uuid = uuid::Uuid::from_u128(id.into());
        let times = times.start * MINUTE..times.end * MINUTE;
        let it = Recording::new(RecordingId(id), ChannelId(id), uuid, "", times, 0);
        Recording { padding_before: before * 60, padding_after: after * 60, ..it }
    };
    let demands = |shortened: i32| {
        [
            recording(1, 60..120, shortened, shortened),
            recording(2, 110..150, 0, 0),
            recording(3, 30..70, 0, 0),
        ]
        .map(|it| ForecastDemand::from_recording(&it, one.clone(), None))
    };
    assert_eq!(show(&demands(-10)), ["1-0+0"; 3]);
    let kept = show(&demands(0));
    assert_eq!(kept.iter().filter(|it| it.starts_with("lost")).count(), 2, "{kept:?}");
}

#[test]
fn recordings_of_one_channel_share_their_connection() {
    let one = [pool(1, 1)];
    let all = [demand(1, 1, 0, 60, &one), demand(2, 1, 30, 90, &one), demand(3, 2, 70, 80, &one)];
    assert_eq!(show(&all), ["1-0+0", "1-0+0", "lost to [2]"]);
}

#[test]
fn the_priority_decides_and_then_the_start() {
    let one = [pool(1, 1)];
    let important = ForecastDemand { priority: 90, ..demand(3, 3, 50, 70, &one) };
    assert_eq!(show(&[demand(1, 1, 0, 30, &one), demand(2, 2, 20, 60, &one)]), ["1-0+0", "lost to [1]"]);
    let all = [demand(1, 1, 0, 30, &one), demand(2, 2, 20, 60, &one), important];
    assert_eq!(show(&all), ["1-0+0", "lost to [1]", "1-0+0"]);
    let forecast = Forecast::new(all.to_vec());
    let parts = |id| forecast.parts(RecordingId(id)).iter().map(|it| (it.from / MINUTE, it.until / MINUTE));
    assert_eq!(parts(2).collect::<Vec<_>>(), [(30, 50)], "until the more important one begins");
}

#[test]
fn padding_yields_before_a_programme_does() {
    let one = [pool(1, 1)];
    let all = [padded(10, demand(1, 1, 0, 60, &one)), padded(10, demand(2, 2, 60, 90, &one))];
    assert_eq!(show(&all), ["1-10+0", "1-0+10"]);
    let all = [padded(10, demand(1, 1, 0, 60, &one)), padded(10, demand(2, 2, 65, 90, &one))];
    assert_eq!(show(&all), ["1-10+5", "1-0+10"], "what is left goes to the first");
    let all = [padded(10, demand(1, 1, 0, 60, &one)), padded(10, demand(2, 1, 60, 90, &one))];
    assert_eq!(show(&all), ["1-10+10", "1-10+10"], "one channel needs one connection");
}

#[test]
fn a_server_group_limits_its_accounts_together() {
    let group = [in_group(1, pool(1, 3)), in_group(1, pool(2, 3))];
    let other = [in_group(1, pool(1, 3)), pool(3, 0)];
    let all = [demand(1, 1, 0, 60, &group), demand(2, 2, 30, 90, &group), demand(3, 3, 30, 90, &other)];
    assert_eq!(show(&all), ["1-0+0", "lost to [1] [1]", "3-0+0"]);
    let forecast = Forecast::new(all.to_vec());
    let Some(Prospect::Lost(full)) = forecast.get(RecordingId(2)) else { panic!("lost") };
    assert_eq!((full[0].limit, full[0].max_streams), (LimitId::ServerGroup(ServerGroupId(1)), 1));
    assert_eq!((full[0].from, full[0].until), (30 * MINUTE, 60 * MINUTE));
}

#[test]
fn a_recording_moves_to_another_account_if_a_later_one_has_only_its_own() {
    let both = [pool(1, 1), pool(2, 1)];
    let all = [demand(1, 1, 0, 60, &both), demand(2, 2, 30, 90, &both[..1])];
    assert_eq!(show(&all), ["2-0+0", "1-0+0"]);
    let third = demand(3, 3, 50, 55, &both[1..]);
    assert_eq!(show(&[&all[..], &[third]].concat()), ["2-0+0", "1-0+0", "lost to [1]"]);
}

#[test]
fn a_watched_channel_keeps_its_account() {
    let both = [pool(1, 1), pool(2, 1)];
    let running = ForecastDemand { watched: Some(ProfileId(2)), ..demand(1, 1, 0, 60, &both) };
    assert_eq!(show(&[running, demand(2, 1, 60, 90, &both)]), ["2-0+0", "2-0+0"], "and so does its channel");
}

#[test]
fn another_time_has_room_if_nothing_is_in_the_way() {
    let one = [pool(1, 1)];
    let forecast = Forecast::new(vec![demand(1, 1, 0, 60, &one)]);
    let has_room =
        |channel, start, end| forecast.has_room(ChannelId(channel), start * MINUTE, end * MINUTE, &one);
    assert_eq!([has_room(2, 50, 70), has_room(2, 60, 70), has_room(1, 50, 60)], [false, true, true]);
}

fn any_demands() -> impl Strategy<Value = Vec<ForecastDemand>> {
    let pools = prop::collection::vec((1..4u32, 0..2u32), 0..4).prop_map(|all| {
        let mut seen = BTreeSet::new();
        let all = all.into_iter().filter(|it| seen.insert(it.0));
        // The limit of a pool depends on the pool only, and so does its group.
        let pool = |(profile, _): (u32, u32)| match profile {
            3 => pool(3, 2),
            it => in_group(2, pool(it, it)),
        };
        all.map(pool).collect::<Vec<_>>()
    });
    let one = (0..6u32, 0..200i64, 1..60i64, 0..15i64, 0..3u8);
    let of_channels = prop::collection::vec(pools, 6);
    (of_channels, prop::collection::vec(one, 0..40)).prop_map(|(of_channels, all)| {
        let made = (1..).zip(all).map(|(id, (channel, start, length, padding, priority))| {
            let it = demand(id, channel, start, start + length, &of_channels[channel as usize]);
            ForecastDemand { priority, ..padded(padding, it) }
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn no_limit_is_exceeded_and_every_loser_has_full_accounts(demands in any_demands()) {
        let forecast = Forecast::new(demands.clone());
        prop_assert_eq!(forecast.prospects().count(), demands.len());
        // The channels that play from each limit at each minute, counted anew.
        let mut playing = BTreeMap::<(LimitId, u32, i64), BTreeSet<(ChannelId, ProfileId)>>::new();
        for it in &demands {
            let parts = forecast.parts(it.id);
            if let Some(Prospect::Assigned { padding_before, padding_after, .. }) = forecast.get(it.id) {
                prop_assert!(*padding_before <= it.start - it.begins_at && *padding_after <= it.ends_at - it.end);
                for minute in it.start / MINUTE..it.end / MINUTE {
                    prop_assert!(forecast.profile_at(it.id, minute * MINUTE).is_some());
                }
            }
            for part in parts {
                prop_assert!(it.begins_at <= part.from && part.from < part.until && part.until <= it.ends_at);
                let pool = it.pools.iter().find(|it| it.profile == part.profile).unwrap();
                for minute in part.from / MINUTE..part.until / MINUTE {
                    for (limit, max) in maxima_of(pool) {
                        playing.entry((limit, max, minute)).or_default().insert((it.channel, part.profile));
                    }
                }
            }
        }
        for ((limit, max, minute), channels) in &playing {
            prop_assert!(channels.len() <= *max as usize, "{limit:?} at {minute}: {channels:?}");
        }
        // No slot is free while a recording that could use it has none.
        for it in &demands {
            for minute in it.begins_at / MINUTE..it.ends_at / MINUTE {
                if forecast.profile_at(it.id, minute * MINUTE).is_some() {
                    continue;
                }
                for pool in it.pools.iter() {
                    let n = |(limit, max)| playing.get(&(limit, max, minute)).map_or(0, BTreeSet::len) >= max as usize;
                    prop_assert!(maxima_of(pool).any(n), "{:?} at {minute}", it.id);
                }
            }
        }
        for it in &demands {
            match forecast.get(it.id).unwrap() {
                Prospect::Assigned { .. } => {}
                Prospect::NoSource => prop_assert!(it.pools.is_empty()),
                Prospect::Lost(full) => {
                    prop_assert!(!full.is_empty());
                    for full in full {
                        prop_assert!(full.from >= it.start && full.until <= it.end && full.from < full.until);
                        let n = playing.get(&(full.limit, full.max_streams, full.from / MINUTE)).map_or(0, BTreeSet::len);
                        prop_assert_eq!(n, full.max_streams as usize);
                        // A recording that was in the way may have moved meanwhile.
                        prop_assert!(!full.holders.is_empty());
                    }
                }
            }
        }
        // The order of the recordings does not matter.
        let mut other = demands.clone();
        other.reverse();
        let other = Forecast::new(other);
        prop_assert!(forecast.prospects().eq(other.prospects()));
    }
}
