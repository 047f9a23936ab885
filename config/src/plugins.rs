//! Settings of plugins.

use std::collections::BTreeSet;
use std::time::Duration;

use actors::PluginTimings;
use domain::plugin::PluginGap;
use domain::settings::seconds;
use serde::{Deserialize, Serialize};

/// How plugins run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plugins {
    /// The Python for plugins: a name to find in `PATH`, or an absolute path. Without it, the first `python3` that is new
    /// enough.
    pub python: Option<String>,
    /// A request that runs an action is answered after this time at the latest; the run goes on.
    #[serde(with = "seconds")]
    pub answer_timeout: Duration,
    /// Restrictions that need no consent of an admin where nothing enforces them, for every plugin.
    pub accept_gaps: BTreeSet<PluginGap>,
    /// No plugin starts; only by the option of `serve`.
    #[serde(skip)]
    pub is_safe_mode: bool,
}

impl Default for Plugins {
    fn default() -> Self {
        Plugins {
            python: None,
            answer_timeout: PluginTimings::default().answer,
            accept_gaps: BTreeSet::new(),
            is_safe_mode: false,
        }
    }
}

impl Plugins {
    /// Returns the time limits of plugins.
    pub fn timings(&self) -> PluginTimings {
        PluginTimings { answer: self.answer_timeout, ..PluginTimings::default() }
    }
}
