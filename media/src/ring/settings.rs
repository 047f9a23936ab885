//! The settings of a ring.

use std::time::Duration;

/// The limits of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSettings {
    /// Older chunks are removed, except those of the newest group of pictures.
    pub seconds: Duration,
    /// Above this many bytes the oldest chunks are removed, except those of the newest group of pictures.
    pub bytes: usize,
    /// Above this many bytes even the newest group of pictures is cut.
    pub gop_bytes: usize,
    /// A tail that is overrun more often than this within a minute ends with [`super::EndReason::TooSlow`].
    pub slow_client_limit: u32,
}

impl Default for RingSettings {
    fn default() -> Self {
        Self {
            seconds: Duration::from_secs(10),
            bytes: 16 * 1024 * 1024,
            gop_bytes: 32 * 1024 * 1024,
            slow_client_limit: 6,
        }
    }
}
