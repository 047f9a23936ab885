//! The events and runs that this node took from others.

use std::collections::{HashSet, VecDeque};

use uuid::Uuid;

/// Maximum number of ids that the node that delivers remembers.
const TAKEN_MAX: usize = 4_096;

/// The events and runs that this node took from others, by their ids.
#[derive(Default)]
pub(super) struct TakenIds {
    order: VecDeque<Uuid>,
    ids: HashSet<Uuid>,
}

impl TakenIds {
    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.ids.contains(&id)
    }

    pub(super) fn add(&mut self, id: Uuid) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > TAKEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}
