//! What a client got.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use media::meter::TailMeter;

use crate::viewer::Identity;

/// The counters of a viewer that gets a channel in segments, over any number of connections.
#[derive(Debug, Default)]
pub struct SegmentMeter {
    bytes: AtomicU64,
    is_low_latency: AtomicBool,
    keeps_cookies: AtomicBool,
    is_shared: AtomicBool,
}

impl SegmentMeter {
    /// Adds bytes that were handed to a connection.
    pub fn sent(&self, n: usize) {
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Records whether the viewer asked for parts of segments.
    pub fn set_low_latency(&self, is_low_latency: bool) {
        self.is_low_latency.store(is_low_latency, Ordering::Relaxed);
    }

    /// Records that the viewer sent the cookie that it was given.
    pub(crate) fn set_keeps_cookies(&self) {
        self.keeps_cookies.store(true, Ordering::Relaxed);
    }

    /// Records that the viewer may be several.
    pub(crate) fn set_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Returns the bytes that were handed to connections.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the viewer asks for parts of segments.
    pub fn is_low_latency(&self) -> bool {
        self.is_low_latency.load(Ordering::Relaxed)
    }

    /// Adds to the identity of a viewer what its requests have shown.
    fn identity(&self, identity: Identity) -> Identity {
        if self.is_shared.load(Ordering::Relaxed) {
            return Identity::default();
        }
        let keeps_cookies = identity.keeps_cookies || self.keeps_cookies.load(Ordering::Relaxed);
        Identity { keeps_cookies, ..identity }
    }
}

/// The counters of a client, whatever it reads from.
#[derive(Clone, Debug)]
pub(crate) enum ClientMeter {
    Tail(Arc<TailMeter>),
    Segments(Arc<SegmentMeter>),
}

impl ClientMeter {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Tail(meter) => meter.bytes(),
            Self::Segments(meter) => meter.bytes(),
        }
    }

    /// Returns the bytes that the client missed because it was too slow. A viewer of segments never gets a part of one.
    pub(crate) fn missed_bytes(&self) -> u64 {
        match self {
            Self::Tail(meter) => meter.overrun_bytes(),
            Self::Segments(_) => 0,
        }
    }

    pub(crate) fn misses(&self) -> u64 {
        match self {
            Self::Tail(meter) => meter.overruns(),
            Self::Segments(_) => 0,
        }
    }

    pub(crate) fn was_too_slow(&self) -> bool {
        match self {
            Self::Tail(meter) => meter.was_too_slow(),
            Self::Segments(_) => false,
        }
    }

    /// Adds to the identity of a viewer what its requests have shown.
    pub(crate) fn identity(&self, identity: Identity) -> Identity {
        match self {
            Self::Tail(_) => identity,
            Self::Segments(meter) => meter.identity(identity),
        }
    }

    pub(crate) fn is_low_latency(&self) -> bool {
        matches!(self, Self::Segments(meter) if meter.is_low_latency())
    }
}
