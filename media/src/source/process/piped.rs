//! A program that the gateway talks to over its pipes, such as a plugin. It runs confined, in its own process group, and
//! ends with its group.

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::DRAIN_WAIT;
use super::group::{Group, GroupCommand, Pipes, ProgramEnd};
use crate::blocking::spawn_blocking;
use crate::closer::Closer;
use crate::launcher::{Confinement, Launcher};

/// Bytes per read of an output.
const READ_BYTES: usize = 8 << 10;

/// The program, and what it may access and use.
#[derive(Clone, Debug)]
pub struct PipedCommand {
    /// Its absolute path, then its arguments.
    pub command: Vec<String>,
    /// Its environment besides the inherited variables.
    pub environment: Vec<(String, OsString)>,
    /// Names of variables of the gateway's environment that are passed on.
    pub inherited: Vec<&'static str>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Its restrictions, besides what is hidden from every program.
    pub confinement: Confinement,
}

/// A running program. Dropping it ends its group in the background.
pub struct PipedProgram {
    /// Taken only by `Drop`.
    group: Option<Group>,
    closer: Closer,
}

/// How a program ended that was run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// `None` if its time was over.
    pub end: Option<ProgramEnd>,
    /// The standard output, or its beginning.
    pub stdout: Vec<u8>,
    /// The same of the standard error.
    pub stderr: Vec<u8>,
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
        let PipedCommand { command, environment: own, inherited, folder, confinement } = command;
        let launcher = launcher.confined_by(confinement);
        let start = move || {
            let Some((program, arguments)) = command.split_first() else {
                return Err("the command is empty".to_owned());
            };
            let passed = inherited.iter().filter_map(|it| Some(((*it).to_owned(), std::env::var_os(it)?)));
            let mut environment: Vec<_> = passed.collect();
            environment.extend(own);
            Group::start_with_input(GroupCommand { program, arguments, environment, folder }, &launcher)
        };
        Self::start_with(closer, start).await
    }

    /// Starts a program with this function, which may block. The program ends if the future is dropped.
    pub(super) async fn start_with(
        closer: Closer,
        start: impl FnOnce() -> Result<(Group, Pipes), String> + Send + 'static,
    ) -> Result<(Self, Pipes), String> {
        // Starting a program takes milliseconds.
        let started = spawn_blocking(move || {
            start().map(|(group, pipes)| (Self { group: Some(group), closer }, pipes))
        });
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
        group.ended().unwrap_or(ProgramEnd::Code(0))
    }

    /// Waits for its end, and ends its group then or when its time is over. Of each output up to `bytes_max` are kept, and
    /// the rest is discarded.
    pub async fn run(mut self, pipes: Pipes, input: &[u8], bytes_max: usize, time_max: Duration) -> RunEnd {
        let Pipes { mut stdin, stdout, stderr } = pipes;
        let (mut kept_out, mut kept_err) = (Vec::new(), Vec::new());
        let end = {
            let feed = async move {
                // A program need not read its input.
                let _ = stdin.write_all(input).await;
            };
            let (out, err) = (keep(stdout, &mut kept_out, bytes_max), keep(stderr, &mut kept_err, bytes_max));
            let mut pipes = pin!(async { tokio::join!(feed, out, err) });
            let ended = timeout(time_max, async {
                tokio::select! {
                    _ = &mut pipes => self.exited().await,
                    end = self.exited() => {
                        // Other processes of the group may hold the pipes open.
                        let _ = timeout(DRAIN_WAIT, &mut pipes).await;
                        end
                    }
                }
            });
            ended.await.ok()
        };
        self.ask_to_end();
        self.gone().await;
        RunEnd { end, stdout: kept_out, stderr: kept_err }
    }

    /// Asks all its processes to end.
    pub fn ask_to_end(&self) {
        if let Some(group) = &self.group {
            group.ask_to_end();
        }
    }

    /// Kills all its processes without waiting. What they sent can still be read.
    pub fn kill_now(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    /// Kills all its processes, and waits until none is left.
    pub async fn kill(self) {
        self.kill_now();
        self.gone().await;
    }

    /// Kills all its processes if they do not end in time, and waits until none is left.
    async fn gone(mut self) {
        let Some(mut group) = self.group.take() else { return };
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
        group.kill();
        self.closer.spawn(async move { group.end().await });
    }
}

/// Reads an output to its end, and keeps its beginning.
async fn keep(mut output: Receiver, kept: &mut Vec<u8>, bytes_max: usize) {
    let mut piece = [0; READ_BYTES];
    while let Ok(n @ 1..) = output.read(&mut piece).await {
        let room = bytes_max - kept.len();
        kept.extend_from_slice(&piece[..n.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;
    use tokio::time::sleep;

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

    #[tokio::test]
    async fn a_dropped_run_ends_the_group() {
        let command = PipedCommand {
            command: ["/bin/sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000"].map(str::to_owned).to_vec(),
            environment: Vec::new(),
            inherited: vec!["PATH"],
            folder: "/".into(),
            confinement: Confinement::default(),
        };
        let closer = Closer::new(Handle::current());
        let (program, pipes) = PipedProgram::start(command, &Launcher::default(), closer).await.unwrap();
        let id = program.id().to_string();
        let running = tokio::spawn(program.run(pipes, b"", 0, Duration::from_secs(600)));
        running.abort();
        while !group(&id).is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    }
}
