//! Decrypts a segment while it arrives: AES-128 in CBC mode, with the padding of PKCS #7.

use aes::Aes128;
use bytes::{Bytes, BytesMut};
use cbc::cipher::inout::InOutBuf;
use cbc::cipher::{BlockDecryptMut, KeyIvInit};

/// Length of a block of the cipher, in bytes.
const BLOCK: usize = 16;

/// Decrypts one segment. The last block is held back until it is known to be the last, because it contains the padding.
pub(super) struct Decryptor {
    cipher: cbc::Decryptor<Aes128>,
    /// Encrypted bytes that are not decrypted yet; at most a block and an incomplete one.
    held: BytesMut,
}

impl Decryptor {
    pub(super) fn new((key, iv): ([u8; 16], [u8; 16])) -> Self {
        Self { cipher: cbc::Decryptor::new(&key.into(), &iv.into()), held: BytesMut::new() }
    }

    /// Takes the next encrypted bytes, and returns those that are certainly no padding.
    pub(super) fn push(&mut self, bytes: Bytes) -> Bytes {
        let mut all = std::mem::take(&mut self.held);
        if all.is_empty() {
            all = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        } else {
            all.extend_from_slice(&bytes);
        }
        let n_ready = all.len().saturating_sub(1) / BLOCK * BLOCK;
        self.held = all.split_off(n_ready);
        self.decrypt(&mut all);
        all.freeze()
    }

    /// Returns the rest without its padding. An incomplete block at the end cannot be decrypted and is dropped.
    pub(super) fn finish(mut self) -> Bytes {
        let mut last = std::mem::take(&mut self.held);
        last.truncate(last.len() / BLOCK * BLOCK);
        self.decrypt(&mut last);
        let padding = last.last().map_or(0, |it| usize::from(*it));
        let is_padding = |it: &[u8]| it.iter().all(|it| usize::from(*it) == padding);
        // Some providers forget the padding.
        if (1..=BLOCK).contains(&padding)
            && padding <= last.len()
            && is_padding(&last[last.len() - padding..])
        {
            last.truncate(last.len() - padding);
        }
        last.freeze()
    }

    fn decrypt(&mut self, blocks: &mut [u8]) {
        let (blocks, _) = InOutBuf::from(blocks).into_chunks();
        self.cipher.decrypt_blocks_inout_mut(blocks);
    }
}

#[cfg(test)]
mod tests {
    use cbc::cipher::BlockEncryptMut;

    use super::*;

    const KEY: [u8; 16] = *b"0123456789abcdef";
    const IV: [u8; 16] = *b"fedcba9876543210";

    /// Encrypts with padding, if it is wanted.
    fn encrypted(plain: &[u8], is_padded: bool) -> Vec<u8> {
        let mut bytes = plain.to_vec();
        if is_padded {
            let n = BLOCK - plain.len() % BLOCK;
            bytes.extend(std::iter::repeat_n(n as u8, n));
        }
        let mut cipher = cbc::Encryptor::<Aes128>::new(&KEY.into(), &IV.into());
        let (blocks, _) = InOutBuf::from(&mut bytes[..]).into_chunks();
        cipher.encrypt_blocks_inout_mut(blocks);
        bytes
    }

    #[test]
    fn the_bytes_are_the_same_however_they_arrive() {
        for length in [0, 1, 15, 16, 17, 188, 1_880, 4_096] {
            let plain: Vec<u8> = (0..length).map(|it| (it * 7) as u8).collect();
            let sent = encrypted(&plain, true);
            for piece in [1, 7, 16, 33, 1_000, 5_000] {
                let mut decryptor = Decryptor::new((KEY, IV));
                let mut out = Vec::new();
                for bytes in sent.chunks(piece) {
                    out.extend_from_slice(&decryptor.push(Bytes::copy_from_slice(bytes)));
                }
                out.extend_from_slice(&decryptor.finish());
                assert!(out == plain, "{length} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_segment_without_padding_keeps_its_last_block_and_an_incomplete_block_is_dropped() {
        let plain = [0x47; 188 * 4];
        let mut sent = encrypted(&plain, false);
        sent.extend_from_slice(&[1, 2, 3]);
        let mut decryptor = Decryptor::new((KEY, IV));
        let mut out = decryptor.push(Bytes::from(sent)).to_vec();
        out.extend_from_slice(&decryptor.finish());
        assert!(out == plain);
    }

    #[test]
    fn a_block_is_decrypted_as_in_the_published_example() {
        // NIST SP 800-38A, F.2.2.
        let hex = |text: &str| u128::from_str_radix(text, 16).unwrap().to_be_bytes();
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let iv = hex("000102030405060708090a0b0c0d0e0f");
        let mut decryptor = Decryptor::new((key, iv));
        decryptor.push(Bytes::copy_from_slice(&hex("7649abac8119b246cee98e9b12e9197d")));
        assert_eq!(decryptor.finish()[..], hex("6bc1bee22e409f96e93d7e117393172a"));
    }
}
