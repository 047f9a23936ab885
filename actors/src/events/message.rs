//! What the events actor can be told.

use std::sync::Arc;

use domain::event::Event;

/// Everything the events actor can be told.
pub(crate) enum Message {
    /// One of the fifteen things happened.
    Happened(Arc<Event>),
}
