//! Conditions of the machine and of the network around the gateway.

use std::collections::BTreeSet;

use domain::plugin::{ConfinementPart, LackingPart, Plugin, PluginGap};
use domain::time::iso_millis;
use server::admission::LimitedAddress;

use crate::context::RestContext;
use crate::gateway_conditions::{Condition, ConditionKind, Severity};

/// Says which parts of the confinement of plugins this machine lacks, as long as a plugin is installed that an admin has not
/// enabled yet. Enabling it needs the consent of the admin.
pub(crate) fn confinement_conditions(context: &RestContext) -> Vec<Condition> {
    let plugins = context.models.plugins.load();
    let accepted = &context.config.plugins.accept_gaps;
    match plugins.iter().any(|it| is_undecided(it, accepted)) {
        true => context.plugins.processes.handle.lacking_parts().into_iter().map(lacking_condition).collect(),
        false => Vec::new(),
    }
}

fn is_undecided(plugin: &Plugin, accepted: &BTreeSet<PluginGap>) -> bool {
    !plugin.was_enabled && PluginGap::ALL.iter().any(|it| !accepted.contains(it))
}

fn lacking_condition(lacking: LackingPart) -> Condition {
    let (key, title) = match lacking.part {
        ConfinementPart::Landlock => ("landlock", "Plugins cannot be confined completely"),
        ConfinementPart::ControlGroup => ("control_group", "The resources of plugins are not limited"),
    };
    Condition {
        key: format!("plugin_confinement:{key}"),
        kind: ConditionKind::PluginConfinement,
        severity: Severity::Warning,
        title: title.to_owned(),
        message: lacking.message,
        advice: format!("{} Until then, enable only plugins that you trust.", lacking.advice),
    }
}

/// Names the addresses with so many connections that further ones were refused or idle ones closed, lately.
pub(crate) fn connection_conditions(limited: &[LimitedAddress]) -> Vec<Condition> {
    limited.iter().map(connection_condition).collect()
}

fn connection_condition(limited: &LimitedAddress) -> Condition {
    let LimitedAddress { network, n_refused, n_closed, first_at, last_at, max } = limited;
    Condition {
        key: format!("connections_limit:{network}:{first_at}"),
        kind: ConditionKind::ConnectionsLimit,
        severity: Severity::Warning,
        title: format!("The address {network} has too many connections"),
        message: format!(
            "The address {network} reached the limit of {max} open connections; the last time was {}. {n_refused} of its \
             requests or connections were refused, and {n_closed} connections without a login were closed for newer ones.",
            iso_millis(*last_at)
        ),
        advice: "If many people share this address, as behind the NAT of a provider, raise the setting \
                 limits.connections_per_address_max. If it is a reverse proxy, name it in trusted_proxies."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_at_the_limit_is_named_with_the_limit_and_its_setting() {
        let limited = LimitedAddress {
            network: "192.0.2.7".parse().unwrap(),
            n_refused: 3,
            n_closed: 5,
            first_at: 0,
            last_at: 1_000,
            max: 1024,
        };
        assert_eq!(connection_conditions(&[]), []);
        let condition = connection_conditions(&[limited]).remove(0);
        assert_eq!(condition.key, "connections_limit:192.0.2.7:0");
        for text in
            ["192.0.2.7", "limit of 1024", "3 of its requests", "and 5 connections", "1970-01-01T00:00:01"]
        {
            assert!(condition.message.contains(text), "{text}: {condition:?}");
        }
        assert!(condition.advice.contains("limits.connections_per_address_max"), "{condition:?}");
    }

    #[test]
    fn missing_confinement_is_reported_until_a_plugin_was_enabled_or_the_configuration_accepts_it() {
        let plugin = |was_enabled: bool| -> Plugin {
            serde_json::from_value(json!({
                "id": 4, "key": "tidy", "is_enabled": false, "was_enabled": was_enabled, "granted": null,
                "settings": {}, "version": "1", "installed_at": 0, "updated_at": 0,
            }))
            .unwrap()
        };
        let (none, all) = (BTreeSet::new(), BTreeSet::from(PluginGap::ALL));
        assert!(is_undecided(&plugin(false), &none));
        assert!(is_undecided(&plugin(false), &BTreeSet::from([PluginGap::Ports])));
        assert!(!is_undecided(&plugin(true), &none));
        assert!(!is_undecided(&plugin(false), &all));
        let lacking = LackingPart {
            part: ConfinementPart::ControlGroup,
            message: "No group.".to_owned(),
            advice: "Add `Delegate=cpu`.".to_owned(),
        };
        let condition = lacking_condition(lacking);
        assert_eq!(condition.key, "plugin_confinement:control_group");
        assert!(condition.advice.starts_with("Add `Delegate=cpu`. Until then"), "{condition:?}");
    }
}
