//! Resources of the program and of its child processes, as the kernel reports them.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

/// Resources that the program holds at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Child processes, and those of them that ended and were not waited for.
    pub(crate) children: usize,
    pub(crate) zombies: usize,
    pub(crate) resident: u64,
    pub(crate) private: u64,
}

impl Held {
    pub(crate) fn by(process: u32) -> Held {
        let children = children(process);
        Held {
            descriptors: entries(&format!("/proc/{process}/fd")),
            threads: entries(&format!("/proc/{process}/task")),
            children: children.len(),
            zombies: children.iter().filter(|it| it.is_zombie).count(),
            resident: kibibytes(&format!("/proc/{process}/status"), "VmRSS:") << 10,
            private: private_memory(process),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "descriptors": self.descriptors, "threads": self.threads, "children": self.children,
            "zombies": self.zombies, "resident_bytes": self.resident, "private_bytes": self.private,
        })
    }
}

/// A child process.
struct Child {
    id: u32,
    is_zombie: bool,
}

/// Returns the process of a plugin: the child that has the folder of its code among its arguments.
pub(crate) fn process_of_plugin(program: u32, key: &str) -> u32 {
    let code = format!("/plugins/{key}");
    let is_of_plugin = |it: &&Child| {
        let line = fs::read(format!("/proc/{}/cmdline", it.id)).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|it| it.ends_with(&code))
    };
    let all = children(program);
    let mut found = all.iter().filter(is_of_plugin);
    let process = found.next().unwrap_or_else(|| panic!("plugin {key} has no process"));
    assert!(found.next().is_none(), "plugin {key} has more than one process");
    process.id
}

fn children(process: u32) -> Vec<Child> {
    let all = fs::read_dir("/proc").expect("this runs on Linux").flatten();
    let ids = all.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let child = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may contain anything; state and parent follow it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse::<u32>().ok()?);
        (parent == process).then(|| Child { id, is_zombie: state == "Z" })
    };
    ids.filter_map(child).collect()
}

/// Returns the memory of a process that it shares with no other one, in bytes.
pub(crate) fn private_memory(process: u32) -> u64 {
    let file = format!("/proc/{process}/smaps_rollup");
    (kibibytes(&file, "Private_Clean:") + kibibytes(&file, "Private_Dirty:")) << 10
}

/// Returns the CPU time of the threads of a process.
pub(crate) fn cpu(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs").flatten();
    let nanos = threads.filter_map(|it| {
        let text = fs::read_to_string(it.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

fn entries(folder: &str) -> usize {
    fs::read_dir(folder).expect("the process runs, and is of this user").count()
}

fn kibibytes(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).expect("the process runs, and its memory may be read");
    let line = text.lines().find(|it| it.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {file}"));
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number of KiB")
}
