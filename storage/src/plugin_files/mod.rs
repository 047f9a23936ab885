//! The folders of plugins: installed from archives, read without running anything.
//!
//! ```text
//!   plugins/KEY/             the code of a plugin and its manifest
//!   plugins/.staged-UUID/    an archive that is being unpacked
//!   plugins/.old-KEY/        the version before, until the new one has started
//!   plugins/.archive-KEY     the name of the archive that the nodes of a cluster share, once it is that of the folder
//! ```
//!
//! Reading order: `mod.rs`, `archive.rs` (unpacking with all refusals), `pack.rs` (packing), `zip.rs` (the format).

mod archive;
mod pack;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod zip;

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use domain::plugin::{MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest, ManifestError, PluginKey};
use uuid::Uuid;

use self::archive::UnpackFolder;
pub use self::archive::{ArchiveError, ArchiveTarget, ENTRIES_MAX, UNPACKED_BYTES_MAX, unpack};
use crate::folders::create_folder;

const STAGED: &str = ".staged-";
const OLD: &str = ".old-";
const ARCHIVE: &str = ".archive-";
/// Maximum length of the name of an archive, in bytes.
const ARCHIVE_NAME_BYTES_MAX: u64 = 128;
/// Maximum size of a logo, in bytes.
const LOGO_BYTES_MAX: u64 = 1 << 20;
/// Names of logos, the preferred one first.
const LOGOS: [&str; 5] = ["logo.png", "logo.webp", "logo.jpg", "logo.jpeg", "icon.png"];

/// The folders of all plugins. All methods block.
#[derive(Debug, Clone)]
pub struct PluginFiles {
    root: PathBuf,
}

/// The manifest of an installed plugin, or why it cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("read the folder of the plugin: {0}")]
    Io(#[from] io::Error),
}

/// An unpacked plugin that is not installed yet. Dropping it removes its files.
#[derive(Debug)]
pub struct StagedPlugin {
    pub key: PluginKey,
    pub manifest: Manifest,
    folder: PathBuf,
    root: PathBuf,
}

impl PluginFiles {
    /// `data_dir` is the data folder of the gateway.
    pub fn new(data_dir: &Path) -> Self {
        Self { root: data_dir.join("plugins") }
    }

    /// Returns the folder of a plugin, whether or not it exists.
    pub fn folder(&self, key: &PluginKey) -> PathBuf {
        self.root.join(key.as_str())
    }

    /// Removes what an interrupted installation left, and brings back a plugin whose folder was being replaced. Call it
    /// once at the start.
    ///
    /// # Errors
    /// The folder cannot be read or changed.
    pub fn recover(&self) -> io::Result<()> {
        for name in self.names()? {
            let path = self.root.join(&name);
            if name.starts_with(STAGED) {
                fs::remove_dir_all(&path)?;
            } else if let Some(key) = name.strip_prefix(OLD) {
                let installed = self.root.join(key);
                match installed.exists() {
                    true => fs::remove_dir_all(&path)?,
                    false => fs::rename(&path, &installed)?,
                }
            }
        }
        Ok(())
    }

    /// Lists the installed plugins. Folders whose name is not a key are left out.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<PluginKey>> {
        let mut keys = Vec::new();
        for name in self.names()? {
            let key = PluginKey::from_folder(&name).ok().filter(|it| it.as_str() == name);
            if let Some(key) = key
                && self.exists(&key)
            {
                keys.push(key);
            }
        }
        keys.sort();
        Ok(keys)
    }

    /// States whether a plugin has a folder.
    pub fn exists(&self, key: &PluginKey) -> bool {
        self.folder(key).is_dir()
    }

    /// Reads the manifest of an installed plugin. Without a manifest it is a legacy plugin.
    ///
    /// # Errors
    /// The plugin has no folder, or its manifest cannot be used.
    pub fn manifest(&self, key: &PluginKey) -> Result<Manifest, FolderError> {
        read_manifest(&self.folder(key), key)
    }

    /// Returns the logo of a plugin; `None` without one, and for a larger one than allowed. Its format is not checked.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn logo(&self, key: &PluginKey) -> io::Result<Option<Vec<u8>>> {
        for name in LOGOS {
            let path = self.folder(key).join(name);
            // A link could lead to any file of the gateway.
            if fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= LOGO_BYTES_MAX) {
                return Ok(Some(fs::read(path)?));
            }
        }
        Ok(None)
    }

    /// States whether a plugin has a logo.
    pub fn has_logo(&self, key: &PluginKey) -> bool {
        let is_logo = |name: &&str| {
            let path = self.folder(key).join(name);
            fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.len() <= LOGO_BYTES_MAX)
        };
        LOGOS.iter().any(is_logo)
    }

    /// Unpacks an archive next to the installed plugins.
    ///
    /// # Errors
    /// The archive is refused; nothing of it is kept then.
    pub fn stage(&self, archive: impl Read + Seek, file_name: &str) -> Result<StagedPlugin, ArchiveError> {
        let folder = self.root.join(format!("{STAGED}{}", Uuid::new_v4()));
        create_folder(&folder, 0o700)?;
        let remove = RemovedOnDrop(&folder);
        let key = unpack(archive, file_name, &mut UnpackFolder::new(&folder))?;
        let manifest = read_manifest(&folder, &key).map_err(|error| match error {
            FolderError::Manifest(error) => ArchiveError::Manifest(error),
            FolderError::Io(error) => ArchiveError::Io(error),
        })?;
        let has_code = ["plugin.py", "__init__.py"].iter().any(|it| folder.join(it).is_file());
        if !has_code && manifest.command.is_none() {
            return Err(ArchiveError::NoCode);
        }
        // One call for up to 2,000 files.
        rustix::fs::syncfs(File::open(&folder)?).map_err(io::Error::from)?;
        std::mem::forget(remove);
        Ok(StagedPlugin { key, manifest, folder, root: self.root.clone() })
    }

    /// Writes an archive of an installed plugin, from which another node can install it.
    ///
    /// # Errors
    /// The folder cannot be read or is too large, or the archive cannot be written.
    pub fn pack(&self, key: &PluginKey, archive: &mut (impl Write + Seek)) -> io::Result<()> {
        pack::pack(&self.folder(key), key.as_str(), archive)
    }

    /// Returns the name of the archive that the folder of a plugin has the content of; `None` if that is not known.
    pub fn archive(&self, key: &PluginKey) -> Option<String> {
        let file = File::open(self.root.join(format!("{ARCHIVE}{key}"))).ok()?;
        let mut name = String::new();
        file.take(ARCHIVE_NAME_BYTES_MAX).read_to_string(&mut name).ok()?;
        Some(name).filter(|it| !it.is_empty() && self.exists(key))
    }

    /// Notes the name of the archive that the folder of a plugin has the content of, or that it is not known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_archive(&self, key: &PluginKey, name: Option<&str>) -> io::Result<()> {
        let path = self.root.join(format!("{ARCHIVE}{key}"));
        match name {
            Some(name) => fs::write(path, name),
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Brings back the version before the last installation.
    ///
    /// # Errors
    /// The folder cannot be changed.
    fn restore_old(&self, key: &PluginKey) -> io::Result<()> {
        let old = self.old(key);
        if old.is_dir() {
            remove_folder(&self.folder(key))?;
            fs::rename(old, self.folder(key))?;
        }
        Ok(())
    }

    /// Undoes an installation: brings back the version before, or removes the plugin if there was none.
    ///
    /// # Errors
    /// The folder cannot be changed.
    pub fn undo_install(&self, key: &PluginKey) -> io::Result<()> {
        match self.old(key).is_dir() {
            true => self.restore_old(key),
            false => remove_folder(&self.folder(key)),
        }
    }

    /// Removes the version before the last installation.
    ///
    /// # Errors
    /// The folder cannot be changed.
    pub fn drop_old(&self, key: &PluginKey) -> io::Result<()> {
        remove_folder(&self.old(key))
    }

    /// Removes the code of a plugin.
    ///
    /// # Errors
    /// The folder cannot be changed.
    pub fn remove(&self, key: &PluginKey) -> io::Result<()> {
        self.drop_old(key)?;
        self.set_archive(key, None)?;
        remove_folder(&self.folder(key))
    }

    fn old(&self, key: &PluginKey) -> PathBuf {
        self.root.join(format!("{OLD}{key}"))
    }

    /// Returns the names in the folder of all plugins that are UTF-8.
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }
}

impl StagedPlugin {
    /// Makes this the installed version. The version before is kept until [`PluginFiles::drop_old`].
    ///
    /// # Errors
    /// The folders cannot be renamed; the version before is then installed as it was.
    pub fn install(self) -> io::Result<()> {
        let installed = self.root.join(self.key.as_str());
        let old = self.root.join(format!("{OLD}{}", self.key));
        // The folder will have another content.
        let _ = fs::remove_file(self.root.join(format!("{ARCHIVE}{}", self.key)));
        if installed.exists() {
            remove_folder(&old)?;
            fs::rename(&installed, &old)?;
        }
        if let Err(error) = fs::rename(&self.folder, &installed) {
            if old.exists() {
                fs::rename(&old, &installed)?;
            }
            return Err(error);
        }
        File::open(&self.root)?.sync_all()
    }
}

impl Drop for StagedPlugin {
    fn drop(&mut self) {
        // After the installation the folder has another name. What stays is removed at the next start.
        let _ = remove_folder(&self.folder);
    }
}

/// Removes a folder unless it is forgotten.
struct RemovedOnDrop<'a>(&'a Path);

impl Drop for RemovedOnDrop<'_> {
    fn drop(&mut self) {
        // What stays is removed at the next start.
        let _ = remove_folder(self.0);
    }
}

fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_manifest(folder: &Path, key: &PluginKey) -> Result<Manifest, FolderError> {
    let file = match File::open(folder.join(MANIFEST_FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => {
            return Ok(Manifest::legacy(key));
        }
        Err(error) => return Err(error.into()),
    };
    let mut content = Vec::new();
    file.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_end(&mut content)?;
    Ok(Manifest::parse(&content)?)
}
