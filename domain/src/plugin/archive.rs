//! Names of the entries of plugin archives.

use std::collections::{BTreeMap, BTreeSet};

use icu_normalizer::ComposingNormalizerBorrowed;
use thiserror::Error;

use super::key::{PluginKey, WrongPluginKey};
use super::manifest::MANIFEST_FILE;

/// Maximum size of a name, in bytes.
const NAME_BYTES_MAX: usize = 1_024;
/// Maximum size of a part of a name, in bytes: that of file systems.
const PART_BYTES_MAX: usize = 255;
/// Maximum number of folders in each other.
const PARTS_MAX: usize = 32;

/// The checked name of an entry: relative, and without anything that leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryName {
    pub parts: Vec<String>,
    pub is_folder: bool,
}

/// Why the name of an entry is refused. Worded to follow the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameFault {
    #[error("has no name")]
    Empty,
    #[error("has a name that is not UTF-8")]
    NotUtf8,
    #[error("leads out of the folder")]
    Traversal,
    #[error("has an absolute path")]
    Absolute,
    #[error("begins with a drive")]
    Drive,
    #[error("has a backslash in its name")]
    Backslash,
    #[error("has a NUL or another control character in its name")]
    Control,
    #[error("has an empty part in its name")]
    EmptyPart,
    #[error("has a name that is too long")]
    TooLong,
    #[error("has the name of another entry")]
    Duplicate,
    #[error("differs from another entry only in upper and lower case or in the form of its letters")]
    SameForFileSystems,
    #[error("is both a file and a folder")]
    FileAndFolder,
}

impl EntryName {
    /// Checks the name of an entry as it is in the archive.
    ///
    /// # Errors
    /// The name leads out of the folder, or could on some system.
    pub fn parse(name: &[u8]) -> Result<Self, NameFault> {
        if name.is_empty() {
            return Err(NameFault::Empty);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(NameFault::TooLong);
        }
        if name.iter().any(u8::is_ascii_control) {
            return Err(NameFault::Control);
        }
        let name = std::str::from_utf8(name).map_err(|_| NameFault::NotUtf8)?;
        if name.chars().any(char::is_control) {
            return Err(NameFault::Control);
        }
        if name.contains('\\') {
            return Err(NameFault::Backslash);
        }
        if name.starts_with('/') {
            return Err(NameFault::Absolute);
        }
        let mut letters = name.chars();
        if letters.next().is_some_and(|it| it.is_ascii_alphabetic()) && letters.next() == Some(':') {
            return Err(NameFault::Drive);
        }
        let is_folder = name.ends_with('/');
        let path = name.strip_suffix('/').unwrap_or(name);
        let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        if parts.iter().any(|it| it == ".." || it == ".") {
            return Err(NameFault::Traversal);
        }
        if parts.iter().any(String::is_empty) {
            return Err(NameFault::EmptyPart);
        }
        if parts.len() > PARTS_MAX || parts.iter().any(|it| it.len() > PART_BYTES_MAX) {
            return Err(NameFault::TooLong);
        }
        Ok(Self { parts, is_folder })
    }
}

/// The names in an archive so far.
#[derive(Debug, Default)]
pub struct ArchiveNames {
    /// Names as file systems that ignore case and form compare them.
    by_folded: BTreeMap<String, Known>,
}

/// A name in an archive.
#[derive(Debug)]
struct Known {
    exact: String,
    is_folder: bool,
    /// The name has an entry of its own; it is not only the folder of another one.
    is_entry: bool,
}

impl ArchiveNames {
    /// Adds an entry.
    ///
    /// # Errors
    /// The name is refused by [`EntryName::parse`], or belongs to another entry.
    pub fn add(&mut self, name: &[u8]) -> Result<EntryName, NameFault> {
        let name = EntryName::parse(name)?;
        for end in 1..=name.parts.len() {
            let is_entry = end == name.parts.len();
            let exact = name.parts[..end].join("/");
            let added = Known { is_folder: !is_entry || name.is_folder, is_entry, exact };
            let folded = folded(&added.exact);
            match self.by_folded.get_mut(&folded) {
                None => drop(self.by_folded.insert(folded, added)),
                Some(known) if known.exact != added.exact => return Err(NameFault::SameForFileSystems),
                Some(known) if known.is_folder != added.is_folder => return Err(NameFault::FileAndFolder),
                Some(known) if known.is_entry && is_entry => return Err(NameFault::Duplicate),
                Some(known) => known.is_entry |= is_entry,
            }
        }
        Ok(name)
    }
}

/// Returns a name without case and in one Unicode form.
fn folded(name: &str) -> String {
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    let composed = normalizer.normalize(name);
    let folded = composed.to_uppercase().to_lowercase();
    normalizer.normalize(&folded).into_owned()
}

/// States whether an entry is written by file managers for themselves, and is not installed.
pub fn is_left_out(name: &EntryName) -> bool {
    let first = name.parts.first().map(String::as_str);
    let last = name.parts.last().map(String::as_str);
    first == Some("__MACOSX") || matches!(last, Some(".DS_Store" | "Thumbs.db" | "desktop.ini"))
}

/// The folder of the plugin in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRoot {
    /// Empty if the files are not in a folder.
    pub parts: Vec<String>,
    pub key: PluginKey,
}

/// Why an archive is not one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RootFault {
    #[error("the archive has no plugin: neither {MANIFEST_FILE} nor plugin.py")]
    None,
    #[error("the archive has several plugins: {}", .0.join(", "))]
    Several(Vec<String>),
    #[error("the folder {folder:?} cannot be a plugin: {cause}")]
    WrongKey { folder: String, cause: WrongPluginKey },
}

impl PluginRoot {
    /// Finds the one plugin in an archive: the folder with a manifest, else with `plugin.py`, else with `__init__.py`.
    /// Folders inside a plugin are not searched. Without a folder, the file name of the archive is the key.
    ///
    /// # Errors
    /// The archive has no plugin or several, or the folder's name is not a valid key.
    pub fn find<'a>(
        names: impl Iterator<Item = &'a EntryName> + Clone,
        archive: &str,
    ) -> Result<Self, RootFault> {
        let markers = [MANIFEST_FILE, "plugin.py", "__init__.py"];
        let roots = markers.into_iter().map(|marker| roots(names.clone(), marker));
        let roots = roots.into_iter().find(|it| !it.is_empty()).ok_or(RootFault::None)?;
        let parts = match <[_; 1]>::try_from(roots) {
            Ok([parts]) => parts,
            Err(several) => {
                let name = |it: &Vec<String>| if it.is_empty() { ".".to_owned() } else { it.join("/") };
                return Err(RootFault::Several(several.iter().take(5).map(name).collect()));
            }
        };
        let folder = match parts.last() {
            Some(folder) => folder.clone(),
            None => stem(archive).to_owned(),
        };
        match PluginKey::from_folder(&folder) {
            Ok(key) => Ok(Self { parts, key }),
            Err(cause) => Err(RootFault::WrongKey { folder, cause }),
        }
    }

    /// Returns the path of an entry below the folder of the plugin; `None` for entries elsewhere and the folder itself.
    pub fn below<'a>(&self, name: &'a EntryName) -> Option<&'a [String]> {
        name.parts.strip_prefix(self.parts.as_slice()).filter(|it| !it.is_empty())
    }
}

/// Returns the folders that contain a file, without those inside others.
fn roots<'a>(names: impl Iterator<Item = &'a EntryName>, marker: &str) -> Vec<Vec<String>> {
    let files = names.filter(|it| !it.is_folder && !is_left_out(it));
    let folders: BTreeSet<&[String]> = files
        .filter_map(|it| it.parts.split_last())
        .filter(|(file, _)| *file == marker)
        .map(|(_, folder)| folder)
        .collect();
    let is_inside = |it: &[String]| (0..it.len()).any(|end| folders.contains(&it[..end]));
    folders.iter().filter(|it| !is_inside(it)).map(|it| it.to_vec()).collect()
}

/// Returns a file name without folders and without `.zip`.
fn stem(archive: &str) -> &str {
    let name = archive.rsplit(['/', '\\']).next().unwrap_or(archive);
    let end = name.len().saturating_sub(4);
    match name.get(end..) {
        Some(extension) if extension.eq_ignore_ascii_case(".zip") => &name[..end],
        _ => name,
    }
}
