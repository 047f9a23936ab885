//! A process that kills programs if the gateway ends without doing so.
//!
//! It reads a pipe whose other end only the gateway holds, and a launcher until it becomes its program. The lines are
//! `+N` and `-N`: the process group N began or ended. When the gateway ends, for whatever reason, the kernel closes its
//! end; the watchdog then kills the remaining groups and exits. The end of a group is written before its leader is
//! reaped, so that the watchdog never kills a foreign process that got the same number later.
//!
//! A watchdog that was killed is started again, and gets the groups of all running programs.
//!
//! The first watchdog of a gateway says on its standard output when no process of the groups is left. That is certain:
//! the end of its input shows that no launcher runs that has not become its program yet, and such a launcher has
//! registered itself before. Only a program with input may be missing, if the gateway is killed in the moment in which it
//! starts one: such a program reads what the gateway writes, and has no connection to a provider. A later watchdog says
//! nothing, because a launcher may have registered itself with the one that was killed only.

use std::collections::HashSet;
use std::io::{self, BufRead, PipeReader, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;

use super::groups::has_ended;
use super::{NAME, WATCH};
use crate::blocking::spawn_blocking;

/// Output of a watchdog after the last process of all groups has ended.
pub(super) const NO_PROGRAM_LEFT: &[u8] = b"no program is left\n";

/// Longest time for groups to end that were killed, in steps of [`LOOK_PERIOD`].
const N_LOOKS_MAX: u32 = 500;
const LOOK_PERIOD: Duration = Duration::from_millis(10);

/// The line for a group that began.
pub(super) fn added(group: Pid) -> String {
    format!("+{group}\n")
}

/// The line for a group that ended.
fn removed(group: Pid) -> String {
    format!("-{group}\n")
}

/// Runs as the watchdog until the input ends. Says on the output when the groups that were left then have ended.
pub(super) fn watch(input: impl BufRead, mut output: impl Write) {
    // Held until the end. An error leaves the default, which is to end by the signals of a service manager.
    let _signals = ignore_signals();
    let mut groups = HashSet::new();
    for line in input.lines().map_while(Result::ok) {
        let number = |text: &str| Pid::from_raw(text.parse().ok().filter(|it| *it > 1)?);
        if let Some(group) = line.strip_prefix('+').and_then(number) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(number) {
            groups.remove(&group);
        }
    }
    for group in &groups {
        // An error means that no process is left.
        let _ = kill_process_group(*group, Signal::KILL);
    }
    for _ in 0..N_LOOKS_MAX {
        groups.retain(|it| !has_ended(*it));
        if groups.is_empty() {
            // An error means that nobody wants to know.
            let _ = output.write_all(NO_PROGRAM_LEFT).and_then(|()| output.flush());
            return;
        }
        sleep(LOOK_PERIOD);
    }
}

/// Ignores the signals that a terminal or a service manager sends to all processes: the process ends with the gateway.
/// The runtime is the safe way to install handlers; nothing runs on it.
pub(super) fn ignore_signals() -> io::Result<impl Sized> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()];
    let handlers =
        runtime.block_on(async { kinds.map(signal).into_iter().collect::<io::Result<Vec<_>>>() })?;
    Ok((handlers, runtime))
}

/// The watchdog of a gateway. Dropping it stops the process, which then kills nothing.
pub(crate) struct Watchdog {
    binary: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    groups: HashSet<Pid>,
    /// The output of the first watchdog, while it runs.
    output: Option<PipeReader>,
    was_started: bool,
}

/// A process of the same binary that reads a pipe, and is killed when this is dropped.
pub(super) struct Running {
    child: Child,
    /// Our end of the pipe. It is closed on exec, as all files that the standard library opens.
    pub(super) pipe: PipeWriter,
}

impl Watchdog {
    pub(super) fn new(binary: PathBuf) -> Self {
        Self { binary, state: Mutex::default() }
    }

    /// Returns a copy of our end of the pipe for a launcher. Starts the process if it does not run, and blocks for it.
    pub(super) fn pipe(&self) -> io::Result<PipeWriter> {
        let mut state = self.state.lock();
        if let Some(running) = &mut state.running
            && running.is_alive()
        {
            return running.pipe.try_clone();
        }
        self.start(&mut state)?.pipe.try_clone()
    }

    /// Returns the output of the process for the guard, which reads [`NO_PROGRAM_LEFT`] there after the gateway has ended.
    /// `None`: the first process was killed, so the guard cannot be certain. Starts the process if none was started, and
    /// blocks for it.
    pub(super) fn output(&self) -> io::Result<Option<PipeReader>> {
        let mut state = self.state.lock();
        if !state.was_started {
            self.start(&mut state)?;
        }
        state.output.as_ref().map(PipeReader::try_clone).transpose()
    }

    /// Starts the process again if it was killed while programs run. Blocks for some milliseconds then.
    fn revive(&self) {
        let mut state = self.state.lock();
        if state.is_dead() {
            warn!("the watchdog of programs was killed; starting it again");
            self.restart(&mut state);
        }
    }

    fn start<'a>(&self, state: &'a mut State) -> io::Result<&'a mut Running> {
        let (reader, output) = match state.was_started {
            true => (None, Stdio::null()),
            false => {
                let (reader, writer) = io::pipe()?;
                (Some(reader), Stdio::from(writer))
            }
        };
        (state.was_started, state.output) = (true, reader);
        let mut running = Running::start(&self.binary, WATCH, output)?;
        let lines: String = state.groups.iter().copied().map(added).collect();
        running.pipe.write_all(lines.as_bytes())?;
        // A stopped watchdog must not block a thread that carries packets.
        ioctl_fionbio(&running.pipe, true)?;
        Ok(state.running.insert(running))
    }

    fn restart(&self, state: &mut State) {
        state.running = None;
        if let Err(error) = self.start(state) {
            let binary = self.binary.display();
            warn!(
                "no watchdog for programs: {binary}: {error}; programs may keep running if the gateway is killed"
            );
        }
    }

    /// Tells the process a line. If it has ended or does not read, another one is started.
    fn tell(&self, state: &mut State, line: &str) {
        let told = state.running.as_mut().map(|it| it.pipe.write_all(line.as_bytes()));
        if !state.groups.is_empty() && !matches!(told, Some(Ok(()))) {
            self.restart(state);
        }
    }
}

impl State {
    fn is_dead(&mut self) -> bool {
        !self.groups.is_empty() && !self.running.as_mut().is_some_and(Running::is_alive)
    }
}

impl Running {
    /// Starts the binary in a mode of [`super::run_mode`]. Blocks for it.
    pub(super) fn start(binary: &Path, mode: &str, output: Stdio) -> io::Result<Self> {
        let (input, pipe) = io::pipe()?;
        let child = Command::new(binary)
            .arg0(NAME)
            .arg(mode)
            .env_clear()
            .current_dir("/")
            // Signals to the process group of the gateway or of a program do not reach the process.
            .process_group(0)
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, pipe })
    }

    /// Returns whether it runs, and reaps it if not.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Errors mean that it has ended. After SIGKILL, waiting takes less than a millisecond.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A group that the watchdog knows, until this is dropped.
pub(crate) struct Registration {
    watchdog: Arc<Watchdog>,
    group: Pid,
}

impl Registration {
    pub(super) fn new(watchdog: Arc<Watchdog>, group: Pid) -> Self {
        {
            let mut state = watchdog.state.lock();
            state.groups.insert(group);
            watchdog.tell(&mut state, &added(group));
        }
        Self { watchdog, group }
    }

    /// Called when any child of this process has exited: if it was the watchdog, starts it again in the background.
    pub(crate) fn child_exited(&self) {
        // A locked state means that somebody else is busy with the process.
        if self.watchdog.state.try_lock().is_some_and(|mut it| it.is_dead()) {
            let watchdog = self.watchdog.clone();
            // Without a thread, the next exit of a child tries again.
            drop(spawn_blocking(move || watchdog.revive()));
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.watchdog.state.lock();
        state.groups.remove(&self.group);
        self.watchdog.tell(&mut state, &removed(self.group));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use rustix::process::kill_process;

    use super::*;
    use crate::testing::{group, until};

    /// Starts a program with a child and a grandchild that write nothing and ignore SIGTERM.
    async fn stubborn() -> (Child, Pid) {
        let script = "trap '' HUP TERM; (sleep 1000; sleep 1000) & sleep 1000";
        let child = Command::new("/bin/sh").args(["-c", script]).process_group(0).spawn().unwrap();
        until(&child.id().to_string(), 4, "S").await;
        let pid = Pid::from_child(&child);
        (child, pid)
    }

    // Holds T-life.6 (media's part).
    #[tokio::test]
    async fn at_the_end_of_its_input_the_watchdog_kills_the_groups_that_have_not_ended() {
        let (mut ended, ended_pid) = stubborn().await;
        let (mut running, running_pid) = stubborn().await;
        let lines = [added(ended_pid), added(running_pid), added(running_pid), removed(ended_pid)].concat();
        // Wrong lines, and those that would mean other processes.
        let lines = lines + "+1\n+0\n+-1\n+\nx\n-\n";
        let mut output = Vec::new();
        let watching = spawn_blocking(move || {
            watch(Cursor::new(lines), &mut output);
            output
        });
        assert_eq!(watching.await.unwrap(), NO_PROGRAM_LEFT);
        // The leader is our child and stays a zombie until it is reaped.
        assert!(group(&running_pid.to_string()).iter().all(|it| it.starts_with('Z')));
        running.wait().unwrap();
        assert_eq!(group(&ended_pid.to_string()).len(), 4);
        kill_process_group(ended_pid, Signal::KILL).unwrap();
        ended.wait().unwrap();
    }

    /// The test of the group would be wrong if it never said that one has not ended.
    #[tokio::test]
    async fn a_group_has_ended_when_its_last_process_has() {
        let (mut child, pid) = stubborn().await;
        assert!(!has_ended(pid));
        kill_process(pid, Signal::KILL).unwrap();
        child.wait().unwrap();
        assert_eq!(group(&pid.to_string()).len(), 3, "the others of the group run");
        assert!(!has_ended(pid));
        kill_process_group(pid, Signal::KILL).unwrap();
        // Who reaps the others depends on the machine.
        while !has_ended(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(group(&pid.to_string()).iter().all(|it| it.starts_with('Z')));
    }

    #[test]
    fn a_missing_binary_is_an_error_before_the_program_starts() {
        let watchdog = Watchdog::new("/no/such/headwater".into());
        assert_eq!(watchdog.pipe().err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
