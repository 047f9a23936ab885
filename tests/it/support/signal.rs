//! The streams of a provider: a synthetic programme with a label in every picture, or a clip made by ffmpeg, both paced
//! by their own clock.

use std::sync::Arc;
use std::time::Duration;

use super::tools;

const PACKET: usize = 188;
/// Duration of a frame: one video unit and one audio unit, 25 times per second.
pub const FRAME: Duration = Duration::from_millis(40);
const FRAME_90K: u64 = 3_600;
/// Bytes at the start of a picture that the gateway does not compare with others.
const HEAD_BYTES: usize = 64;
const TURN_90K: u64 = 1 << 33;

/// An endless programme: H.264-like video and AAC-like audio with a label, for tests that ask which source plays. It
/// cannot be decoded; tests that decode use clips.
#[derive(Debug, Clone)]
pub struct Picture {
    label: String,
    bits_per_second: u64,
    frames_per_gop: u64,
    /// PCR of the provider's first frame, 90 kHz.
    start: u64,
    pmt_pid: u16,
    video_pid: Option<u16>,
    audio_pid: u16,
    /// Sections with guide data: the table id and everything after the length of the section.
    guide: [Vec<u8>; 2],
    jumps: Option<Jumps>,
}

/// Regular jumps of the clock of a picture.
#[derive(Debug, Clone, Copy)]
struct Jumps {
    /// In 90 kHz units, modulo 2³³.
    by: u64,
    /// Frames between two jumps.
    every: u64,
}

/// The sound passes a jump of the clock this many frames before the picture, as in a multiplex of an ad inserter.
const SOUND_JUMPS_BEFORE: u64 = 5;

impl Picture {
    pub fn new(label: &str) -> Picture {
        Picture {
            label: label.into(),
            bits_per_second: 1_000_000,
            frames_per_gop: 12,
            start: 900_000,
            pmt_pid: 0x1000,
            video_pid: Some(0x100),
            audio_pid: 0x101,
            guide: Default::default(),
            jumps: None,
        }
    }

    /// Repeats a section with names of services and one with events. Each has to fit into a packet: it is the table id and
    /// everything after the length of the section.
    pub fn guide(mut self, names: Vec<u8>, events: Vec<u8>) -> Picture {
        self.guide = [names, events];
        self
    }

    pub fn bits_per_second(mut self, bits: u64) -> Picture {
        self.bits_per_second = bits;
        self
    }

    pub fn frames_per_gop(mut self, frames: u64) -> Picture {
        self.frames_per_gop = frames;
        self
    }

    /// Sets the first PCR of the provider, in 90 kHz units.
    pub fn starts_at(mut self, pcr_90k: u64) -> Picture {
        self.start = pcr_90k % TURN_90K;
        self
    }

    pub fn pids(mut self, pmt: u16, video: u16, audio: u16) -> Picture {
        (self.pmt_pid, self.video_pid, self.audio_pid) = (pmt, Some(video), audio);
        self
    }

    pub fn radio(mut self) -> Picture {
        self.video_pid = None;
        self
    }

    /// Lets the clock jump by `seconds` at regular intervals, the sound some frames before the picture.
    pub fn jumps_by(mut self, seconds: i64, every: Duration) -> Picture {
        let by = (seconds * 90_000).rem_euclid(TURN_90K as i64) as u64;
        self.jumps = Some(Jumps { by, every: (every.as_nanos() / FRAME.as_nanos()) as u64 });
        self
    }

    /// Returns by how much the jumps before a frame have moved the clock.
    fn moved_by(&self, frame: u64) -> u64 {
        self.jumps.map_or(0, |jumps| frame / jumps.every * jumps.by % TURN_90K)
    }

    /// Returns how much later than the picture the sound of a frame is presented, in 90 kHz units modulo 2³³.
    pub fn sound_offset(&self, frame: u64) -> u64 {
        (self.moved_by(frame + SOUND_JUMPS_BEFORE) + TURN_90K - self.moved_by(frame)) % TURN_90K
    }
}

/// A programme that a path can play.
#[derive(Debug, Clone)]
pub enum Programme {
    Picture(Picture),
    Clip(Arc<Clip>),
}

impl From<Picture> for Programme {
    fn from(picture: Picture) -> Programme {
        Programme::Picture(picture)
    }
}

impl From<Arc<Clip>> for Programme {
    fn from(clip: Arc<Clip>) -> Programme {
        Programme::Clip(clip)
    }
}

impl Programme {
    /// Opens a live programme that has been running for `age`. A clip starts from its beginning for every connection.
    pub fn tune_in(&self, age: Duration) -> Tuned {
        match self {
            Programme::Picture(picture) => {
                let frame = (age.as_nanos() / FRAME.as_nanos()) as u64;
                let counter = (frame % 16) as u8;
                Tuned::Picture {
                    picture: picture.clone(),
                    serial: None,
                    first: frame,
                    next: frame,
                    counters: Counters {
                        pat: counter,
                        pmt: counter,
                        video: counter,
                        audio: counter,
                        guide: [counter; 2],
                    },
                }
            }
            Programme::Clip(clip) => Tuned::Clip { clip: Arc::clone(clip), next: 0 },
        }
    }
}

/// The position of one connection in a programme.
#[derive(Debug)]
pub enum Tuned {
    Picture { picture: Picture, serial: Option<u32>, first: u64, next: u64, counters: Counters },
    Clip { clip: Arc<Clip>, next: usize },
}

#[derive(Debug, Clone, Copy)]
pub struct Counters {
    pat: u8,
    pmt: u8,
    video: u8,
    audio: u8,
    guide: [u8; 2],
}

impl Tuned {
    /// Writes connection number, frame number and length into each unit of a picture, so that a reader can check that
    /// nothing between its first and its last unit of a connection is missing.
    pub fn numbered(mut self, connection: u64) -> Tuned {
        if let Tuned::Picture { serial, .. } = &mut self {
            *serial = Some(connection as u32);
        }
        self
    }

    /// Appends the packets that are due `time` after the start.
    pub fn take(&mut self, time: Duration, out: &mut Vec<u8>) {
        match self {
            Tuned::Picture { picture, serial, first, next, counters } => {
                let due = *first + (time.as_nanos() / FRAME.as_nanos()) as u64;
                while *next <= due {
                    frame(picture, *serial, *next, *next == *first, counters, out);
                    *next += 1;
                }
            }
            Tuned::Clip { clip, next } => {
                while *next < clip.due.len() && clip.due[*next] <= time {
                    let size = clip.packet_bytes;
                    out.extend_from_slice(&clip.bytes[*next * size..(*next + 1) * size]);
                    *next += 1;
                }
            }
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self, Tuned::Clip { clip, next } if *next == clip.due.len())
    }
}

fn frame(
    picture: &Picture,
    serial: Option<u32>,
    number: u64,
    first: bool,
    counters: &mut Counters,
    out: &mut Vec<u8>,
) {
    let before = out.len();
    let pcr = (picture.start + number * FRAME_90K + picture.moved_by(number)) % TURN_90K;
    let time = (pcr + 18_000) % TURN_90K;
    let sound_time = (time + picture.sound_offset(number)) % TURN_90K;
    let is_key = number.is_multiple_of(picture.frames_per_gop);
    if first || is_key || number.is_multiple_of(3) {
        tables(picture, counters, out);
    }
    let marker = format!("<<{}>>", picture.label);
    let frame_bytes = (picture.bits_per_second * FRAME.as_millis() as u64 / 8_000) as usize;
    let mut sound = vec![0xFF, 0xF1];
    sound.extend_from_slice(marker.as_bytes());
    let sound_mark = begin_mark(&mut sound, serial);
    if let Some(video_pid) = picture.video_pid {
        sound.resize(150, 0x55);
        end_mark(&mut sound, sound_mark, serial, number);
        let mut image = vec![0, 0, 0, 1, 0x09, 0xF0];
        if is_key {
            image
                .extend_from_slice(&[0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x1E, 0, 0, 0, 1, 0x68, 0xCE, 0x38, 0x80]);
        }
        image.extend_from_slice(&[0, 0, 0, 1, if is_key { 0x65 } else { 0x41 }]);
        image.extend_from_slice(marker.as_bytes());
        let image_mark = begin_mark(&mut image, serial);
        let content_from = image.len().max(HEAD_BYTES);
        let used = out.len() - before + 2 * PACKET;
        image.resize(image.len().max(frame_bytes.saturating_sub(used) * 184 / 188), 0xAA);
        // The pictures differ, and no byte is zero, which could begin another unit.
        for (at, byte) in image.iter_mut().skip(content_from).take(8).enumerate() {
            *byte = 0x80 | (number >> (7 * at)) as u8;
        }
        end_mark(&mut image, image_mark, serial, number);
        unit(video_pid, 0xE0, time, Some(pcr), is_key, &image, &mut counters.video, out);
        unit(picture.audio_pid, 0xC0, sound_time, None, false, &sound, &mut counters.audio, out);
    } else {
        sound.resize(frame_bytes.saturating_sub(out.len() - before).max(150), 0x55);
        end_mark(&mut sound, sound_mark, serial, number);
        unit(picture.audio_pid, 0xC0, time, Some(pcr), true, &sound, &mut counters.audio, out);
    }
}

fn tables(picture: &Picture, counters: &mut Counters, out: &mut Vec<u8>) {
    let [high, low] = (picture.pmt_pid | 0xE000).to_be_bytes();
    section(0, &[0x00, 0, 1, 0xC1, 0, 0, 0, 1, high, low], &mut counters.pat, out);
    let clock_pid = picture.video_pid.unwrap_or(picture.audio_pid);
    let [high, low] = (clock_pid | 0xE000).to_be_bytes();
    let mut body = vec![0x02, 0, 1, 0xC1, 0, 0, high, low, 0xF0, 0];
    for (stream_type, pid) in [(0x1B, picture.video_pid), (0x0F, Some(picture.audio_pid))] {
        if let Some(pid) = pid {
            let [high, low] = (pid | 0xE000).to_be_bytes();
            body.extend_from_slice(&[stream_type, high, low, 0xF0, 0]);
        }
    }
    section(picture.pmt_pid, &body, &mut counters.pmt, out);
    for (n, pid) in [0x11, 0x12].into_iter().enumerate().filter(|it| !picture.guide[it.0].is_empty()) {
        section(pid, &picture.guide[n], &mut counters.guide[n], out);
    }
}

/// Appends a section; `body` is the table id and everything after the section length.
fn section(pid: u16, body: &[u8], counter: &mut u8, out: &mut Vec<u8>) {
    let mut bytes = vec![body[0], 0xB0, (body.len() - 1 + 4) as u8];
    bytes.extend_from_slice(&body[1..]);
    let crc = bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| {
            if crc >> 31 == 1 { crc << 1 ^ 0x04C1_1DB7 } else { crc << 1 }
        })
    });
    let start = out.len();
    out.extend_from_slice(&[0x47, 0x40 | (pid >> 8) as u8, pid as u8, 0x10 | *counter, 0]);
    out.extend_from_slice(&bytes);
    out.extend_from_slice(&crc.to_be_bytes());
    out.resize(start + PACKET, 0xFF);
    *counter = (*counter + 1) & 0x0F;
}

#[expect(clippy::too_many_arguments, reason = "a PES packet has these parts")]
fn unit(
    pid: u16,
    id: u8,
    time: u64,
    pcr: Option<u64>,
    random_access: bool,
    body: &[u8],
    counter: &mut u8,
    out: &mut Vec<u8>,
) {
    let t = time;
    let length = if id == 0xE0 { 0 } else { (body.len() + 8) as u16 };
    let mut bytes = vec![0, 0, 1, id, (length >> 8) as u8, length as u8, 0x80, 0x80, 5];
    bytes.extend_from_slice(&[
        0x21 | ((t >> 30) as u8 & 7) << 1,
        (t >> 22) as u8,
        ((t >> 15) as u8) << 1 | 1,
        (t >> 7) as u8,
        (t as u8) << 1 | 1,
    ]);
    bytes.extend_from_slice(body);
    let mut rest = bytes.as_slice();
    let mut first = true;
    while !rest.is_empty() {
        let mut field = Vec::new();
        if first && (pcr.is_some() || random_access) {
            field.push(if random_access { 0x40 } else { 0 } | if pcr.is_some() { 0x10 } else { 0 });
            if let Some(pcr) = pcr {
                field.extend_from_slice(&((pcr >> 1) as u32).to_be_bytes());
                field.extend_from_slice(&[(pcr as u8 & 1) << 7 | 0x7E, 0]);
            }
        }
        let mut room = PACKET - 4 - if field.is_empty() { 0 } else { field.len() + 1 };
        let mut stuffed = !field.is_empty();
        if rest.len() < room {
            // Stuffing in the adaptation field fills the packet.
            let mut missing = room - rest.len();
            if !stuffed {
                missing -= 1;
                stuffed = true;
                if missing > 0 {
                    field.push(0);
                    missing -= 1;
                }
            }
            field.resize(field.len() + missing, 0xFF);
            room = rest.len();
        }
        let unit_start = if first { 0x40 } else { 0 };
        let control = if stuffed { 0x30 } else { 0x10 };
        out.extend_from_slice(&[0x47, unit_start | (pid >> 8) as u8, pid as u8, control | *counter]);
        if stuffed {
            out.push(field.len() as u8);
            out.extend_from_slice(&field);
        }
        out.extend_from_slice(&rest[..room]);
        rest = &rest[room..];
        *counter = (*counter + 1) & 0x0F;
        first = false;
    }
}

/// Size of a PES header as `unit` writes it, in bytes.
const UNIT_HEADER: usize = 14;
/// Size of a mark: three numbers of eight hexadecimal digits.
const MARK: usize = 24;

/// Reserves space for a mark if the connection has a number.
fn begin_mark(body: &mut Vec<u8>, serial: Option<u32>) -> usize {
    let at = body.len();
    body.resize(at + if serial.is_some() { MARK } else { 0 }, b'0');
    at
}

/// Writes the mark, now that the length is known.
fn end_mark(body: &mut [u8], at: usize, serial: Option<u32>, frame: u64) {
    let Some(serial) = serial else { return };
    let length = body.len() + UNIT_HEADER;
    let mark = format!("{serial:08x}{:08x}{length:08x}", frame as u32);
    body[at..at + MARK].copy_from_slice(mark.as_bytes());
}

/// The origin of a PES packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub label: String,
    /// The provider's number of the connection.
    pub serial: u32,
    pub frame: u32,
    /// Size of the PES packet in bytes.
    pub length: usize,
}

/// Returns the mark in the first transport packet of a PES packet, if it has one.
pub fn mark_of(payload: &[u8]) -> Option<Mark> {
    let label = label_of(payload)?;
    let start = payload.windows(2).position(|pair| pair == b">>")? + 2;
    let number = |index: usize| {
        let digits = payload.get(start + index * 8..start + index * 8 + 8)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    Some(Mark { label, serial: number(0)?, frame: number(1)?, length: number(2)? as usize })
}

/// Returns the label in the first transport packet of a PES packet, if it has one.
pub fn label_of(payload: &[u8]) -> Option<String> {
    let start = payload.windows(2).position(|pair| pair == b"<<")? + 2;
    let length = payload[start..].windows(2).position(|pair| pair == b">>")?;
    String::from_utf8(payload[start..start + length].to_vec()).ok()
}

/// A transport stream made by ffmpeg, with the due time of each packet.
pub struct Clip {
    bytes: Vec<u8>,
    /// Size of a packet in `bytes`: 188, or more if it is padded.
    packet_bytes: usize,
    due: Vec<Duration>,
}

impl std::fmt::Debug for Clip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a clip of {} packets", self.due.len())
    }
}

/// Inputs of ffmpeg: a moving test picture and a tone.
pub const TEST_PICTURE: [&str; 8] = [
    "-f",
    "lavfi",
    "-i",
    "testsrc2=size=320x180:rate=25",
    "-f",
    "lavfi",
    "-i",
    "sine=frequency=440:sample_rate=48000",
];

impl Clip {
    /// Returns half a minute of one picture, as an encoder sends it whose input is frozen.
    pub async fn frozen() -> Arc<Clip> {
        let picture = "testsrc2=size=320x180:rate=25:duration=0.04,loop=loop=-1:size=1,setpts=N/25/TB";
        Clip::make(
            "frozen",
            &["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", "sine"],
            &[
                "-t", "30", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-g", "50",
                "-c:a", "aac",
            ],
        )
        .await
    }

    /// Returns twenty seconds of H.264 and AAC, encoded quickly and not compactly.
    pub async fn plain() -> Arc<Clip> {
        Clip::make(
            "programs",
            &["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-f", "lavfi", "-i", "sine"],
            &["-t", "20", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"],
        )
        .await
    }

    /// Makes a clip with ffmpeg, once per target directory; `output` contains the arguments of encoder and muxer.
    pub async fn make(name: &str, inputs: &[&str], output: &[&str]) -> Arc<Clip> {
        let path = tools::clips().join(format!("{name}.ts"));
        if !path.exists() {
            // Two tests may make it at the same time; the last rename wins and both files are equal.
            let draft = tools::clips().join(format!("{name}.{}.draft.ts", uuid::Uuid::new_v4()));
            let draft_text = draft.to_string_lossy().into_owned();
            let mut arguments = vec!["-hide_banner", "-loglevel", "error", "-y"];
            arguments.extend_from_slice(inputs);
            arguments.extend_from_slice(output);
            arguments.extend_from_slice(&["-f", "mpegts", &draft_text]);
            tools::text_of("ffmpeg", &arguments).await;
            std::fs::rename(&draft, &path).expect("the target directory can be written");
        }
        Arc::new(Clip::from_bytes(std::fs::read(&path).expect("the clip can be read")))
    }

    /// Computes the due time of each packet by interpolation between the PCRs of the first PID that has some.
    pub fn from_bytes(bytes: Vec<u8>) -> Clip {
        let mut clocks = Vec::new();
        let mut clock_pid = None;
        for (at, packet) in bytes.chunks_exact(PACKET).enumerate() {
            let pid = [packet[1] & 0x1F, packet[2]];
            if packet[3] & 0x20 != 0
                && packet[4] >= 7
                && packet[5] & 0x10 != 0
                && *clock_pid.get_or_insert(pid) == pid
            {
                let base = u64::from(u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]])) << 1;
                clocks.push((at, base | u64::from(packet[10] >> 7)));
            }
        }
        let n = bytes.len() / PACKET;
        let start = clocks.first().map_or(0, |clock| clock.1);
        let since = |clock: u64| Duration::from_micros((clock + TURN_90K - start) % TURN_90K * 100 / 9);
        let mut due = vec![Duration::ZERO; n];
        for pair in clocks.windows(2) {
            let (from, to) = (since(pair[0].1), since(pair[1].1));
            let gap = (pair[1].0 - pair[0].0) as u32;
            for step in 0..gap {
                due[pair[0].0 + step as usize] = from + to.saturating_sub(from) * step / gap;
            }
        }
        if let Some(last) = clocks.last() {
            due[last.0..].fill(since(last.1));
        }
        Clip { bytes, packet_bytes: PACKET, due }
    }

    /// Adds bytes before and after each packet, as in packets of 192 and 204 bytes.
    pub fn padded(self, before: usize, after: usize) -> Clip {
        let packet_bytes = before + PACKET + after;
        let mut bytes = Vec::with_capacity(self.due.len() * packet_bytes);
        for packet in self.bytes.chunks_exact(PACKET) {
            bytes.resize(bytes.len() + before, 0x2A);
            bytes.extend_from_slice(packet);
            bytes.resize(bytes.len() + after, 0x2A);
        }
        Clip { bytes, packet_bytes, due: self.due }
    }

    /// Returns when a packet is sent, after the start of the clip.
    pub fn due(&self, packet: usize) -> Duration {
        self.due[packet]
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn seconds(&self) -> f64 {
        self.due.last().map_or(0.0, Duration::as_secs_f64)
    }
}
