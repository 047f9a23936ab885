//! The launcher, the watchdog and the guard as processes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::getpid;
use rustix::stdio::{dup2_stdin, stdin};

use super::guard::TellEnd;
use super::{Confinement, GUARD, LAUNCH, LAUNCH_FED, WATCH, confine, guard, watchdog};

/// Exit code of a launcher that could not start its program, as of `env` and of shells.
const CANNOT_RUN: u8 = 126;
/// Makes the kernel end a program rather than the gateway when memory runs out. The scale ends at 1,000.
const OOM_SCORE: &str = "500";

/// Runs the process as a launcher, a watchdog or a guard if its arguments, which begin with the name of the binary, say so.
/// A guard calls `tell_end`.
///
/// Returns `None` for all other arguments. A launcher returns only if its program cannot be started.
pub fn run_mode(arguments: impl IntoIterator<Item = OsString>, tell_end: TellEnd) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    match arguments.next()?.to_str()? {
        mode @ (LAUNCH | LAUNCH_FED) => {
            let error = launch(arguments, mode == LAUNCH_FED);
            // The gateway reads this as the log of the program.
            let _ = writeln!(io::stderr(), "{error}");
            Some(ExitCode::from(CANNOT_RUN))
        }
        WATCH => {
            watchdog::watch(io::stdin().lock(), io::stdout().lock());
            Some(ExitCode::SUCCESS)
        }
        GUARD => Some(match guard::guard_parent(io::stdin(), io::stdout(), tell_end) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }),
        _ => None,
    }
}

/// Becomes the program, or returns why not. Standard input is a pipe to the watchdog, or that of the program.
fn launch(mut arguments: impl Iterator<Item = OsString>, keeps_input: bool) -> String {
    let Some(confinement) = Confinement::from_arguments(&mut arguments) else {
        return "the arguments of the launcher are wrong".to_owned();
    };
    let Some(program) = arguments.next() else { return "the command is empty".to_owned() };
    if !keeps_input {
        // Registers before the program runs. If the watchdog has ended, the gateway starts another one and registers the
        // group there.
        let _ = rustix::io::write(stdin(), watchdog::added(getpid()).as_bytes());
        if let Err(error) = File::open("/dev/null").and_then(|null| Ok(dup2_stdin(null)?)) {
            return format!("cannot open /dev/null: {error}");
        }
    }
    // Fails only where the kernel or a container hides the file.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    if let Err(error) = confine::confine(&confinement) {
        return format!("cannot confine the program: {error}");
    }
    let error = Command::new(&program).args(arguments).exec();
    format!("cannot start the program: {error}")
}
