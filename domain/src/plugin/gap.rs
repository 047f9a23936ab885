//! Restrictions of plugins that the running gateway cannot enforce.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::permissions::Permissions;

/// Something that a plugin can do or use beyond its permissions and limits, because nothing here prevents it. An admin has
/// to accept it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginGap {
    /// Files of the gateway's user.
    OwnFiles,
    /// Files that every user of the machine may open.
    SharedFiles,
    /// TCP ports.
    Ports,
    /// Signals to processes of the gateway's user.
    Signals,
    /// The number of processes, counted together with those of the gateway's user.
    Processes,
    /// Memory and processor time.
    Resources,
}

/// The restrictions that the kernel, and the way in which the gateway runs, can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforcement {
    /// Access to files (Landlock).
    pub files: bool,
    /// TCP ports (Landlock of Linux 6.7).
    pub ports: bool,
    /// Signals (Landlock of Linux 6.12).
    pub signals: bool,
    /// Each plugin has a user of its own, because the gateway runs as root.
    pub own_user: bool,
    /// Each plugin has a control group.
    pub control_group: bool,
}

impl PluginGap {
    pub const ALL: [Self; 6] =
        [Self::OwnFiles, Self::SharedFiles, Self::Ports, Self::Signals, Self::Processes, Self::Resources];

    /// Returns the gaps for a plugin with these permissions.
    pub fn from_permissions(permissions: &Permissions, enforced: &Enforcement) -> BTreeSet<Self> {
        let has_sockets = permissions.network || !permissions.listen.is_empty();
        let gaps = [
            (!enforced.files && !enforced.own_user, Self::OwnFiles),
            (!enforced.files && enforced.own_user, Self::SharedFiles),
            // A plugin that declares no permissions may use all ports anyway.
            (!enforced.ports && permissions.is_declared && has_sockets, Self::Ports),
            (!enforced.signals && !enforced.own_user, Self::Signals),
            (!enforced.control_group && !enforced.own_user, Self::Processes),
            (!enforced.control_group, Self::Resources),
        ];
        gaps.into_iter().filter_map(|(is_open, gap)| is_open.then_some(gap)).collect()
    }

    /// Returns its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnFiles => "own_files",
            Self::SharedFiles => "shared_files",
            Self::Ports => "ports",
            Self::Signals => "signals",
            Self::Processes => "processes",
            Self::Resources => "resources",
        }
    }

    /// Returns the sentence for admins.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::OwnFiles => {
                "This kernel has no Landlock: the plugin can read and change every file of the gateway, also the store \
                 and its key, and start every program."
            }
            Self::SharedFiles => {
                "This kernel has no Landlock: the plugin can open every file that all users of this machine can open, \
                 and start every program."
            }
            Self::Ports => {
                "This kernel cannot restrict ports (Linux 6.7 can): the plugin can accept connections at every TCP port."
            }
            Self::Signals => {
                "This kernel cannot restrict signals (Linux 6.12 can): the plugin can end the gateway and other programs \
                 of the same user."
            }
            Self::Processes => {
                "The plugin has the same user as the gateway and no control group: its processes are counted together \
                 with those of the gateway."
            }
            Self::Resources => {
                "The gateway has no delegated control group: processor time is not limited, and memory is only measured \
                 each second."
            }
        }
    }
}

/// Whether a plugin with gaps is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GapConsent {
    /// An admin accepts them, now or before.
    Admin,
    /// The configuration accepts these, which no admin has accepted.
    Configuration(BTreeSet<PluginGap>),
    /// Nobody accepts these.
    Missing(BTreeSet<PluginGap>),
}

impl GapConsent {
    /// Returns who accepts the gaps of a plugin. `accepted` are those that an admin has accepted before, `configured` those of
    /// the configuration, and `sent` the answer of the admin, if any: a refusal overrides the configuration.
    pub fn new(
        gaps: &BTreeSet<PluginGap>,
        accepted: &BTreeSet<PluginGap>,
        configured: &BTreeSet<PluginGap>,
        sent: Option<bool>,
    ) -> Self {
        let new = gaps - accepted;
        match sent {
            Some(true) => Self::Admin,
            _ if new.is_empty() => Self::Admin,
            None if new.is_subset(configured) => Self::Configuration(new),
            None | Some(false) => Self::Missing(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Enforcement =
        Enforcement { files: true, ports: true, signals: true, own_user: true, control_group: true };

    #[test]
    fn gaps_are_what_is_not_enforced_and_matters_for_the_permissions() {
        let declared = Permissions::none();
        let sockets = Permissions { network: true, ..Permissions::none() };
        let check = |permissions: &Permissions, enforced: Enforcement, expected: &[PluginGap]| {
            assert_eq!(
                PluginGap::from_permissions(permissions, &enforced),
                expected.iter().copied().collect(),
                "{enforced:?}"
            );
        };
        check(&sockets, ALL, &[]);
        check(&declared, Enforcement { ports: false, ..ALL }, &[]);
        check(&sockets, Enforcement { ports: false, ..ALL }, &[PluginGap::Ports]);
        check(&Permissions::undeclared(), Enforcement { ports: false, ..ALL }, &[]);
        check(&declared, Enforcement { files: false, ..ALL }, &[PluginGap::SharedFiles]);
        check(&declared, Enforcement { own_user: false, ..ALL }, &[]);
        check(&declared, Enforcement { own_user: false, signals: false, ..ALL }, &[PluginGap::Signals]);
        check(&declared, Enforcement { control_group: false, ..ALL }, &[PluginGap::Resources]);
        let nothing =
            Enforcement { files: false, ports: false, signals: false, own_user: false, control_group: false };
        let all = [
            PluginGap::OwnFiles,
            PluginGap::Ports,
            PluginGap::Signals,
            PluginGap::Processes,
            PluginGap::Resources,
        ];
        check(&sockets, nothing, &all);
    }

    #[test]
    fn the_configuration_accepts_gaps_only_if_it_names_each_and_nobody_refuses() {
        let set = |names: &str| -> BTreeSet<PluginGap> {
            let is_named = |it: &PluginGap| names.split_whitespace().any(|name| name == it.name());
            PluginGap::ALL.into_iter().filter(is_named).collect()
        };
        let by_configuration = |names: &str| GapConsent::Configuration(set(names));
        let missing = |names: &str| GapConsent::Missing(set(names));
        for (gaps, accepted, configured, sent, expected) in [
            ("", "", "", None, GapConsent::Admin),
            ("", "", "", Some(false), GapConsent::Admin),
            ("ports", "", "", None, missing("ports")),
            ("ports", "", "", Some(true), GapConsent::Admin),
            ("ports", "", "ports", None, by_configuration("ports")),
            ("ports", "", "ports", Some(false), missing("ports")),
            ("ports", "", "ports", Some(true), GapConsent::Admin),
            ("ports signals", "", "ports", None, missing("ports signals")),
            ("ports signals", "signals", "ports", None, by_configuration("ports")),
            ("ports signals", "signals", "", None, missing("ports")),
            ("ports signals", "ports signals", "", None, GapConsent::Admin),
            ("ports", "ports", "", Some(false), GapConsent::Admin),
            ("signals", "", "ports resources", None, missing("signals")),
        ] {
            let found = GapConsent::new(&set(gaps), &set(accepted), &set(configured), sent);
            assert_eq!(found, expected, "{gaps:?} {accepted:?} {configured:?} {sent:?}");
        }
        for gap in PluginGap::ALL {
            assert_eq!(serde_json::to_value(gap).unwrap(), gap.name());
        }
    }
}
