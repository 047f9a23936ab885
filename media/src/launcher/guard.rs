//! A process that kills this gateway if it is frozen: stopped by a signal, or without a thread that makes progress.
//!
//! A frozen gateway keeps its connections to providers open, and cannot close them when its leases end. The other nodes of
//! a cluster may open connections in their place some seconds later. So the gateway tells the guard when to kill it, and
//! moves that time on for as long as it runs; if it is killed, the kernel closes its connections.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};
use tracing::warn;

use super::GUARD;
use super::watchdog::{Running, ignore_signals};

/// A gateway that has not reported since the guard was started is killed after this time.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The guard looks at the clock at least so often, because timers of the kernel stand still while the machine sleeps.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// The time for a last report.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// The guard of this process. Dropping it ends the guard, which then kills nothing.
pub struct Guard {
    binary: PathBuf,
    running: Running,
}

impl Guard {
    /// Starts the guard, and blocks for that. It kills this process after ten seconds without a report.
    ///
    /// # Errors
    /// The binary, whose `main` calls [`super::run_mode`] first, cannot be started.
    pub fn start(binary: PathBuf) -> io::Result<Self> {
        Ok(Self { running: start(&binary)?, binary })
    }

    /// Tells the guard to kill this process at a time, which replaces the one before. It is counted from the boot of the
    /// machine and includes suspend (`CLOCK_BOOTTIME`). A guard that was killed or does not read is started again, and
    /// only that blocks.
    ///
    /// # Errors
    /// It cannot be started again. The next report attempts it once more.
    pub fn report(&mut self, kill_at: Duration) -> io::Result<()> {
        let report = report(kill_at);
        if self.running.is_alive() && self.running.pipe.write_all(&report).is_ok() {
            return Ok(());
        }
        warn!("the guard of this process has ended; starting it again");
        self.running = start(&self.binary)?;
        self.running.pipe.write_all(&report)
    }
}

fn start(binary: &Path) -> io::Result<Running> {
    let running = Running::start(binary, GUARD)?;
    // A stopped guard must not block this process.
    ioctl_fionbio(&running.pipe, true)?;
    Ok(running)
}

/// A report is the time in milliseconds. Pipes keep writes of this length whole.
fn report(kill_at: Duration) -> [u8; 8] {
    u64::try_from(kill_at.as_millis()).unwrap_or(u64::MAX).to_be_bytes()
}

/// Returns the time since the boot of the machine, suspend included.
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Runs as the guard of the parent process until its reports end, which they do when it has ended.
pub(super) fn guard_parent(reports: impl AsFd) -> io::Result<()> {
    // An error leaves the default, which is to end by the signals of a service manager.
    let _signals = ignore_signals();
    let Some(parent) = getppid() else { return Ok(()) };
    let process = pidfd_open(parent, PidfdFlags::empty())?;
    // Without a buffer, in which a report would be invisible for `poll`.
    let reports = File::from(reports.as_fd().try_clone_to_owned()?);
    // Otherwise the parent has ended, and its number may belong to another process.
    if getppid() == Some(parent) && is_frozen(reports, since_boot() + SILENCE_MAX)? {
        pidfd_send_signal(process, Signal::KILL)?;
    }
    Ok(())
}

/// Reads reports until they end, or until the time of the last one has come. Returns whether it has come.
///
/// The guard looks for another report once more before that: if the machine has just woken, the gateway has the same time
/// to close its connections itself.
fn is_frozen(mut reports: impl Read + AsFd, mut kill_at: Duration) -> io::Result<bool> {
    let mut is_late = false;
    loop {
        let timeout = kill_at.saturating_sub(since_boot()).clamp(LAST_LOOK, LOOK_PERIOD);
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&reports, PollFlags::IN)], Some(&timeout)) {
            Ok(0) if is_late => return Ok(true),
            Ok(0) => is_late = since_boot() >= kill_at,
            Ok(_) => {
                let mut report = [0; 8];
                match reports.read_exact(&mut report) {
                    Ok(()) => (kill_at, is_late) = (Duration::from_millis(u64::from_be_bytes(report)), false),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So late that only a broken guard waits for it.
    fn late() -> Duration {
        since_boot() + Duration::from_secs(3600)
    }

    #[test]
    fn a_process_whose_reports_end_is_not_frozen() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&report(late())).unwrap();
        drop(pipe);
        assert!(!is_frozen(reports, late()).unwrap());
    }

    #[test]
    fn a_process_is_frozen_when_the_time_of_its_last_report_has_come() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&[report(late()), report(since_boot())].concat()).unwrap();
        assert!(is_frozen(&reports, late()).unwrap());
    }

    #[test]
    fn a_report_in_time_replaces_the_time_before() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&report(late())).unwrap();
        drop(pipe);
        assert!(!is_frozen(reports, Duration::ZERO).unwrap());
    }

    #[test]
    fn a_missing_binary_is_an_error() {
        let error = Guard::start("/no/such/headwater".into()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
