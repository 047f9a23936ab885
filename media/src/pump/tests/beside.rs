//! Silent sources, and sources that are read beside the followed one.

use super::*;
use crate::ts::pes::{is_pes_start, stamps};

/// Returns the presentation times of the video on this PID, in milliseconds.
fn presentation_ms(bytes: &[u8], pid: u16) -> Vec<u64> {
    let packets = packets(bytes).map(Packet::new).filter(|it| it.pid() == pid && is_pes_start(*it));
    packets.filter_map(|it| stamps(it).pts).map(|it| it / 90).collect()
}

pub(super) fn longest_step_ms(bytes: &[u8], pid: u16) -> u64 {
    let times = presentation_ms(bytes, pid);
    assert!(times.len() > 100, "{} pictures", times.len());
    times.windows(2).map(|it| it[1].checked_sub(it[0]).expect("times never go back")).max().unwrap()
}

/// A source with other PIDs and another start time.
fn other(label: &str) -> TsSource {
    TsSource { start: 5_000_000_000, pmt_pid: 0x50, video: Some((0x51, 0x1B)), ..TsSource::new(label) }
}

/// Reads the tail until a message arrives.
async fn read_until_message(setup: &mut Setup, tail: &mut Tail, bytes: &mut BytesMut) -> PumpMessage {
    loop {
        tokio::select! {
            biased;
            message = setup.messages.recv() => return message.unwrap().0,
            chunk = tail.chunk() => bytes.extend_from_slice(&chunk.unwrap()),
        }
    }
}

async fn follow_first(setup: &mut Setup) -> (Tail, BytesMut) {
    setup.provider.set("/1", Behaviour::play("one"));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    let bytes = all_for(&mut tail, Duration::from_secs(3)).await;
    (tail, bytes)
}

#[tokio::test(start_paused = true)]
async fn a_prepared_source_takes_over_without_a_gap() {
    for burst in [0, 4_000] {
        let mut setup = Setup::new();
        let (mut tail, mut bytes) = follow_first(&mut setup).await;
        let burst = Duration::from_millis(burst);
        setup.provider.set("/2", Behaviour::Play(Play { burst, ..Play::new(other("two")) }));
        setup.prepare(2, "/2").await;
        assert_eq!(read_until_message(&mut setup, &mut tail, &mut bytes).await, PumpMessage::Ready(2));
        bytes.extend(all_for(&mut tail, Duration::from_millis(20)).await);
        assert_eq!(labels_in(&bytes), ["one"], "nothing of the prepared source is written");
        assert_eq!(setup.provider.n_held(), 2);
        setup.pump.follow_prepared(2);
        assert_eq!(read_until_message(&mut setup, &mut tail, &mut bytes).await, PumpMessage::Playing(2));
        bytes.extend(all_for(&mut tail, Duration::from_secs(3)).await);
        assert_eq!((labels_in(&bytes), n_nulls(&bytes)), (vec!["one".to_owned(), "two".to_owned()], 0));
        let video = TsSource::new("one").video.unwrap().0;
        let step = longest_step_ms(&bytes, video);
        assert!(step <= 100, "{step} ms between two pictures, burst {burst:?}");
        setup.upstream.closer.idle().await;
        assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (1, 1), "the old one is closed");
        assert!(setup.messages.try_recv().is_err(), "a replaced source is not lost");
        assert_eq!(setup.pump.clock().unwrap().attempt, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_prepared_source_that_never_becomes_playable_costs_nothing() {
    for (how, cause) in
        [(Break::End, Cause::Ended), (Break::Nulls, Cause::Stall), (Break::Garbage, Cause::SyncLost)]
    {
        let mut setup = Setup::new();
        let (mut tail, mut bytes) = follow_first(&mut setup).await;
        let ts = TsSource { gop: u64::MAX, is_marked: false, ..other("two") };
        setup.provider.set("/2", Behaviour::Play(Play { after: Some((100, how)), ..Play::new(ts) }));
        setup.prepare(2, "/2").await;
        let PumpMessage::Lost { attempt: 2, cause: why } =
            read_until_message(&mut setup, &mut tail, &mut bytes).await
        else {
            panic!("{how:?}: not lost")
        };
        assert_eq!(*why.cause(), cause);
        // A command about a source that is gone has no effect.
        setup.pump.follow_prepared(2);
        setup.pump.drop_prepared();
        bytes.extend(all_for(&mut tail, Duration::from_secs(3)).await);
        assert_eq!((labels_in(&bytes), n_nulls(&bytes)), (vec!["one".to_owned()], 0), "{how:?}");
        let video = TsSource::new("one").video.unwrap().0;
        assert!(longest_step_ms(&bytes, video) <= 100, "{how:?}");
        assert_eq!(setup.provider.n_held(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_falls_silent_is_reported_and_replaced_within_two_and_a_half_seconds() {
    let mut setup = Setup::new();
    let (mut tail, mut bytes) = follow_first(&mut setup).await;
    setup.provider.set("/2", Behaviour::Play(Play::new(other("two"))));
    setup.provider.break_now("/1", Break::Silence);
    let began = Instant::now();
    let PumpMessage::Silent { attempt: 1, silence } =
        read_until_message(&mut setup, &mut tail, &mut bytes).await
    else {
        panic!("not silent")
    };
    assert!((1_400..=1_600).contains(&silence.as_millis()), "{silence:?}");
    setup.prepare(2, "/2").await;
    assert_eq!(read_until_message(&mut setup, &mut tail, &mut bytes).await, PumpMessage::Ready(2));
    assert_eq!(labels_in(&bytes), ["one"]);
    setup.pump.follow_prepared(2);
    assert_eq!(read_until_message(&mut setup, &mut tail, &mut bytes).await, PumpMessage::Playing(2));
    let gap = began.elapsed();
    assert!(gap <= Duration::from_millis(2_600), "{gap:?}");
    bytes.extend(all_for(&mut tail, Duration::from_secs(3)).await);
    // The programme steps forward by the length of the gap: its sound at once, its picture at the next key frame.
    let step = longest_step_ms(&bytes, TsSource::new("one").audio.unwrap().0);
    assert!(gap.as_millis().abs_diff(u128::from(step)) <= 250, "{step} ms, gap {gap:?}");
    let step = longest_step_ms(&bytes, TsSource::new("one").video.unwrap().0);
    assert!(step <= 2_600 + 1_000, "{step} ms without a picture");
}

#[tokio::test(start_paused = true)]
async fn the_rhythm_passes_to_the_next_connection_of_the_same_stream() {
    for seconds in [3, 5, 8, 10] {
        for (key, is_beside) in [(1, false), (1, true), (2, false), (2, true)] {
            let mut setup = Setup::new();
            let bursts = Play { clump: Duration::from_secs(seconds), ..Play::new(TsSource::new("one")) };
            setup.provider.set("/1", Behaviour::Play(bursts));
            setup.follow(1, "/1").await;
            setup.plays(1).await;
            sleep(Duration::from_secs(3 * seconds)).await;
            // This connection sends evenly, so its own rhythm says nothing.
            setup.provider.set("/2", Behaviour::play("one"));
            let source = setup.open("/2").await;
            if is_beside {
                setup.pump.prepare(2, key, None, source);
                assert_eq!(setup.message().await, PumpMessage::Ready(2));
                setup.pump.follow_prepared(2);
            } else {
                setup.pump.follow(2, key, source);
            }
            setup.plays(2).await;
            sleep(Duration::from_secs(4)).await;
            setup.provider.break_now("/2", Break::Silence);
            let PumpMessage::Silent { attempt: 2, silence } = setup.message().await else {
                panic!("not silent")
            };
            // Half a second before the next burst of the connection before would be too late, two seconds after it is due.
            let expected = if key == 1 { seconds as f64 + 1.5 } else { 1.5 };
            let difference = (silence.as_secs_f64() - expected).abs();
            assert!(difference < 0.3, "bursts of {seconds} s, key {key}, {is_beside}: {silence:?}");
        }
    }
}

/// A source that is read beside another one sends in the same rhythm, which is measured there.
#[tokio::test(start_paused = true)]
async fn a_source_in_bursts_that_was_read_beside_another_is_not_suspected() {
    for seconds in [3, 5, 8, 10] {
        let mut setup = Setup::new();
        setup.provider.set("/1", Behaviour::play("one"));
        setup.follow(1, "/1").await;
        setup.plays(1).await;
        setup.provider.break_now("/1", Break::Silence);
        assert!(matches!(setup.message().await, PumpMessage::Silent { attempt: 1, .. }));
        let bursts = Play { clump: Duration::from_secs(seconds), ..Play::new(other("two")) };
        setup.provider.set("/2", Behaviour::Play(bursts));
        setup.prepare(2, "/2").await;
        assert_eq!(setup.message().await, PumpMessage::Ready(2));
        setup.pump.follow_prepared(2);
        setup.plays(2).await;
        sleep(Duration::from_secs(60)).await;
        assert!(setup.messages.try_recv().is_err(), "bursts of {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_pauses_often_is_suspected_only_once() {
    let settings =
        PumpSettings { silence_suspected_after: Duration::from_millis(500), ..PumpSettings::default() };
    let mut setup = Setup::with(settings);
    // One picture per second.
    let slow = TsSource { bitrate: 20_000, frame_rate: 1, gop: 1, ..TsSource::new("slow") };
    setup.provider.set("/1", Behaviour::Play(Play::new(slow)));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    assert!(matches!(setup.message().await, PumpMessage::Silent { attempt: 1, .. }));
    assert_eq!(setup.message().await, PumpMessage::Resumed(1));
    sleep(Duration::from_secs(60)).await;
    assert!(setup.messages.try_recv().is_err(), "its pauses are known");
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_the_followed_source_alone_plays_nothing_of_the_prepared_one() {
    let mut setup = Setup::new();
    let (mut tail, mut bytes) = follow_first(&mut setup).await;
    setup.provider.set("/2", Behaviour::Play(Play::new(other("two"))));
    setup.prepare(2, "/2").await;
    setup.provider.break_now("/1", Break::End);
    let PumpMessage::Lost { attempt: 1, .. } = read_until_message(&mut setup, &mut tail, &mut bytes).await
    else {
        panic!("not lost")
    };
    assert_eq!(read_until_message(&mut setup, &mut tail, &mut bytes).await, PumpMessage::Ready(2));
    bytes.extend(all_for(&mut tail, Duration::from_secs(2)).await);
    assert_eq!(labels_in(&bytes), ["one"]);
    assert!(n_fillers(&bytes) >= 3, "the gap is filled");
    setup.pump.follow_prepared(2);
    setup.plays(2).await;
    assert_eq!(labels_in(&all_for(&mut tail, Duration::from_secs(3)).await), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_or_replaced_prepared_source_is_closed() {
    let mut setup = Setup::new();
    let (_tail, _) = follow_first(&mut setup).await;
    setup.prepare(2, "/1").await;
    setup.prepare(3, "/1").await;
    sleep(Duration::from_secs(1)).await;
    setup.upstream.closer.idle().await;
    assert_eq!(setup.provider.n_held(), 2);
    setup.pump.drop_prepared();
    sleep(Duration::from_secs(1)).await;
    setup.upstream.closer.idle().await;
    assert_eq!(setup.provider.n_held(), 1);
    // Before the pump has taken it.
    let (source, next) = (setup.open("/1").await, setup.open("/1").await);
    setup.pump.prepare(4, 1, None, source);
    setup.pump.follow_prepared(4);
    setup.pump.prepare(5, 1, None, next);
    while setup.message().await != PumpMessage::Playing(4) {}
    drop(setup.pump);
    setup.task.await.unwrap();
    setup.upstream.closer.idle().await;
    assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (0, 0));
}
