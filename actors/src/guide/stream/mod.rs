//! Guide data from transport streams: tables that arrive with channels that play anyway. Nothing is opened for them.
//!
//! ```text
//!   pump ─ section ─▶ bounded queue ─▶ collector ─▶ guides in memory ─▶ refresh ─▶ guide file
//! ```
//!
//! A pump hands in each new section once and never waits. The collector asks for a refresh when the guides have changed,
//! at most every few minutes.

mod input;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::guide::dvb::{SectionOrigin, ServiceGuides};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::GuideSourceId;
use media::ts::service_info::ServiceInfoSink;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, MissedTickBehavior, interval};

pub(super) use self::input::StreamInput;
use crate::clock::now_ms;
use crate::plans::Target;

/// Sections that wait for the collector. Each has at most 4 KiB; one more is offered again by its stream.
const QUEUE_MAX: usize = 256;
/// Interval at which the collector looks for active sources of this kind, and for changes.
const TICK: Duration = Duration::from_secs(1);
/// Time from the first new programme to the refresh, in which the tables of the stream arrive.
const FIRST_DELAY: Duration = Duration::from_secs(3);
/// Minimum time between two refreshes.
const REFRESH_PAUSE: Duration = Duration::from_secs(5 * 60);

/// A section, and where it comes from.
struct Received {
    target: Target,
    programme: Option<u16>,
    section: Box<[u8]>,
}

/// The guide data of all streams that play. Clones share it.
#[derive(Clone)]
pub(crate) struct StreamGuides {
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether a guide source of this kind is active.
    is_open: AtomicBool,
    queue: Sender<Received>,
    /// Held by the collector.
    received: tokio::sync::Mutex<Receiver<Received>>,
    guides: Mutex<ServiceGuides>,
}

impl Default for StreamGuides {
    fn default() -> Self {
        let (queue, received) = channel(QUEUE_MAX);
        Self {
            shared: Arc::new(Shared {
                is_open: AtomicBool::new(false),
                queue,
                received: tokio::sync::Mutex::new(received),
                guides: Mutex::default(),
            }),
        }
    }
}

/// Takes the sections of one live channel.
struct ChannelSections {
    shared: Arc<Shared>,
    target: Target,
}

impl ServiceInfoSink for ChannelSections {
    fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::Relaxed)
    }

    fn section(&self, programme: Option<u16>, section: &[u8]) -> bool {
        let received = Received { target: self.target, programme, section: section.into() };
        self.shared.queue.try_send(received).is_ok()
    }
}

impl StreamGuides {
    /// Returns the receiver of the sections of a live channel.
    pub(crate) fn sections_of(&self, target: &Target) -> Arc<dyn ServiceInfoSink> {
        Arc::new(ChannelSections { shared: self.shared.clone(), target: *target })
    }

    /// Collects sections, and calls `refresh` for every active source of this kind whose guide has changed. Runs until it
    /// is dropped.
    pub(crate) async fn collect(self, models: Models, refresh: impl AsyncFn(GuideSourceId)) {
        let mut received = self.shared.received.lock().await;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed_at = None;
        let mut refreshed_at: Option<Instant> = None;
        loop {
            tokio::select! {
                section = received.recv() => {
                    // The queue has a sender as long as `self`.
                    let Some(section) = section else { return };
                    let has_changed = self.read(&models, &section);
                    changed_at = changed_at.or(has_changed.then(Instant::now));
                }
                now = ticks.tick() => {
                    let sources = active_sources(&models);
                    self.shared.is_open.store(!sources.is_empty(), Ordering::Relaxed);
                    let is_due = changed_at.is_some_and(|it| it + FIRST_DELAY <= now)
                        && refreshed_at.is_none_or(|it| it + REFRESH_PAUSE <= now);
                    if is_due && !sources.is_empty() {
                        (changed_at, refreshed_at) = (None, Some(now));
                        for source in sources {
                            refresh(source).await;
                        }
                    }
                }
            }
        }
    }

    /// Reads a section, and returns whether it changed a guide.
    fn read(&self, models: &Models, received: &Received) -> bool {
        let key = match &received.target {
            Target::Channel(uuid) => {
                let channels = models.channels.load();
                let channel = channels.one_by("uuid", uuid.as_bytes());
                channel.and_then(|it| it.tvg_id.clone()).filter(|it| !it.trim().is_empty())
            }
            Target::Stream(_)
            | Target::Movie(_)
            | Target::Episode(_)
            | Target::Archive(_)
            | Target::Recording(_) => None,
        };
        let mut id = DefaultHasher::new();
        received.target.hash(&mut id);
        let origin = SectionOrigin { id: id.finish(), key, programme: received.programme };
        self.shared.guides.lock().read(&origin, &received.section, now_ms().div_euclid(1000))
    }
}

/// Returns the active guide sources of this kind.
fn active_sources(models: &Models) -> Vec<GuideSourceId> {
    let sources = models.guide_sources.load();
    let is_wanted = |it: &&Arc<GuideSource>| it.is_active && it.kind == GuideSourceKind::Stream;
    sources.iter().filter(is_wanted).map(|it| it.id).collect()
}
