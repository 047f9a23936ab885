//! The settings of integrations.

use std::path::PathBuf;

use domain::egress::Distance;
use domain::integration::DeliveryLogLimits;

/// Settings of the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegrationSettings {
    /// Folders whose programs may be run. Empty allows none.
    pub script_dirs: Vec<PathBuf>,
    /// The nearest networks that webhooks may lead to.
    pub nearest_network: Distance,
    pub log: DeliveryLogLimits,
    /// The `User-Agent` of webhooks.
    pub user_agent: Option<String>,
}

impl Default for IntegrationSettings {
    fn default() -> Self {
        Self {
            script_dirs: Vec::new(),
            nearest_network: Distance::Loopback,
            log: DeliveryLogLimits::default(),
            user_agent: None,
        }
    }
}
