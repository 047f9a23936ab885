//! A short embedded clip that is played in a loop like a live source.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::ts::align::Aligner;
use crate::ts::clock::{PCR_MODULUS, STAMP_HZ, STAMP_MODULUS, Unwrap, distance};
use crate::ts::packet::{NULL_PID, PACKET, Packet, PacketBytes, packets, set_cc, set_pcr};
use crate::ts::pes::{map_stamps, stamps};
use crate::ts::table_reader::TableReader;
use crate::ts::tables::Tables;

/// A run ends after this many packets, or after [`RUN_PACKETS_MIN`] if the next packet is due later.
const RUN_PACKETS_MAX: usize = 28;
const RUN_PACKETS_MIN: usize = 7;
/// Packets that are due within this time of the first of a run are part of it.
const RUN_TIME: Duration = Duration::from_millis(10);

/// A transport stream of one programme that can be repeated without a seam.
///
/// Its length should be a whole number of video frames and of audio frames, with one audio frame per PES
/// packet, so that no seam can be heard.
#[derive(Clone, Debug)]
pub struct Clip {
    loop_once: Arc<LoopData>,
}

#[derive(Debug)]
struct LoopData {
    packets: Vec<(Duration, PacketBytes)>,
    /// Length in ticks of 90 kHz, including the last frame.
    ticks: u64,
}

/// The reason why a clip cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClipError {
    /// No packets, or no PAT and PMT.
    #[error("the clip contains no programme")]
    NoProgramme,
    /// Fewer than two time stamps on the stream that determines the length, or decreasing time stamps.
    #[error("the clip has no length")]
    NoLength,
    /// Fewer than two clock references.
    #[error("the clip has no clock")]
    NoClock,
}

impl Clip {
    /// Parses a clip.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, ClipError> {
        let mut aligner = Aligner::new();
        aligner.push(bytes.into());
        let mut all: Vec<PacketBytes> = Vec::new();
        while let Some(run) = aligner.next() {
            all.extend(packets(&run).filter(|it| Packet::new(it).pid() != NULL_PID));
        }
        let mut reader = TableReader::new();
        all.iter().for_each(|it| _ = reader.packet(Packet::new(it)));
        let tables = reader.tables().ok_or(ClipError::NoProgramme)?;
        let ticks = length(&all, tables).ok_or(ClipError::NoLength)?;
        let all = without_overlap(all, tables, ticks);
        let due = due_times(&all, tables.pmt.pcr_pid).ok_or(ClipError::NoClock)?;
        // The last packets of a round must not be due after the first of the next.
        let length = ticks_to_duration(ticks);
        let packets = due.into_iter().map(|it| it.min(length)).zip(all).collect();
        Ok(Self { loop_once: Arc::new(LoopData { packets, ticks }) })
    }

    /// Returns the length of one round.
    pub fn length(&self) -> Duration {
        ticks_to_duration(self.loop_once.ticks)
    }

    /// Creates a player that starts at the beginning and never ends.
    pub fn player(&self) -> ClipPlayer {
        ClipPlayer {
            loop_once: self.loop_once.clone(),
            next: 0,
            n_rounds: 0,
            offset: 0,
            counters: Vec::new(),
        }
    }
}

/// Plays a clip. Time stamps and continuity counters continue from round to round.
#[derive(Clone, Debug)]
pub struct ClipPlayer {
    loop_once: Arc<LoopData>,
    /// Index of the next packet of the round.
    next: usize,
    n_rounds: u64,
    /// Added to all time stamps, in ticks of 90 kHz.
    offset: u64,
    /// The last continuity counter of each PID.
    counters: Vec<(u16, u8)>,
}

impl ClipPlayer {
    /// Shifts all time stamps by this much, as if the clip had played for that long. The due times of packets
    /// do not change.
    #[must_use]
    pub fn starting_at(mut self, offset: Duration) -> Self {
        self.offset =
            (offset.as_nanos() * u128::from(STAMP_HZ) / 1_000_000_000 % u128::from(STAMP_MODULUS)) as u64;
        self
    }

    /// Returns the next packets and the time after the start at which the first of them is due.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is not an iterator")]
    pub fn next(&mut self) -> (Duration, Bytes) {
        let round = self.loop_once.clone();
        let start = Duration::from_nanos(
            (u128::from(self.n_rounds) * u128::from(round.ticks) * 1_000_000_000 / u128::from(STAMP_HZ))
                as u64,
        );
        let shift = (self.offset + self.n_rounds.wrapping_mul(round.ticks)) % STAMP_MODULUS;
        let first = round.packets[self.next].0;
        let run = round.packets[self.next..].iter().enumerate().take_while(|(index, (due, _))| {
            *index < RUN_PACKETS_MIN || (*index < RUN_PACKETS_MAX && *due <= first + RUN_TIME)
        });
        let mut bytes = BytesMut::with_capacity(RUN_PACKETS_MAX * PACKET);
        let mut n_packets = 0;
        for (_, (_, packet)) in run {
            let mut packet = *packet;
            self.restamp(&mut packet, shift);
            bytes.extend_from_slice(&packet);
            n_packets += 1;
        }
        self.next += n_packets;
        if self.next == round.packets.len() {
            self.next = 0;
            self.n_rounds += 1;
        }
        (start + first, bytes.freeze())
    }

    fn restamp(&mut self, packet: &mut PacketBytes, shift: u64) {
        let view = Packet::new(packet);
        let (pid, counts) = (view.pid(), view.has_payload());
        if let Some(pcr) = view.pcr() {
            set_pcr(packet, (pcr + shift * 300) % PCR_MODULUS);
        }
        map_stamps(packet, |stamp| stamp + shift);
        let index = self.counters.iter().position(|it| it.0 == pid).unwrap_or_else(|| {
            self.counters.push((pid, 0x0F));
            self.counters.len() - 1
        });
        let counter = &mut self.counters[index].1;
        if counts {
            *counter = (*counter + 1) & 0x0F;
        }
        set_cc(packet, *counter);
    }
}

/// Returns the length of one round: the time from the first to the last frame of the video (of the audio,
/// without video), plus one frame.
fn length(all: &[PacketBytes], tables: &Tables) -> Option<u64> {
    let pid = tables.video().or(tables.audio())?.pid;
    let mut clock = Unwrap::stamps();
    let of_pid = all.iter().map(Packet::new).filter(|it| it.pid() == pid);
    let times: Vec<u64> = of_pid.filter_map(|it| stamps(it).decode()).map(|it| clock.unwrap(it)).collect();
    let (first, last) = (*times.first()?, *times.last()?);
    let n_frames = times.len() as u64;
    let span = last.checked_sub(first).filter(|it| *it > 0)?;
    Some((span * n_frames + (n_frames - 1) / 2) / (n_frames - 1))
}

/// Removes PES packets that start a whole round after the first of their stream, and their continuations: the
/// priming of an encoder makes the audio one frame too long.
fn without_overlap(all: Vec<PacketBytes>, tables: &Tables, ticks: u64) -> Vec<PacketBytes> {
    struct Stream {
        pid: u16,
        first: Option<u64>,
        has_ended: bool,
    }
    let mut streams: Vec<Stream> =
        tables.pids().map(|pid| Stream { pid, first: None, has_ended: false }).collect();
    let mut keeps = |packet: &PacketBytes| {
        let packet = Packet::new(packet);
        let Some(stream) = streams.iter_mut().find(|it| it.pid == packet.pid()) else { return true };
        if let Some(stamp) = stamps(packet).decode() {
            let first = *stream.first.get_or_insert(stamp);
            stream.has_ended = distance(first, stamp, STAMP_MODULUS) >= ticks as i64;
        }
        !stream.has_ended
    };
    all.into_iter().filter(|it| keeps(it)).collect()
}

/// Returns when each packet is due after the first, interpolated between two clock references.
fn due_times(all: &[PacketBytes], pcr_pid: u16) -> Option<Vec<Duration>> {
    let mut clock = Unwrap::pcr();
    let readings: Vec<(usize, u64)> = all
        .iter()
        .map(Packet::new)
        .enumerate()
        .filter(|(_, it)| it.pid() == pcr_pid)
        .filter_map(|(index, it)| Some((index, clock.unwrap(it.pcr()?))))
        .collect();
    let [(_, begin), .., _] = readings[..] else { return None };
    let mut pairs = readings.windows(2);
    let mut pair = pairs.next()?;
    let mut due = Vec::with_capacity(all.len());
    let mut latest = Duration::ZERO;
    for index in 0..all.len() {
        while index >= pair[1].0
            && let Some(next) = pairs.next()
        {
            pair = next;
        }
        let [(from, from_pcr), (to, to_pcr)] = [pair[0], pair[1]];
        let rate = (to_pcr as f64 - from_pcr as f64) / (to - from) as f64;
        let pcr = from_pcr as f64 + rate * (index as f64 - from as f64) - begin as f64;
        latest = latest.max(Duration::from_secs_f64((pcr / 27e6).max(0.0)));
        due.push(latest);
    }
    Some(due)
}

fn ticks_to_duration(ticks: u64) -> Duration {
    Duration::from_nanos((u128::from(ticks) * 1_000_000_000 / u128::from(STAMP_HZ)) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::process::Command;

    use super::*;

    /// Creates a clip like that of the demo: 25 pictures and 46.875 audio frames per second, so 3.84 s are a
    /// whole number of both, with one audio frame per PES packet.
    fn clip_from_ffmpeg() -> &'static [u8] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clip.ts");
        run(Command::new("ffmpeg")
            .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"])
            .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "3.84"])
            .args(["-c:v", "libx264", "-preset", "ultrafast", "-g", "24", "-bf", "2", "-b:v", "300k"])
            .args(["-c:a", "aac", "-b:a", "64k", "-pes_payload_size", "0", "-f", "mpegts"])
            .arg(&file));
        Box::leak(std::fs::read(&file).unwrap().into())
    }

    fn run(command: &mut Command) -> String {
        let name = command.get_program().to_string_lossy().into_owned();
        let output = command
            .output()
            .unwrap_or_else(|cause| panic!("{name}: {cause}; install it with `apt-get install ffmpeg`"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name} failed: {errors}");
        assert_eq!(errors, "", "{name} reports errors");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the decoding times in seconds per stream, as reported by ffprobe.
    fn probed(bytes: &[u8]) -> HashMap<String, Vec<f64>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("played.ts");
        std::fs::write(&file, bytes).unwrap();
        let table = run(Command::new("ffprobe")
            .args(["-v", "error", "-show_entries", "packet=codec_type,dts_time", "-of", "csv=p=0"])
            .arg(&file));
        let mut times: HashMap<String, Vec<f64>> = HashMap::new();
        for line in table.lines() {
            // Packets with side data have additional fields.
            let mut fields = line.split(',');
            let (Some(kind), Some(dts)) = (fields.next(), fields.next()) else { continue };
            times.entry(kind.to_owned()).or_default().push(dts.parse().unwrap());
        }
        times
    }

    #[test]
    fn a_clip_loops_without_a_seam_even_where_time_stamps_wrap() {
        let clip = Clip::parse(clip_from_ffmpeg()).unwrap();
        assert_eq!(clip.length(), Duration::from_millis(3840));
        let wraps_in_the_third_round = Duration::from_secs_f64((1u64 << 33) as f64 / 90e3 - 9.0);
        for offset in [Duration::ZERO, wraps_in_the_third_round] {
            let mut player = clip.player().starting_at(offset);
            let mut bytes = Vec::new();
            let mut latest = Duration::ZERO;
            while latest < clip.length() * 5 {
                let (due, packets) = player.next();
                assert!(due >= latest, "{due:?} after {latest:?}");
                assert!(due - latest < Duration::from_millis(100));
                assert!(packets.len() % PACKET == 0 && packets.len() <= RUN_PACKETS_MAX * PACKET);
                latest = due;
                bytes.extend_from_slice(&packets);
            }
            let times = probed(&bytes);
            assert_eq!(times.len(), 2);
            for (kind, times) in &times {
                let frame = if kind == "video" { 0.040 } else { 1024.0 / 48_000.0 };
                let steps = times.windows(2).map(|it| it[1] - it[0]);
                let wrong_steps: Vec<f64> = steps.filter(|it| (it - frame).abs() > 0.001).collect();
                assert_eq!(wrong_steps, [], "{kind} from {offset:?}");
                assert!(times.len() as f64 * frame > 19.0);
            }
        }
    }

    #[test]
    fn clocks_and_counters_continue_across_the_seam() {
        let clip = Clip::parse(clip_from_ffmpeg()).unwrap();
        let mut player = clip.player();
        let mut counters: HashMap<u16, u8> = HashMap::new();
        let mut clock = Unwrap::pcr();
        let mut last_pcr = None;
        let mut due = Duration::ZERO;
        while due < clip.length() * 3 {
            let (next, bytes) = player.next();
            due = next;
            for packet in packets(&bytes).map(Packet::new) {
                let expected =
                    counters.get(&packet.pid()).map(|it| (it + u8::from(packet.has_payload())) & 0x0F);
                assert!(expected.is_none_or(|it| it == packet.cc()));
                counters.insert(packet.pid(), packet.cc());
                let Some(pcr) = packet.pcr() else { continue };
                let pcr = clock.unwrap(pcr);
                if let Some(last) = last_pcr.replace(pcr) {
                    assert!(pcr > last && pcr - last < 27_000 * 101, "{last} {pcr}");
                }
            }
        }
    }

    #[test]
    fn invalid_clips_are_rejected_with_a_reason() {
        let rejected = |bytes: &'static [u8]| Clip::parse(bytes).unwrap_err();
        assert_eq!(rejected(b""), ClipError::NoProgramme);
        assert_eq!(rejected(&[0x47; 5000]), ClipError::NoProgramme);
        let mut builder = crate::ts::build::Builder::video();
        let tables: &'static [u8] = Box::leak(builder.tables().concat().into());
        assert_eq!(rejected(tables), ClipError::NoLength);
    }
}
