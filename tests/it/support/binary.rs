//! The `headwater` binary as a child process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::client::{Request, fetch};
use super::{WAIT_MAX, until_async};

/// The file of this version of the program.
pub const BINARY: &str = env!("CARGO_BIN_EXE_headwater");

/// A running `headwater`; killed when it is dropped.
#[derive(Debug)]
pub struct Binary {
    child: Child,
    output: Arc<Mutex<String>>,
    pipes: Vec<JoinHandle<()>>,
    /// The folder for its temporary files.
    temporary: TempDir,
}

impl Binary {
    /// Starts the program with these arguments, on free ports unless they name others, and with hardly any environment.
    pub fn start(arguments: &[&str]) -> Binary {
        Binary::start_with(&[], arguments)
    }

    /// Starts the program as the last argument of a command that becomes it.
    pub fn start_with(command: &[&str], arguments: &[&str]) -> Binary {
        Binary::start_program(BINARY, command, arguments)
    }

    /// Starts the file of a program in the same way, which may be that of another version.
    pub fn start_program(program: &str, command: &[&str], arguments: &[&str]) -> Binary {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let line = [command, &[program], arguments].concat();
        let free_ports = ["--player-listen", "--api-listen"].into_iter().filter(|it| !arguments.contains(it));
        let mut child = Command::new(line[0])
            .args(&line[1..])
            .args(free_ports.flat_map(|it| [it, "127.0.0.1:0"]))
            .env_clear()
            .env("TMPDIR", temporary.path())
            // The tests may run in a rootless container, where loopback is not local.
            .env("HEADWATER_CONTAINER_PROXY", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let output = Arc::default();
        let pipes = vec![
            gather(child.stdout.take().expect("piped"), &output),
            gather(child.stderr.take().expect("piped"), &output),
        ];
        Binary { child, output, pipes, temporary }
    }

    /// Returns the names of its temporary files.
    pub fn temporary_files(&self) -> Vec<OsString> {
        let files = std::fs::read_dir(self.temporary.path()).expect("the folder exists");
        files.map(|it| it.expect("the folder can be read").file_name()).collect()
    }

    /// Returns everything it printed so far, on stdout and stderr.
    pub fn output(&self) -> String {
        self.output.lock().clone()
    }

    /// Waits until it has printed the player address.
    pub async fn address(&self) -> SocketAddr {
        let address = || {
            let output = self.output();
            let at = output.find("/playlist.m3u")?;
            // A program that listens on every address names itself like this.
            let host = output[..at].rsplit("http://").next()?.replace("localhost", "127.0.0.1");
            host.parse::<SocketAddr>().ok()
        };
        until_async("the address of the program", async || address().is_some()).await;
        address().expect("waited for it")
    }

    /// The paths of all streams in the order of its playlist.
    pub async fn streams(&self) -> Vec<String> {
        let list = fetch(self.address().await, Request::get("/playlist.m3u")).await.text();
        let urls = list.lines().filter(|line| !line.starts_with('#'));
        urls.filter_map(|url| Some(url[url.find("/proxy/")?..].to_owned())).collect()
    }

    /// Sends a signal such as `TERM` or `KILL`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs");
        let sent = std::process::Command::new("kill").args([format!("-{name}"), id.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "failed to send {name}");
    }

    pub async fn ended(&mut self) -> ExitStatus {
        self.ended_within(WAIT_MAX).await
    }

    async fn ended_within(&mut self, wait_max: Duration) -> ExitStatus {
        let ended = tokio::time::timeout(wait_max, self.child.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("the program did not exit:\n{}", self.output()))
            .expect("a child can be waited for")
    }

    /// Waits until it exits; returns the exit code and everything it printed.
    pub async fn outcome(self) -> (Option<i32>, String) {
        self.outcome_within(WAIT_MAX).await
    }

    /// Does the same for a program that takes longer than others.
    pub async fn outcome_within(mut self, wait_max: Duration) -> (Option<i32>, String) {
        let code = self.ended_within(wait_max).await.code();
        for pipe in self.pipes.drain(..) {
            pipe.await.expect("the pipes are read completely");
        }
        (code, self.output())
    }

    /// Kills its guard. Stops the program before, which would start another one, and which is to be killed next.
    pub fn loses_guard(&self) {
        self.signal("STOP");
        let is_guard = |id: &str| {
            let read = |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
            let parent = format!("PPid:\t{}\n", self.id());
            read("cmdline").contains("guard-gateway") && read("status").contains(&parent)
        };
        let processes = std::fs::read_dir("/proc").expect("a folder").flatten();
        let ids = processes.filter_map(|it| it.file_name().into_string().ok());
        let guards: Vec<_> = ids.filter(|it| is_guard(it)).collect();
        assert!(!guards.is_empty(), "no guard of {}", self.id());
        let killed = std::process::Command::new("kill").arg("-KILL").args(&guards).status();
        assert!(killed.is_ok_and(|it| it.success()), "failed to kill {guards:?}");
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

fn gather(pipe: impl AsyncRead + Unpin + Send + 'static, output: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let output = Arc::clone(output);
    tokio::spawn(async move {
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            output.lock().push_str(&(line + "\n"));
        }
    })
}
