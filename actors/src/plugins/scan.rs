//! Reads the code of a plugin before it is enabled, to name what it uses and this gateway does not have. The code is not
//! run: a confined Python process without files and network reads its syntax.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use domain::plugin::PluginKey;
use media::source::{PipedCommand, PipedProgram, ProgramEnd, RunEnd};
use media::spawn_blocking;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::host_files::{SCAN, compat_arguments};
use super::{Plugins, confine};

/// Time to read the code of a plugin.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum size of the code, in bytes. Larger files, and files after this sum, are not read.
const CODE_BYTES_MAX: u64 = 8 << 20;
/// Maximum size of one file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of entries of the folder that are looked at.
const ENTRIES_MAX: usize = 4_000;
/// Maximum depth of folders.
const DEPTH_MAX: usize = 8;
/// Maximum size of the answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Results of this many plugins are kept.
const KEPT_MAX: usize = 200;

/// The modules, packages and folders that the code of a plugin uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginScan {
    /// Names that it imports or uses and that the gateway does not have.
    pub unsupported: Vec<UnsupportedName>,
    /// Packages that it imports and that are neither installed nor in its folder `wheels`.
    pub packages: Vec<String>,
    /// Folders below `/data` that it names.
    pub folders: Vec<String>,
    /// Requirements of its manifest that are neither installed nor in its folder `wheels`.
    pub requirements: Vec<String>,
}

/// A name that the gateway does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedName {
    pub name: String,
    pub file: String,
    pub line: u32,
}

/// The files that a result belongs to: their number, their size, and the latest change.
type Mark = (usize, u64, u128, Vec<String>);

/// Results by plugin.
pub(super) type Scans = HashMap<PluginKey, (Mark, PluginScan)>;

impl Plugins {
    /// Returns what the code of a plugin uses. Does not run it. `None` if no plugin may start, or without Python.
    pub async fn scan(&self, key: &PluginKey, requirements: &[String]) -> Option<PluginScan> {
        let shared = &self.shared;
        let parts = shared.parts.get()?;
        if parts.settings.is_safe_mode || !shared.launcher.restricts() {
            return None;
        }
        let folder = parts.settings.folders.code.join(key.as_str());
        let wanted = requirements.to_vec();
        let read = spawn_blocking(move || Code::read(&folder, wanted)).await.ok()?;
        let code = read.ok()?;
        if let Some((mark, scan)) = shared.scans.lock().get(key)
            && *mark == code.mark
        {
            return Some(scan.clone());
        }
        // One at a time: each may use a whole core.
        let _turn = shared.scan_turn.lock().await;
        let scan = self.scan_code(key, &code).await?;
        let mut scans = shared.scans.lock();
        if scans.len() >= KEPT_MAX {
            scans.clear();
        }
        scans.insert(key.clone(), (code.mark, scan.clone()));
        Some(scan)
    }

    async fn scan_code(&self, key: &PluginKey, code: &Code) -> Option<PluginScan> {
        let shared = &self.shared;
        let python = shared.find_python(shared.parts.get()?.settings.python.as_deref()).await.ok()?;
        let program = python.program.to_str()?.to_owned();
        let command: Vec<String> = [&program, "-I", "-B", "-c", SCAN].map(str::to_owned).to_vec();
        let command = PipedCommand {
            command: command.into_iter().chain(compat_arguments()).collect(),
            environment: Vec::new(),
            inherited: vec!["PATH", "LD_LIBRARY_PATH"],
            folder: "/".into(),
            confinement: confine::without_access(&python, confine::any_user()),
        };
        let (program, pipes) =
            PipedProgram::start(command, &shared.launcher, shared.closer.clone()).await.ok()?;
        let given = json!({
            "key": key.as_str(),
            "files": code.files,
            "wheels": code.wheels,
            "requirements": code.requirements,
        });
        let given = given.to_string();
        let RunEnd { end, stdout, .. } =
            program.run(pipes, given.as_bytes(), ANSWER_BYTES_MAX, TIME_MAX).await;
        if end != Some(ProgramEnd::Code(0)) {
            warn!(plugin.key = %key, "failed to read the code of a plugin: {end:?}");
            return None;
        }
        serde_json::from_slice(&stdout).ok()
    }
}

/// The code of a plugin.
struct Code {
    mark: Mark,
    files: Map<String, Value>,
    wheels: Vec<String>,
    requirements: Vec<String>,
}

impl Code {
    /// Reads the Python files below a folder. Blocks.
    fn read(folder: &Path, requirements: Vec<String>) -> io::Result<Self> {
        let mut code = Self {
            mark: (0, 0, 0, requirements.clone()),
            files: Map::new(),
            wheels: Vec::new(),
            requirements,
        };
        let mut folders = vec![(folder.to_owned(), 0)];
        let mut found: Vec<PathBuf> = Vec::new();
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let (path, metadata) = (entry.path(), fs::symlink_metadata(entry.path())?);
                let name = entry.file_name();
                code.mark.0 += 1;
                if code.mark.0 > ENTRIES_MAX {
                    break;
                }
                let changed = metadata.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                code.mark.2 = code.mark.2.max(changed.unwrap_or_default().as_nanos());
                let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
                if metadata.is_dir() && depth < DEPTH_MAX {
                    folders.push((path, depth + 1));
                } else if metadata.is_file() && extension == "whl" {
                    code.wheels.push(name.to_string_lossy().into_owned());
                } else if metadata.is_file() && extension == "py" && metadata.len() <= FILE_BYTES_MAX {
                    code.mark.1 += metadata.len();
                    found.push(path);
                }
            }
        }
        found.sort();
        let mut left = CODE_BYTES_MAX;
        for path in found {
            let Ok(bytes) = fs::read(&path) else { continue };
            let Some(rest) = left.checked_sub(bytes.len() as u64) else { break };
            left = rest;
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            code.files.insert(name, String::from_utf8_lossy(&bytes).into_owned().into());
        }
        Ok(code)
    }
}
