//! Opening and verifying an archive, before anything of it is used.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use hmac::Mac;

use super::BackupError;
use super::keys::{ArchiveKeys, BackupSecret};
use super::manifest::{FORMAT, KeyInfo, MANIFEST, MANIFEST_BYTES_MAX, Manifest};
use super::trailer::{TRAILER, code_of};
use crate::recovery::migration::FORMATS;

const READ: &str = "read the back-up";
/// Bytes of the archive that are hashed at a time.
const HASHED_AT_ONCE: usize = 256 << 10;
/// Room for the headers around the manifest.
const HEADERS_BYTES_MAX: u64 = 4 << 10;

/// An archive whose manifest was read. Nothing is verified yet.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    manifest: Manifest,
    /// Size without the trailer.
    body_bytes: u64,
    code: [u8; 32],
}

/// An archive that is complete and unchanged since it was made.
pub struct UnlockedArchive {
    pub(crate) archive: Archive,
    pub(crate) keys: ArchiveKeys,
}

impl Archive {
    /// Opens an archive and reads its manifest. Blocks.
    ///
    /// # Errors
    /// If the file is not an archive, is truncated, is the snapshot of a cluster, or was written by a later version.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let archive = Self::open_any(path)?;
        if matches!(archive.manifest.key, KeyInfo::DataKeys { .. }) {
            return Err(BackupError::IsSnapshot);
        }
        Ok(archive)
    }

    /// Does the same for back-ups and snapshots.
    pub(crate) fn open_any(path: &Path) -> Result<Self, BackupError> {
        let mut file = File::open(path).map_err(BackupError::io(READ))?;
        let manifest = read_manifest(&mut file)?;
        let size = file.metadata().map_err(BackupError::io(READ))?.len();
        let body_bytes = size.checked_sub(TRAILER as u64).ok_or(BackupError::Truncated)?;
        let mut trailer = [0; TRAILER];
        file.seek(SeekFrom::Start(body_bytes))
            .and_then(|_| file.read_exact(&mut trailer))
            .map_err(BackupError::io(READ))?;
        let code = code_of(&trailer).ok_or(BackupError::Truncated)?;
        if manifest.schema_version > FORMATS.now {
            let what = format!("the format {} of the store", manifest.schema_version);
            return Err(BackupError::Newer { program: manifest.program, what });
        }
        Ok(Archive { path: path.to_owned(), manifest, body_bytes, code })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Verifies the whole archive under a secret. Blocks.
    ///
    /// # Errors
    /// If the secret is not that of the archive, or if any byte of the archive was changed.
    pub fn unlock(self, secret: &BackupSecret) -> Result<UnlockedArchive, BackupError> {
        let keys = ArchiveKeys::derive(&self.manifest.key, secret)?;
        let mut code = keys.authenticate();
        let mut body = self.body()?;
        let mut buffer = vec![0; HASHED_AT_ONCE];
        loop {
            match body.read(&mut buffer).map_err(BackupError::io(READ))? {
                0 => break,
                n => code.update(&buffer[..n]),
            }
        }
        let verified = code.verify_slice(&self.code);
        verified.map_err(|_| BackupError::Changed("its authentication code is wrong".to_owned()))?;
        Ok(UnlockedArchive { archive: self, keys })
    }

    fn body(&self) -> Result<impl Read + use<>, BackupError> {
        let file = File::open(&self.path).map_err(BackupError::io(READ))?;
        Ok(file.take(self.body_bytes))
    }

    /// Returns the unpacked archive.
    pub(crate) fn tar(&self) -> Result<tar::Archive<impl Read + use<>>, BackupError> {
        let body = BufReader::with_capacity(HASHED_AT_ONCE, self.body()?);
        Ok(tar::Archive::new(MultiGzDecoder::new(body)))
    }
}

impl UnlockedArchive {
    pub fn manifest(&self) -> &Manifest {
        &self.archive.manifest
    }
}

/// The members of a manifest that tell whether this version can read the others.
#[derive(serde::Deserialize)]
struct ManifestVersion {
    format: u32,
    program: String,
}

/// Reads the first member. The file may be anything, so a limited part of it is unpacked.
fn read_manifest(file: &mut File) -> Result<Manifest, BackupError> {
    let unpacked = MultiGzDecoder::new(BufReader::new(file)).take(MANIFEST_BYTES_MAX + HEADERS_BYTES_MAX);
    let mut tar = tar::Archive::new(unpacked);
    let not_a_backup = |_| BackupError::NotABackup;
    let first = tar.entries().map_err(not_a_backup)?.next().ok_or(BackupError::NotABackup)?;
    let mut first = first.map_err(not_a_backup)?;
    if first.path_bytes() != MANIFEST.as_bytes() || first.size() > MANIFEST_BYTES_MAX {
        return Err(BackupError::NotABackup);
    }
    let mut text = Vec::new();
    // A manifest that begins like one and cannot be read to its end was cut or changed.
    first.read_to_end(&mut text).map_err(|_| BackupError::Truncated)?;
    let version: ManifestVersion =
        serde_json::from_slice(&text).map_err(|_| BackupError::Changed("the manifest".to_owned()))?;
    if version.format > FORMAT {
        let what = format!("the format {} of back-ups", version.format);
        return Err(BackupError::Newer { program: version.program, what });
    }
    serde_json::from_slice(&text).map_err(|_| BackupError::Changed("the manifest".to_owned()))
}
