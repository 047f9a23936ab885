//! The keys of plugins: their folder names.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum size of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 64;

/// Identifies a plugin. It is the name of the plugin's folder, in lower case and with underscores for spaces, and is
/// safe as a part of a path and of an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PluginKey(String);

/// A folder name that is not a valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a plugin folder has a name of 1 to {KEY_BYTES_MAX} letters (a to z), digits, underscores, hyphens and dots, which \
     begins with a letter, a digit or an underscore"
)]
pub struct WrongPluginKey;

impl PluginKey {
    /// Returns the key of a plugin folder.
    ///
    /// # Errors
    /// The name has characters that a key does not have, or is too long.
    pub fn from_folder(name: &str) -> Result<Self, WrongPluginKey> {
        let key = name.trim().to_ascii_lowercase().replace(' ', "_");
        let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"_-.".contains(&it);
        let begins_well = key.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric() || it == b'_');
        match begins_well && key.len() <= KEY_BYTES_MAX && key.bytes().all(is_plain) {
            true => Ok(Self(key)),
            false => Err(WrongPluginKey),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PluginKey {
    type Error = WrongPluginKey;

    fn try_from(text: String) -> Result<Self, WrongPluginKey> {
        Self::from_folder(&text)
    }
}

impl From<PluginKey> for String {
    fn from(key: PluginKey) -> Self {
        key.0
    }
}
