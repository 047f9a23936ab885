//! The newest key frame of a ring as an MP4 with one picture.
//!
//! The bytes are those that the ring already has: nothing is opened, and no tail is created, so nobody counts as a viewer.

use bytes::Bytes;
use tokio::time::Instant;

use super::boxes::{Sample, VIDEO_SCALE, fragment, init_segment};
use super::codec::video::{Picture, VideoConfig, VideoReader};
use super::demux::{Pes, PesCollector};
use super::fmp4::{append, is_second_field, stream_type_of, video_format};
use crate::ring::{Ring, StoredGroup};
use crate::ts::packet::{Packet, packets};
use crate::ts::random_access::RandomAccess;
use crate::ts::tables::StreamKind;

/// A picture of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Still {
    /// Number of the chunk that the key frame begins.
    pub sequence: u64,
    /// An MP4 with one picture, without sound.
    pub content: Bytes,
    /// The codec as RFC 6381 names it.
    pub codec: String,
}

/// Why a channel has no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StillError {
    /// The ring has no random-access point, or the key frame after the newest one has not arrived as a whole.
    #[error("no whole key frame has arrived yet")]
    NoKeyFrame,
    #[error("its picture is scrambled")]
    Scrambled,
    #[error("it has no picture")]
    NoVideo,
    /// The name of the codec.
    #[error("MP4 cannot carry its codec, {0}")]
    Codec(&'static str),
}

/// Packs the newest key frame of one ring on demand, and keeps the last one.
#[derive(Debug, Default)]
pub struct StillCache {
    newest: Option<Packed>,
}

/// The outcome for a random-access point.
#[derive(Debug)]
struct Packed {
    sequence: u64,
    still: Result<Still, StillError>,
}

impl StillCache {
    /// Returns the newest whole key frame in the ring. Each is packed once. Takes some milliseconds for a new one.
    ///
    /// # Errors
    /// The ring has none that can be packed.
    pub fn newest(&mut self, ring: &Ring) -> Result<Still, StillError> {
        for group in ring.newest_groups() {
            if let Some(known) = self.newest.as_ref().filter(|it| it.sequence == group.sequence) {
                return known.still.clone();
            }
            let still = pack(&group);
            // The rest of the picture may follow, so this group is tried again. The one before it is whole.
            if still != Err(StillError::NoKeyFrame) {
                let packed = Packed { sequence: group.sequence, still: still.clone() };
                self.newest = Some(packed);
                return still;
            }
        }
        Err(StillError::NoKeyFrame)
    }
}

/// Packs the first picture of a group.
fn pack(group: &StoredGroup) -> Result<Still, StillError> {
    let tables = group.tables.as_ref().ok_or(StillError::NoKeyFrame)?;
    let streams = &tables.pmt.streams;
    let stream = streams.iter().find(|it| tables.pmt.kind(it) == StreamKind::Video);
    let stream = stream.ok_or(StillError::NoVideo)?;
    let format = video_format(stream).ok_or_else(|| StillError::Codec(stream.codec()))?;
    let access = RandomAccess::Video { pid: stream.pid, stream_type: stream_type_of(format) };
    let mut search = Search { reader: VideoReader::new(format), first: None };
    let mut collector = PesCollector::new();
    let mut n_scrambled = 0;
    for packet in group.chunks.iter().flat_map(|it| packets(it)).map(Packet::new) {
        if !packet.is_valid() || packet.pid() != stream.pid || !packet.has_payload() {
            continue;
        }
        n_scrambled += usize::from(packet.is_scrambled());
        let is_point = access.is_start(packet);
        for pes in collector.push(packet, is_point, Instant::now()).into_iter().flatten() {
            if search.add(&pes) {
                return search.still(group.sequence).ok_or(StillError::NoKeyFrame);
            }
        }
    }
    if group.is_closed
        && let Some(pes) = collector.take()
    {
        search.add(&pes);
    }
    if group.is_closed
        && let Some(still) = search.still(group.sequence)
    {
        return Ok(still);
    }
    Err(if n_scrambled > 0 { StillError::Scrambled } else { StillError::NoKeyFrame })
}

/// Looks for the first picture with its parameters.
struct Search {
    reader: VideoReader,
    first: Option<(Picture, VideoConfig)>,
}

impl Search {
    /// Takes a PES packet, and returns whether the picture is complete. One of two fields needs the other one.
    fn add(&mut self, pes: &Pes) -> bool {
        let Some(mut picture) = self.reader.read(&pes.data) else { return false };
        if let Some((first, _)) = &mut self.first {
            if is_second_field(first.field, picture.field) {
                append(&mut first.data, &picture.data);
            }
            return true;
        }
        // Decoders need the parameters, so pictures before them are left out.
        if let Some(config) = picture.config.take().filter(|_| pes.is_point || picture.is_key) {
            let is_field = picture.field.is_some();
            self.first = Some((picture, config));
            return !is_field;
        }
        false
    }

    /// Returns the picture as an MP4; `None` if it was not found.
    fn still(self, sequence: u64) -> Option<Still> {
        let (picture, config) = self.first?;
        // A second: players show it, and stay at it.
        let sample = Sample { time: 0, duration: VIDEO_SCALE, offset: 0, is_sync: true, data: picture.data };
        let content = [init_segment(Some(&config), None), fragment(1, false, &[sample], &[])].concat();
        Some(Still { sequence, content: content.into(), codec: config.codec })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::ring::{Budget, JoinPoint, RingSettings, Writer, ring};
    use crate::testing::{TsSource, boxes, labels_in};
    use crate::ts::packet::packets_mut;

    fn new_ring() -> (Writer, Ring) {
        ring(RingSettings::default(), &Budget::new(64 << 20))
    }

    /// Writes seconds of a source, a picture at a time.
    fn write(writer: &mut Writer, source: &TsSource, from: f64, to: f64) {
        let mut stream = source.stream(Duration::from_secs_f64(from));
        while stream.at() < Duration::from_secs_f64(to) {
            writer.push_packets(&stream.frame(), Instant::now());
        }
        writer.flush(Instant::now());
    }

    fn source(label: &str) -> TsSource {
        TsSource::new(label)
    }

    /// Returns the names of the boxes and the number of samples of an MP4.
    fn shape(content: &[u8]) -> (Vec<String>, u32) {
        let all = boxes(content);
        let names = all.iter().map(|it| String::from_utf8_lossy(&it.0).into_owned()).collect();
        let moof = boxes(all.iter().find(|it| &it.0 == b"moof").unwrap().1);
        let traf = boxes(moof.iter().find(|it| &it.0 == b"traf").unwrap().1);
        let trun = traf.iter().find(|it| &it.0 == b"trun").unwrap().1;
        (names, u32::from_be_bytes(trun[4..8].try_into().unwrap()))
    }

    #[track_caller]
    fn check(what: &str, write_to: impl FnOnce(&mut Writer), expected: Result<&str, StillError>) {
        let (mut writer, ring) = new_ring();
        write_to(&mut writer);
        let still = StillCache::default().newest(&ring);
        assert_eq!(still.as_ref().map(|it| it.codec.as_str()).map_err(|it| *it), expected, "{what}");
        if let Ok(still) = still {
            assert_eq!(shape(&still.content).1, 1, "{what}");
        }
        assert_eq!((ring.n_tails(), ring.meter().bytes_out()), (0, 0), "{what}");
    }

    #[test]
    fn the_newest_whole_key_frame_is_an_mp4_with_one_picture() {
        let avc = Ok("avc1.42c01e");
        let one = || source("one");
        let video = |stream_type| TsSource { video: Some((0x100, stream_type)), ..one() };
        for (what, source, seconds, expected) in [
            ("two seconds", one(), (0.0, 2.2), avc),
            ("the first picture and the next one", one(), (0.0, 0.1), avc),
            ("unmarked key frames", TsSource { is_marked: false, ..one() }, (0.0, 2.0), avc),
            ("half a picture", one(), (0.0, 0.02), Err(StillError::NoKeyFrame)),
            ("nothing", one(), (0.0, 0.0), Err(StillError::NoKeyFrame)),
            ("no key frame", TsSource { gop: 1000, ..one() }, (1.0, 3.0), Err(StillError::NoKeyFrame)),
            ("radio", TsSource { video: None, ..one() }, (0.0, 2.0), Err(StillError::NoVideo)),
            ("another codec", video(0x42), (0.0, 2.0), Err(StillError::Codec("AVS"))),
        ] {
            check(what, |it| write(it, &source, seconds.0, seconds.1), expected);
        }
        check("scrambled", write_scrambled, Err(StillError::Scrambled));
        check(
            "after a gap",
            |it| {
                write(it, &source("one"), 0.0, 2.2);
                it.begin_gap();
                it.filler(Instant::now());
            },
            avc,
        );
    }

    fn write_scrambled(writer: &mut Writer) {
        let mut bytes = source("one").bytes(Duration::ZERO, Duration::from_secs(2)).to_vec();
        for packet in packets_mut(&mut bytes).filter(|it| Packet::new(it).pid() == 0x100) {
            packet[3] |= 0x80;
        }
        writer.push_packets(&bytes, Instant::now());
        writer.flush(Instant::now());
    }

    #[test]
    fn a_picture_is_packed_once_until_the_next_key_frame_is_whole() {
        let (mut writer, ring) = new_ring();
        let mut cache = StillCache::default();
        let mut stream = source("one").stream(Duration::ZERO);
        let mut newest_at = |millis| {
            while stream.at() < Duration::from_millis(millis) {
                writer.push_packets(&stream.frame(), Instant::now());
            }
            writer.flush(Instant::now());
            cache.newest(&ring).unwrap()
        };
        let first = newest_at(900);
        assert_eq!(labels_in(&first.content), ["one"]);
        let same = newest_at(1_020);
        assert_eq!(same.sequence, first.sequence, "the next key frame is not whole yet");
        assert_eq!(same.content.as_ptr(), first.content.as_ptr(), "the picture was packed again");
        let next = newest_at(1_500);
        assert!(next.sequence > first.sequence && next.content != first.content);
    }

    #[test]
    fn a_reader_of_pictures_holds_up_no_viewer() {
        let (mut writer, ring) = new_ring();
        let _viewer = ring.tail(JoinPoint::Oldest, None);
        write(&mut writer, &source("one"), 0.0, 2.2);
        StillCache::default().newest(&ring).unwrap();
        assert_eq!((ring.n_tails(), ring.meter().bytes_out(), ring.ended()), (1, 0, None));
    }

    /// The clips of the demo are made by x264.
    #[test]
    fn a_key_frame_of_a_real_encoder_has_its_parameters_and_one_sample() {
        let clips = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/demo");
        for name in ["fractal-a.ts", "testcard-a.ts"] {
            let (mut writer, ring) = new_ring();
            writer.push_packets(&fs::read(clips.join(name)).unwrap(), Instant::now());
            writer.flush(Instant::now());
            let still = StillCache::default().newest(&ring).unwrap();
            assert!(still.codec.starts_with("avc1."), "{name}: {}", still.codec);
            let (names, n_samples) = shape(&still.content);
            assert_eq!((names.join(" ").as_str(), n_samples), ("ftyp moov moof mdat", 1), "{name}");
            assert!((2_000..100_000).contains(&still.content.len()), "{name}: {}", still.content.len());
        }
    }
}
