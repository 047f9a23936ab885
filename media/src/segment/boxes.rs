//! Writes the boxes of fragmented MP4 (ISO/IEC 14496-12).

use bytes::{Bytes, BytesMut};

use super::codec::audio::AudioConfig;
use super::codec::video::VideoConfig;

/// The time scale of video tracks: that of PTS and DTS.
pub(super) const VIDEO_SCALE: u32 = 90_000;
/// Track numbers of video and audio.
pub(super) const VIDEO_TRACK: u32 = 1;
pub(super) const AUDIO_TRACK: u32 = 2;

/// Flags of a sample that decoders can start with, and of any other sample.
const SYNC_SAMPLE: u32 = 0x0200_0000;
const OTHER_SAMPLE: u32 = 0x0101_0000;

/// A sample in a fragment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Decoding time in the time scale of its track.
    pub(super) time: u64,
    /// In the time scale of its track.
    pub(super) duration: u32,
    /// Presentation time minus decoding time.
    pub(super) offset: i32,
    pub(super) is_sync: bool,
    pub(super) data: Bytes,
}

/// Returns a box with these parts as its content.
pub(crate) fn make_box(name: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let length = 8 + parts.iter().map(|it| it.len()).sum::<usize>();
    let mut out = Vec::with_capacity(length);
    out.extend((length as u32).to_be_bytes());
    out.extend(name);
    parts.iter().for_each(|it| out.extend(*it));
    out
}

/// Returns a box with a version and flags.
fn full_box(name: &[u8; 4], version: u8, flags: u32, parts: &[&[u8]]) -> Vec<u8> {
    let head = (u32::from(version) << 24 | flags).to_be_bytes();
    make_box(name, &[&[&head[..]], parts].concat())
}

/// Returns the descriptor of an elementary stream (ISO/IEC 14496-1) with its object type, its stream type with the bits
/// behind it, and its specific information.
pub(crate) fn esds(object_type: u8, stream_type: u8, specific: &[u8]) -> Vec<u8> {
    let descriptor = |tag: u8, content: &[&[u8]]| {
        let length = content.iter().map(|it| it.len()).sum::<usize>();
        let mut out = vec![tag];
        // Seven bits per byte, the highest bit is set if another byte follows.
        if length >= 0x80 {
            out.push(0x80 | (length >> 7) as u8);
        }
        out.push(length as u8 & 0x7F);
        content.iter().for_each(|it| out.extend(*it));
        out
    };
    let info = if specific.is_empty() { Vec::new() } else { descriptor(5, &[specific]) };
    let config = descriptor(4, &[&[object_type, stream_type, 0, 0, 0], &[0; 8], &info]);
    let stream = descriptor(3, &[&[0, 0, 0], &config, &descriptor(6, &[&[2]])]);
    full_box(b"esds", 0, 0, &[&stream])
}

/// Returns the initialisation segment of a video track, an audio track, or both.
pub(super) fn init_segment(video: Option<&VideoConfig>, audio: Option<&AudioConfig>) -> Bytes {
    let brands: &[u8] = b"iso6\0\0\0\x01iso6iso5mp41dash";
    let mut out = make_box(b"ftyp", &[brands]);
    let tracks: Vec<Vec<u8>> =
        [video.map(video_track), audio.map(audio_track)].into_iter().flatten().collect();
    let extends: Vec<Vec<u8>> = [video.map(|_| VIDEO_TRACK), audio.map(|_| AUDIO_TRACK)]
        .into_iter()
        .flatten()
        .map(|id| full_box(b"trex", 0, 0, &[&id.to_be_bytes(), &1_u32.to_be_bytes(), &[0; 12]]))
        .collect();
    let header = [
        &[0; 8][..],
        &1000_u32.to_be_bytes(),
        &[0; 4],
        &[0, 1, 0, 0, 1, 0, 0, 0],
        &[0; 8],
        &MATRIX,
        &[0; 24],
    ]
    .concat();
    let header = full_box(b"mvhd", 0, 0, &[&header, &3_u32.to_be_bytes()]);
    out.extend(make_box(b"moov", &[&header, &tracks.concat(), &make_box(b"mvex", &[&extends.concat()])]));
    out.into()
}

const MATRIX: [u8; 36] = {
    let mut matrix = [0; 36];
    matrix[1] = 1;
    matrix[17] = 1;
    matrix[32] = 0x40;
    matrix
};

fn video_track(config: &VideoConfig) -> Vec<u8> {
    let (width, height) = (config.size.width as u16, config.size.height as u16);
    let entry = make_box(
        &config.entry,
        &[
            &[0, 0, 0, 0, 0, 0, 0, 1],
            &[0; 16],
            &width.to_be_bytes(),
            &height.to_be_bytes(),
            &[0, 0x48, 0, 0, 0, 0x48, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0; 32],
            &[0, 0x18, 0xFF, 0xFF],
            &config.config,
        ],
    );
    let media_header = full_box(b"vmhd", 0, 1, &[&[0; 8]]);
    track(VIDEO_TRACK, VIDEO_SCALE, (width, height), [b"vide", b"VideoHandler\0"], &media_header, &entry)
}

fn audio_track(config: &AudioConfig) -> Vec<u8> {
    // The field has 16 bits before the point; higher rates are in the configuration only.
    let rate = u16::try_from(config.rate).unwrap_or(0);
    let entry = make_box(
        &config.entry,
        &[
            &[0, 0, 0, 0, 0, 0, 0, 1],
            &[0; 8],
            &config.channels.to_be_bytes(),
            &[0, 16, 0, 0, 0, 0],
            &rate.to_be_bytes(),
            &[0, 0],
            &config.config,
        ],
    );
    let media_header = full_box(b"smhd", 0, 0, &[&[0; 4]]);
    track(AUDIO_TRACK, config.rate, (0, 0), [b"soun", b"SoundHandler\0"], &media_header, &entry)
}

fn track(
    id: u32,
    scale: u32,
    (width, height): (u16, u16),
    handler: [&[u8]; 2],
    media_header: &[u8],
    entry: &[u8],
) -> Vec<u8> {
    let volume: [u8; 2] = if id == AUDIO_TRACK { [1, 0] } else { [0, 0] };
    let header = full_box(
        b"tkhd",
        0,
        3,
        &[
            &[0; 8],
            &id.to_be_bytes(),
            &[0; 16],
            &[0; 4],
            &volume,
            &[0; 2],
            &MATRIX,
            &width.to_be_bytes(),
            &[0; 2],
            &height.to_be_bytes(),
            &[0; 2],
        ],
    );
    let [kind, name] = handler;
    // The language is undetermined.
    let times = full_box(b"mdhd", 0, 0, &[&[0; 8], &scale.to_be_bytes(), &[0; 4], &[0x55, 0xC4, 0, 0]]);
    let handler = full_box(b"hdlr", 0, 0, &[&[0; 4], kind, &[0; 12], name]);
    let reference = full_box(b"dref", 0, 0, &[&1_u32.to_be_bytes(), &full_box(b"url ", 0, 1, &[])]);
    let table = make_box(
        b"stbl",
        &[
            &full_box(b"stsd", 0, 0, &[&1_u32.to_be_bytes(), entry]),
            &full_box(b"stts", 0, 0, &[&[0; 4]]),
            &full_box(b"stsc", 0, 0, &[&[0; 4]]),
            &full_box(b"stsz", 0, 0, &[&[0; 8]]),
            &full_box(b"stco", 0, 0, &[&[0; 4]]),
        ],
    );
    let information = make_box(b"minf", &[media_header, &make_box(b"dinf", &[&reference]), &table]);
    make_box(b"trak", &[&header, &make_box(b"mdia", &[&times, &handler, &information])])
}

/// Returns a fragment with these samples; `is_first` if a segment begins with it. Decoding times come from the first
/// sample of each track.
pub(super) fn fragment(sequence: u32, is_first: bool, video: &[Sample], audio: &[Sample]) -> Bytes {
    let sequence = full_box(b"mfhd", 0, 0, &[&sequence.to_be_bytes()]);
    let run_bytes = |n_samples: usize, per_sample: usize| {
        if n_samples == 0 { 0 } else { 8 + 16 + 20 + 20 + n_samples * per_sample }
    };
    let moof_bytes = 8 + sequence.len() + run_bytes(video.len(), 16) + run_bytes(audio.len(), 8);
    let n_video: usize = video.iter().map(|it| it.data.len()).sum();
    let n_audio: usize = audio.iter().map(|it| it.data.len()).sum();
    let data = moof_bytes + 8;
    let kind: &[u8] = if is_first { b"\0\0\0\x18stypmsdh\0\0\0\0msdhmsix" } else { b"" };
    let mut out = BytesMut::with_capacity(kind.len() + data + n_video + n_audio);
    out.extend_from_slice(kind);
    out.extend_from_slice(&(moof_bytes as u32).to_be_bytes());
    out.extend_from_slice(b"moof");
    out.extend_from_slice(&sequence);
    put_run(&mut out, VIDEO_TRACK, video, data, true);
    put_run(&mut out, AUDIO_TRACK, audio, data + n_video, false);
    debug_assert_eq!(out.len(), kind.len() + moof_bytes, "the length of the box is that of its content");
    out.extend_from_slice(&((8 + n_video + n_audio) as u32).to_be_bytes());
    out.extend_from_slice(b"mdat");
    video.iter().chain(audio).for_each(|it| out.extend_from_slice(&it.data));
    out.freeze()
}

/// Writes the box of a track in a fragment.
fn put_run(out: &mut BytesMut, id: u32, samples: &[Sample], data: usize, is_video: bool) {
    let Some(first) = samples.first() else { return };
    // Offsets are from the beginning of the fragment.
    let header = full_box(b"tfhd", 0, 0x02_0000, &[&id.to_be_bytes()]);
    let time = full_box(b"tfdt", 1, 0, &[&first.time.to_be_bytes()]);
    let flags = if is_video { 0x0F01 } else { 0x0301 };
    let mut run = Vec::with_capacity(8 + samples.len() * 16);
    run.extend((samples.len() as u32).to_be_bytes());
    run.extend((data as u32).to_be_bytes());
    for sample in samples {
        run.extend(sample.duration.to_be_bytes());
        run.extend((sample.data.len() as u32).to_be_bytes());
        if is_video {
            run.extend(if sample.is_sync { SYNC_SAMPLE } else { OTHER_SAMPLE }.to_be_bytes());
            run.extend(sample.offset.to_be_bytes());
        }
    }
    let run = full_box(b"trun", 1, flags, &[&run]);
    out.extend_from_slice(&make_box(b"traf", &[&header, &time, &run]));
}
