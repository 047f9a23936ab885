//! NATS servers in processes of their own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use uuid::Uuid;

use crate::nats::{NatsLogin, NatsOptions};

/// Servers that form one NATS cluster, or a single server. They end when this is dropped.
///
/// Each server listens on a random address of the loopback network, so that its ports are free, also after a restart.
#[derive(Debug)]
pub struct NatsServers {
    program: PathBuf,
    folder: TempDir,
    hosts: Vec<String>,
    /// For each server, the command that becomes the program; empty without one.
    commands: Vec<Vec<String>>,
    processes: Vec<Option<Child>>,
}

impl NatsServers {
    /// Starts servers with a program, and waits for nothing.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start(program: &Path, n_servers: usize) -> Self {
        Self::start_with(program, n_servers, "")
    }

    /// Starts servers with additional lines in their configuration.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start_with(program: &Path, n_servers: usize, more: &str) -> Self {
        Self::start_synced(program, n_servers, ", sync_interval: always", more)
    }

    /// Starts a server with the defaults of its version, which may not know the setting for writing to disk at once.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start_unsynced(program: &Path) -> Self {
        Self::start_synced(program, 1, "", "")
    }

    /// Starts servers on machines: each has an address, and a command that becomes the program there.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start_on(program: &Path, machines: Vec<(String, Vec<String>)>) -> Self {
        Self::start_all(program, machines, ", sync_interval: always", "")
    }

    fn start_synced(program: &Path, n_servers: usize, sync: &str, more: &str) -> Self {
        let machines = (0..n_servers).map(|_| (random_host(), Vec::new())).collect();
        Self::start_all(program, machines, sync, more)
    }

    fn start_all(program: &Path, machines: Vec<(String, Vec<String>)>, sync: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (hosts, commands): (Vec<_>, Vec<_>) = machines.into_iter().unzip();
        let n_servers = hosts.len();
        let routes: Vec<_> = hosts.iter().map(|it| format!("nats://{it}:6222")).collect();
        for (at, host) in hosts.iter().enumerate() {
            let store = folder.path().join(format!("store{at}"));
            let mut text = format!(
                "server_name: n{at}\nlisten: {host}:4222\nhttp: {host}:8222\n\
                 jetstream {{ store_dir: {store:?}, max_file_store: 16G{sync} }}\n{more}\n"
            );
            if n_servers > 1 {
                let routes = routes.join(", ");
                text += &format!("cluster {{ name: test, listen: {host}:6222, routes: [{routes}] }}\n");
            }
            fs::write(folder.path().join(format!("n{at}.conf")), text).expect("a temporary file");
        }
        let processes = (0..n_servers).map(|_| None).collect();
        let mut servers = Self { program: program.to_owned(), folder, hosts, commands, processes };
        for at in 0..n_servers {
            servers.restart(at);
        }
        servers
    }

    /// Returns how to reach the servers.
    pub fn options(&self) -> NatsOptions {
        let servers = self.hosts.iter().map(|it| format!("nats://{it}:4222")).collect();
        NatsOptions { servers, login: NatsLogin::None, ca: None, name: "test".to_owned() }
    }

    /// Returns the address of the monitoring of a server.
    pub fn monitor(&self, at: usize) -> String {
        format!("http://{}:8222", self.hosts[at])
    }

    /// Returns the process of a server; `None` if it does not run.
    pub fn process(&self, at: usize) -> Option<u32> {
        self.processes[at].as_ref().map(Child::id)
    }

    /// Starts a server that does not run.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn restart(&mut self, at: usize) {
        let log =
            fs::File::options().append(true).create(true).open(self.log_path(at)).expect("a temporary file");
        let command = self.commands[at].iter().map(OsStr::new).chain([self.program.as_os_str()]);
        let line: Vec<_> = command.collect();
        let started = Command::new(line[0])
            .args(&line[1..])
            .arg("--config")
            .arg(self.folder.path().join(format!("n{at}.conf")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let path = self.program.display();
        self.processes[at] = Some(started.unwrap_or_else(|it| panic!("failed to start {path}: {it}")));
    }

    /// Ends a server at once, as `kill -9` does.
    pub fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.processes[at].take() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Stops a server in the middle of its work: its connections stay, and nothing is answered. Returns once all of its threads
    /// have stopped, because one that runs on another core continues for a moment.
    pub fn freeze(&self, at: usize) {
        self.signal(at, Signal::STOP);
        let process = self.process(at).unwrap_or_default();
        while !has_stopped(process) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a frozen server continue.
    pub fn thaw(&self, at: usize) {
        self.signal(at, Signal::CONT);
    }

    /// Removes the data of a server that does not run.
    ///
    /// # Panics
    /// If the data cannot be removed.
    pub fn remove_data(&self, at: usize) {
        let removed = fs::remove_dir_all(self.folder.path().join(format!("store{at}")));
        removed.expect("the data can be removed");
    }

    /// Returns what a server has logged.
    pub fn log(&self, at: usize) -> String {
        fs::read_to_string(self.log_path(at)).unwrap_or_default()
    }

    /// Returns the folder in which a server stores its data.
    pub fn data(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("store{at}"))
    }

    /// Returns the server that leads the stream of records. `None`: there is none, as far as this server knows.
    pub async fn leader(&self, at: usize) -> Option<usize> {
        let address = format!("nats://{}:4222", self.hosts[at]);
        let options =
            async_nats::ConnectOptions::new().max_reconnects(1).request_timeout(Some(Duration::from_secs(2)));
        let client = options.connect(address).await.ok()?;
        let stream = async_nats::jetstream::new(client).get_stream("KV_HW").await.ok()?;
        let leader = stream.cached_info().cluster.as_ref()?.leader.clone()?;
        leader.strip_prefix('n')?.parse().ok()
    }

    /// Removes a stream with all it has, as an operator can by mistake.
    ///
    /// # Panics
    /// If the server does not answer, or has no such stream.
    pub async fn remove_stream(&self, at: usize, name: &str) {
        let address = format!("nats://{}:4222", self.hosts[at]);
        let client = async_nats::connect(address).await.expect("a connection");
        let removed = async_nats::jetstream::new(client).delete_stream(name).await;
        removed.expect("the stream can be removed");
    }

    fn log_path(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("n{at}.log"))
    }

    fn signal(&self, at: usize, signal: Signal) {
        if let Some(pid) = self.processes[at].as_ref().map(Child::id).and_then(|it| it.try_into().ok())
            && let Some(pid) = Pid::from_raw(pid)
        {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        for at in 0..self.processes.len() {
            self.kill(at);
        }
    }
}

/// Returns an address of the loopback network that nobody else uses.
fn random_host() -> String {
    let [a, b, c, ..] = *Uuid::new_v4().as_bytes();
    format!("127.{}.{}.{}", a.clamp(1, 254), b.clamp(1, 254), c.clamp(1, 254))
}

/// Returns whether no thread of a process runs. The third field of its `stat` is a state; see proc_pid_stat(5).
fn has_stopped(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let states = threads.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    states
        .map(|it| it.rsplit(')').next().map(|rest| rest.trim_start().starts_with(['T', 't', 'Z', 'X'])))
        .all(|it| it == Some(true))
}
