//! Resources of this process, read from the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

fn entries(folder: &str) -> Vec<String> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|it| it.file_name().into_string().ok()).collect()
}

/// Returns the number of open files, sockets included.
pub fn n_files() -> usize {
    entries("/proc/self/fd").len()
}

/// Returns the memory in use by the whole process, in KiB.
pub fn in_use_kib() -> u64 {
    crate::MEMORY.allocated() as u64 >> 10
}

/// Returns the resident memory in KiB. It includes memory that the allocator keeps for later, which depends on the peak
/// use of each thread.
pub fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

fn processes() -> impl Iterator<Item = i32> {
    entries("/proc").into_iter().filter_map(|it| it.parse().ok())
}

/// Returns the children of this process, zombies included, except the watchdog, which stays as long as the gateway.
pub fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    let is_child = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if line == b"headwater\0watch-programs\0" {
            return false;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may contain anything: state, parent.
        stat.rsplit(')').next().and_then(|it| it.split_whitespace().nth(1)) == Some(&own)
    };
    processes().filter(is_child).collect()
}

/// Returns the processes with this marker in their command line.
pub fn with_marker(marker: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(marker)
    };
    processes().filter(has).collect()
}

/// Returns all paths below a folder, with each number replaced by `#`, because a store names its files by numbers.
pub fn kinds_of_files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            let mut kind = String::new();
            for c in name.chars() {
                let c = if c.is_ascii_digit() { '#' } else { c };
                if !(c == '#' && kind.ends_with('#')) {
                    kind.push(c);
                }
            }
            found.insert(kind);
        }
    }
    found
}

/// Counts panics outside of the tests: a defect that only ends a task would otherwise go unnoticed.
pub fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, before) = (Arc::clone(&count), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|it| it.file().starts_with("tests/")) {
            counted.fetch_add(1, Relaxed);
        }
        before(panic);
    }));
    count
}
