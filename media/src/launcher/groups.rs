//! The processes of a process group, as the kernel shows them.

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process_group};

/// Returns whether every process of a group that was killed has ended, so that the kernel has closed its files. `false`
/// if that is not certain.
///
/// The group gets no new processes: a process that was killed starts none. One that nobody has reaped counts as ended
/// once its last thread has.
pub(super) fn has_ended(group: Pid) -> bool {
    match test_kill_process_group(group) {
        Ok(()) => {
            let members = members(group);
            !members.is_empty() && members.into_iter().all(has_exited)
        }
        Err(error) => error == Errno::SRCH,
    }
}

/// Lists the processes of a group. The third field after the name of the program is the group; see proc_pid_stat(5).
fn members(group: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_member = |pid: &Pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = text.rsplit_once(") ").map(|it| it.1);
        fields.and_then(|it| it.split(' ').nth(2)?.parse().ok()) == Some(group.as_raw_nonzero().get())
    };
    let ids = processes.filter_map(|it| Pid::from_raw(it.file_name().to_str()?.parse().ok()?));
    ids.filter(is_member).collect()
}

/// Returns whether the last thread of a process has ended.
fn has_exited(process: Pid) -> bool {
    match pidfd_open(process, PidfdFlags::empty()) {
        Ok(file) => {
            poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|it| it > 0)
        }
        Err(error) => error == Errno::SRCH,
    }
}
