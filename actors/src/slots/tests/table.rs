//! Tests of the table: limits that are discovered, server groups, and what others see.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_refusal_beside_a_playing_connection_discovers_a_limit_for_which_lingering_channels_yield() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let lease = playing(&mut a, &unlimited()).await;
    assert!(refused(&mut b, &unlimited()).await);
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 0), Some(1));
    b.ask(2, &[unlimited()], join());
    a.asked_to_yield().await;
    assert!(b.messages.try_recv().is_err(), "granted beyond the discovered limit");
    drop(lease);
    let (_, lease) = b.granted().await;
    assert!(lease.just_released());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_beside_no_playing_connection_discovers_nothing() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    assert!(!refused(&mut b, &unlimited()).await);
    // Another attempt shows only that the provider is asked twice at once.
    a.ask(1, &[unlimited()], join());
    let _opening = a.granted().await;
    assert!(refused(&mut b, &unlimited()).await);
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 0), None);
}

#[tokio::test(start_paused = true)]
async fn a_configured_limit_learns_nothing_from_a_refusal() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let _lease = playing(&mut a, &pool(3, 5)).await;
    assert!(!refused(&mut b, &pool(3, 5)).await);
    assert_eq!(fixture.slots.discovered_limit(ProfileId(3), 0), None);
}

/// A list names many hosts, and some of them refuse by region.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_host_without_a_connection_of_ours_teaches_nothing() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let host = |it| SlotPool { scope: LimitScope::Host(it), ..unlimited() };
    let _first = playing(&mut a, &host(1)).await;
    let _second = playing(&mut a, &host(2)).await;
    assert!(!refused(&mut b, &host(3)).await);
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 0), None);
    // A host that carries one of them may be at its limit, and the others are not.
    assert!(refused(&mut b, &host(1)).await);
    b.ask(2, &[host(1), host(3)], join());
    assert_eq!(b.granted().await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_discovered_limit_belongs_to_a_login_on_all_hosts_and_in_all_accounts() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let login = |profile, it| SlotPool { scope: LimitScope::Login(it), ..pool(profile, 0) };
    let _first = playing(&mut a, &login(2, 1)).await;
    assert!(refused(&mut b, &login(3, 1)).await);
    assert_eq!(fixture.slots.discovered_limit(ProfileId(3), 0), Some(1));
    b.ask(2, &[login(3, 1), login(3, 2)], join());
    assert_eq!(b.granted().await.0, 1, "another login of the same profile has no limit");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_in_vain_may_exceed_a_discovered_limit_and_disproves_it() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    let _watched = playing(&mut a, &unlimited()).await;
    refused(&mut b, &unlimited()).await;
    // The stream that was refused is not tried again at once; another one is.
    b.ask(2, &[unlimited()], join());
    fixture.slots.kept(1, a.asked_to_yield().await);
    let full = b.full().await;
    assert_eq!((full.max_streams, full.is_discovered), (1, true));
    let asked_at = Instant::now();
    c.ask(1, &[unlimited()], join());
    fixture.slots.kept(1, a.asked_to_yield().await);
    let (_, mut lease) = c.granted().await;
    assert_eq!(asked_at.elapsed().as_secs(), LEASE_WAIT_SECONDS);
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 0), Some(1));
    lease.delivers();
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 0), None);
    let asked_at = Instant::now();
    b.ask(3, &[unlimited()], join());
    let _third = b.granted().await;
    assert_eq!(asked_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn one_request_at_a_time_exceeds_a_discovered_limit() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let (mut c, mut d) = (fixture.holder(3).await, fixture.holder(4).await);
    let _watched = playing(&mut a, &unlimited()).await;
    refused(&mut b, &unlimited()).await;
    c.ask(1, &[unlimited()], join());
    d.ask(1, &[unlimited()], join());
    let _beyond = c.granted().await;
    d.full().await;
    assert_eq!(fixture.out(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_account_forgets_what_was_discovered() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let _watched = playing(&mut a, &unlimited()).await;
    refused(&mut b, &unlimited()).await;
    let changed = SlotPool { changed_at: 1, ..unlimited() };
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 1), None);
    b.ask(2, std::slice::from_ref(&changed), Asking::Switch);
    let (_, mut lease) = b.granted().await;
    lease.delivers();
    assert_eq!(fixture.slots.discovered_limit(ProfileId(2), 0), None);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_only_the_return_of_a_connection_that_played_counts_as_a_release() {
    let fixture = SlotsFixture::new().await;
    let mut a = fixture.holder(1).await;
    assert!(!refused(&mut a, &unlimited()).await);
    a.ask(2, &[unlimited()], join());
    let (_, mut lease) = a.granted().await;
    assert!(!lease.just_released(), "the provider does not count what it refused");
    lease.delivers();
    drop(lease);
    a.ask(3, &[unlimited()], join());
    assert!(a.granted().await.1.just_released());
}

#[tokio::test(start_paused = true)]
async fn accounts_of_a_server_group_share_its_slots() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    a.ask(1, &[grouped(1, 5, 1)], join());
    let (_, lease) = a.granted().await;
    // An account outside the group is not affected, and is taken instead.
    c.ask(1, &[grouped(2, 5, 1), pool(3, 1)], join());
    let (index, _elsewhere) = c.granted().await;
    assert_eq!(index, 1);
    b.ask(1, &[grouped(2, 5, 1)], join());
    let asked_by = a.asked_to_yield().await;
    fixture.slots.kept(1, asked_by);
    let full = b.full().await;
    assert_eq!(
        full.to_string(),
        "server group \"group\" of account \"account 2\" is at its limit of 1 stream"
    );
    b.ask(2, &[grouped(2, 5, 1)], join());
    a.asked_to_yield().await;
    drop(lease);
    b.granted().await;
    assert_eq!(fixture.out(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_until_both_pools_have_room() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    a.ask(1, &[grouped(1, 1, 2)], join());
    let (_, of_profile) = a.granted().await;
    b.ask(1, &[grouped(2, 5, 2)], join());
    let (_, of_group) = b.granted().await;
    // The profile is full: only its holder is asked, because another one of the group would yield in vain.
    c.ask(1, &[grouped(1, 1, 2)], join());
    fixture.slots.kept(1, a.asked_to_yield().await);
    drop(of_group);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(b.messages.try_recv().is_err() && c.messages.try_recv().is_err());
    drop(of_profile);
    c.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_cooling_slot_and_a_second_connection_count_in_the_server_group() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let slow = SlotPool { release_delay: Duration::from_secs(2), ..grouped(1, 5, 1) };
    a.ask(1, &[slow], join());
    drop(a.granted().await);
    let released_at = Instant::now();
    b.ask(1, &[grouped(2, 5, 1)], join());
    let (_, lease) = b.granted().await;
    assert_eq!(released_at.elapsed().as_secs(), 2);
    assert!(lease.just_released(), "the provider may still count the connection of the other account");
    b.ask(2, &[grouped(1, 5, 1)], Asking::Beside);
    b.full().await;
    b.ask(3, &[grouped(1, 5, 2)], Asking::Beside);
    b.granted().await;
}

#[tokio::test(start_paused = true)]
async fn all_slots_and_waiting_requests_are_seen_at_one_moment() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let slow = SlotPool { release_delay: Duration::from_secs(5), ..pool(1, 1) };
    a.ask(1, std::slice::from_ref(&slow), join());
    let (_, mut lease) = a.granted().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    b.ask(1, &[slow, pool(2, 0)], Asking::Failover);
    let (index, _other) = b.granted().await;
    assert_eq!(index, 1);
    b.ask(2, &[pool(1, 1)], join());
    a.asked_to_yield().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    lease.closing();
    let seen = fixture.table.snapshot();
    let uses: Vec<_> = seen
        .in_use
        .iter()
        .map(|it| (it.profile.0, it.target, it.stream.0, it.closing, it.age.as_secs()))
        .collect();
    assert_eq!(uses, [(1, target(1), 1, true, 2), (2, target(2), 2, false, 1)]);
    let waiting: Vec<_> =
        seen.waiting.iter().map(|it| (it.target, it.pools.clone(), it.age.as_secs())).collect();
    assert_eq!(waiting, [(target(2), vec![(AccountId(1), ProfileId(1))], 1)]);
    drop(lease);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = fixture.table.snapshot();
    assert_eq!(seen.in_use.len(), 1);
    assert_eq!(seen.cooling.iter().map(|it| (it.profile.0, it.left.as_secs())).collect::<Vec<_>>(), [(1, 4)]);
    b.full().await;
    assert_eq!(fixture.table.snapshot().waiting, []);
}

/// Accounts are created and deleted while the program runs, and their ids are never reused.
#[tokio::test(start_paused = true)]
async fn slots_that_were_returned_long_ago_are_forgotten() {
    let fixture = SlotsFixture::new().await;
    let mut holder = fixture.holder(1).await;
    for profile in 1..=50 {
        holder.ask(
            u64::from(profile),
            &[SlotPool { release_delay: Duration::from_secs(2), ..pool(profile, 1) }],
            join(),
        );
        drop(holder.granted().await);
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    // The last two, and the cooling one.
    assert!(fixture.table.n_remembered() <= 3, "{} of 50 are remembered", fixture.table.n_remembered());
}
