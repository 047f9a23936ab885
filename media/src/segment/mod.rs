//! Segments of a live channel for HLS, and fragments for fMP4 over one response.
//!
//! One task per channel and container reads the ring through an uncounted tail and fills a [`SegmentWindow`], from which
//! all viewers read: the same bytes for everyone, held once. `cut` decides where segments begin, `ts` and `fmp4`
//! make their bytes, `window` stores them, and `playlist` lists them.
//!
//! Numbers of segments begin with the seconds since 1970, so that the numbers of a channel that starts again do not
//! repeat those of its last run, and its segments can be cached without a limit.

mod body;
mod boxes;
mod codec;
mod cut;
mod demux;
mod description;
mod early_sound;
mod fmp4;
mod fragments;
mod names;
mod playlist;
mod settings;
mod still;
#[cfg(test)]
mod tests;
mod ts;
mod window;

use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::Instant;

pub use self::body::SegmentBody;
pub use self::description::{LeftOutTrack, SegmentDescription, SegmentTrack};
use self::fmp4::FragmentSegmenter;
pub use self::fragments::{Fragment, FragmentEnd, FragmentReader};
pub use self::names::{SegmentName, SegmentNames};
pub use self::playlist::{MediaPlaylist, PlaylistRequest};
pub use self::settings::{SegmentContainer, SegmentSettings};
pub use self::still::{Still, StillCache, StillError};
use self::ts::TsSegmenter;
pub use self::window::{SegmentWindow, WindowError};
use crate::ring::{EndReason, Tail};

/// Bytes after which the task yields to others. A new window begins with some seconds of past data.
const TURN_BYTES: usize = 256 << 10;

/// Creates the window of segments of a channel, and the task that fills it from a tail of its ring.
///
/// `now` is the time of the wall clock, for `EXT-X-PROGRAM-DATE-TIME` and for the numbers of segments. The window ends
/// with the tail, or when the task is dropped.
pub fn segmenter(
    tail: Tail,
    container: SegmentContainer,
    settings: SegmentSettings,
    now: SystemTime,
) -> (Arc<SegmentWindow>, impl Future<Output = ()> + Send + 'static) {
    let window = Arc::new(SegmentWindow::new(container, settings, now));
    let guard = WindowGuard(Arc::clone(&window));
    (window, fill(tail, guard))
}

/// Ends the window when the task that fills it ends or is dropped.
struct WindowGuard(Arc<SegmentWindow>);

impl Drop for WindowGuard {
    fn drop(&mut self) {
        self.0.end(EndReason::Closed);
    }
}

async fn fill(mut tail: Tail, guard: WindowGuard) {
    let mut packager = Packager::new(Arc::clone(&guard.0));
    let mut n_bytes = 0;
    loop {
        let part = match tail.part().await {
            Ok(part) => part,
            Err(end) => {
                packager.finish();
                return guard.0.end(end);
            }
        };
        if part.is_filler {
            continue;
        }
        packager.push(&part.bytes, part.arrived);
        n_bytes += part.bytes.len();
        if n_bytes >= TURN_BYTES {
            n_bytes = 0;
            yield_now().await;
        }
    }
}

/// Makes segments of one container from packets, and puts them into a window. The task of [`segmenter`] does this; tests
/// and fuzz targets use it without a ring.
#[derive(Debug)]
pub struct Packager(Kind);

#[derive(Debug)]
enum Kind {
    Ts(Box<TsSegmenter>),
    Fmp4(Box<FragmentSegmenter>),
}

impl Packager {
    /// Creates a packager that has seen no packet.
    pub fn new(window: Arc<SegmentWindow>) -> Self {
        Self(match window.container() {
            SegmentContainer::Ts => Kind::Ts(Box::new(TsSegmenter::new(window))),
            SegmentContainer::Fmp4 => Kind::Fmp4(Box::new(FragmentSegmenter::new(window))),
        })
    }

    /// Takes the next whole packets of the stream, which arrived at this time.
    pub fn push(&mut self, bytes: &Bytes, arrived: Instant) {
        match &mut self.0 {
            Kind::Ts(it) => it.push(bytes, arrived),
            Kind::Fmp4(it) => it.push(bytes, arrived),
        }
    }

    /// Completes the newest segment, because no packet follows.
    pub fn finish(&mut self) {
        match &mut self.0 {
            Kind::Ts(it) => it.finish(),
            Kind::Fmp4(it) => it.finish(),
        }
    }
}
