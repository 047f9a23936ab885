//! The bytes of a guide that are in memory.

use std::io::{self, BufRead};

use encoding_rs::Decoder;

use super::encoding::{DECLARATION_BYTES, ElementEncoding, GuideEncoding};

/// Bytes that are read at once.
const FILL_BYTES: usize = 64 * 1024;

/// Unread bytes of a guide, which grow as asked.
pub(super) struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    /// The bytes before are done.
    start: usize,
    is_ended: bool,
    decoder: Option<Box<Decoder>>,
}

impl<R: BufRead> Window<R> {
    /// Reads the beginning of a guide, and detects its encoding.
    pub(super) fn new(input: R) -> Result<(Self, ElementEncoding), io::Error> {
        let mut window = Self { input, bytes: Vec::new(), start: 0, is_ended: false, decoder: None };
        while window.bytes.len() < DECLARATION_BYTES && !window.is_ended {
            window.read()?;
        }
        let beginning = window.bytes.len().min(DECLARATION_BYTES);
        let (encoding, mark_length) = GuideEncoding::detect(&window.bytes[..beginning]);
        window.bytes.drain(..mark_length);
        match encoding {
            GuideEncoding::Elements(encoding) => Ok((window, encoding)),
            GuideEncoding::Stream(mut decoder) => {
                let raw = std::mem::take(&mut window.bytes);
                decode(&mut decoder, &raw, window.is_ended, &mut window.bytes);
                window.decoder = Some(decoder);
                Ok((window, ElementEncoding::UTF_8))
            }
        }
    }

    /// Returns the unread bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the memory that the bytes take.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns whether the bytes are as they arrive, so that each element can have an encoding of its own.
    pub(super) fn is_ascii_compatible(&self) -> bool {
        self.decoder.is_none()
    }

    /// Returns whether no bytes follow.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Drops bytes from the start.
    pub(super) fn advance(&mut self, n_bytes: usize) {
        self.start += n_bytes;
    }

    /// Reads more bytes, unless the guide has ended.
    pub(super) fn fill(&mut self) -> Result<(), io::Error> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let enough = self.bytes.len() + FILL_BYTES;
        while self.bytes.len() < enough && !self.is_ended {
            self.read()?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), io::Error> {
        let chunk = loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        // A part of a large buffer, so that the window stays small.
        let chunk = &chunk[..chunk.len().min(FILL_BYTES)];
        self.is_ended = chunk.is_empty();
        match &mut self.decoder {
            Some(decoder) => decode(decoder, chunk, self.is_ended, &mut self.bytes),
            None => self.bytes.extend_from_slice(chunk),
        }
        let n_bytes = chunk.len();
        self.input.consume(n_bytes);
        Ok(())
    }
}

/// Converts bytes to UTF-8. Invalid ones become U+FFFD.
fn decode(decoder: &mut Decoder, mut bytes: &[u8], is_last: bool, out: &mut Vec<u8>) {
    loop {
        let length = out.len();
        // Enough for every encoding; the loop continues if not.
        out.resize(length + bytes.len() * 3 + 16, 0);
        let (result, n_read, n_written, _) = decoder.decode_to_utf8(bytes, &mut out[length..], is_last);
        out.truncate(length + n_written);
        bytes = &bytes[n_read..];
        if result == encoding_rs::CoderResult::InputEmpty {
            return;
        }
    }
}
