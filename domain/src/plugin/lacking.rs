//! The parts of the confinement of plugins and programs that a machine lacks, and the line that switches each of them on.

use super::gap::Enforcement;

/// The first versions of Linux whose Landlock restricts files, TCP ports and signals.
const FILES_VERSION: (u32, u32) = (5, 13);
const PORTS_VERSION: (u32, u32) = (6, 7);
const SIGNALS_VERSION: (u32, u32) = (6, 12);

/// The part of the system that a restriction needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfinementPart {
    Landlock,
    ControlGroup,
}

/// Facts about the machine that decide what switches a part on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfinementFacts {
    /// The release of the kernel, such as `6.1.0-18-amd64`.
    pub kernel: String,
    /// The active security modules, as in `/sys/kernel/security/lsm`; `None` if they cannot be read.
    pub security_modules: Option<String>,
    /// Whether control groups of version 2 are mounted.
    pub has_control_groups: bool,
}

/// A part of the confinement that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingPart {
    pub part: ConfinementPart,
    /// A sentence about what is not enforced.
    pub message: String,
    /// A sentence with the line that switches the part on.
    pub advice: String,
}

impl LackingPart {
    /// Returns what is not enforced with these facts.
    pub fn list(enforced: &Enforcement, facts: &ConfinementFacts) -> Vec<Self> {
        [landlock(enforced, facts), control_group(enforced, facts)].into_iter().flatten().collect()
    }
}

fn landlock(enforced: &Enforcement, facts: &ConfinementFacts) -> Option<LackingPart> {
    let kernel = version(&facts.kernel);
    let part = |message: String, advice: String| {
        Some(LackingPart { part: ConfinementPart::Landlock, message, advice })
    };
    if !enforced.files {
        let message = "This gateway cannot restrict the files, TCP ports and signals of plugins and programs, because \
                       the system offers no Landlock.";
        return part(message.to_owned(), landlock_advice(kernel, facts));
    }
    let missing =
        [(!enforced.ports, "TCP ports", PORTS_VERSION), (!enforced.signals, "signals", SIGNALS_VERSION)];
    let missing: Vec<_> = missing.into_iter().filter(|it| it.0).collect();
    let (_, _, (major, minor)) = *missing.last()?;
    let names: Vec<_> = missing.iter().map(|it| it.1).collect();
    let message = format!(
        "The Landlock of this kernel cannot restrict the {} of plugins and programs.",
        names.join(" and the ")
    );
    part(message, format!("Run the gateway on Linux {major}.{minor} or later; this is {}.", facts.kernel))
}

fn landlock_advice(kernel: Option<(u32, u32)>, facts: &ConfinementFacts) -> String {
    if kernel.is_some_and(|it| it < FILES_VERSION) {
        let (major, minor) = FILES_VERSION;
        return format!("Run the gateway on Linux {major}.{minor} or later; this is {}.", facts.kernel);
    }
    let with_line = |modules: &str| {
        format!(
            "Add `lsm={modules}` to the command line of the kernel, in GRUB_CMDLINE_LINUX of /etc/default/grub, run \
             `update-grub` and restart the machine."
        )
    };
    match facts.security_modules.as_deref().map(str::trim) {
        Some(modules) if modules.split(',').any(|it| it == "landlock") => {
            "The kernel has it, and a filter of system calls refuses it. In a container, allow \
             landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the profile of \
             `--security-opt seccomp=FILE`, or use a newer version of docker or podman."
                .to_owned()
        }
        Some(modules) if !modules.is_empty() => with_line(&format!("landlock,{modules}")),
        _ => {
            let line = with_line("landlock,MODULES");
            format!("{line} MODULES are those of `cat /sys/kernel/security/lsm`.")
        }
    }
}

fn control_group(enforced: &Enforcement, facts: &ConfinementFacts) -> Option<LackingPart> {
    if enforced.control_group {
        return None;
    }
    let delegate = "Add the line `Delegate=cpu memory pids` to the section [Service] of the systemd unit of the gateway, \
                    run `systemctl daemon-reload`, and restart the gateway.";
    let advice = match facts.has_control_groups {
        true => delegate.to_owned(),
        false => format!(
            "Add `systemd.unified_cgroup_hierarchy=1` to the command line of the kernel and restart the machine. \
             {delegate}"
        ),
    };
    Some(LackingPart {
        part: ConfinementPart::ControlGroup,
        message: "The gateway has no delegated control group (cgroup v2): the processor time of plugins is not limited, \
                  and their memory is only measured each second."
            .to_owned(),
        advice,
    })
}

/// Returns the first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Enforcement =
        Enforcement { files: true, ports: true, signals: true, own_user: false, control_group: true };

    fn facts(kernel: &str, modules: Option<&str>) -> ConfinementFacts {
        ConfinementFacts {
            kernel: kernel.to_owned(),
            security_modules: modules.map(str::to_owned),
            has_control_groups: true,
        }
    }

    #[test]
    fn each_part_that_a_machine_lacks_is_named_with_the_line_that_switches_it_on() {
        use ConfinementPart::{ControlGroup, Landlock};
        let none = Enforcement { files: false, ports: false, signals: false, ..ALL };
        let check =
            |enforced: Enforcement, facts: &ConfinementFacts, expected: &[(ConfinementPart, &str)]| {
                let found = LackingPart::list(&enforced, facts);
                assert_eq!(found.len(), expected.len(), "{found:?}");
                for (found, (part, text)) in found.iter().zip(expected) {
                    let all = format!("{} {}", found.message, found.advice);
                    assert!(found.part == *part && all.contains(text), "{text}: {found:?}");
                }
            };
        let new = facts("6.12.3", Some("lockdown,capability,landlock\n"));
        check(ALL, &new, &[]);
        check(Enforcement { own_user: true, ..ALL }, &new, &[]);
        let old = facts("5.10.0-28-amd64", Some("capability,apparmor\n"));
        check(none, &old, &[(Landlock, "on Linux 5.13 or later; this is 5.10.0-28-amd64")]);
        let off = facts("6.1.0", Some("capability,apparmor\n"));
        check(none, &off, &[(Landlock, "`lsm=landlock,capability,apparmor`")]);
        check(none, &new, &[(Landlock, "filter of system calls")]);
        check(none, &facts("6.1.0", None), &[(Landlock, "`lsm=landlock,MODULES`")]);
        check(none, &facts("", Some("")), &[(Landlock, "/sys/kernel/security/lsm")]);
        let without = Enforcement { ports: false, signals: false, ..ALL };
        check(without, &facts("5.15.0", None), &[(Landlock, "TCP ports and the signals")]);
        check(without, &facts("5.15.0", None), &[(Landlock, "Linux 6.12 or later; this is 5.15.0")]);
        let ports_only = Enforcement { signals: false, ..ALL };
        check(ports_only, &facts("6.8.0", None), &[(Landlock, "the signals of plugins")]);
        let alone = Enforcement { control_group: false, ..ALL };
        check(alone, &new, &[(ControlGroup, "`Delegate=cpu memory pids`")]);
        let first = ConfinementFacts { has_control_groups: false, ..new.clone() };
        check(alone, &first, &[(ControlGroup, "`systemd.unified_cgroup_hierarchy=1`")]);
        let both = Enforcement { control_group: false, ..none };
        check(both, &old, &[(Landlock, "5.13"), (ControlGroup, "Delegate=")]);
    }
}
