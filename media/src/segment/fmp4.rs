//! Makes segments and parts in fragmented MP4 (CMAF).
//!
//! The first video stream and the first audio stream that fMP4 can carry are in one file, because every player can play
//! that; other streams are left out. Each part is one fragment with the pictures and the sound of the same time. Streams
//! send sound later than the pictures of the same time, so a part waits for its sound, but not for long.
//!
//! The time line is that of the transport stream without its wraps, and begins at ten seconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use super::boxes::{Sample, VIDEO_SCALE, fragment, init_segment};
use super::codec::audio::{AudioConfig, AudioFormat, FrameSearch};
use super::codec::video::{Picture, VideoConfig, VideoFormat, VideoReader};
use super::cut::{Cutter, Decision, PictureTimes};
use super::demux::{Pes, PesCollector};
use super::description::{LeftOutTrack, SegmentTrack};
use super::early_sound::EarlySound;
use super::window::{Completed, SegmentWindow, StreamFacts, WindowPart};
use crate::ts::clock::{STAMP_HZ, STAMP_MODULUS, distance};
use crate::ts::packet::{Packet, packets};
use crate::ts::random_access::RandomAccess;
use crate::ts::table_reader::TableReader;
use crate::ts::tables::{ElementaryStream, StreamKind, Tables};

/// The first time in a window, as late as time stamps can go back.
const FIRST_TIME: u64 = STAMP_MODULUS / STAMP_HZ * STAMP_HZ;
/// The time that fragments count from: the first one begins at ten seconds, so that no sound has a negative time.
const FRAGMENTS_FROM: u64 = FIRST_TIME - 10 * STAMP_HZ;
/// The first part of a slide does not wait for its sound, which belongs to the next part then: a player starts with it.
const SLIDE: u64 = STAMP_HZ;
/// A part waits for its sound until pictures are this much further.
const SOUND_DELAY_MAX: u64 = STAMP_HZ;
/// A longer step backwards is a break. The newest picture lasts at most this long until the next one is known.
const STEP_MAX: u64 = STAMP_HZ;
/// The duration of a picture before another one is known.
const PICTURE: u64 = STAMP_HZ / 25;
/// Maximum number of audio frames that wait for pictures: a minute.
const FRAMES_MAX: usize = 4096;
/// Bytes of an audio stream in which no frame was found.
const AUDIO_BYTES_MAX: usize = 256 << 10;
/// Ticks of 90 kHz in a millisecond.
const MILLI: u64 = STAMP_HZ / 1000;

/// Makes segments and parts from packets.
#[derive(Debug)]
pub(super) struct FragmentSegmenter {
    window: Arc<SegmentWindow>,
    reader: TableReader,
    cutter: Cutter,
    clock: SharedClock,
    video: Option<VideoTrack>,
    audio: Option<AudioTrack>,
    /// Number of the audio track: how many there were.
    audio_number: u32,
    early_sound: EarlySound,
    left_out: Vec<LeftOutTrack>,
    /// Whether other streams were chosen since the segment started.
    has_other_tracks: bool,
    /// Pictures that are in no fragment yet, in decoding order.
    pictures: VecDeque<QueuedPicture>,
    /// Audio frames that are in no fragment yet.
    frames: VecDeque<QueuedFrame>,
    queued_bytes: usize,
    boundaries: VecDeque<Boundary>,
    /// Pictures after the newest boundary.
    n_after_boundary: usize,
    /// Decoding time of the first picture after it, or time of the first frame without video.
    part_start: Option<u64>,
    /// Presentation time minus decoding time of the newest random-access picture.
    reorder: u64,
    last_duration: u64,
    /// How the segment starts of which no part exists yet.
    starting: Option<SegmentStart>,
    /// Whether a segment exists.
    is_started: bool,
    /// Sound before this time is left out.
    sound_from: u64,
    /// The parameters of the newest initialisation segment.
    plan: Option<Plan>,
    /// The video parameters of the segment that is being made.
    segment_video: Option<VideoConfig>,
    made: Made,
    /// The longest part in ticks, and whether it is fixed.
    part_target: (u64, bool),
    n_fragments: u32,
}

/// The parts of the segment that is being made.
#[derive(Debug, Default)]
struct Made {
    n_parts: u64,
    n_bytes: usize,
    length: u64,
    longest_part: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Plan {
    video: Option<VideoConfig>,
    audio: Option<Arc<AudioConfig>>,
}

#[derive(Debug)]
struct VideoTrack {
    pid: u16,
    format: VideoFormat,
    name: &'static str,
    access: RandomAccess,
    collector: PesCollector,
    reader: VideoReader,
    config: Option<VideoConfig>,
}

#[derive(Debug)]
struct AudioTrack {
    pid: u16,
    format: AudioFormat,
    name: &'static str,
    collector: PesCollector,
    buffer: BytesMut,
    /// The time of the first frame that begins at this offset of the buffer or behind it.
    mark: Option<(usize, u64)>,
    /// The end of the last frame in samples.
    next: Option<u64>,
    config: Option<Arc<AudioConfig>>,
}

#[derive(Debug)]
struct QueuedPicture {
    sample: Sample,
    field: Option<(u32, bool)>,
}

#[derive(Debug)]
struct QueuedFrame {
    /// Number of its track.
    track: u32,
    sample: Sample,
    /// Ticks of 90 kHz.
    time: u64,
    end: u64,
    config: Arc<AudioConfig>,
}

/// The end of a part.
#[derive(Debug)]
struct Boundary {
    n_pictures: usize,
    /// Sound before this time belongs to the part.
    sound_until: u64,
    /// When pictures have this decoding time, the part is made without the sound that is missing.
    due: u64,
    length: u64,
    arrived: Instant,
    end: Option<SegmentEnd>,
}

#[derive(Debug)]
struct SegmentEnd {
    length: u64,
    target_duration: u64,
    frame_rate: Option<f64>,
    next: Option<SegmentStart>,
}

#[derive(Debug)]
struct SegmentStart {
    arrived: Instant,
    is_independent: bool,
    is_break: bool,
    video: Option<VideoConfig>,
    /// The sound that was known when the segment was decided, and the number of its track. Before its first part is made,
    /// the track can be another one, whose first sound can be earlier than its first picture.
    audio: Option<Arc<AudioConfig>>,
    audio_number: u32,
    /// Sound before this time has no picture: it is in a hole that does not belong to the segment before.
    sound_from: Option<u64>,
}

/// A picture, or a frame of a programme without video, at which a segment or a part may begin.
struct Arrival {
    /// Presentation time.
    time: u64,
    decode: u64,
    is_point: bool,
    arrived: Instant,
}

impl Arrival {
    fn times(&self) -> PictureTimes {
        PictureTimes { shown: self.time, decoded: self.decode }
    }
}

impl FragmentSegmenter {
    /// Creates a segmenter that has seen no packet.
    pub(super) fn new(window: Arc<SegmentWindow>) -> Self {
        let part_target = window.settings().part_target.as_millis() as u64 * MILLI;
        Self {
            cutter: Cutter::new(window.settings()),
            window,
            reader: TableReader::new(),
            clock: SharedClock::default(),
            video: None,
            audio: None,
            audio_number: 0,
            early_sound: EarlySound::default(),
            left_out: Vec::new(),
            has_other_tracks: false,
            pictures: VecDeque::new(),
            frames: VecDeque::new(),
            queued_bytes: 0,
            boundaries: VecDeque::new(),
            n_after_boundary: 0,
            part_start: None,
            reorder: 0,
            last_duration: PICTURE,
            starting: None,
            is_started: false,
            sound_from: 0,
            plan: None,
            segment_video: None,
            made: Made::default(),
            part_target: (part_target, false),
            n_fragments: 0,
        }
    }

    /// Takes the next whole packets.
    pub(super) fn push(&mut self, bytes: &Bytes, arrived: Instant) {
        for packet in packets(bytes).map(Packet::new).filter(|it| it.is_valid()) {
            if self.reader.packet(packet) {
                self.adopt_tables();
            } else if !packet.has_payload() {
                continue;
            }
            let pid = packet.pid();
            if let Some(video) = self.video.as_mut().filter(|it| it.pid == pid) {
                let is_point = video.access.is_start(packet);
                for pes in video.collector.push(packet, is_point, arrived).into_iter().flatten() {
                    self.video_pes(&pes);
                }
            } else if let Some(audio) = self.audio.as_mut().filter(|it| it.pid == pid) {
                for pes in audio.collector.push(packet, true, arrived).into_iter().flatten() {
                    self.audio_pes(pes);
                }
            }
        }
    }

    /// Completes the newest segment.
    pub(super) fn finish(&mut self) {
        if let Some(pes) = self.video.as_mut().and_then(|it| it.collector.take()) {
            self.video_pes(&pes);
        }
        if let Some(pes) = self.audio.as_mut().and_then(|it| it.collector.take()) {
            self.audio_pes(pes);
        }
        let Some(length) = self.cutter.finish() else { return };
        let newest = self.pictures.back().map(|it| it.sample.time + u64::from(it.sample.duration));
        let decode = newest.or(self.frames.back().map(|it| it.end)).unwrap_or(0);
        let end = self.segment_end(length, None);
        self.push_boundary(decode, u64::MAX, Instant::now(), Some(end));
        self.resolve(true);
    }

    fn adopt_tables(&mut self) {
        let Some(tables) = self.reader.tables().cloned() else { return };
        let Tables { pmt, .. } = &tables;
        let (mut video, mut audio) = (None, None);
        self.left_out.clear();
        for stream in pmt.streams.iter().take(64) {
            let format = match pmt.kind(stream) {
                StreamKind::Video if video.is_some() => Err("fMP4 carries the first video stream only"),
                StreamKind::Audio if audio.is_some() => Err("fMP4 carries the first audio stream only"),
                StreamKind::Other => Err("fMP4 cannot carry it"),
                StreamKind::Video => {
                    let found = video_format(stream).map(|it| video = Some((stream, it)));
                    found.ok_or("fMP4 cannot carry its codec")
                }
                StreamKind::Audio => {
                    let found = AudioFormat::from_stream(stream).map(|it| audio = Some((stream, it)));
                    found.ok_or("fMP4 cannot carry its codec")
                }
            };
            if let Err(reason) = format {
                self.left_out.push(LeftOutTrack { pid: stream.pid, name: stream.codec(), reason });
            }
        }
        let is_same_video = match (&self.video, video) {
            (Some(known), Some((stream, format))) => (known.pid, known.format) == (stream.pid, format),
            (None, None) => true,
            _ => false,
        };
        if !is_same_video {
            self.early_sound.forget_pictures();
            if let Some(pes) = self.video.as_mut().and_then(|it| it.collector.take()) {
                self.video_pes(&pes);
            }
            self.video = video.map(|(stream, format)| VideoTrack {
                pid: stream.pid,
                format,
                name: stream.codec(),
                access: RandomAccess::Video { pid: stream.pid, stream_type: stream_type_of(format) },
                collector: PesCollector::new(),
                reader: VideoReader::new(format),
                config: None,
            });
        }
        let is_same_audio = match (&self.audio, audio) {
            (Some(known), Some((stream, format))) => (known.pid, known.format) == (stream.pid, format),
            (None, None) => true,
            _ => false,
        };
        if !is_same_audio {
            if let Some(pes) = self.audio.as_mut().and_then(|it| it.collector.take()) {
                self.audio_pes(pes);
            }
            self.early_sound.forget_sound();
            self.audio_number = self.audio_number.wrapping_add(1);
            self.audio = audio.map(|(stream, format)| AudioTrack {
                pid: stream.pid,
                format,
                name: stream.codec(),
                collector: PesCollector::new(),
                buffer: BytesMut::new(),
                mark: None,
                next: None,
                config: None,
            });
        }
        // The last picture of the old track still belongs to its segment.
        self.has_other_tracks |= !is_same_video || !is_same_audio;
    }

    fn video_pes(&mut self, pes: &Pes) {
        let Some(video) = &mut self.video else { return };
        let Some(mut picture) = video.reader.read(&pes.data) else { return };
        if let Some(config) = picture.config.take() {
            video.config = Some(config);
        }
        let Some(config) = video.config.clone() else {
            if let Some(decoded) = pes.stamps.decode() {
                self.cutter.leave_out(decoded);
                self.window.note_left_out();
            }
            return;
        };
        let is_point = pes.is_point || picture.is_key;
        let last = self.pictures.back_mut();
        let is_second = last.as_ref().is_some_and(|it| is_second_field(it.field, picture.field));
        let Some(stamp) = pes.stamps.pts.filter(|_| !is_second) else {
            // The second field, or a picture without a time, belongs to the one before.
            if let Some(last) = last {
                append(&mut last.sample.data, &picture.data);
                self.queued_bytes += picture.data.len();
                last.field = None;
            }
            return;
        };
        let time = self.clock.unwrap(stamp);
        let decode = pes.stamps.dts.map_or(time, |it| self.clock.unwrap(it));
        let time = self.picture(picture, config, Arrival { time, decode, is_point, arrived: pes.arrived });
        self.early_sound.picture(stamp, time);
        for _ in 0..self.early_sound.n_waiting() {
            if let Some(pes) = self.early_sound.next_placed() {
                self.sound(&pes);
            }
        }
    }

    /// Takes a picture, and returns its presentation time.
    fn picture(&mut self, picture: Picture, config: VideoConfig, mut at: Arrival) -> u64 {
        if let Some(last) = self.pictures.back_mut() {
            let step = at.decode.checked_sub(last.sample.time).filter(|it| *it > 0);
            if at.decode <= last.sample.time && at.decode + STEP_MAX > last.sample.time {
                // Two pictures with one time: the later one is decoded a tick later.
                at.decode = last.sample.time + 1;
            }
            if let Some(step) = step.filter(|it| !self.cutter.is_hole(*it)) {
                self.last_duration = step.min(STEP_MAX);
            }
            last.sample.duration = self.last_duration as u32;
        }
        let is_other = self.segment_video.as_ref().is_none_or(|it| !it.is_same(&config));
        let is_change = self.is_started && (self.has_other_tracks || is_other || self.has_other_sound());
        let is_break = self.decide(&mut at, is_change, Some(config));
        if !self.is_started {
            return at.time;
        }
        // A picture is shown until the next one, except where the time line breaks.
        if let Some(last) = self.pictures.back_mut()
            && let Some(step) = at.decode.checked_sub(last.sample.time).filter(|it| *it > 0)
            && (!is_break || step <= STEP_MAX)
        {
            last.sample.duration = u32::try_from(step).unwrap_or(u32::MAX);
        }
        if at.is_point {
            self.reorder = at.time.saturating_sub(at.decode).min(STEP_MAX);
        }
        self.part_start.get_or_insert(at.decode);
        self.n_after_boundary += 1;
        self.queued_bytes += picture.data.len();
        let offset = i32::try_from(at.time as i64 - at.decode as i64).unwrap_or(0);
        let duration = self.last_duration as u32;
        let sample = Sample { time: at.decode, duration, offset, is_sync: at.is_point, data: picture.data };
        self.pictures.push_back(QueuedPicture { sample, field: picture.field });
        self.resolve(false);
        at.time
    }

    /// Returns whether the sound has other parameters than the initialisation segment.
    fn has_other_sound(&self) -> bool {
        let planned = self.plan.as_ref().and_then(|it| it.audio.as_ref());
        let newest = self.audio.as_ref().and_then(|it| it.config.as_ref());
        self.starting.is_none() && newest.is_some_and(|it| planned != Some(it))
    }

    /// Decides whether a segment or a part ends before a picture or a frame, and returns whether the time line breaks.
    fn decide(&mut self, at: &mut Arrival, is_change: bool, video: Option<VideoConfig>) -> bool {
        let n_bytes = self.made.n_bytes + self.queued_bytes;
        let is_full = n_bytes >= self.window.settings().bytes / 4;
        let is_back = self.newest_decode().is_some_and(|it| at.decode + STEP_MAX < it);
        let (length, is_break) = match self.cutter.picture(at.times(), at.is_point, is_change, is_full) {
            Decision::Continue => {
                if let Some(start) = self.part_start.filter(|_| self.is_started) {
                    let end = at.decode.saturating_sub(start) + self.last_duration;
                    if end > self.part_target.0 && at.decode > start {
                        self.push_boundary(at.decode, at.decode + self.reorder, at.arrived, None);
                    }
                }
                return false;
            }
            Decision::Start => (None, false),
            Decision::Cut { length, is_break } => (Some(length), is_break),
        };
        let start = SegmentStart {
            arrived: at.arrived,
            is_independent: at.is_point,
            is_break,
            video: video.clone(),
            audio: self.audio.as_ref().and_then(|it| it.config.clone()),
            audio_number: self.audio_number,
            sound_from: None,
        };
        (self.segment_video, self.has_other_tracks) = (video, false);
        if is_change {
            self.drop_old_sound(at.time);
        }
        let Some(length) = length else {
            (self.starting, self.is_started, self.sound_from) = (Some(start), true, at.time);
            return false;
        };
        let picture_end = self.end_before_hole(at.decode).filter(|_| is_break && self.video.is_some());
        let sound_until = picture_end.map_or(at.time, |it| at.time.min(it + self.reorder));
        let sound_from = (sound_until < at.time).then_some(at.time);
        let end = self.segment_end(length, Some(SegmentStart { sound_from, ..start }));
        if is_break && is_back {
            self.restart_time(at, end);
        } else {
            self.push_boundary(at.decode, sound_until, at.arrived, Some(end));
        }
        is_break
    }

    /// Returns when the newest picture ends, if a hole follows it until this decoding time.
    fn end_before_hole(&self, decode: u64) -> Option<u64> {
        let newest = self.newest_decode()?;
        (decode > newest && self.cutter.is_hole(decode - newest + self.last_duration)).then_some(newest)
    }

    fn segment_end(&mut self, length: u64, next: Option<SegmentStart>) -> SegmentEnd {
        let target_duration = self.cutter.target_duration().unwrap_or(1);
        let frame_rate = self.cutter.take_rate().filter(|_| self.video.is_some());
        SegmentEnd { length, target_duration, frame_rate, next }
    }

    /// Drops sound with other parameters than the newest from a time on: the last sound of a source can be later than the
    /// first picture of the next one, whose initialisation segment does not describe it.
    fn drop_old_sound(&mut self, from: u64) {
        let newest = self.audio.as_ref().and_then(|it| it.config.clone());
        let mut n_dropped = 0;
        self.frames.retain(|it| {
            let is_kept = it.time < from || newest.as_ref() == Some(&it.config);
            n_dropped += if is_kept { 0 } else { it.sample.data.len() };
            is_kept
        });
        self.queued_bytes = self.queued_bytes.saturating_sub(n_dropped);
    }

    /// Continues the time line after time stamps went back.
    fn restart_time(&mut self, at: &mut Arrival, end: SegmentEnd) {
        let wanted = self.newest_decode().unwrap_or(at.time);
        self.push_boundary(wanted, u64::MAX, at.arrived, Some(end));
        self.resolve(true);
        let n_dropped: usize = self.frames.drain(..).map(|it| it.sample.data.len()).sum();
        self.queued_bytes = self.queued_bytes.saturating_sub(n_dropped);
        let reorder = at.time.saturating_sub(at.decode).min(STEP_MAX);
        let time = wanted + reorder;
        self.clock.rebase(at.time, time);
        self.cutter.rebase(PictureTimes { shown: time, decoded: wanted });
        self.early_sound.jumped_back(at.time, time);
        (at.time, at.decode, self.sound_from) = (time, wanted, time);
        if let Some(audio) = &mut self.audio {
            (audio.next, audio.mark) = (None, None);
        }
    }

    /// Returns the end of the newest picture, or frame without video.
    fn newest_decode(&self) -> Option<u64> {
        let picture = self.pictures.back().map(|it| it.sample.time + u64::from(it.sample.duration));
        picture.or(self.frames.back().filter(|_| self.video.is_none()).map(|it| it.end))
    }

    fn push_boundary(&mut self, decode: u64, sound_until: u64, arrived: Instant, end: Option<SegmentEnd>) {
        let start = self.part_start.take().unwrap_or(decode);
        // A hole after the last picture belongs to the segment. Of its parts, the one before it lasts up to the part target,
        // because only the last part of a segment may be much shorter.
        let may_be_short = end.is_some() || !self.part_target.1;
        let stop = self.end_before_hole(decode).filter(|_| may_be_short).unwrap_or(decode);
        self.boundaries.push_back(Boundary {
            n_pictures: std::mem::take(&mut self.n_after_boundary),
            sound_until,
            due: decode.saturating_add(SOUND_DELAY_MAX),
            length: stop.saturating_sub(start).max(1),
            arrived,
            end,
        });
    }

    /// Makes the parts whose sound is there.
    fn resolve(&mut self, is_forced: bool) {
        while let Some(boundary) = self.boundaries.front() {
            let newest = self.pictures.back().map_or(0, |it| it.sample.time);
            let is_complete = self.audio.is_none()
                || self.frames.back().is_some_and(|it| it.end >= boundary.sound_until)
                || newest >= boundary.due;
            let is_first_slide = self.n_fragments == 0
                && boundary.length >= SLIDE
                && self.audio.as_ref().is_some_and(|it| it.config.is_some());
            if !is_complete && !is_first_slide && !is_forced {
                return;
            }
            if let Some(boundary) = self.boundaries.pop_front() {
                self.make_part(boundary);
            }
        }
    }

    fn make_part(&mut self, boundary: Boundary) {
        let n_pictures = boundary.n_pictures.min(self.pictures.len());
        let shifted = |sample: Sample, scale: u32| {
            let time = sample.time.saturating_sub(to_samples(FRAGMENTS_FROM, scale));
            Sample { time, ..sample }
        };
        let pictures = self.pictures.drain(..n_pictures).map(|it| shifted(it.sample, VIDEO_SCALE));
        let pictures: Vec<Sample> = pictures.collect();
        let n_frames = self.frames.iter().take_while(|it| it.time < boundary.sound_until).count();
        let frames: Vec<QueuedFrame> = self.frames.drain(..n_frames).collect();
        let bytes_of = |all: &mut dyn Iterator<Item = &Sample>| all.map(|it| it.data.len()).sum::<usize>();
        let n_bytes = bytes_of(&mut pictures.iter()) + bytes_of(&mut frames.iter().map(|it| &it.sample));
        self.queued_bytes = self.queued_bytes.saturating_sub(n_bytes);
        let is_first = self.starting.is_some();
        if let Some(start) = self.starting.take() {
            self.start_segment(start, &frames);
        }
        let planned = self.plan.as_ref().and_then(|it| it.audio.as_ref());
        let frames: Vec<Sample> = frames
            .into_iter()
            .filter(|it| it.time >= self.sound_from && planned.is_some_and(|planned| *planned == it.config))
            .map(|it| shifted(it.sample, it.config.rate))
            .collect();
        let length = self.part_length(&boundary);
        if !pictures.is_empty() || !frames.is_empty() {
            self.n_fragments = self.n_fragments.wrapping_add(1);
            let bytes = fragment(self.n_fragments, is_first, &pictures, &frames);
            let is_independent = pictures.is_empty() || pictures.iter().any(|it| it.is_sync);
            self.made.n_parts += 1;
            self.made.n_bytes += bytes.len();
            self.made.length += length;
            self.made.longest_part = self.made.longest_part.max(length);
            self.window.add_part(WindowPart { bytes, length, is_independent }, boundary.arrived);
        }
        if let Some(end) = boundary.end {
            self.end_segment(end, boundary.arrived);
        }
    }

    /// Returns the length of a part as the playlist gives it: together they are as long as the segment.
    fn part_length(&self, boundary: &Boundary) -> u64 {
        let (target, is_fixed) = self.part_target;
        let rest = boundary.end.as_ref().and_then(|it| it.length.checked_sub(self.made.length));
        let length = rest.filter(|it| (1..=target).contains(it)).unwrap_or(boundary.length);
        if is_fixed { length.min(target) } else { length }
    }

    /// Starts a segment, with a new initialisation segment if the parameters have changed.
    fn start_segment(&mut self, start: SegmentStart, frames: &[QueuedFrame]) {
        let is_own = |it: &&QueuedFrame| it.time >= self.sound_from && it.track == start.audio_number;
        let first = frames.iter().find(is_own).map(|it| Arc::clone(&it.config));
        let present = self.audio.as_ref().filter(|_| self.audio_number == start.audio_number);
        let known = || present.and_then(|it| it.config.clone());
        let audio = first.or(start.audio).or_else(known);
        let is_same = self.plan.as_ref().is_some_and(|plan| {
            let is_same_video = match (&plan.video, &start.video) {
                (Some(before), Some(now)) => before.is_same(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            is_same_video && plan.audio == audio
        });
        if !is_same {
            self.window.set_init(init_segment(start.video.as_ref(), audio.as_deref()));
            self.plan = Some(Plan { video: start.video, audio });
        }
        let facts = self.facts();
        self.window.start(start.arrived, start.is_independent, start.is_break || !is_same, &facts);
    }

    fn end_segment(&mut self, end: SegmentEnd, arrived: Instant) {
        let made = std::mem::take(&mut self.made);
        if !self.part_target.1 {
            let wanted = self.window.settings().part_target.as_millis() as u64 * MILLI;
            // One part says little about the others.
            let longest = if made.n_parts > 1 { made.longest_part } else { made.longest_part.max(wanted) };
            self.part_target = (longest.div_ceil(MILLI) * MILLI, true);
        }
        self.window.complete(Completed {
            length: end.length,
            body: None,
            arrived,
            target_duration: end.target_duration,
            part_target: Duration::from_millis(self.part_target.0 / MILLI),
            frame_rate: end.frame_rate,
            // They were known when it started.
            facts: None,
        });
        if let Some(from) = end.next.as_ref().and_then(|it| it.sound_from) {
            self.sound_from = from;
        }
        self.starting = end.next;
    }

    fn facts(&self) -> StreamFacts {
        let plan = self.plan.as_ref();
        let video = self.video.as_ref().zip(plan.and_then(|it| it.video.as_ref()));
        let audio = self.audio.as_ref().zip(plan.and_then(|it| it.audio.as_ref()));
        let track = |pid, name, codec: &str, is_video| SegmentTrack {
            pid,
            name,
            codec: Some(codec.to_owned()),
            is_video,
        };
        let mut left_out = self.left_out.clone();
        if let Some(track) = self.audio.as_ref().filter(|_| audio.is_none()) {
            let reason = "no frame was found in it, or it is scrambled";
            left_out.push(LeftOutTrack { pid: track.pid, name: track.name, reason });
        }
        StreamFacts {
            tracks: [
                video.map(|(it, config)| track(it.pid, it.name, &config.codec, true)),
                audio.map(|(it, config)| track(it.pid, it.name, &config.codec, false)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            left_out,
            picture: video.map(|(_, config)| config.size),
        }
    }

    /// Takes a PES packet of sound. Beside pictures, that of another time line waits for its picture.
    fn audio_pes(&mut self, pes: Pes) {
        let placed = if self.video.is_some() { self.early_sound.push(pes) } else { Some(pes) };
        if let Some(pes) = placed {
            self.sound(&pes);
        }
    }

    fn sound(&mut self, pes: &Pes) {
        let Some(audio) = &mut self.audio else { return };
        if let Some(stamp) = pes.stamps.pts {
            self.early_sound.placed(stamp);
            audio.mark = Some((audio.buffer.len(), self.clock.unwrap(stamp)));
        }
        if audio.buffer.len() + pes.data.len() > AUDIO_BYTES_MAX {
            audio.buffer.clear();
        }
        audio.buffer.extend_from_slice(&pes.data);
        while let Some(frame) = self.audio.as_mut().and_then(AudioTrack::next_frame) {
            self.frame(frame, pes.arrived);
        }
    }

    fn frame(&mut self, frame: TimedFrame, arrived: Instant) {
        if frame.is_continuation {
            if let Some(last) = self.frames.back_mut() {
                append(&mut last.sample.data, &frame.sample.data);
                self.queued_bytes += frame.sample.data.len();
            }
            return;
        }
        let rate = frame.config.rate;
        let time = to_ticks(frame.sample.time, rate);
        let end = to_ticks(frame.sample.time + u64::from(frame.sample.duration), rate);
        if self.video.is_none() {
            self.last_duration = end - time;
            let is_other = self.segment_video.is_some() || self.has_other_sound();
            let is_change = self.is_started && (self.has_other_tracks || is_other);
            let mut at = Arrival { time, decode: time, is_point: true, arrived };
            self.decide(&mut at, is_change, None);
            if !self.is_started || at.time != time {
                // After a step back, the next frame has its place on the time line.
                return;
            }
            self.part_start.get_or_insert(time);
        }
        self.queued_bytes += frame.sample.data.len();
        let track = self.audio_number;
        self.frames.push_back(QueuedFrame { track, sample: frame.sample, time, end, config: frame.config });
        if self.frames.len() > FRAMES_MAX
            && let Some(oldest) = self.frames.pop_front()
        {
            self.queued_bytes = self.queued_bytes.saturating_sub(oldest.sample.data.len());
        }
        self.resolve(false);
    }
}

/// An audio frame with its time in samples.
struct TimedFrame {
    sample: Sample,
    config: Arc<AudioConfig>,
    is_continuation: bool,
}

impl AudioTrack {
    /// Takes the next complete frame out of the buffer.
    fn next_frame(&mut self) -> Option<TimedFrame> {
        loop {
            let frame = match self.format.find(&self.buffer) {
                FrameSearch::Short => return None,
                FrameSearch::Garbage(n_bytes) => {
                    self.advance(n_bytes.min(self.buffer.len()));
                    if self.buffer.is_empty() {
                        return None;
                    }
                    continue;
                }
                FrameSearch::Frame(frame) => frame,
            };
            let stamp = self.mark.filter(|it| it.0 == 0).map(|it| it.1);
            let data = Bytes::copy_from_slice(&self.buffer[frame.header..frame.length]);
            self.advance(frame.length);
            if frame.is_continuation {
                let config = self.config.clone()?;
                let sample = Sample { time: 0, duration: 0, offset: 0, is_sync: true, data };
                return Some(TimedFrame { sample, config, is_continuation: true });
            }
            let config = match &self.config {
                Some(known) if **known == frame.config => Arc::clone(known),
                _ => {
                    // The time is counted in other units.
                    self.next = None;
                    Arc::clone(self.config.insert(Arc::new(frame.config)))
                }
            };
            if stamp.is_some() {
                self.mark = None;
            }
            let stamped = stamp.map(|it| to_samples(it, config.rate));
            let half = u64::from(frame.n_samples / 2);
            let time = match (self.next, stamped) {
                // Time stamps are less precise than the lengths of frames.
                (Some(next), Some(stamped)) if next.abs_diff(stamped) <= half => next,
                // Sound that overlaps the frame before.
                (Some(next), Some(stamped)) if stamped < next && next - stamped < u64::from(config.rate) => {
                    continue;
                }
                (_, Some(stamped)) => stamped,
                (Some(next), None) => next,
                // Sound before the first time stamp.
                (None, None) => continue,
            };
            self.next = Some(time + u64::from(frame.n_samples));
            let sample = Sample { time, duration: frame.n_samples, offset: 0, is_sync: true, data };
            return Some(TimedFrame { sample, config, is_continuation: false });
        }
    }

    fn advance(&mut self, n_bytes: usize) {
        self.buffer.advance(n_bytes);
        self.mark = self.mark.map(|(at, time)| (at.saturating_sub(n_bytes), time));
    }
}

/// Unwraps the time stamps of all streams of a programme together, so that a wrap between two of them is none.
#[derive(Debug, Default)]
struct SharedClock {
    last: Option<u64>,
    origin: u64,
}

impl SharedClock {
    /// Returns a time that begins at [`FIRST_TIME`].
    fn unwrap(&mut self, stamp: u64) -> u64 {
        let last = *self.last.get_or_insert_with(|| {
            self.origin = stamp + STAMP_MODULUS - FIRST_TIME;
            stamp + STAMP_MODULUS
        });
        let next = last.saturating_add_signed(distance(last, stamp, STAMP_MODULUS));
        self.last = Some(next);
        next.saturating_sub(self.origin)
    }

    /// Changes the time `time` to `wanted`, which is later, and all times after it by as much.
    fn rebase(&mut self, time: u64, wanted: u64) {
        let shift = wanted.saturating_sub(time);
        while self.origin < shift {
            self.origin += STAMP_MODULUS;
            self.last = self.last.map(|it| it + STAMP_MODULUS);
        }
        self.origin -= shift;
    }
}

/// Returns whether a picture is the other field of the frame that `first` begins.
pub(super) fn is_second_field(first: Option<(u32, bool)>, second: Option<(u32, bool)>) -> bool {
    matches!((first, second), (Some(first), Some(second)) if first.0 == second.0 && first.1 != second.1)
}

pub(super) fn append(data: &mut Bytes, more: &[u8]) {
    let mut both = BytesMut::with_capacity(data.len() + more.len());
    both.extend_from_slice(data);
    both.extend_from_slice(more);
    *data = both.freeze();
}

fn to_samples(ticks: u64, rate: u32) -> u64 {
    ((u128::from(ticks) * u128::from(rate) + u128::from(STAMP_HZ / 2)) / u128::from(STAMP_HZ)) as u64
}

fn to_ticks(samples: u64, rate: u32) -> u64 {
    (u128::from(samples) * u128::from(STAMP_HZ) / u128::from(rate.max(1))) as u64
}

pub(super) fn video_format(stream: &ElementaryStream) -> Option<VideoFormat> {
    match stream.codec() {
        "H.264" => Some(VideoFormat::H264),
        "H.265" => Some(VideoFormat::H265),
        "MPEG-1 video" => Some(VideoFormat::Mpeg1),
        "MPEG-2 video" => Some(VideoFormat::Mpeg2),
        _ => None,
    }
}

pub(super) fn stream_type_of(format: VideoFormat) -> u8 {
    match format {
        VideoFormat::H264 => 0x1B,
        VideoFormat::H265 => super::codec::H265,
        VideoFormat::Mpeg1 => 0x01,
        VideoFormat::Mpeg2 => 0x02,
    }
}
