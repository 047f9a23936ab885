//! User agents: names of programs under which the gateway can request streams from providers.

use serde::{Deserialize, Serialize};

/// A user agent that admins can choose by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAgent {
    pub id: u32,
    /// Unique.
    pub name: String,
    /// Value of the header. Unique.
    pub user_agent: String,
    #[serde(default)]
    pub description: String,
    /// An inactive user agent is not used.
    pub is_active: bool,
    /// Milliseconds since 1970, like `updated_at`.
    pub created_at: i64,
    pub updated_at: i64,
}
