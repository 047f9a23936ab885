//! Tests of seats, with live channels.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::event::EventBody;
use domain::settings::{AtLimit, Settings};
use domain::user_limits::UserLimits;
use media::ring::Tail;
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::*;
use crate::channel::{WatchRefusal, WatchReply};
use crate::system::SystemActor;
use crate::testing::{Scenario, channel, limited, settings, stream};
use crate::viewer::Identity;

fn user(id: u32, limit: u32) -> SeatRequest {
    SeatRequest { user: UserId(id), limit }
}

/// One connection that watches. Like a server, the test drops it once it is cancelled.
struct Watching {
    request: SeatRequest,
    device: String,
    target: Target,
    client: u64,
    _tail: Tail,
    connection: Arc<Connection>,
}

impl Watching {
    fn is_cut(&self) -> bool {
        self.connection.cancel.is_cancelled()
    }

    fn session(&self) -> (u32, String, Target) {
        (self.request.user.0, self.device.clone(), self.target)
    }
}

impl Scenario {
    /// Ends every session whose user may no longer watch its target, or not from its address.
    fn keep_permitted(&self, may_watch: impl Fn(UserId, IpAddr, Target) -> bool) {
        let why = |user, address, target| (!may_watch(user, address, target)).then_some(NOT_ALLOWED);
        self.system.switchboard().end_sessions(why);
    }

    async fn seated(
        &self,
        target: Target,
        request: SeatRequest,
        device: &str,
    ) -> Result<Watching, WatchRefusal> {
        let (watch, connection) = self.ask_seated(target, request, device).await;
        match watch {
            WatchReply::Tail { client, tail } => {
                Ok(Watching { request, device: device.to_owned(), target, client, _tail: tail, connection })
            }
            WatchReply::Refused(refusal) => Err(refusal),
            WatchReply::Redirect(_) | WatchReply::Segments { .. } => panic!("nothing is redirected here"),
        }
    }

    fn n_seats(&self) -> usize {
        self.system.counts().seats
    }
}

async fn three_channels(settings: Settings) -> Scenario {
    Scenario::new(settings, [&[stream(1, "a")], &[stream(2, "b")], &[stream(3, "c")]]).await
}

#[tokio::test(start_paused = true)]
async fn another_device_is_refused_at_the_limit_and_the_first_one_watches_on() {
    let scenario = three_channels(settings()).await;
    let first = scenario.seated(channel(1), user(1, 1), "tv").await.unwrap();
    let asked_at = Instant::now();
    let refused = scenario.seated(channel(2), user(1, 1), "phone").await.err();
    assert_eq!(refused, Some(WatchRefusal::Seats { limit: 1 }));
    assert_eq!(asked_at.elapsed(), SEAT_WAIT);
    // The same channel from another device is another session, too.
    assert!(scenario.seated(channel(1), user(1, 1), "phone").await.is_err());
    assert!(!first.is_cut());
    // Another user has separate seats.
    let other = scenario.seated(channel(2), user(2, 1), "phone").await.unwrap();
    assert_eq!((scenario.n_seats(), scenario.system.counts().refused_seats), (2, 2));
    drop((first, other));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_device_that_changes_the_channel_gives_up_its_old_session() {
    let scenario = three_channels(settings()).await;
    let before = scenario.seated(channel(1), user(1, 1), "tv").await.unwrap();
    let after = scenario.seated(channel(2), user(1, 1), "tv").await.unwrap();
    assert!(before.is_cut() && !after.is_cut());
    assert_eq!(scenario.n_seats(), 1);
    drop(before);
    sleep(Duration::from_millis(10)).await;
    let reasons: Vec<_> = scenario
        .system
        .events()
        .recent()
        .iter()
        .filter_map(|it| match &it.body {
            EventBody::ClientDisconnect { reason, .. } => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [REPLACED]);
    drop(after);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn with_refuse_a_device_keeps_its_session() {
    let refuse = Settings { at_limit: AtLimit::Refuse, ..settings() };
    let scenario = three_channels(refuse).await;
    let before = scenario.seated(channel(1), user(1, 1), "tv").await.unwrap();
    assert!(scenario.seated(channel(2), user(1, 1), "tv").await.is_err());
    assert!(!before.is_cut());
    // A seat that the device released itself is available immediately, even if the end of the connection arrives after
    // the request.
    let closes = async {
        sleep(SEAT_WAIT / 2).await;
        drop(before);
    };
    let (after, ()) = tokio::join!(scenario.seated(channel(2), user(1, 1), "tv"), closes);
    drop(after.unwrap());
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn the_user_limits_can_end_the_oldest_session_of_another_device() {
    let user_limits = UserLimits { terminate_on_limit_exceeded: true, ..UserLimits::default() };
    let scenario = three_channels(Settings { user_limits, ..settings() }).await;
    let tv = scenario.seated(channel(1), user(1, 2), "tv").await.unwrap();
    let phone = scenario.seated(channel(2), user(1, 2), "phone").await.unwrap();
    let tablet = scenario.seated(channel(3), user(1, 2), "tablet").await.unwrap();
    assert!(tv.is_cut() && !phone.is_cut() && !tablet.is_cut());
    assert_eq!(scenario.n_seats(), 2);
    // Another viewer of channel 2 keeps its connection to the provider in use, so ending that session frees nothing.
    let other = scenario.seated(channel(2), user(2, 1), "tv").await.unwrap();
    drop(tv);
    // After a pause, a person asks.
    sleep(Duration::from_secs(11)).await;
    let again = scenario.seated(channel(1), user(1, 2), "tv").await.unwrap();
    assert!(tablet.is_cut() && !phone.is_cut() && !other.is_cut());
    drop((phone, tablet, again, other));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn two_devices_with_one_seat_do_not_end_each_other_in_turn() {
    let user_limits =
        UserLimits { terminate_on_limit_exceeded: true, terminate_oldest: true, ..UserLimits::default() };
    let scenario = three_channels(Settings { user_limits, ..settings() }).await;
    let asks = |number, device| scenario.seated(channel(number), user(1, 1), device);
    let tv = asks(1, "tv").await.unwrap();
    let phone = asks(2, "phone").await.unwrap();
    assert!(tv.is_cut());
    drop(tv);
    // The player of the first device reconnects, for two minutes at most.
    let ended_at = Instant::now();
    while ended_at.elapsed() < Duration::from_secs(115) {
        sleep(Duration::from_secs(3)).await;
        assert_eq!(asks(1, "tv").await.err(), Some(WatchRefusal::Seats { limit: 1 }));
        assert!(!phone.is_cut());
    }
    sleep(Duration::from_secs(5)).await;
    let tv = asks(1, "tv").await.unwrap();
    assert!(phone.is_cut(), "after two minutes");
    drop(phone);

    sleep(Duration::from_secs(1)).await;
    assert!(asks(2, "phone").await.is_err());
    sleep(Duration::from_secs(11)).await;
    let phone = asks(2, "phone").await.unwrap();
    assert!(tv.is_cut(), "somebody asks after a pause");
    drop(tv);

    sleep(Duration::from_secs(1)).await;
    assert!(asks(1, "tv").await.is_err());
    let tv = asks(3, "tv").await.unwrap();
    assert!(phone.is_cut(), "somebody chooses another channel");
    drop(phone);

    sleep(Duration::from_secs(1)).await;
    assert!(asks(2, "phone").await.is_err());
    drop(tv);
    assert!(asks(2, "phone").await.is_ok(), "the other device has left");
}

#[tokio::test(start_paused = true)]
async fn devices_on_one_channel_count_once_if_the_user_limits_say_so() {
    let user_limits = UserLimits { ignore_same_channel_connections: true, ..UserLimits::default() };
    let scenario = three_channels(Settings { user_limits, ..settings() }).await;
    let tv = scenario.seated(channel(1), user(1, 1), "tv").await.unwrap();
    let phone = scenario.seated(channel(1), user(1, 1), "phone").await.unwrap();
    assert!(scenario.seated(channel(2), user(1, 1), "tablet").await.is_err());
    assert!(!tv.is_cut() && !phone.is_cut());
    drop((tv, phone));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn connections_of_one_session_share_a_seat_until_the_last_one_leaves() {
    let scenario = three_channels(settings()).await;
    let probe = scenario.seated(channel(1), user(1, 1), "tv").await.unwrap();
    let play = scenario.seated(channel(1), user(1, 1), "tv").await.unwrap();
    let seats = scenario.system.switchboard().seats();
    assert_eq!((seats.len(), seats[0].n_connections, seats[0].user), (1, 2, UserId(1)));
    drop(probe);
    assert!(scenario.seated(channel(1), user(1, 1), "phone").await.is_err());
    drop(play);
    let phone = scenario.seated(channel(1), user(1, 1), "phone").await.unwrap();
    // All connections of a replaced session are closed.
    let again = scenario.seated(channel(1), user(1, 1), "phone").await.unwrap();
    let other = scenario.seated(channel(2), user(1, 1), "phone").await.unwrap();
    assert!(phone.is_cut() && again.is_cut() && !other.is_cut());
    drop((phone, again, other));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_lowered_seat_limit_disconnects_nobody() {
    let scenario = three_channels(settings()).await;
    let mut watching = Vec::new();
    for (number, device) in [(1, "tv"), (2, "phone"), (3, "tablet")] {
        watching.push(scenario.seated(channel(number), user(1, 3), device).await.unwrap());
    }
    assert!(scenario.seated(channel(1), user(1, 1), "tablet").await.is_err());
    assert!(watching.iter().all(|it| !it.is_cut()));
    watching.truncate(1);
    assert!(scenario.seated(channel(2), user(1, 1), "tablet").await.is_err());
    watching.clear();
    drop(scenario.seated(channel(2), user(1, 1), "tablet").await.unwrap());
    scenario.is_quiet().await;
}

#[test]
fn a_thousand_devices_get_exactly_the_available_seats() {
    let table = SeatTable::new();
    let mut seats = Vec::new();
    let mut n_full = 0;
    for device in 0..1000 {
        let viewer = Viewer {
            user: None,
            address: "10.0.0.1".parse().unwrap(),
            agent: device.to_string(),
            identity: Identity::default(),
        };
        let connection = Arc::new(Connection::new(device, "10.0.0.1:1".parse().unwrap()));
        match table.take(user(1, 7), &viewer, channel(1), &connection, SeatRules::default()) {
            Ok(seat) => seats.push(seat),
            Err(taken) => {
                assert_eq!(taken.by.len(), 7);
                n_full += 1;
            }
        }
    }
    assert_eq!((seats.len(), n_full, table.len()), (7, 993, 7));
    drop(seats);
    assert_eq!(table.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_waiting_releases_its_seat() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    let _holds_the_slot = scenario.watch(channel(1)).await;
    let asked =
        tokio::time::timeout(Duration::from_millis(100), scenario.seated(channel(2), user(1, 1), "tv"));
    assert!(asked.await.is_err(), "it waits for the slot");
    assert_eq!(scenario.n_seats(), 0);
}

#[tokio::test(start_paused = true)]
async fn refused_and_redirected_requests_hold_no_seat() {
    let redirected =
        crate::testing::Stream { profile: domain::stream_profile::Delivery::Redirect, ..stream(1, "a") };
    let scenario = Scenario::new(settings(), [&[redirected], &[]]).await;
    let (watch, _) = scenario.ask_seated(channel(1), user(1, 1), "tv").await;
    assert!(matches!(watch, WatchReply::Redirect(_)), "{watch:?}");
    let (watch, _) = scenario.ask_seated(channel(2), user(1, 1), "tv").await;
    assert!(matches!(watch, WatchReply::Refused(WatchRefusal::NoStreams)), "{watch:?}");
    assert_eq!(scenario.n_seats(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_the_sessions_of_a_blocked_user_are_ended() {
    let scenario = three_channels(settings()).await;
    let unlimited = scenario.seated(channel(1), user(1, 0), "tv").await.unwrap();
    let second = scenario.seated(channel(2), user(1, 0), "tv").await.unwrap();
    let other = scenario.seated(channel(1), user(2, 1), "tv").await.unwrap();
    let nameless = scenario.watch(channel(1)).await;
    scenario.keep_permitted(|it, _, _| it != UserId(1));
    assert!(unlimited.is_cut() && second.is_cut() && !other.is_cut());
    assert_eq!(scenario.n_seats(), 1);
    drop((unlimited, second, other, nameless));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_sessions_from_an_address_that_is_no_longer_allowed_are_ended() {
    let scenario = three_channels(settings()).await;
    let sessions = [("tv", channel(1)), ("phone", channel(2))];
    let mut watching = Vec::new();
    for (device, target) in sessions {
        watching.push(scenario.seated(target, user(1, 0), device).await.unwrap());
    }
    let addresses: Vec<_> = scenario.system.switchboard().seats().iter().map(|it| it.address).collect();
    scenario.keep_permitted(|_, address, _| addresses.contains(&address));
    assert!(watching.iter().all(|it| !it.is_cut()));
    scenario.keep_permitted(|_, address, _| !addresses.contains(&address));
    assert!(watching.iter().all(|it| it.is_cut()));
    drop(watching);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_user_who_may_no_longer_watch_one_channel_watches_on_another() {
    let scenario = three_channels(settings()).await;
    let hidden = scenario.seated(channel(1), user(1, 0), "tv").await.unwrap();
    let visible = scenario.seated(channel(2), user(1, 0), "phone").await.unwrap();
    scenario.keep_permitted(|_, _, target| target != channel(1));
    assert!(hidden.is_cut() && !visible.is_cut());
    drop((hidden, visible));
    scenario.is_quiet().await;
}

/// One step of a random scenario.
#[derive(Clone, Debug)]
enum Step {
    Join { user: u32, device: u8, channel: u32 },
    Leave { at: usize },
    Kick { at: usize },
    Limit { user: u32, limit: u32 },
    AtLimit { refuses: bool },
    Dismiss { user: u32 },
    KillSwitchboard,
    KillChannel { channel: u32 },
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let (user, device, channel) = (1u32..3, 0u8..3, 1u32..4);
    prop_oneof![
        8 => (user.clone(), device, channel.clone())
            .prop_map(|(user, device, channel)| Step::Join { user, device, channel }),
        3 => (0usize..8).prop_map(|at| Step::Leave { at }),
        1 => (0usize..8).prop_map(|at| Step::Kick { at }),
        2 => (user.clone(), 0u32..4).prop_map(|(user, limit)| Step::Limit { user, limit }),
        1 => any::<bool>().prop_map(|refuses| Step::AtLimit { refuses }),
        1 => user.prop_map(|user| Step::Dismiss { user }),
        1 => Just(Step::KillSwitchboard),
        1 => channel.prop_map(|channel| Step::KillChannel { channel }),
        2 => (0u64..1500).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After any steps, including failures of actors: the table contains exactly the sessions that watch, no user gets
    /// a seat over the limit, other devices are unaffected, and at the end no seat and no lease is in use.
    #[test]
    fn taken_seats_match_sessions_and_all_are_released(steps in prop::collection::vec(step(), 1..50)) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(random_scenario(steps));
    }
}

async fn random_scenario(steps: Vec<Step>) {
    let scenario = three_channels(settings()).await;
    let mut limits = [0, 1, 2];
    let mut watching: Vec<Watching> = Vec::new();
    for step in steps {
        match step {
            Step::Join { user: id, device, channel: number } => {
                join(
                    &scenario,
                    user(id, limits[id as usize]),
                    &format!("device {device}"),
                    number,
                    &mut watching,
                )
                .await;
            }
            Step::Leave { at } if at < watching.len() => drop(watching.swap_remove(at)),
            Step::Kick { at } => {
                if let Some(it) = watching.get(at) {
                    assert!(scenario.system.switchboard().kick(it.target, it.client).await.unwrap());
                }
            }
            Step::Limit { user, limit } => limits[user as usize] = limit,
            Step::AtLimit { refuses } => {
                let at_limit = if refuses { AtLimit::Refuse } else { AtLimit::ReplaceOwn };
                scenario.system.configure(Settings { at_limit, ..settings() }).unwrap();
            }
            Step::Dismiss { user } => {
                scenario.keep_permitted(|it, _, _| it != UserId(user));
                assert!(watching.iter().all(|it| it.request.user != UserId(user) || it.is_cut()));
            }
            Step::KillSwitchboard => scenario.system.kill(SystemActor::Switchboard),
            Step::KillChannel { channel: number } => scenario.system.kill_channel(channel(number)),
            Step::Wait { ms } => sleep(Duration::from_millis(ms)).await,
            Step::Leave { .. } => {}
        }
        sleep(Duration::from_millis(1)).await;
        watching.retain(|it| !it.is_cut());
        let expected: BTreeSet<_> = watching.iter().map(Watching::session).collect();
        let seats = scenario.system.switchboard().seats();
        let reported: BTreeSet<_> = seats.iter().map(|it| (it.user.0, it.agent.clone(), it.target)).collect();
        assert_eq!(
            (reported, seats.len()),
            (expected, scenario.n_seats()),
            "the table and what is watched differ"
        );
        let n_connections: usize = seats.iter().map(|it| it.n_connections).sum();
        assert_eq!(n_connections, watching.len());
    }
    watching.clear();
    scenario.is_quiet().await;
}

/// Joins, and checks the result against the rule.
async fn join(
    scenario: &Scenario,
    request: SeatRequest,
    device: &str,
    number: u32,
    watching: &mut Vec<Watching>,
) {
    let sessions = |watching: &[Watching]| -> BTreeSet<_> {
        let of_user = watching.iter().filter(|it| it.request.user == request.user && !it.is_cut());
        of_user.map(Watching::session).collect()
    };
    let before = sessions(watching);
    let own = (request.user.0, device.to_owned(), channel(number));
    match scenario.seated(channel(number), request, device).await {
        Ok(it) => {
            watching.push(it);
            let after = sessions(watching);
            assert!(after.contains(&own));
            let is_shared = before.contains(&own);
            assert!(
                is_shared || request.limit == 0 || after.len() <= request.limit as usize,
                "over the limit"
            );
            let ended: Vec<_> = before.difference(&after).collect();
            assert!(ended.iter().all(|it| it.1 == device), "another device was ended: {ended:?}");
            assert!(ended.is_empty() || (!is_shared && after.len() == request.limit as usize));
        }
        Err(refusal) => {
            assert_eq!(refusal, WatchRefusal::Seats { limit: request.limit });
            assert!(request.limit > 0 && before.len() >= request.limit as usize && !before.contains(&own));
            assert_eq!(sessions(watching), before, "a refusal ended somebody");
        }
    }
}
