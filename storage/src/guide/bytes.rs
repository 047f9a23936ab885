//! Numbers in blocks of guide files.

/// Appends a number in seven bits per byte, the lowest first; the highest bit of a byte says that another one follows.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that are decoded from front to back. All methods return `None` at the end and for invalid bytes.
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn varint(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for at in 0..5 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written_and_invalid_ones_are_refused() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, 1 << 21, u32::MAX];
        let mut out = Vec::new();
        numbers.iter().for_each(|it| put_varint(&mut out, *it));
        let mut input = ByteReader(&out);
        assert_eq!(numbers.map(|_| input.varint().unwrap()), numbers);
        assert!(input.is_empty());
        for wrong in [&[][..], &[0x80], &[0xff; 4], &[0xff, 0xff, 0xff, 0xff, 0x10], &[0x80; 6]] {
            assert_eq!(ByteReader(wrong).varint(), None, "{wrong:?}");
        }
    }
}
