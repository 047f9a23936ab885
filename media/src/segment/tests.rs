//! Windows over failovers, changes of codecs, hours and wraps of clocks, as strict players see them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::time::Instant;

use super::*;
use crate::ring::{Budget, JoinPoint, RingSettings, ring};
use crate::testing::{HlsChecker, TsSource, boxes, labels_in};
use crate::ts::clock::STAMP_MODULUS;
use crate::ts::packet::{PACKET, Packet, PacketBytes, SYNC, packets, packets_mut, set_cc, set_pid};
use crate::ts::pes::stamps;

const BOTH: [SegmentContainer; 2] = [SegmentContainer::Ts, SegmentContainer::Fmp4];

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_764_201_600)
}

/// A small stream with a key frame every two seconds.
fn source(label: &str) -> TsSource {
    TsSource { bitrate: 200_000, gop: 50, ..TsSource::new(label) }
}

/// Plays sources one after the other, and checks everything that players see at each moment.
struct Viewing {
    window: Arc<SegmentWindow>,
    packager: Packager,
    plain: HlsChecker,
    low_latency: HlsChecker,
    start: Instant,
    counters: HashMap<u16, u8>,
    last_read: Option<u64>,
    labels: Vec<String>,
    longest_memory: usize,
}

impl Viewing {
    fn new(container: SegmentContainer) -> Self {
        let window = Arc::new(SegmentWindow::new(container, SegmentSettings::default(), now()));
        Self {
            packager: Packager::new(Arc::clone(&window)),
            window,
            plain: HlsChecker::new(),
            low_latency: HlsChecker::new(),
            start: Instant::now(),
            counters: HashMap::new(),
            last_read: None,
            labels: Vec::new(),
            longest_memory: 0,
        }
    }

    /// Plays a part of a source, at the same times of the wall clock.
    fn play(&mut self, source: &TsSource, from: u64, to: u64) -> &mut Self {
        let (from, to) = (Duration::from_secs(from), Duration::from_secs(to));
        let mut stream = source.stream(from);
        while stream.at() < to {
            let arrived = self.start + stream.at();
            self.push(&stream.frame(), arrived);
        }
        self
    }

    fn push(&mut self, frame: &Bytes, arrived: Instant) {
        let frame = self.counted(frame);
        self.packager.push(&frame, arrived);
        self.look();
    }

    /// Continues the counters of the source before, as the splice does.
    fn counted(&mut self, frame: &Bytes) -> Bytes {
        let mut frame = frame.to_vec();
        for packet in packets_mut(&mut frame) {
            let counter = self.counters.entry(Packet::new(packet).pid()).or_insert(0);
            *counter = (*counter + 1) & 0x0F;
            set_cc(packet, *counter);
        }
        frame.into()
    }

    fn look(&mut self) {
        let Ok(plain) = self.window.playlist(&PlaylistRequest::default()) else { return };
        if self.last_read != Some(plain.newest_sequence) {
            self.plain.playlist(&plain.text);
            self.read(plain.newest_sequence);
        }
        if self.window.container() == SegmentContainer::Fmp4 {
            let request = PlaylistRequest { low_latency: true, skip: true, names: SegmentNames::default() };
            self.low_latency.playlist(&self.window.playlist(&request).unwrap().text);
        }
    }

    fn read(&mut self, newest: u64) {
        for number in self.last_read.map_or(newest, |it| it + 1)..=newest {
            let bytes = self.window.segment(number).unwrap().to_bytes();
            match self.window.container() {
                SegmentContainer::Ts => self.plain.ts_segment(number, &bytes),
                SegmentContainer::Fmp4 => self.plain.fmp4_segment(number, &bytes),
            }
            self.labels.extend(labels_in(&bytes));
        }
        self.last_read = Some(newest);
        self.labels.dedup();
        self.longest_memory = self.longest_memory.max(self.window.description().bytes);
    }

    fn finish(&mut self) -> &mut Self {
        self.packager.finish();
        self.look();
        self
    }

    fn n_discontinuities(&self) -> usize {
        self.plain.segments().values().filter(|it| it.is_discontinuity).count()
    }

    /// Returns the length of all segments.
    fn seconds(&self) -> f64 {
        self.plain.segments().values().map(|it| it.duration).sum()
    }
}

/// Seen: 503 after 15 s in fMP4, where nothing describes the pictures before the first key frame.
#[test]
fn a_window_that_begins_within_a_long_group_is_ready_in_time() {
    for container in BOTH {
        for (gop, from) in [(250, 1), (250, 3), (250, 8), (300, 1), (300, 6)] {
            let mut viewing = Viewing::new(container);
            viewing.play(&TsSource { gop, ..source("x") }, from, from + 14);
            let description = viewing.window.description();
            assert!(description.n_segments > 0, "{container:?}, groups of {gop} pictures from {from} s");
            let first = viewing.plain.segments().values().next().map(|it| it.duration);
            assert!(first.is_some_and(|it| it >= 1.0), "{first:?}");
        }
    }
}

#[test]
fn a_window_in_fmp4_says_that_it_waits_for_a_key_frame() {
    let mut viewing = Viewing::new(SegmentContainer::Fmp4);
    assert!(!viewing.window.awaits_key_frame(), "nothing arrives");
    let source = TsSource { gop: 500, ..source("x") };
    viewing.play(&source, 2, 16);
    assert!(viewing.window.awaits_key_frame());
    assert_eq!(viewing.window.description().n_segments, 0);
    viewing.play(&source, 16, 23);
    assert!(!viewing.window.awaits_key_frame());
    assert!(viewing.window.description().n_segments > 0);
}

#[test]
fn a_failover_with_the_same_codecs_changes_nothing() {
    for container in BOTH {
        let mut viewing = Viewing::new(container);
        let second = TsSource { start: source("one").start + 45_000, ..source("two") };
        viewing.play(&source("one"), 0, 21).play(&second, 22, 40).finish();
        assert_eq!(viewing.n_discontinuities(), 0, "{container:?}");
        assert_eq!(viewing.labels, ["one", "two"]);
        let seconds = viewing.seconds();
        assert!((seconds - 40.5).abs() < 0.2, "{container:?}: {seconds} s");
        assert_eq!(
            viewing.window.description().init_version,
            (container == SegmentContainer::Fmp4).then_some(1)
        );
    }
}

#[test]
fn a_long_gap_is_a_discontinuity() {
    for container in BOTH {
        let mut viewing = Viewing::new(container);
        viewing.play(&source("one"), 0, 21).play(&source("two"), 50, 70).finish();
        assert_eq!(viewing.n_discontinuities(), 1, "{container:?}");
        let seconds = viewing.seconds();
        assert!((seconds - 41.0).abs() < 0.3, "{container:?}: {seconds} s");
    }
}

#[test]
fn a_change_of_codecs_is_a_discontinuity_with_a_new_initialisation_segment() {
    for container in BOTH {
        let mut viewing = Viewing::new(container);
        let radio = TsSource { video: None, ..source("radio") };
        viewing.play(&source("one"), 0, 21).play(&radio, 22, 42).play(&source("two"), 43, 62).finish();
        assert_eq!(viewing.n_discontinuities(), 2, "{container:?}");
        assert_eq!(viewing.labels, ["one", "radio", "two"]);
        let description = viewing.window.description();
        assert_eq!(description.codecs().as_deref(), Some("avc1.42c01e,mp4a.40.2"));
        assert_eq!(description.init_version, (container == SegmentContainer::Fmp4).then_some(3));
    }
}

/// The sound of a source may come before its pictures or behind them. What the last segment has of either belongs to the
/// old tracks.
fn a_source_that_ends_makes_one_discontinuity(after_pictures: impl Iterator<Item = u64> + Clone) {
    /// Pictures or sound come so many pictures late.
    const DELAY: usize = 12;
    const SOUND: u16 = 0x101;
    let orders = [(true, false), (false, false), (true, true)];
    for ((is_sound_late, is_sound_early), n_pictures) in
        orders.into_iter().flat_map(|it| after_pictures.clone().map(move |n| (it, n)))
    {
        let case = format!("late: {is_sound_late}, then early: {is_sound_early}, {n_pictures} pictures");
        let mut viewing = Viewing::new(SegmentContainer::Fmp4);
        let mut stream = source("one").stream(Duration::ZERO);
        let mut delayed = VecDeque::new();
        let end = Duration::from_millis(20_000 + 40 * n_pictures);
        while stream.at() < end {
            let arrived = viewing.start + stream.at();
            let frame = stream.frame();
            let is_late = |it: &&PacketBytes| (Packet::new(it).pid() == SOUND) == is_sound_late;
            let (late, now): (Vec<&PacketBytes>, Vec<&PacketBytes>) = packets(&frame).partition(is_late);
            delayed.push_back(late.into_iter().flatten().copied().collect::<Vec<u8>>());
            let mut all: Vec<u8> = now.into_iter().flatten().copied().collect();
            if delayed.len() > DELAY {
                all.extend(delayed.pop_front().unwrap());
            }
            viewing.push(&all.into(), arrived);
        }
        // The pictures continue without a hole, so the last sound of the first source is later than they.
        let start = source("two").start - if is_sound_late { 0 } else { 3600 * DELAY as u64 };
        let tracks = (Some((0x200, 0x1B)), Some((0x201, 0x0F)));
        let second = TsSource { video: tracks.0, audio: tracks.1, start, ..source("two") };
        let mut stream = second.stream(end);
        // A source begins with a key frame. Its first sound may be earlier.
        let key = Duration::from_secs((stream.at().as_millis() as u64).div_ceil(2000) * 2);
        while stream.at() + Duration::from_millis(if is_sound_early { 480 } else { 0 }) < key {
            stream.skip();
        }
        while stream.at() < Duration::from_secs(40) {
            let arrived = viewing.start + stream.at();
            let is_before = stream.at() < key;
            let frame = stream.frame();
            let is_sent = |it: &&PacketBytes| !is_before || Packet::new(it).pid() != 0x200;
            // Sound at 44.1 kHz.
            let mut frame: Vec<u8> = packets(&frame).filter(is_sent).flatten().copied().collect();
            while let Some(at) = memchr::memmem::find(&frame, &[0xFF, 0xF1, 0x4C]) {
                frame[at + 2] = 0x50;
            }
            viewing.push(&frame.into(), arrived);
        }
        viewing.finish();
        assert_eq!(viewing.n_discontinuities(), 1, "{case}: {:#?}", viewing.plain.segments());
        assert_eq!(viewing.window.description().init_version, Some(2), "{case}");
        assert_eq!(viewing.labels, ["one", "two"], "{case}");
    }
}

#[test]
fn a_source_that_ends_in_a_segment_makes_one_discontinuity() {
    a_source_that_ends_makes_one_discontinuity((0..50).step_by(7));
}

mod night {
    #[test]
    fn a_source_that_ends_anywhere_in_a_segment_makes_one_discontinuity() {
        super::a_source_that_ends_makes_one_discontinuity(0..50);
    }
}

#[test]
fn another_video_codec_is_a_discontinuity() {
    let mut viewing = Viewing::new(SegmentContainer::Ts);
    let hevc = TsSource { video: Some((0x100, 0x24)), ..source("two") };
    viewing.play(&source("one"), 0, 21).play(&hevc, 21, 40).finish();
    assert_eq!(viewing.n_discontinuities(), 1);
}

#[test]
fn an_hour_with_a_wrap_of_the_clock_plays_in_bounded_memory() {
    for container in BOTH {
        let mut viewing = Viewing::new(container);
        let start = STAMP_MODULUS - 600 * 90_000;
        let source = TsSource { bitrate: 60_000, frame_rate: 5, gop: 10, start, ..TsSource::new("one") };
        viewing.play(&source, 0, 3600).finish();
        assert_eq!(viewing.n_discontinuities(), 0, "{container:?}");
        let seconds = viewing.seconds();
        assert!((seconds - 3600.0).abs() < 0.5, "{container:?}: {seconds} s");
        let rate = viewing.window.description().average_bandwidth.unwrap() as usize / 8;
        // Twelve segments, the one that is being made, and what is stored for each of them.
        assert!(
            viewing.longest_memory < rate * 4 * 14 + 20_000,
            "{} of {rate} a second",
            viewing.longest_memory
        );
    }
}

#[test]
fn time_stamps_that_go_back_are_a_discontinuity() {
    for container in BOTH {
        let mut viewing = Viewing::new(container);
        let second = TsSource { start: 5 * 90_000, ..source("two") };
        viewing
            .play(&TsSource { start: 900 * 90_000, ..source("one") }, 0, 21)
            .play(&second, 21, 41)
            .finish();
        assert_eq!(viewing.n_discontinuities(), 1, "{container:?}");
        assert_eq!(viewing.labels, ["one", "two"], "{container:?}");
    }
}

/// Splits the first packets of key frames behind their first bytes, as some multiplexers do.
fn with_short_first_packets(frame: &Bytes) -> Bytes {
    /// The header of the PES packet and the delimiter of the picture.
    const FIRST_BYTES: usize = 20;
    let mut out = Vec::new();
    for bytes in packets(frame) {
        let packet = Packet::new(bytes);
        if !(packet.pid() == 0x100 && packet.random_access()) {
            out.extend_from_slice(bytes);
            continue;
        }
        let (head, rest) = packet.payload().split_at(FIRST_BYTES);
        let mut first = *bytes;
        first[4] = (PACKET - 5 - FIRST_BYTES) as u8;
        first[packet.payload_offset()..].fill(0xFF);
        first[PACKET - FIRST_BYTES..].copy_from_slice(head);
        let mut second = [0xFF; PACKET];
        second[..4].copy_from_slice(&[SYNC, 1, 0, 0x30]);
        second[4] = (PACKET - 5 - rest.len()) as u8;
        second[5] = 0;
        second[PACKET - rest.len()..].copy_from_slice(rest);
        out.extend([first, second].concat());
    }
    out.into()
}

#[test]
fn the_first_playlist_names_codecs_size_and_rate() {
    for (container, is_split) in BOTH.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let mut viewing = Viewing::new(container);
        let mut stream = source("one").stream(Duration::ZERO);
        while viewing.last_read.is_none() {
            let arrived = viewing.start + stream.at();
            let frame = stream.frame();
            viewing.push(&if is_split { with_short_first_packets(&frame) } else { frame }, arrived);
        }
        let description = viewing.window.description();
        let case = format!("{container:?}, split: {is_split}");
        assert_eq!(description.codecs().as_deref(), Some("avc1.42c01e,mp4a.40.2"), "{case}");
        let size = description.picture.map(|it| (it.width, it.height));
        assert_eq!(size, Some((160, 3936)), "{case}");
        // The made-up parameter set has fields, and a picture can happen to be a second one.
        let rate = description.frame_rate.unwrap();
        assert!((rate - 25.0).abs() < 0.6, "{case}: {rate}");
    }
}

/// Returns the times in seconds at which picture and sound of each fragment begin, and the number of frames of sound.
fn fragment_times(bytes: &[u8]) -> Vec<(f64, Option<f64>, usize)> {
    let moofs = boxes(bytes).into_iter().filter(|it| it.0 == *b"moof");
    let times = |moof: &[u8]| {
        let (mut picture, mut sound, mut n_frames) = (0.0, None, 0);
        for (_, traf) in boxes(moof).into_iter().filter(|it| it.0 == *b"traf") {
            let inner = boxes(traf);
            let content = |name: &[u8; 4]| inner.iter().find(|it| it.0 == *name).unwrap().1;
            let time = u64::from_be_bytes(content(b"tfdt")[4..12].try_into().unwrap()) as f64;
            if content(b"tfhd")[7] == 1 {
                picture = time / 90_000.0;
            } else {
                sound = Some(time / 48_000.0);
                n_frames = usize::from(content(b"trun")[7]);
            }
        }
        (picture, sound, n_frames)
    };
    moofs.map(|it| times(it.1)).collect()
}

/// Seen: no sound for the length of a jump back, because the last sound of the old time line was ahead of all that
/// followed.
#[test]
fn sound_after_a_jump_of_the_clock_stays_with_its_picture_in_fmp4() {
    const SOUND: u16 = 0x101;
    const HOURS: i64 = 26 * 3600 * 90_000;
    let jumps = [50 * 90_000, -50 * 90_000, HOURS, -HOURS, -5 * 90_000, -2 * 90_000, 12 * 90_000];
    for (jump, lead_ms) in jumps.into_iter().zip([-400, 0, 400].into_iter().cycle()) {
        let case = format!("jump of {} s, sound crosses it {lead_ms} ms earlier", jump / 90_000);
        let mut viewing = Viewing::new(SegmentContainer::Fmp4);
        let before = TsSource { start: 100_000_000, ..source("one") };
        let start = (before.start as i64 + jump).rem_euclid(STAMP_MODULUS as i64) as u64;
        let after = TsSource { start, ..before.clone() };
        let (mut old, mut new) = (before.stream(Duration::ZERO), after.stream(Duration::ZERO));
        let at_jump = 21_320;
        while old.at() < Duration::from_secs(45) {
            let (at, arrived) = (old.at().as_millis() as i64, viewing.start + old.at());
            let frames = [old.frame(), new.frame()];
            let from = |limit: i64, is_sound: bool| {
                let frame = &frames[usize::from(at >= limit)];
                let is_own = move |it: &&PacketBytes| (Packet::new(it).pid() == SOUND) == is_sound;
                packets(frame).filter(is_own).flatten().copied().collect::<Vec<u8>>()
            };
            let all = [from(at_jump, false), from(at_jump - lead_ms, true)].concat();
            viewing.push(&all.into(), arrived);
        }
        assert_eq!(viewing.n_discontinuities(), 1, "{case}");
        let window = &viewing.window;
        let newest = window.description().newest_sequence.unwrap();
        let number = *viewing.plain.segments().iter().find(|it| it.1.is_discontinuity).unwrap().0;
        let (mut n_late, mut n_frames) = (0, 0);
        for fragment in
            (number..=newest).flat_map(|it| fragment_times(&window.segment(it).unwrap().to_bytes()))
        {
            n_frames += fragment.2;
            match fragment.1 {
                Some(sound) if (sound - fragment.0).abs() < 0.045 => {}
                _ => n_late += 1,
            }
        }
        assert!(n_late <= 1, "{case}: {n_late} parts without the sound of their pictures");
        let seconds: f64 = viewing.plain.segments().range(number..).map(|it| it.1.duration).sum();
        assert!(
            n_frames as f64 > 25.0 * (seconds - 0.5),
            "{case}: {n_frames} frames of sound in {seconds} s"
        );
    }
}

/// Returns the presentation times of a stream in the packets of a segment, in seconds.
fn stamps_of(bytes: &[u8], pid: u16) -> Vec<f64> {
    let starts = packets(bytes).map(Packet::new).filter(|it| it.pid() == pid);
    starts.filter_map(|it| stamps(it).pts).map(|it| it as f64 / 90_000.0).collect()
}

#[test]
fn sound_without_a_picture_makes_no_segment() {
    const SOUND: u16 = 0x101;
    for (container, held_seconds) in BOTH.into_iter().flat_map(|it| [2, 6, 12, 25].map(|held| (it, held))) {
        let case = format!("{container:?}, no picture for {held_seconds} s");
        let mut viewing = Viewing::new(container);
        let mut stream = source("one").stream(Duration::ZERO);
        // The hole is between two parts.
        let from = Duration::from_millis(21_440);
        let to = from + Duration::from_secs(held_seconds);
        let mut newest_at_loss = None;
        while stream.at() < to + Duration::from_secs(20) {
            let arrived = viewing.start + stream.at();
            let is_held = (from..to).contains(&stream.at());
            let frame = stream.frame();
            let is_sent = |it: &&PacketBytes| !is_held || Packet::new(it).pid() != 0x100;
            let sent: Vec<u8> = packets(&frame).filter(is_sent).flatten().copied().collect();
            viewing.push(&sent.into(), arrived);
            if is_held {
                let newest = viewing.window.description().newest_sequence;
                assert_eq!(
                    newest,
                    *newest_at_loss.get_or_insert(newest),
                    "{case}: the playlist stands still"
                );
            }
        }
        let is_break = held_seconds > 3;
        assert_eq!(viewing.n_discontinuities(), usize::from(is_break), "{case}");
        let newest = viewing.window.description().newest_sequence.unwrap();
        let first = newest_at_loss.flatten().unwrap();
        let mut n_sounds = 0;
        for number in first..=newest {
            let bytes = viewing.window.segment(number).unwrap().to_bytes();
            if container == SegmentContainer::Ts {
                let (pictures, sounds) = (stamps_of(&bytes, 0x100), stamps_of(&bytes, SOUND));
                n_sounds += sounds.len();
                let newest = pictures.iter().copied().fold(0.0, f64::max);
                let is_near = |it: &f64| *it < newest + 1.1;
                assert!(!is_break || sounds.iter().all(is_near), "{case}: {sounds:?} with {pictures:?}");
            } else {
                for (picture, sound, n_frames) in fragment_times(&bytes) {
                    n_sounds += n_frames;
                    assert!(
                        sound.is_some_and(|it| (it - picture).abs() < 0.045),
                        "{case}: {sound:?} at {picture}"
                    );
                }
            }
        }
        // All sound of a short hole is there.
        let segments = viewing.plain.segments().range(first..);
        let seconds: f64 = segments.map(|it| it.1.duration).sum();
        assert!((n_sounds as f64 - 25.0 * seconds).abs() < 30.0, "{case}: {n_sounds} frames in {seconds} s");
    }
}

/// Returns the durations of the samples of a track in some fragments.
fn sample_durations(bytes: &[u8], track: u32) -> Vec<u64> {
    let long = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut durations = Vec::new();
    for (_, moof) in boxes(bytes).into_iter().filter(|it| it.0 == *b"moof") {
        for (_, traf) in boxes(moof).into_iter().filter(|it| it.0 == *b"traf") {
            let inner = boxes(traf);
            let content = |name: &[u8; 4]| inner.iter().find(|it| it.0 == *name).unwrap().1;
            if long(content(b"tfhd"), 4) == track {
                let run = content(b"trun");
                let per_sample = (run.len() - 12) / long(run, 4) as usize;
                durations.extend(run[12..].chunks(per_sample).map(|it| u64::from(long(it, 0))));
            }
        }
    }
    durations
}

#[test]
fn a_sample_lasts_until_the_next_one() {
    for seconds in [1, 2, 3, 5, 7, 12] {
        let mut viewing = Viewing::new(SegmentContainer::Fmp4);
        let slides = TsSource {
            frame_rate: 1,
            frame_seconds: seconds,
            gop: 1,
            bitrate: 20_000,
            ..TsSource::new("slides")
        };
        let seconds = u64::from(seconds);
        // The made-up parameter set has fields, and later pictures happen to be second ones.
        viewing.play(&slides, 0, 12 * seconds);
        assert_eq!(viewing.n_discontinuities(), 0, "every {seconds} s");
        let segments = viewing.plain.segments().clone();
        assert!(segments.len() > 3, "every {seconds} s: {segments:?}");
        let newest = viewing.window.description().newest_sequence.unwrap();
        for (number, listed) in segments.range(newest - 3..) {
            let bytes = viewing.window.segment(*number).unwrap().to_bytes();
            let samples = sample_durations(&bytes, 1);
            assert!(samples.iter().all(|it| *it == seconds * 90_000), "every {seconds} s: {samples:?}");
            assert_eq!(
                samples.len() as u64 * seconds,
                listed.duration as u64,
                "every {seconds} s: {listed:?}"
            );
        }
        let rate = viewing.window.description().frame_rate.unwrap();
        assert!((rate * seconds as f64 - 1.0).abs() < 0.001, "every {seconds} s: {rate}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_slide_plays_as_soon_as_its_length_is_known() {
    for seconds in [2, 5] {
        let slides = TsSource {
            frame_rate: 1,
            frame_seconds: seconds,
            gop: 1,
            bitrate: 20_000,
            ..TsSource::new("slides")
        };
        let mut viewing = Viewing::new(SegmentContainer::Fmp4);
        let (sound_pid, _) = slides.audio.unwrap();
        let mut stream = slides.stream(Duration::ZERO);
        let first = stream.frame();
        viewing.push(&first, viewing.start);
        let arrived = viewing.start + stream.at();
        // The sound until the second slide has not arrived.
        let second = stream.frame();
        let picture = packets(&second).filter(|it| Packet::new(it).pid() != sound_pid).flatten().copied();
        viewing.push(&picture.collect::<Vec<u8>>().into(), arrived);
        let mut fragments = viewing.window.fragments();
        let init = fragments.next().await.unwrap().bytes;
        let (_, moov) = boxes(&init)[1];
        let n_tracks = boxes(moov).iter().filter(|it| it.0 == *b"trak").count();
        assert_eq!(n_tracks, 2, "every {seconds} s");
        let part = fragments.next().await.unwrap().bytes;
        assert_eq!(sample_durations(&part, 1), [u64::from(seconds) * 90_000]);
        assert_eq!(sample_durations(&part, 2).len(), 1);
        // What comes later is not lost.
        let sound = packets(&second).filter(|it| Packet::new(it).pid() == sound_pid).flatten().copied();
        viewing.push(&sound.collect::<Vec<u8>>().into(), arrived);
        for _ in 0..3 {
            let arrived = viewing.start + stream.at();
            viewing.push(&stream.frame(), arrived);
        }
        let part = fragments.next().await.unwrap().bytes;
        assert_eq!(sample_durations(&part, 1), [u64::from(seconds) * 90_000]);
        assert_eq!(sample_durations(&part, 2).len(), 1);
    }
}

#[test]
fn slides_make_segments_of_their_length_in_transport_streams() {
    for seconds in [1, 2, 3, 5, 7, 12] {
        let mut viewing = Viewing::new(SegmentContainer::Ts);
        let slides = TsSource {
            frame_rate: 1,
            frame_seconds: seconds,
            gop: 1,
            bitrate: 20_000,
            ..TsSource::new("slides")
        };
        viewing.play(&slides, 0, 12 * u64::from(seconds));
        assert_eq!(viewing.n_discontinuities(), 0, "every {seconds} s");
        let is_whole = |it: f64| (it / f64::from(seconds)).fract() < 0.001;
        let segments = viewing.plain.segments();
        assert!(segments.len() > 3 && segments.values().all(|it| is_whole(it.duration)), "{segments:?}");
    }
}

#[test]
fn numbers_begin_with_the_seconds_since_1970_or_behind_the_last_window() {
    let first = |first_number_min| {
        let settings = SegmentSettings { first_number_min, ..SegmentSettings::default() };
        SegmentWindow::new(SegmentContainer::Ts, settings, now()).next_number()
    };
    assert_eq!(first(0), 1_764_201_600);
    assert_eq!(first(1_800_000_000), 1_800_000_000);
}

#[test]
fn a_segment_of_a_stream_without_key_frames_ends_before_it_is_too_large() {
    for container in BOTH {
        let settings = SegmentSettings { bytes: 4 << 20, ..SegmentSettings::default() };
        let window = Arc::new(SegmentWindow::new(container, settings, now()));
        let mut packager = Packager::new(Arc::clone(&window));
        let source = TsSource { bitrate: 20_000_000, gop: 100_000, ..TsSource::new("one") };
        let start = Instant::now();
        let mut stream = source.stream(Duration::ZERO);
        while stream.at() < Duration::from_secs(12) {
            let arrived = start + stream.at();
            packager.push(&stream.frame(), arrived);
            assert!(window.description().bytes < 8 << 20, "{container:?}");
        }
        assert!(
            window.description().newest_sequence.unwrap() > window.description().oldest_sequence.unwrap()
        );
    }
}

#[test]
fn sound_that_begins_before_a_segment_ends_in_its_own() {
    const SOUND: u16 = 0x101;
    let sound = |index: usize| -> PacketBytes {
        let mut packet = [0x21; PACKET];
        packet[..4].copy_from_slice(&[SYNC, if index == 0 { 0x40 } else { 0 }, 0, 0x10]);
        if index == 0 {
            let [high, low] = (3 * (PACKET as u16 - 4) - 6).to_be_bytes();
            packet[4..13].copy_from_slice(&[0, 0, 1, 0xC0, high, low, 0x80, 0, 0]);
        }
        set_pid(&mut packet, SOUND);
        packet
    };
    let window = Arc::new(SegmentWindow::new(SegmentContainer::Ts, SegmentSettings::default(), now()));
    let mut packager = Packager::new(Arc::clone(&window));
    let (start, mut stream) = (Instant::now(), source("one").stream(Duration::ZERO));
    let mut n_sent = 0;
    while stream.at() < Duration::from_secs(30) {
        let arrived = start + stream.at();
        let frame = stream.frame();
        // The picture comes between the packets of the sound.
        let picture = packets(&frame).filter(|it| Packet::new(it).pid() != SOUND).flatten().copied();
        let mut all: Vec<u8> = picture.collect();
        if n_sent > 0 {
            all.extend([sound(1), sound(2)].concat());
        }
        all.extend(sound(0));
        n_sent += 1;
        packager.push(&all.into(), arrived);
    }
    let description = window.description();
    for number in description.oldest_sequence.unwrap()..=description.newest_sequence.unwrap() {
        let bytes = window.segment(number).unwrap().to_bytes();
        let starts: Vec<bool> =
            packets(&bytes).map(Packet::new).filter(|it| it.pid() == SOUND).map(Packet::pusi).collect();
        assert!(
            starts.len() > 60 && starts.chunks(3).all(|it| it == [true, false, false]),
            "{number}: {starts:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocking_reload_waits_for_its_part_and_refuses_what_is_too_far_ahead() {
    let budget = Budget::new(usize::MAX);
    let (mut writer, ring) = ring(RingSettings::default(), &budget);
    let (window, task) = segmenter(
        ring.uncounted_tail(JoinPoint::Oldest),
        SegmentContainer::Fmp4,
        SegmentSettings::default(),
        now(),
    );
    let task = tokio::spawn(task);
    let start = Instant::now();
    let writing = tokio::spawn(async move {
        let mut stream = source("one").stream(Duration::ZERO);
        while stream.at() < Duration::from_secs(30) {
            tokio::time::sleep_until(start + stream.at()).await;
            writer.push_packets(&stream.frame(), Instant::now());
            writer.flush(Instant::now());
        }
        writer.filler(Instant::now());
        writer
    });
    assert_eq!(window.playlist(&PlaylistRequest::default()), Err(WindowError::NotReady));
    window.ready().await.unwrap();
    // The sound of a picture comes with it, so a segment is complete with the first picture of the next one.
    assert!(start.elapsed() < Duration::from_millis(2500), "{:?}", start.elapsed());
    let newest = window.description().newest_sequence.unwrap();
    window.wait_for(newest, None).await.unwrap();
    window.wait_for(newest + 1, Some(0)).await.unwrap();
    let before = start.elapsed();
    let part = window.part(newest + 1, 1).await.unwrap();
    assert!(start.elapsed() > before && start.elapsed() - before < Duration::from_millis(700));
    assert_eq!(boxes(&part.to_bytes()).iter().map(|it| it.0).collect::<Vec<_>>(), [*b"moof", *b"mdat"]);
    // A part after the last one of a segment is the first one of the next.
    window.wait_for(newest, Some(500)).await.unwrap();
    assert_eq!(window.wait_for(newest + 1, Some(500)).await, Err(WindowError::TooFarAhead));
    assert_eq!(window.wait_for(newest + 9, None).await, Err(WindowError::TooFarAhead));
    assert!(window.part(newest + 1, 500).await.is_none());
    window.wait_for(newest + 1, None).await.unwrap();
    let whole = window.segment(newest + 1).unwrap().to_bytes();
    assert!(whole.windows(part.len()).any(|it| it == part.to_bytes()), "a segment is its parts");
    // After the stream ended, a request does not wait for ever.
    let writer = writing.await.unwrap();
    let next = window.next_number();
    assert_eq!(window.wait_for(next, None).await, Err(WindowError::Timeout));
    let waiting = {
        let window = Arc::clone(&window);
        tokio::spawn(async move { window.wait_for(next, None).await })
    };
    yield_now().await;
    drop(writer);
    assert_eq!(waiting.await.unwrap(), Err(WindowError::Ended(EndReason::Closed)));
    task.await.unwrap();
    assert!(window.playlist(&PlaylistRequest::default()).is_ok(), "the last segments are still there");
}

#[tokio::test(start_paused = true)]
async fn fragments_over_one_response_are_those_of_the_segments_without_loss() {
    let window = Arc::new(SegmentWindow::new(SegmentContainer::Fmp4, SegmentSettings::default(), now()));
    let mut packager = Packager::new(Arc::clone(&window));
    let start = Instant::now();
    let mut stream = source("one").stream(Duration::ZERO);
    let mut push_until = |packager: &mut Packager, seconds: u64| {
        while stream.at() < Duration::from_secs(seconds) {
            let arrived = start + stream.at();
            packager.push(&stream.frame(), arrived);
        }
    };
    push_until(&mut packager, 10);
    let (mut keen, mut slow) = (window.fragments(), window.fragments());
    let init = keen.next().await.unwrap().bytes;
    assert_eq!(boxes(&init).iter().map(|it| it.0).collect::<Vec<_>>(), [*b"ftyp", *b"moov"]);
    slow.next().await.unwrap();
    let first = window.description().newest_sequence.unwrap();
    let mut read = Vec::new();
    for second in 11..40 {
        push_until(&mut packager, second);
        while let Ok(Ok(fragment)) = tokio::time::timeout(Duration::from_millis(1), keen.next()).await {
            assert!(!fragment.is_after_loss);
            read.extend_from_slice(&fragment.bytes);
        }
    }
    let newest = window.description().newest_sequence.unwrap();
    let whole: Vec<u8> = (first..=newest).flat_map(|it| window.segment(it).unwrap().to_bytes()).collect();
    assert!(read.starts_with(&whole));
    push_until(&mut packager, 120);
    assert!(slow.next().await.unwrap().is_after_loss);
    window.end(EndReason::Stopped);
    while keen.next().await.is_ok() {}
    assert_eq!(keen.next().await.unwrap_err(), FragmentEnd::Window(EndReason::Stopped));
    let ts = Arc::new(SegmentWindow::new(SegmentContainer::Ts, SegmentSettings::default(), now()));
    assert_eq!(ts.fragments().next().await.unwrap_err(), FragmentEnd::NotFragmented);
}
