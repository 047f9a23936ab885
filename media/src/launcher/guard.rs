//! A process that kills this gateway if it is frozen: stopped by a signal, or without a thread that makes progress.
//!
//! A frozen gateway keeps its connections to providers open, and cannot close them when its leases end. The other nodes of
//! a cluster may open connections in their place after 20 s, so the guard kills it before; the kernel then closes them.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use tokio::time::Instant;
use tracing::warn;

use super::GUARD;
use super::watchdog::{Running, ignore_signals};

/// How often a gateway has to report.
pub const REPORT_PERIOD: Duration = Duration::from_secs(1);
/// A gateway that has not reported for this long is frozen. Time in which the whole machine sleeps does not count: the
/// guard sleeps as well, and the gateway closes its sources itself when it wakes.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The guard of this process, which is killed when it has not reported for ten seconds. Dropping it ends the guard, which
/// then kills nothing.
pub struct Guard {
    binary: PathBuf,
    running: Running,
}

impl Guard {
    /// Starts the guard, and blocks for that.
    ///
    /// # Errors
    /// The binary, whose `main` calls [`super::run_mode`] first, cannot be started.
    pub fn start(binary: PathBuf) -> io::Result<Self> {
        Ok(Self { running: start(&binary)?, binary })
    }

    /// Reports that this process runs; to be called every [`REPORT_PERIOD`]. A guard that was killed or does not read is
    /// started again, and only that blocks.
    ///
    /// # Errors
    /// It cannot be started again. The next report attempts it once more.
    pub fn report(&mut self) -> io::Result<()> {
        if self.running.is_alive() && self.running.pipe.write_all(b".").is_ok() {
            return Ok(());
        }
        warn!("the guard of this process has ended; starting it again");
        self.running = start(&self.binary)?;
        Ok(())
    }
}

fn start(binary: &std::path::Path) -> io::Result<Running> {
    let running = Running::start(binary, GUARD)?;
    // A stopped guard must not block this process.
    ioctl_fionbio(&running.pipe, true)?;
    Ok(running)
}

/// Runs as the guard of the parent process until its reports end, which they do when it has ended.
pub(super) fn guard_parent(reports: impl Read + AsFd) -> io::Result<()> {
    // An error leaves the default, which is to end by the signals of a service manager.
    let _signals = ignore_signals();
    let Some(parent) = getppid() else { return Ok(()) };
    let process = pidfd_open(parent, PidfdFlags::empty())?;
    // Otherwise the parent has ended, and its number may belong to another process.
    if getppid() == Some(parent) && !ends_before_silence(reports, SILENCE_MAX)? {
        pidfd_send_signal(process, Signal::KILL)?;
    }
    Ok(())
}

/// Reads reports until they end, or until none has come for this long. Returns whether they have ended.
fn ends_before_silence(mut reports: impl Read + AsFd, silence_max: Duration) -> io::Result<bool> {
    let mut silent_at = Instant::now() + silence_max;
    loop {
        let left = silent_at.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&reports, PollFlags::IN)], Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => match reports.read(&mut [0; 64]) {
                Ok(0) => return Ok(true),
                Ok(_) => silent_at = Instant::now() + silence_max,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So long that only a broken guard waits for it.
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn reports_that_end_are_no_silence() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&[b'.'; 1000]).unwrap();
        drop(pipe);
        assert!(ends_before_silence(reports, LONG).unwrap());
    }

    #[test]
    fn reports_that_stay_away_are_silence() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&[b'.'; 1000]).unwrap();
        assert!(!ends_before_silence(&reports, Duration::from_millis(20)).unwrap());
        drop(pipe);
    }

    #[test]
    fn a_missing_binary_is_an_error() {
        let error = Guard::start("/no/such/headwater".into()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
