//! Who ends a program when we cannot do it any more: a small process beside it.
//!
//! It reads a pipe whose other end only we hold, and in which nothing ever comes. However we end, the kernel closes
//! that end; then the warden kills the program's group, and is gone too. A program that ends while we live has its warden
//! dismissed before its leader is reaped, so a warden never knows a number that belongs to somebody else.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// The shell of every system, and of most containers.
pub(super) const SHELL: &str = "/bin/sh";
/// Takes the number of a group. Made of what a shell can do by itself, so that no other program has to be there.
/// A service manager that asks everybody to end does not mean the warden: it ends with us.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM; while read -r it; do :; done; kill -KILL \"-$1\"";
/// What it is called where processes are listed.
pub(super) const NAME: &str = "headwater-warden";

/// The warden of one group. Dropping it dismisses it.
pub(super) struct Warden {
    child: Child,
    /// Our end of the pipe, open until the warden is gone or we are. It closes on exec, as all that the standard library
    /// opens, so no other program that is started holds it.
    _life: OwnedFd,
}

impl Warden {
    /// Watches over a group whose leader is not reaped. Blocks for about a millisecond.
    pub(super) fn start(shell: &str, group: Pid) -> io::Result<Self> {
        let mut child = Command::new(shell)
            .args(["-c", SCRIPT, NAME, &group.to_string()])
            .env_clear()
            .current_dir("/")
            // What hits our own group, or the program's, does not hit it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Not left in the child: there, waiting closes it.
        let life = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, _life: life.into() })
    }

    /// Ends it before it has anything to do. From now on it does nothing more, even if it is not gone yet.
    pub(super) fn dismiss(&mut self) {
        // An error means that it has gone by itself.
        let _ = self.child.kill();
    }

    /// Whether it is gone; if so, it is reaped.
    pub(super) fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Warden {
    /// For the ways on which nobody waits for it: a runtime that shuts down, a start that failed.
    fn drop(&mut self) {
        self.dismiss();
        self.is_gone();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::Duration;

    use rustix::process::{Signal, kill_process, kill_process_group};

    use super::super::tests::{group, until};
    use super::*;

    /// A program with a child and a grandchild, all silent and none of them willing to end.
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

    async fn gone(warden: &mut Warden) {
        while !warden.is_gone() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What these processes have open, wardens apart from their own pipe.
    fn open_files(processes: &[u32]) -> Vec<PathBuf> {
        let folders = processes.iter().map(|it| fs::read_dir(format!("/proc/{it}/fd")).unwrap());
        folders.flatten().map(|it| fs::read_link(it.unwrap().path()).unwrap()).collect()
    }

    /// Signals are ignored from some moment after the start on; this waits for it.
    async fn deaf(warden: &Warden) {
        let is_deaf = || {
            let status = fs::read_to_string(format!("/proc/{}/status", warden.child.id())).unwrap();
            let mask = status.split("SigIgn:").nth(1).and_then(|it| it.split_whitespace().next()).unwrap();
            let bit = |it: Signal| 1 << (it.as_raw() - 1);
            let wanted = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].map(bit).iter().sum::<u64>();
            u64::from_str_radix(mask, 16).unwrap() & wanted == wanted
        };
        while !is_deaf() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    // Holds T-life.6 (media's part).
    #[tokio::test]
    async fn a_whole_group_is_killed_when_the_pipe_of_its_warden_closes() {
        let (mut child, pid) = stubborn().await;
        let mut warden = Warden::start(SHELL, pid).unwrap();
        // What everybody is told when a terminal or a service ends is no sign of our end.
        deaf(&warden).await;
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            kill_process(Pid::from_child(&warden.child), signal).unwrap();
        }
        assert!(!warden.is_gone());
        drop(std::mem::replace(&mut warden._life, File::open("/dev/null").unwrap().into()));
        gone(&mut warden).await;
        // Its leader is ours to reap.
        while group(&pid.to_string()).iter().any(|it| !it.starts_with('Z')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_warden_that_is_dismissed_does_nothing_and_leaves_nothing() {
        let (child, pid) = stubborn().await;
        let mut warden = Warden::start(SHELL, pid).unwrap();
        warden.dismiss();
        gone(&mut warden).await;
        assert!(!fs::exists(format!("/proc/{}", warden.child.id())).unwrap(), "a zombie is left");
        drop(warden);
        assert_eq!(group(&pid.to_string()).len(), 4);
        kill(child, pid);
    }

    #[tokio::test]
    async fn nobody_holds_the_pipe_of_a_warden_but_we_and_it() {
        let (first, first_pid) = stubborn().await;
        let warden = Warden::start(SHELL, first_pid).unwrap();
        let (second, second_pid) = stubborn().await;
        let other = Warden::start(SHELL, second_pid).unwrap();
        let pipe_of = |it: &Warden| fs::read_link(format!("/proc/{}/fd/0", it.child.id())).unwrap();
        let (pipe, other_pipe) = (pipe_of(&warden), pipe_of(&other));
        assert_ne!(pipe, other_pipe);
        let programs = open_files(&[first.id(), second.id()]);
        assert!(!programs.contains(&pipe) && !programs.contains(&other_pipe), "{programs:?}");
        assert!(!open_files(&[other.child.id()]).contains(&pipe));
        kill(first, first_pid);
        kill(second, second_pid);
    }

    #[test]
    fn without_a_shell_there_is_no_warden_and_that_is_said() {
        let error = Warden::start("/no/such/sh", rustix::process::getpid()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
