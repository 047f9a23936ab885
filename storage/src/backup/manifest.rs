//! The first member of an archive: versions, the commit, the key, and the collections.

use serde::{Deserialize, Serialize};

use crate::log::LogPosition;

/// Format of archives that is written, and the newest that is read.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SUMS: &str = "SHA256SUMS";
/// Maximum size of a manifest, in bytes. It is read before the archive is verified.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 256 << 10;

/// The manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the archive.
    pub format: u32,
    /// Version of the program that wrote it.
    pub program: String,
    /// Format of the store that it was made from.
    pub schema_version: u8,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// The last commit that it contains.
    pub commit: u64,
    /// Says which secret restores it.
    pub restores_with: String,
    pub(crate) key: KeyInfo,
    pub collections: Vec<CollectionManifest>,
    /// Number of uploaded files.
    pub files: u64,
    /// The last commit of the log that it contains, if it is a snapshot of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
}

/// A collection in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionManifest {
    pub name: String,
    /// Version of the encoding of its records.
    pub record_version: u8,
    pub records: u64,
    /// The next id that a new record gets. No id is ever used twice.
    pub next_id: u32,
    /// Whether the collection is encrypted.
    pub is_sealed: bool,
}

/// The secret that restores an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Passphrase,
    /// The key file of the installation that made the archive.
    KeyFile,
}

/// How the key of the archive is derived. Texts are hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum KeyInfo {
    /// Argon2id.
    Passphrase { salt: String, memory_kib: u32, passes: u32, lanes: u32, check: String },
    /// HMAC-SHA256 under the content of the key file.
    KeyFile { salt: String, check: String },
    /// HMAC-SHA256 under the data keys of a cluster, of these generations.
    DataKeys { salt: String, cluster: u32, provider: u32, check: String },
}

impl Manifest {
    pub fn key_kind(&self) -> KeyKind {
        match self.key {
            KeyInfo::Passphrase { .. } => KeyKind::Passphrase,
            // Snapshots are not opened as back-ups.
            KeyInfo::KeyFile { .. } | KeyInfo::DataKeys { .. } => KeyKind::KeyFile,
        }
    }
}
