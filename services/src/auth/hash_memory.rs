//! The memory in which passwords are hashed, which is used again for the next one.
//!
//! A hash needs 19 MiB for about 40 ms. The allocator keeps freed memory of that size for the thread that had asked for it,
//! and each of some hundred threads may be the next one that hashes a password: failed logins would take that much memory
//! for each of them, for good.

use std::mem;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::password_hash::{self, try_generate_salt};
use argon2::{Algorithm, Argon2, Block, CustomizedPasswordHasher, Params, Version};
use parking_lot::Mutex;

/// Maximum size of an area that is kept, in blocks of 1 KiB.
const KEPT_BLOCKS_MAX: usize = 32 << 10;
/// Smallest size that is reserved for an area, although a hash uses less of it: the allocator of GNU returns areas of more
/// than 32 MiB to the system when they are freed, and may keep smaller ones.
const RESERVED_BLOCKS_MIN: usize = (32 << 10) + 1;
/// Maximum size of the memory for one hash, in blocks. A hash that needs more matches no password.
const BLOCKS_MAX: usize = 1 << 20;

/// Hashes passwords with Argon2, in memory that it keeps.
#[derive(Debug)]
pub(super) struct HashMemory {
    /// Memory that is not in use. The area that was used last is the next one, so that few areas are made.
    free: Mutex<Vec<Vec<Block>>>,
    /// Maximum number of areas that are kept; others are returned to the system.
    n_kept_max: usize,
    /// Number of areas that were ever made.
    #[cfg(test)]
    n_made: AtomicUsize,
}

/// Memory that is in use.
struct LentMemory<'a> {
    pool: &'a HashMemory,
    blocks: Vec<Block>,
}

impl HashMemory {
    /// Keeps memory for this many passwords that are hashed at the same time.
    pub(super) fn new(n_kept_max: usize) -> Self {
        Self {
            free: Mutex::new(Vec::new()),
            n_kept_max,
            #[cfg(test)]
            n_made: AtomicUsize::new(0),
        }
    }

    /// Hashes a password with a new salt and the default cost. Blocks for about 40 ms.
    pub(super) fn hash(&self, password: &[u8]) -> password_hash::Result<PasswordHash> {
        let salt = try_generate_salt().map_err(|_| password_hash::Error::Crypto)?;
        self.hash_password_with_params(password, &salt, Params::DEFAULT)
    }

    /// Returns the number of areas that were ever made.
    #[cfg(test)]
    pub(super) fn n_made(&self) -> usize {
        self.n_made.load(Ordering::Relaxed)
    }

    /// Returns memory for one hash, of at least this size.
    fn lend(&self, n_blocks: usize) -> password_hash::Result<LentMemory<'_>> {
        let kept = if n_blocks <= KEPT_BLOCKS_MAX { self.free.lock().pop() } else { None };
        let mut lent = LentMemory { pool: self, blocks: kept.unwrap_or_default() };
        if n_blocks > BLOCKS_MAX {
            return Err(password_hash::Error::OutOfMemory);
        }
        if lent.blocks.capacity() < n_blocks {
            let reserved = lent.blocks.try_reserve_exact(n_blocks.max(RESERVED_BLOCKS_MIN));
            reserved.map_err(|_| password_hash::Error::OutOfMemory)?;
            #[cfg(test)]
            self.n_made.fetch_add(1, Ordering::Relaxed);
        }
        if lent.blocks.len() < n_blocks {
            lent.blocks.resize(n_blocks, Block::new());
        }
        Ok(lent)
    }
}

impl Drop for LentMemory<'_> {
    fn drop(&mut self) {
        // With this content, guessing the password that was hashed would be cheap.
        self.blocks.fill(Block::new());
        let mut free = self.pool.free.lock();
        if free.len() < self.pool.n_kept_max && (1..=KEPT_BLOCKS_MAX).contains(&self.blocks.len()) {
            free.push(mem::take(&mut self.blocks));
        }
    }
}

/// Like the implementation for `Argon2`, which makes and frees memory for each hash.
impl CustomizedPasswordHasher<PasswordHash> for HashMemory {
    type Params = Params;

    fn hash_password_customized(
        &self,
        password: &[u8],
        salt: &[u8],
        algorithm: Option<&str>,
        version: Option<u32>,
        params: Params,
    ) -> password_hash::Result<PasswordHash> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?.unwrap_or_default();
        let version = version.map(Version::try_from).transpose()?.unwrap_or_default();
        let salt = Salt::new(salt)?;
        let mut hash = [0; Output::MAX_LENGTH];
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let hash = hash.get_mut(..length).ok_or(password_hash::Error::OutputSize)?;
        let mut memory = self.lend(params.block_count())?;
        let argon2 = Argon2::new(algorithm, version, params);
        argon2.hash_password_into_with_memory(password, &salt, hash, &mut memory.blocks)?;
        Ok(PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(argon2.params())?,
            salt: Some(salt),
            hash: Some(Output::new(hash)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use argon2::{PasswordHasher, PasswordVerifier};

    use super::*;

    fn places(memory: &HashMemory) -> Vec<*const Block> {
        memory.free.lock().iter().map(|it| it.as_ptr()).collect()
    }

    #[test]
    fn the_next_hash_uses_the_same_memory_which_was_overwritten() {
        let memory = HashMemory::new(4);
        let hash = memory.hash(b"right").unwrap();
        let place = places(&memory);
        for password in [&b"right"[..], b"wrong"] {
            let fits = memory.verify_password(password, &hash).is_ok();
            assert_eq!((fits, places(&memory)), (password == b"right", place.clone()));
        }
        assert_eq!((place.len(), memory.n_made()), (1, 1));
        let free = memory.free.lock();
        assert!(free[0].iter().all(|it| it.as_ref().iter().all(|word| *word == 0)));
    }

    /// A thread of a runtime is seldom the same one as for the password before.
    #[test]
    fn there_is_memory_for_as_many_hashes_as_ever_ran_at_the_same_time() {
        let memory = HashMemory::new(3);
        let params = Params::new(64, 1, 1, None).unwrap();
        for _ in 0..50 {
            let all_lent = Barrier::new(3);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let lent = memory.lend(64).unwrap();
                        all_lent.wait();
                        drop(lent);
                        memory.hash_password_with_params(b"x", b"a salt for it", params.clone()).unwrap();
                    });
                }
            });
        }
        assert_eq!((places(&memory).len(), memory.n_made()), (3, 3));
        // More than expected at the same time: the rest is freed.
        let lent: Vec<_> = (0..5).map(|_| memory.lend(64).unwrap()).collect();
        drop(lent);
        assert_eq!((places(&memory).len(), memory.n_made()), (3, 5));
    }

    #[test]
    fn hashes_with_any_parameters_are_verified_in_memory_that_others_have_used() {
        let memory = HashMemory::new(1);
        let params = |m: u32, t: u32, p: u32, length| Params::new(m, t, p, length).unwrap();
        for (algorithm, version, params) in [
            (Algorithm::Argon2id, Version::V0x13, Params::DEFAULT),
            (Algorithm::Argon2id, Version::V0x13, params(4096, 3, 1, None)),
            (Algorithm::Argon2id, Version::V0x13, params(65_536, 1, 4, None)),
            (Algorithm::Argon2i, Version::V0x10, params(8, 1, 1, Some(16))),
            (Algorithm::Argon2d, Version::V0x10, params(1024, 2, 2, Some(64))),
            // Not a multiple of the number of lanes.
            (Algorithm::Argon2id, Version::V0x13, params(24_579, 1, 3, None)),
            (Algorithm::Argon2id, Version::V0x13, Params::DEFAULT),
        ] {
            let hash = Argon2::new(algorithm, version, params).hash_password(b"right").unwrap();
            assert_eq!(memory.verify_password(b"right", &hash), Ok(()), "{hash}");
            assert!(memory.verify_password(b"wrong", &hash).is_err(), "{hash}");
            assert!(memory.free.lock().iter().all(|it| it.len() <= KEPT_BLOCKS_MAX));
        }
        // Memory of more than is kept was made for each of two passwords.
        assert_eq!((places(&memory).len(), memory.n_made()), (1, 3));
        // The other way round.
        let hash = memory.hash(b"right").unwrap();
        assert!(Argon2::default().verify_password(b"right", &hash).is_ok());
    }

    #[test]
    fn a_hash_that_needs_absurd_memory_matches_nothing() {
        let memory = HashMemory::new(1);
        let hash = memory.hash(b"right").unwrap().to_string().replace("m=19456", "m=4294967295");
        assert!(memory.verify_password(b"right", &PasswordHash::new(&hash).unwrap()).is_err());
        assert!(places(&memory).len() <= 1);
    }
}
