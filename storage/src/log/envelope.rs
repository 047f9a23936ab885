//! Data keys that are sealed for one node: sent to it when it joins, and stored for it after a rotation.
//!
//! Layout: format (1 byte), a one-time X25519 key (32 bytes), nonce and ciphertext. Only the holder of the node's private
//! key derives the key of the cipher.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};

use super::keys::{DataKey, LogKeys};
use crate::engine::vault::{Vault, random};
use crate::error::{Error, Result};

const FORMAT: u8 = 1;
/// Maximum size of a sealed text, in bytes: two full rings have 13 KiB.
const SEALED_MAX: usize = 64 << 10;

/// The private key of a node. `Debug` omits it; its serialized form contains it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SealingKey(DataKey);

impl SealingKey {
    /// # Errors
    /// If the system has no random bytes.
    pub fn random() -> Result<Self> {
        DataKey::random().map(Self)
    }

    fn secret(&self) -> StaticSecret {
        StaticSecret::from(self.0.0)
    }

    /// Returns the key with which others seal for this node.
    pub fn public(&self) -> [u8; 32] {
        PublicKey::from(&self.secret()).to_bytes()
    }

    /// Opens what [`seal_keys`] returned for this node.
    ///
    /// # Errors
    /// If it was sealed for another node, or changed.
    pub fn open(&self, sealed: &[u8]) -> Result<LogKeys> {
        let refused = || Error::Key("the data keys are not sealed for this node".to_owned());
        let (&format, rest) = sealed.split_first().ok_or_else(refused)?;
        if format > FORMAT {
            return Err(Error::TooNew { found: format, known: FORMAT });
        }
        let (one_time, rest) = rest.split_first_chunk::<32>().ok_or_else(refused)?;
        if format != FORMAT || rest.len() > SEALED_MAX {
            return Err(refused());
        }
        let vault = vault(&self.secret(), one_time, one_time, &self.public()).ok_or_else(refused)?;
        let text = vault.unseal(&[FORMAT], rest).map_err(|_| refused())?;
        serde_json::from_slice(&text).map_err(|_| refused())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

/// Seals data keys for the node with this public key.
///
/// # Errors
/// If the public key is not a safe one, or if the system has no random bytes.
pub fn seal_keys(node: &[u8; 32], keys: &LogKeys) -> Result<Vec<u8>> {
    let one_time = StaticSecret::from(random::<32>()?);
    let public = PublicKey::from(&one_time).to_bytes();
    let weak = || Error::Key("the public key of the node is not a safe one".to_owned());
    let vault = vault(&one_time, node, &public, node).ok_or_else(weak)?;
    let text = serde_json::to_vec(keys)
        .map_err(|error| Error::Encode { collection: "data keys", cause: error.to_string() })?;
    Ok([&[FORMAT][..], &public, &vault.seal(&[FORMAT], &text)?].concat())
}

/// Returns the cipher that both sides agree on, or `None` if the other key would make the result predictable.
fn vault(own: &StaticSecret, other: &[u8; 32], one_time: &[u8; 32], node: &[u8; 32]) -> Option<Vault> {
    let shared = own.diffie_hellman(&PublicKey::from(*other));
    if !shared.was_contributory() {
        return None;
    }
    let mut mac =
        Hmac::<Sha256>::new_from_slice(shared.as_bytes()).expect("a key of HMAC may have any length");
    mac.update(b"headwater data keys of a node ");
    mac.update(one_time);
    mac.update(node);
    Some(Vault::new(&mac.finalize().into_bytes().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_keys_are_opened_by_the_node_that_they_are_sealed_for_and_by_nobody_else() {
        let (node, other) = (SealingKey::random().unwrap(), SealingKey::random().unwrap());
        let keys = LogKeys::new().unwrap();
        for keys in [keys.clone(), keys.for_edge()] {
            let sealed = seal_keys(&node.public(), &keys).unwrap();
            assert_eq!(node.open(&sealed).unwrap(), keys);
            let refused = other.open(&sealed).unwrap_err();
            assert!(refused.to_string().contains("not sealed for this node"), "{refused}");
            assert_ne!(seal_keys(&node.public(), &keys).unwrap(), sealed);
            for length in 0..sealed.len() {
                assert!(node.open(&sealed[..length]).is_err(), "cut to {length}");
            }
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert!(node.open(&changed).is_err(), "byte {at}");
            }
        }
        assert!(seal_keys(&[0; 32], &keys).is_err(), "a key that makes the result predictable");
        assert_eq!(format!("{node:?}"), "SealingKey(…)");
    }
}
