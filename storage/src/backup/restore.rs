//! Writing the content of a verified archive to a new store.

use std::collections::BTreeMap;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::{fs, mem};

use data_encoding::HEXLOWER;
use flate2::write::DeflateDecoder;
use sha2::{Digest, Sha256};

use super::archive::UnlockedArchive;
use super::keys::ArchiveKeys;
use super::manifest::{CollectionManifest, MANIFEST, Manifest, SUMS};
use super::restore_records::restore_records;
use super::{BackupError, MEMBER_BYTES_MAX};
use crate::error::Error;
use crate::record::{Schema, Sharing};
use crate::store::Store;

/// Receives a part of an uploaded file: its folder, its name and the content. Parts of a file come in order, one after
/// another.
pub type SaveFile<'a> = &'a mut dyn FnMut(&str, &str, &[u8]) -> io::Result<()>;

impl UnlockedArchive {
    /// Restores the archive to a new store in this folder, encrypted with this key file, and opens that store once more
    /// to verify it. Blocks.
    ///
    /// # Errors
    /// If the folder contains a store, if this version does not know all collections, or if the disk fails. The folder is
    /// removed then.
    pub fn restore(
        &self,
        folder: &Path,
        key_file: &Path,
        schema: &Schema,
        save: SaveFile<'_>,
    ) -> Result<(), BackupError> {
        if folder.exists() {
            return Err(Error::disk("restore the back-up", "the folder of the new store exists").into());
        }
        let manifest = self.manifest();
        check_collections(manifest, schema)?;
        let done = self.restore_into(folder, key_file, schema, save);
        done.and_then(|()| self.verify(folder, key_file, schema)).inspect_err(|_| {
            drop(fs::remove_dir_all(folder));
        })
    }

    fn restore_into(
        &self,
        folder: &Path,
        key_file: &Path,
        schema: &Schema,
        save: SaveFile<'_>,
    ) -> Result<(), BackupError> {
        let store = Store::open(folder, key_file, schema.clone())?;
        let mut tar = self.archive.tar()?;
        let entries = tar.entries().map_err(unreadable)?;
        let mut members = Members { entries, keys: &self.keys, next: None, sums: BTreeMap::new() };
        members.advance()?;
        let mut counts = BTreeMap::new();
        while let Some(member) = &members.next {
            match MemberKind::from_name(&member.name) {
                MemberKind::Manifest => members.advance()?,
                // This node does not have the key, and needs no record of it.
                MemberKind::Collection(_) if member.is_foreign => members.advance()?,
                MemberKind::Collection(name) => {
                    let position = schema.position(&name).ok_or_else(|| unexpected(&member.name))?;
                    let n = members.restore(&store, &name, position)?;
                    *counts.entry(name).or_insert(0) += n;
                }
                MemberKind::File { folder, name } => {
                    save(&folder, &name, &member.content)
                        .map_err(BackupError::io("save an uploaded file"))?;
                    members.advance()?;
                }
                MemberKind::Sums => {
                    let listed = String::from_utf8_lossy(&member.content).into_owned();
                    members.check_sums(&listed)?;
                    break;
                }
                MemberKind::Unknown => return Err(unexpected(&member.name)),
            }
        }
        for collection in self.restored_collections(schema) {
            let restored = counts.get(&collection.name).copied().unwrap_or_default();
            if restored != collection.records {
                let what = format!("{restored} of {} records of {}", collection.records, collection.name);
                return Err(BackupError::Changed(what));
            }
        }
        let next_ids: Vec<_> =
            self.restored_collections(schema).map(|it| (it.name.clone(), it.next_id)).collect();
        let (schema, log) = (schema.clone(), self.manifest().log);
        store.write_blocking(move |write| {
            for (name, next_id) in next_ids {
                if let Some(type_number) = schema.position(&name) {
                    write.reserve_ids(type_number, next_id);
                }
            }
            log.map_or(Ok(()), |position| write.put(&position))
        })?;
        store.close();
        Ok(())
    }

    /// Lists the collections that this node can read: all, unless it is an edge node.
    fn restored_collections<'a>(
        &'a self,
        schema: &'a Schema,
    ) -> impl Iterator<Item = &'a CollectionManifest> {
        let is_partial = self.manifest().log.is_some() && self.keys.provider.is_none();
        let is_foreign = |name: &str| {
            let known = schema.position(name).map(|it| &schema.record_types[it]);
            known.is_some_and(|it| it.sharing == Sharing::FullNodes)
        };
        self.manifest().collections.iter().filter(move |it| !is_partial || !is_foreign(&it.name))
    }

    /// Opens the new store as a start does, which reads and checks all of it, and compares the number of records.
    fn verify(&self, folder: &Path, key_file: &Path, schema: &Schema) -> Result<(), BackupError> {
        let store = Store::open(folder, key_file, schema.clone())?;
        let state = store.shared().state.read();
        for collection in self.restored_collections(schema) {
            let directory = schema.position(&collection.name).map(|it| &state.directories[it]);
            let is_same = directory
                .is_some_and(|it| it.len() as u64 == collection.records && it.next_id >= collection.next_id);
            if !is_same {
                let what = format!("the new store has other {} than the back-up", collection.name);
                return Err(BackupError::Changed(what));
            }
        }
        drop(state);
        store.close();
        Ok(())
    }
}

/// Refuses collections and record versions of a later program.
fn check_collections(manifest: &Manifest, schema: &Schema) -> Result<(), BackupError> {
    for collection in &manifest.collections {
        let newer = |what: String| BackupError::Newer { program: manifest.program.clone(), what };
        let known = schema.position(&collection.name).map(|it| &schema.record_types[it]);
        let known = known.ok_or_else(|| newer(format!("the collection {}", collection.name)))?;
        if collection.record_version > known.version {
            let version = collection.record_version;
            return Err(newer(format!("version {version} of the records of {}", collection.name)));
        }
    }
    Ok(())
}

fn unreadable(error: io::Error) -> BackupError {
    BackupError::Io { what: "unpack the back-up", source: error }
}

fn unexpected(name: &str) -> BackupError {
    BackupError::Changed(format!("it contains the unknown member {name}"))
}

/// The content of a member, by its name.
enum MemberKind {
    Manifest,
    Collection(String),
    File { folder: String, name: String },
    Sums,
    Unknown,
}

impl MemberKind {
    fn from_name(name: &str) -> Self {
        match name.split('/').collect::<Vec<_>>()[..] {
            [MANIFEST] => Self::Manifest,
            [SUMS] => Self::Sums,
            ["collections", name, _] => Self::Collection(name.to_owned()),
            ["files", folder, name] | ["files", folder, name, _] => {
                Self::File { folder: folder.to_owned(), name: name.to_owned() }
            }
            _ => Self::Unknown,
        }
    }
}

/// A member with its plain content.
struct Member {
    name: String,
    content: Vec<u8>,
    /// It is encrypted with a key that this node does not have.
    is_foreign: bool,
}

/// The members of an archive, one after another.
struct Members<'a, R: Read> {
    entries: tar::Entries<'a, R>,
    keys: &'a ArchiveKeys,
    next: Option<Member>,
    /// Checksums of the members read so far, by name.
    sums: BTreeMap<String, String>,
}

impl<R: Read> Members<'_, R> {
    /// Reads the next member.
    fn advance(&mut self) -> Result<(), BackupError> {
        self.next = None;
        let Some(entry) = self.entries.next() else { return Ok(()) };
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != tar::EntryType::Regular || entry.size() > MEMBER_BYTES_MAX {
            return Err(unexpected(&name));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(unreadable)?;
        if name != SUMS {
            self.sums.insert(name.clone(), HEXLOWER.encode(&Sha256::digest(&content)));
        }
        let vault = match name.rsplit_once('.') {
            Some((_, "sealed")) => Some(&self.keys.vault),
            Some((_, "provider")) => self.keys.provider.as_ref(),
            _ => None,
        };
        let is_foreign = vault.is_none() && name.ends_with(".provider");
        if let Some(vault) = vault {
            let damaged = |_| BackupError::Changed(format!("the member {name} cannot be decrypted"));
            content = inflate(&vault.unseal(name.as_bytes(), &content).map_err(damaged)?)?;
        }
        self.next = Some(Member { name, content, is_foreign });
        Ok(())
    }

    /// Restores the parts of one collection, beginning with the next member.
    fn restore(&mut self, store: &Store, collection: &str, type_number: usize) -> Result<u64, BackupError> {
        let prefix = format!("collections/{collection}/");
        let mut lines = Lines::default();
        let mut failure = None;
        let mut next_line = || {
            loop {
                if let Some(line) = lines.next() {
                    return Ok(Some(line));
                }
                match &mut self.next {
                    Some(member) if member.name.starts_with(&prefix) => {
                        lines = Lines { content: mem::take(&mut member.content), at: 0 };
                    }
                    _ => return Ok(None),
                }
                if let Err(error) = self.advance() {
                    failure = Some(error);
                    return Err(Error::Interrupted);
                }
            }
        };
        let restored = restore_records(store, type_number, &mut next_line);
        match failure {
            Some(error) => Err(error),
            None => Ok(restored?),
        }
    }

    /// Compares the checksums of all members with the list.
    fn check_sums(&self, listed: &str) -> Result<(), BackupError> {
        let listed: BTreeMap<String, String> = listed
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(sum, name)| (name.to_owned(), sum.to_owned()))
            .collect();
        let is_same = listed == self.sums;
        is_same.then_some(()).ok_or_else(|| BackupError::Changed("its checksums are wrong".to_owned()))
    }
}

/// The lines of a part.
#[derive(Default)]
struct Lines {
    content: Vec<u8>,
    at: usize,
}

impl Lines {
    fn next(&mut self) -> Option<Vec<u8>> {
        let rest = self.content.get(self.at..).filter(|it| !it.is_empty())?;
        let length = rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len());
        self.at += length + 1;
        Some(rest[..length].to_vec())
    }
}

/// Unpacks a part, up to the maximum size of a member.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, BackupError> {
    struct Limited(Vec<u8>);
    impl io::Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if (self.0.len() + bytes.len()) as u64 > MEMBER_BYTES_MAX {
                return Err(io::Error::other("a member of the back-up is too large"));
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut decoder = DeflateDecoder::new(Limited(Vec::new()));
    let inflated = decoder.write_all(bytes).and_then(|()| decoder.finish());
    inflated.map(|it| it.0).map_err(unreadable)
}
