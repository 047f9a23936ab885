//! Messages of the bandwidth actor.

/// The messages of the bandwidth actor.
pub(crate) enum Message {
    /// Reads the meters.
    Measure,
}
