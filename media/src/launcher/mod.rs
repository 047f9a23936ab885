//! Starts programs that parse bytes of strangers, such as ffmpeg, with no more rights than they need.
//!
//! The gateway starts its own binary as the *launcher*. That process registers itself with the *watchdog*, gives up
//! rights, sets limits, and becomes the program: the program is a direct child of the gateway and leads its group, and
//! nothing of the launcher is left in memory. The watchdog is one more process of the same binary, one per gateway. It
//! knows the groups of all running programs and kills them when the gateway ends without doing so.
//!
//! The *guard* is a third process of the binary, in a cluster only: it kills a gateway that is frozen, and tells the other
//! nodes when it has ended with all programs.
//!
//! All modes run before arguments are parsed and before any runtime starts; see [`run_mode`].

mod child;
mod confine;
mod filter;
mod groups;
mod guard;
mod rules;
mod strict;
mod watchdog;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{Access, access};
use rustix::process::Pid;

pub use self::child::run_mode;
pub use self::confine::{can_restrict_files, can_restrict_ports, can_restrict_signals};
pub use self::guard::{Guard, TellEnd};
pub use self::strict::{ProgramUser, Strictness};
pub(crate) use self::watchdog::Registration;
use self::watchdog::Watchdog;

/// First argument of the binary as a launcher.
const LAUNCH: &str = "launch-program";
/// First argument of the binary as a launcher whose program reads its standard input.
const LAUNCH_FED: &str = "launch-fed-program";
/// First argument of the binary as a watchdog.
const WATCH: &str = "watch-programs";
/// First argument of the binary as a guard.
const GUARD: &str = "guard-gateway";
/// Argument of the launcher of a program without network.
const OFFLINE: &str = "--offline";
/// Name of these processes in process lists.
const NAME: &str = "headwater";

/// How programs are started. The default starts every program directly and with all rights of this process, which only
/// tests want.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LauncherSettings {
    /// The binary whose `main` calls [`run_mode`] first.
    pub binary: Option<PathBuf>,
    /// Programs that may be started: names to find in `PATH`, or absolute paths. Empty allows every program.
    pub allowed: Vec<String>,
    /// Restrictions of every started program.
    pub confinement: Confinement,
}

/// Restrictions of a started program, which otherwise can read and execute all files. A job that writes files gets its
/// folder in `writable`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Files and folders that cannot be read or written.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that can be read and executed although they are below a hidden one or below `/dev`.
    pub readable: Vec<PathBuf>,
    /// Files and folders that can be read and written.
    pub writable: Vec<PathBuf>,
    /// Whether TCP connections are refused, as far as the kernel can.
    pub is_offline: bool,
    /// Limits of resources.
    pub limits: ProgramLimits,
    /// Further restrictions of a program that runs code of strangers.
    pub strictness: Option<Strictness>,
}

/// Limits of resources, each for one process; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramLimits {
    /// Private writable memory in bytes, used or not. Memory of a graphics card does not count.
    pub memory_bytes_max: u64,
    /// Size of a written file in bytes. Pipes have no size.
    pub file_bytes_max: u64,
    /// Number of open files.
    pub open_files_max: u64,
    /// Number of processes and threads that the user of the gateway has, all programs together. The kernel ignores it
    /// for root.
    pub processes_max: u64,
}

/// Starts programs as its settings say. Clones share the watchdog, which ends with the last one.
#[derive(Clone, Default)]
pub struct Launcher {
    settings: Arc<LauncherSettings>,
    watchdog: Option<Arc<Watchdog>>,
}

impl Launcher {
    /// Creates a launcher. No process is started before the first program.
    pub fn new(settings: LauncherSettings) -> Self {
        let watchdog = settings.binary.clone().map(|binary| Arc::new(Watchdog::new(binary)));
        Self { settings: Arc::new(settings), watchdog }
    }

    /// Returns how to start a program: its name or path, and its arguments. Standard input is `input` or nothing; the
    /// other pipes and the environment are up to the caller. Starts the watchdog if it does not run, which blocks.
    ///
    /// A program with input cannot register itself with the watchdog; the caller has to register it. If the gateway is
    /// killed before, the input ends, and with it usually the program.
    ///
    /// # Errors
    /// The program is not allowed, not found or not executable, or the watchdog cannot be started. The message names
    /// the program without its folder.
    pub(crate) fn command(
        &self,
        program: &str,
        arguments: &[String],
        input: Option<OwnedFd>,
    ) -> Result<Command, String> {
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let LauncherSettings { binary, allowed, confinement } = &*self.settings;
        if !allowed.is_empty() && !allowed.iter().any(|it| it == program) {
            return Err(format!("{name} is not in the list of allowed programs"));
        }
        is_executable(program).map_err(|kind| match kind {
            io::ErrorKind::NotFound => format!("{name} is not installed"),
            kind => format!("{name}: {kind}"),
        })?;
        let mut command = match (binary, &self.watchdog) {
            (Some(binary), Some(watchdog)) => {
                let pipe = watchdog.pipe().map_err(|error| format!("no watchdog for {name}: {error}"))?;
                let mut command = Command::new(binary);
                let mode = if input.is_some() { LAUNCH_FED } else { LAUNCH };
                command.arg0(NAME).arg(mode).args(confinement.to_arguments()).arg("--").arg(program);
                match input {
                    Some(input) => command.stdin(input),
                    None => command.stdin(pipe),
                };
                command
            }
            _ => {
                let mut command = Command::new(program);
                command.stdin(input.map_or_else(Stdio::null, Stdio::from));
                command
            }
        };
        command.args(arguments);
        Ok(command)
    }

    /// Returns a launcher for a job, which may not read the first files, may read the second, write only the third, and write files of up to this size in
    /// bytes; 0 means no limit. It has no network. The other restrictions are the same. It starts every program: its caller takes none from
    /// users.
    pub(crate) fn for_job(
        &self,
        hidden: Vec<PathBuf>,
        readable: Vec<PathBuf>,
        writable: Vec<PathBuf>,
        file_bytes_max: u64,
    ) -> Self {
        let confinement = &self.settings.confinement;
        let confinement = Confinement {
            hidden: [hidden, confinement.hidden.clone()].concat(),
            readable: [readable, confinement.readable.clone()].concat(),
            writable,
            is_offline: true,
            limits: ProgramLimits { file_bytes_max, ..confinement.limits },
            strictness: None,
        };
        self.with(confinement)
    }

    /// Returns a launcher with these restrictions besides the files that are always hidden. It starts every program: its
    /// caller takes none from users.
    pub(crate) fn confined_by(&self, confinement: Confinement) -> Self {
        let hidden = [confinement.hidden, self.settings.confinement.hidden.clone()].concat();
        self.with(Confinement { hidden, ..confinement })
    }

    fn with(&self, confinement: Confinement) -> Self {
        let settings =
            LauncherSettings { binary: self.settings.binary.clone(), allowed: Vec::new(), confinement };
        Self { settings: Arc::new(settings), watchdog: self.watchdog.clone() }
    }

    /// Returns a launcher for programs of the operator: the hidden files stay hidden, the limits are the same, and everything
    /// else is allowed. It starts every program: its caller checks them.
    pub(crate) fn for_script(&self) -> Self {
        let LauncherSettings { binary, confinement, .. } = &*self.settings;
        let confinement = Confinement {
            writable: vec!["/".into()],
            readable: Vec::new(),
            is_offline: false,
            ..confinement.clone()
        };
        let settings = LauncherSettings { binary: binary.clone(), allowed: Vec::new(), confinement };
        Self { settings: Arc::new(settings), watchdog: self.watchdog.clone() }
    }

    /// Returns whether programs start through the launcher, which restricts them.
    pub fn restricts(&self) -> bool {
        self.settings.binary.is_some()
    }

    /// Makes sure that the watchdog kills this group if the gateway is killed, until the result is dropped. The launcher
    /// has usually registered the group already; this also covers a watchdog that was started later.
    pub(crate) fn register(&self, group: Pid) -> Option<Registration> {
        self.watchdog.clone().map(|it| Registration::new(it, group))
    }
}

/// Returns why a program cannot be executed, without starting it.
fn is_executable(program: &str) -> Result<(), io::ErrorKind> {
    let check = |path: &Path| match path.metadata() {
        Ok(file) if file.is_file() => {
            access(path, Access::EXEC_OK).map_err(|error| io::Error::from(error).kind())
        }
        Ok(_) => Err(io::ErrorKind::PermissionDenied),
        Err(error) => Err(error.kind()),
    };
    if program.contains('/') {
        return check(&Path::new("/").join(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut error = io::ErrorKind::NotFound;
    for folder in std::env::split_paths(&path) {
        match check(&folder.join(program)) {
            Ok(()) => return Ok(()),
            // A file that is not executable does not end the search.
            Err(io::ErrorKind::PermissionDenied) => error = io::ErrorKind::PermissionDenied,
            Err(_) => {}
        }
    }
    Err(error)
}

impl Confinement {
    /// Returns the arguments from which the launcher reads it.
    fn to_arguments(&self) -> Vec<OsString> {
        let Self { hidden, readable, writable, is_offline, limits, strictness } = self;
        let mut arguments = Vec::new();
        if *is_offline {
            arguments.push(OFFLINE.into());
        }
        for (option, paths) in [("--hide", hidden), ("--read", readable), ("--write", writable)] {
            for path in paths {
                arguments.extend([option.into(), path.into()]);
            }
        }
        for (option, limit) in [
            ("--memory", limits.memory_bytes_max),
            ("--file-size", limits.file_bytes_max),
            ("--files", limits.open_files_max),
            ("--processes", limits.processes_max),
        ] {
            arguments.extend([option.into(), limit.to_string().into()]);
        }
        if let Some(strictness) = strictness {
            strictness.to_arguments(&mut arguments);
        }
        arguments
    }

    /// Reads it back, up to `--`. `None` if an argument is wrong.
    fn from_arguments(arguments: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let mut confinement = Self::default();
        loop {
            let option = arguments.next()?;
            if option == "--" {
                return Some(confinement);
            }
            if option == OFFLINE {
                confinement.is_offline = true;
                continue;
            }
            let value = arguments.next()?;
            if option.to_str().is_some_and(|it| it.starts_with(strict::OPTION)) {
                confinement.strictness.get_or_insert_default().set(option.to_str()?, &value)?;
                continue;
            }
            let number = || value.to_str()?.parse().ok();
            let Self { hidden, readable, writable, limits, .. } = &mut confinement;
            match option.to_str()? {
                "--hide" => hidden.push(value.into()),
                "--read" => readable.push(value.into()),
                "--write" => writable.push(value.into()),
                "--memory" => limits.memory_bytes_max = number()?,
                "--file-size" => limits.file_bytes_max = number()?,
                "--files" => limits.open_files_max = number()?,
                "--processes" => limits.processes_max = number()?,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confinement_survives_its_way_through_the_arguments() {
        let confinement = Confinement {
            hidden: vec!["/data".into(), "/a b/--".into()],
            readable: vec!["/data/scripts".into()],
            writable: vec!["/tmp".into()],
            is_offline: true,
            limits: ProgramLimits {
                memory_bytes_max: 1,
                file_bytes_max: 2,
                open_files_max: 3,
                processes_max: u64::MAX,
            },
            strictness: Some(Strictness {
                reads_all: false,
                executable: vec!["/usr/bin/python3".into()],
                connects: false,
                ports: Some(vec![9_000, 9_001]),
                user: Some(ProgramUser { uid: 60_706, gid: 60_705 }),
                niceness: 19,
                control_group: Some("/sys/fs/cgroup/plugin".into()),
            }),
        };
        let mut arguments = confinement.to_arguments();
        arguments.extend(["--", "ffmpeg", "--hide"].map(Into::into));
        let mut arguments = arguments.into_iter();
        assert_eq!(Confinement::from_arguments(&mut arguments), Some(confinement));
        assert_eq!(arguments.collect::<Vec<_>>(), ["ffmpeg", "--hide"], "the rest is the command");
        for wrong in
            [&["--hide"][..], &["--hide", "/data"], &["--memory", "much", "--"], &["--show", "/data", "--"]]
        {
            let mut arguments = wrong.iter().map(OsString::from);
            assert_eq!(Confinement::from_arguments(&mut arguments), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_allowed_programs_are_started() {
        let allowed = ["sh".to_owned(), "/bin/cat".to_owned()].to_vec();
        let launcher = Launcher::new(LauncherSettings { allowed, ..LauncherSettings::default() });
        let start = |program: &str| launcher.command(program, &[], None).map(drop);
        assert_eq!((start("sh"), start("/bin/cat")), (Ok(()), Ok(())));
        for (program, name) in [("cat", "cat"), ("/bin/sh", "sh"), ("./sh", "sh"), ("", "")] {
            assert_eq!(
                start(program),
                Err(format!("{name} is not in the list of allowed programs")),
                "{program}"
            );
        }
    }
}
