//! Tests of sources that could be read faster than real time, with simulated time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::*;
use crate::ring::RingSettings;
use crate::testing::{Behaviour, Break, Play, ResponseHead, TestPage, TsSource, labels_in};
use crate::ts::clock::PCR_HZ;
use crate::ts::packet::{PACKET, discontinuity_packet, set_pcr};
use crate::ts::pes::stamps;

/// Follows the source at `path` like a program.
async fn follow(setup: &Setup, attempt: u64, path: &str) {
    setup.pump.follow(attempt, 1, setup.open(path).await.into_program());
}

/// A stream that is sent as fast as it is read.
fn recording() -> Play {
    let ts = TsSource { bitrate: 500_000, ..TsSource::new("x") };
    Play { speed: 1e9, ..Play::new(ts) }
}

/// A live stream that starts with this many seconds of past data.
fn live(burst: u64) -> Play {
    Play { burst: Duration::from_secs(burst), speed: 1.0, ..recording() }
}

/// A live stream that starts with this many seconds of its past at a multiple of the rate of its programme, and ends after
/// so many seconds of programme.
fn past(seconds: u64, speed: f64, ends_after: u64) -> Play {
    let ts = TsSource { bitrate: 200_000, ..TsSource::new("x") };
    let play = Play { ts, burst_speed: Some(speed), ..live(seconds) };
    let n_packets = play.ts.bytes(Duration::ZERO, Duration::from_secs(ends_after)).len() / PACKET;
    Play { after: Some((n_packets as u64, Break::End)), ..play }
}

/// A source whose clock advances a second per picture. The pictures are small, so one read returns many.
fn wrong() -> Play {
    let ts = TsSource { frame_rate: 1, bitrate: 1_000, ..TsSource::new("x") };
    Play { speed: 25.0, burst: Duration::from_secs(60), ..Play::new(ts) }
}

/// Reads a tail at the rate of its programme, like a player without a buffer of its own, until the source ends or this
/// much time has passed.
async fn watch(tail: &mut Tail, time: Duration) -> BytesMut {
    let (began, mut first, mut bytes) = (Instant::now(), None, BytesMut::new());
    while let Ok(Ok(chunk)) = timeout(Duration::from_secs(3), tail.chunk()).await {
        bytes.extend_from_slice(&chunk);
        let Some(clock) = packets(&chunk).filter_map(|it| Packet::new(it).pcr()).last() else { continue };
        let programme = clock - *first.get_or_insert(clock);
        if began.elapsed() > time {
            break;
        }
        sleep_until(began + Duration::from_secs_f64(programme as f64 / PCR_HZ as f64)).await;
    }
    bytes
}

/// Checks that no packet is missing, and that nothing declares that one is.
fn check_whole(bytes: &[u8]) {
    let mut counters = [None; 0x2000];
    for packet in packets(bytes).map(Packet::new).filter(|it| it.pid() != NULL_PID) {
        assert!(!packet.discontinuity(), "a break on PID {:#x}", packet.pid());
        let last = counters[usize::from(packet.pid())].replace(packet.cc());
        assert!(last.is_none_or(|it: u8| (it + 1) & 0x0F == packet.cc()), "PID {:#x}", packet.pid());
    }
}

/// Sends these bytes and ends.
fn short(ts: &[u8]) -> Behaviour {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nConnection: close\r\n\r\n";
    Behaviour::Raw(Bytes::from([head, ts].concat()))
}

/// Returns this many seconds of programme, with a clock that starts at `start` seconds.
fn stretch(start: u64, seconds: u64) -> Bytes {
    let ts = TsSource { start: start * 90_000, ..TsSource::new("x") };
    ts.bytes(Duration::ZERO, Duration::from_secs(seconds))
}

/// Moves every clock reference into a packet of its own without payload.
fn with_clock_alone(ts: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for packet in packets(ts) {
        let mut packet = *packet;
        if let Some(pcr) = Packet::new(&packet).pcr() {
            let mut clock = discontinuity_packet(Packet::new(&packet).pid(), Packet::new(&packet).cc());
            // The flags of the adaptation fields: the clock reference moves from one to the other.
            clock[5] = 0x10;
            set_pcr(&mut clock, pcr);
            out.extend_from_slice(&clock);
            packet[5] &= !0x10;
        }
        out.extend_from_slice(&packet);
    }
    out
}

/// Returns the length of the programme, in seconds from the first clock reference to the last.
fn programme(bytes: &[u8]) -> f64 {
    let clock: Vec<_> = packets(bytes).filter_map(|it| Packet::new(it).pcr()).collect();
    clock.last().zip(clock.first()).map_or(0.0, |(last, first)| (last - first) as f64 / PCR_HZ as f64)
}

#[tokio::test(start_paused = true)]
async fn available_data_of_a_program_is_written_in_real_time() {
    for play in [recording(), live(18)] {
        let mut setup = Setup::new();
        setup.provider.set("/x", Behaviour::Play(play));
        follow(&setup, 1, "/x").await;
        setup.plays(1).await;
        let (began, mut tail, mut bytes) = (Instant::now(), setup.tail(), BytesMut::new());
        for seconds in [1, 2, 10, 60] {
            let end = began + Duration::from_secs(seconds);
            bytes.extend(all_for(&mut tail, end - Instant::now()).await);
            let ahead = programme(&bytes) - seconds as f64;
            // Five seconds, and the surplus of the last read.
            assert!((4.5..6.5).contains(&ahead), "{ahead} s after {seconds} s");
        }
        assert!(setup.pump.clock().unwrap().behind.is_zero());
        assert!(setup.messages.try_recv().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn the_opening_burst_of_a_program_is_written_at_once() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Play(live(4)));
    follow(&setup, 1, "/x").await;
    setup.plays(1).await;
    let bytes = all_for(&mut setup.tail(), Duration::from_millis(100)).await;
    assert!(programme(&bytes) > 3.9, "{}", programme(&bytes));
}

#[tokio::test(start_paused = true)]
async fn a_live_provider_is_never_paused() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Play(live(18)));
    setup.pump.follow(1, 1, setup.open("/x").await);
    setup.plays(1).await;
    let bytes = all_for(&mut setup.tail(), Duration::from_millis(100)).await;
    assert!(programme(&bytes) > 17.9, "{}", programme(&bytes));
}

#[tokio::test(start_paused = true)]
async fn a_recording_on_a_web_server_is_read_at_the_rate_of_its_programme() {
    // Without a length, and with one.
    for head in [ResponseHead::Plain, ResponseHead::Length(1 << 40)] {
        let mut setup = Setup::new();
        setup.provider.set("/x", Behaviour::Play(Play { head, ..recording() }));
        setup.pump.follow(1, 1, setup.open("/x").await);
        setup.plays(1).await;
        let (began, mut tail, mut bytes) = (Instant::now(), setup.tail(), BytesMut::new());
        for seconds in [1, 2, 10, 60, 200] {
            let end = began + Duration::from_secs(seconds);
            bytes.extend(all_for(&mut tail, end - Instant::now()).await);
            let ahead = programme(&bytes) - seconds as f64;
            assert!((20.0..30.0).contains(&ahead), "{ahead} s after {seconds} s");
        }
        assert!(setup.pump.clock().unwrap().behind.is_zero());
        assert!(setup.messages.try_recv().is_err(), "neither a stall nor an end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_viewer_of_a_recording_on_a_web_server_gets_all_of_it_in_order() {
    // 60 s at 8 Mbit/s: the lead of 25 s would not fit into the ring.
    let ts = TsSource { bitrate: 8_000_000, ..TsSource::new("x") };
    let whole = ts.bytes(Duration::ZERO, Duration::from_secs(60));
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nContent-Length: {}\r\n\r\n", whole.len());
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Raw([head.as_bytes(), &whole].concat().into()));
    setup.pump.follow(1, 1, setup.open("/x").await);
    setup.plays(1).await;
    let mut tail = setup.tail();
    let bytes = watch(&mut tail, Duration::from_secs(100)).await;
    assert_eq!(setup.loses(1).await, Cause::Ended);
    assert_eq!(tail.meter().overruns(), 0);
    check_whole(&bytes);
    let pictures =
        |bytes: &[u8]| packets(bytes).map(Packet::new).filter(|it| it.pid() == 0x100 && it.pusi()).count();
    assert_eq!(pictures(&bytes), pictures(&whole));
    assert!(setup.ring.usage().bytes <= RingSettings::default().bytes);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_of_a_recording_without_a_length_is_not_overrun() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Play(recording()));
    setup.pump.follow(1, 1, setup.open("/x").await);
    setup.plays(1).await;
    let mut tail = setup.tail();
    check_whole(&watch(&mut tail, Duration::from_secs(90)).await);
    assert_eq!(tail.meter().overruns(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_recording_that_is_opened_again_and_again_is_shown_whole_each_time() {
    let ts = TsSource { bitrate: 2_000_000, ..TsSource::new("x") };
    let whole = ts.bytes(Duration::ZERO, Duration::from_secs(40));
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nContent-Length: {}\r\n\r\n", whole.len());
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Raw([head.as_bytes(), &whole].concat().into()));
    let mut tail = setup.tail();
    let n_pictures = Arc::new(AtomicUsize::new(0));
    let counted = n_pictures.clone();
    let reading = tokio::spawn(async move {
        while let Ok(bytes) = tail.chunk().await {
            let pictures = packets(&bytes).map(Packet::new).filter(|it| it.pid() == 0x100 && it.pusi());
            counted.fetch_add(pictures.count(), Ordering::Relaxed);
        }
    });
    let began = Instant::now();
    for attempt in 1..=5 {
        setup.pump.follow(attempt, 1, setup.open("/x").await);
        setup.plays(attempt).await;
        assert_eq!(setup.loses(attempt).await, Cause::Ended);
    }
    let ahead = 200.0 - began.elapsed().as_secs_f64();
    assert!((20.0..30.0).contains(&ahead), "{ahead}");
    sleep(Duration::from_millis(100)).await;
    reading.abort();
    let n_pictures = n_pictures.load(Ordering::Relaxed);
    // A change of source may cost a second.
    assert!(n_pictures > 5 * 40 * 25 - 5 * 25, "{n_pictures}");
}

/// Returns the presentation times of the PES packets on this PID.
fn presented(bytes: &[u8], pid: u16) -> Vec<u64> {
    let starts = packets(bytes).map(Packet::new).filter(|it| it.pid() == pid && it.pusi());
    starts.filter_map(|it| stamps(it).pts).collect()
}

#[tokio::test(start_paused = true)]
async fn ten_reconnects_of_a_provider_with_a_burst_lose_and_repeat_nothing() {
    for (seconds, speed, n_attempts) in [(10, 4.0, 11), (10, 1e9, 4), (20, 8.0, 4)] {
        let mut setup = Setup::new();
        setup.provider.set("/x", Behaviour::Play(past(seconds, speed, seconds + 12)));
        let (began, mut tail, mut bytes) = (Instant::now(), None, BytesMut::new());
        let mut leads = Vec::new();
        for attempt in 1..=n_attempts {
            setup.pump.follow(attempt, 1, setup.open("/x").await);
            setup.plays(attempt).await;
            let tail = tail.get_or_insert_with(|| setup.tail());
            bytes.extend(all_for(tail, Duration::from_secs(7)).await);
            leads.push(programme(&bytes) - began.elapsed().as_secs_f64());
            loop {
                bytes.extend(all_for(tail, Duration::from_millis(500)).await);
                let Ok((message, _)) = setup.messages.try_recv() else { continue };
                if matches!(message, PumpMessage::Lost { .. }) {
                    break;
                }
            }
            sleep(Duration::from_millis(400)).await;
        }
        for pid in [0x100, 0x101] {
            let presented = presented(&bytes, pid);
            let step = presented[1] - presented[0];
            let wrong = presented.windows(2).find(|it| it[1] - it[0] != step);
            assert_eq!(wrong, None, "PID {pid:#x}, {seconds} s at rate {speed}");
            assert!(presented.len() as u64 > n_attempts * 8 * 25, "{} on PID {pid:#x}", presented.len());
        }
        let grown = leads.iter().map(|it| it - leads[0]).fold(0.0, f64::max);
        assert!(grown < 0.1, "{seconds} s at rate {speed}: {leads:?}");
    }
}

/// The ring keeps ten seconds by itself. A viewer who plays the past that came first is 20 s behind from then on.
#[tokio::test(start_paused = true)]
async fn a_viewer_at_the_rate_of_the_programme_loses_nothing_of_the_past_that_came_first() {
    for speed in [2.0, 8.0, 1e9] {
        let mut setup = Setup::new();
        setup.provider.set("/x", Behaviour::Play(past(20, speed, 60)));
        setup.pump.follow(1, 1, setup.open("/x").await);
        setup.plays(1).await;
        let mut tail = setup.tail();
        let watching = tokio::spawn(async move { (watch(&mut tail, Duration::from_secs(100)).await, tail) });
        assert_eq!(setup.loses(1).await, Cause::Ended);
        // The next connection has nothing of the past.
        let next = TsSource { bitrate: 200_000, start: 900_000_000, ..TsSource::new("x") };
        setup.provider.set("/x", Behaviour::Play(Play::new(next)));
        setup.pump.follow(2, 1, setup.open("/x").await);
        setup.plays(2).await;
        let (bytes, tail) = watching.await.unwrap();
        assert_eq!(tail.meter().overruns(), 0, "at rate {speed}");
        assert!(programme(&bytes) > 95.0, "{} s at rate {speed}", programme(&bytes));
    }
}

#[tokio::test(start_paused = true)]
async fn commands_are_handled_at_once_while_a_recording_is_paused() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Play(recording()));
    setup.provider.set("/y", Behaviour::play("y"));
    setup.pump.follow(1, 1, setup.open("/x").await);
    setup.plays(1).await;
    sleep(Duration::from_secs(3)).await;
    let sent = Instant::now();
    setup.pump.follow(2, 1, setup.open("/y").await);
    setup.plays(2).await;
    assert!(sent.elapsed() < Duration::from_secs(1), "{:?}", sent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_ends_while_paused_is_played_to_its_end() {
    let whole = stretch(0, 16);
    // The clock jumps by ten hours in the middle. The jump causes no pause and no catching up.
    let jumps = [stretch(0, 8), stretch(36_000, 8)].concat();
    // Without the clocks, pictures have stuffing in the middle, so nothing shows that the last one is complete.
    let without_clocks = with_clock_alone(&whole);
    for (ts, n_pictures) in [(whole.to_vec(), 400), (jumps, 400), (without_clocks, 399)] {
        let mut setup = Setup::new();
        setup.provider.set("/x", short(&ts));
        follow(&setup, 1, "/x").await;
        setup.plays(1).await;
        let (began, mut tail) = (Instant::now(), setup.tail());
        let bytes = all_for(&mut tail, Duration::from_secs(10)).await;
        assert!(setup.messages.try_recv().is_err(), "it is not over yet");
        assert_eq!(setup.loses(1).await, Cause::Ended);
        assert!((10.0..11.5).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
        let rest = all_for(&mut tail, Duration::from_millis(400)).await;
        let all = packets(&bytes).chain(packets(&rest)).map(Packet::new);
        assert_eq!(all.filter(|it| it.pid() == 0x100 && it.pusi()).count(), n_pictures, "pictures");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_with_a_wrong_clock_is_paused_for_a_limited_time_without_a_stall() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::Play(wrong()));
    follow(&setup, 1, "/x").await;
    setup.plays(1).await;
    let (mut tail, mut longest) = (setup.tail(), Duration::ZERO);
    for _ in 0..100 {
        let waited = Instant::now();
        tail.chunk().await.unwrap();
        longest = longest.max(waited.elapsed());
    }
    // Longer than the five seconds without data after which a source stalls.
    assert!((9.5..10.5).contains(&longest.as_secs_f64()), "{longest:?}");
    assert!(setup.messages.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn silence_after_a_pause_is_a_stall_after_the_timeout() {
    let mut setup = Setup::new();
    // Ten seconds at once, then nothing.
    let n_packets = live(20).ts.bytes(Duration::ZERO, Duration::from_secs(10)).len() / PACKET;
    let play = Play { after: Some((n_packets as u64, Break::Silence)), ..live(20) };
    setup.provider.set("/x", Behaviour::Play(play));
    follow(&setup, 1, "/x").await;
    setup.plays(1).await;
    let began = Instant::now();
    assert_eq!(setup.loses(1).await, Cause::Stall);
    // Paused for five seconds, then five seconds without data.
    assert!((9.0..10.5).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn commands_are_handled_at_once_while_a_program_is_paused() {
    for command in ["release", "follow", "drop"] {
        let mut setup = Setup::new();
        setup.provider.set("/x", Behaviour::Play(wrong()));
        setup.provider.set("/y", Behaviour::play("y"));
        follow(&setup, 1, "/x").await;
        setup.plays(1).await;
        let mut tail = setup.tail();
        while timeout(Duration::from_secs(1), tail.chunk()).await.is_ok() {}
        let sent = Instant::now();
        match command {
            "release" => setup.pump.release(),
            "follow" => {
                setup.pump.follow(2, 1, setup.open("/y").await);
                setup.plays(2).await;
                let bytes = all_for(&mut tail, Duration::from_millis(100)).await;
                assert_eq!(labels_in(&bytes), ["y"]);
            }
            _ => drop(setup.pump),
        }
        sleep(Duration::from_millis(100)).await;
        assert!(sent.elapsed() < Duration::from_secs(2), "{command}: {:?}", sent.elapsed());
        let n_left = if command == "follow" { 1 } else { 0 };
        assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (n_left, n_left), "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn segments_that_arrive_in_bursts_are_neither_silent_nor_lost() {
    for (seconds, n_at_start) in [(2, 3), (6, 3), (6, 1), (10, 3), (10, 1)] {
        let mut setup = Setup::new();
        let ts = TsSource { bitrate: 500_000, ..TsSource::new("x") };
        let length = Duration::from_secs(seconds);
        let n_segments = 90 / seconds as u32;
        let mut stream = ts.stream(Duration::ZERO);
        for n in 0..n_segments {
            let mut bytes = BytesMut::new();
            while stream.at() < length * (n + 1) {
                bytes.extend_from_slice(&stream.frame());
            }
            setup.provider.set(&format!("/{n}.ts"), Behaviour::Page(TestPage::new(bytes)));
        }
        // Each version of the list has one more segment, and is requested after the duration of one.
        let list = |n: u32| {
            let segments: String = (0..n).map(|n| format!("#EXTINF:{seconds},\n{n}.ts\n")).collect();
            Behaviour::Page(TestPage::new(format!("#EXTM3U\n#EXT-X-TARGETDURATION:{seconds}\n{segments}")))
        };
        setup.provider.script("/list", (n_at_start..=n_segments).map(list));
        setup.follow(1, "/list").await;
        setup.plays(1).await;
        let mut tail = setup.tail();
        let bytes = watch(&mut tail, Duration::from_secs(60)).await;
        check_whole(&bytes);
        let played = programme(&bytes);
        assert!(played > 59.0, "{played} s of segments of {seconds} s");
        assert!(setup.messages.try_recv().is_err(), "segments of {seconds} s");
        assert!(setup.pump.clock().is_some_and(|it| it.behind < Duration::from_secs(2)));
        assert_eq!(setup.provider.peak(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_playlist_that_is_opened_again_continues_after_the_last_unit() {
    for (seconds, plays_for) in [(2, 9), (4, 9), (4, 11), (6, 14)] {
        let mut setup = Setup::new();
        let ts = TsSource { bitrate: 200_000, ..TsSource::new("x") };
        let length = Duration::from_secs(seconds);
        for n in 0..40 {
            // A packager that begins the counters of each segment anew.
            let bytes = ts.bytes(length * n, length);
            setup.provider.set(&format!("/{n}.ts"), Behaviour::Page(TestPage::new(bytes)));
        }
        let began = Instant::now();
        let list = move |newest: u64| {
            let first = newest.saturating_sub(5);
            let segments: String =
                (first..=newest).map(|n| format!("#EXTINF:{seconds},\n{n}.ts\n")).collect();
            let head = format!("#EXTM3U\n#EXT-X-TARGETDURATION:{seconds}\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
            Behaviour::Page(TestPage::new(head + &segments))
        };
        let provider = setup.provider.clone();
        let packaging = tokio::spawn(async move {
            for n in 0..30 {
                provider.set("/list", list(5 + n));
                sleep_until(began + length * (n as u32 + 1)).await;
            }
        });
        let (mut tail, mut bytes, mut leads) = (None, BytesMut::new(), Vec::new());
        for attempt in 1..=4 {
            setup.pump.follow(attempt, 1, setup.open("/list").await);
            setup.plays(attempt).await;
            let tail = tail.get_or_insert_with(|| setup.tail());
            bytes.extend(all_for(tail, Duration::from_secs(plays_for)).await);
            leads.push(programme(&bytes) - began.elapsed().as_secs_f64());
            setup.pump.release();
            bytes.extend(all_for(tail, Duration::from_millis(400)).await);
        }
        packaging.abort();
        for pid in [0x100, 0x101] {
            let presented = presented(&bytes, pid);
            let wrong = presented.windows(2).find(|it| it[1] - it[0] != presented[1] - presented[0]);
            assert_eq!(wrong, None, "PID {pid:#x}, segments of {seconds} s, {leads:?}");
        }
        // What is there to be read ahead varies by a segment.
        let is_kept = |lead: &f64| lead - leads[0] < 0.5 && leads[0] - lead < seconds as f64 + 0.5;
        assert!(leads.iter().all(is_kept), "segments of {seconds} s: {leads:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_streams_within_a_source_continue_the_output_directly() {
    let mut setup = Setup::new();
    let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:4,\nb.ts\n\
                #EXT-X-ENDLIST\n";
    setup.provider.set("/list", Behaviour::Page(TestPage::new(list)));
    setup.provider.set("/a.ts", Behaviour::Page(TestPage::new(stretch(100, 4))));
    setup.provider.set("/b.ts", Behaviour::Page(TestPage::new(stretch(7, 4))));
    setup.follow(1, "/list").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    let bytes = all_for(&mut tail, Duration::from_secs(20)).await;
    let played = programme(&bytes);
    assert!((7.5..8.5).contains(&played), "{played} s");
    assert_eq!(setup.loses(1).await, Cause::Ended);
}
