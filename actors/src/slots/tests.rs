//! Tests of slots with paused time: no socket is involved, a holder has only a lease.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::account::CUSTOM_ACCOUNT;
use domain::ids::{AccountId, ProfileId, ServerGroupId, StreamId};
use domain::plan::{SharedPool, SlotPool};
use domain::playout::Attempt;
use media::Permit;
use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::plans::Target;
use crate::testing::inbox;
use crate::viewer::Viewer;

fn pool(profile: u32, max_streams: u32) -> SlotPool {
    SlotPool {
        account: AccountId(profile),
        account_name: format!("account {profile}"),
        profile: ProfileId(profile),
        max_streams,
        release_delay: Duration::ZERO,
        changed_at: 0,
        shared: None,
    }
}

/// The pool of an account profile in a server group of the first two accounts.
fn grouped(profile: u32, max_streams: u32, group_max: u32) -> SlotPool {
    let shared = SharedPool {
        group: ServerGroupId(1),
        name: "group".to_owned(),
        max_streams: group_max,
        accounts: [AccountId(1), AccountId(2)].into(),
    };
    SlotPool { shared: Some(shared), ..pool(profile, max_streams) }
}

/// Account profile 2 without a configured limit; account 1 is that of manually created streams.
fn unlimited() -> SlotPool {
    pool(2, 0)
}

/// A slots actor and holders that send requests to it.
struct SlotsFixture {
    table: Arc<SlotTable>,
    slots: Slots,
}

impl SlotsFixture {
    async fn new() -> Self {
        let table = SlotTable::new();
        let arguments = Arguments { table: table.clone() };
        let (actor, _) = ractor::Actor::spawn(None, Actor, arguments).await.unwrap();
        let address = Address::new();
        address.set(actor);
        Self { slots: Slots::new(address, table.clone()), table }
    }

    async fn holder(&self, id: u64) -> Holder {
        let (actor, messages) = inbox::<SlotMessage>().await;
        Holder { id, port: actor.get_derived(), actor, messages, slots: self.slots.clone() }
    }

    fn out(&self) -> usize {
        self.table.counts().0
    }
}

struct Holder {
    id: u64,
    port: HolderPort,
    actor: ractor::ActorRef<SlotMessage>,
    messages: mpsc::UnboundedReceiver<SlotMessage>,
    slots: Slots,
}

impl Holder {
    fn ask(&self, attempt: u64, order: &[SlotPool], asking: Asking) {
        self.slots.request(Request {
            holder: self.id,
            target: target(self.id),
            port: self.port.clone(),
            attempt: Attempt(attempt),
            order: order
                .iter()
                .enumerate()
                .map(|(index, pool)| SlotCandidate {
                    index,
                    stream: StreamId(self.id as u32),
                    pool: pool.clone(),
                })
                .collect(),
            asking,
            claim: None,
            purpose: LeasePurpose::Live,
        });
    }

    async fn message(&mut self) -> SlotMessage {
        self.messages.recv().await.unwrap()
    }

    async fn granted(&mut self) -> (usize, Lease) {
        match self.message().await {
            SlotMessage::Granted { index, lease, .. } => (index, lease),
            other => panic!("expected a grant, got {other:?}"),
        }
    }

    async fn full(&mut self) -> FullPool {
        match self.message().await {
            SlotMessage::Full { full, .. } => full,
            other => panic!("expected full, got {other:?}"),
        }
    }

    async fn asked_to_yield(&mut self) -> u64 {
        match self.message().await {
            SlotMessage::Yield { asked_by, .. } => asked_by,
            other => panic!("expected a request to yield, got {other:?}"),
        }
    }
}

fn target(holder: u64) -> Target {
    Target::Stream(StreamId(holder as u32))
}

fn join() -> Asking {
    Asking::Join(None)
}

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

const LEASE_WAIT_SECONDS: u64 = domain::settings::LEASE_WAIT.as_secs();

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
    let viewer =
        Viewer { user: Some("ann".into()), address: "10.0.0.1".parse().unwrap(), agent: "player".into() };
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

/// Requests a slot for a holder; the connection then delivers packets.
async fn playing(holder: &mut Holder, pool: &SlotPool) -> Lease {
    holder.ask(1, std::slice::from_ref(pool), join());
    let (_, mut lease) = holder.granted().await;
    lease.delivers();
    lease
}

/// Requests a slot for a holder, which the provider then refuses. Returns whether a limit may be the cause.
async fn refused(holder: &mut Holder, pool: &SlotPool) -> bool {
    holder.ask(1, std::slice::from_ref(pool), join());
    let (_, lease) = holder.granted().await;
    holder.slots.refused(lease.id(), pool, StreamId(holder.id as u32))
}

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
async fn a_configured_limit_and_the_account_of_manual_streams_learn_nothing_from_a_refusal() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b) = (fixture.holder(1).await, fixture.holder(2).await);
    let manual = SlotPool { account: CUSTOM_ACCOUNT, ..pool(1, 0) };
    for pool in [pool(3, 5), manual] {
        let _lease = playing(&mut a, &pool).await;
        assert!(!refused(&mut b, &pool).await);
        assert_eq!(fixture.slots.discovered_limit(pool.profile, 0), None);
    }
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

/// One step of a random scenario.
#[derive(Clone, Debug)]
enum Step {
    Ask {
        holder: u64,
        order: Vec<u32>,
        asking: u8,
    },
    Cancel {
        holder: u64,
    },
    Closing {
        holder: u64,
    },
    Delivers {
        holder: u64,
    },
    /// The provider refuses the newest connection of the holder.
    Refused {
        holder: u64,
    },
    Return {
        holder: u64,
    },
    Restart,
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let holder = 0u64..6;
    prop_oneof![
        6 => (holder.clone(), prop::collection::vec(0u32..4, 1..4), 0u8..4)
            .prop_map(|(holder, order, asking)| Step::Ask { holder, order, asking }),
        1 => holder.clone().prop_map(|holder| Step::Cancel { holder }),
        2 => holder.clone().prop_map(|holder| Step::Closing { holder }),
        3 => holder.clone().prop_map(|holder| Step::Delivers { holder }),
        2 => holder.clone().prop_map(|holder| Step::Refused { holder }),
        3 => holder.prop_map(|holder| Step::Return { holder }),
        1 => Just(Step::Restart),
        3 => (0u64..2000).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Holds T-slot.1 and T-slot.9 in this crate: after any steps, including failures of the actor, no pool has more leases than its
    /// limit, and neither has the server group of pools 1 and 2; the table contains exactly the leases of the holders; no
    /// request that was answered is listed as waiting; and at the end no slot is in use and nobody waits. Pool 0 is as
    /// [`PoolWithoutLimit`] expects.
    #[test]
    fn leases_never_exceed_a_limit_and_all_are_returned(
        group_max in 0u32..4,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(random_scenario(group_max, steps));
    }
}

/// Facts that the steps show about pool 0, which has no configured limit.
#[derive(Default)]
struct PoolWithoutLimit {
    /// The leases whose connections have delivered packets.
    delivering: BTreeSet<u64>,
    /// Largest number of connections that played at once, if it was more than one.
    peak: u32,
    limit: Option<u32>,
    n_used: u32,
    /// The pools for which requests wait.
    awaited: BTreeSet<ProfileId>,
}

impl PoolWithoutLimit {
    const POOL: ProfileId = ProfileId(0);

    fn leases(table: &SlotTable) -> Vec<LeaseInfo> {
        table.leases().into_iter().filter(|it| it.profile == Self::POOL).collect()
    }

    /// Notes the state before a step.
    fn before_step(&mut self, fixture: &SlotsFixture) {
        self.limit = fixture.slots.discovered_limit(Self::POOL, 0);
        self.n_used = Self::leases(&fixture.table).len() as u32;
        let waiting = fixture.table.snapshot().waiting;
        self.awaited = waiting.iter().flat_map(|it| &it.pools).map(|it| it.1).collect();
    }

    /// More connections play than the limit allows: it is forgotten.
    fn delivers(&mut self, leases: &mut [(u32, Lease)], fixture: &SlotsFixture) {
        for (_, lease) in leases {
            lease.delivers();
            self.delivering.insert(lease.id());
        }
        let plays = |it: &&LeaseInfo| !it.closing && self.delivering.contains(&it.id);
        let n_playing = Self::leases(&fixture.table).iter().filter(plays).count() as u32;
        if n_playing > 1 {
            self.peak = self.peak.max(n_playing);
        }
        let limit = fixture.slots.discovered_limit(Self::POOL, 0);
        assert!(limit.is_none_or(|it| it >= n_playing), "{n_playing} play under a limit of {limit:?}");
    }

    /// A refusal beside connections that play is a limit, unless more have played at once before.
    fn refused(&mut self, holder: &Holder, lease: &Lease, fixture: &SlotsFixture) {
        let leases = Self::leases(&fixture.table);
        if !leases.iter().any(|it| it.id == lease.id()) {
            return;
        }
        let is_carried = |it: &&LeaseInfo| it.id != lease.id() && self.delivering.contains(&it.id);
        let n_carried = leases.iter().filter(is_carried).count() as u32;
        let shows_limit = n_carried > 0 && n_carried >= self.peak;
        self.limit = if shows_limit { Some(n_carried) } else { self.limit };
        fixture.slots.refused(lease.id(), &pool(0, 0), StreamId(holder.id as u32));
        assert_eq!(fixture.slots.discovered_limit(Self::POOL, 0), self.limit);
    }

    /// A second connection is granted only where nobody waits, and beside others only where two have played at once.
    fn granted_beside(&self, profile: ProfileId) {
        assert!(!self.awaited.contains(&profile), "granted beside a request that waits");
        if profile == Self::POOL && self.n_used > 0 {
            assert!(self.peak >= 2, "granted beside {} connections", self.n_used);
            assert!(self.limit.is_none_or(|it| self.n_used < it), "granted beyond the limit");
        }
    }

    /// At most one connection more than a discovered limit is opened.
    fn after_step(&self, fixture: &SlotsFixture) {
        let n_used = Self::leases(&fixture.table).len() as u32;
        let limit = fixture.slots.discovered_limit(Self::POOL, 0);
        if n_used > self.n_used && limit == self.limit {
            assert!(limit.is_none_or(|it| n_used <= it + 1), "{n_used} leases, limit {limit:?}");
        }
    }
}

/// Pool 0 is unlimited; each other pool has as many slots as its number.
async fn random_scenario(group_max: u32, steps: Vec<Step>) {
    let pool = |id: u32| if (1..=2).contains(&id) { grouped(id, id, group_max) } else { pool(id, id) };
    let table = SlotTable::new();
    let start = async || {
        let (actor, _) = ractor::Actor::spawn(None, Actor, Arguments { table: table.clone() }).await.unwrap();
        actor
    };
    let address = Address::new();
    address.set(start().await);
    let fixture = SlotsFixture { table: table.clone(), slots: Slots::new(address.clone(), table.clone()) };
    let mut holders = Vec::new();
    for id in 0..6 {
        holders.push((fixture.holder(id).await, Vec::<(u32, Lease)>::new(), Vec::<u32>::new()));
    }
    let mut attempt = 0;
    let mut unlimited = PoolWithoutLimit::default();
    for step in steps {
        unlimited.before_step(&fixture);
        // The attempt of a second connection, until it is answered.
        let mut beside = None;
        match step {
            Step::Ask { holder, order, asking } => {
                attempt += 1;
                let asking =
                    [join(), Asking::Failover, Asking::Switch, Asking::Beside][asking as usize].clone();
                if let Asking::Beside = asking {
                    beside = Some(Attempt(attempt));
                }
                let pools: Vec<_> = order.iter().map(|it| pool(*it)).collect();
                let holder = &mut holders[holder as usize];
                holder.0.ask(attempt, &pools, asking);
                holder.2 = order;
            }
            Step::Cancel { holder } => fixture.slots.cancel(holder, Attempt(attempt)),
            Step::Closing { holder } => holders[holder as usize].1.iter_mut().for_each(|it| it.1.closing()),
            Step::Delivers { holder } => unlimited.delivers(&mut holders[holder as usize].1, &fixture),
            Step::Refused { holder } => {
                let (holder, leases, _) = &mut holders[holder as usize];
                if let Some((_, lease)) = leases.pop() {
                    unlimited.refused(holder, &lease, &fixture);
                }
            }
            Step::Return { holder } => drop(holders[holder as usize].1.pop()),
            Step::Restart => {
                address.current().unwrap().kill();
                address.set(start().await);
            }
            Step::Wait { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        for (holder, leases, order) in &mut holders {
            while let Ok(message) = holder.messages.try_recv() {
                match message {
                    // The reply may belong to an older request; the pool is read from the table.
                    SlotMessage::Granted { attempt, lease, .. } => {
                        if beside.take_if(|it| *it == attempt).is_some() {
                            let held = table.leases().into_iter().find(|it| it.id == lease.id());
                            unlimited.granted_beside(held.expect("a lease").profile);
                        }
                        leases.push((order.first().copied().unwrap_or(0), lease))
                    }
                    SlotMessage::Full { attempt, .. } => {
                        beside.take_if(|it| *it == attempt);
                    }
                    SlotMessage::Yield { asked_by, .. } if leases.len() > 1 => {
                        drop(leases.pop());
                        let _ = asked_by;
                    }
                    SlotMessage::Yield { asked_by, .. } => fixture.slots.kept(holder.id, asked_by),
                }
            }
        }
        assert_eq!(beside, None, "a second connection is granted or refused at once");
        unlimited.after_step(&fixture);
        let in_hands: usize = holders.iter().map(|it| it.1.len()).sum();
        assert_eq!(fixture.out(), in_hands, "the table and the leases differ");
        for limit in 1..4u32 {
            let out = table.leases().iter().filter(|it| it.profile == ProfileId(limit)).count();
            assert!(out <= limit as usize, "{out} leases out of {limit} slots");
        }
        let in_group = [AccountId(1), AccountId(2)];
        let out = table.leases().iter().filter(|it| in_group.contains(&it.account_id)).count();
        assert!(group_max == 0 || out <= group_max as usize, "{out} leases in a group of {group_max}");
        assert_eq!(table.snapshot().in_use.len(), in_hands);
    }
    holders.clear();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(table.counts(), (0, 0));
    // What was discovered is kept.
    let discovered = table.snapshot().discovered;
    assert_eq!(table.snapshot(), SlotsSnapshot { discovered, ..SlotsSnapshot::default() });
}

/// A channel of the next test: a holder, its lease while it plays, and how many viewers watch it.
struct ZapChannel {
    holder: Holder,
    lease: Option<Lease>,
    n_viewers: usize,
}

/// An account without a configured limit at a provider that carries `limit` connections.
struct UndeclaredLimit {
    fixture: SlotsFixture,
    channels: Vec<ZapChannel>,
    limit: usize,
    n_refusals: usize,
}

impl UndeclaredLimit {
    fn n_carried(&self) -> usize {
        self.channels.iter().filter(|it| it.lease.is_some()).count()
    }

    /// Lets the other channels answer requests to yield; returns the reply to the request of channel `asking`.
    async fn reply(&mut self, asking: usize) -> Result<Lease, FullPool> {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            for (at, channel) in self.channels.iter_mut().enumerate() {
                while let Ok(message) = channel.holder.messages.try_recv() {
                    match message {
                        SlotMessage::Granted { lease, .. } if at == asking => return Ok(lease),
                        SlotMessage::Full { full, .. } if at == asking => return Err(full),
                        SlotMessage::Yield { .. } if channel.n_viewers == 0 => channel.lease = None,
                        SlotMessage::Yield { asked_by, .. } => {
                            channel.holder.slots.kept(channel.holder.id, asked_by);
                        }
                        other => panic!("unexpected {other:?}"),
                    }
                }
            }
        }
    }

    /// A viewer leaves `from`, which lingers, and wants to watch `to`. Returns whether it plays.
    async fn zap(&mut self, from: Option<usize>, to: usize) -> bool {
        if let Some(from) = from {
            self.channels[from].n_viewers -= 1;
        }
        self.channels[to].n_viewers += 1;
        for pause in [0, 500, 1_000, 2_000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if self.channels[to].lease.is_some() {
                return true;
            }
            self.channels[to].holder.ask(1, &[unlimited()], join());
            let Ok(mut lease) = self.reply(to).await else { return false };
            if self.n_carried() < self.limit {
                lease.delivers();
                self.channels[to].lease = Some(lease);
                return true;
            }
            self.n_refusals += 1;
            let holder = &self.channels[to].holder;
            if holder.slots.refused(lease.id(), &unlimited(), StreamId(to as u32)) {
                holder.slots.make_room(holder.id, unlimited());
            }
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As many viewers as an undeclared limit allows zap at random. Each of them gets every channel, no slot is lost,
    /// and the provider refuses only as long as the limit is unknown.
    #[test]
    fn viewers_who_zap_within_an_undeclared_limit_are_always_served(
        limit in 1usize..4,
        zaps in prop::collection::vec((0usize..3, 0usize..7, 0u64..4_000), 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let fixture = SlotsFixture::new().await;
            let mut channels = Vec::new();
            for id in 1..=7 {
                channels.push(ZapChannel { holder: fixture.holder(id).await, lease: None, n_viewers: 0 });
            }
            let mut account = UndeclaredLimit { fixture, channels, limit, n_refusals: 0 };
            let mut watched = vec![None; limit];
            for (viewer, to, ms) in zaps {
                let viewer = viewer % limit;
                assert!(account.zap(watched[viewer], to).await, "a viewer was refused");
                watched[viewer] = Some(to);
                assert!(account.n_carried() <= limit);
                assert_eq!(account.fixture.out(), account.n_carried(), "a slot was lost");
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            assert!(account.n_refusals <= 1, "{} refusals", account.n_refusals);
        });
    }
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
