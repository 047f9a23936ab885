//! Messages of the events actor.

use std::sync::Arc;

use domain::event::Event;

/// The messages of the events actor.
pub(crate) enum Message {
    /// An event happened.
    Emit(Arc<Event>),
}
