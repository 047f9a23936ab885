//! Keys of the operator for services that the gateway uses.

use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// A key for a service. In a cluster, only full nodes have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceKey {
    /// One of the constants below.
    pub id: u32,
    pub value: Secret,
}

impl ServiceKey {
    /// The Movie Database.
    pub const TMDB: u32 = 1;
}
