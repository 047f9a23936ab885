//! The amount of memory that this process may use.

use std::fs;
use std::path::Path;

/// Mount point of the control groups on Linux.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the number of bytes that this process may use: the memory of the machine, or of its control group if that is
/// smaller, as in a container. `None` if the system does not report it.
pub(crate) fn usable_bytes() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let machine = machine_bytes(&read(Path::new("/proc/meminfo")));
    let group = group_limit(&read(Path::new("/proc/self/cgroup")), |group| {
        read(&Path::new(GROUPS).join(group).join("memory.max"))
    });
    [machine, group].into_iter().flatten().min()
}

/// Returns the memory of the whole machine, from the text of `/proc/meminfo`.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the smallest limit of this group and the groups above it. `membership` is the text of `/proc/self/cgroup`;
/// `limit` reads the limit of one group.
fn group_limit(membership: &str, limit: impl Fn(&Path) -> String) -> Option<u64> {
    let path = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Path::new(path).ancestors().filter_map(|group| limit(group).trim().parse::<u64>().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_container_is_the_smallest_limit_of_its_groups() {
        let check = |membership: &str, limits: &[(&str, &str)], expected: Option<u64>| {
            let limit = |group: &Path| {
                let said = limits.iter().find(|it| Path::new(it.0) == group);
                said.map(|it| it.1.to_owned()).unwrap_or_default()
            };
            assert_eq!(group_limit(membership, limit), expected, "{membership:?} {limits:?}");
        };
        check("0::/\n", &[("", "1048576\n")], Some(1 << 20));
        check("0::/\n", &[("", "max\n")], None);
        check("0::/a/b\n", &[("a/b", "max\n"), ("a", "4096\n"), ("", "8192\n")], Some(4096));
        check("0::/a/b\n", &[("a/b", "100\n"), ("a", "4096\n")], Some(100));
        check("1:memory:/a\n0::/b\n", &[("a", "1\n"), ("b", "2\n")], Some(2));
        check("0::/../other\n", &[], None);
        check("", &[("", "1\n")], None);
    }

    #[test]
    fn the_memory_of_the_machine_is_read_from_meminfo() {
        assert_eq!(machine_bytes("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24576 * 1024));
        for text in ["", "MemTotal: many kB", "MemTotal: 1", "MemTotal: 18446744073709551615 kB"] {
            assert_eq!(machine_bytes(text), None, "{text:?}");
        }
        assert!(usable_bytes().is_some_and(|it| it > 1 << 20), "this machine reports its memory");
    }
}
