//! The version of what nodes write for each other, and which versions a node reads.
//!
//! One number stands for everything that nodes exchange: entries of the log with the records in them, snapshots, records in
//! the engine, frames and messages. All nodes write the version that the configuration names, so that older ones can read
//! it. After the last node was updated, an operator [raises](raised_version) it.
//!
//! ```text
//!   version  what it adds
//!   1        what nodes write that announce no versions
//!   2        the configuration names its version, and `cluster init` begins with that
//!   3        the values that plugins store are records
//!   4        keys for services are records of full nodes, and no longer in the core settings
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version that is written if the configuration names none, and that nodes read which announce nothing.
pub const FIRST_VERSION: u32 = 1;

/// The version from which on the values that plugins store are records.
pub const PLUGIN_VALUES_VERSION: u32 = 3;

/// The version from which on keys for services are records of their own.
pub const SERVICE_KEYS_VERSION: u32 = 4;

/// The versions that this version of the gateway reads. It writes each of them.
pub const OWN_VERSIONS: VersionRange = VersionRange { oldest: 1, newest: 4 };

/// The versions that a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    pub oldest: u32,
    pub newest: u32,
}

impl Default for VersionRange {
    /// That of a node which announces nothing.
    fn default() -> Self {
        Self { oldest: FIRST_VERSION, newest: FIRST_VERSION }
    }
}

impl VersionRange {
    pub fn contains(self, version: u32) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest {
            write!(f, "{}", self.newest)
        } else {
            write!(f, "{} to {}", self.oldest, self.newest)
        }
    }
}

/// The version that the nodes write, as the configuration names it. Without this record, it is [`FIRST_VERSION`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterVersion {
    pub version: u32,
}

/// A node that has joined and was not removed, for [`raised_version`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberVersions {
    pub name: String,
    /// The number in its certificate.
    pub certificate: u32,
    pub versions: VersionRange,
    /// It is a member now.
    pub is_alive: bool,
}

/// Why the version is not raised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RaiseRefusal {
    #[error(
        "version {present} is written, and these nodes can read no later one: {}. Update them, or remove nodes that do not come \
         back with `headwater cluster remove`; `--force` leaves out those that do not run",
        names.join(", ")
    )]
    TooOld { present: u32, names: Vec<String> },
    #[error("no version can be read by all nodes; these cannot read version {version}: {}", names.join(", "))]
    NoneCommon { version: u32, names: Vec<String> },
}

/// Returns the highest version that all nodes can read; the present one if no node can read a later one. With `is_forced`,
/// only present members count.
///
/// # Errors
/// Names the nodes that are too old, if others could read more than the present version.
pub fn raised_version(
    present: u32,
    members: &[MemberVersions],
    is_forced: bool,
) -> Result<u32, RaiseRefusal> {
    let counted: Vec<_> = members.iter().filter(|it| it.is_alive || !is_forced).collect();
    let named = |is_named: &dyn Fn(&MemberVersions) -> bool| {
        counted.iter().filter(|it| is_named(it)).map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    let common = counted.iter().map(|it| it.versions.newest).min().unwrap_or(present);
    if common > present {
        let names = named(&|it| !it.versions.contains(common));
        return match names.is_empty() {
            true => Ok(common),
            false => Err(RaiseRefusal::NoneCommon { version: common, names }),
        };
    }
    match counted.iter().any(|it| it.versions.newest > present) {
        true => Err(RaiseRefusal::TooOld { present, names: named(&|it| it.versions.newest <= present) }),
        false => Ok(present),
    }
}

/// Returns why a node cannot be in a cluster that writes this version. `None`: it can.
pub fn unfit(own: VersionRange, written: u32) -> Option<String> {
    let action = if written > own.newest {
        "update this node"
    } else {
        "install the version before this one here, update all nodes to it, and run `headwater cluster finalize`"
    };
    (!own.contains(written)).then(|| {
        format!(
            "the cluster writes version {written} of its data, and this version of the gateway reads {own}: {action}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads nodes such as `attic:1-2 cellar:1!`, of which those with `!` do not run.
    fn members(text: &str) -> Vec<MemberVersions> {
        let node = |text: &str| {
            let (text, is_alive) = text.strip_suffix('!').map_or((text, true), |it| (it, false));
            let (name, versions) = text.split_once(':').unwrap();
            let (oldest, newest) = versions.split_once('-').unwrap_or((versions, versions));
            let versions = VersionRange { oldest: oldest.parse().unwrap(), newest: newest.parse().unwrap() };
            MemberVersions { name: name.to_owned(), certificate: 1, versions, is_alive }
        };
        text.split_whitespace().map(node).collect()
    }

    #[track_caller]
    fn check(present: u32, nodes: &str, is_forced: bool, expected: Result<u32, &str>) {
        let raised = raised_version(present, &members(nodes), is_forced);
        match (raised, expected) {
            (Ok(version), Ok(expected)) => assert_eq!(version, expected),
            (Err(refusal), Err(part)) => assert!(refusal.to_string().contains(part), "{refusal}"),
            (raised, _) => panic!("{raised:?}"),
        }
    }

    #[test]
    fn the_version_is_raised_to_the_highest_that_all_nodes_read() {
        check(1, "a:1-2 b:1-2", false, Ok(2));
        check(1, "a:1-3 b:1-2", false, Ok(2));
        check(2, "a:1-2 b:1-2", false, Ok(2));
        check(2, "", false, Ok(2));
        // Never lowered.
        check(2, "a:1 b:1", false, Ok(2));
    }

    #[test]
    fn nodes_that_are_too_old_are_named_and_those_that_do_not_run_count_unless_forced() {
        check(1, "a:1-2 b:1 c:1", false, Err("no later one: b, c."));
        check(1, "a:1-2 b:1!", false, Err("no later one: b."));
        check(1, "a:1-2 b:1!", true, Ok(2));
        check(1, "a:1-2 b:1", true, Err("no later one: b."));
        check(1, "a:2-3 b:1-2 c:3-4", false, Err("version 2: c"));
    }

    #[test]
    fn a_node_fits_if_it_reads_what_is_written() {
        let own = VersionRange { oldest: 2, newest: 3 };
        assert_eq!((unfit(own, 2), unfit(own, 3)), (None, None));
        assert!(unfit(own, 4).unwrap().contains("reads 2 to 3: update this node"));
        assert!(unfit(own, 1).unwrap().contains("the version before this one"));
        assert!(OWN_VERSIONS.contains(FIRST_VERSION + 1));
    }

    #[test]
    fn a_node_that_announces_nothing_reads_the_first_version() {
        assert_eq!(VersionRange::default().to_string(), "1");
        assert!(VersionRange::default().contains(FIRST_VERSION));
    }
}
