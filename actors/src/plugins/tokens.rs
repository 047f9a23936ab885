//! The tokens with which processes of plugins call the API over loopback.

use std::collections::HashMap;
use std::sync::Arc;

use domain::secret::Secret;
use parking_lot::Mutex;
use uuid::Uuid;

use super::call::PluginCaller;
use super::state::PluginsState;

/// How a token begins.
const TOKEN_PREFIX: &str = "plugin-";

/// The tokens of running processes.
#[derive(Default)]
pub(super) struct ProcessTokens(Mutex<HashMap<String, Arc<PluginCaller>>>);

/// The token of one process, which is invalid when this is dropped.
pub(super) struct HeldToken {
    pub(super) token: Secret,
    shared: Arc<PluginsState>,
}

impl HeldToken {
    pub(super) fn new(shared: Arc<PluginsState>, caller: Arc<PluginCaller>) -> Self {
        // 244 random bits.
        let token = format!("{TOKEN_PREFIX}{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        shared.tokens.0.lock().insert(token.clone(), caller);
        Self { token: Secret::new(token), shared }
    }
}

impl Drop for HeldToken {
    fn drop(&mut self) {
        self.shared.tokens.0.lock().remove(self.token.expose());
    }
}

impl ProcessTokens {
    /// Returns the plugin with a running process that has this token.
    pub(super) fn caller(&self, token: &str) -> Option<Arc<PluginCaller>> {
        // This table has no tokens of users, and its hashes are keyed, so that times reveal nothing.
        self.0.lock().get(token).cloned().filter(|_| token.starts_with(TOKEN_PREFIX))
    }
}
