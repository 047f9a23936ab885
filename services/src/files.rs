//! Files that users upload and back-ups, in folders of the data folder.
//!
//! A file is written whole or not at all, and is never changed: a new content gets a new name or replaces the old file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use storage::create_folder;
use uuid::Uuid;

/// Maximum length of the name of a file, in bytes.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 128;

/// Name of the configuration of comskip in its folder.
pub const COMSKIP_CONFIG: &str = "comskip.ini";

/// Extension of a file that is being written. Files with this extension are left over from a crash.
pub const UNFINISHED: &str = "part~";

/// The path of the API below which the files of [`Folder::Avatars`] are served.
pub const AVATARS_PATH: &str = "/api/accounts/avatars/";

/// A folder of files of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Folder {
    /// Uploaded logos of channels.
    Logos,
    /// Uploaded pictures of users.
    Avatars,
    /// Uploaded playlists.
    Playlists,
    /// Uploaded guides.
    Guides,
    /// The configuration of comskip.
    Comskip,
    /// Archives of plugins for the other nodes of a cluster.
    Plugins,
    Backups,
}

impl Folder {
    /// The folders of files that users upload.
    pub const UPLOADS: [Self; 6] =
        [Self::Logos, Self::Avatars, Self::Playlists, Self::Guides, Self::Comskip, Self::Plugins];
    /// All folders.
    pub const ALL: [Self; 7] = [
        Self::Logos,
        Self::Avatars,
        Self::Playlists,
        Self::Guides,
        Self::Comskip,
        Self::Plugins,
        Self::Backups,
    ];

    /// Returns the name of the folder.
    pub fn name(self) -> &'static str {
        let path = self.path();
        path.rsplit_once('/').map_or(path, |it| it.1)
    }

    fn path(self) -> &'static str {
        match self {
            Self::Logos => "uploads/logos",
            Self::Avatars => "uploads/avatars",
            Self::Playlists => "uploads/playlists",
            Self::Guides => "uploads/guides",
            Self::Comskip => "uploads/comskip",
            Self::Plugins => "uploads/plugins",
            Self::Backups => "backups",
        }
    }
}

/// The folders of files. All methods block.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// `root` is the data folder. Folders are created when they are first written to.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the path of a folder, whether or not it exists.
    pub fn folder(&self, folder: Folder) -> PathBuf {
        self.root.join(folder.path())
    }

    /// Returns the path of a file, whether or not it exists.
    ///
    /// # Errors
    /// If the name is not valid: it has 1 to [`FILE_NAME_BYTES_MAX`] letters, digits, dots, hyphens and underscores, and
    /// does not begin with a dot.
    pub fn path(&self, folder: Folder, name: &str) -> io::Result<PathBuf> {
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
        let is_valid = (1..=FILE_NAME_BYTES_MAX).contains(&name.len())
            && !name.starts_with('.')
            && name.bytes().all(is_plain);
        match is_valid {
            true => Ok(self.root.join(folder.path()).join(name)),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of the file is not valid")),
        }
    }

    /// Writes a file, which replaces an earlier one of this name. The file is on the disk when this returns.
    ///
    /// # Errors
    /// If the name is not valid, the content cannot be read, or the disk refuses. An earlier file is then unchanged.
    pub fn save(&self, folder: Folder, name: &str, mut content: impl Read) -> io::Result<()> {
        self.create(folder, name, |file| io::copy(&mut content, file).map(drop))
    }

    /// Does the same as [`Files::save`] with a file that `fill` writes.
    pub fn create<T, E: From<io::Error>>(
        &self,
        folder: Folder,
        name: &str,
        fill: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<T, E> {
        let path = self.path(folder, name)?;
        let parent = self.root.join(folder.path());
        create_folder(&parent, 0o700)?;
        let unfinished = parent.join(format!("{}.{UNFINISHED}", Uuid::new_v4()));
        let written = (|| {
            let mut file =
                File::options().read(true).write(true).create_new(true).mode(0o600).open(&unfinished)?;
            let filled = fill(&mut file)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            File::open(&parent)?.sync_all()?;
            Ok(filled)
        })();
        if written.is_err() {
            // The file may not exist yet; the first error is the one to report.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Returns a new file without a name on the file system of the data folder. It disappears when it is closed.
    pub fn unnamed(&self) -> io::Result<File> {
        create_folder(&self.root, 0o700)?;
        tempfile::tempfile_in(&self.root)
    }

    /// Deletes a file. A file that does not exist counts as deleted.
    pub fn remove(&self, folder: Folder, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(folder, name)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Deletes the files of a folder that were not written to their end. Nothing may be written to it at the same time.
    pub fn remove_unfinished(&self, folder: Folder) -> io::Result<()> {
        let entries = match fs::read_dir(self.folder(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == UNFINISHED) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Returns the names of all files of a folder, sorted, without unfinished ones.
    pub fn names(&self, folder: Folder) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(folder.path())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // Other names cannot be ours.
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if self.path(folder, &name).is_ok() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_saved_file_is_listed_read_replaced_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::new(root.path());
        for folder in Folder::ALL {
            assert_eq!(files.names(folder).unwrap(), Vec::<String>::new());
            files.save(folder, "a-1.png", &b"one"[..]).unwrap();
            files.save(folder, "a-1.png", &b"two"[..]).unwrap();
            files.save(folder, "B_2", &b""[..]).unwrap();
            assert_eq!(files.names(folder).unwrap(), ["B_2", "a-1.png"]);
            let path = files.path(folder, "a-1.png").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"two");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            files.remove(folder, "a-1.png").unwrap();
            files.remove(folder, "a-1.png").unwrap();
            assert_eq!(files.names(folder).unwrap(), ["B_2"]);
        }
    }

    #[test]
    fn a_name_cannot_lead_out_of_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::new(root.path());
        let long = "a".repeat(FILE_NAME_BYTES_MAX + 1);
        for name in ["", ".", "..", ".hidden", "a/b", "../a", "a\\b", "ä", "a b", "a\0", "a~", &long] {
            assert!(files.save(Folder::Logos, name, &b"x"[..]).is_err(), "{name:?}");
            assert!(files.remove(Folder::Logos, name).is_err(), "{name:?}");
        }
        assert!(!root.path().join("uploads").exists());
    }

    #[test]
    fn a_content_that_fails_leaves_the_earlier_file_and_nothing_else() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let root = tempfile::tempdir().unwrap();
        let files = Files::new(root.path());
        files.save(Folder::Avatars, "a", &b"one"[..]).unwrap();
        assert!(files.save(Folder::Avatars, "a", (&b"tw"[..]).chain(Broken)).is_err());
        assert_eq!(fs::read(files.path(Folder::Avatars, "a").unwrap()).unwrap(), b"one");
        assert_eq!(fs::read_dir(root.path().join("uploads/avatars")).unwrap().count(), 1);
    }
}
