//! Texts and keys that may be kept and compared, and never be shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A password, a key or a hash of one. Prints itself as `…`; serialised it is the whole text, because records must be
/// read back. A type that is shown to a caller has no `Secret` in it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole text. Never for a log, an error or an event.
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

/// Keys of this installation, made once and kept with what they protect.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerKeys {
    /// Signs the tokens of users.
    pub tokens: [u8; 32],
    /// Makes of an API key what it is looked up by.
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
    fn a_secret_prints_without_itself() {
        let secret = Secret::new("hunter2");
        let keys = ServerKeys { tokens: [77; 32], lookup: [78; 32] };
        let printed = format!("{secret} {secret:?} {keys:?}");
        assert!(
            !printed.contains("hunter2") && !printed.contains("77") && !printed.contains("78"),
            "{printed}"
        );
    }
}
