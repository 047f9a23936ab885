//! The renditions of a live channel: its stream as output profiles change it, one ring for all viewers with equal ones.
//!
//! ```text
//!   pump ─► ring of the channel ─┬─► tails of viewers without an output profile
//!                                ├─► copy ─► ring of a rendition ─► tails of its viewers
//!                                └─► feed ─► program ─► pump ─► ring of a rendition ─► tails of its viewers
//! ```
//!
//! Viewers of a rendition are clients of the channel like all others. A rendition starts with its first viewer and ends
//! some time after its last one, or with the channel. If its task fails, its ring ends, and with it the connections of its
//! viewers; the next viewer starts another.

mod transcoder;

use std::sync::Arc;

use domain::output_profile::{LeftOut, LeftOutKind, Rendition};
use media::rendition::{LeftOutStreams, StreamFilter, StreamSort, copy};
use media::ring::{self, EndReason, JoinPoint, Ring, RingSettings};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use self::transcoder::Transcoder;
use super::{LiveEnv, WatchRefusal};
use crate::registry::Registered;

/// The renditions of one live channel that are running. Bounded by the number of its viewers.
#[derive(Default)]
pub(super) struct Renditions {
    running: Vec<RunningRendition>,
    /// Number of the last timer.
    last_timer: u64,
}

struct RunningRendition {
    rendition: Arc<Rendition>,
    ring: Ring,
    /// While it has no viewers: the timer that ends it, with its number.
    lingering: Option<(u64, AbortOnDropHandle<()>)>,
    _task: AbortOnDropHandle<()>,
    _registered: Registered,
}

impl RunningRendition {
    fn is_over(&self) -> bool {
        self.ring.ended().is_some()
    }
}

impl Renditions {
    /// Returns the ring of a rendition of the stream in `source`, and starts the rendition if it does not run yet.
    ///
    /// # Errors
    /// It needs a program, and the limit of programs is reached.
    pub(super) fn ring_of(
        &mut self,
        wanted: &Arc<Rendition>,
        source: &Ring,
        env: &LiveEnv,
    ) -> Result<Ring, WatchRefusal> {
        self.running.retain(|it| !it.is_over());
        if let Some(running) = self.running.iter_mut().find(|it| it.rendition == *wanted) {
            running.lingering = None;
            return Ok(running.ring.clone());
        }
        let running = start(wanted, source, env)?;
        let ring = running.ring.clone();
        self.running.push(running);
        Ok(ring)
    }

    /// Called after every message of the channel: a rendition has a timer exactly while it has no viewers. `start_timer`
    /// starts the timer with a number, which is passed to [`Self::lingered`].
    pub(super) fn update_linger(&mut self, start_timer: impl Fn(u64) -> AbortOnDropHandle<()>) {
        for running in &mut self.running {
            if running.ring.n_tails() > 0 {
                running.lingering = None;
            } else if running.lingering.is_none() {
                self.last_timer += 1;
                running.lingering = Some((self.last_timer, start_timer(self.last_timer)));
            }
        }
    }

    /// Ends the rendition whose timer has this number, unless a viewer has joined since.
    pub(super) fn lingered(&mut self, number: u64) {
        let has_lingered = |it: &RunningRendition| it.lingering.as_ref().is_some_and(|it| it.0 == number);
        self.running.retain(|it| !has_lingered(it) || it.ring.n_tails() > 0);
    }

    /// Ends all renditions: viewers read their last chunks, and then this reason.
    pub(super) fn end(&self, end: &EndReason) {
        self.running.iter().for_each(|it| it.ring.end(end.clone()));
    }
}

/// Starts a rendition.
fn start(rendition: &Arc<Rendition>, source: &Ring, env: &LiveEnv) -> Result<RunningRendition, WatchRefusal> {
    let settings = env.settings();
    let slot = match &rendition.command {
        None => None,
        Some(_) => {
            let limit = settings.transcoders_max;
            let slot = env.transcoders.take(limit);
            Some(slot.ok_or(WatchRefusal::Transcoders { limit })?)
        }
    };
    let (writer, ring) = ring::ring(
        RingSettings {
            // The first ring keeps the programme of a recording longer, because it is read ahead of its time.
            seconds: settings.ring_seconds + settings.recording_lead_seconds,
            bytes: settings.ring_bytes,
            gop_bytes: settings.ring_gop_bytes,
            slow_client_limit: settings.slow_client_limit,
        },
        &env.budget,
    );
    let left_out = left_out_streams(&rendition.left_out);
    let join_point = JoinPoint::Live { behind: settings.new_client_behind_seconds };
    info!(profile.id = %rendition.profile, profile.name = rendition.name, "rendition started");
    let task = match (&rendition.command, slot) {
        (Some(command), Some(slot)) => {
            let transcoder = Transcoder {
                name: rendition.name.clone(),
                command: [vec![command.program.clone()], command.arguments.clone()].concat(),
                left_out,
                source: source.clone(),
                join_point,
                slot,
                upstream: env.upstream(),
                settings,
            };
            env.packets.spawn(transcoder.run(writer, ring.clone()))
        }
        _ => {
            let tail = source.uncounted_tail(join_point);
            env.packets.spawn(copy(tail, StreamFilter::new(left_out), writer))
        }
    };
    let task = AbortOnDropHandle::new(task);
    let _registered = env.registry.rendition(ring.clone());
    Ok(RunningRendition { rendition: rendition.clone(), ring, lingering: None, _task: task, _registered })
}

fn left_out_streams(left_out: &LeftOut) -> LeftOutStreams {
    let sort = |kind: &LeftOutKind| match kind {
        LeftOutKind::Video => StreamSort::Video,
        LeftOutKind::Audio => StreamSort::Audio,
        LeftOutKind::Subtitles => StreamSort::Subtitles,
        LeftOutKind::Teletext => StreamSort::Teletext,
        LeftOutKind::Data => StreamSort::Data,
    };
    LeftOutStreams {
        pids: left_out.pids.iter().copied().collect(),
        sorts: left_out.kinds.iter().map(sort).collect(),
    }
}
