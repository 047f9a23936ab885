//! What the handling of a request uses before a handler runs, and the contexts of the crates whose handlers run.

use std::fmt;
use std::sync::Arc;

use config::{Config, PublicUrl};
use domain::core_settings::{self, SYSTEM_SETTINGS};
use services::archives::ArchiveCache;
use services::auth::Auth;
use services::files::Files;
use services::plugins::PluginProcesses;
use storage::Models;

use crate::network_access::NetworkAccess;
use crate::pace::WritePace;
use crate::states::States;

/// The services that every request needs, to know who the caller is, what it may do, and how its body is read. Handlers use the
/// context of their own crate, which is one of [`FrameContext::contexts`].
///
/// Nothing that it holds may hold it in turn. The routes keep it alive until the last connection has ended, and must not keep
/// the actors running for as long.
pub struct FrameContext {
    pub config: Config,
    pub models: Models,
    pub files: Files,
    pub auth: Auth,
    /// The networks that may use the gateway.
    pub networks: Arc<NetworkAccess>,
    /// How far back the past of channels can be watched.
    pub archives: Arc<ArchiveCache>,
    /// Callers that are plugins.
    pub plugin_processes: Arc<PluginProcesses>,
    pub write_pace: WritePace,
    /// The context of each crate with handlers.
    pub contexts: States,
}

impl FrameContext {
    /// Returns the address under which clients reach the gateway, as [`public_url`] says.
    pub fn public_url(&self) -> Option<String> {
        public_url(&self.config, &self.models)
    }
}

/// Returns the address under which clients reach the gateway, without a slash at the end: that of the core settings, else that
/// of the configuration.
pub fn public_url(config: &Config, models: &Models) -> Option<String> {
    let settings = models.settings.load();
    let value = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
    // One that an earlier version accepted may be invalid in this version.
    let from_setting = core_settings::public_url(value).and_then(|it| it.parse::<PublicUrl>().ok());
    let url = from_setting.as_ref().or(config.public_url.as_ref());
    url.map(ToString::to_string)
}

impl fmt::Debug for FrameContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameContext(…)")
    }
}
