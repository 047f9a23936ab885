//! The guide of a channel, as a panel describes it.

use serde_json::{Value, json};

/// Returns a guide without programmes: the gateway has none yet. Apps show that better than invented programmes.
pub(super) fn without_programmes() -> Value {
    json!({ "epg_listings": [] })
}
