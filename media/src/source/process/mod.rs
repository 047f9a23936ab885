//! A program whose standard output is the stream.
//!
//! It runs in a process group of its own and without a shell. The group ends as a whole: it is asked to, and killed
//! when it does not listen. Its permit comes back when nobody of the group is left, and its leader is reaped only after
//! everybody was killed: until then nobody else can have its number.
//!
//! Should the gateway itself be killed, a warden does that: a small process beside each program, which hears of our end
//! by a pipe. Where it cannot be started, only the pipes are left: the next byte that the program writes, be it of the
//! stream or of its log, ends it.

mod group;
mod said;
mod warden;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::warn;

use crate::Permit;
use crate::closer::{Closer, SocketCount};
use crate::error::{Cause, UpstreamError};
use crate::source::process::group::Group;
use crate::source::process::said::{Redactor, Said};

/// How much room there is for what is read; used up before there is new.
const READ_BYTES: usize = 256 << 10;
/// The least room that is worth a read.
const READ_BYTES_MIN: usize = 8 << 10;
/// How long a program may take to exit once it has closed its output, so that we can say how it ended.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How long a program's pipes are read after it has exited, while others hold them open.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(100);
/// What a program sees of our environment. Our settings may hold secrets.
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

/// Where a program of this name is: by `PATH`, or at the absolute path that the name is.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Some(PathBuf::from(name)).filter(|it| it.is_file());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|it| it.join(name)).find(|it| it.is_file())
}

/// A running program, what it writes, and the permit to run it. Dropping it ends the program in the background.
pub(super) struct ProcessSource {
    stdout: Receiver,
    said: Said,
    buffer: BytesMut,
    /// When it was seen that it has exited.
    exited_at: Option<Instant>,
    /// Nothing more is read of its output.
    is_closed: bool,
    /// Until when we wait for it to exit; set when its output is closed.
    exit_by: Option<Instant>,
    /// Taken only by `Drop`.
    held: Option<Held>,
    closer: Closer,
}

/// Field order is drop order: the permit comes back when the group is gone.
struct Held {
    group: Group,
    _count: SocketCount,
    permit: Box<dyn Permit>,
}

impl ProcessSource {
    /// Starts a program: its name or path, then its arguments. `secret` is an address that is in them.
    ///
    /// May be cancelled: a program that was started all the same is ended, then its permit is back.
    pub(super) async fn start(
        command: &[String],
        secret: &str,
        permit: Box<dyn Permit>,
        closer: Closer,
    ) -> Result<Self, UpstreamError> {
        let redactor = Redactor::new(secret, command.get(1..).unwrap_or_default());
        let command = command.to_vec();
        // Starting a program takes a millisecond that packets should not wait for.
        let started = tokio::task::spawn_blocking(move || spawn(&command, redactor, permit, closer));
        started.await.map_err(|_| Cause::Panicked)?.map_err(|why| Cause::Program(why).into())
    }

    /// What it has written since. May be cancelled: nothing is lost.
    ///
    /// # Errors
    /// `Exited` when it has closed its output or is gone, even if a child of it still holds the output open.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        while !self.is_closed {
            let Self { stdout, said, buffer, exited_at, held, .. } = self;
            let Some(Held { group, .. }) = held else { break };
            if buffer.capacity() < READ_BYTES_MIN {
                buffer.reserve(READ_BYTES);
            }
            // Packets first. What is said meanwhile waits; a program that says too much waits for us.
            tokio::select! {
                biased;
                read = stdout.read_buf(buffer) => match read {
                    Ok(0) => self.is_closed = true,
                    Ok(_) => return Ok(buffer.split().freeze()),
                    Err(error) => return Err(UpstreamError::from_read(&error)),
                },
                () = group.exited(), if exited_at.is_none() => *exited_at = Some(Instant::now()),
                () = last_words(*exited_at) => self.is_closed = true,
                () = said.read() => {}
            }
        }
        Err(Cause::Exited(self.exit().await).into())
    }

    /// How it ended, once it has closed its output.
    async fn exit(&mut self) -> String {
        let Self { said, exit_by, held, .. } = self;
        let Some(Held { group, .. }) = held else { return String::new() };
        let exit_by = *exit_by.get_or_insert_with(|| Instant::now() + EXIT_WAIT);
        let has_exited = timeout_at(exit_by, said.read_while(group.exited())).await.is_ok();
        if has_exited {
            // Others may hold its log open.
            let _ = timeout(LAST_WORDS_WAIT, said.read_to_end()).await;
        }
        said.close();
        let how = match group.status() {
            None => "its output".to_owned(),
            Some(status) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => format!("with status {code}"),
                (_, Some(signal)) => format!("by signal {signal}"),
                _ => "itself".to_owned(),
            },
        };
        match self.said.last() {
            Some(line) => format!("{how}: {line}"),
            None => how,
        }
    }

    /// What it has said.
    pub(super) fn said(&self) -> &Said {
        &self.said
    }
}

impl Drop for ProcessSource {
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        held.permit.closing();
        held.group.signal(Signal::TERM);
        // One that is stopped would not hear it.
        held.group.signal(Signal::CONT);
        self.closer.run(async move {
            // Names the whole of `held`, so that it is captured whole and dropped in field order.
            let held = &mut held;
            held.group.end().await;
        });
    }
}

/// Waits until a program that has exited at this time has no more to say; for ever while it runs.
async fn last_words(exited_at: Option<Instant>) {
    match exited_at {
        Some(exited_at) => sleep_until(exited_at + LAST_WORDS_WAIT).await,
        None => std::future::pending().await,
    }
}

/// Starts the program. Blocks.
fn spawn(
    command: &[String],
    redactor: Redactor,
    permit: Box<dyn Permit>,
    closer: Closer,
) -> Result<ProcessSource, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("there is none".to_owned());
    };
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not on this machine"),
        kind => format!("{name}: {kind}"),
    };
    let environment: HashMap<&str, OsString> =
        ENVIRONMENT.into_iter().filter_map(|it| Some((it, std::env::var_os(it)?))).collect();
    let count = closer.count();
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
    // From here on it ends with the group.
    let mut group = Group::new(child).map_err(failed)?;
    if let Err(error) = group.watch(warden::SHELL) {
        let shell = warden::SHELL;
        closer
            .say_once(|| warn!("programs of streams may outlive a gateway that is killed: {shell}: {error}"));
    }
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else { return Err(format!("{name} has no output")) };
    let held = Held { group, _count: count, permit };
    Ok(ProcessSource {
        stdout: Receiver::from_owned_fd(stdout).map_err(failed)?,
        said: Said::new(Receiver::from_owned_fd(stderr).map_err(failed)?, redactor),
        buffer: BytesMut::new(),
        exited_at: None,
        is_closed: false,
        exit_by: None,
        held: Some(held),
        closer,
    })
}

#[cfg(test)]
mod tests;
