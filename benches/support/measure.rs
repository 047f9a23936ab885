//! Time and memory that work of this process takes.

use std::time::Instant;

pub(crate) fn seconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

pub(crate) fn micros(work: impl FnOnce()) -> f64 {
    seconds(work) * 1e6
}

/// Returns the resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this runs on Linux");
    let line = status.lines().find(|it| it.starts_with("VmRSS:")).expect("a process has memory");
    line.split_whitespace().nth(1).and_then(|it| it.parse::<f64>().ok()).expect("a number of KiB") * 1024.0
}
