//! How integrations fare.

use domain::ids::IntegrationId;

/// How an integration fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationStatus {
    pub id: IntegrationId,
    pub n_waiting: usize,
    /// Those of the waiting ones that are attempted now.
    pub n_running: usize,
    pub n_dead: usize,
    /// Milliseconds since 1970.
    pub failing_since: Option<i64>,
    /// Why nothing is attempted until an admin resumes it.
    pub paused: Option<String>,
}

/// The numbers of deliveries at one moment, and of those that were lost since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    pub n_waiting: usize,
    pub n_running: usize,
    pub n_dead: usize,
    /// Events that no integration got, because too many waited for the disk.
    pub n_lost: u64,
    /// Deliveries that became dead letters, because too many waited for their target.
    pub n_overflowed: u64,
}
