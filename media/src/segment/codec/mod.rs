//! Names of codecs (RFC 6381) and the parameter sets that they follow from.

pub(super) mod audio;
pub(super) mod video;

use self::audio::{AudioFormat, FrameSearch};
use crate::ts::packet::Packet;
use crate::ts::picture::without_emulation;
use crate::ts::random_access::RandomAccess;
use crate::ts::tables::ElementaryStream;

/// Stream types of H.264.
pub(crate) const H264: [u8; 3] = [0x1B, 0x1F, 0x20];
/// Stream type of H.265.
pub(crate) const H265: u8 = 0x24;

/// Returns the sequence parameter set in the start of a PES packet with a key frame; `None` if it is not there as a whole.
pub(crate) fn parameter_set(pes: &[u8], access: RandomAccess) -> Option<Vec<u8>> {
    let RandomAccess::Video { stream_type, .. } = access else { return None };
    let [0, 0, 1, 0xE0..=0xEF | 0xFD, _, _, _, _, header, rest @ ..] = pes else { return None };
    let data = rest.get(usize::from(*header)..)?;
    let mut starts = memchr::memmem::find_iter(data, &[0, 0, 1]).peekable();
    while let Some(at) = starts.next() {
        // One that is not followed by another unit may continue behind these bytes.
        let unit = data.get(at + 3..*starts.peek()?)?;
        if is_sequence_set(unit, stream_type) {
            let n_zeros = unit.iter().rev().take_while(|it| **it == 0).count();
            return Some(unit[..unit.len() - n_zeros].to_vec());
        }
    }
    None
}

/// Returns whether the name of the codec follows from a parameter set.
pub(crate) fn is_named_by_set(access: RandomAccess) -> bool {
    let RandomAccess::Video { stream_type, .. } = access else { return false };
    H264.contains(&stream_type) || stream_type == H265
}

fn is_sequence_set(unit: &[u8], stream_type: u8) -> bool {
    match unit {
        [header, ..] if H264.contains(&stream_type) => header & 0x1F == 7,
        [header, _, ..] if stream_type == H265 => header >> 1 & 0x3F == 33,
        [0xB3, ..] => matches!(stream_type, 0x01 | 0x02),
        _ => false,
    }
}

/// Returns the name of the codec of the audio frame with which a PES packet begins.
pub(crate) fn audio_name(packet: Packet<'_>, format: AudioFormat) -> Option<String> {
    /// Longer than any frame.
    const FRAME_BYTES_MAX: usize = 16 << 10;
    let payload = if packet.is_scrambled() { return None } else { packet.payload() };
    let [0, 0, 1, _, _, _, _, _, header, rest @ ..] = payload else { return None };
    // The name follows from the first bytes; the others may be anything.
    let mut bytes = rest.get(usize::from(*header)..)?.to_vec();
    bytes.resize(FRAME_BYTES_MAX, 0);
    match format.find(&bytes) {
        FrameSearch::Frame(frame) => Some(frame.config.codec),
        FrameSearch::Short | FrameSearch::Garbage(_) => None,
    }
}

/// Returns the name of the codec of a stream as RFC 6381 writes it. The name of a video codec follows from its sequence
/// parameter set.
pub(crate) fn codec_name(stream: &ElementaryStream, parameter_set: &[u8]) -> Option<String> {
    match stream.codec() {
        "H.264" => h264_name(parameter_set),
        "H.265" => h265_name(parameter_set),
        "MPEG-1 video" => Some("mp4v.6A".to_owned()),
        "MPEG-2 video" => Some("mp4v.61".to_owned()),
        "AAC" => Some("mp4a.40.2".to_owned()),
        "AC-3" => Some("ac-3".to_owned()),
        "E-AC-3" => Some("ec-3".to_owned()),
        "MPEG audio" => Some("mp4a.40.34".to_owned()),
        "Opus" => Some("opus".to_owned()),
        _ => None,
    }
}

/// Returns the name of H.264 with profile, constraints and level of a sequence parameter set.
pub(crate) fn h264_name(set: &[u8]) -> Option<String> {
    let [_, profile, constraints, level, ..] = set else { return None };
    Some(format!("avc1.{profile:02x}{constraints:02x}{level:02x}"))
}

/// Returns the name of H.265 with profile, tier and level of a sequence parameter set (ISO/IEC 14496-15, annex E).
pub(crate) fn h265_name(set: &[u8]) -> Option<String> {
    let bytes = without_emulation(set);
    let profile = bytes.get(3..15)?;
    let space = match profile[0] >> 6 {
        0 => "",
        1 => "A",
        2 => "B",
        _ => "C",
    };
    let flags = u32::from_be_bytes([profile[1], profile[2], profile[3], profile[4]]).reverse_bits();
    let tier = if profile[0] & 0x20 == 0 { 'L' } else { 'H' };
    let mut name = format!("hvc1.{space}{}.{flags:X}.{tier}{}", profile[0] & 0x1F, profile[11]);
    let constraints = &profile[5..11];
    let n_used = constraints.iter().rposition(|it| *it != 0).map_or(0, |it| it + 1);
    for byte in &constraints[..n_used] {
        name.push_str(&format!(".{byte:X}"));
    }
    Some(name)
}
