//! Finds audio frames in the bytes of a station.

use bytes::{Buf, Bytes, BytesMut};

use crate::ts::audio_frame::{FRAME_HEAD_BYTES, FrameFormat, FrameHeader};

/// Length of the header of an ID3 tag.
const TAG_HEAD_BYTES: usize = 10;
/// Longest ID3 tag that is skipped as one. Tags contain pictures.
const TAG_BYTES_MAX: usize = 16 << 20;

/// Splits bytes, in pieces of any size, into audio frames.
///
/// A frame begins where two headers of the same format follow each other at the distance that the first one states, or
/// behind a frame of its format. ID3 tags at the start and between frames are skipped, and so is everything else that is
/// not a frame.
#[derive(Debug, Default)]
pub struct FrameReader {
    held: BytesMut,
    /// The format of the frame that `held` begins with; `None` while one is searched for.
    format: Option<FrameFormat>,
    /// Bytes of the current tag that have not arrived.
    n_missing_of_tag: usize,
    /// Bytes of tags.
    n_of_tags: usize,
    /// Bytes since the last frame that belong neither to a frame nor to a tag.
    n_skipped: usize,
}

impl FrameReader {
    /// Takes the next bytes. [`Self::next_frame`] has to be called until it returns `None` before more are taken.
    pub fn push(&mut self, mut bytes: &[u8]) {
        let n = self.n_missing_of_tag.min(bytes.len());
        bytes.advance(n);
        self.n_missing_of_tag -= n;
        self.held.extend_from_slice(bytes);
        self.skip_tags();
    }

    /// Returns the next whole frame with its header; `None` until more bytes are taken.
    pub fn next_frame(&mut self) -> Option<(FrameHeader, Bytes)> {
        loop {
            let format = match self.format {
                Some(format) => format,
                None => self.search()?,
            };
            match FrameHeader::parse(&self.held) {
                Some(header) if header.format == format => {
                    if self.held.len() < header.length {
                        return None;
                    }
                    let frame = self.held.split_to(header.length).freeze();
                    self.n_skipped = 0;
                    self.skip_tags();
                    return Some((header, frame));
                }
                _ if self.held.len() < FRAME_HEAD_BYTES => return None,
                _ => self.format = None,
            }
        }
    }

    /// Returns whether a frame was found and everything since then is frames, or may be one.
    pub fn is_in_step(&mut self) -> bool {
        self.format.is_some() || self.search().is_some()
    }

    /// Returns the bytes behind the tags at the start, as long as nothing else was skipped.
    pub fn beginning(&self) -> &[u8] {
        if self.n_skipped == 0 { &self.held } else { &[] }
    }

    /// Returns how many bytes belong to tags.
    pub fn n_of_tags(&self) -> usize {
        self.n_of_tags
    }

    /// Returns how many bytes were skipped since the last frame.
    pub fn n_skipped(&self) -> usize {
        self.n_skipped
    }

    /// Skips the tags that the bytes begin with, if they begin where a frame may begin.
    fn skip_tags(&mut self) {
        while self.n_skipped == 0 {
            let Some(n_bytes) = tag_bytes(&self.held) else { return };
            let n = n_bytes.min(self.held.len());
            self.held.advance(n);
            self.n_missing_of_tag = n_bytes - n;
            self.n_of_tags += n_bytes;
        }
    }

    /// Skips everything before the next two headers in a row, as far as that is certain.
    fn search(&mut self) -> Option<FrameFormat> {
        if self.n_skipped == 0 && is_cut_tag_head(&self.held) {
            return None;
        }
        // A header whose successor has not arrived may begin a frame.
        let (mut first_uncertain, mut from) = (None, 0);
        let found = loop {
            let Some(at) = memchr::memchr(0xFF, &self.held[from..]).map(|it| it + from) else { break None };
            from = at + 1;
            if self.held.len() - at < FRAME_HEAD_BYTES {
                first_uncertain.get_or_insert(at);
                break None;
            }
            let Some(header) = FrameHeader::parse(&self.held[at..]) else { continue };
            let next = self.held.get(at + header.length..).unwrap_or_default();
            match FrameHeader::parse(next) {
                Some(next) if next.format == header.format => break Some((at, header.format)),
                None if next.len() < FRAME_HEAD_BYTES => drop(first_uncertain.get_or_insert(at)),
                _ => {}
            }
        };
        let n_skipped = found.map(|it| it.0).or(first_uncertain).unwrap_or(self.held.len());
        self.held.advance(n_skipped);
        self.n_skipped += n_skipped;
        self.format = found.map(|it| it.1);
        self.format
    }
}

/// Returns whether these bytes may be the beginning of the header of an ID3 tag.
fn is_cut_tag_head(bytes: &[u8]) -> bool {
    let n = bytes.len().min(3);
    n > 0 && bytes.len() < TAG_HEAD_BYTES && bytes[..n] == b"ID3"[..n]
}

/// Returns the length of the ID3 tag that begins here; `None` if none does, or if its header is cut.
fn tag_bytes(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<TAG_HEAD_BYTES>().filter(|it| it.starts_with(b"ID3"))?;
    // Seven bits of each byte count.
    let sizes = head[6..].iter().map(|it| usize::from(*it));
    let length = sizes.clone().fold(0, |sum, it| sum << 7 | it);
    let footer = if head[5] & 0x10 == 0 { 0 } else { TAG_HEAD_BYTES };
    let length = TAG_HEAD_BYTES + length + footer;
    (sizes.into_iter().all(|it| it < 0x80) && length <= TAG_BYTES_MAX).then_some(length)
}
