//! The parts of a system with which all of its sources are opened.

use std::sync::Arc;

use super::request::OpenRequest;
use super::settings::SourceSettings;
use crate::closer::Closer;
use crate::dial::Dial;
use crate::dial::proxy::ProxyDial;
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
    /// Returns the same with connections through a proxy, if there is one, and with the certificates of the request.
    pub(crate) fn on_behalf_of(self, request: &OpenRequest) -> Self {
        let trusting = request.trust.as_deref().and_then(|it| self.dial.trusting(it));
        let inside = trusting.unwrap_or_else(|| self.dial.clone());
        match &request.proxy {
            Some(proxy) => Self { dial: Arc::new(ProxyDial::new(self.dial, inside, proxy.clone())), ..self },
            None => Self { dial: inside, ..self },
        }
    }
}
