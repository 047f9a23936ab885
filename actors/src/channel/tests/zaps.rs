//! Who gives a slot up: channels that nobody watches, the device that zaps, and tuners that are all in use.

use std::net::IpAddr;

use domain::settings::AtLimit;

use super::*;
use crate::viewer::{Identity, Viewer};

#[tokio::test(start_paused = true)]
async fn a_lingering_channel_gives_its_slot_to_another_channel() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    scenario.watch(channel(1)).await.sees("a").await;
    let asked_at = Instant::now();
    scenario.watch(channel(2)).await.sees("b").await;
    assert!(asked_at.elapsed() < 2 * SECOND);
    assert_eq!(scenario.provider.peak(), 1);
    // The channel gave up its source, not itself, and opens again when requested.
    scenario.watch(channel(1)).await.sees("a").await;
    assert_eq!(scenario.provider.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_player_that_closes_the_old_channel_after_it_asked_for_the_new_one_gets_it() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    let old = scenario.watch(channel(1)).await;
    let asked = scenario.ask(channel(2));
    let close = async {
        sleep(Duration::from_millis(500)).await;
        drop(old);
    };
    let (watch, ()) = tokio::join!(asked, close);
    let WatchReply::Tail { tail, .. } = watch else { panic!("{watch:?}") };
    TestViewer { tail }.sees("b").await;
    assert_eq!(scenario.provider.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watched_channel_keeps_its_slot() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    let mut watching = scenario.watch(channel(1)).await;
    let WatchReply::Refused(WatchRefusal::Full(full)) = scenario.ask(channel(2)).await else {
        panic!("expected a refusal")
    };
    assert_eq!((full.account.as_str(), full.max_streams), ("account 1", 1));
    watching.sees("a").await;
    assert_eq!(scenario.system.counts().refused_full, 1);
}

#[tokio::test(start_paused = true)]
async fn a_device_replaces_its_own_unshared_channel_if_that_is_allowed() {
    let ann = Some("ann");
    for (at_limit, second_viewer, replaced) in [
        (AtLimit::ReplaceOwn, None, true),
        (AtLimit::Refuse, None, false),
        (AtLimit::ReplaceOwn, Some("bob"), false),
    ] {
        let scenario = Scenario::new(
            Settings { at_limit, ..settings() },
            [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]],
        )
        .await;
        let (_first, connection) = scenario.ask_as(channel(1), ann, "tv").await;
        let _second = match second_viewer {
            Some(user) => Some(scenario.ask_as(channel(1), Some(user), "tv").await),
            None => None,
        };
        let (watch, _) = scenario.ask_as(channel(2), ann, "tv").await;
        assert_eq!(matches!(watch, WatchReply::Tail { .. }), replaced, "{at_limit:?} {second_viewer:?}");
        assert_eq!(connection.cancel.is_cancelled(), replaced);
        assert!(scenario.provider.peak() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn another_device_of_the_same_user_and_a_nameless_viewer_replace_nobody() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    let (_first, connection) = scenario.ask_as(channel(1), Some("ann"), "tv").await;
    let (watch, _) = scenario.ask_as(channel(2), Some("ann"), "phone").await;
    assert!(matches!(watch, WatchReply::Refused(WatchRefusal::Full(_))));
    let (watch, _) = scenario.ask_as(channel(2), None, "tv").await;
    assert!(matches!(watch, WatchReply::Refused(WatchRefusal::Full(_))));
    assert!(!connection.cancel.is_cancelled());
}

/// The answer of a network tuner whose tuners are all in use.
fn all_in_use() -> Behaviour {
    Behaviour::Raw(
        "HTTP/1.1 503 S\r\nX-HDHomeRun-Error: 805 All Tuners In Use\r\nContent-Length: 0\r\n\r\n".into(),
    )
}

async fn why_refused(scenario: &Scenario, target: Target) -> String {
    match scenario.ask(target).await {
        WatchReply::Refused(refusal) => refusal.to_string(),
        WatchReply::Tail { mut tail, .. } => tail.ready().await.expect_err("it does not play").to_string(),
        other => panic!("{other:?}"),
    }
}

/// Each viewer waited 15 s, and a zap was refused although its own lingering channel had the tuner.
#[tokio::test(start_paused = true)]
async fn a_viewer_of_a_full_tuner_is_told_at_once_and_nothing_is_learned_for_longer_than_a_minute() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 2, 0)], &[limited(2, "b", 2, 0)]]).await;
    scenario.provider.set("/b", all_in_use());
    // The gateway has no connection there.
    let asked_at = Instant::now();
    let refused = why_refused(&scenario, channel(2)).await;
    assert!(refused.contains("all tuners of the device") && asked_at.elapsed() < SECOND, "{refused}");
    let mut watching = scenario.watch(channel(1)).await;
    for _ in 0..3 {
        let asked_at = Instant::now();
        let refused = why_refused(&scenario, channel(2)).await;
        assert!(refused.contains("all tuners of the device"), "{refused}");
        assert!(asked_at.elapsed() < Duration::from_millis(1500), "{:?}", asked_at.elapsed());
    }
    // Another program gives its tuner back. The device is asked again after a while.
    scenario.provider.set("/b", Behaviour::play("b"));
    sleep(60 * SECOND).await;
    let asked_at = Instant::now();
    scenario.watch(channel(2)).await.sees("b").await;
    assert!(asked_at.elapsed() < SECOND, "{:?}", asked_at.elapsed());
    watching.sees("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_zap_on_a_full_tuner_gets_that_of_the_lingering_channel() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 2, 0)], &[limited(2, "b", 2, 0)]]).await;
    scenario.watch(channel(1)).await.sees("a").await;
    scenario.provider.set("/b", all_in_use());
    let asked_at = Instant::now();
    let asked = scenario.ask(channel(2));
    let frees = async {
        sleep(Duration::from_millis(300)).await;
        scenario.provider.set("/b", Behaviour::play("b"));
    };
    let (watch, ()) = tokio::join!(asked, frees);
    let WatchReply::Tail { tail, .. } = watch else { panic!("{watch:?}") };
    TestViewer { tail }.sees("b").await;
    assert!(asked_at.elapsed() < 4 * SECOND, "{:?}", asked_at.elapsed());
    assert_eq!(scenario.provider.n_held(), 1);
}

/// Returns a viewer with the program `agent` at one address, whose address and program stand for one device or not.
fn viewer_of(user: Option<&str>, agent: &str, is_device: bool) -> Viewer {
    Viewer {
        user: user.map(str::to_owned),
        address: IpAddr::from([10, 0, 0, 1]),
        agent: agent.to_owned(),
        identity: Identity { is_device, ..Identity::default() },
    }
}

/// A player had two connections to the old channel, so its zap was refused after three seconds. Media servers look alike.
#[tokio::test(start_paused = true)]
async fn a_zap_ends_what_only_the_same_device_watches_over_any_number_of_connections() {
    let ann = |is_device| viewer_of(Some("ann"), "tv", is_device);
    let nameless = |agent, is_device| viewer_of(None, agent, is_device);
    let with_cookie = |cookie, keeps_cookies| {
        let identity = Identity { cookie: Some(cookie), keeps_cookies, ..Identity::default() };
        Viewer { identity, ..nameless("browser", false) }
    };
    for (old, new, replaced) in [
        (vec![ann(true), ann(true)], ann(true), true),
        (vec![ann(true), ann(true), ann(true)], ann(true), true),
        // One connection may be replaced as it always was; several may be the viewers of a media server.
        (vec![ann(false)], ann(false), true),
        (vec![ann(false), ann(false)], ann(false), false),
        (vec![ann(true), ann(false)], ann(true), false),
        (vec![ann(true), viewer_of(Some("bob"), "tv", true)], ann(true), false),
        (vec![ann(true), viewer_of(Some("ann"), "phone", true)], ann(true), false),
        (vec![nameless("tv", true)], nameless("tv", true), true),
        (vec![nameless("tv", true), nameless("tv", true)], nameless("tv", true), true),
        (vec![nameless("tv", true)], nameless("phone", true), false),
        (vec![nameless("Lavf", false)], nameless("Lavf", false), false),
        (vec![nameless("tv", true), nameless("Lavf", false)], nameless("tv", true), false),
        (vec![nameless("tv", true)], ann(true), false),
        (vec![with_cookie(1, false), with_cookie(1, true)], with_cookie(1, true), true),
        (vec![with_cookie(1, true), with_cookie(2, true)], with_cookie(1, true), false),
    ] {
        let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
        let mut watching = Vec::new();
        for viewer in &old {
            watching.push(scenario.ask_for(channel(1), viewer.clone(), None).await);
        }
        let (watch, _) = scenario.ask_for(channel(2), new.clone(), None).await;
        assert_eq!(matches!(watch, WatchReply::Tail { .. }), replaced, "{old:?} {new:?}");
        assert!(watching.iter().all(|(_, it)| it.cancel.is_cancelled() == replaced), "{old:?} {new:?}");
        assert!(scenario.provider.peak() <= 1);
    }
}

/// Multi-view and picture-in-picture.
#[tokio::test(start_paused = true)]
async fn a_second_picture_of_a_device_ends_nothing_while_a_connection_is_free() {
    let streams: [&[_]; 3] = [&[limited(1, "a", 1, 2)], &[limited(2, "b", 1, 2)], &[limited(3, "c", 1, 2)]];
    let scenario = Scenario::new(settings(), streams).await;
    let tv = || viewer_of(None, "tv", true);
    let (_first, first) = scenario.ask_for(channel(1), tv(), None).await;
    sleep(SECOND).await;
    let (_second, second) = scenario.ask_for(channel(2), tv(), None).await;
    sleep(10 * SECOND).await;
    assert!(!first.cancel.is_cancelled() && !second.cancel.is_cancelled());
    let (third, _) = scenario.ask_for(channel(3), tv(), None).await;
    assert!(matches!(third, WatchReply::Tail { .. }), "{third:?}");
    assert!(first.cancel.is_cancelled() && !second.cancel.is_cancelled(), "the oldest picture ends");
}
