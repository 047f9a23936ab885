//! Settings of plugins.

use serde::{Deserialize, Serialize};

/// How plugins run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plugins {
    /// The Python for plugins: a name to find in `PATH`, or an absolute path. Without it, the first `python3` that is new
    /// enough.
    pub python: Option<String>,
    /// No plugin starts; only by the option of `serve`.
    #[serde(skip)]
    pub is_safe_mode: bool,
}
