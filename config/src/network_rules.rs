//! The networks of each class in force: those of the configuration, overridden by the core setting `network_access`.
//!
//! The setting has the names of similar services (`UI`, `STREAMS`, `XC_API`, `M3U_EPG`), each with a list of networks that
//! may use the class, and the names of the configuration (`ui`, `tuner`, …), each with `connect` and `anonymous`.

use domain::core_settings::ADULT_WITHOUT_USER;
use serde_json::{Map, Value};

use super::network_access::{NetworkAccess, NetworkClass};
use super::{Config, Networks};

/// The networks of each class in force.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkRules {
    config: Config,
}

/// An invalid member of the setting, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongNetworks {
    pub member: String,
    /// The reason, worded to follow the name.
    pub reason: String,
    /// The texts that are not networks.
    pub texts: Vec<String>,
}

impl NetworkRules {
    /// Applies a setting to a configuration. Invalid members leave the configuration in force.
    pub fn new(config: &Config, setting: Option<&Value>) -> (Self, Vec<WrongNetworks>) {
        let mut rules = NetworkRules { config: config.clone() };
        let members = setting.and_then(Value::as_object).cloned().unwrap_or_default();
        let wrong = members.iter().filter_map(|(name, value)| rules.apply(name, value).err()).collect();
        (rules, wrong)
    }

    /// Returns the networks that may use a class.
    pub fn connect(&self, class: NetworkClass) -> &Networks {
        self.config.connect_networks(class)
    }

    /// Returns the networks that need no credentials for a class, provided that they may use it.
    pub fn anonymous(&self, class: NetworkClass) -> &Networks {
        self.config.anonymous_networks(class)
    }

    fn apply(&mut self, name: &str, value: &Value) -> Result<(), WrongNetworks> {
        let wrong = |reason: &str| WrongNetworks {
            member: name.to_owned(),
            reason: reason.to_owned(),
            texts: Vec::new(),
        };
        if name == ADULT_WITHOUT_USER {
            // Lists of channels read it from the setting.
            return value.as_bool().map(drop).ok_or_else(|| wrong("must be true or false"));
        }
        let class = class_of(name).ok_or_else(|| wrong("is not a setting"))?;
        if value.is_null() {
            return Ok(());
        }
        let before = self.config.network_access.clone();
        let networks = class_networks(&mut self.config.network_access, class);
        match value {
            Value::Object(members) => {
                for (part, value) in members {
                    match part.as_str() {
                        "connect" => networks.connect = read(name, value)?,
                        "anonymous" if value.is_null() => networks.anonymous = None,
                        "anonymous" => networks.anonymous = Some(read(name, value)?),
                        _ => return Err(wrong("has the members connect and anonymous only")),
                    }
                }
            }
            // Similar services store an empty text where every network is allowed.
            Value::String(text) if text.trim().is_empty() => networks.connect = Networks::any(),
            value => networks.connect = read(name, value)?,
        }
        match self.config.wrong_anonymous_networks() {
            Some((_, reason)) => {
                self.config.network_access = before;
                Err(wrong(&format!(": anonymous {reason}")))
            }
            None => Ok(()),
        }
    }
}

/// Reads a list of networks: an array of texts, or one text with commas.
fn read(member: &str, value: &Value) -> Result<Networks, WrongNetworks> {
    /// Networks in one list. Each request is compared with all of them.
    const NETWORKS_MAX: usize = 1_000;
    let wrong = |reason: String, texts| WrongNetworks { member: member.to_owned(), reason, texts };
    let texts: Option<Vec<&str>> = match value {
        Value::String(text) => Some(text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect()),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let texts = texts.ok_or_else(|| wrong("must be a list of networks".to_owned(), Vec::new()))?;
    if texts.len() > NETWORKS_MAX {
        return Err(wrong(format!("has more than {NETWORKS_MAX} networks"), Vec::new()));
    }
    texts.join(",").parse().map_err(|_| {
        let invalid = texts.iter().filter(|it| it.parse::<Networks>().is_err() || **it == "none");
        let invalid: Vec<String> = invalid.map(|it| (*it).to_owned()).collect();
        let reason = "contains an invalid network: ADDRESS/PREFIX, loopback, private or any is expected";
        wrong(reason.to_owned(), invalid)
    })
}

/// Returns the names of the classes in similar services.
pub const FOREIGN_NAMES: [(&str, NetworkClass); 4] = [
    ("UI", NetworkClass::Ui),
    ("STREAMS", NetworkClass::Streams),
    ("XC_API", NetworkClass::XcApi),
    ("M3U_EPG", NetworkClass::M3uEpg),
];

fn class_of(name: &str) -> Option<NetworkClass> {
    let foreign = FOREIGN_NAMES.into_iter().find(|it| it.0 == name).map(|it| it.1);
    foreign.or_else(|| NetworkClass::ALL.into_iter().find(|it| it.key() == name))
}

fn class_networks(access: &mut NetworkAccess, class: NetworkClass) -> &mut super::ClassNetworks {
    match class {
        NetworkClass::Ui => &mut access.ui,
        NetworkClass::Streams => &mut access.streams,
        NetworkClass::XcApi => &mut access.xc_api,
        NetworkClass::M3uEpg => &mut access.m3u_epg,
        NetworkClass::Tuner => &mut access.tuner,
        NetworkClass::Metrics => &mut access.metrics,
    }
}

impl Config {
    /// Returns the networks of each class in the form of the core setting.
    pub fn network_setting(&self) -> Map<String, Value> {
        let of_class = |class: NetworkClass| {
            let (connect, anonymous) = (self.connect_networks(class), self.anonymous_networks(class));
            let value =
                serde_json::json!({ "connect": connect.to_string(), "anonymous": anonymous.to_string() });
            (class.key().to_owned(), value)
        };
        let adult = (ADULT_WITHOUT_USER.to_owned(), Value::Bool(false));
        NetworkClass::ALL.into_iter().map(of_class).chain([adult]).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(setting: Value) -> (NetworkRules, Vec<String>) {
        let (rules, wrong) = NetworkRules::new(&Config::default(), Some(&setting));
        (rules, wrong.into_iter().map(|it| it.member).collect())
    }

    #[test]
    fn a_setting_overrides_the_configuration_in_both_forms() {
        let (rules, wrong) = rules(json!({
            "UI": "10.0.0.0/8, 192.168.1.5",
            "tuner": { "connect": ["private"], "anonymous": "10.1.0.0/16" },
            "metrics": { "anonymous": null },
            "M3U_EPG": "",
            "adult_without_user": true,
        }));
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!(rules.connect(NetworkClass::Ui).to_string(), "10.0.0.0/8, 192.168.1.5/32");
        assert_eq!(rules.connect(NetworkClass::Tuner).to_string(), "private");
        assert_eq!(rules.anonymous(NetworkClass::Tuner).to_string(), "10.1.0.0/16");
        assert_eq!(rules.connect(NetworkClass::Streams), &Networks::any());
        assert_eq!(rules.connect(NetworkClass::M3uEpg), &Networks::any());
    }

    #[test]
    fn an_invalid_member_is_named_and_leaves_the_configuration_in_force() {
        let (rules, wrong) = rules(json!({
            "STREAMS": "banana,10.0.0.0/8",
            "ui": { "anonymous": "any" },
            "XC_API": 7,
            "other": "any",
            "tuner": { "from": "any" },
            "adult_without_user": "yes",
        }));
        let expected = ["STREAMS", "XC_API", "adult_without_user", "other", "tuner", "ui"];
        let mut wrong = wrong;
        wrong.sort();
        assert_eq!(wrong, expected);
        assert_eq!(rules, NetworkRules::new(&Config::default(), None).0);
        let (_, wrong) = NetworkRules::new(&Config::default(), Some(&json!({ "UI": "banana,any,kiwi" })));
        assert_eq!(wrong[0].texts, ["banana", "kiwi"]);
    }
}
