//! One change by an admin, as it is recorded.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// Maximum number of recorded changes; the oldest are removed.
pub const AUDIT_ENTRIES_MAX: u32 = 10_000;

/// The user, the change, its time and its origin. It contains no values, because they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Increases with each entry.
    pub id: u32,
    /// Milliseconds since 1970.
    pub at: i64,
    pub user: UserId,
    /// Name of the user at that time.
    pub username: String,
    /// Address of the client.
    pub address: IpAddr,
    /// The `User-Agent` of the client.
    #[serde(default)]
    pub user_agent: String,
    /// Method of the request.
    pub method: String,
    /// Path of the request, with the names of its parameters in braces.
    pub path: String,
    /// Names of the fields that were sent.
    #[serde(default)]
    pub fields: Vec<String>,
    /// The first changed records: collection and id.
    #[serde(default)]
    pub records: Vec<(String, u32)>,
    /// Number of changed records.
    #[serde(default)]
    pub n_records: u32,
}
