//! Splits bytes into lines that end with LF, CRLF or CR, in UTF-8, similar encodings, or UTF-16 with a byte-order mark.

use memchr::memchr2;

/// A line without its terminator.
#[derive(Clone, Copy)]
pub(crate) enum RawLine<'a> {
    Whole(&'a [u8]),
    /// Only its beginning was kept.
    TooLong {
        start: &'a [u8],
        bytes: u64,
    },
}

/// The line splitter. It keeps one incomplete line at most.
pub(crate) struct Lines {
    line_bytes_max: usize,
    /// The beginning of the current line, up to the limit.
    buffer: Vec<u8>,
    /// Bytes of the current line so far, including dropped ones.
    n_bytes: u64,
    /// Number of the current line, from 1.
    number: u64,
    /// The last line ended with CR, so an LF right here belongs to it.
    is_after_cr: bool,
    encoding: Encoding,
}

enum Encoding {
    /// The first two bytes decide.
    Undecided(Option<u8>),
    /// No conversion.
    Bytes,
    Utf16 {
        is_big_endian: bool,
        odd: Option<u8>,
        high: Option<u16>,
    },
}

impl Lines {
    pub(crate) fn new(line_bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            buffer: Vec::new(),
            n_bytes: 0,
            number: 1,
            is_after_cr: false,
            encoding: Encoding::Undecided(None),
        }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], take: &mut impl FnMut(u64, RawLine<'_>)) {
        while let Encoding::Undecided(first) = self.encoding {
            let Some((&byte, rest)) = bytes.split_first() else { return };
            bytes = rest;
            let Some(first) = first else {
                self.encoding = Encoding::Undecided(Some(byte));
                continue;
            };
            let utf16 = |is_big_endian| Encoding::Utf16 { is_big_endian, odd: None, high: None };
            self.encoding = match (first, byte) {
                (0xFF, 0xFE) => utf16(false),
                (0xFE, 0xFF) => utf16(true),
                _ => Encoding::Bytes,
            };
            self.decode(&[first, byte], take);
        }
        self.decode(bytes, take);
    }

    /// Processes the last line, if it has no terminator.
    pub(crate) fn finish(&mut self, take: &mut impl FnMut(u64, RawLine<'_>)) {
        if let Encoding::Undecided(Some(first)) = self.encoding {
            self.encoding = Encoding::Bytes;
            self.split(&[first], take);
        }
        if self.n_bytes > 0 {
            self.end_line(&[], take);
        }
    }

    /// Number of bytes kept until the next push.
    #[cfg(test)]
    pub(crate) fn n_kept(&self) -> usize {
        self.buffer.len()
    }

    fn decode(&mut self, mut bytes: &[u8], take: &mut impl FnMut(u64, RawLine<'_>)) {
        let Encoding::Utf16 { is_big_endian, mut odd, mut high } = self.encoding else {
            return self.split(bytes, take);
        };
        // In parts, so that a large push needs no large copy.
        let mut text = String::with_capacity(4096);
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = rest;
            let Some(first) = odd.take() else {
                odd = Some(byte);
                continue;
            };
            let pair = [first, byte];
            let unit = if is_big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
            if let Some(high) = high.take() {
                if let Some(Ok(decoded)) = char::decode_utf16([high, unit]).next() {
                    text.push(decoded);
                    continue;
                }
                text.push(char::REPLACEMENT_CHARACTER);
            }
            match unit {
                // The first half of a surrogate pair waits for the second.
                0xD800..0xDC00 => high = Some(unit),
                _ => text.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)),
            }
            if text.len() > 4000 {
                self.split(text.as_bytes(), take);
                text.clear();
            }
        }
        self.encoding = Encoding::Utf16 { is_big_endian, odd, high };
        self.split(text.as_bytes(), take);
    }

    fn split(&mut self, mut bytes: &[u8], take: &mut impl FnMut(u64, RawLine<'_>)) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            self.end_line(&bytes[..at], take);
            let is_cr = bytes[at] == b'\r';
            bytes = &bytes[at + 1..];
            if is_cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.is_after_cr = true,
                }
            }
        }
        self.keep(bytes);
    }

    fn end_line(&mut self, end: &[u8], take: &mut impl FnMut(u64, RawLine<'_>)) {
        // Most lines lie within one push and are never copied.
        if self.n_bytes == 0 && end.len() <= self.line_bytes_max {
            take(self.number, RawLine::Whole(end));
        } else {
            self.keep(end);
            let line = if self.n_bytes > self.line_bytes_max as u64 {
                RawLine::TooLong { start: &self.buffer, bytes: self.n_bytes }
            } else {
                RawLine::Whole(&self.buffer)
            };
            take(self.number, line);
            self.buffer.clear();
            self.n_bytes = 0;
        }
        self.number += 1;
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.line_bytes_max.saturating_sub(self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.n_bytes += bytes.len() as u64;
    }
}
