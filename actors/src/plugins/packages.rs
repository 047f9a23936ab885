//! Installs Python packages that an admin allowed to be fetched: by a confined process with network, which writes the new
//! environment only. Wheels only: nothing that is fetched is run.

use std::path::Path;

use media::Launcher;
use media::closer::Closer;
use media::source::{PipedCommand, ProgramEnd};

use super::environment::run;
use super::host_files::FETCH;
use super::python::Python;

/// Variables that say where packages and certificates come from.
const INHERITED: [&str; 16] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "PIP_CERT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
];
/// pip needs more memory than most plugins.
const MEMORY_BYTES_MIN: u64 = 1 << 30;
/// A large package is one file.
const FILE_BYTES_MIN: u64 = 1 << 30;

/// Installs these requirements into a folder. `command` unpacks the bundled wheels into it, with restrictions that apply
/// here, too, except that it connects to hosts.
///
/// # Errors
/// The sentence why a package is missing.
pub(super) async fn install(
    requirements: &[String],
    wheels: &Path,
    target: &Path,
    python: &Python,
    mut command: PipedCommand,
    launcher: &Launcher,
    closer: &Closer,
) -> Result<(), String> {
    let text = |path: &Path| path.display().to_string();
    command.command = [&text(&python.program), "-I", "-B", "-c", FETCH, &text(wheels), &text(target)]
        .map(str::to_owned)
        .to_vec();
    command.command.extend_from_slice(requirements);
    command.inherited = INHERITED.to_vec();
    let limits = &mut command.confinement.limits;
    limits.memory_bytes_max = limits.memory_bytes_max.max(MEMORY_BYTES_MIN);
    limits.file_bytes_max = limits.file_bytes_max.max(FILE_BYTES_MIN);
    if let Some(strictness) = &mut command.confinement.strictness {
        strictness.connects = true;
    }
    let (end, message) = run(command, launcher, closer).await?;
    if end == Some(ProgramEnd::Code(0)) {
        return Ok(());
    }
    let reason = message.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or("pip gave no reason");
    Err(format!("its Python packages {} could not be installed: {reason}", requirements.join(", ")))
}
