//! A viewer of segments of a live channel.

use std::fmt;
use std::sync::Arc;

use media::segment::SegmentWindow;

use crate::client::{Departure, SegmentMeter};
use crate::registry::Registry;

/// The window of a segmenter, and what keeps the segmenter running.
pub(super) struct SharedWindow {
    window: Arc<SegmentWindow>,
    viewer: Arc<()>,
}

impl SharedWindow {
    /// `viewer` is counted by the segmenter while it is held.
    pub(super) fn new(window: Arc<SegmentWindow>, viewer: Arc<()>) -> Self {
        Self { window, viewer }
    }
}

/// A viewer of a window of segments. Dropping it ends the client.
pub struct SegmentViewing {
    window: Arc<SegmentWindow>,
    meter: Arc<SegmentMeter>,
    registry: Arc<Registry>,
    /// Fields are dropped in this order: the segmenter has one viewer less when the channel hears of the end.
    _viewer: Arc<()>,
    departure: Departure,
}

impl SegmentViewing {
    pub(super) fn new(
        shared: SharedWindow,
        meter: Arc<SegmentMeter>,
        departure: Departure,
        registry: Arc<Registry>,
    ) -> Self {
        Self { window: shared.window, meter, registry, _viewer: shared.viewer, departure }
    }

    /// Returns the segments.
    pub fn window(&self) -> &Arc<SegmentWindow> {
        &self.window
    }

    /// Counts bytes that were handed to a connection.
    pub fn sent(&self, n: usize) {
        self.meter.sent(n);
        self.registry.segment_bytes_out.add(n as u64);
    }

    /// Returns the counters.
    pub fn meter(&self) -> &Arc<SegmentMeter> {
        &self.meter
    }

    /// Returns the number of viewers of the window.
    pub fn n_viewers(&self) -> usize {
        // The segmenter has one reference too.
        Arc::strong_count(&self._viewer).saturating_sub(1)
    }

    /// Returns why the gateway ended the session of the user, if it did.
    pub(crate) fn why_ended(&self) -> Option<&'static str> {
        self.departure.why_ended()
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
}

impl fmt::Debug for SegmentViewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentViewing").field("meter", &self.meter).finish_non_exhaustive()
    }
}
