//! Memory of the bench process.

/// Returns the peak resident memory of this process, in bytes.
pub(crate) fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this runs on Linux");
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).expect("a process has memory");
    line.split_whitespace().nth(1).and_then(|it| it.parse::<u64>().ok()).expect("a number of KiB") * 1024
}
