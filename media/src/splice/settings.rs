//! The settings of a splice.

use std::time::Duration;

/// The limits of a splice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpliceSettings {
    /// Longest wait for a random-access point after the first payload of the first source, and of one that has none. For
    /// others it follows from their [`GroupLength`](crate::groups::GroupLength), and is at least as long.
    pub random_access_wait: Duration,
    /// The opening burst of a recording, or of a source without a clock, is collected for at most this long after its first
    /// payload.
    pub burst_max: Duration,
    /// The same for other sources that replace another: they may begin with their past, of which nothing is repeated.
    pub burst_wait_max: Duration,
    /// A source that replaces another may repeat this much of the programme to begin at a random-access point, over all
    /// changes together.
    pub start_lead: Duration,
    /// Maximum memory for packets held before the output of a source starts.
    pub held_bytes_max: usize,
    /// Packets wait for the end of a frame that has begun before them for at most this long.
    pub frame_wait_max: Duration,
    /// Maximum memory for packets that wait for the end of a frame.
    pub frame_bytes_max: usize,
}

impl Default for SpliceSettings {
    fn default() -> Self {
        SpliceSettings {
            random_access_wait: Duration::from_secs(1),
            burst_max: Duration::from_millis(300),
            burst_wait_max: Duration::from_secs(6),
            start_lead: Duration::from_secs(2),
            held_bytes_max: 16 << 20,
            frame_wait_max: Duration::from_millis(500),
            frame_bytes_max: 2 << 20,
        }
    }
}
