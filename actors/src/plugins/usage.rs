//! What the processes of a plugin use, as the kernel reports it in `/proc`, and the size of its files.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum number of files and folders that are counted; more are as good as too many bytes.
const FILES_MAX: usize = 100_000;
/// Size of a page, in bytes. Larger pages make the figures of memory too low by their factor.
const PAGE_BYTES: u64 = 4_096;
/// Clock ticks in a second, which the kernel reports times in on every supported machine.
const TICKS: u64 = 100;

/// The resources that the processes of a plugin use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PluginResources {
    /// Private memory in use, in bytes.
    pub memory_bytes: u64,
    /// Processor time since the processes began, in milliseconds.
    pub cpu_ms: u64,
    /// Number of processes.
    pub processes: u32,
    /// Number of threads of these processes.
    pub threads: u32,
    /// Size of its own files, in bytes, when it was counted last.
    pub data_bytes: u64,
}

/// Returns what process groups use. Blocks, usually for some milliseconds.
pub(super) fn by_group(groups: &HashSet<u32>) -> HashMap<u32, PluginResources> {
    let mut sums: HashMap<u32, PluginResources> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        // A process that has just ended has no files.
        let stat = is_process.then(|| fs::read_to_string(entry.path().join("stat")).ok()).flatten();
        let Some(process) = stat.as_deref().and_then(Process::read) else { continue };
        if !groups.contains(&process.group) || process.state == "Z" {
            continue;
        }
        let sum = sums.entry(process.group).or_default();
        sum.processes += 1;
        sum.threads += process.threads;
        sum.cpu_ms += process.ticks * 1_000 / TICKS;
        let statm = fs::read_to_string(entry.path().join("statm")).unwrap_or_default();
        sum.memory_bytes += private_pages(&statm) * PAGE_BYTES;
    }
    sums
}

/// Returns the memory of a process group, in bytes, where memory that processes share counts once: after a fork, they share
/// nearly all of it. Blocks for longer than [`by_group`]. `None` if the kernel does not tell.
pub(super) fn shared_memory_of(group: u32) -> Option<u64> {
    let mut sum = None;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if Process::read(&stat).is_none_or(|it| it.group != group || it.state == "Z") {
            continue;
        }
        // A process that has just ended has no memory.
        let Ok(rollup) = fs::read_to_string(entry.path().join("smaps_rollup")) else { continue };
        let value =
            |name: &str| rollup.lines().find_map(|it| it.strip_prefix(name)?.trim().strip_suffix("kB"));
        let kibibytes = value("Pss_Anon:").or_else(|| value("Pss:"))?;
        sum = Some(sum.unwrap_or(0) + (kibibytes.trim().parse::<u64>().ok()? << 10));
    }
    sum
}

/// The fields of a process that are used.
struct Process<'a> {
    state: &'a str,
    group: u32,
    threads: u32,
    ticks: u64,
}

impl<'a> Process<'a> {
    fn read(stat: &'a str) -> Option<Self> {
        // The name in parentheses may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?,
            group: u32::try_from(number(2)?).ok()?,
            ticks: number(11)? + number(12)?,
            threads: u32::try_from(number(17)?).ok()?,
        })
    }
}

fn private_pages(statm: &str) -> u64 {
    let mut fields = statm.split_whitespace().skip(1).filter_map(|it| it.parse::<u64>().ok());
    fields.next().unwrap_or(0).saturating_sub(fields.next().unwrap_or(0))
}

/// Returns the number of processes and threads of a user. Blocks.
pub(super) fn threads_of_user(uid: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = entries.filter(|it| it.metadata().is_ok_and(|it| it.uid() == uid));
    let stats = own.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    stats.filter_map(|it| Some(u64::from(Process::read(&it)?.threads))).sum()
}

/// Returns the users that have processes. Blocks.
pub(super) fn users_with_processes() -> HashSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|it| Some(it.metadata().ok()?.uid())).collect()
}

/// Returns the size of all files below a folder, in bytes, without following links. Blocks.
pub(super) fn folder_bytes(folder: &Path) -> u64 {
    let (mut sum, mut open, mut n_entries) = (0, vec![folder.to_owned()], 0);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            n_entries += 1;
            if n_entries > FILES_MAX {
                return u64::MAX;
            }
            match entry.metadata() {
                Ok(it) if it.is_dir() => open.push(entry.path()),
                Ok(it) => sum += it.len(),
                Err(_) => {}
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_uses_memory_and_threads() {
        let group = rustix::process::getpgid(None).unwrap().as_raw_nonzero().get();
        let group = u32::try_from(group).unwrap();
        let used = by_group(&[group, u32::MAX].into());
        assert_eq!(used.len(), 1);
        let used = used[&group];
        assert!(shared_memory_of(group).is_none_or(|it| it > 0));
        assert!(used.processes >= 1 && used.threads >= used.processes && used.memory_bytes > 0, "{used:?}");
        assert!(threads_of_user(rustix::process::getuid().as_raw()) >= u64::from(used.threads));
    }

    #[test]
    fn names_of_processes_do_not_confuse() {
        let stat = "7 (a) b (c) R 1 42 3 4 5 6 7 8 9 10 30 12 13 14 15 16 9 18";
        let process = Process::read(stat).unwrap();
        assert_eq!((process.state, process.group, process.ticks, process.threads), ("R", 42, 42, 9));
        assert!(Process::read("7 (a").is_none());
    }

    #[test]
    fn files_in_folders_count() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), [0; 100]).unwrap();
        fs::write(folder.path().join("c"), [0; 11]).unwrap();
        assert_eq!(folder_bytes(folder.path()), 111);
    }
}
