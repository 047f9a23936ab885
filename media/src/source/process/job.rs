//! A program that works on files until it exits. It reads and writes only the named files below what is hidden from other
//! programs, has no network and lower priority than the gateway, and ends with its group when the future is dropped.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::setpriority_pgrp;
use tokio::time::timeout;

use super::{HeldGroup, ProcessSource, ProgramEnd};
use crate::closer::Closer;
use crate::launcher::Launcher;
use crate::permit::Permit;

/// Maximum size of the output that is kept, in bytes; the rest is discarded.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The nice value of jobs: live channels come first.
const NICENESS: i32 = 10;

/// A job: its command, and what it may access and use.
#[derive(Clone, Debug)]
pub struct FileJob {
    /// The name or absolute path of the program, then its arguments. The program need not be among those that stream
    /// profiles may run.
    pub command: Vec<String>,
    /// Files and folders that cannot be read or written, besides those that are hidden from every program.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that can be read although they are below hidden ones.
    pub readable: Vec<PathBuf>,
    /// The only files and folders that can be written.
    pub writable: Vec<PathBuf>,
    /// Maximum size of a written file in bytes; 0 means no limit.
    pub file_bytes_max: u64,
    /// Maximum time of the job.
    pub time_max: Duration,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileJobEnd {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The standard output, or its beginning.
    pub output: Vec<u8>,
    /// How the program ended, with the last line of its log, for people.
    pub message: String,
}

/// No provider counts the program.
struct NoPermit;

impl Permit for NoPermit {
    fn delivers(&mut self) {}

    fn closing(&mut self) {}
}

/// Runs a job to its end.
///
/// # Errors
/// The program cannot be started, or took longer than its time.
pub async fn run_job(job: FileJob, launcher: &Launcher, closer: Closer) -> Result<FileJobEnd, String> {
    let FileJob { command, hidden, readable, writable, file_bytes_max, time_max } = job;
    let launcher = launcher.for_job(hidden, readable, writable, file_bytes_max);
    let run = async {
        let mut program = ProcessSource::start(&command, "", None, Box::new(NoPermit), closer, launcher)
            .await
            .map_err(|error| error.to_string())?;
        if let Some(HeldGroup { group, .. }) = &program.held {
            // Fails if the program has exited already.
            let _ = setpriority_pgrp(Some(group.id()), NICENESS);
        }
        let mut output = Vec::new();
        let message = loop {
            match program.read().await {
                Ok(bytes) => {
                    let room = OUTPUT_BYTES_MAX - output.len();
                    output.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                Err(error) => break error.to_string(),
            }
        };
        let Some(HeldGroup { group, .. }) = &mut program.held else { return Err(message) };
        // A program may close its output long before it exits.
        group.exited().await;
        let code = group.ended().and_then(ProgramEnd::code);
        Ok(FileJobEnd { code, output, message })
    };
    timeout(time_max, run).await.map_err(|_| "the program took too long".to_owned())?
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::runtime::Handle;
    use tokio::time::sleep;

    use super::*;
    use crate::testing::group;

    fn job(script: &str) -> FileJob {
        FileJob {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            hidden: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            file_bytes_max: 0,
            time_max: Duration::from_secs(60),
        }
    }

    async fn run(script: &str) -> Result<FileJobEnd, String> {
        run_job(job(script), &Launcher::default(), Closer::new(Handle::current())).await
    }

    #[tokio::test]
    async fn a_job_returns_its_code_and_output() {
        let end = run("echo found; echo nothing else >&2; exit 3").await.unwrap();
        assert_eq!((end.code, &end.output[..]), (Some(3), &b"found\n"[..]));
        assert!(end.message.ends_with("nothing else"), "{}", end.message);
        assert_eq!(run("kill -KILL $$").await.unwrap().code, None);
        let silent = run("exec >&- 2>&-; sleep 1; exit 4").await.unwrap();
        assert_eq!(silent.code, Some(4), "the output was closed long before the exit");
        assert_eq!(run("yes | head -c 3000000").await.unwrap().output.len(), OUTPUT_BYTES_MAX);
        let missing = FileJob { command: vec!["/nothing/here".to_owned()], ..job("") };
        assert!(run_job(missing, &Launcher::default(), Closer::new(Handle::current())).await.is_err());
    }

    #[tokio::test]
    async fn a_job_that_takes_too_long_or_is_dropped_ends_with_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let script = format!("echo $$ >{0}.new; mv {0}.new {0}; sleep 1000 & sleep 1000", path.display());
        let closer = Closer::new(Handle::current());
        let running = tokio::spawn({
            let (job, closer) = (job(&script), closer.clone());
            async move { run_job(job, &Launcher::default(), closer).await }
        });
        while !path.exists() {
            sleep(Duration::from_millis(10)).await;
        }
        let pid = fs::read_to_string(&path).unwrap();
        running.abort();
        while !group(pid.trim()).is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        let late = FileJob { time_max: Duration::from_millis(50), ..job("sleep 1000") };
        let refused = run_job(late, &Launcher::default(), closer).await;
        assert_eq!(refused, Err("the program took too long".to_owned()));
    }
}
