//! API keys: random texts that are a user's for as long as they are kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::secret::Secret;
use domain::user::ApiKey;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Random bytes of a key.
const KEY_BYTES: usize = 40;
/// Bytes of a key that is looked up, at most. Ours have 54; people may have brought longer ones.
const SHOWN_BYTES_MAX: usize = 512;

/// A new key of 54 characters that fit in a URL, and what it is looked up by.
pub(super) fn generate(lookup: &[u8; 32]) -> ApiKey {
    let key = URL_SAFE_NO_PAD.encode(random::<KEY_BYTES>());
    let digest = digest(lookup, &key);
    ApiKey { key: Secret::new(key), digest }
}

/// What a key that somebody shows is looked up by; `None` if it cannot be one.
pub(super) fn lookup(lookup: &[u8; 32], shown: &str) -> Option<[u8; 32]> {
    (1..=SHOWN_BYTES_MAX).contains(&shown.len()).then(|| digest(lookup, shown))
}

/// A digest that nobody without our key can make, so that the time of a search tells nothing.
fn digest(lookup: &[u8; 32], key: &str) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(lookup).expect("HMAC takes a key of any length");
    mac.chain_update(key).finalize().into_bytes().into()
}

/// Bytes that nobody can foresee.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_54_characters_that_fit_in_a_url_and_never_the_same() {
        let (one, other) = (generate(&[1; 32]), generate(&[1; 32]));
        let text = one.key.expose();
        assert_eq!(text.len(), 54);
        assert!(text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)));
        assert_ne!(one.key, other.key);
        assert_eq!(lookup(&[1; 32], text), Some(one.digest));
        assert_ne!(lookup(&[2; 32], text), Some(one.digest), "another installation");
    }

    #[test]
    fn what_cannot_be_a_key_is_not_looked_up() {
        assert_eq!(lookup(&[1; 32], ""), None);
        assert_eq!(lookup(&[1; 32], &"x".repeat(SHOWN_BYTES_MAX + 1)), None);
    }
}
