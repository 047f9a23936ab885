//! A program that the gateway talks to over its pipes, such as a plugin. It runs confined, in its own process group, and
//! ends with its group.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::ENVIRONMENT;
use super::group::Group;
use crate::closer::Closer;
use crate::launcher::{Confinement, Launcher};

/// The program, and what it may access and use.
#[derive(Clone, Debug)]
pub struct PipedCommand {
    /// Its absolute path, then its arguments.
    pub command: Vec<String>,
    /// Its environment. The variables that every program gets are passed on if `inherited` names them.
    pub environment: Vec<(String, OsString)>,
    /// Names of variables of the gateway's environment that are passed on, of those that every program gets.
    pub inherited: Vec<&'static str>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Its restrictions, besides what is hidden from every program.
    pub confinement: Confinement,
}

/// The pipes of a running program.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
}

/// A running program. Dropping it ends its group in the background.
pub struct PipedProgram {
    /// Taken only by `Drop`.
    group: Option<Group>,
    closer: Closer,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl PipedProgram {
    /// Starts a program. Its group ends with the gateway.
    ///
    /// # Errors
    /// The sentence why it cannot be started.
    pub async fn start(
        command: PipedCommand,
        launcher: &Launcher,
        closer: Closer,
    ) -> Result<(Self, Pipes), String> {
        let launcher = launcher.confined_by(command.confinement.clone());
        // Starting a program takes milliseconds.
        let started = tokio::task::spawn_blocking(move || spawn(command, &launcher, closer));
        started.await.map_err(|_| "a bug: the start of a program panicked".to_owned())?
    }

    /// Returns the id of its process group, which is that of its first process.
    pub fn id(&self) -> u32 {
        let id = self.group.as_ref().map(|it| it.id().as_raw_nonzero().get());
        id.and_then(|it| u32::try_from(it).ok()).unwrap_or_default()
    }

    /// Waits until its first process has exited. Cancel-safe.
    pub async fn exited(&mut self) -> ProgramEnd {
        let Some(group) = &mut self.group else { return ProgramEnd::Code(0) };
        group.exited().await;
        match group.status().map(|it| (it.exit_status(), it.terminating_signal())) {
            Some((_, Some(signal))) => ProgramEnd::Signal(signal),
            Some((code, None)) => ProgramEnd::Code(code.unwrap_or_default()),
            None => ProgramEnd::Code(0),
        }
    }

    /// Asks all its processes to end.
    pub fn ask_to_end(&self) {
        if let Some(group) = &self.group {
            group.signal(Signal::TERM);
            // A stopped process handles SIGTERM only after SIGCONT.
            group.signal(Signal::CONT);
        }
    }

    /// Kills all its processes without waiting. What they sent can still be read.
    pub fn kill_now(&self) {
        if let Some(group) = &self.group {
            group.signal(Signal::KILL);
        }
    }

    /// Kills all its processes, and waits until none is left.
    pub async fn kill(mut self) {
        let Some(mut group) = self.group.take() else { return };
        group.signal(Signal::KILL);
        // In a task, so that a caller that stops waiting does not leave processes.
        let (done, gone) = tokio::sync::oneshot::channel::<()>();
        self.closer.spawn(async move {
            group.end().await;
            drop((group, done));
        });
        let _ = gone.await;
    }
}

impl Drop for PipedProgram {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        group.signal(Signal::KILL);
        self.closer.spawn(async move { group.end().await });
    }
}

/// Starts the program. Blocks.
fn spawn(
    command: PipedCommand,
    launcher: &Launcher,
    closer: Closer,
) -> Result<(PipedProgram, Pipes), String> {
    let PipedCommand { command, environment, inherited, folder, .. } = command;
    let Some((program, arguments)) = command.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let failed = |error: io::Error| format!("{name}: {}", error.kind());
    let inherited = ENVIRONMENT.into_iter().filter(|it| inherited.contains(it));
    let (input, stdin) = io::pipe().map_err(failed)?;
    let mut child = launcher
        .command(program, arguments, Some(input.into()))?
        .env_clear()
        .envs(inherited.filter_map(|it| Some((it, std::env::var_os(it)?))))
        .envs(environment)
        .current_dir(folder)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
    // From here on the program ends with the group.
    let group = Group::new(child, launcher).map_err(failed)?;
    let program = PipedProgram { group: Some(group), closer };
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else { return Err(format!("{name} has no output")) };
    let pipes = Pipes {
        stdin: Sender::from_owned_fd(OwnedFd::from(stdin)).map_err(failed)?,
        stdout: Receiver::from_owned_fd(stdout).map_err(failed)?,
        stderr: Receiver::from_owned_fd(stderr).map_err(failed)?,
    };
    Ok((program, pipes))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Handle;

    use super::*;
    use crate::testing::group;

    #[tokio::test]
    async fn a_program_answers_over_its_pipes_and_ends_with_its_group() {
        let command = PipedCommand {
            command: ["/bin/sh", "-c", "read a; echo got $a $X; sleep 1000 & sleep 1000"]
                .map(str::to_owned)
                .to_vec(),
            environment: vec![("X".to_owned(), "y".into())],
            inherited: vec!["PATH"],
            folder: "/".into(),
            confinement: Confinement::default(),
        };
        let closer = Closer::new(Handle::current());
        let (program, mut pipes) = PipedProgram::start(command, &Launcher::default(), closer).await.unwrap();
        pipes.stdin.write_all(b"it\n").await.unwrap();
        let mut answer = [0; 9];
        pipes.stdout.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"got it y\n");
        let id = program.id().to_string();
        program.kill().await;
        assert_eq!(group(&id), Vec::<String>::new());
    }
}
