//! Texts and keys that are stored and compared, but never displayed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A password, a key or a hash of one. It prints as `…` but serialises its whole text, because records must be read
/// back. Types that are returned to clients contain no `Secret`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the whole text. Never use it in a log, an error or an event.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Keys of this installation, generated once and stored with the data that they protect.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerKeys {
    /// Signs the tokens of users.
    pub tokens: [u8; 32],
    /// Keys the hash by which an API key is looked up.
    pub lookup: [u8; 32],
}

impl fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_without_its_value() {
        let secret = Secret::new("hunter2");
        let keys = ServerKeys { tokens: [77; 32], lookup: [78; 32] };
        let printed = format!("{secret} {secret:?} {keys:?}");
        assert!(
            !printed.contains("hunter2") && !printed.contains("77") && !printed.contains("78"),
            "{printed}"
        );
    }
}
