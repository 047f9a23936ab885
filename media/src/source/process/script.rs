//! A program of the operator that gets its input at once and has a time limit. Its group ends with it.

use std::path::PathBuf;
use std::time::Duration;

use super::group::{Group, GroupCommand, ProgramEnd};
use super::piped::{PipedProgram, RunEnd};
use crate::closer::Closer;
use crate::launcher::Launcher;

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

/// Runs a script to its end. Processes that it leaves behind are killed. They are killed as well when the future is
/// dropped, or when the gateway is killed.
///
/// # Errors
/// The script cannot be started.
pub async fn run_script(job: ScriptJob, launcher: &Launcher, closer: Closer) -> Result<ScriptEnd, String> {
    let ScriptJob { program, folder, environment, input, output_bytes_max, time_max } = job;
    let environment = environment.into_iter().map(|(name, value)| (name, value.into())).collect();
    let launcher = launcher.for_script();
    let started = PipedProgram::start_with(closer, move || {
        let program = program.to_str().ok_or("its path is not UTF-8")?;
        Group::start_with_input(GroupCommand { program, arguments: &[], environment, folder }, &launcher)
    });
    let (program, pipes) = started.await?;
    let RunEnd { end, stdout, stderr } = program.run(pipes, &input, output_bytes_max, time_max).await;
    Ok(ScriptEnd { code: end.and_then(ProgramEnd::code), is_late: end.is_none(), stdout, stderr })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use tokio::runtime::Handle;
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
        run_script(job, &Launcher::default(), Closer::new(Handle::current())).await.unwrap()
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
