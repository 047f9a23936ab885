//! Tests of sessions of HLS, with players that never send a request.

use domain::ids::UserId;
use media::segment::{LeftOutTrack, SegmentTrack};
use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{Scenario, channel, limited, settings, stream};
use crate::viewer::Identity;

const SECOND: Duration = Duration::from_secs(1);

fn request(target: Target, agent: &str) -> HlsRequest {
    let peer: SocketAddr = "10.0.0.1:4711".parse().unwrap();
    HlsRequest {
        target,
        viewer: Viewer {
            user: Some("anna".to_owned()),
            address: peer.ip(),
            agent: agent.to_owned(),
            identity: Identity::default(),
        },
        peer,
        seat: Some(SeatRequest { user: UserId(1), limit: 1 }),
        rendition: None,
        other_sound: None,
        format: StreamFormat::Hls(TS),
        may_change_container: true,
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

#[test]
fn a_channel_with_sound_and_nothing_else_is_radio() {
    let track = |name, is_video| SegmentTrack { pid: 0x100, name, codec: None, is_video };
    let left_out = |name| LeftOutTrack { pid: 0x101, name, reason: "fMP4 has no form for it" };
    let check = |tracks: &[SegmentTrack], left_out: &[LeftOutTrack], expected: bool| {
        let tracks = tracks.to_vec();
        let description =
            SegmentDescription { tracks, left_out: left_out.to_vec(), ..SegmentDescription::default() };
        assert_eq!(is_radio(&description), expected, "{description:?}");
    };
    check(&[track("MPEG audio", false)], &[], true);
    check(&[track("AAC", false), track("AC-3", false)], &[], true);
    check(&[], &[left_out("DTS")], true);
    check(&[track("AAC", false), track("H.264", true)], &[], false);
    check(&[track("AAC", false)], &[left_out("MPEG-2 video")], false);
    check(&[], &[], false);
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

fn nameless(target: Target, identity: Identity) -> HlsRequest {
    let request = request(target, "browser");
    let viewer = Viewer { user: None, identity, ..request.viewer };
    HlsRequest { viewer, seat: None, ..request }
}

#[tokio::test(start_paused = true)]
async fn a_silent_player_without_a_user_leaves_after_two_target_durations() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let _viewer = scenario.watch(channel(1)).await;
    let sessions = scenario.system.hls_sessions();
    let session = sessions.open(nameless(channel(1), Identity::default())).await.unwrap();
    let lifetime = 2 * session.target_duration();
    sleep(lifetime - SECOND).await;
    assert!(session.end().is_none());
    sleep(2 * SECOND).await;
    assert_eq!(session.end(), Some(SessionEnd::Expired));
}

#[tokio::test(start_paused = true)]
async fn the_next_channel_of_a_player_with_a_cookie_gets_the_connection_at_once() {
    let given = |cookie| Identity { cookie: Some(cookie), is_device: true, ..Identity::default() };
    let sent = |cookie| Identity { keeps_cookies: true, ..given(cookie) };
    for (first, asks_again, cookie_of_segments, next, is_served) in [
        (given(1), None, None, sent(1), true),
        (given(1), Some(sent(1)), Some(1), sent(1), true),
        // A player that keeps no cookies: address and program decide, if they stand for one device.
        (given(1), Some(given(2)), None, given(3), true),
        (given(1), None, None, Identity { is_device: false, ..given(2) }, false),
        // Two browsers of the same version behind one address.
        (given(1), None, None, sent(2), false),
        (given(1), None, Some(1), given(2), false),
        (given(1), None, Some(2), given(2), true),
        // They share the session, so nothing is known.
        (given(1), Some(sent(2)), None, sent(1), false),
        (sent(1), Some(given(2)), None, sent(1), false),
    ] {
        let case = format!("{first:?} {asks_again:?} {cookie_of_segments:?} {next:?}");
        let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
        let sessions = scenario.system.hls_sessions();
        let session = sessions.open(nameless(channel(1), first)).await.unwrap();
        if let Some(again) = asks_again {
            let same = sessions.open(nameless(channel(1), again)).await.unwrap();
            assert!(Arc::ptr_eq(&same, &session), "{case}");
        }
        session.sent_cookie(cookie_of_segments);
        // The player of the old session is there meanwhile.
        let connection = Arc::new(Connection::new(7, "10.0.0.1:4712".parse().unwrap()));
        let in_progress = session.begin(&connection).unwrap();
        let opened = in_progress.waiting(sessions.open(nameless(channel(2), next))).await;
        assert_eq!(opened.is_ok(), is_served, "{case}");
        assert!(scenario.provider.peak() <= 1, "{case}");
    }
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
