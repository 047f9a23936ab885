//! Tests of sessions of HLS, with players that never send a request.

use domain::ids::UserId;
use domain::output_format;
use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{Scenario, channel, settings, stream};

const SECOND: Duration = Duration::from_secs(1);

fn request(target: Target, agent: &str) -> HlsRequest {
    let peer: SocketAddr = "10.0.0.1:4711".parse().unwrap();
    HlsRequest {
        target,
        viewer: Viewer { user: Some("anna".to_owned()), address: peer.ip(), agent: agent.to_owned() },
        peer,
        seat: Some(SeatRequest { user: UserId(1), limit: 1 }),
        rendition: None,
        other_sound: None,
        format: StreamFormat::Hls(output_format::SegmentContainer::Ts),
        start_timeout: 20 * SECOND,
        per_address_max: 2,
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_player_leaves_after_three_target_durations_and_its_segmenter_after_that() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let _viewer = scenario.watch(channel(1)).await;
    let sessions = scenario.system.hls_sessions();
    // Of several requests at once, one opens the session.
    let tv = || sessions.open(request(channel(1), "tv"));
    let (first, second) = tokio::join!(tv(), tv());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!((sessions.len(), scenario.system.counts().clients, scenario.system.counts().seats), (1, 2, 1));
    let opened = Instant::now();
    assert!(Arc::ptr_eq(&sessions.find(first.token()).unwrap(), &first));
    let lifetime = 3 * first.target_duration();
    while !sessions.is_empty() {
        assert!(opened.elapsed() < lifetime + SECOND, "{:?}", opened.elapsed());
        sleep(SECOND / 10).await;
    }
    assert!(opened.elapsed() >= lifetime, "{:?}", opened.elapsed());
    assert_eq!(sessions.find(first.token()).unwrap_err(), Some(SessionEnd::Expired));
    sleep(SECOND).await;
    assert_eq!((scenario.system.counts().clients, scenario.system.counts().seats), (1, 0));
    sleep(settings().channel_shutdown_delay + SECOND).await;
    assert_eq!(scenario.status(channel(1)).await.unwrap().segmenters, []);
}

#[tokio::test(start_paused = true)]
async fn requests_that_take_no_bytes_do_not_keep_a_session_and_are_closed() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let sessions = scenario.system.hls_sessions();
    let session = sessions.open(request(channel(1), "tv")).await.unwrap();
    let connection = Arc::new(Connection::new(7, "10.0.0.1:4712".parse().unwrap()));
    let in_progress = session.begin(&connection).unwrap();
    sleep(3 * session.target_duration() + SECOND).await;
    assert!(connection.cancel.is_cancelled());
    drop(in_progress);
    scenario.is_quiet().await;
    assert!(sessions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_media_keeps_its_session() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let sessions = scenario.system.hls_sessions();
    let session = sessions.open(request(channel(1), "tv")).await.unwrap();
    let connection = Arc::new(Connection::new(7, "10.0.0.1:4712".parse().unwrap()));
    let waiting = session.begin(&connection).unwrap();
    waiting.waiting(sleep(4 * session.target_duration())).await;
    assert!(session.end().is_none() && !connection.cancel.is_cancelled());
    drop(waiting);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_no_place_behind() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let sessions = scenario.system.hls_sessions();
    for agent in ["one", "two", "three"] {
        let opened = timeout(SECOND / 100, sessions.open(request(channel(1), agent))).await;
        assert!(opened.is_err());
    }
    // Otherwise the limit of two for the address would be reached.
    let session = sessions.open(request(channel(1), "four")).await.unwrap();
    assert_eq!(session.target(), channel(1));
    drop(session);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn sessions_from_one_address_are_limited() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let sessions = scenario.system.hls_sessions();
    let open = |agent: &'static str| sessions.open(HlsRequest { seat: None, ..request(channel(1), agent) });
    let (one, two) = (open("one").await.unwrap(), open("two").await.unwrap());
    assert_eq!(open("three").await.unwrap_err(), HlsRefusal::Busy);
    assert!(Arc::ptr_eq(&open("one").await.unwrap(), &one));
    two.end_now();
    sleep(SECOND).await;
    assert_eq!(two.end(), Some(SessionEnd::Ended(SessionEnd::KICKED)));
    open("three").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_device_of_a_user_at_the_limit_is_refused_and_another_channel_replaces_the_first() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")], &[stream(2, "b")]]).await;
    let sessions = scenario.system.hls_sessions();
    let first = sessions.open(request(channel(1), "tv")).await.unwrap();
    let refused = sessions.open(request(channel(1), "phone")).await.unwrap_err();
    assert_eq!(refused, HlsRefusal::Watch(WatchRefusal::Seats { limit: 1 }));
    let second = sessions.open(request(channel(2), "tv")).await.unwrap();
    sleep(SECOND / 10).await;
    assert!(
        matches!(first.end(), Some(SessionEnd::Ended(why)) if why.contains("replaced")),
        "{:?}",
        first.end()
    );
    assert_eq!(second.end(), None);
    assert_eq!(scenario.system.counts().seats, 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_channel_ends_the_client_and_leaves_the_last_segments_for_a_while() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let sessions = scenario.system.hls_sessions();
    let session = sessions.open(request(channel(1), "tv")).await.unwrap();
    scenario.system.switchboard().stop(channel(1)).await.unwrap();
    sleep(5 * SECOND).await;
    assert_eq!((scenario.system.counts().clients, scenario.system.counts().seats), (0, 0));
    assert!(session.is_over() && session.end().is_none());
    assert!(sessions.find(session.token()).is_ok());
    // Requests keep it no longer than a minute.
    for _ in 0..70 {
        sleep(SECOND).await;
        let _ = sessions.find(session.token());
    }
    assert!(matches!(session.end(), Some(SessionEnd::Channel(_))), "{:?}", session.end());
    scenario.is_quiet().await;
}
