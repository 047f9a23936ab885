//! Making an archive.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::keys::{ArchiveKeys, BackupSecret};
use super::manifest::{CollectionManifest, FORMAT, MANIFEST, Manifest, SUMS};
use super::trailer::trailer;
use super::{BackupError, PART_BYTES};
use crate::engine::shared::Shared;
use crate::error::Error;
use crate::log::LogPosition;
use crate::read::snapshot::Snapshot;
use crate::record::{Record, RecordType, Sharing, decode};
use crate::store::Store;

/// Longest wait until another back-up or snapshot has read its records.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A file that an archive contains besides the records.
#[derive(Debug, Clone)]
pub struct BackupFile {
    /// The folder in the archive, such as `logos`: letters, digits and `-`.
    pub folder: &'static str,
    /// Its name there, without slashes.
    pub name: String,
    pub path: PathBuf,
    /// Whether it is encrypted.
    pub is_sealed: bool,
}

/// Writes an archive of all records as of one commit, and of these files. Other reads and writes continue, and another
/// back-up is waited for. Blocks.
///
/// `created_at` is in milliseconds since 1970. On success the file is complete and durable.
///
/// # Errors
/// If another back-up takes longer than a minute, if too much is overwritten meanwhile, or if the disk fails. The file is then
/// useless.
pub fn create_backup(
    store: &Store,
    files: &[BackupFile],
    secret: &BackupSecret,
    created_at: i64,
    into: &mut File,
) -> Result<Manifest, BackupError> {
    // Before the snapshot, because a passphrase takes time and the snapshot takes memory.
    let (key, keys) = ArchiveKeys::new(secret)?;
    let shared = store.shared();
    let alone = shared.backing_up.try_lock_for(WAIT_MAX).ok_or(Error::SnapshotExists)?;
    let snapshot = Snapshot::begin(shared)?;
    let is_snapshot = matches!(secret, BackupSecret::DataKeys(_));
    let restores_with = match secret {
        BackupSecret::DataKeys(_) => "A node joins its cluster with this snapshot.",
        BackupSecret::Passphrase(_) => "This back-up restores with its passphrase only.",
        BackupSecret::KeyFile(_) => {
            "This back-up restores only with the key file of the installation that made it: the file `key` in its data \
             folder. Keep a copy of that file elsewhere."
        }
    };
    // A restored store is in no log, unless it is a snapshot that continues one.
    // A node of an older version refuses a collection that it does not know. So a snapshot leaves out those that nothing was
    // written to yet.
    let was_used = |type_number: usize| {
        let locations = &snapshot.collections()[type_number];
        locations.n_records > 0 || locations.next_id > 1
    };
    let is_included = |(type_number, kind): &(usize, &RecordType)| match is_snapshot {
        true => kind.sharing != Sharing::Local && was_used(*type_number),
        false => kind.name != LogPosition::COLLECTION,
    };
    let kinds: Vec<_> = (shared.schema.record_types.iter().enumerate()).filter(is_included).collect();
    let collections = kinds.iter().map(|(type_number, kind)| {
        let locations = &snapshot.collections()[*type_number];
        CollectionManifest {
            name: kind.name.to_owned(),
            record_version: kind.version,
            records: locations.n_records,
            next_id: locations.next_id,
            is_sealed: kind.is_sealed || is_snapshot,
        }
    });
    let log = match is_snapshot {
        true => Some(position_of(shared, &snapshot)?),
        false => None,
    };
    let manifest = Manifest {
        format: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        schema_version: shared.format,
        created_at,
        commit: snapshot.commit(),
        restores_with: restores_with.to_owned(),
        key,
        collections: collections.collect(),
        files: files.len() as u64,
        log,
    };
    let mut writer = ArchiveWriter::new(into, &keys, created_at)?;
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| BackupError::Io {
        what: "write the manifest of the back-up",
        source: error.into(),
    })?;
    writer.add(MANIFEST, &text)?;
    for (type_number, kind) in &kinds {
        let sealing = match kind.sharing {
            Sharing::FullNodes if is_snapshot => Sealing::Provider,
            _ if is_snapshot || kind.is_sealed => Sealing::Sealed,
            _ => Sealing::Plain,
        };
        let mut parts = Parts::new(&mut writer, format!("collections/{}", kind.name), sealing);
        snapshot.for_each(*type_number, |record| parts.add_line(&(kind.to_json)(record)?))?;
        parts.finish()?;
    }
    drop(snapshot);
    drop(alone);
    files.iter().try_for_each(|file| writer.add_file(file))?;
    writer.finish()?;
    Ok(manifest)
}

/// Returns the position in the log that a snapshot stands at.
fn position_of(shared: &Shared, snapshot: &Snapshot) -> Result<LogPosition, BackupError> {
    let mut position = None;
    if let Some(type_number) = shared.schema.position(LogPosition::COLLECTION) {
        snapshot.for_each(type_number, |record| {
            position = Some(decode(record)?);
            Ok::<_, Error>(())
        })?;
    }
    position.ok_or(BackupError::Store(Error::NoLog))
}

/// How a member is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sealing {
    Plain,
    Sealed,
    /// With the provider key of a snapshot.
    Provider,
}

/// Writes an archive with these members and a valid authentication code, which a fuzzer cannot guess.
#[cfg(feature = "fuzzing")]
pub fn write_members(
    manifest: Manifest,
    members: &[(String, Vec<u8>)],
    secret: &BackupSecret,
    into: &mut File,
) -> Result<(), BackupError> {
    let (key, keys) = ArchiveKeys::new(secret)?;
    let mut writer = ArchiveWriter::new(into, &keys, 0)?;
    let text = serde_json::to_vec(&Manifest { key, ..manifest }).expect("a manifest can be encoded");
    writer.add(MANIFEST, &text)?;
    for (name, content) in members {
        match name.ends_with(".sealed") {
            true => writer.add_sealed(name, content, Sealing::Sealed)?,
            false => writer.add(name, content)?,
        }
    }
    writer.finish()
}

/// Writes the members of an archive.
struct ArchiveWriter<'a> {
    tar: tar::Builder<GzEncoder<AuthenticatedWriter<'a>>>,
    keys: &'a ArchiveKeys,
    /// Seconds since 1970.
    created_at: u64,
    sums: String,
}

/// Adds the written bytes to the authentication code.
struct AuthenticatedWriter<'a> {
    file: BufWriter<&'a mut File>,
    code: Hmac<Sha256>,
}

impl Write for AuthenticatedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.code.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

const WRITE: &str = "write the back-up";

impl<'a> ArchiveWriter<'a> {
    fn new(file: &'a mut File, keys: &'a ArchiveKeys, created_at: i64) -> Result<Self, BackupError> {
        file.seek(SeekFrom::Start(0)).and_then(|_| file.set_len(0)).map_err(BackupError::io(WRITE))?;
        let writer = AuthenticatedWriter { file: BufWriter::new(file), code: keys.authenticate() };
        Ok(ArchiveWriter {
            tar: tar::Builder::new(GzEncoder::new(writer, Compression::fast())),
            keys,
            created_at: u64::try_from(created_at / 1000).unwrap_or_default(),
            sums: String::new(),
        })
    }

    fn add(&mut self, name: &str, content: &[u8]) -> Result<(), BackupError> {
        self.sums += &format!("{}  {name}\n", HEXLOWER.encode(&Sha256::digest(content)));
        self.append(name, content)
    }

    fn append(&mut self, name: &str, content: &[u8]) -> Result<(), BackupError> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.created_at);
        self.tar.append_data(&mut header, name, content).map_err(BackupError::io(WRITE))
    }

    fn add_sealed(&mut self, name: &str, content: &[u8], sealing: Sealing) -> Result<(), BackupError> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        let deflated = encoder.write_all(content).and_then(|()| encoder.finish());
        let deflated = deflated.map_err(BackupError::io(WRITE))?;
        // The name is authenticated, so that no part can take the place of another.
        let vault = match (sealing, &self.keys.provider) {
            (Sealing::Provider, Some(provider)) => provider,
            _ => &self.keys.vault,
        };
        let sealed = vault.seal(name.as_bytes(), &deflated)?;
        self.add(name, &sealed)
    }

    fn add_file(&mut self, file: &BackupFile) -> Result<(), BackupError> {
        let name = format!("files/{}/{}", file.folder, file.name);
        let mut content = File::open(&file.path).map_err(BackupError::io("read an uploaded file"))?;
        let mut part = Vec::new();
        let mut read_part = |part: &mut Vec<u8>| {
            part.clear();
            let mut some = Read::by_ref(&mut content).take(PART_BYTES as u64);
            some.read_to_end(part).map_err(BackupError::io("read an uploaded file"))
        };
        if !file.is_sealed {
            // Two parts at most, so that the file can be opened as it is.
            read_part(&mut part)?;
            let mut more = Vec::new();
            if read_part(&mut more)? == PART_BYTES {
                return Err(BackupError::FileTooLarge(file.name.clone()));
            }
            part.append(&mut more);
            return self.add(&name, &part);
        }
        let mut number = 1;
        loop {
            let n = read_part(&mut part)?;
            if n == 0 && number > 1 {
                return Ok(());
            }
            self.add_sealed(&part_name(&name, number, Sealing::Sealed), &part, Sealing::Sealed)?;
            number += 1;
            if n < PART_BYTES {
                return Ok(());
            }
        }
    }

    fn finish(mut self) -> Result<(), BackupError> {
        let sums = std::mem::take(&mut self.sums);
        self.append(SUMS, sums.as_bytes())?;
        let finish = || {
            let AuthenticatedWriter { mut file, code } = self.tar.into_inner()?.finish()?;
            file.write_all(&trailer(&code.finalize().into_bytes().into()))?;
            file.flush()?;
            file.get_ref().sync_all()
        };
        finish().map_err(BackupError::io(WRITE))
    }
}

/// Collects lines and writes them as members of limited size.
struct Parts<'w, 'a> {
    writer: &'w mut ArchiveWriter<'a>,
    folder: String,
    sealing: Sealing,
    lines: Vec<u8>,
    n_parts: u32,
}

impl<'w, 'a> Parts<'w, 'a> {
    fn new(writer: &'w mut ArchiveWriter<'a>, folder: String, sealing: Sealing) -> Self {
        Parts { writer, folder, sealing, lines: Vec::new(), n_parts: 0 }
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), BackupError> {
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        if self.lines.len() >= PART_BYTES { self.write_part() } else { Ok(()) }
    }

    fn write_part(&mut self) -> Result<(), BackupError> {
        self.n_parts += 1;
        let name = part_name(&self.folder, self.n_parts, self.sealing);
        match self.sealing {
            Sealing::Plain => self.writer.add(&name, &self.lines)?,
            _ => self.writer.add_sealed(&name, &self.lines, self.sealing)?,
        }
        self.lines.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), BackupError> {
        if self.lines.is_empty() { Ok(()) } else { self.write_part() }
    }
}

fn part_name(folder: &str, number: u32, sealing: Sealing) -> String {
    let ending = match sealing {
        Sealing::Plain => "jsonl",
        Sealing::Sealed => "sealed",
        Sealing::Provider => "provider",
    };
    format!("{folder}/{number:06}.{ending}")
}
