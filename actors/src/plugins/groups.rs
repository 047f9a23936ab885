//! Control groups of plugins (cgroup v2), where a group was delegated to the gateway.
//!
//! ```text
//! delegated group ─┬─ gateway: the gateway and its programs
//!                  └─ plugins: at most half of the memory ─┬─ plugin-demo
//!                                                          └─ …
//! ```
//!
//! A group with limits for the groups below it may have no processes of its own, so the gateway moves into one of them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, process, thread};

use domain::plugin::{Limits, PluginKey};
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::memory::usable_bytes;

/// Mount point of the control groups on Linux.
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// The group of the gateway, below the delegated one.
const GATEWAY: &str = "gateway";
/// The group of all plugins, below the delegated one.
const PLUGINS: &str = "plugins";
/// How the names of the groups of plugins begin, unlike those of the files of the kernel.
const PREFIX: &str = "plugin-";
/// The controllers that limits need.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The attributes by which systemd marks a delegated group.
const DELEGATION_MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// Period of the limit of processor time, in microseconds.
const PERIOD_US: u64 = 100_000;
/// Maximum number of rounds in which the processes of the gateway are moved, as it may start more meanwhile.
const MOVES_MAX: usize = 10;
/// Maximum number of attempts to remove a group whose processes are ending, and the pause between them.
const REMOVALS_MAX: usize = 40;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of groups of an earlier gateway that are removed.
const LEFTOVERS_MAX: usize = 500;

/// The group below which plugins get theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ControlGroups {
    plugins: PathBuf,
}

/// The group of one plugin.
#[derive(Debug)]
pub(super) struct PluginGroup {
    pub(super) folder: PathBuf,
}

impl ControlGroups {
    /// Uses the group that was delegated to this process, and removes what an earlier gateway left there. `None` if there
    /// is none. Blocks.
    pub(super) fn find() -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let base = delegated(Path::new(ROOT), &membership, is_delegated)?;
        let memory_max = usable_bytes().map(|it| it / 2);
        match Self::open(&base, process::id(), is_child, memory_max) {
            Ok(groups) => {
                info!(group = %base.display(), "plugins get control groups");
                groups.remove_leftovers();
                Some(groups)
            }
            Err(error) => {
                warn!(group = %base.display(), "plugins get no control groups: {error}");
                None
            }
        }
    }

    /// Moves the processes of the gateway out of the delegated group, and lets the groups below it have limits.
    fn open(
        base: &Path,
        own: u32,
        is_child: impl Fn(u32) -> bool,
        memory_max: Option<u64>,
    ) -> io::Result<Self> {
        let (gateway, plugins) = (base.join(GATEWAY), base.join(PLUGINS));
        for _ in 0..MOVES_MAX {
            let processes = processes(base);
            if processes.iter().any(|it| *it != own && !is_child(*it)) {
                return Err(io::Error::other("the delegated group has processes of others"));
            }
            if processes.is_empty() {
                break;
            }
            create(&gateway)?;
            for process in processes {
                match fs::write(gateway.join("cgroup.procs"), process.to_string()) {
                    // It has ended.
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                    done => done?,
                }
            }
        }
        let controllers = CONTROLLERS.map(|it| format!("+{it}")).join(" ");
        fs::write(base.join("cgroup.subtree_control"), &controllers)?;
        create(&plugins)?;
        fs::write(plugins.join("cgroup.subtree_control"), &controllers)?;
        if let Some(bytes) = memory_max {
            fs::write(plugins.join("memory.max"), bytes.to_string())?;
        }
        Ok(Self { plugins })
    }

    /// Creates the group of a plugin with its limits. Blocks.
    ///
    /// # Errors
    /// The sentence why there is no group.
    pub(super) fn create(&self, key: &PluginKey, limits: &Limits) -> Result<PluginGroup, String> {
        let folder = self.plugins.join(format!("{PREFIX}{key}"));
        let fill = || {
            create(&folder)?;
            let quota_us = u64::from(limits.cpu_percent) * PERIOD_US / 100;
            for (file, value) in [
                ("memory.max", (u64::from(limits.memory_mib) << 20).to_string()),
                ("memory.oom.group", "1".to_owned()),
                ("pids.max", limits.processes.to_string()),
                ("cpu.max", format!("{quota_us} {PERIOD_US}")),
            ] {
                fs::write(folder.join(file), value)?;
            }
            // Absent where swap is not counted.
            let _ = fs::write(folder.join("memory.swap.max"), "0");
            Ok(())
        };
        fill().map_err(|error: io::Error| format!("its control group cannot be used: {}", error.kind()))?;
        Ok(PluginGroup { folder })
    }

    fn remove_leftovers(&self) {
        let entries = fs::read_dir(&self.plugins).into_iter().flatten().flatten();
        let own = entries.filter(|it| it.file_name().to_string_lossy().starts_with(PREFIX));
        for entry in own.take(LEFTOVERS_MAX) {
            PluginGroup { folder: entry.path() }.remove();
        }
    }
}

impl PluginGroup {
    /// Returns whether the kernel has ended processes of the group because they used too much memory. Blocks.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|it| it.strip_prefix("oom_kill "));
        kills.and_then(|it| it.trim().parse::<u64>().ok()).is_some_and(|it| it > 0)
    }

    /// Ends what is left in the group, and removes it. Blocks for some seconds at most; a group that stays is removed at the
    /// next start of the gateway.
    pub(super) fn remove(self) {
        for _ in 0..REMOVALS_MAX {
            // Kernels before 5.14 have no such file; the process group was ended anyway.
            let kill = OpenOptions::new().write(true).open(self.folder.join("cgroup.kill"));
            let _ = kill.and_then(|mut it| it.write_all(b"1"));
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(REMOVAL_PAUSE),
                _ => return,
            }
        }
        warn!(group = %self.folder.display(), "failed to remove the control group of a plugin");
    }
}

/// Returns the group that was delegated to a process with this text in `/proc/self/cgroup`: its own group or, after it
/// moved, the one above.
fn delegated(root: &Path, membership: &str, is_delegated: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let own = membership.lines().find_map(|it| it.strip_prefix("0::/"))?;
    let own = root.join(own);
    let base = match own.file_name().is_some_and(|it| it == GATEWAY) {
        true => own.parent()?.to_owned(),
        false => own,
    };
    let found = fs::read_to_string(base.join("cgroup.controllers")).unwrap_or_default();
    let has_all = CONTROLLERS.iter().all(|it| found.split_whitespace().any(|found| found == *it));
    (has_all && is_delegated(&base)).then_some(base)
}

/// Returns whether a group was delegated to this process.
fn is_delegated(folder: &Path) -> bool {
    let user = geteuid();
    let is_marked = |name: &&str| {
        let mut value = [0_u8; 4];
        let read = rustix::fs::getxattr(folder, *name, &mut value[..]);
        read.is_ok_and(|n| value[..n] == *b"1")
    };
    match user.is_root() {
        // Root may write everywhere, also where others keep order.
        true => DELEGATION_MARKS.iter().any(is_marked),
        false => fs::metadata(folder).is_ok_and(|it| it.uid() == user.as_raw()),
    }
}

/// Returns whether a process is a child of this one.
fn is_child(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let parent = stat.rsplit_once(')').and_then(|it| it.1.split_whitespace().nth(1)?.parse::<u32>().ok());
    // One that has ended does no harm.
    parent.is_none_or(|it| it == process::id())
}

fn processes(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|it| it.parse().ok()).collect()
}

fn create(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder that looks like a delegated group with these processes.
    fn tree(processes: &str) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("system.slice/headwater.service");
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
        fs::write(base.join("cgroup.procs"), processes).unwrap();
        (root, base)
    }

    #[test]
    fn the_delegated_group_is_found_before_and_after_the_gateway_moved() {
        let (root, base) = tree("");
        let find =
            |membership: &str, delegated: bool| super::delegated(root.path(), membership, |_| delegated);
        let own = "0::/system.slice/headwater.service\n";
        assert_eq!(find(own, true).as_ref(), Some(&base));
        assert_eq!(find(&format!("1:memory:/x\n{}/gateway\n", own.trim()), true).as_ref(), Some(&base));
        assert_eq!(find(own, false), None, "not delegated");
        assert_eq!(find("0::/system.slice\n", true), None, "no controllers");
        assert_eq!(find("1:memory:/a\n", true), None);
        fs::write(base.join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(find(own, true), None, "a controller is missing");
    }

    #[test]
    fn plugins_get_groups_with_their_limits() {
        let (_root, base) = tree("7\n");
        let read = |path: &str| fs::read_to_string(base.join(path)).unwrap();
        // A folder does not change its list of processes, so that the gateway gives up moving after some rounds.
        let groups = ControlGroups::open(&base, 7, |_| false, Some(4_096)).unwrap();
        assert_eq!(read("gateway/cgroup.procs"), "7");
        assert_eq!(read("cgroup.subtree_control"), "+cpu +memory +pids");
        assert_eq!(
            (read("plugins/cgroup.subtree_control"), read("plugins/memory.max")),
            (read("cgroup.subtree_control"), "4096".to_owned())
        );

        let limits = Limits { memory_mib: 64, cpu_percent: 150, processes: 9, ..Limits::DEFAULT };
        let group = groups.create(&PluginKey::from_folder("demo").unwrap(), &limits).unwrap();
        assert_eq!(group.folder, base.join("plugins/plugin-demo"));
        for (file, value) in [
            ("memory.max", "67108864"),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", "9"),
            ("cpu.max", "150000 100000"),
        ] {
            assert_eq!(read(&format!("plugins/plugin-demo/{file}")), value, "{file}");
        }
        assert!(!group.ran_out_of_memory());
        fs::write(group.folder.join("memory.events"), "low 0\noom 1\noom_kill 2\n").unwrap();
        assert!(group.ran_out_of_memory());
    }

    #[test]
    fn a_group_with_processes_of_others_is_not_used() {
        let (_root, base) = tree("7\n8\n");
        assert!(ControlGroups::open(&base, 7, |_| false, None).is_err());
        assert!(!base.join("gateway").exists());
        assert!(ControlGroups::open(&base, 7, |it| it == 8, None).is_ok());
    }

    #[test]
    fn groups_of_an_earlier_gateway_are_removed() {
        let (_root, base) = tree("");
        let groups = ControlGroups::open(&base, 7, |_| false, None).unwrap();
        for name in ["plugin-old", "other"] {
            fs::create_dir(base.join("plugins").join(name)).unwrap();
        }
        groups.remove_leftovers();
        let exists = |name: &str| base.join("plugins").join(name).exists();
        assert!(!exists("plugin-old") && exists("other"));
    }

    /// Creates a real group, where the machine lets this test do so.
    fn real_group() -> Option<PluginGroup> {
        let roots = [ROOT.to_owned(), format!("{ROOT}/unified")].map(PathBuf::from);
        let root = roots.into_iter().find(|it| it.join("cgroup.procs").exists())?;
        let folder = root.join(format!("{PREFIX}test-{}", process::id()));
        fs::create_dir(&folder).ok()?;
        Some(PluginGroup { folder })
    }

    #[test]
    fn a_group_ends_with_its_processes() {
        let Some(group) = real_group() else { return eprintln!("no control group can be created here") };
        let mut child = process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (folder, id) = (group.folder.clone(), child.id());
        if fs::write(folder.join("cgroup.procs"), id.to_string()).is_err() {
            child.kill().unwrap();
            child.wait().unwrap();
            group.remove();
            return eprintln!("no process can join a control group here");
        }
        assert_eq!(processes(&folder), [id]);
        let waiting = thread::spawn(move || child.wait().unwrap());
        group.remove();
        assert_eq!(waiting.join().unwrap().code(), None, "it was killed");
        assert!(!folder.exists());
    }
}
