//! Settings of the other service that the gateway has as well.

use domain::core_settings::{PROXY_SETTINGS, SETTING_KEYS, STREAM_SETTINGS, SYSTEM_SETTINGS, check};
use domain::ids::StreamProfileId;
use domain::setting::CoreSetting;
use domain::stream_profile::{Delivery, StreamProfile};
use serde_json::{Map, Value};

use super::household::Household;
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, Rules};
use super::report::Report;
use super::row::plain;
use super::table::SourceTable;

/// Members with the same meaning in both, and their defaults there. A default is nobody's choice and is left out.
const MEMBERS: [(&str, &str, f64); 3] = [
    (PROXY_SETTINGS, "buffering_timeout", 15.0),
    (PROXY_SETTINGS, "channel_shutdown_delay", 0.0),
    (PROXY_SETTINGS, "new_client_behind_seconds", 5.0),
];
/// The keys that are taken over. Networks and back-ups depend on the machine.
const TAKEN_KEYS: [&str; 3] = [PROXY_SETTINGS, STREAM_SETTINGS, SYSTEM_SETTINGS];
const TIME_ZONE: &str = "time_zone";
const DEFAULT_STREAM_PROFILE: &str = "default_stream_profile";
const DEFAULT_USER_AGENT: &str = "default_user_agent";
/// The id of the first user agent there, which nobody has to choose.
const FIRST_USER_AGENT: u32 = 1;

impl Foundation {
    /// Takes over the settings that differ from the defaults and that nobody has set in the store.
    pub(crate) fn settings(
        &self,
        household: &Household,
        existing: &Existing,
        rules: &Rules<'_>,
        report: &mut Report,
    ) -> Vec<CoreSetting> {
        let mut ids = IdPicker::new(existing.unused.setting, []);
        let mut planned: Vec<CoreSetting> = Vec::new();
        for row in household.rows(SourceTable::Settings) {
            let key = row.text("key").unwrap_or_default();
            let value = row.object("value");
            let known = SETTING_KEYS.iter().find(|it| it.0 == key);
            let Some((key, name)) = known.filter(|it| TAKEN_KEYS.contains(&it.0)) else {
                if !value.is_empty() {
                    let reason = match known {
                        Some(_) => "not taken over; set them in the interface",
                        None => "the gateway has none of this name",
                    };
                    report.note(format!("settings {}", plain(key, 60)), reason);
                }
                continue;
            };
            if planned.iter().any(|it| it.key == *key) {
                continue;
            }
            let stored = existing.settings.iter().find(|it| it.key == *key);
            let mut members = stored.and_then(|it| it.value.as_object()).cloned().unwrap_or_default();
            let n_before = members.len();
            for (member, value) in self.members(key, &value) {
                self.add_member(key, member, value, &mut members, rules, report);
            }
            if members.len() > n_before {
                let id = stored.map_or_else(|| ids.fresh(), |it| it.id);
                let (key, name) = ((*key).to_owned(), (*name).to_owned());
                planned.push(CoreSetting { id, key, name, value: members.into() });
            }
        }
        planned
    }

    /// Returns the members that differ from the defaults of the other service.
    fn members(&self, key: &str, value: &Map<String, Value>) -> Vec<(&'static str, Value)> {
        let mut members = Vec::new();
        for (of_key, member, default) in MEMBERS {
            let chosen = value.get(member).filter(|it| it.as_f64().is_some_and(|it| it != default));
            if let Some(chosen) = chosen.filter(|_| of_key == key) {
                members.push((member, chosen.clone()));
            }
        }
        if key == SYSTEM_SETTINGS
            && let Some(zone) = value.get(TIME_ZONE).and_then(Value::as_str).filter(|it| *it != "UTC")
        {
            members.push((TIME_ZONE, zone.into()));
        }
        if key == STREAM_SETTINGS {
            let chosen = |member: &str| {
                let id = value.get(member);
                let id = id.and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
                id.and_then(|it| u32::try_from(it).ok())
            };
            let id = chosen(DEFAULT_STREAM_PROFILE).and_then(|it| self.stream_profile(it));
            // The gateway reads streams itself and starts ffmpeg only where that is necessary.
            let is_default = |it: &StreamProfileId| {
                *it == StreamProfile::from_delivery(Delivery::Proxy).id || *it == StreamProfile::FFMPEG_COPY
            };
            if let Some(id) = id.filter(|it| !is_default(it)) {
                members.push((DEFAULT_STREAM_PROFILE, id.0.into()));
            }
            let agent = chosen(DEFAULT_USER_AGENT).filter(|it| *it != FIRST_USER_AGENT);
            if let Some(agent) = agent.and_then(|it| self.user_agent_ids.get(&it)) {
                members.push((DEFAULT_USER_AGENT, (*agent).into()));
            }
        }
        members
    }

    fn add_member(
        &self,
        key: &str,
        member: &'static str,
        value: Value,
        members: &mut Map<String, Value>,
        rules: &Rules<'_>,
        report: &mut Report,
    ) {
        let kind = report.kind(SourceTable::Settings.label());
        if members.get(member).is_some_and(|it| !it.is_null()) {
            kind.merged += 1;
            return;
        }
        let mut changed = members.clone();
        changed.insert(member.to_owned(), value);
        match check(key, &Value::Object(changed.clone()), &rules.settings) {
            // A new stream profile or user agent is not in the store yet, so that the check does not know it.
            Err(errors) if member != DEFAULT_STREAM_PROFILE && member != DEFAULT_USER_AGENT => {
                let reason = errors.first().map_or("", |it| it.1.as_str());
                kind.skip(format!("{key}.{member}"), reason);
            }
            _ => {
                kind.taken += 1;
                *members = changed;
            }
        }
    }
}
