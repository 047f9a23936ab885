//! Files that the nodes of a cluster share: what the object store has under which name.

use serde::{Deserialize, Serialize};

/// Maximum size of a shared file, in bytes. The largest upload has half of it.
pub const SHARED_FILE_BYTES_MAX: u64 = 1 << 30;

/// A file of the data folder that each node gets from the object store.
///
/// The content of a name never changes, with the exception of settings that are files: then the digest changes too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFile {
    pub id: u32,
    /// The kind of the file. A later version may know more of them.
    pub folder: String,
    pub name: String,
    /// SHA-256 of the content.
    pub digest: [u8; 32],
    /// The size of the content.
    pub bytes: u64,
    /// Only full nodes may read it, because it can contain logins at providers.
    pub is_secret: bool,
    /// The name in the object store.
    pub object: String,
    /// Milliseconds since 1970.
    pub shared_at: i64,
}

impl SharedFile {
    /// Returns the folder and the name as one text, which is unique.
    pub fn path(&self) -> String {
        format!("{}/{}", self.folder, self.name)
    }
}
