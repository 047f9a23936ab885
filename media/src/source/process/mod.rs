//! A program whose standard output is the stream.
//!
//! The program runs without a shell in its own process group, and the group ends as a whole: it gets SIGTERM
//! first and SIGKILL after a timeout. Its permit is returned when no process of the group is left. The leader
//! is reaped only after all processes were killed, so that its process id cannot be reused before.
//!
//! If the gateway itself is killed, the watchdog of the [launcher](crate::launcher) kills the group.

mod group;
mod job;
mod log;
mod piped;
mod script;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

pub use self::group::{Pipes, ProgramEnd};
pub use self::job::{FileJob, FileJobEnd, run_job};
pub use self::piped::{PipedCommand, PipedProgram, RunEnd};
pub use self::script::{ScriptEnd, ScriptJob, run_script};
use crate::blocking::spawn_blocking;
use crate::closer::{Closer, SocketCount};
use crate::error::{Cause, UpstreamError};
use crate::launcher::Launcher;
use crate::permit::Permit;
use crate::source::process::group::{Group, GroupCommand, Outputs};
use crate::source::process::log::{ProgramLog, Redactor};

/// Size of the read buffer, which is used up before a new one is allocated.
const READ_BYTES: usize = 256 << 10;
/// Smallest rest of the buffer that is used for a read.
const READ_BYTES_MIN: usize = 8 << 10;
/// Time a program has to exit after it closed its output, so that its exit status can be reported.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// Time for which the pipes of an exited program are read while other processes hold them open.
const DRAIN_WAIT: Duration = Duration::from_millis(100);
/// Environment variables that are passed to a program. Settings of the gateway may contain secrets.
const ENVIRONMENT: [&str; 14] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "no_proxy",
];

/// Returns the path of a program: the first match in `PATH`, or the name itself if it is an absolute path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Some(PathBuf::from(name)).filter(|it| it.is_file());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|it| it.join(name)).find(|it| it.is_file())
}

/// A running program, its pipes, and the permit to run it. Dropping it ends the program in the background.
pub(super) struct ProcessSource {
    stdout: Receiver,
    log: ProgramLog,
    buffer: BytesMut,
    /// The time at which the exit was noticed.
    exited_at: Option<Instant>,
    /// No more output is read.
    is_closed: bool,
    /// Deadline for the exit; set when the output is closed.
    exit_by: Option<Instant>,
    /// Taken only by `Drop`.
    held: Option<HeldGroup>,
    closer: Closer,
}

/// Field order is drop order: the permit is returned when the group is gone.
struct HeldGroup {
    group: Group,
    _count: SocketCount,
    permit: Box<dyn Permit>,
}

impl ProcessSource {
    /// Starts a program: its name or path, then its arguments. `secret` is an address that the arguments
    /// contain, and `input` its standard input, if it has one.
    ///
    /// May be cancelled: a program that was started nevertheless is ended, and then its permit is returned.
    pub(super) async fn start(
        command: &[String],
        secret: &str,
        input: Option<OwnedFd>,
        permit: Box<dyn Permit>,
        closer: Closer,
        launcher: Launcher,
    ) -> Result<Self, UpstreamError> {
        let redactor = Redactor::new(secret, command.get(1..).unwrap_or_default());
        let command = command.to_vec();
        // Starting a program takes milliseconds, in which this thread could not handle packets.
        let started = spawn_blocking(move || spawn(&command, redactor, input, permit, closer, &launcher));
        started.await.map_err(|_| Cause::Panicked)?.map_err(|why| Cause::Program(why).into())
    }

    /// Reads the next output. Cancel-safe.
    ///
    /// # Errors
    /// `Exited` when the program closed its output or exited, even if a child process still holds the output
    /// open.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        while !self.is_closed {
            let Self { stdout, log, buffer, exited_at, held, .. } = self;
            let Some(HeldGroup { group, .. }) = held else { break };
            if buffer.capacity() < READ_BYTES_MIN {
                buffer.reserve(READ_BYTES);
            }
            // Output first. Log lines wait meanwhile; a program that logs too much is blocked by its full
            // pipe.
            tokio::select! {
                biased;
                read = stdout.read_buf(buffer) => match read {
                    Ok(0) => self.is_closed = true,
                    Ok(_) => return Ok(buffer.split().freeze()),
                    Err(error) => return Err(UpstreamError::from_read(&error)),
                },
                () = group.exited(), if exited_at.is_none() => *exited_at = Some(Instant::now()),
                () = drain_timeout(*exited_at) => self.is_closed = true,
                () = log.read() => {}
            }
        }
        Err(Cause::Exited(self.exit().await).into())
    }

    /// Returns how the program ended, after it closed its output.
    async fn exit(&mut self) -> String {
        let Self { log, exit_by, held, .. } = self;
        let Some(HeldGroup { group, .. }) = held else { return String::new() };
        let exit_by = *exit_by.get_or_insert_with(|| Instant::now() + EXIT_WAIT);
        let has_exited = timeout_at(exit_by, log.read_while(group.exited())).await.is_ok();
        if has_exited {
            // Other processes may hold the log open.
            let _ = timeout(DRAIN_WAIT, log.read_to_end()).await;
        }
        log.close();
        let how = match group.ended() {
            None => "its output".to_owned(),
            Some(end) => end.to_string(),
        };
        match self.log.last() {
            Some(line) => format!("{how}: {line}"),
            None => how,
        }
    }

    /// Returns whether the program ended with success, after a read failed.
    pub(super) fn has_succeeded(&self) -> bool {
        self.held.as_ref().and_then(|it| it.group.ended()) == Some(ProgramEnd::Code(0))
    }

    /// Records that the program delivers payload.
    pub(super) fn delivers(&mut self) {
        if let Some(held) = &mut self.held {
            held.permit.delivers();
        }
    }

    /// Returns the log of the program.
    pub(super) fn log(&self) -> &ProgramLog {
        &self.log
    }
}

impl Drop for ProcessSource {
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        held.permit.closing();
        held.group.ask_to_end();
        self.closer.spawn(async move {
            // Borrows all of `held`, so that the block captures it as a whole and drops it in field order.
            let held = &mut held;
            held.group.end().await;
        });
    }
}

/// Waits until the pipes of a program that exited at this time have been read; waits for ever while the
/// program runs.
async fn drain_timeout(exited_at: Option<Instant>) {
    match exited_at {
        Some(exited_at) => sleep_until(exited_at + DRAIN_WAIT).await,
        None => std::future::pending().await,
    }
}

/// Starts the program. Blocks.
fn spawn(
    command: &[String],
    redactor: Redactor,
    input: Option<OwnedFd>,
    permit: Box<dyn Permit>,
    closer: Closer,
    launcher: &Launcher,
) -> Result<ProcessSource, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let count = closer.count_socket();
    let environment = environment();
    let command = GroupCommand { program, arguments, environment, folder: "/".into() };
    let (group, Outputs { stdout, stderr }) = Group::start(command, input, launcher)?;
    Ok(ProcessSource {
        stdout,
        log: ProgramLog::new(stderr, redactor),
        buffer: BytesMut::new(),
        exited_at: None,
        is_closed: false,
        exit_by: None,
        held: Some(HeldGroup { group, _count: count, permit }),
        closer,
    })
}

/// Returns the variables of the gateway's environment that are passed to every program.
fn environment() -> Vec<(String, OsString)> {
    ENVIRONMENT.into_iter().filter_map(|it| Some((it.to_owned(), std::env::var_os(it)?))).collect()
}

#[cfg(test)]
mod tests;
