//! Unpacks a body that was compressed with gzip although nobody asked for it.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use flate2::bufread::MultiGzDecoder;

use crate::error::Cause;

/// Bytes that are unpacked at once, so that a small body that unpacks to a huge one does not fill the memory.
const UNPACKED_BYTES: usize = 32 << 10;

/// Unpacks a body as it arrives.
pub(super) struct Unpacker {
    decoder: MultiGzDecoder<Packed>,
    buffer: Box<[u8]>,
}

/// The compressed bytes that have arrived. A read beyond them would block, until the body has ended.
#[derive(Default)]
struct Packed {
    bytes: Bytes,
    has_ended: bool,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        let buffer = vec![0; UNPACKED_BYTES].into_boxed_slice();
        Self { decoder: MultiGzDecoder::new(Packed::default()), buffer }
    }

    /// Takes the next compressed bytes. [`Self::next_piece`] has to be called until it returns `None` before more are taken.
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.decoder.get_mut().bytes = bytes;
    }

    /// No more bytes follow.
    pub(super) fn end(&mut self) {
        self.decoder.get_mut().has_ended = true;
    }

    /// Returns the next unpacked bytes; `None` until more are taken, and at the end.
    ///
    /// # Errors
    /// `Ended` if the body ends in the middle, and `Protocol` if it is damaged.
    pub(super) fn next_piece(&mut self) -> Result<Option<Bytes>, Cause> {
        match self.decoder.read(&mut self.buffer) {
            Ok(0) => Ok(None),
            Ok(n) => Ok(Some(Bytes::copy_from_slice(&self.buffer[..n]))),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                io::ErrorKind::UnexpectedEof => Err(Cause::Ended),
                _ => Err(Cause::Protocol("the compressed stream is damaged".into())),
            },
        }
    }
}

impl Read for Packed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let input = self.fill_buf()?;
        let n = input.len().min(out.len());
        out[..n].copy_from_slice(&input[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Packed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.bytes.is_empty() && !self.has_ended {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(&self.bytes),
        }
    }

    fn consume(&mut self, n_bytes: usize) {
        self.bytes.advance(n_bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Unpacks bytes that arrive in pieces of this length.
    fn unpacked(packed: &[u8], piece: usize) -> Result<Vec<u8>, Cause> {
        let mut unpacker = Unpacker::new();
        let mut out = Vec::new();
        for bytes in packed.chunks(piece) {
            unpacker.push(Bytes::copy_from_slice(bytes));
            while let Some(piece) = unpacker.next_piece()? {
                assert!(piece.len() <= UNPACKED_BYTES);
                out.extend_from_slice(&piece);
            }
        }
        unpacker.end();
        while let Some(piece) = unpacker.next_piece()? {
            out.extend_from_slice(&piece);
        }
        Ok(out)
    }

    #[test]
    fn a_compressed_body_is_unpacked_wherever_a_read_ends() {
        let text: Vec<u8> = (0..100_000_u32).map(|it| (it.wrapping_mul(it) >> 7) as u8).collect();
        let (one, two) = text.split_at(60_000);
        for piece in [1, 7, 188, 1_300, 1 << 20] {
            assert_eq!(unpacked(&packed(&text), piece).unwrap(), text, "{piece}");
            assert_eq!(unpacked(&[packed(one), packed(two)].concat(), piece).unwrap(), text, "{piece}");
        }
    }

    #[test]
    fn a_huge_body_is_unpacked_piece_by_piece() {
        let zeros = packed(&vec![0; 64 << 20]);
        assert!(zeros.len() < 1 << 20);
        let mut unpacker = Unpacker::new();
        unpacker.push(zeros.into());
        assert_eq!(unpacker.next_piece().unwrap().map(|it| it.len()), Some(UNPACKED_BYTES));
    }

    #[test]
    fn a_cut_body_has_ended_and_a_damaged_one_is_refused() {
        let mut bytes = packed(&[7; 5_000]);
        assert_eq!(unpacked(&bytes[..bytes.len() - 9], 64), Err(Cause::Ended));
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xFF;
        let damaged = Cause::Protocol("the compressed stream is damaged".into());
        assert!([Err(damaged), Err(Cause::Ended)].contains(&unpacked(&bytes, 64)));
        bytes = packed(b"x");
        bytes[2] = 99;
        assert!(unpacked(&bytes, 64).is_err());
    }
}
