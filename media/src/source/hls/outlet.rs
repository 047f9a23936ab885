//! Passes bytes from the future that fetches segments to the source that is read.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::error::UpstreamError;
use crate::hls::StreamBreak;
use crate::meter::InputCounts;

/// The start of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentStart {
    /// How the segment relates to the one before it; `None` if it continues that, at most with other continuity counters.
    pub(crate) breaks: Option<StreamBreak>,
}

/// The place for one piece of data, and what is known of the source.
#[derive(Clone, Default)]
pub(super) struct Outlet(Arc<Mutex<OutletState>>);

#[derive(Default)]
struct OutletState {
    /// At most one piece; the next one is fetched after it was taken.
    piece: Option<(Option<SegmentStart>, Bytes)>,
    target: Option<Duration>,
    n_read: u64,
    n_skipped: u64,
    /// The reason of the last failure.
    error: Option<UpstreamError>,
}

impl Outlet {
    /// Puts a piece, and waits until it is taken. `start` is present if a segment begins with it.
    pub(super) async fn send(&self, start: Option<SegmentStart>, bytes: Bytes) {
        self.0.lock().piece = Some((start, bytes));
        // Nobody has to be woken: the reader takes the piece before it polls this future again.
        poll_fn(|_| if self.0.lock().piece.is_some() { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    pub(super) fn take(&self) -> Option<(Option<SegmentStart>, Bytes)> {
        self.0.lock().piece.take()
    }

    /// Returns whether a piece waits.
    pub(super) fn has_piece(&self) -> bool {
        self.0.lock().piece.is_some()
    }

    pub(super) fn set_target(&self, target: Duration) {
        self.0.lock().target = Some(target);
    }

    /// Returns the maximum duration of a segment, once it is known.
    pub(super) fn target(&self) -> Option<Duration> {
        self.0.lock().target
    }

    /// Counts a segment that was read, at least in part.
    pub(super) fn count_read(&self) {
        self.0.lock().n_read += 1;
    }

    /// Sets the number of segments that were skipped since the start.
    pub(super) fn count_skipped(&self, n_skipped: u64) {
        self.0.lock().n_skipped = n_skipped;
    }

    /// Returns what was counted since the start.
    pub(super) fn counts(&self) -> InputCounts {
        let state = self.0.lock();
        InputCounts {
            segments_read: state.n_read,
            segments_skipped: state.n_skipped,
            ..InputCounts::default()
        }
    }

    pub(super) fn set_error(&self, error: UpstreamError) {
        self.0.lock().error = Some(error);
    }

    /// Returns the reason of the last failure.
    pub(super) fn error(&self) -> Option<UpstreamError> {
        self.0.lock().error.clone()
    }
}
