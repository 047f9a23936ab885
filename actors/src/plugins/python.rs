//! Finds a Python that plugins can run with.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use media::closer::Closer;
use media::source::{PipedCommand, PipedProgram, ProgramEnd, RunEnd};
use media::{Confinement, Launcher, ProgramUser, Strictness};
use serde::Deserialize;

/// The oldest version that works.
const VERSION_MIN: (u32, u32) = (3, 10);
/// Time for a Python to say its version.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of its answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Advice for a machine without Python.
const ADVICE: &str = "install it (Debian and Ubuntu: apt install python3 python3-venv; Alpine: apk add python3; Fedora: \
                      dnf install python3), or set plugins.python to its path";
/// Prints the version, the program, and the folders of libraries.
const QUESTION: &str = "import json, os, sys, sysconfig
paths = {os.path.realpath(it) for it in sys.path + list(sysconfig.get_paths().values()) if os.path.isdir(it)}
paths.add(os.path.realpath(sysconfig.get_config_var('LIBDIR') or '/usr/lib'))
print(json.dumps({'version': sys.version_info[:2], 'program': os.path.realpath(sys.executable), 'folders': sorted(paths)}))";

/// A Python of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Python {
    pub(super) version: (u32, u32),
    /// Its file, without links.
    pub(super) program: PathBuf,
    /// Folders with its libraries.
    pub(super) folders: Vec<PathBuf>,
}

/// Returns the first Python in `PATH` that is new enough, or the configured one. Programs are tried as the user that
/// plugins run as, because another user may not reach all of them.
///
/// # Errors
/// The sentence that says what to install.
pub(super) async fn find(
    configured: Option<&str>,
    user: Option<ProgramUser>,
    launcher: &Launcher,
    closer: &Closer,
) -> Result<Python, String> {
    let candidates = match configured {
        Some(path) => media::find_program(path).into_iter().collect(),
        None => candidates(),
    };
    let mut too_old = None;
    for candidate in candidates {
        let Some(python) = ask(&candidate, user, launcher, closer).await else { continue };
        if python.version >= VERSION_MIN {
            return Ok(python);
        }
        too_old = Some(python.version);
    }
    let needed = format!("plugins need Python {}.{} or newer", VERSION_MIN.0, VERSION_MIN.1);
    Err(match (too_old, configured) {
        (Some((major, minor)), _) => format!("{needed}, and this machine has {major}.{minor}: {ADVICE}"),
        (None, Some(path)) => format!("{needed}, and plugins.python, {path}, cannot run them"),
        (None, None) => format!("{needed}: {ADVICE}"),
    })
}

/// Returns each `python3` in `PATH` and in the usual folders once.
fn candidates() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    let mut seen = HashSet::new();
    let files = std::env::split_paths(&path).chain(usual).map(|it| it.join("python3"));
    files.filter(|it| it.is_file() && seen.insert(std::fs::canonicalize(it).ok())).collect()
}

/// Asks a Python what it is. `None` if it does not answer.
async fn ask(
    program: &Path,
    user: Option<ProgramUser>,
    launcher: &Launcher,
    closer: &Closer,
) -> Option<Python> {
    let strictness = Strictness { reads_all: true, ports: Some(Vec::new()), user, ..Strictness::default() };
    let command = PipedCommand {
        command: vec![program.to_str()?.to_owned(), "-I".to_owned(), "-c".to_owned(), QUESTION.to_owned()],
        environment: Vec::new(),
        inherited: vec!["PATH", "LANG", "LD_LIBRARY_PATH"],
        folder: "/".into(),
        confinement: Confinement { strictness: Some(strictness), ..Confinement::default() },
    };
    let (program, pipes) = PipedProgram::start(command, launcher, closer.clone()).await.ok()?;
    let RunEnd { end, stdout, .. } = program.run(pipes, &[], ANSWER_BYTES_MAX, ANSWER_TIMEOUT).await;
    (end == Some(ProgramEnd::Code(0))).then(|| serde_json::from_slice(&stdout).ok()).flatten()
}
