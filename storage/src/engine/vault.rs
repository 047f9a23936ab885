//! Encryption of secrets on the disk. The key is in a file of its own, outside of the store.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::{fmt, fs};

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use data_encoding::HEXLOWER;

use crate::engine::folder::sync_parent;
use crate::engine::value::DiskKey;
use crate::error::{Error, Result};
use crate::record::RecordType;

const NONCE: usize = 24;
/// First line of a key file.
const TITLE: &str = "headwater key 1";

/// Encrypts and decrypts with the key of a store. `Debug` omits the key.
#[derive(Clone)]
pub(crate) struct Vault {
    cipher: XChaCha20Poly1305,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

impl Vault {
    /// Reads the key file. If it is missing and `may_create` is set, creates one that only its owner can read.
    pub(crate) fn open(path: &Path, may_create: bool) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).ok_or_else(|| {
                Error::Key(format!("the file {} is not a Headwater key file", path.display()))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound && may_create => Self::create(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::Key(format!(
                "the key file {} is missing; without it the secrets in the store cannot be read",
                path.display()
            ))),
            Err(error) => Err(Error::Key(format!("failed to read the key file {}: {error}", path.display()))),
        }
    }

    /// Creates a key that is never written to the disk, for temporary stores.
    pub(crate) fn ephemeral() -> Result<Self> {
        Ok(Self::new(&random::<32>()?))
    }

    /// Encrypts with this key.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(key.into()) }
    }

    fn create(path: &Path) -> Result<Self> {
        let key: [u8; 32] = random()?;
        let digits = HEXLOWER.encode(&key);
        // The file gets its name when it is complete on the disk. One of a start that was interrupted is replaced.
        let unfinished = path.with_added_extension("part");
        let write = || {
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
            file.write_all(format!("{TITLE}\n{digits}\n").as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, path)?;
            sync_parent(path)
        };
        write().map_err(|error| {
            Error::Key(format!("failed to write the key file {}: {error}", path.display()))
        })?;
        Ok(Self::new(&key))
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(TITLE)?.trim().as_bytes();
        let mut key = [0; 32];
        if digits.len() != 2 * key.len() {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self::new(&key))
    }

    /// Returns nonce and ciphertext. The associated data is authenticated but not encrypted.
    pub(crate) fn seal(&self, associated: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE] = random()?;
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: bytes, aad: associated })
            .map_err(|_| Error::Key("failed to encrypt".to_owned()))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts what [`Vault::seal`] returned for the same associated data.
    pub(crate) fn unseal(&self, associated: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        let refused = || Error::Key("the key file does not belong to this store".to_owned());
        let (nonce, sealed) = bytes.split_at_checked(NONCE).ok_or_else(refused)?;
        self.cipher
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: associated })
            .map_err(|_| refused())
    }
}

impl RecordType {
    /// Returns the encoded record in the payload of a value.
    pub(crate) fn unseal(&self, vault: &Vault, disk_key: &DiskKey, payload: &[u8]) -> Result<Vec<u8>> {
        match self.is_sealed {
            true if self.is_plain(vault, disk_key, payload) => Ok(payload.to_vec()),
            true => vault.unseal(&disk_key.stem(), payload),
            false => Ok(payload.to_vec()),
        }
    }

    /// Returns true if an earlier version wrote this record unencrypted.
    pub(crate) fn is_plain(&self, vault: &Vault, disk_key: &DiskKey, payload: &[u8]) -> bool {
        self.was_plain && vault.unseal(&disk_key.stem(), payload).is_err() && (self.read)(payload).is_ok()
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::disk("get random bytes from the system", error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_file_is_created_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let sealed = Vault::open(&path, true).unwrap().seal(b"password", b"hunter2").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Vault::open(&path, true).unwrap();
        assert_eq!(again.unseal(b"password", &sealed).unwrap(), b"hunter2");
        assert!(again.unseal(b"another purpose", &sealed).is_err());
        assert!(!sealed.windows(7).any(|it| it == b"hunter2"));
        assert_eq!(format!("{again:?}"), "Vault(…)");
    }

    #[test]
    fn a_missing_an_invalid_and_a_wrong_key_file_have_different_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(Vault::open(&path, false).unwrap_err().to_string().contains("is missing"));
        fs::write(&path, "something else").unwrap();
        let invalid = Vault::open(&path, true).unwrap_err();
        assert!(invalid.to_string().contains("is not a Headwater key file"), "{invalid}");
        let sealed = Vault::ephemeral().unwrap().seal(b"p", b"secret").unwrap();
        let other = Vault::ephemeral().unwrap();
        let wrong = other.unseal(b"p", &sealed).unwrap_err();
        assert!(wrong.to_string().contains("does not belong to this store"), "{wrong}");
    }
}
