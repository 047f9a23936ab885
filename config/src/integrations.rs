//! What integrations may do, and how much is kept of their deliveries.

use std::path::PathBuf;

use actors::IntegrationSettings;
use domain::egress::Distance;
use domain::integration::DeliveryLogLimits;
use serde::{Deserialize, Serialize};

/// Settings of integrations. No user can change them, because scripts run with the rights of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Integrations {
    /// Folders whose programs integrations may run. Empty allows none.
    pub script_dirs: Vec<PathBuf>,
    /// The nearest network that webhooks may lead to: `loopback` for any, `private`, or `public`.
    pub nearest_network: Distance,
    /// Number of days for which deliveries stay in the log.
    pub log_days: u32,
    /// Maximum number of entries of the log for each integration.
    pub log_entries_max: usize,
    /// Maximum size of the log of all integrations, in bytes.
    pub log_bytes_max: u64,
}

impl Default for Integrations {
    fn default() -> Self {
        let log = DeliveryLogLimits::default();
        Integrations {
            script_dirs: Vec::new(),
            nearest_network: Distance::Loopback,
            log_days: log.days,
            log_entries_max: log.entries_per_integration,
            log_bytes_max: log.bytes,
        }
    }
}

impl Integrations {
    /// Checks the settings. An error is the key and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let no_folder = |it: &&PathBuf| !it.is_absolute() || it.parent().is_none();
        if let Some(path) = self.script_dirs.iter().find(no_folder) {
            let reason = format!("contains `{}`; the absolute path of a folder is expected", path.display());
            return Err(("script_dirs", reason));
        }
        for (key, is_zero) in [
            ("log_days", self.log_days == 0),
            ("log_entries_max", self.log_entries_max == 0),
            ("log_bytes_max", self.log_bytes_max == 0),
        ] {
            if is_zero {
                return Err((key, "must be more than 0".to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the settings of the deliveries.
    pub fn settings(&self, user_agent: Option<String>) -> IntegrationSettings {
        IntegrationSettings {
            script_dirs: self.script_dirs.clone(),
            nearest_network: self.nearest_network,
            log: DeliveryLogLimits {
                days: self.log_days,
                entries_per_integration: self.log_entries_max,
                bytes: self.log_bytes_max,
            },
            user_agent,
        }
    }
}
