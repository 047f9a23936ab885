//! Which programs stream profiles may run, and what those may do.

use std::path::{Path, PathBuf};

use media::{Confinement, LauncherSettings, ProgramLimits};
use serde::{Deserialize, Serialize};

use super::DataFolder;

/// Settings of programs. For limits, `0` means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Programs {
    /// The binary that confines programs and becomes them: this program. Without it, which only tests want, programs are
    /// started directly.
    #[serde(skip)]
    pub launcher: Option<PathBuf>,
    /// Programs that stream profiles may run: names to find in `PATH`, or absolute paths. Empty allows every program.
    pub allowed: Vec<String>,
    /// The program that finds commercials in recordings: a name to find in `PATH`, or an absolute path. It need not be in
    /// the list of allowed programs.
    pub comskip: String,
    /// Files and folders that programs can read although they are in the data folder or below `/dev`.
    pub readable_paths: Vec<PathBuf>,
    /// Files and folders that programs can write, besides the temporary folder and graphics cards.
    pub writable_paths: Vec<PathBuf>,
    /// Files and folders that programs cannot read, besides the data folder.
    pub hidden_paths: Vec<PathBuf>,
    /// Maximum private memory of one process, in bytes.
    pub memory_bytes_max: u64,
    /// Maximum size of a file that a program writes, in bytes.
    pub file_bytes_max: u64,
    /// Maximum number of open files of one process.
    pub open_files_max: u64,
    /// Maximum number of processes and threads of the user of the gateway.
    pub processes_max: u64,
}

impl Default for Programs {
    fn default() -> Self {
        Programs {
            launcher: None,
            allowed: Vec::new(),
            comskip: "comskip".to_owned(),
            readable_paths: Vec::new(),
            writable_paths: Vec::new(),
            hidden_paths: Vec::new(),
            memory_bytes_max: 4 << 30,
            file_bytes_max: 1 << 30,
            open_files_max: 1024,
            processes_max: 16_384,
        }
    }
}

impl Programs {
    /// Checks the settings. An error is the key and the reason.
    pub(super) fn check(&self, data_dir: &Path) -> Result<(), (&'static str, String)> {
        let is_unclear = |it: &str| it.is_empty() || it.contains('/') && !it.starts_with('/');
        if let Some(program) = self.allowed.iter().find(|it| is_unclear(it)) {
            return Err((
                "allowed",
                format!("contains `{program}`, which is neither a name nor an absolute path"),
            ));
        }
        if is_unclear(&self.comskip) {
            return Err((
                "comskip",
                format!("is `{}`, which is neither a name nor an absolute path", self.comskip),
            ));
        }
        let hidden = hidden(data_dir);
        for (key, paths, is_hiding) in [
            ("readable_paths", &self.readable_paths, false),
            ("writable_paths", &self.writable_paths, false),
            ("hidden_paths", &self.hidden_paths, true),
        ] {
            if let Some(path) = paths.iter().find(|it| !it.is_absolute()) {
                return Err((key, format!("contains `{}`; an absolute path is expected", path.display())));
            }
            if let Some(path) = paths.iter().find(|it| !is_hiding && hidden.contains(it)) {
                return Err((
                    key,
                    format!("contains `{}`, which stays hidden from programs", path.display()),
                ));
            }
        }
        Ok(())
    }

    /// Returns the settings of the launcher.
    pub fn launcher_settings(&self, data_dir: &Path) -> LauncherSettings {
        let mut writable = self.writable_paths.clone();
        writable.push(std::env::temp_dir());
        LauncherSettings {
            binary: self.launcher.clone(),
            allowed: self.allowed.clone(),
            confinement: Confinement {
                hidden: [hidden(data_dir), self.hidden_paths.clone()].concat(),
                readable: self.readable_paths.clone(),
                writable,
                is_offline: false,
                strictness: None,
                limits: ProgramLimits {
                    memory_bytes_max: self.memory_bytes_max,
                    file_bytes_max: self.file_bytes_max,
                    open_files_max: self.open_files_max,
                    processes_max: self.processes_max,
                },
            },
        }
    }
}

/// Returns what is always hidden. Store and key are named as well, so that no list of an operator can name them.
fn hidden(data_dir: &Path) -> Vec<PathBuf> {
    // The launcher runs in another folder. An error means that the path is empty.
    let folder = DataFolder::new(&std::path::absolute(data_dir).unwrap_or_default());
    vec![folder.root().to_owned(), folder.store(), folder.key()]
}
