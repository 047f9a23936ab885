//! Payloads that ffmpeg cannot generate: teletext, DVB subtitles, metadata and cue messages.

use crate::support::ts_check::crc32;

/// Stream id of private data with a PES header.
const PRIVATE_STREAM_1: u8 = 0xBD;

/// Returns a PES packet of metadata (SMPTE 336M, MISB ST 0601) without a time stamp: a local set with one item.
pub fn klv() -> Vec<u8> {
    const KEY: [u8; 16] = [0x06, 0x0E, 0x2B, 0x34, 2, 0x0B, 1, 1, 0x0E, 1, 3, 1, 1, 0, 0, 0];
    // The version of the set.
    const ITEM: [u8; 3] = [65, 1, 19];
    pes(PRIVATE_STREAM_1, None, 9, &[&KEY[..], &[ITEM.len() as u8], &ITEM].concat())
}

/// Returns a PES packet of EBU teletext (EN 300 472): `n_lines` data units with empty lines of page 100.
pub fn teletext(pts: Option<u64>) -> Vec<u8> {
    // The header is padded to 45 bytes, and a data unit has 46 bytes, so that whole units fill transport packets.
    const HEADER: usize = 45;
    const N_LINES: u8 = 3;
    let mut data = vec![0x10];
    for line in 0..N_LINES {
        // Data unit of teletext that is not a subtitle, field and line, framing code.
        data.extend([0x02, 0x2C, 0xC0 | (7 + line), 0xE4]);
        // Row 1 of magazine 1 in Hamming code, then spaces with odd parity; all bits reversed.
        data.extend([0xE3, 0xA8]);
        data.extend([0x04; 40]);
    }
    pes(PRIVATE_STREAM_1, pts, HEADER, &data)
}

/// Returns a PES packet with a DVB subtitle (EN 300 743): an empty page of 320 x 180.
pub fn subtitle(pts: Option<u64>, number: u8) -> Vec<u8> {
    const PAGE: [u8; 2] = [0, 1];
    let segment = |kind: u8, body: &[u8]| {
        let length = (body.len() as u16).to_be_bytes();
        [&[0x0F, kind][..], &PAGE, &length, body].concat()
    };
    let display = [number << 4, 1, 63, 0, 179];
    // Visible for five seconds, without regions.
    let page = [5, number << 4 | 0x08];
    let segments = [segment(0x14, &display), segment(0x10, &page), segment(0x80, &[])].concat();
    let data = [&[0x20, 0x00][..], &segments, &[0xFF]].concat();
    pes(PRIVATE_STREAM_1, pts, 14, &data)
}

/// Returns a cue message (SCTE 35): the section of a time signal at this time.
pub fn time_signal(pts: u64) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 0, 0, 0, 0xFF, 0xF0, 5, 6];
    body.extend([0xFE | (pts >> 32) as u8 & 1]);
    body.extend((pts as u32).to_be_bytes());
    // No descriptors.
    body.extend([0, 0]);
    let length = (body.len() + 4) as u8;
    let mut section = [&[0xFC, 0x30, length][..], &body].concat();
    let checksum = crc32(&section).to_be_bytes();
    section.extend(checksum);
    section
}

/// Returns a PES packet with a header of `header` bytes.
fn pes(stream_id: u8, pts: Option<u64>, header: usize, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 1, stream_id];
    out.extend(((header - 6 + data.len()) as u16).to_be_bytes());
    out.extend([0x84, if pts.is_some() { 0x80 } else { 0 }, (header - 9) as u8]);
    if let Some(pts) = pts {
        out.extend([
            0x21 | (pts >> 29) as u8 & 0x0E,
            (pts >> 22) as u8,
            0x01 | (pts >> 14) as u8 & 0xFE,
            (pts >> 7) as u8,
            0x01 | (pts << 1) as u8,
        ]);
    }
    out.resize(header, 0xFF);
    out.extend(data);
    out
}
