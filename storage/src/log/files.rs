//! The encryption of files that nodes share through an object store, piece by piece.
//!
//! Layout: format, kind of the key (0: cluster, 1: provider), generation (4 bytes, big-endian), then chunks of
//! [`FILE_CHUNK_BYTES`], each encrypted with a nonce of its own. A shorter chunk, which may be empty, is the last one.
//! The name, the number of the chunk and whether it is the last are authenticated, so that chunks cannot be moved,
//! left out or taken from another file.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::keys::{KeyRing, LogKeys};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};

/// Size of a chunk of the content.
pub const FILE_CHUNK_BYTES: usize = 64 << 10;
/// Size of an encrypted chunk: with its nonce and its tag.
pub const SEALED_CHUNK_BYTES: usize = FILE_CHUNK_BYTES + 24 + 16;
/// Size of what comes before the chunks.
pub const FILE_HEADER_BYTES: usize = 6;

const FORMAT: u8 = 1;
const CLUSTER: u8 = 0;
const PROVIDER: u8 = 1;

/// Encrypts the chunks of a file.
#[derive(Debug)]
pub struct FileSealer(FileCipher);

/// Decrypts the chunks of a file.
#[derive(Debug)]
pub struct FileOpener(FileCipher);

#[derive(Debug)]
struct FileCipher {
    vault: Vault,
    header: [u8; FILE_HEADER_BYTES],
    name: String,
    n_chunks: u64,
}

impl FileSealer {
    /// Begins a file with this digest, which is named after it. Without the keys, the name reveals nothing.
    ///
    /// # Errors
    /// If the file `is_secret`, and this node does not have the key of full nodes.
    pub fn new(keys: &LogKeys, is_secret: bool, digest: &[u8; 32]) -> Result<Self> {
        let kind = if is_secret { PROVIDER } else { CLUSTER };
        let (generation, key) = ring(keys, kind)?.current();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("a key of HMAC may have any length");
        mac.update(b"headwater name of a file ");
        mac.update(digest);
        let name = data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes());
        let mut header = [FORMAT, kind, 0, 0, 0, 0];
        header[2..].copy_from_slice(&generation.to_be_bytes());
        Ok(Self(FileCipher { vault: Vault::new(&key.0), header, name, n_chunks: 0 }))
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns what comes before the chunks.
    pub fn header(&self) -> [u8; FILE_HEADER_BYTES] {
        self.0.header
    }

    /// Encrypts the next chunk. All but the last have [`FILE_CHUNK_BYTES`], and the last one has less.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn seal(&mut self, chunk: &[u8]) -> Result<Vec<u8>> {
        let associated = self.0.next(chunk.len() < FILE_CHUNK_BYTES);
        self.0.vault.seal(&associated, chunk)
    }
}

impl FileOpener {
    /// Begins to read the file with this name.
    ///
    /// # Errors
    /// If this node does not have the key, or a later version wrote the file.
    pub fn new(keys: &LogKeys, name: &str, header: [u8; FILE_HEADER_BYTES]) -> Result<Self> {
        let [format, kind, generation @ ..] = header;
        if format != FORMAT || kind > PROVIDER {
            return Err(Error::TooNew { found: format, known: FORMAT });
        }
        let generation = u32::from_be_bytes(generation);
        let key = ring(keys, kind)?.key(generation).ok_or_else(|| {
            Error::Key(format!("this node does not have generation {generation} of the data key"))
        })?;
        Ok(Self(FileCipher { vault: Vault::new(&key.0), header, name: name.to_owned(), n_chunks: 0 }))
    }

    /// Decrypts the next chunk. One of [`SEALED_CHUNK_BYTES`] is not the last; a shorter one is.
    ///
    /// # Errors
    /// If it is not the next chunk of this file, or was changed.
    pub fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>> {
        let associated = self.0.next(sealed.len() < SEALED_CHUNK_BYTES);
        let changed = |_| Error::LogBroken("a file in the object store was changed".to_owned());
        self.0.vault.unseal(&associated, sealed).map_err(changed)
    }
}

impl FileCipher {
    /// Returns the associated data of the next chunk.
    fn next(&mut self, is_last: bool) -> Vec<u8> {
        let number = self.n_chunks.to_be_bytes();
        self.n_chunks += 1;
        [b"headwater file ", &self.header[..], &number, &[u8::from(is_last)], self.name.as_bytes()].concat()
    }
}

fn ring(keys: &LogKeys, kind: u8) -> Result<&KeyRing> {
    match kind {
        CLUSTER => Ok(&keys.cluster),
        _ => keys
            .provider
            .as_ref()
            .ok_or_else(|| Error::Key("this node does not have the data key of full nodes".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(sealer: &mut FileSealer, content: &[u8]) -> Vec<Vec<u8>> {
        let mut chunks: Vec<_> = content.chunks(FILE_CHUNK_BYTES).collect();
        if content.len().is_multiple_of(FILE_CHUNK_BYTES) {
            chunks.push(&[]);
        }
        chunks.into_iter().map(|it| sealer.seal(it).unwrap()).collect()
    }

    #[test]
    fn chunks_cannot_be_changed_moved_left_out_or_taken_from_another_file() {
        let keys = LogKeys::new().unwrap();
        let mut sealer = FileSealer::new(&keys, true, &[7; 32]).unwrap();
        let (header, name) = (sealer.header(), sealer.name().to_owned());
        let content: Vec<u8> = (0..2 * FILE_CHUNK_BYTES).map(|it| it as u8).collect();
        let chunks = sealed(&mut sealer, &content);
        assert_eq!(
            chunks.iter().map(Vec::len).collect::<Vec<_>>(),
            [SEALED_CHUNK_BYTES, SEALED_CHUNK_BYTES, 40]
        );
        let mut opener = FileOpener::new(&keys, &name, header).unwrap();
        let opened: Vec<u8> = chunks.iter().flat_map(|it| opener.open(it).unwrap()).collect();
        assert!(opened == content);

        let begin = |name: &str| FileOpener::new(&keys, name, header).unwrap();
        assert!(begin(&name).open(&chunks[1]).is_err(), "moved");
        assert!(begin(&name).open(&chunks[2]).is_err(), "left out");
        assert!(begin(&name).open(&chunks[0][..100]).is_err(), "cut");
        assert!(begin("other").open(&chunks[0]).is_err(), "of another file");
        let mut changed = chunks[0].clone();
        changed[50] ^= 1;
        assert!(begin(&name).open(&changed).is_err(), "changed");
    }

    #[test]
    fn a_node_without_the_key_of_full_nodes_reads_only_files_for_all() {
        let full = LogKeys::new().unwrap();
        let edge = full.for_edge();
        assert!(FileSealer::new(&edge, true, &[1; 32]).is_err());
        let secret = FileSealer::new(&full, true, &[1; 32]).unwrap();
        let public = FileSealer::new(&full, false, &[1; 32]).unwrap();
        assert_ne!(secret.name(), public.name());
        assert!(FileOpener::new(&edge, secret.name(), secret.header()).is_err());
        assert!(FileOpener::new(&edge, public.name(), public.header()).is_ok());
        let mut later = public.header();
        later[0] += 1;
        assert!(matches!(FileOpener::new(&full, public.name(), later), Err(Error::TooNew { .. })));
    }

    #[test]
    fn a_file_is_readable_after_the_keys_were_rotated() {
        let old = LogKeys::new().unwrap();
        let mut sealer = FileSealer::new(&old, false, &[1; 32]).unwrap();
        let chunk = sealer.seal(b"logo").unwrap();
        let new = LogKeys { cluster: old.cluster.rotated().unwrap(), provider: None };
        let mut opener = FileOpener::new(&new, sealer.name(), sealer.header()).unwrap();
        assert_eq!(opener.open(&chunk).unwrap(), b"logo");
        let other = LogKeys { cluster: new.cluster.without_before(2), provider: None };
        assert!(FileOpener::new(&other, sealer.name(), sealer.header()).is_err());
    }
}
