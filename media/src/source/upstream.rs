//! The parts of a system with which all of its sources are opened.

use std::sync::Arc;

use super::settings::SourceSettings;
use crate::closer::Closer;
use crate::dial::proxy::ProxyDial;
use crate::dial::{Dial, Proxy};
use crate::launcher::Launcher;

/// The dialer, the closer, the launcher and the settings with which all sources of a system are opened.
#[derive(Clone)]
pub struct Upstream {
    /// Opens connections.
    pub dial: Arc<dyn Dial>,
    /// Closes connections.
    pub closer: Closer,
    /// Starts programs.
    pub launcher: Launcher,
    /// Time limits.
    pub settings: SourceSettings,
}

impl Upstream {
    /// Returns the same with connections through a proxy, if there is one.
    pub(crate) fn through(self, proxy: Option<&Arc<Proxy>>) -> Self {
        match proxy {
            Some(proxy) => Self { dial: Arc::new(ProxyDial::new(self.dial, proxy.clone())), ..self },
            None => self,
        }
    }
}
