//! What a node of a cluster that does not deliver passes on to the one that does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Delivery;
use crate::secret::Secret;

/// An event of this node that waits for the node that delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEvent {
    /// Grows with the order of the events.
    pub id: u32,
    /// The same in every delivery.
    pub event_id: Uuid,
    /// Name of the event.
    pub event: String,
    /// When it happened, in milliseconds since 1970.
    pub created_at: i64,
    /// The payload as JSON.
    pub payload: String,
    /// A sentence about it.
    pub summary: String,
    /// The channel of the event.
    #[serde(default)]
    pub channel: Option<Uuid>,
    /// Members of the payload that are addresses of streams, whole.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, Secret>,
}

/// A part of what a node passes on, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedEvents {
    #[serde(default)]
    pub events: Vec<OutboxEvent>,
    /// Deliveries from the time when the node delivered itself.
    #[serde(default)]
    pub deliveries: Vec<Delivery>,
}

impl PassedEvents {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.deliveries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.events.len() + self.deliveries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_version_adds_is_left_out() {
        let text = r#"{"events":[{"id":3,"event_id":"00000000-0000-0000-0000-000000000001","event":"vod_stop",
            "created_at":5,"payload":"{}","summary":"","later":true}],"later":[]}"#;
        let read: PassedEvents = serde_json::from_str(text).unwrap();
        assert_eq!((read.len(), read.events[0].created_at), (1, 5));
        assert!(!read.is_empty() && PassedEvents::default().is_empty());
    }
}
