//! The segmenters of a live channel: its stream in segments for players of HLS and in fragments of MP4, one window of
//! them for all viewers with the same container and output profile.
//!
//! ```text
//!   ring of the channel, or of a rendition ─► segmenter ─► window ─┬─► requests of viewers with HLS
//!                                                                  └─► fragments of viewers with one response
//! ```
//!
//! A segmenter reads the ring like any client. It starts with its first viewer and ends some time after its last one, or
//! with the ring. Its viewers are clients of the channel like all others.

use std::sync::Arc;
use std::time::SystemTime;

use domain::output_format::{SegmentContainer, StreamFormat};
use domain::output_profile::Rendition;
use media::ring::{JoinPoint, Ring};
use media::segment::{self, SegmentSettings, SegmentWindow, segmenter};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use super::env::LiveEnv;
use super::status::SegmenterStatus;
use super::viewing::SharedWindow;

/// Returns the container of the segments that a viewer of this format reads; `None` for one that reads the ring.
pub(super) fn container_of(format: StreamFormat) -> Option<SegmentContainer> {
    match format {
        StreamFormat::Ts => None,
        StreamFormat::Hls(container) => Some(container),
        StreamFormat::LowLatencyHls | StreamFormat::Fmp4 => Some(SegmentContainer::Fmp4),
    }
}

/// The segmenters of one live channel that are running. Bounded by the number of its viewers.
#[derive(Default)]
pub(super) struct Segmenters {
    running: Vec<RunningSegmenter>,
    /// Number of the last timer.
    last_timer: u64,
    /// The least number of a segment that no segmenter of this channel has used.
    next_number: u64,
}

struct RunningSegmenter {
    container: SegmentContainer,
    rendition: Option<Arc<Rendition>>,
    window: Arc<SegmentWindow>,
    /// Each viewer has a clone.
    viewers: Arc<()>,
    /// While it has no viewers: the timer that ends it, with its number.
    lingering: Option<(u64, AbortOnDropHandle<()>)>,
    _task: AbortOnDropHandle<()>,
}

impl RunningSegmenter {
    fn n_viewers(&self) -> usize {
        Arc::strong_count(&self.viewers) - 1
    }
}

impl Segmenters {
    /// Returns the window of the segmenter for this container of the stream in `ring`, which belongs to `rendition`, and
    /// starts the segmenter if it does not run yet.
    pub(super) fn window_of(
        &mut self,
        container: SegmentContainer,
        rendition: Option<&Arc<Rendition>>,
        ring: &Ring,
        env: &LiveEnv,
    ) -> SharedWindow {
        self.drop_segmenters(|it| it.window.ended().is_some());
        let is_it = |it: &RunningSegmenter| it.container == container && it.rendition.as_ref() == rendition;
        let index = self.running.iter().position(is_it).unwrap_or_else(|| {
            self.running.push(start(container, rendition.cloned(), ring, env, self.next_number));
            self.running.len() - 1
        });
        let running = &mut self.running[index];
        running.lingering = None;
        SharedWindow::new(Arc::clone(&running.window), Arc::clone(&running.viewers))
    }

    /// Called after every message of the channel: a segmenter has a timer exactly while it has no viewers. `start_timer`
    /// starts the timer with a number, which is passed to [`Self::lingered`].
    pub(super) fn update_linger(&mut self, start_timer: impl Fn(u64) -> AbortOnDropHandle<()>) {
        for running in &mut self.running {
            if running.n_viewers() > 0 {
                running.lingering = None;
            } else if running.lingering.is_none() {
                self.last_timer += 1;
                running.lingering = Some((self.last_timer, start_timer(self.last_timer)));
            }
        }
    }

    /// Ends the segmenter whose timer has this number, unless a viewer has joined since.
    pub(super) fn lingered(&mut self, number: u64) {
        let has_lingered = |it: &RunningSegmenter| it.lingering.as_ref().is_some_and(|it| it.0 == number);
        self.drop_segmenters(|it| has_lingered(it) && it.n_viewers() == 0);
    }

    /// Ends segmenters, and remembers the numbers of their segments: those of another one must differ, because players and
    /// caches keep them.
    fn drop_segmenters(&mut self, is_over: impl Fn(&RunningSegmenter) -> bool) {
        for ended in self.running.extract_if(.., |it| is_over(it)) {
            self.next_number = self.next_number.max(ended.window.next_number());
        }
    }

    pub(super) fn status(&self) -> Vec<SegmenterStatus> {
        self.running.iter().map(status).collect()
    }
}

fn start(
    container: SegmentContainer,
    rendition: Option<Arc<Rendition>>,
    ring: &Ring,
    env: &LiveEnv,
    first_number_min: u64,
) -> RunningSegmenter {
    info!(profile.name = rendition.as_ref().map(|it| it.name.as_str()), ?container, "segmenter started");
    // From the oldest picture on, so that the first playlist has as many segments as possible.
    let tail = ring.uncounted_tail(JoinPoint::Oldest);
    let kind = match container {
        SegmentContainer::Ts => segment::SegmentContainer::Ts,
        SegmentContainer::Fmp4 => segment::SegmentContainer::Fmp4,
    };
    let settings = SegmentSettings { first_number_min, ..SegmentSettings::default() };
    let (window, running) = segmenter(tail, kind, settings, SystemTime::now());
    let task = AbortOnDropHandle::new(env.packets.spawn(running));
    RunningSegmenter { container, rendition, window, viewers: Arc::default(), lingering: None, _task: task }
}

fn status(running: &RunningSegmenter) -> SegmenterStatus {
    let description = running.window.description();
    SegmenterStatus {
        container: running.container,
        output_profile: running.rendition.as_ref().map(|it| it.profile),
        n_viewers: running.n_viewers(),
        target_duration: description.target_duration,
        newest_segment: description.newest_sequence,
        n_segments: description.n_segments,
        bytes: description.bytes,
        latency: description.newest_media.map(|it| SystemTime::now().duration_since(it).unwrap_or_default()),
        codecs: description.codecs(),
        left_out: description.left_out.iter().map(|it| format!("{}: {}", it.name, it.reason)).collect(),
    }
}
