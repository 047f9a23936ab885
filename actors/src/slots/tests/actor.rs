//! Tests of the queue: who waits, who is refused, and who is asked to yield.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_first_free_place_is_granted() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let order = [pool(1, 1), pool(2, 1)];
    a.ask(1, &order, join());
    b.ask(1, &order, join());
    assert_eq!(a.granted().await.0, 0);
    assert_eq!(b.granted().await.0, 1);
}

/// Holds T-slot.2 in this crate: tests with sockets check the count of the provider.
#[tokio::test(start_paused = true)]
async fn a_thousand_requests_at_once_get_as_many_leases_as_there_are_slots() {
    let fixture = SlotsFixture::new().await;
    let mut holders = Vec::new();
    for id in 0..1000 {
        let holder = fixture.holder(id).await;
        holder.ask(1, &[pool(1, 7)], join());
        holders.push(holder);
    }
    let mut leases = Vec::new();
    let mut n_full = 0;
    for holder in &mut holders {
        loop {
            match holder.message().await {
                SlotMessage::Granted { lease, .. } => leases.push(lease),
                SlotMessage::Full { .. } => n_full += 1,
                SlotMessage::Yield { asked_by, .. } => {
                    holder.slots.kept(holder.id, asked_by);
                    continue;
                }
                SlotMessage::Revoked { .. } => panic!("a single node revokes nothing"),
            }
            break;
        }
    }
    assert_eq!((leases.len(), n_full, fixture.out()), (7, 993, 7));
    drop(leases);
    assert_eq!(fixture.out(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_longest_waiting_request_gets_the_first_returned_slot() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    a.ask(1, &[pool(1, 1)], join());
    let (_, lease) = a.granted().await;
    b.ask(1, &[pool(1, 1)], join());
    c.ask(1, &[pool(1, 1)], join());
    let asked_by = a.asked_to_yield().await;
    fixture.slots.kept(1, asked_by);
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(lease);
    let (_, _kept) = b.granted().await;
    assert_eq!(c.full().await.account, "account 1");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_refused_after_three_seconds_with_the_full_account() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    a.ask(1, &[pool(1, 1)], join());
    let _lease = a.granted().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked_at = Instant::now();
    b.ask(1, &[pool(1, 1)], join());
    let full = b.full().await;
    assert_eq!(asked_at.elapsed().as_secs(), LEASE_WAIT_SECONDS);
    assert_eq!((full.account.as_str(), full.since.as_secs(), full.max_streams), ("account 1", 13, 1));
}

#[tokio::test(start_paused = true)]
async fn a_manual_switch_gets_a_slot_that_is_free_now_or_none() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    a.ask(1, &[pool(1, 1)], join());
    let _lease = a.granted().await;
    let asked_at = Instant::now();
    b.ask(1, &[pool(1, 1)], Asking::Switch);
    b.full().await;
    assert_eq!(asked_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn holders_are_asked_to_yield_one_at_a_time() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    a.ask(1, &[pool(1, 2)], join());
    b.ask(1, &[pool(1, 2)], join());
    let (_, _kept) = a.granted().await;
    let (_, yielded) = b.granted().await;
    c.ask(1, &[pool(1, 2)], join());
    let asked_by = a.asked_to_yield().await;
    assert!(b.messages.try_recv().is_err(), "the second holder was asked before the first had answered");
    fixture.slots.kept(1, asked_by);
    b.asked_to_yield().await;
    drop(yielded);
    c.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_failover_replaces_no_watched_channel() {
    let fixture = SlotsFixture::new().await;
    let (mut a, b) = (fixture.holder(1).await, fixture.holder(2).await);
    a.ask(1, &[pool(1, 1)], join());
    let _lease = a.granted().await;
    b.ask(1, &[pool(1, 1)], Asking::Failover);
    assert!(matches!(a.message().await, SlotMessage::Yield { viewer: None, .. }));
    let c = fixture.holder(3).await;
    let viewer = Viewer {
        user: Some("ann".into()),
        address: "10.0.0.1".parse().unwrap(),
        agent: "player".into(),
        identity: Identity::default(),
    };
    c.ask(1, &[pool(1, 1)], Asking::Join(Some(viewer.clone())));
    assert!(matches!(a.message().await, SlotMessage::Yield { viewer: Some(it), .. } if it == viewer));
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_loses_its_source_waits_for_its_closing_slot() {
    let fixture = SlotsFixture::new().await;
    let mut a = fixture.holder(1).await;
    let order = [pool(1, 1), pool(2, 1)];
    a.ask(1, &order, join());
    let (_, mut lease) = a.granted().await;
    lease.closing();
    a.ask(2, &order, Asking::Failover);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(a.messages.try_recv().is_err(), "the second place was taken although the first comes back");
    drop(lease);
    assert_eq!(a.granted().await.0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_slot_cools_down_for_the_release_delay_of_its_account() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let slow = SlotPool { release_delay: Duration::from_secs(2), ..pool(1, 1) };
    a.ask(1, std::slice::from_ref(&slow), join());
    drop(a.granted().await);
    let released_at = Instant::now();
    b.ask(1, &[slow], join());
    b.granted().await;
    assert_eq!(released_at.elapsed().as_secs(), 2);
}

/// Holds T-slot.8: no client is disconnected, nothing is granted until the use is below the limit, and no count is
/// negative.
#[tokio::test(start_paused = true)]
async fn a_lowered_limit_disconnects_nobody_and_grants_nothing() {
    let fixture = SlotsFixture::new().await;
    let mut leases = Vec::new();
    for id in 1..=3 {
        let mut holder = fixture.holder(id).await;
        holder.ask(1, &[pool(1, 3)], join());
        leases.push(holder.granted().await.1);
    }
    let mut late = fixture.holder(9).await;
    late.ask(1, &[pool(1, 1)], Asking::Switch);
    late.full().await;
    assert_eq!(fixture.out(), 3);
    leases.truncate(1);
    late.ask(2, &[pool(1, 1)], Asking::Switch);
    late.full().await;
    leases.clear();
    late.ask(3, &[pool(1, 1)], Asking::Switch);
    late.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gets_nothing() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    a.ask(1, &[pool(1, 1)], join());
    let (_, lease) = a.granted().await;
    b.ask(1, &[pool(1, 1)], join());
    a.asked_to_yield().await;
    fixture.slots.cancel(2, Attempt(1));
    tokio::time::sleep(Duration::from_millis(1)).await;
    drop(lease);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(b.messages.try_recv().is_err());
    assert_eq!(fixture.out(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_granted_to_a_dead_holder_is_returned() {
    let fixture = SlotsFixture::new().await;
    let (mut a, b) = (fixture.holder(1).await, fixture.holder(2).await);
    a.ask(1, &[pool(1, 1)], join());
    let (_, lease) = a.granted().await;
    b.ask(1, &[pool(1, 1)], join());
    a.asked_to_yield().await;
    b.actor.kill();
    drop(b.messages);
    drop(lease);
    let mut c = fixture.holder(3).await;
    c.ask(1, &[pool(1, 1)], join());
    c.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_grant_reports_whether_the_provider_may_still_count_the_previous_connection() {
    let fixture = SlotsFixture::new().await;
    let mut a = fixture.holder(1).await;
    a.ask(1, &[pool(1, 1)], join());
    let (_, lease) = a.granted().await;
    assert!(!lease.just_released());
    drop(lease);
    a.ask(2, &[pool(1, 1)], join());
    let (_, lease) = a.granted().await;
    assert!(lease.just_released());
    drop(lease);
    tokio::time::sleep(Duration::from_secs(6)).await;
    a.ask(3, &[pool(1, 1)], join());
    assert!(!a.granted().await.1.just_released());
}

#[tokio::test(start_paused = true)]
async fn room_is_made_by_all_other_holders_on_the_account() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    let _leases = [playing(&mut a, &unlimited()).await, playing(&mut b, &unlimited()).await];
    let _elsewhere = playing(&mut c, &pool(3, 0)).await;
    fixture.slots.make_room(2, unlimited());
    let asked_by = a.asked_to_yield().await;
    fixture.slots.kept(1, asked_by);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(b.messages.try_recv().is_err() && c.messages.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_second_connection_of_a_channel_is_granted_at_once_or_refused_at_once() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let asked_at = Instant::now();
    // One slot: refused, and nobody is asked to yield. Two slots: granted.
    let mut leases = vec![playing(&mut a, &pool(3, 1)).await, playing(&mut b, &pool(4, 2)).await];
    b.ask(2, &[pool(3, 1)], Asking::Beside);
    b.full().await;
    assert!(a.messages.try_recv().is_err(), "asked to yield to a second connection");
    b.ask(3, &[pool(3, 1), pool(4, 2)], Asking::Beside);
    let (index, lease) = b.granted().await;
    assert_eq!(index, 1);
    drop(lease);
    // Without a limit: refused until two connections have played at once.
    leases.push(playing(&mut a, &unlimited()).await);
    b.ask(4, &[unlimited()], Asking::Beside);
    b.full().await;
    leases.push(playing(&mut b, &unlimited()).await);
    b.ask(5, &[unlimited()], Asking::Beside);
    b.granted().await;
    assert_eq!(asked_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_second_connection_gets_no_slot_for_which_somebody_waits() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    // A waits for its own closing connection; the other account is its second choice.
    let mut closing = playing(&mut a, &pool(3, 1)).await;
    closing.closing();
    a.ask(2, &[pool(3, 1), pool(4, 2)], Asking::Failover);
    let _playing = playing(&mut b, &pool(4, 2)).await;
    b.ask(2, &[pool(4, 2)], Asking::Beside);
    b.full().await;
    drop(closing);
    a.granted().await;
    b.ask(3, &[pool(4, 2)], Asking::Beside);
    b.granted().await;
}

#[tokio::test(start_paused = true)]
async fn slots_that_were_handed_over_count_in_the_other_process_until_their_holder_ends() {
    let (old, new) = (SlotsFixture::new().await, SlotsFixture::new().await);
    let mut kept = old.holder(1).await;
    kept.ask(1, &[pool(1, 1)], join());
    let (_, lease) = kept.granted().await;
    new.table.count_predecessor(old.table.hand_over());
    assert_eq!(new.table.predecessor_plays(&target(1)).map(|it| it.1), Some(ProfileId(1)));
    let (mut other, mut waiting) = (old.holder(2).await, new.holder(3).await);
    // The old process gets no further slot, but may open its own again.
    other.ask(1, &[pool(2, 5)], join());
    assert_eq!(other.full().await.account, "account 2");
    other.ask(2, &[unlimited()], join());
    let (_, _unlimited) = other.granted().await;
    drop(lease);
    kept.ask(2, &[pool(1, 1)], Asking::Failover);
    let (_, lease) = kept.granted().await;
    // The new one gets it after the return.
    waiting.ask(1, &[pool(1, 1)], join());
    assert_eq!(waiting.full().await.account, "account 1");
    drop(lease);
    waiting.ask(2, &[pool(1, 1)], join());
    new.table.returned_by_predecessor(|it| it.holder == 1);
    let (_, _lease) = waiting.granted().await;
    assert!(!new.table.is_used_by_predecessor());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_other_process_returns_its_slots() {
    let (old, new) = (SlotsFixture::new().await, SlotsFixture::new().await);
    let mut kept = old.holder(1).await;
    kept.ask(1, &[grouped(1, 1, 1)], join());
    let (_, _lease) = kept.granted().await;
    new.table.count_predecessor(old.table.hand_over());
    let mut waiting = new.holder(2).await;
    waiting.ask(1, &[grouped(2, 1, 1)], join());
    assert!(waiting.full().await.server_group.is_some(), "the group of both accounts is full");
    new.table.returned_by_predecessor(|_| true);
    waiting.ask(2, &[grouped(2, 1, 1)], join());
    waiting.granted().await;
}
