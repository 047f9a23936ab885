//! A small process that kills a program if the gateway ends without doing so.
//!
//! It reads a pipe whose other end only the gateway holds, and into which nothing is ever written. When the
//! gateway ends, for whatever reason, the kernel closes that end; the watchdog then kills the process group
//! of the program and exits. If the program ends first, its watchdog is stopped before the leader of the
//! group is reaped, so that the watchdog never holds the id of a foreign process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// The shell of every system and of most containers.
pub(super) const SHELL: &str = "/bin/sh";
/// Script with the id of a process group as its argument. It uses only shell built-ins, so that no other
/// program is needed. It ignores the signals of a service manager, because it ends together with the gateway.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM; while read -r it; do :; done; kill -KILL \"-$1\"";
/// Name of the process in process lists.
pub(super) const NAME: &str = "headwater-watchdog";

/// The watchdog of one process group. Dropping it stops it.
pub(super) struct Watchdog {
    child: Child,
    /// Our end of the pipe, open until the watchdog or the gateway is gone. It is closed on exec, as all
    /// files that the standard library opens, so that no other started program holds it.
    _pipe: OwnedFd,
}

impl Watchdog {
    /// Starts a watchdog for a group whose leader is not reaped. Blocks for about a millisecond.
    pub(super) fn start(shell: &str, group: Pid) -> io::Result<Self> {
        let mut child = Command::new(shell)
            .args(["-c", SCRIPT, NAME, &group.to_string()])
            .env_clear()
            .current_dir("/")
            // Signals to the process group of the gateway or of the program do not reach the watchdog.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Moved out of the child, where waiting would close it.
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, _pipe: pipe.into() })
    }

    /// Kills the watchdog. From now on it has no effect, even if it is not gone yet.
    pub(super) fn stop(&mut self) {
        // An error means that it has already exited.
        let _ = self.child.kill();
    }

    /// Returns whether it is gone, and reaps it in that case.
    pub(super) fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Watchdog {
    /// For the cases in which nobody waits for it: a runtime that shuts down, or a start that failed.
    fn drop(&mut self) {
        self.stop();
        self.is_gone();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::Duration;

    use rustix::process::{Signal, kill_process, kill_process_group};

    use super::*;
    use crate::source::process::tests::{group, until};

    /// Starts a program with a child and a grandchild that write nothing and ignore SIGTERM.
    async fn stubborn() -> (Child, Pid) {
        let script = "trap '' HUP TERM; (sleep 1000; sleep 1000) & sleep 1000";
        let child = Command::new(SHELL).args(["-c", script]).process_group(0).spawn().unwrap();
        until(&child.id().to_string(), 4, "S").await;
        let pid = Pid::from_child(&child);
        (child, pid)
    }

    fn kill(mut child: Child, group: Pid) {
        kill_process_group(group, Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    async fn gone(watchdog: &mut Watchdog) {
        while !watchdog.is_gone() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the files that these processes have open.
    fn open_files(processes: &[u32]) -> Vec<PathBuf> {
        let folders = processes.iter().map(|it| fs::read_dir(format!("/proc/{it}/fd")).unwrap());
        folders.flatten().map(|it| fs::read_link(it.unwrap().path()).unwrap()).collect()
    }

    /// Waits until the watchdog ignores signals, which it does shortly after its start.
    async fn ignores_signals(watchdog: &Watchdog) {
        let is_ignoring = || {
            let status = fs::read_to_string(format!("/proc/{}/status", watchdog.child.id())).unwrap();
            let mask = status.split("SigIgn:").nth(1).and_then(|it| it.split_whitespace().next()).unwrap();
            let bit = |it: Signal| 1 << (it.as_raw() - 1);
            let wanted = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].map(bit).iter().sum::<u64>();
            u64::from_str_radix(mask, 16).unwrap() & wanted == wanted
        };
        while !is_ignoring() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    // Holds T-life.6 (media's part).
    #[tokio::test]
    async fn a_whole_group_is_killed_when_the_pipe_of_its_watchdog_closes() {
        let (mut child, pid) = stubborn().await;
        let mut watchdog = Watchdog::start(SHELL, pid).unwrap();
        // Signals that a terminal or a service manager sends do not mean that the gateway ended.
        ignores_signals(&watchdog).await;
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            kill_process(Pid::from_child(&watchdog.child), signal).unwrap();
        }
        assert!(!watchdog.is_gone());
        drop(std::mem::replace(&mut watchdog._pipe, File::open("/dev/null").unwrap().into()));
        gone(&mut watchdog).await;
        // The leader is our child and stays a zombie until it is reaped.
        while group(&pid.to_string()).iter().any(|it| !it.starts_with('Z')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_stopped_watchdog_kills_nothing_and_leaves_no_process() {
        let (child, pid) = stubborn().await;
        let mut watchdog = Watchdog::start(SHELL, pid).unwrap();
        watchdog.stop();
        gone(&mut watchdog).await;
        assert!(!fs::exists(format!("/proc/{}", watchdog.child.id())).unwrap(), "a zombie is left");
        drop(watchdog);
        assert_eq!(group(&pid.to_string()).len(), 4);
        kill(child, pid);
    }

    #[tokio::test]
    async fn only_the_gateway_and_the_watchdog_hold_the_pipe() {
        let (first, first_pid) = stubborn().await;
        let watchdog = Watchdog::start(SHELL, first_pid).unwrap();
        let (second, second_pid) = stubborn().await;
        let other = Watchdog::start(SHELL, second_pid).unwrap();
        let pipe_of = |it: &Watchdog| fs::read_link(format!("/proc/{}/fd/0", it.child.id())).unwrap();
        let (pipe, other_pipe) = (pipe_of(&watchdog), pipe_of(&other));
        assert_ne!(pipe, other_pipe);
        let programs = open_files(&[first.id(), second.id()]);
        assert!(!programs.contains(&pipe) && !programs.contains(&other_pipe), "{programs:?}");
        assert!(!open_files(&[other.child.id()]).contains(&pipe));
        kill(first, first_pid);
        kill(second, second_pid);
    }

    #[test]
    fn starting_a_watchdog_without_a_shell_fails() {
        let error = Watchdog::start("/no/such/sh", rustix::process::getpid()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
