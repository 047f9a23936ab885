//! A process that kills this gateway if it is frozen: stopped by a signal, or without a thread that makes progress.
//!
//! A frozen gateway keeps its connections to providers open, and cannot close them when its leases end. The other nodes of
//! a cluster may open connections in their place some seconds later. So the gateway tells the guard when to kill it, and
//! moves that time on for as long as it runs; if it is killed, the kernel closes its connections.
//!
//! When the gateway has ended, for whatever reason, the guard tells the other nodes, so that they need not wait until that
//! is certain. It does so only if it knows three things:
//!
//! - The process of the gateway has ended, which the kernel says. It has closed its files by then.
//! - No program of the gateway is left, and no copy of the gateway that is about to become one, which the watchdog says.
//! - The gateway has said that no other process has taken over its connections. It gives none of them away; but a gateway
//!   that was restarted may have one beside it that serves viewers.
//!
//! What the guard needs for that comes over the pipe when it starts, and stays in its memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};
use tracing::warn;

use super::watchdog::{NO_PROGRAM_LEFT, Running, Watchdog, ignore_signals};
use super::{GUARD, Launcher};

/// A gateway that has not reported since the guard was started is killed after this time.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The guard looks at the clock at least so often, because timers of the kernel stand still while the machine sleeps.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// The time for a last report.
const LAST_LOOK: Duration = Duration::from_millis(100);
/// Longest time for the gateway and its programs to end, once the reports have. A service manager waits for the guard
/// before it starts the gateway again.
const END_MAX: Duration = Duration::from_secs(3);
/// Maximum length of the message, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Tells the other nodes that a process has ended, with all its programs: gets the message that the process gave its
/// guard, and the number by which the other nodes know the process. Returns after some seconds at the latest.
pub type TellEnd = fn(message: &[u8], process: u64);

/// The guard of this process. Dropping it ends the guard, which then kills nothing and says nothing.
pub struct Guard {
    binary: PathBuf,
    watchdog: Arc<Watchdog>,
    message: Vec<u8>,
    running: Running,
}

impl Guard {
    /// Starts the guard, and blocks for that. It kills this process after ten seconds without a report. `message` is for
    /// [`TellEnd`]. `None`: the launcher has no binary, which is so in tests only.
    ///
    /// # Errors
    /// The binary, whose `main` calls [`super::run_mode`] first, cannot be started.
    pub fn start(launcher: &Launcher, message: Vec<u8>) -> io::Result<Option<Self>> {
        let Some((binary, watchdog)) = launcher.settings.binary.clone().zip(launcher.watchdog.clone()) else {
            return Ok(None);
        };
        let running = start(&binary, &watchdog, &message)?;
        Ok(Some(Self { binary, watchdog, message, running }))
    }

    /// Tells the guard to kill this process at a time, which replaces the one before. It is counted from the boot of the
    /// machine and includes suspend (`CLOCK_BOOTTIME`). `process` is the number that the guard tells the other nodes when
    /// this process has ended; `None`: it says nothing then. A guard that was killed or does not read is started again, and
    /// only that blocks.
    ///
    /// # Errors
    /// It cannot be started again. The next report attempts it once more.
    pub fn report(&mut self, kill_at: Duration, process: Option<u64>) -> io::Result<()> {
        let report = Report { kill_at, process }.to_bytes();
        if self.running.is_alive() && self.running.pipe.write_all(&report).is_ok() {
            return Ok(());
        }
        warn!("the guard of this process has ended; starting it again");
        self.running = start(&self.binary, &self.watchdog, &self.message)?;
        self.running.pipe.write_all(&report)
    }
}

fn start(binary: &Path, watchdog: &Watchdog, message: &[u8]) -> io::Result<Running> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message of the guard is too long"));
    }
    let programs = watchdog.output()?.map_or_else(Stdio::null, Stdio::from);
    let mut running = Running::start(binary, GUARD, programs)?;
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    running.pipe.write_all(&[&length.to_be_bytes(), message].concat())?;
    // A stopped guard must not block this process.
    ioctl_fionbio(&running.pipe, true)?;
    Ok(running)
}

/// The last words of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    kill_at: Duration,
    process: Option<u64>,
}

impl Report {
    const LENGTH: usize = 17;

    /// Returns the time in milliseconds, whether a process follows, and its number. Pipes keep writes of this length whole.
    fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let kill_at = u64::try_from(self.kill_at.as_millis()).unwrap_or(u64::MAX);
        bytes[..8].copy_from_slice(&kill_at.to_be_bytes());
        bytes[8] = u8::from(self.process.is_some());
        bytes[9..].copy_from_slice(&self.process.unwrap_or_default().to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        let [a, b, c, d, e, f, g, h, has_process, number @ ..] = bytes;
        let kill_at = Duration::from_millis(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        Self { kill_at, process: (has_process == 1).then(|| u64::from_be_bytes(number)) }
    }
}

/// The message and the reports, as they arrive.
struct Inbox {
    bytes: Vec<u8>,
    message: Option<Vec<u8>>,
    last: Report,
}

impl Inbox {
    /// Creates one for a gateway that is killed at this time if it never reports.
    fn new(kill_at: Duration) -> Self {
        Self { bytes: Vec::new(), message: None, last: Report { kill_at, process: None } }
    }

    /// Adds bytes. Returns whether a report is complete by them.
    fn add(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.bytes.extend_from_slice(bytes);
        if self.message.is_none() {
            let Some((length, rest)) = self.bytes.split_first_chunk() else { return Ok(false) };
            let length = u32::from_be_bytes(*length) as usize;
            if length > MESSAGE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let Some((message, rest)) = rest.split_at_checked(length) else { return Ok(false) };
            self.message = Some(message.to_vec());
            self.bytes = rest.to_vec();
        }
        let n_complete = self.bytes.len() / Report::LENGTH * Report::LENGTH;
        let last = self.bytes[..n_complete].last_chunk().copied().map(Report::from_bytes);
        self.bytes.drain(..n_complete);
        self.last = last.unwrap_or(self.last);
        Ok(last.is_some())
    }
}

/// Returns the time since the boot of the machine, suspend included.
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Runs as the guard of the parent process until its reports end, which they do when it has ended. `programs` is the
/// output of the watchdog.
pub(super) fn guard_parent(reports: impl AsFd, programs: impl AsFd, tell_end: TellEnd) -> io::Result<()> {
    // An error leaves the default, which is to end by the signals of a service manager.
    let _signals = ignore_signals();
    let Some(parent) = getppid() else { return Ok(()) };
    let process = pidfd_open(parent, PidfdFlags::empty())?;
    // Without a buffer, in which a report would be invisible for `poll`.
    let reports = File::from(reports.as_fd().try_clone_to_owned()?);
    let programs = File::from(programs.as_fd().try_clone_to_owned()?);
    // Otherwise the parent has ended, and its number may belong to another process.
    if getppid() != Some(parent) {
        return Ok(());
    }
    let mut inbox = Inbox::new(since_boot() + SILENCE_MAX);
    if is_frozen(reports, &mut inbox)? {
        pidfd_send_signal(&process, Signal::KILL)?;
    }
    if let Some((message, number)) = certain_end(&inbox, &process, programs, since_boot() + END_MAX) {
        tell_end(message, number);
    }
    Ok(())
}

/// Reads reports until they end, or until the time of the last one has come. Returns whether it has come.
///
/// The guard looks for another report once more before that: if the machine has just woken, the gateway has the same time
/// to close its connections itself.
fn is_frozen(mut reports: impl Read + AsFd, inbox: &mut Inbox) -> io::Result<bool> {
    let mut is_late = false;
    let mut bytes = [0; 4_096];
    loop {
        let timeout = inbox.last.kill_at.saturating_sub(since_boot()).clamp(LAST_LOOK, LOOK_PERIOD);
        if !is_readable(&reports, timeout)? {
            if is_late {
                return Ok(true);
            }
            is_late = since_boot() >= inbox.last.kill_at;
            continue;
        }
        match reports.read(&mut bytes) {
            Ok(0) => return Ok(false),
            Ok(n) => is_late &= !inbox.add(&bytes[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until something can be read, or the file has ended. Returns whether that is so.
fn is_readable(file: impl AsFd, within: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(within).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&timeout)) {
        Ok(n) => Ok(n > 0),
        // The caller looks again.
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the message and the number of the process, once the process and all its programs have ended. `None`: that is
/// not certain by this time, or the process did not want it to be told.
fn certain_end(
    inbox: &Inbox,
    process: impl AsFd,
    mut programs: impl Read + AsFd,
    until: Duration,
) -> Option<(&[u8], u64)> {
    let number = inbox.last.process?;
    let message = inbox.message.as_deref()?;
    // It also ends its reports by becoming another program.
    while !is_readable(&process, until.saturating_sub(since_boot())).ok()? {
        if since_boot() >= until {
            return None;
        }
    }
    let mut output = Vec::new();
    while !output.ends_with(NO_PROGRAM_LEFT) {
        if since_boot() >= until {
            return None;
        }
        if is_readable(&programs, until.saturating_sub(since_boot())).ok()? {
            let mut bytes = [0; 64];
            // An end without the line: the watchdog was killed.
            let n = programs.read(&mut bytes).ok().filter(|it| *it > 0)?;
            output.extend_from_slice(&bytes[..n]);
            // Only its end counts.
            output.drain(..output.len().saturating_sub(NO_PROGRAM_LEFT.len()));
        }
    }
    Some((message, number))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::fd::OwnedFd;
    use rustix::process::Pid;

    use super::*;
    use crate::launcher::LauncherSettings;

    /// So late that only a broken guard waits for it.
    fn late() -> Duration {
        since_boot() + Duration::from_secs(3600)
    }

    fn report(kill_at: Duration) -> [u8; Report::LENGTH] {
        Report { kill_at, process: None }.to_bytes()
    }

    const MESSAGE: [u8; 6] = [0, 0, 0, 2, b'h', b'i'];

    fn inbox() -> Inbox {
        Inbox::new(late())
    }

    #[test]
    fn a_process_whose_reports_end_is_not_frozen() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&[&MESSAGE[..], &report(late())].concat()).unwrap();
        drop(pipe);
        assert!(!is_frozen(reports, &mut inbox()).unwrap());
    }

    #[test]
    fn a_process_is_frozen_when_the_time_of_its_last_report_has_come() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&[&MESSAGE[..], &report(late()), &report(since_boot())].concat()).unwrap();
        assert!(is_frozen(&reports, &mut inbox()).unwrap());
        // Also before it has sent the whole message.
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&MESSAGE[..5]).unwrap();
        assert!(is_frozen(&reports, &mut Inbox::new(since_boot())).unwrap());
    }

    #[test]
    fn a_report_in_time_replaces_the_time_before() {
        let (reports, mut pipe) = io::pipe().unwrap();
        pipe.write_all(&[&MESSAGE[..], &report(late())].concat()).unwrap();
        drop(pipe);
        assert!(!is_frozen(reports, &mut Inbox::new(Duration::ZERO)).unwrap());
    }

    #[test]
    fn reports_are_read_in_whatever_pieces_they_arrive() {
        let reports = [Some(3), None, Some(u64::MAX)];
        let to_report = |process| Report { kill_at: Duration::from_millis(5), process };
        let bytes: Vec<u8> =
            MESSAGE.into_iter().chain(reports.into_iter().flat_map(|it| to_report(it).to_bytes())).collect();
        for n in 1..=bytes.len() {
            let mut inbox = inbox();
            let n_complete = bytes.chunks(n).filter(|it| inbox.add(it).unwrap()).count();
            assert!((1..=reports.len()).contains(&n_complete), "{n}");
            assert_eq!(inbox.message.as_deref(), Some(&b"hi"[..]), "{n}");
            assert_eq!(inbox.last, to_report(Some(u64::MAX)), "{n}");
            assert!(inbox.bytes.is_empty(), "{n}");
        }
        let too_long = u32::try_from(MESSAGE_BYTES_MAX + 1).unwrap().to_be_bytes();
        assert!(inbox().add(&too_long).is_err());
    }

    /// A process that waits until it is killed.
    fn process() -> (Child, OwnedFd) {
        let child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let file = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        (child, file)
    }

    fn said(text: &[u8]) -> io::PipeReader {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(text).unwrap();
        reader
    }

    #[test]
    fn a_guard_speaks_only_when_the_process_and_its_programs_have_ended() {
        let mut inbox = inbox();
        let report = |process| Report { kill_at: late(), process }.to_bytes();
        inbox.add(&[&MESSAGE[..], &report(Some(7))].concat()).unwrap();
        let soon = || since_boot() + Duration::from_millis(300);
        let (mut child, file) = process();
        let said_all = || said(NO_PROGRAM_LEFT);
        assert_eq!(certain_end(&inbox, &file, said_all(), soon()), None, "the process runs");
        child.kill().unwrap();
        let end = certain_end(&inbox, &file, said_all(), late());
        assert_eq!(end, Some((&b"hi"[..], 7)), "it has ended, and is not reaped yet");
        child.wait().unwrap();
        for text in [&b""[..], b"no", &NO_PROGRAM_LEFT[1..]] {
            assert_eq!(certain_end(&inbox, &file, said(text), late()), None, "the watchdog was killed");
        }
        let (silent, _writer) = io::pipe().unwrap();
        assert_eq!(certain_end(&inbox, &file, silent, soon()), None, "a program runs");
        let null = File::options().write(true).open("/dev/null").unwrap();
        assert_eq!(certain_end(&inbox, &file, null, late()), None, "there is no watchdog to ask");
        inbox.add(&report(None)).unwrap();
        assert_eq!(certain_end(&inbox, &file, said_all(), late()), None, "another process has connections");
        let mut new = Inbox::new(late());
        new.add(&MESSAGE).unwrap();
        assert_eq!(certain_end(&new, &file, said_all(), late()), None, "it never reported");
    }

    #[test]
    fn a_missing_binary_is_an_error() {
        let binary = Some("/no/such/headwater".into());
        let launcher = Launcher::new(LauncherSettings { binary, ..LauncherSettings::default() });
        let error = Guard::start(&launcher, Vec::new()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(Guard::start(&Launcher::default(), Vec::new()).unwrap().is_none());
    }
}
