//! API keys: random texts that identify a user until they are revoked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::secret::Secret;
use domain::user::ApiKey;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Number of random bytes in a key.
const KEY_BYTES: usize = 40;
/// Maximum length of a key to look up, in bytes. Generated keys have 54; imported ones may be longer.
const KEY_BYTES_MAX: usize = 512;

/// Generates a key of 54 URL-safe characters, with its lookup digest.
pub(super) fn generate(lookup: &[u8; 32]) -> ApiKey {
    let key = URL_SAFE_NO_PAD.encode(random::<KEY_BYTES>());
    let digest = digest(lookup, &key);
    ApiKey { key: Secret::new(key), digest }
}

/// Returns a key that somebody has chosen, with its lookup digest.
pub(super) fn chosen(lookup: &[u8; 32], key: Secret) -> ApiKey {
    let digest = digest(lookup, key.expose());
    ApiKey { key, digest }
}

/// Returns the lookup digest of a presented key, or `None` if its length is invalid.
pub(super) fn lookup(lookup: &[u8; 32], key: &str) -> Option<[u8; 32]> {
    (1..=KEY_BYTES_MAX).contains(&key.len()).then(|| digest(lookup, key))
}

/// Computes a keyed digest. Without the server key nobody can choose digests, so lookup times reveal nothing.
fn digest(lookup: &[u8; 32], key: &str) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(lookup).expect("HMAC takes a key of any length");
    mac.chain_update(key).finalize().into_bytes().into()
}

/// Returns random bytes from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_54_url_safe_characters_and_is_unique() {
        let (one, other) = (generate(&[1; 32]), generate(&[1; 32]));
        let text = one.key.expose();
        assert_eq!(text.len(), 54);
        assert!(text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)));
        assert_ne!(one.key, other.key);
        assert_eq!(lookup(&[1; 32], text), Some(one.digest));
        assert_ne!(lookup(&[2; 32], text), Some(one.digest), "another installation");
    }

    #[test]
    fn a_key_of_invalid_length_is_not_looked_up() {
        assert_eq!(lookup(&[1; 32], ""), None);
        assert_eq!(lookup(&[1; 32], &"x".repeat(KEY_BYTES_MAX + 1)), None);
    }
}
