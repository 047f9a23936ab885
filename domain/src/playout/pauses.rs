//! The lengths and ends of pauses between attempts.

use std::time::{Duration, Instant};

/// The pseudorandom numbers that spread backoffs, so that the channels of a dead provider do not retry together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Jitter(pub(super) u64);

impl Jitter {
    /// Returns a factor that differs from 1 by `share` at most.
    pub(super) fn factor(&mut self, share: f64) -> f64 {
        // SplitMix64: three lines, and good enough for this purpose.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + share.clamp(0.0, 1.0) * (2.0 * unit - 1.0)
    }
}

/// Returns the time after this pause. Very long pauses are shortened to a year, because adding them could panic.
pub(super) fn after(now: Instant, pause: Duration) -> Instant {
    const PAUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
    now + pause.min(PAUSE_MAX)
}
