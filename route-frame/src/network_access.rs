//! The networks from which callers may use the gateway.

use std::fmt;
use std::sync::Arc;

use actors::Events;
use config::{Config, NetworkClass, NetworkRules, UserNetworks, WrongNetworks};
use domain::core_settings::NETWORK_ACCESS;
use domain::setting::CoreSetting;
use domain::user::User;
use parking_lot::RwLock;
use server::caller::Caller;
use server::network_refusals::{NetworkDenial, NetworkRefusals};
use server::reply::Refusal;
use storage::{Models, Table};
use tracing::warn;

/// Checks the networks of callers, and reports those that it refuses.
pub struct NetworkAccess {
    config: Config,
    models: Models,
    refusals: NetworkRefusals,
    /// The rules in force, with the settings that they were built from.
    built: RwLock<Option<BuiltRules>>,
}

/// Network rules, and the settings that they were built from.
type BuiltRules = (Arc<Table<CoreSetting>>, Arc<NetworkRules>);

impl NetworkAccess {
    /// Makes the rules from the configuration and the stored settings.
    pub fn new(config: &Config, models: &Models, events: &Events) -> Self {
        let events = events.clone();
        Self {
            config: config.clone(),
            models: models.clone(),
            refusals: NetworkRefusals::new(move |event| events.emit(event)),
            built: RwLock::default(),
        }
    }

    /// Refuses callers from networks that may not use this class. `path` is that of the route.
    pub fn check_connect(&self, caller: &Caller, class: NetworkClass, path: &str) -> Result<(), Refusal> {
        match caller.is_in(self.rules().connect(class)) {
            true => Ok(()),
            false => Err(self.refusals.refuse(caller, class, path, NetworkDenial::Connect)),
        }
    }

    /// Refuses callers from networks that need credentials for this class.
    pub fn check_anonymous(&self, caller: &Caller, class: NetworkClass, path: &str) -> Result<(), Refusal> {
        match caller.is_in(self.rules().anonymous(class)) {
            true => Ok(()),
            false => Err(self.refusals.refuse(caller, class, path, NetworkDenial::Anonymous)),
        }
    }

    /// Refuses a user on a network from which this user may not use the class.
    pub fn check_user(
        &self,
        user: &User,
        caller: &Caller,
        class: NetworkClass,
        path: &str,
    ) -> Result<(), Refusal> {
        match UserNetworks::from_user(user).limit(class) {
            Some(networks) if !caller.is_in(networks) => {
                Err(self.refusals.refuse(caller, class, path, NetworkDenial::User))
            }
            _ => Ok(()),
        }
    }

    /// Returns the networks of each class in force. Changes of the settings take effect with the next request.
    pub fn rules(&self) -> Arc<NetworkRules> {
        let settings = self.models.settings.load();
        if let Some((of, rules)) = &*self.built.read()
            && Arc::ptr_eq(of, &settings)
        {
            return Arc::clone(rules);
        }
        let value = settings.one_by("key", NETWORK_ACCESS).map(|it| &it.value);
        let (rules, wrong) = NetworkRules::new(&self.config, value);
        for WrongNetworks { member, reason, .. } in wrong {
            warn!("ignoring {member} of the setting {NETWORK_ACCESS}: it {reason}");
        }
        let rules = Arc::new(rules);
        *self.built.write() = Some((settings, Arc::clone(&rules)));
        rules
    }
}

impl fmt::Debug for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetworkAccess(…)")
    }
}
