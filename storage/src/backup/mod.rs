//! Back-ups: an archive of all records and of some files, and its restoration to a new store.
//!
//! An archive is a `.tar.gz` that common programs can open:
//!
//! ```text
//!   manifest.json                                  versions, the commit, the key, the collections
//!   collections/channels/000001.jsonl              one record per line
//!   collections/streams/000001.sealed              the same, deflated and encrypted
//!   files/logos/example.png                        an uploaded file
//!   files/playlists/list.m3u/000001.sealed         an uploaded file with addresses of a provider, encrypted
//!   SHA256SUMS                                     the checksum of each member above, for `sha256sum -c`
//! ```
//!
//! Snapshots of a cluster have the same form. They contain the shared collections only, all of them encrypted:
//! `.sealed` under the cluster key, `.provider` under the provider key.
//!
//! Collections that are encrypted in the store are encrypted in the archive: under a passphrase, or under the key file of
//! the installation. The last bytes of the archive are an empty gzip member with an authentication code over all bytes
//! before it, under the same key. So every truncation and every changed byte is detected before anything is read.
//!
//! Reading order: `manifest.rs`, `keys.rs`, `create.rs`, `archive.rs` (opening and verifying), `restore.rs`,
//! `restore_records.rs`.

mod archive;
mod create;
mod keys;
mod manifest;
mod restore;
mod restore_records;
mod trailer;

use std::io;

pub use self::archive::{Archive, UnlockedArchive};
#[cfg(feature = "fuzzing")]
pub use self::create::write_members;
pub use self::create::{BackupFile, create_backup};
pub use self::keys::BackupSecret;
pub use self::manifest::{CollectionManifest, KeyKind, Manifest};
pub use self::restore::SaveFile;

/// Maximum length of the plain content of a member, in bytes. One record more may be in it.
pub(crate) const PART_BYTES: usize = 4 << 20;
/// Maximum size of a member, in bytes: a part and the longest line. Larger ones are refused, so that reading an archive
/// needs little memory.
pub(crate) const MEMBER_BYTES_MAX: u64 = 32 << 20;

/// Reason why a back-up was not made, or an archive was not accepted. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("the file is not a back-up of Headwater")]
    NotABackup,
    #[error("the back-up is truncated, or its end was changed")]
    Truncated,
    #[error(
        "Headwater {program} wrote the back-up, with {what}, which this version does not know; use Headwater {program} or a newer one"
    )]
    Newer { program: String, what: String },
    #[error("the back-up is encrypted under a passphrase; send its passphrase")]
    NeedsPassphrase,
    #[error("the back-up restores only with the key file of the installation that made it; send its content")]
    NeedsKeyFile,
    #[error("the file is a snapshot of a cluster, not a back-up; a node joins with it")]
    IsSnapshot,
    #[error("the file is a back-up, not a snapshot of a cluster")]
    NotASnapshot,
    #[error(
        "the back-up has values that plugins have stored, and not all nodes can read them yet: update all nodes, run \
         `headwater cluster finalize`, and restore the back-up after that"
    )]
    NotFinalized,
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    #[error("the key file is not that of the installation that made the back-up")]
    WrongKeyFile,
    #[error("the back-up is damaged or was changed: {0}")]
    Changed(String),
    #[error("the file {0} is too large for a back-up")]
    FileTooLarge(String),
    #[error("failed to {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error(transparent)]
    Store(#[from] crate::Error),
}

impl From<io::Error> for BackupError {
    fn from(source: io::Error) -> Self {
        Self::Io { what: "store the back-up", source }
    }
}

impl BackupError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
