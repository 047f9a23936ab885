//! The last bytes of an archive: an empty gzip member whose extra field is the authentication code.
//!
//! Programs that unpack gzip skip it, because members may follow one another (RFC 1952, section 2.2).

/// Header of a gzip member with an extra field of 36 bytes, which has one subfield `HW` of 32 bytes.
const HEAD: [u8; 16] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 36, 0, b'H', b'W', 32, 0];
/// An empty deflate stream, its checksum and its length.
const TAIL: [u8; 10] = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const CODE: usize = 32;
/// Size in bytes.
pub(crate) const TRAILER: usize = HEAD.len() + CODE + TAIL.len();

pub(crate) fn trailer(code: &[u8; CODE]) -> Vec<u8> {
    [&HEAD[..], code, &TAIL].concat()
}

/// Returns the authentication code of a trailer.
pub(crate) fn code_of(bytes: &[u8; TRAILER]) -> Option<[u8; CODE]> {
    let code = bytes.strip_prefix(&HEAD)?.strip_suffix(&TAIL)?;
    code.try_into().ok()
}
