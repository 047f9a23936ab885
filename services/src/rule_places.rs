//! The values of the moment that rules of recordings refer to: the channels of groups, their quality, and the time zone.

use std::collections::HashMap;

use actors::HealthTable;
use domain::channel::Channel;
use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::guide::matching::{Quality, quality_of_name};
use domain::ids::{ChannelId, GroupId};
use domain::recording::rules::{ProgrammeConditions, RecordingRule, RuleSelection};
use storage::Models;

/// Returns the name of the time zone of the settings.
pub(crate) fn zone_name(models: &Models) -> String {
    let settings = models.settings.load();
    time_zone(settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value)).to_owned()
}

/// Returns the quality that the name of a channel states, or that of the picture of its first stream that was measured.
pub(crate) fn quality_of(channel: &Channel, health: &HealthTable) -> Quality {
    let measured = || channel.streams.iter().find_map(|it| health.get(*it)?.height);
    quality_of_name(&channel.name).unwrap_or_else(|| match measured() {
        Some(1_441..) => Quality::Ultra,
        Some(720..) => Quality::High,
        _ => Quality::Standard,
    })
}

/// The values of the moment that the conditions of rules refer to: the channels of groups, and the time zone of the settings.
pub(crate) struct RulePlaces {
    by_group: HashMap<GroupId, Vec<ChannelId>>,
    zone: String,
}

impl RulePlaces {
    pub(crate) fn new(models: &Models) -> Self {
        let mut by_group = HashMap::<_, Vec<_>>::new();
        for channel in models.channels.load().iter() {
            if let Some(group) = channel.group {
                by_group.entry(group).or_default().push(channel.id);
            }
        }
        Self { by_group, zone: zone_name(models) }
    }

    /// Names all channels and the time zone in the conditions of a rule.
    pub(crate) fn resolve(&self, rule: &RecordingRule, conditions: &mut ProgrammeConditions) {
        if conditions.names_channels() {
            let of_groups = conditions.groups.iter().filter_map(|it| self.by_group.get(it)).flatten();
            let all: Vec<_> = of_groups.copied().chain(rule.channel).collect();
            conditions.channels.extend(all);
        }
        if conditions.zone.is_none() && (!conditions.days.is_empty() || conditions.hours.is_some()) {
            conditions.zone = Some(self.zone.clone());
        }
    }

    /// Returns a rule that is on, with all channels and the time zone in its conditions.
    pub(crate) fn resolved(&self, rule: &RecordingRule) -> RecordingRule {
        let mut resolved = RecordingRule { enabled: true, ..rule.clone() };
        if let RuleSelection::Programmes(test) = &mut resolved.selection {
            self.resolve(rule, &mut test.conditions);
        }
        resolved
    }
}
