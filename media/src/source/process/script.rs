//! A program of the operator that gets its input at once and has a time limit. Its group ends with it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::timeout;

use super::DRAIN_WAIT;
use super::group::Group;
use crate::launcher::Launcher;

/// Bytes per read of an output.
const READ_BYTES: usize = 8 << 10;

/// A script: what it gets, and what it may use.
#[derive(Clone, Debug)]
pub struct ScriptJob {
    /// An absolute path. It need not be among the programs that stream profiles may run.
    pub program: PathBuf,
    /// The folder in which it runs.
    pub folder: PathBuf,
    /// All variables of its environment.
    pub environment: Vec<(String, String)>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// Maximum size of each output that is kept; the rest is discarded.
    pub output_bytes_max: usize,
    /// After this time the group is killed.
    pub time_max: Duration,
}

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptEnd {
    /// The exit code; `None` if a signal ended the script.
    pub code: Option<i32>,
    /// Whether it was killed because its time was over.
    pub is_late: bool,
    /// The standard output, or its beginning.
    pub stdout: Vec<u8>,
    /// The same of the standard error.
    pub stderr: Vec<u8>,
}

/// A script that was started, with our ends of its pipes.
struct Started {
    group: Group,
    input: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

/// Runs a script to its end. Processes that it leaves behind are killed. They are killed as well when the future is
/// dropped, or when the gateway is killed.
///
/// # Errors
/// The script cannot be started.
pub async fn run_script(job: ScriptJob, launcher: &Launcher) -> Result<ScriptEnd, String> {
    let (launcher, text, bytes_max, time_max) =
        (launcher.for_script(), job.input.clone(), job.output_bytes_max, job.time_max);
    // Starting a program takes milliseconds.
    let started = tokio::task::spawn_blocking(move || start(&job, &launcher));
    let Started { mut group, mut input, stdout, stderr } =
        started.await.map_err(|_| "the start failed by a defect".to_owned())??;
    let (mut kept_out, mut kept_err) = (Vec::new(), Vec::new());
    let is_late = {
        let feed = async move {
            // A script need not read its input.
            let _ = input.write_all(&text).await;
        };
        let pipes = async {
            tokio::join!(feed, keep(stdout, &mut kept_out, bytes_max), keep(stderr, &mut kept_err, bytes_max))
        };
        let mut pipes = std::pin::pin!(pipes);
        let ended = timeout(time_max, async {
            tokio::select! {
                _ = &mut pipes => group.exited().await,
                () = group.exited() => {
                    // Other processes of the group may hold the pipes open.
                    let _ = timeout(DRAIN_WAIT, &mut pipes).await;
                }
            }
        });
        ended.await.is_err()
    };
    let code = if is_late { None } else { group.status().and_then(|it| it.exit_status()) };
    group.signal(Signal::TERM);
    // A stopped process handles SIGTERM only after SIGCONT.
    group.signal(Signal::CONT);
    group.end().await;
    Ok(ScriptEnd { code, is_late, stdout: kept_out, stderr: kept_err })
}

/// Starts the script. Blocks.
fn start(job: &ScriptJob, launcher: &Launcher) -> Result<Started, String> {
    let failed = |error: io::Error| error.kind().to_string();
    let program = job.program.to_str().ok_or("its path is not UTF-8")?;
    let (its_input, input) = io::pipe().map_err(failed)?;
    let mut child = launcher
        .command(program, &[], Some(its_input.into()))?
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&job.folder)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
    // From here on the script ends with the group.
    let group = Group::new(child, launcher).map_err(failed)?;
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else { return Err("it has no output".to_owned()) };
    Ok(Started {
        group,
        input: Sender::from_owned_fd(input.into()).map_err(failed)?,
        stdout: Receiver::from_owned_fd(stdout).map_err(failed)?,
        stderr: Receiver::from_owned_fd(stderr).map_err(failed)?,
    })
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use tokio::time::sleep;

    use super::*;
    use crate::testing::group as processes;

    const LONG: Duration = Duration::from_secs(600);

    async fn run(text: &str, time_max: Duration) -> ScriptEnd {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("script.sh");
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let job = ScriptJob {
            program,
            folder: folder.path().to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("SERVICE_NAME".into(), "a b".into())],
            input: b"{\"event\": 1}".to_vec(),
            output_bytes_max: 1000,
            time_max,
        };
        run_script(job, &Launcher::default()).await.unwrap()
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[tokio::test]
    async fn a_script_gets_input_and_variables_and_its_output_is_kept() {
        let end = run("echo \"$SERVICE_NAME $HOME.\"; cat; echo oops >&2; pwd >&2; exit 7", LONG).await;
        assert_eq!((end.code, end.is_late), (Some(7), false));
        assert_eq!(text(&end.stdout), "a b .\n{\"event\": 1}");
        assert!(text(&end.stderr).starts_with("oops\n/"), "{end:?}");
        // One that reads nothing, and floods.
        let end = run("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", LONG).await;
        assert_eq!((end.code, end.stdout.len(), end.stderr.len()), (Some(0), 1000, 1000));
    }

    #[tokio::test]
    async fn a_script_that_takes_too_long_is_killed_with_its_children() {
        let end = run("echo $$; trap '' TERM; sleep 1000 & sleep 1000", Duration::from_millis(300)).await;
        assert_eq!((end.code, end.is_late), (None, true));
        let pid = text(&end.stdout).trim().to_owned();
        assert!(!pid.is_empty() && processes(&pid).is_empty(), "{pid}");
    }

    #[tokio::test]
    async fn children_that_a_script_leaves_behind_are_killed() {
        let end = run("echo $$; sleep 1000 & exit 0", LONG).await;
        assert_eq!((end.code, end.is_late), (Some(0), false));
        let pid = text(&end.stdout).trim().to_owned();
        while !processes(&pid).is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    }
}
