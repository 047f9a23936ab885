//! The hash of maps within one scan or forecast.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A fast hash of ids, of hashes and of titles, for maps whose order does not matter. It begins with a random number, because
/// guides come from strangers, who could otherwise choose titles with equal hashes.
#[derive(Clone)]
pub(super) struct Plain(u64);

impl Default for Plain {
    fn default() -> Self {
        Self(RandomState::new().hash_one(()))
    }
}

pub(super) struct PlainHasher(u64);

impl PlainHasher {
    fn add(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl BuildHasher for Plain {
    type Hasher = PlainHasher;

    fn build_hasher(&self) -> PlainHasher {
        PlainHasher(self.0)
    }
}

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        // The table uses the highest and the lowest bits, which the others have to reach.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (parts, rest) = bytes.as_chunks::<8>();
        parts.iter().for_each(|it| self.add(u64::from_le_bytes(*it)));
        // The last eight bytes overlap with those before, which is faster than to copy only the rest.
        let last = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last),
            None => rest.iter().fold(0, |sum, it| (sum << 8) | u64::from(*it)),
        };
        self.add(last ^ bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = self.0.rotate_left(5).wrapping_mul(0x517c_c1b7_2722_0a95) ^ value;
    }
}
