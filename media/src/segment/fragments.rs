//! The fragments of a window over one response.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::settings::SegmentContainer;
use super::window::{SegmentWindow, WindowState};
use crate::ring::EndReason;

/// A reader that falls behind the window more often than this ends.
const OVERRUNS_MAX: u32 = 6;

/// The next bytes of a [`FragmentReader`].
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The initialisation segment, or a fragment. All readers share the bytes.
    pub bytes: Bytes,
    /// Whether the reader was too slow, so that fragments before this one are missing for it.
    pub is_after_loss: bool,
}

/// Why a reader of fragments ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentEnd {
    /// The window ended.
    Window(EndReason),
    /// The codecs or their parameters change, which needs another initialisation segment: the response ends, and the
    /// player asks again.
    Changed,
    /// The reader could not keep up.
    TooSlow,
    /// The window has no fragments, because its container is not fMP4.
    NotFragmented,
}

/// Reads the fragments of a window in order: the initialisation segment, then all fragments from the newest complete
/// segment on.
///
/// It stores a position and no bytes. A reader whose position has left the window continues with the newest segment.
#[derive(Debug)]
pub struct FragmentReader {
    window: Arc<SegmentWindow>,
    changes: watch::Receiver<u64>,
    /// The version of the initialisation segment, once it was sent.
    init: Option<u32>,
    /// Number of the segment and index of its part that come next.
    next: Option<(u64, usize)>,
    n_overruns: u32,
}

enum Found {
    Bytes(Bytes, bool),
    Wait,
    End(FragmentEnd),
}

impl FragmentReader {
    pub(super) fn new(window: Arc<SegmentWindow>) -> Self {
        let changes = window.subscribe();
        Self { window, changes, init: None, next: None, n_overruns: 0 }
    }

    /// Waits for the next bytes. Cancel-safe.
    ///
    /// # Errors
    /// The reader has ended; it returns the same reason again.
    pub async fn next(&mut self) -> Result<Fragment, FragmentEnd> {
        if self.window.container() != SegmentContainer::Fmp4 {
            return Err(FragmentEnd::NotFragmented);
        }
        loop {
            self.changes.borrow_and_update();
            match self.find() {
                Found::Bytes(bytes, is_after_loss) => return Ok(Fragment { bytes, is_after_loss }),
                Found::End(end) => return Err(end),
                Found::Wait => {
                    if self.changes.changed().await.is_err() {
                        return Err(FragmentEnd::Window(EndReason::Closed));
                    }
                }
            }
        }
    }

    fn find(&mut self) -> Found {
        let Self { window, init, next, n_overruns, .. } = self;
        let state = window.lock();
        if *n_overruns > OVERRUNS_MAX {
            return Found::End(FragmentEnd::TooSlow);
        }
        if let Some(end) = state.end.as_ref().filter(|it| it.is_abrupt()) {
            return Found::End(FragmentEnd::Window(end.clone()));
        }
        let waiting = || state.end.clone().map_or(Found::Wait, |end| Found::End(FragmentEnd::Window(end)));
        let mut is_after_loss = false;
        loop {
            let (number, index) = match *next {
                Some(position) => position,
                None => {
                    let newest = state.segments.back().map(|it| it.head.number);
                    let Some(first) = newest.or(state.open.as_ref().map(|it| it.head.number)) else {
                        return waiting();
                    };
                    *next.insert((first, 0))
                }
            };
            let Some((version, part, is_complete)) = fragment(&state, number, index) else {
                let oldest = state.segments.front().map(|it| it.head.number);
                if oldest.is_none_or(|it| number >= it) {
                    return waiting();
                }
                *n_overruns += 1;
                if *n_overruns > OVERRUNS_MAX {
                    return Found::End(FragmentEnd::TooSlow);
                }
                (*next, is_after_loss) = (None, true);
                continue;
            };
            if init.is_some_and(|it| it != version) {
                return Found::End(FragmentEnd::Changed);
            }
            if init.is_none() {
                let Some(bytes) = state.init(version) else { return waiting() };
                *init = Some(version);
                return Found::Bytes(bytes, false);
            }
            match part {
                Some(bytes) => {
                    *next = Some((number, index + 1));
                    return Found::Bytes(bytes, is_after_loss);
                }
                None if is_complete => *next = Some((number + 1, 0)),
                None => return waiting(),
            }
        }
    }
}

/// Returns the initialisation segment of a segment, its part with this index, and whether it is complete.
fn fragment(state: &WindowState, number: u64, index: usize) -> Option<(u32, Option<Bytes>, bool)> {
    let (head, parts, is_complete) = match state.segment(number) {
        Some(it) => (&it.head, &it.parts, true),
        None => {
            let open = state.open.as_ref().filter(|it| it.head.number == number)?;
            (&open.head, &open.parts, false)
        }
    };
    Some((head.init, parts.get(index).map(|it| it.bytes.clone()), is_complete))
}
