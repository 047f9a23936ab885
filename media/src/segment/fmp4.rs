//! Makes segments in fragmented MP4 (CMAF).

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::window::SegmentWindow;

/// Makes segments and parts from packets.
#[derive(Debug)]
pub(super) struct FragmentSegmenter {
    _window: Arc<SegmentWindow>,
}

impl FragmentSegmenter {
    /// Creates a segmenter that has seen no packet.
    pub(super) fn new(window: Arc<SegmentWindow>) -> Self {
        Self { _window: window }
    }

    /// Takes the next whole packets.
    pub(super) fn push(&mut self, _bytes: &Bytes, _arrived: Instant) {}

    /// Completes the newest segment.
    pub(super) fn finish(&mut self) {}
}
