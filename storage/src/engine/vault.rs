//! Secrets on the disk: encrypted under a key that lies in a file of its own, outside of the store.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::{fmt, fs};

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

const NONCE: usize = 24;
/// First line of a key file.
const TITLE: &str = "headwater key 1";

/// The key of a store, and what it opens. Prints itself without it.
#[derive(Clone)]
pub struct Vault {
    cipher: XChaCha20Poly1305,
}

/// A secret as it stands in a record: readable by whoever has the key, and only for the purpose it was made for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed(#[serde(with = "bytes")] Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(…)")
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

impl Vault {
    /// Reads the key file. Where there is none and `may_make` says so, makes one that only its owner can read.
    pub fn open(path: &Path, may_make: bool) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text)
                .ok_or_else(|| Error::Key(format!("the key file {} is not one of ours", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound && may_make => Self::make(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::Key(format!(
                "the key file {} is missing; without it the secrets in the store cannot be read",
                path.display()
            ))),
            Err(error) => Err(Error::Key(format!("failed to read the key file {}: {error}", path.display()))),
        }
    }

    /// A key that is nowhere written down, for stores that end with the process.
    pub fn of_the_moment() -> Result<Self> {
        Ok(Self::of(&random::<32>()?))
    }

    fn of(key: &[u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(key.into()) }
    }

    fn make(path: &Path) -> Result<Self> {
        let key: [u8; 32] = random()?;
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(format!("{TITLE}\n{digits}\n").as_bytes())?;
            file.sync_all()?;
            sync_parent(path)
        };
        write().map_err(|error| {
            Error::Key(format!("failed to write the key file {}: {error}", path.display()))
        })?;
        Ok(Self::of(&key))
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
        Some(Self::of(&key))
    }

    /// Encrypts a text. The purpose, such as `account.password`, has to be given again to read it.
    pub fn seal(&self, purpose: &str, secret: &str) -> Result<Sealed> {
        self.seal_bytes(purpose.as_bytes(), secret.as_bytes()).map(Sealed)
    }

    pub fn unseal(&self, purpose: &str, sealed: &Sealed) -> Result<String> {
        let bytes = self.unseal_bytes(purpose.as_bytes(), &sealed.0)?;
        String::from_utf8(bytes).map_err(|_| Error::DamagedRecord("a secret is no text".to_owned()))
    }

    /// Nonce and ciphertext. What stands in `about` is not hidden but has to be the same to read it.
    pub(crate) fn seal_bytes(&self, about: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE] = random()?;
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: bytes, aad: about })
            .map_err(|_| Error::Key("failed to encrypt".to_owned()))?;
        Ok([&nonce[..], &sealed].concat())
    }

    pub(crate) fn unseal_bytes(&self, about: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        let refused = || Error::Key("the key file does not open what is in the store".to_owned());
        let (nonce, sealed) = bytes.split_at_checked(NONCE).ok_or_else(refused)?;
        self.cipher
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: about })
            .map_err(|_| refused())
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::disk("get random bytes from the system", error))?;
    Ok(bytes)
}

/// Makes a new or renamed file of a directory last.
pub(crate) fn sync_parent(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(parent)?.sync_all()
}

/// MessagePack's own kind for bytes; a plain `Vec<u8>` would take two bytes for most of them.
mod bytes {
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<u8>, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element()? {
                    bytes.push(byte);
                }
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_file_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let sealed = Vault::open(&path, true).unwrap().seal("password", "hunter2").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Vault::open(&path, true).unwrap();
        assert_eq!(again.unseal("password", &sealed).unwrap(), "hunter2");
        assert!(again.unseal("another purpose", &sealed).is_err());
        assert_eq!(format!("{sealed:?} {again:?}"), "Sealed(…) Vault(…)");
    }

    #[test]
    fn a_missing_a_wrong_and_a_foreign_key_are_told_apart_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(Vault::open(&path, false).unwrap_err().to_string().contains("is missing"));
        fs::write(&path, "something else").unwrap();
        assert!(Vault::open(&path, true).unwrap_err().to_string().contains("not one of ours"));
        let sealed = Vault::of_the_moment().unwrap().seal("p", "secret").unwrap();
        let other = Vault::of_the_moment().unwrap();
        assert!(other.unseal("p", &sealed).unwrap_err().to_string().contains("does not open"));
    }

    #[test]
    fn a_sealed_secret_reads_back_from_messagepack() {
        let vault = Vault::of_the_moment().unwrap();
        let sealed = vault.seal("p", "secret").unwrap();
        let bytes = rmp_serde::to_vec_named(&sealed).unwrap();
        assert!(!bytes.windows(6).any(|it| it == b"secret"));
        let back: Sealed = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(vault.unseal("p", &back).unwrap(), "secret");
    }
}
