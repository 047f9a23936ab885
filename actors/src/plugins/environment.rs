//! The Python packages of a plugin: its bundled wheels, unpacked by a confined process without network, and those that an
//! admin allowed to be fetched. Packages of the system stay visible.

use std::os::unix::fs::chown;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use media::closer::Closer;
use media::source::{PipedCommand, PipedProgram, ProgramEnd, RunEnd};
use media::{Launcher, ProgramUser};
use serde_json::json;

use super::confine::OwnFolders;
use super::host_files::WHEELS;
use super::python::Python;
use super::{InstalledPlugin, packages};

/// Time to unpack.
const TIME_MAX: Duration = Duration::from_secs(600);
/// Maximum size of its message, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The file that says what an environment was made from.
const MADE_FROM: &str = "made-from.json";

/// The status of the program that unpacks wheels if packages have to be fetched.
const FETCH_STATUS: i32 = 3;

/// Makes the environment of a plugin, unless there is one from the same wheels, requirements and Python. Requirements that
/// are neither bundled nor installed are fetched if an admin allowed it. `command` is the confined start of the Python host,
/// whose restrictions apply here, too.
///
/// # Errors
/// The sentence why the plugin cannot start.
pub(super) async fn make(
    installed: &InstalledPlugin,
    own: &OwnFolders,
    python: &Python,
    user: Option<ProgramUser>,
    command: &PipedCommand,
    launcher: &Launcher,
    closer: &Closer,
) -> Result<(), String> {
    let (requirements, allowed) = (&installed.manifest.requirements, &installed.record.allowed_packages);
    let wheels = own.code.join("wheels");
    let made_from = made_from(requirements, allowed, &wheels, python);
    let new = own.environment.with_extension("new");
    let is_made = fs::read_to_string(own.environment.join(MADE_FROM)).is_ok_and(|it| it == made_from);
    if is_made || (requirements.is_empty() && !wheels.is_dir()) {
        return Ok(());
    }
    let failed = |error: &io::Error| format!("the folder of its packages cannot be made: {}", error.kind());
    clear(&new).and_then(|()| fs::create_dir_all(&new)).map_err(|error| failed(&error))?;
    if let Some(user) = user {
        chown(&new, Some(user.uid), Some(user.gid)).map_err(|error| failed(&error))?;
    }
    let mut command = command.clone();
    let text = |path: &Path| path.display().to_string();
    let allowed = json!(allowed).to_string();
    command.command =
        [&text(&python.program), "-I", "-B", "-c", WHEELS, &text(&wheels), &text(&new), &allowed]
            .map(str::to_owned)
            .to_vec();
    command.command.extend_from_slice(requirements);
    command.confinement.writable.push(new.clone());
    if let Some(strictness) = &mut command.confinement.strictness {
        (strictness.connects, strictness.ports) = (false, Some(Vec::new()));
    }
    let (end, message) = run(command.clone(), launcher, closer).await?;
    let last = message.lines().last().unwrap_or("its packages could not be unpacked");
    let made = match end {
        Some(ProgramEnd::Code(0)) => Ok(()),
        Some(ProgramEnd::Code(FETCH_STATUS)) => match serde_json::from_str::<Vec<String>>(last) {
            Ok(missing) => {
                packages::install(&missing, &wheels, &new, python, command, launcher, closer).await
            }
            Err(_) => Err("its packages could not be unpacked".to_owned()),
        },
        _ => Err(last.to_owned()),
    };
    if let Err(reason) = made {
        let _ = clear(&new);
        return Err(reason);
    }
    let finish = || {
        fs::write(new.join(MADE_FROM), &made_from)?;
        clear(&own.environment)?;
        fs::rename(&new, &own.environment)
    };
    finish().map_err(|error| failed(&error))
}

/// Runs a program to its end, for a limited time. Returns how it ended, and the beginning of what it wrote.
pub(super) async fn run(
    command: PipedCommand,
    launcher: &Launcher,
    closer: &Closer,
) -> Result<(Option<ProgramEnd>, String), String> {
    let (program, pipes) = PipedProgram::start(command, launcher, closer.clone()).await?;
    let RunEnd { end, stdout, .. } = program.run(pipes, &[], MESSAGE_BYTES_MAX, TIME_MAX).await;
    Ok((end, String::from_utf8_lossy(&stdout).into_owned()))
}

/// Describes everything that an environment depends on.
fn made_from(requirements: &[String], allowed: &[String], wheels: &Path, python: &Python) -> String {
    let entries = fs::read_dir(wheels).into_iter().flatten().flatten();
    let size = |it: &fs::DirEntry| it.metadata().map_or(0, |it| it.len());
    let mut files: Vec<_> =
        entries.map(|it| (it.file_name().to_string_lossy().into_owned(), size(&it))).collect();
    files.sort();
    json!({"python": python.program, "version": python.version, "requirements": requirements, "allowed": allowed,
        "wheels": files})
    .to_string()
}

fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
