//! Selections of deliveries and of entries of their log.

use std::collections::BTreeSet;

use domain::ids::DeliveryId;
use domain::integration::{Delivery, Recipient};
use domain::plugin::RunCause;

/// Selects deliveries. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub to: Option<Recipient>,
    /// `Some(true)` for dead letters, `Some(false)` for those that wait.
    pub is_dead: Option<bool>,
    /// Name of the event.
    pub event: Option<String>,
    /// These deliveries only.
    pub ids: Option<BTreeSet<DeliveryId>>,
    /// Those of events from this time on, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Those of events before this time, in milliseconds since 1970.
    pub before: Option<i64>,
}

/// Selects entries of the log. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    pub to: Option<Recipient>,
    /// One of these.
    pub to_one_of: Option<Vec<Recipient>>,
    pub cause: Option<RunCause>,
    /// Name of the event.
    pub event: Option<String>,
    pub is_success: Option<bool>,
    pub is_test: Option<bool>,
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    /// Milliseconds since 1970.
    pub before: Option<i64>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The number of all that the filter selects.
    pub n_all: usize,
    pub items: Vec<T>,
}

impl DeliveryFilter {
    /// Returns whether the records have to be read to apply it.
    pub(super) fn is_by_record(&self) -> bool {
        self.event.is_some() || self.since.is_some() || self.before.is_some()
    }

    pub(super) fn selects(&self, it: &Delivery) -> bool {
        self.to.is_none_or(|to| it.to == to)
            && self.is_dead.is_none_or(|is_dead| it.dead_at.is_some() == is_dead)
            && self.event.as_ref().is_none_or(|event| it.event == *event)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&it.id))
            && self.since.is_none_or(|at| it.created_at >= at)
            && self.before.is_none_or(|at| it.created_at < at)
    }
}
