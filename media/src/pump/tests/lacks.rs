//! Tests of sources whose picture or sound ends while the rest goes on.

use super::beside::longest_step_ms;
use super::*;
use crate::groups::GroupLength;
use crate::pump::KnownStream;
use crate::testing::{TestPage, TsSource};

/// Where a source of the provider begins in its programme.
const BEGINNING: Duration = Duration::from_secs(60);

fn setup() -> Setup {
    Setup::with(PumpSettings {
        picture_timeout: Duration::from_secs(5),
        sound_timeout: Duration::from_secs(10),
        ..PumpSettings::default()
    })
}

/// Lets the provider send this source at `path`.
fn provide(setup: &Setup, path: &str, ts: TsSource) {
    setup.provider.set(path, Behaviour::Play(Play::new(ts)));
}

async fn lacks(setup: &mut Setup, expected: (Lack, bool)) -> Duration {
    let began = Instant::now();
    let message = setup.message().await;
    let (lack, never) = expected;
    assert_eq!(message, PumpMessage::Lacks { attempt: 1, lack, never });
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_part_that_ends_is_reported_after_its_time() {
    for (lack, expected) in [(Lack::Picture, 12_900..=13_400), (Lack::Sound, 17_900..=18_400)] {
        let mut setup = setup();
        let until = Some(BEGINNING + Duration::from_secs(8));
        let whole = TsSource::new("one");
        provide(
            &setup,
            "/1",
            match lack {
                Lack::Sound => TsSource { sound_until: until, ..whole },
                _ => TsSource { picture_until: until, ..whole },
            },
        );
        setup.follow(1, "/1").await;
        setup.plays(1).await;
        let took = lacks(&mut setup, (lack, false)).await;
        assert!(expected.contains(&took.as_millis()), "{lack:?} after {took:?}");
        sleep(Duration::from_secs(60)).await;
        assert!(setup.messages.try_recv().is_err(), "reported once, and the source goes on");
    }
}

/// It plays on, although its clock has ended together with its picture.
#[tokio::test(start_paused = true)]
async fn a_source_without_picture_and_clock_is_not_slow() {
    let mut setup = setup();
    let until = Some(BEGINNING + Duration::from_secs(8));
    let ts = TsSource { picture_until: until, clock_ends_with_picture: true, ..TsSource::new("one") };
    provide(&setup, "/1", ts);
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    let took = lacks(&mut setup, (Lack::Picture, false)).await;
    assert!((12_900..=14_500).contains(&took.as_millis()), "{took:?}");
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        let reading = setup.pump.clock();
        assert!(reading.is_none_or(|it| it.behind < Duration::from_secs(1)), "{reading:?}");
    }
    assert!(setup.messages.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_part_that_never_comes_is_reported_after_the_source_plays() {
    let mut setup = setup();
    provide(&setup, "/1", TsSource { sound_until: Some(Duration::ZERO), ..TsSource::new("one") });
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    let took = lacks(&mut setup, (Lack::Sound, true)).await;
    assert!((9_500..=10_500).contains(&took.as_millis()), "{took:?}");
}

/// A source that plays without its picture is replaced by one that has shown a picture, and the sound goes on.
#[tokio::test(start_paused = true)]
async fn a_source_is_ready_when_it_has_shown_what_the_other_one_lacks() {
    let mut setup = setup();
    let until = Some(BEGINNING + Duration::from_secs(3));
    provide(&setup, "/1", TsSource { picture_until: until, ..TsSource::new("one") });
    provide(&setup, "/2", TsSource { picture_until: Some(Duration::ZERO), ..TsSource::new("two") });
    provide(&setup, "/3", TsSource { start: 7_000_000, ..TsSource::new("three") });
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    lacks(&mut setup, (Lack::Picture, false)).await;
    setup.pump.prepare(2, 2, Some(Lack::Picture), setup.open("/2").await);
    assert!(timeout(Duration::from_secs(20), setup.message()).await.is_err(), "it has no picture either");
    setup.pump.prepare(3, 3, Some(Lack::Picture), setup.open("/3").await);
    let began = Instant::now();
    assert_eq!(setup.message().await, PumpMessage::Ready(3));
    // It continues at a random-access point after the end of the output.
    assert!(began.elapsed() <= Duration::from_secs(4), "{:?}", began.elapsed());
    let mut tail = setup.tail();
    setup.pump.follow_prepared(3);
    assert_eq!(setup.message().await, PumpMessage::Playing(3));
    let bytes = all_for(&mut tail, Duration::from_secs(5)).await;
    // Only pictures have labels, and the last one of the first source is long ago.
    assert_eq!(labels_in(&bytes), ["three"]);
    let audio = TsSource::new("one").audio.unwrap().0;
    assert!(longest_step_ms(&bytes, audio) <= 1_200, "{} ms without sound", longest_step_ms(&bytes, audio));
}

/// The time that counts is that of the programme, at whatever rate it arrives.
#[tokio::test(start_paused = true)]
async fn a_picture_that_stands_still_is_reported_after_ten_seconds_of_programme() {
    for (speed, expected) in [(1.0, 12_000..=13_500), (10.0, 1_000..=1_700)] {
        let mut setup = setup();
        let ts =
            TsSource { still: BEGINNING + Duration::from_secs(3)..Duration::MAX, ..TsSource::new("one") };
        setup.provider.set("/1", Behaviour::Play(Play { speed, ..Play::new(ts) }));
        setup.follow(1, "/1").await;
        setup.plays(1).await;
        let took = lacks(&mut setup, (Lack::Motion, false)).await;
        assert!(expected.contains(&took.as_millis()), "{took:?} at {speed} times the rate");
        assert!(!setup.pump.seen(1).moves);
    }
}

/// A still picture is replaced only by one that moves.
#[tokio::test(start_paused = true)]
async fn a_source_is_ready_when_its_picture_has_moved() {
    let mut setup = setup();
    let still = |label: &str| TsSource { still: Duration::ZERO..Duration::MAX, ..TsSource::new(label) };
    provide(&setup, "/1", still("one"));
    provide(&setup, "/2", still("two"));
    provide(&setup, "/3", TsSource::new("three"));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    lacks(&mut setup, (Lack::Motion, false)).await;
    setup.pump.prepare(2, 2, Some(Lack::Motion), setup.open("/2").await);
    assert!(timeout(Duration::from_secs(20), setup.message()).await.is_err(), "it stands still, too");
    setup.pump.prepare(3, 3, Some(Lack::Motion), setup.open("/3").await);
    let began = Instant::now();
    assert_eq!(setup.message().await, PumpMessage::Ready(3));
    assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
    setup.pump.follow_prepared(3);
    assert_eq!(setup.message().await, PumpMessage::Playing(3));
    sleep(Duration::from_secs(5)).await;
    assert!(setup.pump.seen(3).moves && !setup.pump.seen(1).moves);
}

/// The distance of key frames is shown, and a source is started with what earlier plays have shown of it.
#[tokio::test(start_paused = true)]
async fn the_length_of_groups_is_shown_and_taken_from_earlier_plays() {
    let setup = setup();
    provide(&setup, "/1", TsSource { gop: 100, ..TsSource::new("one") });
    provide(&setup, "/2", TsSource::new("two"));
    let known = KnownStream { key: 1, group: GroupLength::Known(Duration::from_secs(9)) };
    setup.pump.follow(1, known, setup.open("/1").await);
    sleep(Duration::from_millis(500)).await;
    assert_eq!(setup.pump.seen(1).group, known.group);
    assert_eq!(setup.pump.seen(2).group, GroupLength::Unknown);
    setup.pump.follow(2, 2, setup.open("/2").await);
    sleep(Duration::from_secs(10)).await;
    let GroupLength::Known(length) = setup.pump.seen(2).group else { panic!("it has key frames") };
    assert!((900..=1_100).contains(&length.as_millis()), "{length:?}");
}

/// Some packagers write all video of a segment before its sound, so a part is missed only where a segment begins.
#[tokio::test(start_paused = true)]
async fn a_picture_that_ends_in_segments_is_reported_at_the_end_of_one() {
    const SEGMENT: Duration = Duration::from_secs(2);
    let mut setup = setup();
    let ts = TsSource { picture_until: Some(SEGMENT * 6), bitrate: 500_000, ..TsSource::new("one") };
    let mut stream = ts.stream(Duration::ZERO);
    for number in 0..30 {
        let mut bytes = Vec::new();
        while stream.at() < SEGMENT * (number + 1) {
            bytes.extend_from_slice(&stream.frame());
        }
        setup.provider.set(&format!("/{number}.ts"), Behaviour::Page(TestPage::new(bytes)));
    }
    let list = |first: u32| {
        let segments: String = (first..first + 6).map(|it| format!("#EXTINF:2,\n{it}.ts\n")).collect();
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE";
        Behaviour::Page(TestPage::new(format!("{head}:{first}\n{segments}")))
    };
    setup.provider.set("/list", list(0));
    setup.follow(1, "/list").await;
    let mut reported = Vec::new();
    for first in 1..24 {
        sleep(SEGMENT).await;
        setup.provider.set("/list", list(first));
        while let Ok((message, _)) = setup.messages.try_recv() {
            reported.push((first, message));
        }
    }
    assert_eq!(reported.remove(0).1, PumpMessage::Playing(1));
    let [(first, message)] = reported.as_slice() else { panic!("{reported:?}") };
    assert_eq!(*message, PumpMessage::Lacks { attempt: 1, lack: Lack::Picture, never: false });
    // The last picture is in the sixth segment, and the list always has six; at most the last of them is not read yet.
    assert!((4..=9).contains(first), "with segments from the {first}th on");
}
