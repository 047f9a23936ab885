//! Child processes and their resource usage.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A process of this bench, killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
    words: Option<ChildStdin>,
}

impl Process {
    pub fn spawn(command: &mut Command) -> Process {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = child.stdout.take().map(BufReader::new);
        let words = child.stdin.take();
        Process { child, lines, words }
    }

    /// Starts this program again in another role.
    pub fn role(role: &str, arguments: &[String]) -> Process {
        let program = std::env::current_exe().expect("a program knows where it is");
        Process::spawn(Command::new(program).arg(role).args(arguments))
    }

    /// Returns the next line of its output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let lines = self.lines.as_mut().expect("output is piped");
        lines.read_line(&mut line).expect("output can be read");
        assert!(!line.is_empty(), "the process ended early");
        line.trim_end().to_owned()
    }

    /// Sends a line to its standard input.
    pub fn send_line(&mut self, line: &str) {
        let words = self.words.as_mut().expect("input is piped");
        writeln!(words, "{line}").expect("the process reads its input");
    }

    /// Returns the CPU time of all running threads, without that of ended threads.
    pub fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the process runs");
        let nanos = tasks.flatten().filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Returns the CPU time of the process, in steps of ten milliseconds.
    pub fn cpu_with_ended_threads(&self) -> Duration {
        let text =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the process runs");
        // The name in parentheses may contain spaces; user and system time are the 12th and 13th field after it.
        let fields = text.rsplit(')').next().expect("a line has an end").split_whitespace();
        let ticks = fields.skip(11).take(2).filter_map(|it| it.parse::<u64>().ok());
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    /// Returns the resident memory in bytes.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Returns the peak resident memory in bytes since the start or the last reset.
    pub fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Resets the peak.
    pub fn reset_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").expect("the process is ours");
    }

    fn memory(&self, what: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process runs");
        let line = status.lines().find(|line| line.starts_with(what)).expect("a process has memory");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number of KiB")
            * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}
