//! Tests of the health of streams.

use std::sync::Arc;
use std::time::Duration;

use domain::channel::Channel;
use domain::ids::StreamId;
use domain::stream_profile::Delivery;
use media::error::Cause;
use media::groups::GroupLength;
use media::pump::KnownStream;
use media::testing::{Behaviour, Break, Play, TsSource};
use tokio::time::sleep;

use super::*;
use crate::plans::{Plans, StorePlans, Target};
use crate::testing::{Scenario, channel, models, settings, stream, write};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn plays_show_outcomes_causes_and_the_time_to_the_first_packet() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b"), stream(3, "c")]]).await;
    scenario.provider.set("/a", Behaviour::Status(404));
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("b").await;
    scenario.provider.set("/b", Behaviour::Status(404));
    scenario.provider.break_now("/b", Break::Reset);
    viewer.sees("c").await;
    let table = scenario.system.health();
    let [a, b, c] = [1, 2, 3].map(|id| table.get(StreamId(id)).expect("it was tried"));
    assert_eq!((a.attempts, a.failures, a.losses, a.last_success), (1, 1, 0, None));
    assert_eq!((a.first_packet_ms, a.causes.values().sum::<u32>()), (None, 1));
    assert!(b.attempts >= 2 && b.losses == 1 && b.first_packet_ms.is_some(), "{b:?}");
    assert!(b.causes.contains_key("reset"), "{b:?}");
    assert_eq!((c.attempts, c.failures, c.losses, c.last_failure), (1, 0, 0, None));
    let scores = [1, 2, 3].map(|id| table.score(StreamId(id)).unwrap());
    assert!(scores[0] < 50 && scores[2] > 50 && scores[1] < scores[2], "{scores:?}");
    assert_eq!(table.score(StreamId(4)), None);
    let failures = table.take_failures();
    let counted =
        [a, b, c].map(|it| (it.failures + it.losses, failures.get(&it.stream).copied().unwrap_or_default()));
    assert!(counted.iter().all(|(known, taken)| known == taken), "{counted:?}");
    assert!(table.take_failures().is_empty(), "each failure is taken once");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_plays_is_measured_and_its_last_values_stay() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    sleep(20 * SECOND).await;
    let table = scenario.system.health();
    table.measure_plays();
    let health = table.get(StreamId(1)).unwrap();
    assert!(health.bitrate_kbps.is_some_and(|it| it > 0), "{health:?}");
    assert!(health.video_codec.is_some() && health.measured_at.is_some(), "{health:?}");
    // One key frame a second.
    assert!(health.group_ms.is_some_and(|it| (900..=1_100).contains(&it)), "{health:?}");
    drop(viewer);
    scenario.is_quiet().await;
    assert!(table.get(StreamId(1)).unwrap().bitrate_kbps.is_some());
}

#[tokio::test]
async fn the_health_of_streams_outlives_a_restart_and_ends_with_the_stream() {
    let models = models(&[&[("News", "a"), ("Sports", "b")]]);
    let ids: Vec<StreamId> =
        models.channels.load().iter().flat_map(|it| it.streams.iter().copied()).collect();
    let table = HealthTable::default();
    table.opened(ids[0], SECOND);
    table.opened(ids[1], SECOND);
    table.opened(StreamId(999), SECOND);
    table.write(&models).await;
    assert_eq!(table.get(StreamId(999)), None, "no such stream");
    let version = models.store.version();
    table.write(&models).await;
    assert_eq!(models.store.version(), version, "nothing has changed since");

    let read = |models: &Models| {
        let (table, models) = (HealthTable::default(), models.clone());
        std::thread::spawn(move || table.load(&models).map(|()| table)).join().unwrap().unwrap()
    };
    let later = read(&models);
    assert_eq!(later.get(ids[0]), table.get(ids[0]));
    let gone = ids[0];
    write(&models, move |write| write.remove::<Stream>(gone.0).map(drop));
    later.lost(gone, &UpstreamError::new(Cause::Stall), None);
    later.write(&models).await;
    let last = read(&models);
    assert_eq!((last.get(gone), last.get(ids[1]).is_some()), (None, true));
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_starts_again_knows_the_groups_of_its_streams() {
    let hours = |n: i64| n * 60 * 60 * 1000;
    for (group_ms, age, expected) in [
        (8_000, hours(23), GroupLength::Known(8 * SECOND)),
        (0, hours(23), GroupLength::None),
        (8_000, hours(24), GroupLength::Unknown),
    ] {
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let table = scenario.system.health();
        let mut health = StreamHealth::new(StreamId(1));
        (health.group_ms, health.group_at) = (Some(group_ms), Some(now_ms() - age));
        table.put(health);
        assert_eq!(table.known_stream(StreamId(1)), KnownStream { key: 1, group: expected });
        assert_eq!(table.known_stream(StreamId(2)), 2.into());
        // A stream without a key frame keeps what is known of it, until that is measured.
        let endless = TsSource { gop: u64::MAX, is_marked: false, ..TsSource::new("a") };
        scenario.provider.set("/a", Behaviour::Play(Play::new(endless)));
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        sleep(SECOND).await;
        table.measure_plays();
        let is_renewed = table.get(StreamId(1)).unwrap().group_at > Some(now_ms() - hours(1));
        assert_eq!(is_renewed, expected != GroupLength::Unknown, "the pump was told");
    }
}

#[test]
fn the_number_of_streams_is_limited() {
    let table = HealthTable::default();
    for id in 0..=HEALTH_STREAMS_MAX as u32 {
        table.inner.lock().streams.insert(StreamId(id), StreamHealth::new(StreamId(id)));
    }
    table.inner.lock().streams.remove(&StreamId(0));
    table.opened(StreamId(1_000_000), SECOND);
    assert_eq!(table.scores().len(), HEALTH_STREAMS_MAX);
    assert!(table.score(StreamId(1_000_000)).is_some());
}

#[tokio::test]
async fn a_channel_starts_with_its_healthiest_stream_if_it_says_so() {
    let models = models(&[&[("News", "a")], &[("News", "b")]]);
    let plans = Arc::new(StorePlans::new(models.clone(), Delivery::Proxy));
    let (news, first) = {
        let channels = models.channels.load();
        let news = channels.iter().next().unwrap();
        assert_eq!(news.streams.len(), 2);
        (Target::Channel(news.uuid), news.streams[0])
    };
    let order =
        || -> Vec<StreamId> { plans.plan(&news).unwrap().candidates.iter().map(|it| it.stream).collect() };
    let configured = order();
    let failure = UpstreamError::new(Cause::Status(404));
    plans.health().lost(first, &failure, None);
    plans.health().lost(first, &failure, None);
    assert_eq!(order(), configured, "the failover order counts");
    write(&models, |write| {
        let mut channel = write.get::<Channel>(1)?.expect("it is there");
        channel.healthiest_first = true;
        write.put(&channel)
    });
    assert_eq!(order(), [configured[1], configured[0]]);
}
