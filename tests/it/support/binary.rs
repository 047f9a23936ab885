//! The real program as a child process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::client::{Request, fetch};
use super::{PATIENCE, until_async};

/// A running `headwater`; killed when it is dropped.
#[derive(Debug)]
pub struct Binary {
    child: Child,
    output: Arc<Mutex<String>>,
    pipes: Vec<JoinHandle<()>>,
    /// Its folder for temporary files.
    temporary: TempDir,
}

impl Binary {
    /// Starts it with these arguments, on free ports, and without what the environment of the tests may set.
    pub fn start(arguments: &[&str]) -> Binary {
        let temporary = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_headwater"))
            .args(arguments)
            .args(["--player-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"])
            .env_clear()
            .env("TMPDIR", temporary.path())
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

    /// What lies in its folder for temporary files.
    pub fn temporary_files(&self) -> Vec<OsString> {
        let files = std::fs::read_dir(self.temporary.path()).expect("it is there");
        files.map(|it| it.expect("it can be read").file_name()).collect()
    }

    /// What it has said so far, on both outputs.
    pub fn output(&self) -> String {
        self.output.lock().clone()
    }

    /// Waits until it says where players call, and until that answers.
    pub async fn address(&self) -> SocketAddr {
        let told = || {
            let output = self.output();
            let at = output.find("/playlist.m3u")?;
            let host = output[..at].rsplit("http://").next()?;
            host.parse::<SocketAddr>().ok()
        };
        until_async("the address of the program", async || told().is_some()).await;
        told().expect("waited for it")
    }

    /// The paths of all streams in the order of its playlist.
    pub async fn streams(&self) -> Vec<String> {
        let list = fetch(self.address().await, Request::get("/playlist.m3u")).await.text();
        let urls = list.lines().filter(|line| !line.starts_with('#'));
        urls.filter_map(|url| Some(url[url.find("/proxy/")?..].to_owned())).collect()
    }

    /// `TERM`, `KILL` and so on.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs");
        let sent = std::process::Command::new("kill").args([format!("-{name}"), id.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "failed to send {name}");
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("it does not end:\n{}", self.output()))
            .expect("a child can be waited for")
    }

    /// Waits for its end: the exit code, and everything it said.
    pub async fn outcome(mut self) -> (Option<i32>, String) {
        let code = self.ended().await.code();
        for pipe in self.pipes.drain(..) {
            pipe.await.expect("the pipes are read to their end");
        }
        (code, self.output())
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
